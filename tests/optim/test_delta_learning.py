"""What theory says of a delta table under group lasso (the checks of the paper's card).

The model everywhere: the mean of a sentence's vectors, then a linear classifier.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxemb import losses, nn, optim

VOCAB, DIM, LENGTH = 12, 4, 6
SEEN = 9  # the words 9, 10 and 11 occur in no sentence


def sentences(seed=0, count=32):
    rng = np.random.default_rng(seed)
    ids = rng.integers(1, SEEN, size=(count, LENGTH))
    labels = rng.integers(0, 2, size=count)
    return jnp.array(ids), jnp.array(labels)


def task_loss(module, head, params, frozen, ids, labels):
    vectors = module.apply({"params": params, "frozen": frozen}, ids)
    logits = jnp.mean(vectors, axis=1) @ head
    return jnp.mean(losses.softmax_cross_entropy(logits, labels))


def start(mode):
    module = nn.DeltaEmbedding(VOCAB, DIM, mode)
    variables = module.init(jax.random.key(0), jnp.zeros((1, 1), int))
    return module, variables.get("params", {}), variables.get("frozen", {})


HEAD = jax.random.normal(jax.random.key(9), (DIM, 2)) * 4


def train(mode, transform, steps, penalty=0.0):
    """The table after every step, the last parameters, and the frozen collection."""
    module, params, frozen = start(mode)
    ids, labels = sentences()

    def objective(params):
        loss = task_loss(module, HEAD, params, frozen, ids, labels)
        if penalty:
            loss += penalty * losses.l21(params["delta"])
        return loss

    def step(carry, _):
        params, state = carry
        gradients = jax.grad(objective)(params)
        updates, state = transform.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
        variables = {"params": params, "frozen": frozen}
        return (params, state), module.apply(variables, method="export")

    run = jax.jit(lambda carry: jax.lax.scan(step, carry, length=steps))
    (params, _), tables = run((params, transform.init(params)))
    return np.asarray(tables), params, frozen


def test_1_prox_converges_to_the_closed_form():
    """Task loss |delta - g|^2 / 2: the optimum is g shrunk by c, row by row."""
    rng = np.random.default_rng(0)
    g = rng.normal(size=(8, 5)) * np.linspace(0.1, 2, 8)[:, None]
    c = 1.5
    transform = optax.chain(optax.sgd(0.5), optim.group_lasso_prox(0.5, c))
    with jax.enable_x64(True):
        delta = jnp.zeros(g.shape)
        state = transform.init(delta)
        update = jax.jit(transform.update)
        for _ in range(60):
            updates, state = update(delta - g, state, delta)
            delta = optax.apply_updates(delta, updates)
        delta = np.asarray(delta)
    assert delta.dtype == np.float64
    norms = np.linalg.norm(g, axis=1, keepdims=True)
    expected = np.maximum(0, 1 - c / norms) * g
    assert 0 < (norms <= c).sum() < 8
    np.testing.assert_allclose(delta, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(delta[norms[:, 0] <= c], 0)


def test_2_the_optimum_satisfies_kkt():
    c = 0.07
    transform = optax.chain(optax.sgd(0.2), optim.group_lasso_prox(0.2, c))
    _, params, frozen = train("delta", transform, 3000)
    module, _, _ = start("delta")
    loss = functools.partial(task_loss, module, HEAD)
    gradient = jax.grad(loss)(params, frozen, *sentences())["delta"]
    delta = np.asarray(params["delta"])
    zero = ~delta.any(axis=1)
    steepness = np.linalg.norm(gradient, axis=1)
    seen = slice(1, SEEN)
    assert zero[seen].any() and not zero[seen].all()
    assert (steepness[seen] > 0).all()  # zero rows too: the task would move them
    assert (steepness[zero] <= c).all()
    for row in np.flatnonzero(~zero):
        expected = -c * delta[row] / np.linalg.norm(delta[row])
        np.testing.assert_allclose(gradient[row], expected, atol=1e-4)


@pytest.mark.parametrize(
    "optimiser",
    [optax.sgd(0.5), optax.adam(0.01), optax.adadelta(1.0, rho=0.95, eps=1e-6)],
    ids=["sgd", "adam", "adadelta"],
)
def test_3_without_a_penalty_delta_is_finetuning(optimiser):
    chained = optax.chain(optimiser, optim.group_lasso_prox(0.5, 0.0))
    delta, _, _ = train("delta", chained, 30)
    finetune, _, _ = train("finetune", optimiser, 30)
    assert np.abs(finetune[-1] - finetune[0]).max() > 1e-3
    np.testing.assert_allclose(delta, finetune, rtol=1e-4, atol=1e-5)


def test_4_an_infinite_penalty_is_the_fixed_table_for_prox_only():
    prox = optax.chain(optax.adam(0.01), optim.group_lasso_prox(0.01, 1e9))
    tables, params, frozen = train("delta", prox, 20)
    assert (params["delta"] == 0).all()
    module, _, fixed = start("fixed")
    np.testing.assert_array_equal(tables[-1], fixed["base"])
    arguments = HEAD, {}, fixed, *sentences()
    delta_module, _, _ = start("delta")
    assert task_loss(delta_module, HEAD, params, frozen, *sentences()) == task_loss(
        module, *arguments
    )
    _, params, _ = train("delta", optax.adam(0.01), 20, penalty=1e3)
    assert jnp.any(params["delta"][1:SEEN] != 0, axis=1).all()


def test_5_the_first_step_from_zero_is_finite():
    _, params, _ = train("delta", optax.adam(0.01), 1, penalty=1e-2)
    assert jnp.isfinite(params["delta"]).all() and (params["delta"] != 0).any()


@pytest.mark.parametrize("penalty", [0.0, 1e-3])
def test_6_unseen_rows_and_the_base_do_not_move(penalty):
    transform = optax.chain(optax.adam(0.01), optim.group_lasso_prox(0.01, 1e-3))
    _, params, frozen = train("delta", transform, 30, penalty)
    delta = np.asarray(params["delta"])
    np.testing.assert_array_equal(delta[SEEN:], 0)
    np.testing.assert_array_equal(delta[0], 0)  # padding
    assert delta[1:SEEN].any(axis=1).all()
    np.testing.assert_array_equal(frozen["base"], start("delta")[2]["base"])


def planted_world():
    """500 words with a polarity; the vectors of 10 of them do not show it."""
    rng = np.random.default_rng(0)
    words, dim = 500, 8
    planted = rng.choice(words, size=10, replace=False)
    polarity = rng.choice([-1.0, 1.0], size=words)
    base = rng.normal(size=(words, dim)) * 0.3
    base[:, 0] = polarity
    base[planted, 0] = 0
    ids = rng.integers(0, words, size=(4000, 11))
    labels = (polarity[ids].sum(axis=1) > 0).astype(np.int32)
    return base.astype(np.float32), jnp.array(ids), jnp.array(labels), planted


def test_9_the_largest_deltas_are_the_planted_words():
    base, ids, labels, planted = planted_world()
    module = nn.DeltaEmbedding(
        *base.shape, "delta", base_init=nn.table_init(base), padding_id=None
    )
    variables = module.init(jax.random.key(0), ids[:1])
    counts = (
        jnp.zeros((len(ids), len(base))).at[jnp.arange(len(ids))[:, None], ids].add(1)
    )

    def logits(params):
        # The mean of the looked-up vectors, as one matmul: 30 times faster to train.
        collections = {"params": params["embed"], "frozen": variables["frozen"]}
        table = module.apply(collections, method="export")
        return counts @ (table @ params["head"]) / ids.shape[1]

    def loss(params):
        return jnp.mean(losses.softmax_cross_entropy(logits(params), labels))

    first = {"embed": variables["params"], "head": jnp.zeros((base.shape[1], 2))}
    looked_up = jnp.mean(module.apply(variables, ids[:5]), axis=1) @ (
        jnp.ones((base.shape[1], 2))
    )
    np.testing.assert_allclose(
        logits({**first, "head": jnp.ones_like(first["head"])})[:5],
        looked_up,
        atol=1e-5,
    )

    @jax.jit
    @jax.vmap
    def train_with(c):
        transform = optax.chain(
            optax.sgd(2.0), optim.group_lasso_prox(2.0, c, where="embed/delta")
        )

        def step(carry, _):
            params, state = carry
            updates, state = transform.update(jax.grad(loss)(params), state, params)
            return (optax.apply_updates(params, updates), state), None

        (params, _), _ = jax.lax.scan(step, (first, transform.init(first)), length=300)
        return jnp.linalg.norm(params["embed"]["delta"], axis=1)

    norms = np.asarray(train_with(jnp.array([3e-4, 1e-3, 2e-3, 4e-3, 1e-1])))
    moved = (norms > 0).sum(axis=1)
    assert (np.diff(moved) <= 0).all() and moved[0] > 100 and moved[-1] == 0
    for row in norms[:2]:
        assert (row > 0).sum() > 10
        assert len(np.intersect1d(np.argsort(row)[-10:], planted)) >= 9
