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

    np.testing.assert_allclose(products(u, v, "F"), products(*changed, "F"), atol=1e-8)
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


def test_blocks_change_nothing_and_extreme_alphas_are_finite(tables, monkeypatch):
    u, v = tables
    model = Model(u, v, some_reference())
    whole = alpha.alpha_embedding(model, -3.0, exact=True)
    limit = alpha.limit_embedding(model, 3)
    monkeypatch.setattr(alpha, "_LOGITS", 7 * VOCAB)
    np.testing.assert_allclose(alpha.alpha_embedding(model, -3.0, exact=True), whole)
    np.testing.assert_allclose(alpha.limit_embedding(model, 3), limit, atol=1e-6)
    for extreme in (-1000.0, 1000.0):
        assert np.all(np.isfinite(alpha.alpha_embedding(model, extreme)))
    roughly = alpha.alpha_embedding(model, -3.0)
    assert roughly.dtype == np.float64
    np.testing.assert_allclose(roughly, whole, rtol=1e-3, atol=1e-4)
    assert jax.numpy.ones(1).dtype == np.float32


def test_references(tables):
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
