"""Every experiment: presets construct, help reads, smoke runs, results are whole."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

from experiments.__main__ import main as list_papers
from experiments.__main__ import papers
from experiments.common import cli
from jaxemb.data import synthetic, vectors
from jaxemb.errors import InputError
from jaxemb.train import results

ROOT = pathlib.Path(__file__).parents[1]
PAPERS = papers()


def config_of(slug):
    return importlib.import_module(f"experiments.{slug}.config")


PRESETS = [(slug, name) for slug in PAPERS for name in config_of(slug).PRESETS]


@pytest.mark.parametrize(("slug", "preset"), PRESETS)
def test_presets_construct_and_name_themselves(slug, preset):
    module = config_of(slug)
    assert slug == module.SLUG
    config = cli.parse(slug, module.PRESETS, [preset])
    assert config == module.PRESETS[preset][1]
    assert config.preset == preset
    assert isinstance(config.data_sets, tuple)


@pytest.mark.parametrize("slug", PAPERS)
def test_help_exits_0_without_jax(slug):
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['x', '--help']\n"
        "try:\n"
        f"    runpy.run_module('experiments.{slug}', run_name='__main__')\n"
        "except SystemExit as leave:\n"
        "    assert not leave.code\n"
        "assert 'jax' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "smoke" in done.stdout


@pytest.mark.parametrize(
    "command", [["experiments"], ["experiments.delta_embedding", "smoke", "--help"]]
)
def test_a_reader_that_leaves_is_no_mistake(command):
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize("slug", PAPERS)
def test_every_paper_has_a_smoke_preset_and_a_readme(slug):
    assert "smoke" in config_of(slug).PRESETS
    assert config_of(slug).PRESETS["smoke"][1].data_sets == ()
    assert (ROOT / "experiments" / slug / "README.md").read_text().startswith("# ")


# These compile for minutes where no cache is warm.
_SLOW_SMOKES = {
    "alice",
    "compressing_bert",
    "docbert_distillation",
    "dynamic_to_static",
}


@pytest.mark.parametrize(
    "slug",
    [
        pytest.param(slug, marks=[pytest.mark.slow] if slug in _SLOW_SMOKES else [])
        for slug in PAPERS
    ],
)
def test_smoke_runs_and_its_results_validate(slug, tmp_path):
    module = importlib.import_module(f"experiments.{slug}.main")
    presets = config_of(slug).PRESETS
    config = cli.parse(
        slug, presets, ["smoke", "--workdir", str(tmp_path), "--no-progress"]
    )
    written = module.run(config)
    assert written == results.read(tmp_path)
    assert written["slug"] == slug
    assert {d["kind"] for d in written["data"]} == {"synthetic"}
    assert written["rows"]


COMMITTED = sorted(ROOT.glob("experiments/*/results/*.json"))


# Presets that show that the code works or take a user's data; those not yet run.
_SHOWS = {"smoke", "smoke-bidaf", "smoke-esim", "demo", "custom"}
_OWED = {
    # These two wait for data that is not here.
    ("delta_embedding", "bidaf-squad"),
    ("delta_embedding", "esim-multinli"),
    ("dynamic_to_static", "similarity"),
    ("dynamic_to_static", "windows"),
    ("dynamic_to_static", "tagging"),
    ("alice", "mctaco"),
    ("alice", "comve"),
    # These two wait for RoBERTa-large and an accelerator.
    ("alice", "mctaco-large"),
    ("alice", "cosmosqa-large"),
    ("compressing_bert", "pretraining"),
    ("compressing_bert", "sst-2"),
    ("compressing_bert", "mrpc"),
    ("compressing_bert", "sts-b"),
    ("compressing_bert", "when"),
    ("compressing_bert", "paper"),  # BERT's weights and GLUE's files are not here
    ("docbert_distillation", "reuters"),
    ("docbert_distillation", "imdb"),
    ("docbert_distillation", "imdb-binary"),
    ("docbert_distillation", "composed"),
    # These are for accelerators, with weights, vectors and texts that are not here.
    ("docbert_distillation", "reuters-paper"),
    ("docbert_distillation", "aapd-paper"),
    ("docbert_distillation", "imdb-paper"),
    ("docbert_distillation", "yelp-paper"),
}


def test_every_preset_has_committed_results():
    there = {(path.parts[-3], path.stem) for path in COMMITTED}
    wanted = {(slug, name) for slug, name in PRESETS if name not in _SHOWS}
    assert there == wanted - _OWED


@pytest.mark.parametrize("path", COMMITTED, ids=lambda p: f"{p.parts[-3]}-{p.stem}")
def test_committed_results_are_whole(path):
    written = results.read(path)
    assert written["slug"] == path.parts[-3]
    assert written["preset"] == path.stem
    commits = written["commit"].split()
    assert not [c for c in commits if c.endswith("+changes")]
    git = ["git", "-C", str(ROOT), "cat-file", "-e"]
    if (ROOT / ".git").exists():
        assert all(subprocess.run([*git, commit]).returncode == 0 for commit in commits)
    assert written["rows"]
    assert written["claims"]


def test_the_readme_shows_the_committed_results():
    script = ROOT / "scripts" / "results_table.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


def test_the_list_names_every_paper_and_preset(capsys):
    list_papers()
    shown = capsys.readouterr().out
    for slug, preset in PRESETS:
        assert slug in shown
        assert preset in shown


@pytest.mark.parametrize("text", ["10", "a:b", "3-4", ":", "4:2", "0:3"])
def test_a_bad_profile_range_is_named(text):
    with pytest.raises(InputError, match=f"--profile {text}: expected FIRST:LAST"):
        _ = cli.Run(profile=text).profile_steps


def test_profile_range():
    assert cli.Run(profile="10:20").profile_steps == (10, 20)


def test_two_processes_write_one_result(tmp_path):
    launcher = [sys.executable, str(ROOT / "scripts" / "multihost.py"), "2", "--"]
    command = [sys.executable, "-m", "experiments.delta_embedding", "smoke"]
    command += ["--workdir", str(tmp_path), "--arms", "delta-1e-3", "--no-progress"]
    done = subprocess.run(
        [*launcher, *command],
        cwd=ROOT,
        env={**os.environ, "XLA_FLAGS": ""},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    assert results.read(tmp_path)["rows"]
    assert done.stdout.count("rows moved (%)") == 1


def test_a_file_of_vectors_can_be_named(tmp_path):
    module = importlib.import_module("experiments.delta_embedding.main")
    world = synthetic.planted_sentiment()
    path = tmp_path / "my.own.vec"
    vectors.write_word_vectors(path, world.vectors)
    config = cli.parse(
        "delta_embedding",
        config_of("delta_embedding").PRESETS,
        ["smoke", "--vectors", str(path), "--arms", "fixed", "--epochs", "1"]
        + ["--workdir", str(tmp_path / "run"), "--no-progress"],
    )
    written = module.run(config)
    assert [row["name"] for row in written["rows"]][0] == "my.own.vec/fixed"


def test_a_users_mistake_is_one_line_and_exit_2(tmp_path):
    command = [sys.executable, "-m", "experiments.delta_embedding", "smoke"]
    command += ["--arms", "delta-x", "--workdir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "delta_embedding: --arms delta-x: expected fixed, finetune, delta-C or prox-C"
    )


def test_results_with_a_missing_field_are_refused(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps({"slug": "x"}))
    with pytest.raises(InputError, match="not a results file: preset"):
        results.read(tmp_path)
