"""The paper's systems as the experiment assembles them, on every kind of device."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from experiments.delta_embedding import config as presets
from experiments.delta_embedding import data, model
from experiments.delta_embedding.config import Config, Model, arm
from jaxemb import train
from jaxemb.data import sources
from jaxemb.errors import InputError

VOCAB, DIM, BATCH = 40, 8, 16
KINDS = {
    "cnn": Config(model=Model(kind="cnn", maps=4), learning_rate=1.0),
    "lstm": Config(
        model=Model(kind="lstm", hidden=4, norm_limit=None),
        optimizer="adam",
        learning_rate=1e-2,
    ),
}


def system(kind, name, **changes):
    config = KINDS[kind]
    config = dataclasses.replace(
        config, model=dataclasses.replace(config.model, **changes)
    )
    module = model.Sentiment(arm(name), config.model, 2, VOCAB, DIM)
    table = np.random.default_rng(0).normal(size=(VOCAB, DIM)).astype(np.float32)
    table[0] = 0
    tx = model.optimizer(config, arm(name))
    init_key, train_key = jax.random.split(jax.random.key(0))
    state = train.State.create(
        model.initializer(module, table)(init_key), tx, train_key
    )
    return module, train.make_step(model.loss_fn(module), tx), state


def batch(number, size=BATCH):
    rng = np.random.default_rng(number)
    tokens = rng.integers(1, VOCAB, (size, 12)).astype(np.int32)
    tokens *= np.arange(12) < rng.integers(3, 12, (size, 1))  # right padding
    return {"tokens": tokens, "labels": rng.integers(0, 2, size).astype(np.int32)}


def run(step, state, mesh, mode="jit", steps=10):
    step = train.data_parallel(step, mesh, mode=mode)
    state = step.place(state)
    for number in range(steps):
        state, metrics = step(state, batch(number))
        jax.block_until_ready(metrics)
    return jax.device_get((state, metrics))


@pytest.mark.parametrize(
    ("kind", "name", "mode"),
    [
        ("cnn", "delta-1e-4", "jit"),
        ("cnn", "delta-1e-4", "pmap"),
        ("lstm", "prox-1e-4", "jit"),
    ],
)
def test_eight_devices_equal_one(mesh, kind, name, mode):
    _, step, state = system(kind, name)
    alone, alone_metrics = run(step, state, train.make_mesh(jax.devices()[:1]))
    spread, spread_metrics = run(step, state, mesh, mode)
    for one, other in [
        (alone.params, spread.params),
        (alone_metrics, spread_metrics),
    ]:
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=0), one, other
        )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("cnn", "finetune"),
        ("cnn", "delta-1e-4"),
        ("lstm", "fixed"),
        ("lstm", "prox-1e-4"),
    ],
)
def test_every_step_lowers_for_accelerators(kind, name):
    _, step, state = system(kind, name)
    step = train.data_parallel(step, train.make_mesh(jax.devices()[:1]))
    lowered = step.lower(
        step.place(state), batch(0), lowering_platforms=("tpu", "cuda")
    )
    assert "stablehlo.dot_general" in lowered.as_text()


COLLECTIVES = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"


@pytest.mark.parametrize("kind", ["cnn", "lstm"])
def test_only_gradients_and_metrics_travel(mesh, kind):
    _, step, state = system(kind, "delta-1e-4")
    step = train.data_parallel(step, mesh)
    state = step.place(state)
    text = step.lower(state, batch(0)).compile().as_text()
    gradients = sorted(sorted(leaf.shape) for leaf in jax.tree.leaves(state.params))
    moved = []
    for result, kind_moved in re.findall(
        rf"= (.*?) ({COLLECTIVES})(?:-start)?\(", text
    ):
        assert kind_moved == "all-reduce"
        for dims in re.findall(r"[a-z0-9]+\[([\d,]*)\]", result):
            moved.append(sorted(map(int, dims.split(","))) if dims else [])
    assert sorted(shape for shape in moved if shape) == gradients
    assert moved.count([]) <= 3  # loss, task loss, accuracy


@pytest.mark.parametrize("kind", ["cnn", "lstm"])
def test_flops_fall_with_the_number_of_devices(kind):
    """Forward and backward, whose cost the examples share; the update is on each."""
    module, _, state = system(kind, "fixed")
    loss = model.loss_fn(module)

    def flops(count):
        mesh = train.make_mesh(jax.devices()[:count])
        whole = NamedSharding(mesh, PartitionSpec())
        gradient = jax.jit(
            jax.grad(lambda p, b: loss({**state.variables, "params": p}, b, KEY)[0]),
            in_shardings=(whole, NamedSharding(mesh, PartitionSpec("data"))),
            out_shardings=whole,
        )
        lowered = gradient.lower(state.params, batch(0, 512))
        return lowered.compile().cost_analysis()["flops"]

    assert 0.9 < 8 * flops(8) / flops(1) < 1.1


KEY = jax.random.key(0)


@pytest.mark.parametrize("kind", ["cnn", "lstm"])
def test_bfloat16_trains_in_float32_parameters(kind):
    _, step, state = system(kind, "delta-1e-4", dtype="bfloat16")
    exact = jax.jit(system(kind, "delta-1e-4")[1])(state, batch(0))[1]["loss"]
    state, metrics = jax.jit(step)(state, batch(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(state.params)} == {
        jnp.dtype("float32")
    }
    assert metrics["loss"].dtype == jnp.float32
    np.testing.assert_allclose(metrics["loss"], exact, rtol=0.05)


def test_arms_start_from_the_same_function():
    logits = {}
    for name in ("fixed", "finetune", "delta-1e-4"):
        module, _, state = system("cnn", name)
        tokens = jnp.asarray(batch(0)["tokens"])
        logits[name] = module.apply(state.variables, tokens, deterministic=True)
    np.testing.assert_array_equal(logits["fixed"], logits["finetune"])
    np.testing.assert_array_equal(logits["fixed"], logits["delta-1e-4"])


def test_the_base_table_and_unseen_rows_stay_as_they_were():
    _, step, state = system("cnn", "delta-1e-4")
    step = jax.jit(step)
    new, seen = state, {0}
    for number in range(3):
        examples = batch(number)
        examples["tokens"] = np.minimum(examples["tokens"], 20)
        seen |= set(examples["tokens"].flat)
        new, _ = step(new, examples)
    base = new.frozen["frozen"]["embed"]["base"]
    np.testing.assert_array_equal(base, state.frozen["frozen"]["embed"]["base"])
    delta = np.asarray(new.params["embed"]["delta"])
    unseen = sorted(set(range(VOCAB)) - seen)
    assert unseen
    assert not delta[unseen].any()
    assert not delta[0].any()
    assert delta[sorted(seen - {0})].any(axis=1).all()


def test_an_infinite_weight_with_prox_equals_fixed():
    """Check 4 of the card: the delta stays at 0 and the numbers are those of fixed."""
    runs = {}
    for name in ("fixed", "prox-1e30"):
        _, step, state = system("cnn", name)
        for number in range(5):
            state, metrics = jax.jit(step)(state, batch(number))
        runs[name] = state, metrics
    assert not np.asarray(runs["prox-1e30"][0].params["embed"]["delta"]).any()
    for key in ("loss", "accuracy"):
        assert runs["fixed"][1][key] == runs["prox-1e30"][1][key]


def test_folds_part_the_examples():
    tests = [set(data.fold(103, 10, i)[2]) for i in range(10)]
    assert set.union(*tests) == set(range(103))
    assert sum(map(len, tests)) == 103
    for index in range(10):
        train_rows, dev, test = map(set, data.fold(103, 10, index))
        assert train_rows | dev | test == set(range(103))
        assert len(train_rows) + len(dev) + len(test) == 103
        assert len(dev) == (103 - len(test)) // 10


@pytest.mark.parametrize("name", ["", "delta", "delta-", "prox--1", "l2-3", "delta-x"])
def test_unknown_arms_are_named(name):
    with pytest.raises(InputError, match=f"--arms {name}: expected"):
        arm(name)


@pytest.mark.data
def test_kmr_has_kaggles_phrases_split_by_sentence():
    if sources.locate("sst-trees") is None:
        pytest.skip("needs sst_trees/{train,dev,test}.txt in $JAXEMB_DATA")
    task = data.load(presets.KMR)
    train_rows, dev, test = task.splits
    assert abs(len(train_rows) - 156_060) / 156_060 < 0.01  # Kaggle's training phrases
    texts = {}
    for name, rows in (("train", train_rows), ("dev", dev), ("test", test)):
        offsets = task.tokens.offsets
        texts[name] = {
            task.tokens.values[offsets[r] : offsets[r + 1]].tobytes() for r in rows
        }
        assert len(texts[name]) == len(rows)
    assert not texts["train"] & (texts["dev"] | texts["test"])
    assert set(np.unique(task.labels)) == set(range(5))
