"""Meta-embeddings against numpy written out, SVD, torch; what their card promises."""

import functools

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import optimize, stats

from jaxemb import losses, nn
from jaxemb.errors import InputError
from jaxemb.nn import meta

WIDTHS = (3, 2, 4)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 9)).astype(np.float32)
KNOWN = np.array(
    [[1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 1]], bool
)
COUNTED = np.repeat(KNOWN, WIDTHS, axis=1)
CLEAN = np.where(COUNTED, X, 0)
PARTS = [CLEAN[:, :3], CLEAN[:, 3:5], CLEAN[:, 5:]]


def apply(module, *inputs, seed=0, **kwargs):
    inputs = tuple(jnp.asarray(x) for x in inputs)
    variables = module.init(jax.random.key(seed), *inputs, **kwargs)
    params = jax.tree.map(np.asarray, variables["params"])
    return params, module.apply(variables, *inputs, **kwargs)


def dense(params, x):
    return x @ params["kernel"] + params["bias"]


def unit(x):
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(norm == 0, 1, norm)


close = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)


def test_aeme_is_one_autoencoder_of_all_sources():
    p, found = apply(nn.AEME(WIDTHS, hidden=(5,)), X, KNOWN, deterministic=True)
    code = np.tanh(dense(p["encode_0"], CLEAN))
    close(found.code, code)
    close(found.output, dense(p["decode"], code))
    np.testing.assert_array_equal(found.target, CLEAN)
    np.testing.assert_array_equal(found.counted, COUNTED)


def test_aeme_of_two_hidden_layers_mirrors_them():
    p, found = apply(nn.AEME(WIDTHS, hidden=(7, 5)), X, KNOWN, deterministic=True)
    assert p["inner_0"]["kernel"].shape == (5, 7)
    code = np.tanh(dense(p["encode_1"], np.tanh(dense(p["encode_0"], CLEAN))))
    close(found.code, code)
    close(found.output, dense(p["decode"], np.tanh(dense(p["inner_0"], code))))


@pytest.mark.parametrize("kind", [nn.DAEME, nn.CAEME, nn.AAEME])
def test_autoencoders_of_each_source(kind):
    module = kind(WIDTHS, hidden=5)
    p, found = apply(module, X, KNOWN, deterministic=True)
    codes = [
        np.tanh(dense(p[f"encode_{i}"], part)) * KNOWN[:, i : i + 1]
        for i, part in enumerate(PARTS)
    ]
    agreement = np.zeros(6)
    if kind is nn.DAEME:
        read, code = codes, np.hstack(codes)
        for w in range(6):
            for i in range(3):
                for j in range(i):
                    if KNOWN[w, i] and KNOWN[w, j]:
                        agreement[w] += np.sum((codes[i][w] - codes[j][w]) ** 2)
    else:
        code = unit(np.hstack(codes) if kind is nn.CAEME else sum(codes))
        read = [code] * 3
    outputs = [dense(p[f"decode_{i}"], c) for i, c in enumerate(read)]
    close(found.code, code)
    close(found.output, np.hstack(outputs))
    close(found.agreement, agreement)
    loss = meta.reconstruction_loss(found, "l1", module.parts)
    expected = np.sum(np.abs(np.hstack(outputs) - CLEAN) * COUNTED, axis=1) + agreement
    close(loss, expected)


@pytest.mark.parametrize("loss", ["l2", "cosine", "kl"])
def test_sources_have_weights(loss):
    """Σ λ_i L_i plus the agreement, which has none; all 1 unless given."""
    module = nn.DAEME(WIDTHS, hidden=4)
    _, found = apply(module, X, KNOWN, deterministic=True)
    weights, apart, place = (0.5, 2.0, 0.0), 0.0, 0
    for weight, width in zip(weights, WIDTHS, strict=True):
        columns = slice(place, place + width)
        apart += weight * losses.reconstruction(
            found.target[:, columns],
            found.output[:, columns],
            loss,
            found.counted[:, columns],
        )
        place += width
    ours = meta.reconstruction_loss(found, loss, module.parts, weights)
    close(ours, apart + found.agreement)
    plain = meta.reconstruction_loss(found, loss, module.parts)
    close(plain, meta.reconstruction_loss(found, loss, module.parts, (1.0, 1.0, 1.0)))
    with pytest.raises(InputError, match="2 weights; expected one for each of 3 parts"):
        meta.reconstruction_loss(found, loss, module.parts, (1.0, 1.0))


