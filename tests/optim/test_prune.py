"""Pruned weights stay at 0, between refreshes and at them, wherever a step runs."""

import dataclasses
import inspect
import re
import textwrap

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import traverse_util

import jaxemb.nn
from jaxemb import losses, optim, train
from jaxemb.errors import InputError
from jaxemb.optim import prune

RNG = np.random.default_rng(0)
PARAMS = {
    "dense": {
        "kernel": RNG.normal(size=(8, 5)).astype(np.float32),
        "bias": RNG.normal(size=5).astype(np.float32),
    },
    "embed": {"embedding": RNG.normal(size=(10, 4)).astype(np.float32)},
}
PARAMS = jax.tree.map(jnp.asarray, PARAMS)


def gradients(number):
    rng = np.random.default_rng(number)
    draw = lambda x: rng.normal(size=x.shape).astype(np.float32)
    return jax.tree.map(draw, PARAMS)


def run(tx, steps, params=PARAMS, gradient=gradients):
    """All parameters and states from the first on."""
    update = jax.jit(tx.update)
    states = [(params, tx.init(params))]
    for number in range(steps):
        old, state = states[-1]
        updates, state = update(gradient(number), state, old)
        states.append((optax.apply_updates(old, updates), state))
    return states


def test_the_example_of_the_docstring_runs():
    text = inspect.getdoc(prune) or ""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", text + "\n", re.M)
    names: dict = {}
    exec("\n".join(textwrap.dedent(block) for block in blocks), names)
    zeros = np.asarray(names["params"]["kernel"] == 0)
    assert zeros.sum() == int(0.6 * 128)
    assert not np.asarray(names["params"]["bias"] == 0).any()


def test_the_cubic_schedule():
    """Check 2 of the card: its four figures, and the formula."""
    schedule = optim.cubic_sparsity(0.6, steps=10_000)
    found = [float(schedule.share(t)) for t in (0, 1000, 5000, 10_000, 20_000)]
    np.testing.assert_allclose(found, [0, 0.1626, 0.525, 0.6, 0.6], atol=1e-6)
    other = optim.cubic_sparsity(0.9, steps=10, initial=0.2)
    wanted = [0.9 - 0.7 * (1 - t / 10) ** 3 for t in range(11)]
    np.testing.assert_allclose([other.share(t) for t in range(11)], wanted, atol=1e-6)


def dues(schedule, last=40):
    return [t for t in range(1, last + 1) if schedule.due(jnp.asarray(t))]


def test_when_masks_are_chosen_anew():
    assert dues(optim.cubic_sparsity(0.5, 25)) == [10, 20, 25]
    going_on = optim.cubic_sparsity(0.5, 25, refresh_after=True)
    assert dues(going_on) == [10, 20, 25, 30, 40]
    assert dues(optim.one_shot_sparsity(0.5, at=7)) == [7]
    assert dues(optim.periodic_sparsity(0.5, 10, rounds=2)) == [10, 20]
    rounds = optim.periodic_sparsity(0.75, 10, rounds=2)
    shares = [float(rounds.share(jnp.asarray(t))) for t in (9, 10, 20, 99)]
    np.testing.assert_allclose(shares, [0, 0.5, 0.75, 0.75], atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.cubic_sparsity(1.5, 3),
        lambda: optim.cubic_sparsity(0.5, 0),
        lambda: optim.one_shot_sparsity(0.5, at=0),
        lambda: optim.periodic_sparsity(0.5, 0),
    ],
)
def test_schedules_that_cannot_be_are_refused(make):
    with pytest.raises(InputError, match="expected"):
        make()


