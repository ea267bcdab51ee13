"""Alpha-embeddings against the paper's equations, written out in float64."""

import jax
import numpy as np
import pytest
from scipy import special

from jaxemb.errors import InputError
from jaxemb.spaces import alpha
from jaxemb.spaces.alpha import Model

VOCAB, DIM = 40, 5


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    return rng.normal(size=(VOCAB, DIM)), rng.normal(size=(VOCAB, DIM))


def some_reference(seed=1):
    return alpha.unigram(np.random.default_rng(seed).integers(1, 50, size=VOCAB))


def by_the_equations(u, v, log_reference, a):
    """Equations 1 to 3, word by word."""
    p0 = np.exp(log_reference)
    delta = v - (p0 @ v)[np.newaxis]
    fisher = (p0[:, np.newaxis] * delta).T @ delta
    rows = []
    for word in u:
        p = special.softmax(v @ word)
        if a == 1:
            weights = p0 * (np.log(p) - np.log(p0))
        else:
            power = (p / p0) ** ((1 - a) / 2)
            weights = p0 * 2 / (1 - a) * (power - 1)
        rows.append(np.linalg.solve(fisher, weights @ delta))
    return np.array(rows)


@pytest.mark.parametrize("a", [-6.0, -2.0, -1.0, 0.0, 0.5, 1.0, 3.0])
def test_the_stable_form_is_the_printed_one(tables, a):
    u, v = tables
    reference = some_reference()
    found = alpha.alpha_embedding(Model(u, v, reference), a, scaled=True, exact=True)
    np.testing.assert_allclose(found, by_the_equations(u, v, reference, a), rtol=1e-9)


def test_alpha_one_at_the_uniform_reference_is_the_table(tables):
    u, v = tables
    model = Model(u, v, alpha.uniform(VOCAB))
    np.testing.assert_allclose(alpha.alpha_embedding(model, 1.0, exact=True), u)
    both = Model(u + v, v, alpha.uniform(VOCAB))
    np.testing.assert_allclose(alpha.alpha_embedding(both, 1.0, exact=True), u + v)


def test_alpha_one_at_any_reference_is_the_table_moved(tables):
    u, v = tables
    moved = alpha.alpha_embedding(Model(u, v, some_reference()), 1.0, exact=True) - u
    np.testing.assert_allclose(moved, np.tile(moved[:1], (VOCAB, 1)), atol=1e-10)
    theta = np.random.default_rng(3).normal(size=DIM)
    reference = special.log_softmax(v @ theta)
    found = alpha.alpha_embedding(Model(u, v, reference), 1.0, exact=True)
    np.testing.assert_allclose(found, u - theta[np.newaxis], atol=1e-10)


def test_alpha_minus_one_is_the_mean_of_contexts(tables):
    u, v = tables
    reference = some_reference()
    model = Model(u, v, reference)
    means = special.softmax(u @ v.T, axis=1) @ v - (np.exp(reference) @ v)[np.newaxis]
    found = alpha.alpha_embedding(model, -1.0, scaled=True, exact=True)
    np.testing.assert_allclose(found, np.linalg.solve(model.fisher, means.T).T)


def test_a_bias_of_contexts_is_a_logit_of_its_own(tables):
    """As a further dimension of contexts, of which every word has one."""
    u, v = tables
    bias = np.random.default_rng(7).normal(size=VOCAB)
    reference = some_reference()
    p = special.softmax(u @ v.T + bias[np.newaxis], axis=1)
    model = Model(u, v, reference, context_bias=bias)
    for a in (-3.0, 1.0, 2.0):
        log_ratio = np.log(p) - reference[np.newaxis]
        if a != 1:
            beta = (1 - a) / 2
            log_ratio = (np.exp(beta * log_ratio) - 1) / beta
        weights = np.exp(reference)[np.newaxis] * log_ratio
        expected = np.linalg.solve(model.fisher, (weights @ model.centred).T).T
        found = alpha.alpha_embedding(model, a, scaled=True, exact=True)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    rows, log_ratios = alpha.top_contexts(model, 2)
    ratios = np.log(p) - reference[np.newaxis]
    np.testing.assert_array_equal(rows, np.argsort(-ratios, axis=1)[:, :2])
    np.testing.assert_allclose(log_ratios, -np.sort(-ratios, axis=1)[:, :2], rtol=1e-4)


def test_alpha_is_continuous_at_one(tables):
    u, v = tables
    model = Model(u, v, some_reference())
    middle = alpha.alpha_embedding(model, 1.0, exact=True)
    for near in (1 - 1e-6, 1 + 1e-6):
        close = alpha.alpha_embedding(model, near, scaled=True, exact=True)
        np.testing.assert_allclose(close, middle, atol=1e-4)


def cosines(a, b):
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.sum(a * b, axis=1) / lengths