def test_tae_predicts_a_source_from_the_others():
    p, found = apply(nn.TAE(WIDTHS, 1, hidden=5), X, KNOWN, deterministic=True)
    hidden = np.tanh(dense(p["encode_0"], np.hstack([PARTS[0], PARTS[2]])))
    close(found.code, np.hstack([hidden, PARTS[1]]))
    close(found.output, dense(p["decode_0"], hidden))
    np.testing.assert_array_equal(found.target, PARTS[1])
    np.testing.assert_array_equal(found.counted, COUNTED[:, 3:5])


def test_pooled_tae_is_the_mean_of_an_autoencoder_a_source():
    module = nn.TAE(WIDTHS, 1, hidden=5, pooled=True)
    p, found = apply(module, X, KNOWN, deterministic=True)
    for w in range(6):
        has = [n for n, i in enumerate((0, 2)) if KNOWN[w, i]] or [0, 1]
        one = [
            np.tanh(dense(p[f"encode_{n}"], PARTS[(0, 2)[n]][w : w + 1])) for n in has
        ]
        close(found.code[w, :5], np.mean(one, axis=0)[0])


def test_mte_is_the_mean_of_target_autoencoders_that_share_nothing():
    module = nn.MTE(WIDTHS, hidden=5)
    inputs = jnp.array(X), jnp.array(KNOWN)
    variables = module.init(jax.random.key(0), *inputs, deterministic=True)
    found = module.apply(variables, *inputs, deterministic=True)
    parts = [
        nn.TAE(WIDTHS, t, hidden=5).apply(
            {"params": variables["params"][f"target_{t}"]}, *inputs, deterministic=True
        )
        for t in range(3)
    ]
    close(found.code, np.mean([one.code[:, :5] for one in parts], axis=0))
    close(found.output, np.hstack([one.output for one in parts]))
    np.testing.assert_array_equal(found.target, CLEAN)


def test_one_to_n_projects_free_vectors():
    ids = jnp.array([4, 0, 0, 2, 1, 3])
    p, found = apply(nn.OneToN(5, WIDTHS, 4), ids, X, KNOWN)
    close(found.output, p["free"]["embedding"][ids] @ p["project"]["kernel"])
    np.testing.assert_array_equal(found.counted, COUNTED)
    p, plus = apply(nn.OneToN(5, WIDTHS, 4, learn_missing=True), ids, X, KNOWN)
    assert plus.counted.all()
    close(plus.target, np.where(COUNTED, X, p["missing"]["embedding"][ids]))


def test_dynamic_weights_are_over_the_sources_that_have_the_word():
    module = nn.DynamicMetaEmbedding(WIDTHS, 5)
    p, found = apply(module, X, KNOWN)
    for w in range(6):
        has = np.flatnonzero(KNOWN[w])
        if not len(has):
            assert (found[w] == 0).all()
            continue
        rows = [dense(p[f"project_{i}"], PARTS[i][w]) for i in has]
        scores = np.array([dense(p["score"], row)[0] for row in rows])
        weights = np.exp(scores) / np.exp(scores).sum()
        close(found[w], weights @ np.array(rows))


# ------------------------------------------------------------------------- the card