INNER = {
    "momentum": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adamw": lambda: optax.adamw(0.1, weight_decay=0.5),
    "noise": lambda: optax.chain(optax.sgd(0.1), optax.add_noise(0.1, 0.5, 0)),
}


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
@pytest.mark.parametrize("regrow", [False, True])
def test_removed_weights_are_exactly_zero_and_others_are_not(inner, regrow):
    tx = optim.pruned(inner(), optim.cubic_sparsity(0.6, 4, period=2), regrow=regrow)
    states = run(tx, 9)
    for number, (params, state) in enumerate(states):
        share = 0.6 - 0.6 * (1 - min(number - number % 2, 4) / 4) ** 3
        masks = optim.masks_of(state, params)
        assert set(masks) == {"dense/kernel", "embed/embedding"}
        for path, mask in masks.items():
            owner, name = path.split("/")
            np.testing.assert_array_equal(params[owner][name] != 0, mask)
            assert (~mask).sum() == int(share * mask.size + 1e-6)
    assert (states[-1][0]["dense"]["bias"] != states[0][0]["dense"]["bias"]).all()


def test_weights_that_are_kept_move_as_without_pruning():
    """Where gradients do not depend on weights, so that nothing else differs."""
    plain = run(optax.adam(0.1), 6)[-1][0]
    schedule = optim.one_shot_sparsity(0.5, at=3)
    params, state = run(optim.pruned(optax.adam(0.1), schedule), 6)[-1]
    mask = optim.masks_of(state, params)["dense/kernel"]
    kept = np.asarray(mask)
    ours, theirs = (np.asarray(p["dense"]["kernel"])[kept] for p in (params, plain))
    # Two programs: the compiler may round a product and a sum once or twice.
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(kept, np.asarray(params["dense"]["kernel"]) != 0)


def test_one_shot_takes_the_smallest_of_the_weights_before_the_update():
    schedule = optim.one_shot_sparsity(0.5, at=2)
    dense = run(optax.sgd(0.1), 1)[-1][0]["dense"]["kernel"]
    params, state = run(optim.pruned(optax.sgd(0.1), schedule), 2)[-1]
    limit = np.sort(np.abs(dense).ravel())[19]
    np.testing.assert_array_equal(
        optim.masks_of(state, params)["dense/kernel"], np.abs(dense) > limit
    )


def test_stale_weights_decay_and_nothing_else():
    """Check 3: `W prod(1 - lr_t 0.01)`, bit by bit `W` without decay.

    Removed with the first update, when the optimiser's state is fresh, and never
    chosen anew.
    """
    rate = optim.warmup_linear(0.3, 3, 12)
    share = optim.keep_masks(PARAMS, 0.5)
    for decay in (0.01, 0.0):
        inner = optim.bert_adam(rate, weight_decay=decay)
        tx = optim.pruned(inner, optim.one_shot_sparsity(0.5), regrow=True)
        params, state = run(tx, 10)[-1]
        factor = np.prod([1 - float(rate(number)) * decay for number in range(10)])
        for path, mask in share.items():
            owner, name = path.split("/")
            removed = ~np.asarray(mask)
            found = np.asarray(state.stale[owner][name])
            wanted = np.asarray(PARAMS[owner][name])[removed]
            if decay:
                assert factor < 0.99
                np.testing.assert_allclose(found[removed], wanted * factor, rtol=2e-6)
            else:
                np.testing.assert_array_equal(found[removed], wanted)
            assert (found[~removed] == 0).all()
            assert (np.asarray(params[owner][name])[removed] == 0).all()


def test_the_inner_optimiser_sees_no_gradient_of_removed_weights():
    """Check 3, its first half: the mean of gradients at removed places stays 0."""
    start = optim.delete_information(PARAMS, optim.keep_masks(PARAMS, 0.5))
    params, state = run(optim.keep_zeros(optim.bert_adam(0.1)), 3, start)[-1]
    mean = state.inner[0].mean
    for path, mask in optim.masks_of(state, params).items():
        owner, name = path.split("/")
        moved = np.asarray(mean[owner][name]) != 0
        np.testing.assert_array_equal(moved, mask)


