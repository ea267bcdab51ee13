"""The paper's systems as the experiment assembles them, on every kind of device."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from experiments.delta_embedding import model, task
from experiments.delta_embedding.config import Config, Model, arm
from jaxemb import nn, optim, train
from jaxemb.analysis import cost
from tests.delta_embedding.shared import DIM, VOCAB, WORDS, batch, run

KINDS = {
    "cnn": Config(model=Model(kind="cnn", maps=4), learning_rate=1.0),
    "lstm": Config(
        model=Model(kind="lstm", hidden=4, norm_limit=None),
        optimizer="adam",
        learning_rate=1e-2,
    ),
    "esim": Config(
        task="planted-pairs",
        model=Model(kind="esim", hidden=4, norm_limit=None),
        optimizer="adam",
        learning_rate=1e-2,
    ),
    "bidaf": Config(
        task="planted-questions",
        model=Model(kind="bidaf", hidden=4, norm_limit=None, ema=0.9),
        learning_rate=0.5,
    ),
}


def system(kind, name, **changes):
    config = KINDS[kind]
    config = dataclasses.replace(
        config, model=dataclasses.replace(config.model, **changes)
    )
    example = task.Task(WORDS, {}, (), classes=3 if kind == "esim" else 2)
    module = model.build(config, arm(name), example, DIM)
    table = np.random.default_rng(0).normal(size=(VOCAB, DIM)).astype(np.float32)
    table[0] = 0
    tx = model.optimizer(config, arm(name), 100)
    init_key, train_key = jax.random.split(jax.random.key(0))
    state = train.State.create(
        model.initializer(module, table)(init_key), tx, train_key
    )
    return module, train.make_step(model.loss_fn(module), tx), state


@pytest.mark.parametrize(
    ("kind", "name", "mode"),
    [
        ("cnn", "delta-1e-4", "jit"),
        ("cnn", "delta-1e-4", "pmap"),
        ("lstm", "prox-1e-4", "jit"),
        ("bidaf", "delta-1e-4", "jit"),
    ],
)
def test_eight_devices_equal_one(mesh, kind, name, mode):
    _, step, state = system(kind, name)
    steps = 3 if kind == "bidaf" else 10  # one after the other on virtual devices
    alone, alone_metrics = run(
        step, state, train.make_mesh(jax.devices()[:1]), steps=steps, kind=kind
    )
    spread, spread_metrics = run(step, state, mesh, mode, steps, kind)
    for one, other in [
        (alone.params, spread.params),
        (alone_metrics, spread_metrics),
        *zip(
            *(optim.all_ema_params(s.opt_state) for s in (alone, spread)), strict=True
        ),
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
        ("esim", "delta-1e-4"),
        ("bidaf", "prox-1e-4"),
    ],
)
def test_every_step_lowers_for_accelerators(kind, name):
    _, step, state = system(kind, name)
    step = train.data_parallel(step, train.make_mesh(jax.devices()[:1]))
    lowered = step.lower(
        step.place(state), batch(0, kind=kind), lowering_platforms=("tpu", "cuda")
    )
    assert "stablehlo.dot_general" in lowered.as_text()


@pytest.mark.parametrize("kind", ["cnn", "lstm"])
def test_only_gradients_and_metrics_travel(mesh, kind):
    _, step, state = system(kind, "delta-1e-4")
    step = train.data_parallel(step, mesh)
    state = step.place(state)
    text = step.lower(state, batch(0)).compile().as_text()
    gradients = sorted(sorted(leaf.shape) for leaf in jax.tree.leaves(state.params))
    found = cost.collectives(text)
    assert {one.kind for one in found} == {"all-reduce"}
    moved = [sorted(shape) for one in found for shape in one.shapes]
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
        tokens = {"tokens": jnp.asarray(batch(0)["tokens"])}
        logits[name] = module.apply(state.variables, tokens, deterministic=True)
    np.testing.assert_array_equal(logits["fixed"], logits["finetune"])
    np.testing.assert_array_equal(logits["fixed"], logits["delta-1e-4"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("cnn", "delta-1e-4"),
        ("lstm", "prox-1e-4"),
        ("esim", "prox-1e-4"),
        ("bidaf", "delta-1e-4"),
    ],
)
def test_the_base_table_and_unseen_rows_stay_as_they_were(kind, name):
    """Check 6 of the card."""
    module, step, state = system(kind, name)
    step = jax.jit(step)
    new, seen = state, {0}
    for number in range(3):
        examples = batch(number, kind=kind)
        for text in module.texts:
            examples[text] = np.minimum(examples[text], 20)
            seen |= set(examples[text].flat)
        new, _ = step(new, examples)
    base = new.frozen["frozen"]["embed"]["base"]
    np.testing.assert_array_equal(base, state.frozen["frozen"]["embed"]["base"])
    delta = np.asarray(new.params["embed"]["delta"])
    unseen = sorted(set(range(VOCAB)) - seen)
    assert unseen
    assert not delta[unseen].any()
    assert not delta[0].any()
    moved = np.abs(delta[sorted(seen - {0})]).max(axis=1)  # nan where any is
    assert np.isfinite(moved).all() and (moved > 0).all()


def trained(kind, name, steps=5):
    """The module and its state after some steps, and the metrics of the last one."""
    module, step, state = system(kind, name)
    step = jax.jit(step)
    for number in range(steps):
        state, metrics = step(state, batch(number, kind=kind))
    return module, state, metrics


def beside_the_table(state):
    return {name: of for name, of in state.params.items() if name != "embed"}


@pytest.mark.parametrize("kind", ["cnn", "lstm"])  # Adadelta, Adam
def test_a_penalty_of_no_weight_equals_finetuning(kind):
    """Check 3 of the card, in the penalty's form and with a real host."""
    _, delta, ours = trained(kind, "delta-0")
    _, finetune, theirs = trained(kind, "finetune")
    table = finetune.params["embed"]["table"]
    assert np.abs(np.asarray(delta.params["embed"]["delta"])).max() > 1e-3
    tuned_by_delta = nn.effective_table(delta.params, delta.frozen["frozen"])
    np.testing.assert_allclose(tuned_by_delta, table, rtol=1e-4, atol=1e-5)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
        *map(beside_the_table, (delta, finetune)),
    )
    for key in ("task_loss", "accuracy"):
        np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-4)