def test_a_linear_autoencoder_reaches_the_bound_of_eckart_and_young():
    rng = np.random.default_rng(1)
    data = rng.normal(size=(40, 6)) * np.array([3.0, 2, 1.5, 1, 0.7, 0.4])
    data = jnp.array((data - data.mean(axis=0)), jnp.float32)
    rank = 2
    bound = np.sum(np.linalg.svd(data, compute_uv=False)[rank:] ** 2)
    module = nn.AEME((4, 2), hidden=(rank,), linear=True)
    known = jnp.ones((40, 2), bool)
    start = module.init(jax.random.key(0), data, known, deterministic=True)
    flat, back = jax.flatten_util.ravel_pytree(start)

    @jax.jit
    def loss(x):
        coded = module.apply(back(x), data, known, deterministic=True)
        return meta.reconstruction_loss(coded, "l2", module.parts).sum()

    value = jax.jit(jax.value_and_grad(loss))
    seen = []

    def for_scipy(x):
        found, slope = value(jnp.asarray(x, jnp.float32))
        seen.append(float(found))
        return float(found), np.asarray(slope, np.float64)

    best = optimize.minimize(for_scipy, flat, jac=True, method="L-BFGS-B")
    np.testing.assert_allclose(best.fun, bound, rtol=1e-3)
    assert min(seen) > bound * (1 - 1e-5)  # float32 sums


def test_siamese_heads_are_symmetric_but_for_the_asymmetric_one():
    a, b = jnp.array(X), jnp.array(X[::-1])
    for distance in ("manhattan", "euclidean", "cosine", "asymmetric"):
        head = nn.SiameseHead((5, 3), distance)
        params = head.init(jax.random.key(0), a, b)
        here, there = head.apply(params, a, b), head.apply(params, b, a)
        similarity = losses.exp_neg_distance(here.distance)
        assert ((similarity > 0) & (similarity <= 1)).all()
        swapped = losses.exp_neg_distance(there.distance)
        if distance == "asymmetric":
            assert (jnp.abs(similarity - swapped) > 1e-6).any()
        else:
            np.testing.assert_array_equal(similarity, swapped)


def test_siamese_head_equals_torch():
    torch = pytest.importorskip("torch", reason="needs the extra oracles")
    a, b = X, X[::-1].copy()
    p, found = apply(nn.SiameseHead((5, 3), "euclidean"), a, b)

    def through(x):
        x = torch.tensor(x)
        for i in range(2):
            one = p[f"layer_{i}"]
            x = torch.tanh(x @ torch.tensor(one["kernel"]) + torch.tensor(one["bias"]))
        return x

    first, second = through(a), through(b)
    close(found.distance, torch.linalg.vector_norm(first - second, dim=1).numpy())
    close(found.cosine, torch.cosine_similarity(first, second).numpy())


def tagger(weight, task=1.0):
    """Gradient of `task L_task + weight L_r` of a small tagger, and its parameters."""
    module = nn.AuxReconstruction(
        nn.AEME(WIDTHS, hidden=(4,)), nn.Tagger(3, hidden=2, encoder="cnn", mlp=None)
    )
    x, known = jnp.array(X[None]), jnp.array(KNOWN[None])
    mask = jnp.ones((1, 6), bool)
    tags = jnp.array([[0, 1, 2, 0, 1, 2]])
    variables = module.init(jax.random.key(0), x, known, mask, deterministic=True)

    def loss(variables):
        logits, auxiliary = module.apply(variables, x, known, mask, deterministic=True)
        each = losses.softmax_cross_entropy(logits, tags)
        return task * each.mean() + weight * auxiliary.mean()

    return jax.grad(loss)(variables)["params"], variables["params"]


def test_without_weight_the_decoder_learns_nothing():
    gradient, _ = tagger(0.0)
    for leaf in jax.tree.leaves(gradient["meta"]["decode"]):
        assert (leaf == 0).all()
    assert (gradient["meta"]["encode_0"]["kernel"] != 0).any()
    gradient, _ = tagger(0.1)
    assert (gradient["meta"]["decode"]["kernel"] != 0).any()


@pytest.mark.parametrize("pooled", [False, True])
def test_models_side_by_side_are_those_one_by_one(pooled):
    """At sizes where XLA's CPU compiler gave all pooled models the first one's code."""
    widths = (20, 30, 25, 5)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(100, 80)), jnp.float32)
    known = jnp.asarray(np.random.default_rng(1).random((100, 4)) < 0.9)
    module = nn.MTE(widths, hidden=200, pooled=pooled)

    def code(seed):
        params = module.init(jax.random.key(seed), x, known, deterministic=True)
        coded = module.apply(params, x, known, deterministic=True)
        return coded.code, coded.output

    together = jax.jit(jax.vmap(code))(jnp.arange(3))
    alone = [jax.jit(code)(seed) for seed in range(3)]
    jax.tree.map(close, together, jax.tree.map(lambda *one: jnp.stack(one), *alone))