def test_a_removed_weight_returns_with_its_old_value():
    """One weight is removed, the other shrinks below it, and they change places."""
    params = {"kernel": jnp.array([1.0, 0.5])}
    schedule = optim.periodic_sparsity(0.5, 1, refresh_after=True)
    pulls = [[0.0, 0.0], [0.8, 7.0], [0.0, 0.0]]

    def gradient(number):
        return {"kernel": jnp.array(pulls[number])}

    tx = optim.pruned(optax.sgd(1.0), schedule, regrow=True)
    states = run(tx, 3, params, gradient)
    np.testing.assert_array_equal(states[1][0]["kernel"], [1.0, 0.0])
    np.testing.assert_array_equal(states[1][1].stale["kernel"], [0.0, 0.5])
    np.testing.assert_allclose(states[2][0]["kernel"], [0.2, 0.0], atol=1e-6)
    np.testing.assert_array_equal(states[3][0]["kernel"], [0.0, 0.5])
    assert states[3][1].stale["kernel"][0] == pytest.approx(0.2)
    fixed = optim.pruned(optax.sgd(1.0), schedule)
    ends = run(fixed, 3, params, gradient)
    np.testing.assert_allclose(ends[3][0]["kernel"], [0.2, 0.0], atol=1e-6)


def test_the_random_control_removes_exactly_as_many_and_keeps_its_choice():
    schedule = optim.cubic_sparsity(0.5, 4, period=1, refresh_after=True)
    tx = optim.pruned(optax.sgd(0.1), schedule, criterion="random", seed=3)
    states = run(tx, 6)
    grown = [optim.masks_of(s, p)["dense/kernel"] for p, s in states]
    for few, many in zip(grown[:-1], grown[1:], strict=True):
        assert not (~few & many).any()
    assert (~grown[-1]).sum() == 20
    other = optim.keep_masks(PARAMS, 0.5, criterion="random", seed=4)
    assert (other["dense/kernel"] != grown[-1]).any()


def test_wrappers_nest():
    rows = optim.pruned(
        optax.adamw(0.1),
        optim.one_shot_sparsity(0.3, at=1),
        where="embed/.*",
        unit="rows",
    )
    both = optim.pruned(rows, optim.one_shot_sparsity(0.5, at=2), where=".*kernel")
    params, state = run(both, 4)[-1]
    table = np.asarray(params["embed"]["embedding"])
    assert (~table.any(axis=1)).sum() == 3
    assert (table != 0).sum() == 28
    assert (np.asarray(params["dense"]["kernel"]) == 0).sum() == 20
    assert set(optim.masks_of(state, params)) == {"dense/kernel", "embed/embedding"}


def test_a_state_without_masks_is_named():
    with pytest.raises(InputError, match="holds no masks"):
        optim.masks_of(optax.adam(0.1).init(PARAMS), PARAMS)


def test_masks_add_at_most_four_per_cent_of_memory():
    config = jaxemb.nn.TextConfig()  # BERT base
    model = jaxemb.nn.SequenceClassifier(2, config)
    ids = jax.ShapeDtypeStruct((1, 8), jnp.int32)
    mask = jax.ShapeDtypeStruct((1, 8), jnp.bool_)
    params = jax.eval_shape(
        lambda i, m: model.init(jax.random.key(0), i, m, deterministic=True), ids, mask
    )["params"]
    schedule = optim.cubic_sparsity(0.5, 10)
    state = jax.eval_shape(optim.pruned(optax.sgd(0.1), schedule).init, params)

    def size(tree):
        return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))

    assert 0.02 < size(state) / size(params) < 0.04


class Small(nn.Module):
    """A model of a user's own."""

    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(16, 8, name="embed")(ids).mean(axis=1)
        return nn.Dense(4, name="output")(nn.relu(nn.Dense(8, name="inner")(x)))


def small_state(tx):
    variables = Small().init(jax.random.key(0), jnp.zeros((1, 3), jnp.int32))
    return train.State.create(variables, tx, jax.random.key(1))


def small_batch(number):
    rng = np.random.default_rng(number)
    ids = rng.integers(0, 16, (16, 3)).astype(np.int32)
    return {"ids": ids, "labels": ids[:, 0] % 4}