def test_directions_go_to_the_limit_slowly(tables):
    u, v = tables
    model = Model(u, v, alpha.uniform(VOCAB))
    limit = alpha.limit_embedding(model)
    worst = [
        cosines(alpha.alpha_embedding(model, a, exact=True), limit).min()
        for a in (-10.0, -50.0, -1000.0, -4000.0)
    ]
    assert worst[0] < 0.9
    assert np.all(np.diff(worst) > 0)
    assert worst[-1] > 0.999


def test_the_fisher_metric_does_not_depend_on_the_parameters(tables):
    u, v = tables
    mix = np.random.default_rng(4).normal(size=(DIM, DIM))
    changed = u @ np.linalg.inv(mix).T, v @ mix
    reference = some_reference()

    def products(u, v, metric):
        model = Model(u, v, reference)
        rows = alpha.alpha_embedding(model, -2.0, exact=True)
        rows = alpha.in_metric(alpha.normalised(rows, model, metric), model, metric)
        return rows @ rows.T

    np.testing.assert_allclose(products(u, v, "F"), products(*changed, "F"), atol=1e-12)
    assert np.abs(products(u, v, "I") - products(*changed, "I")).max() > 0.1
    np.testing.assert_allclose(np.diag(products(u, v, "F")), 1)


def test_adding_v_reweights_the_distribution(tables):
    u, v = tables
    p = special.softmax(u @ v.T, axis=1)
    reweighted = np.exp(v @ v.T) * p
    reweighted /= reweighted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(reweighted, special.softmax((u + v) @ v.T, axis=1))


def test_limits_by_their_definition(tables):
    u, v = tables
    reference = some_reference()
    model = Model(u, v, reference)
    p0 = np.exp(reference)
    ratios = special.softmax(u @ v.T, axis=1) / p0[np.newaxis]
    delta = v - (p0 @ v)[np.newaxis]
    for k in (1, 3, 5):
        order = np.argsort(-ratios, axis=1)[:, :k]
        best = np.take_along_axis(ratios, order, axis=1)
        for weighted in (False, True):
            weights = best if weighted else np.ones_like(best)
            expected = np.einsum("wk,wkd->wd", weights, delta[order])
            expected /= weights.sum(axis=1, keepdims=True)
            expected = np.linalg.solve(model.fisher, expected.T).T
            found = alpha.limit_embedding(model, k, weighted=weighted)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    rows, _ = alpha.top_contexts(model, 3)
    np.testing.assert_array_equal(rows[:, 0], alpha.top_contexts(model, 1)[0][:, 0])


def test_the_order_of_the_vocabulary_does_not_matter(tables):
    u, v = tables
    reference = some_reference()
    order = np.random.default_rng(5).permutation(VOCAB)
    plain = alpha.alpha_embedding(Model(u, v, reference), -2.0)
    turned = alpha.alpha_embedding(Model(u[order], v[order], reference[order]), -2.0)
    np.testing.assert_allclose(turned, plain[order], rtol=1e-3, atol=1e-5)
    # Two contexts that are the same: whichever comes first, the limit is the same.
    v[7], reference[7] = v[3], reference[3]
    reference = reference - special.logsumexp(reference)
    for limit in (alpha.Limit(), alpha.Limit(3, weighted=True)):
        [(_, plain)] = alpha.family(Model(u, v, reference), limits=[limit])
        moved = Model(u[order], v[order], reference[order])
        [(_, turned)] = alpha.family(moved, limits=[limit])
        np.testing.assert_allclose(turned, plain[order], rtol=1e-3, atol=1e-5)


def test_blocks_change_nothing_and_extreme_alphas_are_finite(tables, monkeypatch):
    u, v = tables
    model = Model(u, v, some_reference())
    whole = alpha.alpha_embedding(model, -3.0, exact=True)
    limit = alpha.limit_embedding(model, 3)
    monkeypatch.setattr(alpha, "_LOGITS", 7 * VOCAB)
    monkeypatch.setattr(alpha, "_WORDS", 1)
    assert len(list(alpha._blocks(VOCAB, VOCAB))) == 6
    np.testing.assert_allclose(alpha.alpha_embedding(model, -3.0, exact=True), whole)
    np.testing.assert_allclose(alpha.limit_embedding(model, 3), limit, atol=1e-6)
    for extreme in (-1000.0, 1000.0):
        assert np.all(np.isfinite(alpha.alpha_embedding(model, extreme)))
    roughly = alpha.alpha_embedding(model, -3.0)
    assert roughly.dtype == np.float64
    np.testing.assert_allclose(roughly, whole, rtol=1e-3, atol=1e-4)
    assert jax.numpy.ones(1).dtype == np.float32


