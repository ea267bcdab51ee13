import json
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb.analysis import checkpoint, delta
from jaxemb.errors import InputError
from jaxemb.train import checkpoints


def test_parameters_are_described_as_numpy_would():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(5, 3)).astype(np.float32)
    table[[1, 4]] = 0
    table[0, 0] = -9
    tree = {
        "embed": {"table": table, "count": np.int32(7)},
        "layers": [{"bias": jnp.ones(4, jnp.bfloat16)}, None],
        "empty": np.zeros((0, 3), np.float32),
        "thin": np.zeros((5, 0), np.float32),
    }
    found = {p.path: p for p in checkpoint.parameters(tree)}
    assert list(found) == [
        "embed/table",
        "embed/count",
        "layers/0/bias",
        "empty",
        "thin",
    ]
    first = found["embed/table"]
    assert (first.shape, first.dtype, first.count) == ((5, 3), "float32", 15)
    assert first.norm == pytest.approx(np.linalg.norm(table), rel=1e-6)
    assert first.largest == 9 and first.zero_rows == 2
    assert first.sparsity == pytest.approx(6 / 15)
    bias = found["layers/0/bias"]
    assert (bias.dtype, bias.norm, bias.zero_rows) == ("bfloat16", 2.0, None)
    assert found["embed/count"].shape == () and found["embed/count"].largest == 7
    for name, shape in (("empty", (0, 3)), ("thin", (5, 0))):
        assert (found[name].shape, found[name].count) == (shape, 0)
        assert (found[name].zero_rows, found[name].norm) == (0, 0.0)
    assert found["embed/count"].cells()["shape"] == "scalar"
    assert first.cells()["shape"] == "5×3" and first.cells()["zeros"] == "40.0%"
    assert first.as_dict()["shape"] == [5, 3]


def test_nan_shows():
    [found] = checkpoint.parameters({"x": np.array([1.0, np.nan])})
    assert np.isnan(found.norm) and np.isnan(found.largest)


def test_a_sharded_checkpoint_is_read_without_the_models_code(run):
    expected = np.load(run / "expected.npz")
    tree = checkpoints.load_params(run / "glove" / "delta" / "fold-0")
    found = {p.path: p for p in checkpoint.parameters(tree)}
    kernel = found["params/head/kernel"]
    assert kernel.norm == pytest.approx(np.linalg.norm(expected["kernel"]))
    assert found["params/embed/delta"].zero_rows == 5
    assert "opt_state/mu" not in found


def test_neighbours_in_the_sum_of_two_tables(run):
    place = checkpoints.find(run / "glove" / "delta" / "fold-0")
    words = checkpoint.find_words(place)
    assert words is not None and words[5] == "a & b"
    tree = checkpoints.load_params(place)
    both = "frozen/embed/base+params/embed/delta"
    named = checkpoint.embedding_table(tree, words, both)
    expected = np.load(run / "expected.npz")
    np.testing.assert_allclose(named.matrix, expected["base"] + expected["delta"])
    assert len(delta.nearest(named.matrix, named.words, "not", 3)) == 3
    assert checkpoint.embedding_table(tree, words).path == both
    third = {**tree, "other": {"embed": {"table": expected["base"]}}}
    with pytest.raises(InputError, match="choose one of params/embed/delta, frozen"):
        checkpoint.embedding_table(third, words)
    with pytest.raises(InputError, match="there is no embed; expected one of"):
        checkpoint.embedding_table(tree, words, "embed")
    with pytest.raises(InputError, match="kernel is 8x3, which is not a row for each"):
        checkpoint.embedding_table(tree, words, "params/head/kernel")
    with pytest.raises(InputError, match="0 arrays have a row for each of the 2"):
        checkpoint.embedding_table(tree, words[:2])


def test_the_only_table_is_found_and_of_seeds_the_first():
    table = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    tree = {"embed": table, "head": np.zeros((4, 2))}
    named = checkpoint.embedding_table(tree, ("a", "b", "c"))
    assert named.path == "embed"
    np.testing.assert_array_equal(named.matrix, table[0])
    uneven = {"a": np.zeros((3, 2)), "b": np.zeros((3, 4))}
    with pytest.raises(InputError, match="unequal shape"):
        checkpoint.embedding_table(uneven, ("a", "b", "c"), "a+b")


@pytest.mark.parametrize("other", ["params/head/delta", "params/embed/table", "delta"])
def test_only_a_base_and_its_own_delta_are_added_unasked(other):
    tree = {"frozen/embed/base": np.zeros((3, 2)), other: np.ones((3, 2))}
    with pytest.raises(InputError, match="2 arrays have a row for each"):
        checkpoint.embedding_table(tree, ("a", "b", "c"))


@pytest.mark.parametrize("place", [".", "checkpoints", "checkpoints/50", "../fold-0"])
def test_words_are_found_above_a_relative_path(run, monkeypatch, place):
    monkeypatch.chdir(run / "glove" / "delta" / "fold-0")
    words = checkpoint.find_words(place)
    assert words is not None and words[1] == "not"


def test_words_that_are_not_text_are_refused(tmp_path):
    (tmp_path / "words.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(InputError, match=r"words\.txt: not valid UTF-8"):
        checkpoint.find_words(tmp_path)


def test_a_damaged_run_does_not_hide_the_others(run):
    (run / "glove/delta/fold-0/metrics.jsonl").write_text('{"step": 1}\nnonsense\n')
    (run / "glove/delta/fold-1/metrics.jsonl").write_bytes(b"\xff\n")
    lines = '{"step": 3, "loss": null}\n{"step": 4, "loss": 0.12345678}\n'
    lines += '{"step": 5, "accuracy": null}\n'
    (run / "glove/fixed/fold-0/metrics.jsonl").write_text(lines)
    found = {r.path: r for r in checkpoint.runs(run)}
    assert len(found) == 4
    first = found["glove/delta/fold-0"]
    assert first.problem is not None and first.checkpoint == "50"
    assert first.problem.count("metrics.jsonl") == 1
    assert first.problem.endswith("metrics.jsonl:2: expected a JSON object with a step")
    assert first.cells()["last"] == "damaged"
    assert "metrics.jsonl" in (found["glove/delta/fold-1"].problem or "")
    last = found["glove/fixed/fold-0"]
    assert last.cells()["last"] == "loss 0.1235  accuracy None" and not last.problem


def test_runs_are_listed_with_their_last_metrics(run):
    found = {r.path: r for r in checkpoint.runs(run)}
    assert set(found) == {
        f"glove/{a}/fold-{f}" for a in ("delta", "fixed") for f in (0, 1)
    }
    first = found["glove/delta/fold-0"]
    assert (first.step, first.checkpoint) == (50, "50")
    assert first.last["valid/accuracy"] == pytest.approx(0.8)
    assert found["glove/fixed/fold-1"].checkpoint is None
    newest = checkpoint.newest(run)
    assert newest is not None and str(newest).endswith("delta/fold-0")
    assert checkpoint.newest(run / "glove" / "fixed") is None


def test_one_device_reads_what_eight_wrote(run):
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    code = (
        "import jax\nfrom jaxemb import cli\nassert jax.device_count() == 1\n"
        f"cli.main(['inspect', {str(run / 'glove' / 'delta' / 'fold-0')!r}, '--json'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = {row["path"]: row for row in map(json.loads, done.stdout.splitlines())}
    expected = np.linalg.norm(np.load(run / "expected.npz")["kernel"])
    assert rows["params/head/kernel"]["norm"] == pytest.approx(expected)
    assert done.stderr == ""