def small_loss(variables, batch, key):
    logits = Small().apply(variables, batch["ids"])
    return losses.softmax_cross_entropy(logits, batch["labels"]).mean(), {}


@pytest.mark.parametrize("mode", ["jit", "pmap", "rows"])
def test_eight_devices_prune_as_one(mode, mesh):
    schedule = optim.cubic_sparsity(0.6, 4, period=2)
    tx = optim.pruned(optax.adamw(0.05), schedule, regrow=mode == "rows")
    plain = train.make_step(small_loss, tx)
    shard = ("embed/embedding",) if mode == "rows" else ()
    spread = train.data_parallel(
        plain, mesh, mode="jit" if mode == "rows" else mode, shard_rows=shard
    )
    one, many = small_state(tx), spread.place(small_state(tx))
    step = jax.jit(plain)
    for number in range(6):
        batch = small_batch(number)
        one, _ = step(one, batch)
        many, _ = spread(many, batch)
    if mode == "rows":
        packed = many.opt_state.masks["embed"]["embedding"]
        assert packed.addressable_shards[0].data.shape == (2, 1)
    for ours, theirs in zip(
        jax.tree.leaves(many.params), jax.tree.leaves(one.params), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    for name in ("inner", "output"):
        zeros = np.asarray(many.params[name]["kernel"]) == 0
        np.testing.assert_array_equal(
            zeros, np.asarray(one.params[name]["kernel"]) == 0
        )
        assert zeros.sum() == int(0.6 * zeros.size + 1e-6)


def test_masks_are_saved_and_restored(tmp_path):
    schedule = optim.cubic_sparsity(0.6, 4, period=2)
    tx = optim.pruned(optax.adamw(0.05), schedule, regrow=True)
    step = train.make_step(small_loss, tx)

    def fit(steps, folder):
        return train.fit(
            small_state(tx), step, small_batch, steps, folder, progress=False
        )

    whole = fit(6, tmp_path / "whole")
    fit(3, tmp_path / "parts")
    again = fit(6, tmp_path / "parts")
    jax.tree.map(
        np.testing.assert_array_equal,
        dataclasses.replace(whole, key=0),
        dataclasses.replace(again, key=0),
    )


def test_deletion_leaves_the_logits_and_lets_weights_return():
    """Check 7: the masked model's logits, and after one step no zero is left."""
    state = small_state(optax.adam(0.1))
    masks = optim.keep_masks(state.params, 0.5)
    deleted = optim.delete_information(state.params, masks)
    batch = small_batch(0)

    @jax.jit
    def logits(params, mask):
        """`M W` inside the model, as TensorFlow's pruning computes."""
        flat = traverse_util.flatten_dict(params, sep="/")
        flat |= {path: flat[path] * own for path, own in mask.items()}
        params = traverse_util.unflatten_dict(flat, sep="/")
        return Small().apply({"params": params}, batch["ids"])

    free = jax.tree.map(jnp.ones_like, masks)
    np.testing.assert_array_equal(logits(deleted, free), logits(state.params, masks))
    assert (logits(deleted, free) != logits(state.params, free)).any()
    assert (np.asarray(deleted["output"]["kernel"]) == 0).sum() == 16
    for tx, filled in ((optax.adam(0.1), True), (optim.keep_zeros(optax.adam(0.1)), 0)):
        start = train.State.create({"params": deleted}, tx, jax.random.key(1))
        after, _ = jax.jit(train.make_step(small_loss, tx))(start, batch)
        zeros = np.asarray(after.params["output"]["kernel"]) == 0
        gradient = jax.jit(jax.grad(lambda p, b: small_loss({"params": p}, b, None)[0]))
        active = np.asarray(gradient(deleted, batch)["output"]["kernel"])
        assert (active != 0).sum() > 20
        if filled:
            np.testing.assert_array_equal(zeros, (active == 0) & zeros)
            assert zeros.sum() < 8
        else:
            np.testing.assert_array_equal(zeros, ~np.asarray(masks["output/kernel"]))