@pytest.mark.parametrize("vocab", [67_000, 400_000])
def test_a_large_vocabulary_needs_no_matrix_of_all_pairs(vocab):
    """What the compiled programs need beside the tables, of which none is run."""
    dim = 300
    blocks = list(alpha._blocks(vocab, vocab))
    assert blocks[0].start == 0 and blocks[-1].stop == vocab
    rows = max(block.stop - block.start for block in blocks)
    assert rows * vocab <= max(alpha._LOGITS, 128 * vocab)
    shape = lambda *sizes: jax.ShapeDtypeStruct(sizes, np.float32)
    words, contexts, each = shape(rows, dim), shape(vocab, dim), shape(vocab)
    wider = shape(rows, dim + 1), shape(vocab, dim + 1), each
    programs = [
        alpha._tangent.lower(*wider),
        alpha._top_ratios.lower(words, contexts, each, each, k=5),
        alpha._marginal.lower(words, contexts, each, shape(rows), conditional=True),
    ]
    logits, table = 4 * rows * vocab, 4 * vocab * (dim + 1)
    assert 4 * logits + table < 4 * vocab**2 / 20
    for program in programs:
        needed = program.compile().memory_analysis().temp_size_in_bytes
        assert needed < 4 * logits + table


def test_limits_share_a_search_and_the_family_has_its_order(tables, monkeypatch):
    u, v = tables
    model = Model(u, v, some_reference())
    searches = []
    search = alpha.top_contexts
    spy = lambda *a: searches.append(a) or search(*a)
    monkeypatch.setattr(alpha, "top_contexts", spy)
    limits = [alpha.Limit(3, True), alpha.Limit(), alpha.Limit(5)]
    found = dict(alpha.family(model, [2.0, -1.0], limits))
    assert list(map(str, found)) == ["2.0", "-1.0", "t3-w", "t1", "t5"]
    assert [k for _, k in searches] == [5]
    for limit in limits:
        alone = alpha.limit_embedding(model, limit.k, weighted=limit.weighted)
        np.testing.assert_allclose(found[limit], alone)
    np.testing.assert_array_equal(found[2.0], alpha.alpha_embedding(model, 2.0))
    with pytest.raises(InputError, match="k = 3: expected as many contexts, found 1"):
        alpha.limit_embedding(model, 3, contexts=search(model, 1))


def test_words_of_the_same_contexts_have_the_same_limit_to_the_last_bit(tables):
    """Else rounding would part words that no question can tell apart."""
    u, v = tables
    model = Model(u, v, some_reference())
    orders = np.array([[3, 11, 20], [20, 3, 11], [11, 20, 3]])
    contexts = np.tile(orders, (VOCAB, 1))[:VOCAB], np.zeros((VOCAB, 3))
    limit = alpha.limit_embedding(model, 3, contexts=contexts)
    np.testing.assert_array_equal(limit, np.tile(limit[:1], (VOCAB, 1)))


def test_metrics_can_be_mixed(tables):
    u, v = tables
    model = Model(u, v, some_reference())
    rows = alpha.normalised(alpha.alpha_embedding(model, -2.0), model, "F")
    np.testing.assert_allclose(np.einsum("wi,ij,wj->w", rows, model.fisher, rows), 1)
    plain = alpha.in_metric(rows, model, "I")
    np.testing.assert_array_equal(plain, rows)
    assert np.ptp(np.linalg.norm(plain, axis=1)) > 0.1
    turned = alpha.in_metric(rows, model, "F")
    np.testing.assert_allclose(turned @ turned.T, rows @ model.fisher @ rows.T)


def test_references(tables, monkeypatch):
    u, v = tables
    rng = np.random.default_rng(6)
    b, c = rng.normal(size=VOCAB), rng.normal(size=VOCAB)
    counts = rng.integers(1, 9, size=VOCAB)
    joint = np.exp(u @ v.T + b[:, np.newaxis] + c[np.newaxis])
    expected = joint.sum(axis=0) / joint.sum()
    found = alpha.model_unigram(u, v, word_bias=b, context_bias=c)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-5)
    mixed = (counts / counts.sum()) @ special.softmax(u @ v.T, axis=1)
    found = alpha.model_unigram(u, v, counts=counts)
    np.testing.assert_allclose(np.exp(found), mixed, rtol=1e-5)
    np.testing.assert_allclose(
        np.exp(alpha.unigram(counts)), counts / counts.sum(), rtol=1e-9
    )
    monkeypatch.setattr(alpha, "_LOGITS", 7 * VOCAB)
    monkeypatch.setattr(alpha, "_WORDS", 1)
    blocked = alpha.model_unigram(u, v, counts=counts)
    np.testing.assert_allclose(np.exp(blocked), mixed, rtol=1e-5)


def test_bad_models_are_named(tables):
    u, v = tables
    with pytest.raises(InputError, match="the reference sums to 40"):
        Model(u, v, np.zeros(VOCAB))
    with pytest.raises(InputError, match=r"a reference of shape \(3,\)"):
        Model(u, v, np.zeros(3))
    with pytest.raises(InputError, match="words of 4 and contexts of 5"):
        Model(u[:, :4], v, alpha.uniform(VOCAB))
    with pytest.raises(InputError, match="k = 41: expected 1 to 40"):
        alpha.top_contexts(Model(u, v, alpha.uniform(VOCAB)), 41)
    with pytest.raises(InputError, match="expected both biases, or counts"):
        alpha.model_unigram(u, v)