@pytest.mark.parametrize("weight", ["1e30", "inf"])
def test_an_infinite_weight_with_prox_equals_fixed(weight):
    """Check 4 of the card: the delta stays at 0 and the numbers are those of fixed."""
    module, state, metrics = trained("cnn", "fixed")
    prox_module, prox_state, prox_metrics = trained("cnn", f"prox-{weight}")
    assert not np.asarray(prox_state.params["embed"]["delta"]).any()
    for key in ("loss", "accuracy"):
        assert metrics[key] == prox_metrics[key]
    jax.tree.map(
        np.testing.assert_array_equal, *map(beside_the_table, (state, prox_state))
    )
    dev = {"tokens": jnp.asarray(batch(99)["tokens"])}  # logits decide its metrics
    np.testing.assert_array_equal(
        module.apply(state.variables, dev, deterministic=True),
        prox_module.apply(prox_state.variables, dev, deterministic=True),
    )


def test_a_rate_that_decays_ends_at_zero():
    config = dataclasses.replace(
        KINDS["lstm"], optimizer="sgd", decay="linear", learning_rate=1.0
    )
    params = {"embed": {"delta": jnp.full((1, 2), 2.0)}}
    gradient = jax.tree.map(jnp.ones_like, params)
    for name in ("delta-1", "prox-1"):
        tx = model.optimizer(config, arm(name), 4)
        state = tx.init(params)
        moved = []
        for _ in range(5):
            updates, state = tx.update(gradient, state, params)
            moved.append(float(-updates["embed"]["delta"][0, 0]))
        rates = np.array([1, 0.75, 0.5, 0.25, 0])
        # By prox also: the row 2 - rate is shortened by rate times c.
        shorter = rates / np.sqrt(2) if name == "prox-1" else 0
        np.testing.assert_allclose(moved, rates + shorter, atol=1e-6)


@pytest.mark.parametrize(("kind", "eps"), [("cnn", 1e-6), ("bidaf", 1e-8)])
def test_adadelta_is_that_of_each_program(kind, eps):
    """Zeiler's algorithm 1, by hand."""
    bare = dataclasses.replace(KINDS[kind].model, norm_limit=None, ema=None)
    config = dataclasses.replace(KINDS[kind], model=bare)
    params = {"embed": {"delta": jnp.zeros((1, 3))}}
    tx = model.optimizer(config, arm("delta-0"), 100)
    state, rng = tx.init(params), np.random.default_rng(0)
    of_gradients, of_steps = np.zeros((2, 1, 3))
    for _ in range(4):
        gradient = 1e-3 * rng.normal(size=(1, 3))
        of_gradients = 0.95 * of_gradients + 0.05 * gradient**2
        wanted = -np.sqrt(of_steps + eps) / np.sqrt(of_gradients + eps) * gradient
        of_steps = 0.95 * of_steps + 0.05 * wanted**2
        tree = {"embed": {"delta": jnp.asarray(gradient, jnp.float32)}}
        updates, state = tx.update(tree, state, params)
        np.testing.assert_allclose(
            updates["embed"]["delta"], config.learning_rate * wanted, rtol=1e-4
        )
