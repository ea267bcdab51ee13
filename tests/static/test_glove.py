"""GloVe against loops in float64."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import train
from jaxemb.data import cooccurrence
from jaxemb.errors import InputError
from jaxemb.static import descent, glove
from tests.static import corpora

SETTINGS = glove.GloVe(dim=4, epochs=3, block=8, chunk=64, cap=3.0)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return corpora.build(tmp_path_factory.mktemp("corpus") / "c")


@pytest.fixture(scope="module")
def counts(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("counts") / "x"
    return cooccurrence.count(text, folder, window=3, progress=False)


def cost_by_loops(tables, i, j, x, settings):
    error = tables["input"][i] @ tables["output"][j]
    error += tables["input_bias"][i] + tables["output_bias"][j] - np.log(x)
    weight = min(1.0, (x / settings.cap) ** settings.power)
    return 0.5 * weight * error**2, weight * error


def block_by_loops(tables, squares, entries, settings):
    """AdaGrad on a block: gradients before it, squares of the block's others."""
    gradients, total = [], 0.0
    for i, j, x in entries:
        cost, error = cost_by_loops(tables, i, j, x, settings)
        total += cost
        error *= settings.learning_rate
        gradients.append(
            [
                ("input", i, error * tables["output"][j]),
                ("output", j, error * tables["input"][i]),
                ("input_bias", i, error),
                ("output_bias", j, error),
            ]
        )
    flat = [g for entry in gradients for g in entry]
    before = {name: table.copy() for name, table in squares.items()}
    for name, row, g in flat:
        squares[name][row] = squares[name][row] + g**2
    for n, (name, row, g) in enumerate(flat):
        others = before[name][row] + sum(
            (
                h**2
                for m, (other, r, h) in enumerate(flat)
                if m != n and (other, r) == (name, row)
            ),
            start=0 * g,
        )
        tables[name][row] = tables[name][row] - g / np.sqrt(others)
    return total


@pytest.mark.parametrize("block", [1, 8])
def test_the_loss_curve_is_that_of_a_loop(text, counts, block):
    """With blocks of one entry this is GloVe's own update, in the order given."""
    settings = glove.GloVe(dim=4, block=block, chunk=64, cap=3.0)
    entries = glove.Entries(counts, chunk=64, block=block)
    state = glove.init_state(len(text.words), settings)
    tables, squares = (
        {k: np.array(v, np.float64) for k, v in tree.items()}
        for tree in (state.params, state.opt_state)
    )
    step = jax.jit(glove.make_step(settings))
    for number in range(6):
        batch = entries(number)
        state, metrics = step(state, batch)
        total = met = 0
        for b in range(batch["rows"].shape[1]):
            block_entries = [
                (i, j, float(x))
                for i, j, x in zip(
                    batch["rows"][:, b],
                    batch["columns"][:, b],
                    batch["counts"][:, b],
                    strict=True,
                )
                if x > 0
            ]
            total += block_by_loops(tables, squares, block_entries, settings)
            met += len(block_entries)
        loss = metrics["loss"]
        assert float(loss.total) == pytest.approx(total, rel=1e-5)
        assert int(loss.count) == int(metrics["entries"]) == met
    for name, table in tables.items():
        np.testing.assert_allclose(state.params[name], table, atol=1e-5)


def test_an_epoch_meets_every_entry_once_in_an_order_of_its_own(counts):
    entries = glove.Entries(counts, chunk=64, block=8)
    assert entries.num_chunks > 3
    orders = []
    for epoch in range(2):
        met = []
        for place in range(entries.num_chunks):
            batch = entries(epoch * entries.num_chunks + place)
            for b in range(batch["rows"].shape[1]):
                real = batch["counts"][:, b] > 0
                columns = (
                    batch[k][real, b].tolist() for k in ("rows", "columns", "counts")
                )
                met += list(zip(*columns, strict=True))
        wanted = zip(
            counts.rows.tolist(),
            counts.columns.tolist(),
            counts.values.tolist(),
            strict=True,
        )
        assert sorted(met) == sorted(wanted)
        orders.append(met)
    assert orders[0] != orders[1]
    # A block is spread over the rows: few of its entries share one.
    block = glove.Entries(counts, chunk=64, block=8)(0)["rows"][:, 0]
    assert len(set(block.tolist())) > 3


@pytest.mark.parametrize(
    "options",
    [{}, {"mode": "pmap"}, {"shard_rows": ["^params/", "^opt_state/"]}],
    ids=["jit", "pmap", "sharded"],
)
def test_eight_devices_equal_one(text, counts, mesh, options):
    def run(mesh, **options):
        step = train.data_parallel(glove.make_step(SETTINGS), mesh, **options)
        state = step.place(glove.init_state(len(text.words), SETTINGS))
        entries = glove.Entries(counts, chunk=64, block=8)
        for number in range(10):
            state, metrics = step(state, entries(number))
            jax.block_until_ready(metrics)
        return jax.device_get(state.params)

    alone, eight = run(train.make_mesh(jax.devices()[:1])), run(mesh, **options)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), alone, eight)


def test_a_run_leaves_both_tables_and_biases(text, counts, tmp_path):
    tables = glove.train_glove(text, counts, SETTINGS, tmp_path / "run", progress=False)
    shapes = {
        n: getattr(tables, n).shape
        for n in ("input", "output", "input_bias", "output_bias")
    }
    vocab = len(text.words)
    assert shapes == {
        "input": (vocab, 4),
        "output": (vocab, 4),
        "input_bias": (vocab,),
        "output_bias": (vocab,),
    }
    lines = train.read_metrics(tmp_path / "run")
    first = glove.init_state(len(text.words), SETTINGS)
    _, untrained = jax.jit(glove.make_step(SETTINGS))(
        first, glove.Entries(counts, chunk=64, block=8)(0)
    )
    before = untrained["loss"]
    assert lines[-1]["train/loss"] < float(before.total / before.count)
    assert "train/entries" in lines[-1] and "held_out/loss" not in lines[-1]
    np.testing.assert_array_equal(tables.counts, text.counts)


