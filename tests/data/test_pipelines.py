"""Beam runs in another process: it wants older libraries than the rest."""

import dataclasses
import gzip
import importlib.util
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import cooccurrence, corpus, sources
from jaxemb.data.corpus import readers, shards
from jaxemb.data.pipelines import __main__ as command_line
from jaxemb.errors import InputError

ROOT = Path(__file__).parents[2]
HERE = importlib.util.find_spec("apache_beam") is not None


def beam_python():
    """A Python that has Beam and this library's dependencies."""
    own = os.environ.get("JAXEMB_BEAM_PYTHON")
    venv = ROOT / ".venv-beam" / "bin" / "python"
    if HERE:
        return sys.executable
    if own or venv.exists():
        return own or str(venv)
    pytest.skip(
        "needs the extra 'beam': set JAXEMB_BEAM_PYTHON to a Python that has it, or "
        f"make the environment {venv.parents[1]}"
    )


def run(*arguments, check=True):
    """The command line in Beam's Python; fails where TensorFlow was imported."""
    code = (
        "import sys; from jaxemb.data.pipelines.__main__ import main\n"
        "main(sys.argv[1:])\n"
        "assert not {'tensorflow', 'jax'} & set(sys.modules)"
    )
    done = subprocess.run(
        [beam_python(), "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 or not check, done.stderr
    return done


def same_corpus(one, two):
    assert one.words == two.words and one.sha256 == two.sha256
    for name in ("counts", "tokens", "starts", "raw"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    if one.held_out is None:
        assert two.held_out is None
    else:
        same_corpus(one.held_out, two.held_out)


def same_pairs(one, two):
    assert one.sha256 == two.sha256
    assert (one.vocab, one.window, one.weighting) == (
        two.vocab,
        two.window,
        two.weighting,
    )
    for name in ("rows", "columns", "values"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


IDS = st.lists(st.lists(st.integers(-1, 2**31 - 1), min_size=1, max_size=5), min_size=1)


@given(IDS)
def test_records_come_back(sentences):
    ids = np.array(list(itertools.chain(*sentences)), np.int32)
    lengths = np.array([len(s) for s in sentences], np.int64)
    back = shards.unpack(shards.pack(ids, lengths))
    assert back[0].tolist() == ids.tolist() and back[1].tolist() == lengths.tolist()
    assert (back[0].dtype, back[1].dtype) == (np.int32, np.int64)


def write_shards(folder, text, built, held_out):
    """What the pipeline `encode` leaves, by hand: two shards, two records in each."""
    folder.mkdir()
    quarter = -(-len(text) // 4)
    parts = [text[i : i + quarter] for i in range(0, len(text), quarter)]
    records = [
        shards.pack(
            np.array([built.index.get(w, -1) for s in part for w in s], np.int32),
            np.array([len(s) for s in part]),
        )
        for part in parts
    ]
    for number, half in enumerate((records[:2], records[2:])):
        path = folder / shards.TEXT.format(number, 2)
        shards.write_shard(path, half)
    counted = list(zip(built.words, built.counts.tolist(), strict=True))
    (folder / "words.tsv").write_bytes(shards.format_words(counted))
    told = {"min_count": 2, "held_out": held_out, "shards": 2}
    told["settings"] = ["min_count", "held_out"]
    (folder / "text.json").write_text(json.dumps(told))


@pytest.mark.parametrize("held_out", [0, 3])
def test_a_corpus_of_shards(tmp_path, held_out):
    text = [f"a b c{i % 3} rare{i} é".split() for i in range(40)]
    built = corpus.build(
        text, tmp_path / "c", min_count=2, held_out=held_out, progress=False
    )
    write_shards(tmp_path / "shards", text, built, held_out)
    same_corpus(shards.corpus_from_shards(tmp_path / "shards", tmp_path / "d"), built)
    with pytest.raises(InputError, match="d: is there already"):
        shards.corpus_from_shards(tmp_path / "shards", tmp_path / "d")


def test_shards_that_are_not_whole(tmp_path, capsys):
    text = [["a", "b"], ["a", "b"], ["b", "a"], ["a", "a"]]
    built = corpus.build(text, tmp_path / "c", min_count=2, progress=False)
    folder = tmp_path / "shards"
    write_shards(folder, text, built, 0)
    words = (folder / "words.tsv").read_bytes()
    (folder / "words.tsv").write_bytes(words.replace(b"5", b"6"))
    with pytest.raises(InputError, match="'a' does not occur as often as it was coun"):
        shards.corpus_from_shards(folder, tmp_path / "d")
    (folder / "words.tsv").write_bytes(b"a\n")
    with pytest.raises(InputError, match=r"words\.tsv:1: expected a word, a tab"):
        shards.corpus_from_shards(folder, tmp_path / "d")
    (folder / "words.tsv").write_bytes(words)
    (folder / shards.TEXT.format(1, 2)).unlink()
    with pytest.raises(InputError, match="text-00001-of-00002.array_record: no such"):
        shards.corpus_from_shards(folder, tmp_path / "d")
    assert not (tmp_path / "d").exists()
    with pytest.raises(SystemExit) as ended:
        command_line.main(
            ["collect", "--input", "none", "--output", str(tmp_path / "d")]
        )
    assert ended.value.code == 2
    assert "`encode` has not completed here" in capsys.readouterr().err


def write_pairs(folder, counted, files=3):
    """What the pipeline `cooccurrences` leaves, by hand; nothing is in the last."""
    scheme = cooccurrence.Scheme(counted.vocab, counted.window)
    keys = (counted.rows.astype(np.int64) << scheme.bits) | counted.columns
    sums = np.round(counted.values.astype(np.float64) * scheme.unit).astype(np.int64)
    folder.mkdir()
    half = len(keys) // 2
    for number, part in enumerate((slice(half), slice(half, None), slice(0))):
        path = folder / shards.PAIRS.format(number, files)
        np.savez(path, keys=keys[part], sums=sums[part])
    told = {"scheme": dataclasses.asdict(scheme), "shards": files}
    (folder / "pairs.json").write_text(json.dumps(told))


def test_a_lost_shard_of_pairs_is_told_from_an_empty_one(tmp_path):
    built = corpus.build([list("abcab")], tmp_path / "c", min_count=1, progress=False)
    counted = cooccurrence.count(built, tmp_path / "m", window=2, progress=False)
    write_pairs(tmp_path / "pairs", counted)
    collected = shards.cooccurrences_from_shards(tmp_path / "pairs", tmp_path / "n")
    same_pairs(collected, counted)
    (tmp_path / "pairs" / shards.PAIRS.format(1, 3)).unlink()
    with pytest.raises(InputError, match=r"pairs-00001-of-00003.npz: no such file"):
        shards.cooccurrences_from_shards(tmp_path / "pairs", tmp_path / "o")
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--help"], "{count,encode,cooccurrences,collect}"),
        (["count", "--help"], "--min-count N"),
        (["encode", "--help"], "The folder that count wrote."),
        (["cooccurrences", "--help"], "--window N"),
        (["collect", "--help"], "(no Beam)"),
    ],
)
def test_help_needs_no_beam(arguments, told, capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    shown = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0 and told in shown


@pytest.mark.skipif(HERE, reason="Beam is installed here")
def test_without_beam(capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(["count", "--input", "x", "--output", "y"])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert "need the extra 'beam': pip install 'jaxemb[beam]'" in told
    assert told.count("\n") == 1


@pytest.mark.slow
def test_small_pieces_equal_one_machine(tmp_path):
    generator = np.random.default_rng(0)
    text = [[f"W{i}" for i in generator.zipf(1.4, 12) % 99] for _ in range(600)]
    lines = [" ".join(sentence) + "\n" for sentence in text]
    (tmp_path / "a.txt").write_text("".join(lines[:400]))
    with gzip.open(tmp_path / "b.txt.gz", "wt") as stream:
        stream.writelines(lines[400:])
    settings = {"min_count": 2, "max_words": 50, "max_sentence": 7, "held_out": 9}
    flags = [f"--{k.replace('_', '-')}={v}" for k, v in settings.items()]
    files = [tmp_path / "a.txt", tmp_path / "b.txt.gz"]
    where = {n: tmp_path / n for n in ("counted", "text", "pairs", "corpus", "matrix")}
    run(
        *("count", "--input", *files, "--output", where["counted"], "--lower"),
        *("--piece-bytes", "5000", *flags),
    )
    run("encode", "--input", where["counted"], "--output", where["text"])
    assert len(list(where["text"].glob("*.array_record"))) > 3
    run(
        *("cooccurrences", "--input", where["text"], "--output", where["pairs"]),
        *("--window", "3", "--one-sided", "--weighting", "flat", "--shards", "4"),
        *("--", "--direct_num_workers=2", "--direct_running_mode=multi_threading"),
    )
    assert len(list(where["pairs"].glob("*.npz"))) == 4
    run("collect", "--input", where["text"], "--output", where["corpus"])
    run("collect", "--input", where["pairs"], "--output", where["matrix"])
    lower = [[word.lower() for word in sentence] for sentence in text]
    built = corpus.build(lower, tmp_path / "c", progress=False, **settings)
    counted = cooccurrence.count(
        built,
        tmp_path / "m",
        window=3,
        weighting="flat",
        symmetric=False,
        progress=False,
    )
    same_corpus(corpus.open_corpus(where["corpus"]), built)
    same_pairs(cooccurrence.open_cooccurrences(where["matrix"]), counted)


@pytest.mark.slow
def test_what_bad_input_gets(tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"fine\nb\xff\n")
    count = ("count", "--output", tmp_path / "out", "--input")
    cases = {
        (*count, tmp_path / "bad.txt"): "bad.txt:2: not valid UTF-8\n",
        (*count, tmp_path / "none*"): "none*: no such file\n",
        (*count, "x", "--held-out", "1"): "held_out is 1; expected 0",
        ("encode", "--input", tmp_path, "--output", "x"): "`count` has not completed",
        ("cooccurrences", "--input", tmp_path, "--output", "x"): "`encode` has not",
    }
    for arguments, told in cases.items():
        done = run(*arguments, check=False)
        assert done.returncode == 2 and told in done.stderr, done.stderr
        assert done.stderr.startswith("jaxemb.data.pipelines: ")
        assert done.stderr.count("\n") == 1
    (tmp_path / "rare.txt").write_text("a b\n")
    done = run(*count, tmp_path / "rare.txt", check=False)
    assert done.returncode == 2 and "no word occurs 5 times" in done.stderr
    done = run(*count, tmp_path / "rare.txt", check=False)
    assert done.returncode == 2 and "out: is not empty" in done.stderr


@pytest.mark.slow
@pytest.mark.data
def test_brown_equals_one_machine(tmp_path):
    found = sources.locate("brown")
    if found is None:
        pytest.skip(sources.missing("brown"))
    text = list(readers.read_brown(found, lower=True))
    lines = "".join(" ".join(sentence) + "\n" for sentence in text)
    (tmp_path / "brown.txt").write_text(lines)
    steps = [tmp_path / name for name in ("brown.txt", "counted", "text", "pairs")]
    commands = ["count", "encode", "cooccurrences"]
    for command, (source, target) in zip(
        commands, itertools.pairwise(steps), strict=True
    ):
        more = ["--piece-bytes", "1000000"] if command == "count" else []
        run(command, "--input", source, "--output", target, *more)
    theirs = shards.corpus_from_shards(tmp_path / "text", tmp_path / "c")
    pairs = shards.cooccurrences_from_shards(tmp_path / "pairs", tmp_path / "m")
    ours = corpus.build(text, tmp_path / "d", progress=False)
    same_corpus(theirs, ours)
    same_pairs(pairs, cooccurrence.count(ours, tmp_path / "n", progress=False))
    assert len(pairs) > 3_000_000