def test_without_the_task_it_is_the_plain_autoencoder():
    gradient, params = tagger(1.0, task=0.0)
    module = nn.AEME(WIDTHS, hidden=(4,))
    inputs = jnp.array(X), jnp.array(KNOWN)

    def loss(params):
        coded = module.apply({"params": params}, *inputs, deterministic=True)
        return meta.reconstruction_loss(coded, "l2", module.parts).mean()

    plain = jax.grad(loss)(params["meta"])
    # Programs of their own, which add up in another order.
    same = functools.partial(close, rtol=2e-6, atol=0)
    jax.tree.map(same, gradient["meta"], plain)
    for leaf in jax.tree.leaves(gradient["main"]):
        assert (leaf == 0).all()


@pytest.mark.parametrize("level", ["word", "text"])
def test_auxiliary_rows_and_words_agree(level):
    """With `ids`, a table gives what its rows give where they stand."""
    module = nn.AuxReconstruction(
        nn.AEME(WIDTHS, hidden=(4,)),
        nn.TextClassifier(2, hidden=2, encoder="gru", bidirectional=False),
        "kl",
        level,
    )
    ids = jnp.array([[0, 1, 2, 1], [4, 5, 0, 0]])
    mask = jnp.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
    table, known = jnp.array(X), jnp.array(KNOWN)
    here = dict(deterministic=True)
    variables = module.init(jax.random.key(0), table, known, mask, ids, **here)
    rows = module.apply(variables, table, known, mask, ids, **here)
    words = module.apply(variables, table[ids], known[ids], mask, **here)
    jax.tree.map(close, rows, words)
    # By hand, of the second text.
    if level == "text":
        seen = [[COUNTED[4], COUNTED[5]], [CLEAN[4], CLEAN[5]]]
        counts = np.sum(seen[0], axis=0)
        mean = jnp.array((np.sum(seen[1], axis=0) / np.maximum(counts, 1))[None])
        known_mean = jnp.array((KNOWN[4] | KNOWN[5])[None])
        one = module.meta.apply(
            {"params": variables["params"]["meta"]}, mean, known_mean, **here
        )
        expected = meta.reconstruction_loss(one, "kl", module.meta.parts)[0]
        close(rows[1][1], expected)


def test_planted_sources_are_better_together():
    """Card, check 9, first half: AEME beats the best single source."""
    rng = np.random.default_rng(2)
    meanings = rng.normal(size=(300, 8))
    sources = [
        meanings @ rng.normal(size=(8, 8)) + 1.5 * rng.normal(size=(300, 8))
        for _ in range(4)
    ]
    sources = [s / np.linalg.norm(s, axis=1, keepdims=True) for s in sources]
    x = jnp.array(np.hstack(sources), jnp.float32)
    known = jnp.ones((300, 4), bool)
    module = nn.AEME((8,) * 4, hidden=(8,))
    params = module.init(jax.random.key(0), x, known, deterministic=True)
    tx = optax.adam(1e-2)

    @jax.jit
    def train(params):
        def one(carry, _):
            params, state = carry

            def loss(params):
                coded = module.apply(params, x, known, deterministic=True)
                return meta.reconstruction_loss(coded, "l2", module.parts).mean()

            updates, state = tx.update(jax.grad(loss)(params), state)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(one, (params, tx.init(params)), None, 500)[0][0]

    code = np.asarray(module.apply(train(params), x, known, deterministic=True).code)

    def agreement(space):
        a, b = np.triu_indices(300, 1)
        cosines = lambda m: np.sum(unit(m)[a] * unit(m)[b], axis=1)
        return stats.spearmanr(cosines(space), cosines(meanings)).statistic

    assert agreement(code) > max(map(agreement, sources)) + 0.05