def test_counts_of_another_vocabulary(counts, tmp_path):
    other = corpora.build(tmp_path / "c", [["a", "b"]])
    with pytest.raises(InputError, match="counts of"):
        glove.train_glove(other, counts, SETTINGS, tmp_path / "run", progress=False)


@pytest.mark.parametrize("change", ["window", "weighting", "order"])
def test_other_counts_do_not_go_on(text, counts, tmp_path, change):
    """Counts of as many entries, which differ in their values or settings alone."""
    glove.train_glove(text, counts, SETTINGS, tmp_path / "run", progress=False)
    words = text
    options = {"window": 3, "weighting": "harmonic"}
    if change == "order":  # the same co-occurrences, of a text with other sentences
        sentences = corpora.random_sentences()[::-1]
        words = corpora.build(tmp_path / "c", sentences)
    else:
        options |= {"weighting": {"weighting": "flat"}, "window": {"window": 100}}[
            change
        ]
    other = cooccurrence.count(words, tmp_path / "x", progress=False, **options)
    if change == "weighting":
        assert len(other) == len(counts)
    if change == "order":
        assert other.sha256 == counts.sha256
    wanted = "corpus" if change == "order" else "counts"
    with pytest.raises(InputError, match=f"holds a run with {wanted} = "):
        glove.train_glove(words, other, SETTINGS, tmp_path / "run", progress=False)


def test_pairs_kept_apart_are_not_trained_on_in_either_order(counts):
    every = 4
    apart = glove.kept_apart(counts.rows, counts.columns, every)
    np.testing.assert_array_equal(
        apart, glove.kept_apart(counts.columns, counts.rows, every)
    )
    assert 0.5 / every < apart.mean() < 2 / every
    entries = glove.Entries(counts, chunk=64, block=8, held_out=every)
    met = set()
    for step in range(entries.num_chunks):
        batch = entries(step)
        real = batch["counts"] > 0
        pairs = (batch[k][real].tolist() for k in ("rows", "columns"))
        met |= set(zip(*pairs, strict=True))
    every_pair = zip(counts.rows.tolist(), counts.columns.tolist(), strict=True)
    assert met == set(itertools.compress(every_pair, ~apart))


def test_the_held_out_loss_is_that_of_a_loop(text, counts, tmp_path):
    settings = dataclasses.replace(SETTINGS, held_out=4)
    tables = glove.train_glove(text, counts, settings, tmp_path / "run", progress=False)
    trained = {
        name: np.asarray(getattr(tables, name), np.float64)
        for name in ("input", "output", "input_bias", "output_bias")
    }
    apart = np.flatnonzero(glove.kept_apart(counts.rows, counts.columns, 4))
    costs = [
        cost_by_loops(trained, i, j, float(x), settings)[0]
        for i, j, x in zip(
            counts.rows[apart], counts.columns[apart], counts.values[apart], strict=True
        )
    ]
    assert len(costs) > settings.chunk  # more than fit one batch
    lines = train.read_metrics(tmp_path / "run")
    held_out = [line["held_out/loss"] for line in lines if "held_out/loss" in line]
    assert len(held_out) == settings.epochs
    assert held_out[-1] == pytest.approx(np.mean(costs), rel=1e-5)
    with pytest.raises(InputError, match="held_out is 1; expected 0, or N of 2"):
        glove.GloVe(held_out=1)


def test_a_rate_that_explodes_is_named(text, counts, tmp_path):
    settings = dataclasses.replace(SETTINGS, learning_rate=1e4, epochs=10)
    with pytest.raises(train.Diverged, match="choose a learning rate below 10000"):
        glove.train_glove(text, counts, settings, tmp_path / "run", progress=False)


def test_weights_of_counts():
    rows = {
        "input": jnp.zeros((4, 2)),
        "output": jnp.zeros((4, 2)),
        "input_bias": jnp.zeros(4),
        "output_bias": jnp.zeros(4),
    }
    counts = jnp.array([0.0, 1.0, 50.0, 200.0])
    each = glove.weighted_squares(rows, counts, cap=100.0, power=0.75)
    wanted = 0.5 * np.array([0, 0, 0.5**0.75 * np.log(50) ** 2, np.log(200) ** 2])
    np.testing.assert_allclose(each, wanted, rtol=1e-6)


def test_adagrad_divides_by_what_went_before():
    tables, squares = {"t": jnp.array([[1.0], [2.0]])}, {"t": jnp.ones((2, 1))}
    ids = {"t": jnp.array([1])}
    moved, sums, loss = descent.adagrad(
        tables, squares, ids, lambda rows: jnp.sum(rows["t"] ** 2), 0.5
    )
    np.testing.assert_allclose(moved["t"], [[1.0], [0.0]])  # 2 - 0.5 * 4 / sqrt(1)
    np.testing.assert_allclose(sums["t"], [[1.0], [5.0]])
    assert float(loss) == 4.0


def test_a_huge_gradient_is_divided_by_no_less_than_what_was_there():
    """Its square swallows the sum before it, which float32 cannot give back."""
    tables, squares = {"t": jnp.zeros((1, 1))}, {"t": jnp.ones((1, 1))}
    ids = {"t": jnp.array([0])}
    moved, _, _ = descent.adagrad(
        tables, squares, ids, lambda rows: 1e6 * jnp.sum(rows["t"]), 1.0
    )
    np.testing.assert_allclose(moved["t"], [[-1e6]])
