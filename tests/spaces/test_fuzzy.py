"""Fuzzy feature sets: their algebra, and sums written out."""

import numpy as np
import pytest
from scipy import stats

from jaxemb.errors import InputError
from jaxemb.spaces import fuzzy
from jaxemb.spaces.fuzzy import FuzzyEmbedding


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(30, 6))


@pytest.fixture
def sets():
    return np.random.default_rng(1).uniform(0.01, 0.99, size=(2, 20, 6))


def test_columns_are_distributions_whatever_is_added_to_them(vectors):
    p = FuzzyEmbedding.from_vectors(vectors).p
    np.testing.assert_allclose(p.sum(axis=0), 1)
    shifts = np.random.default_rng(2).normal(size=(1, 6)) * 100
    np.testing.assert_allclose(FuzzyEmbedding.from_vectors(vectors + shifts).p, p)
    full = FuzzyEmbedding.from_vectors(vectors, "max").p
    np.testing.assert_allclose(full.max(axis=0), 1)
    np.testing.assert_allclose(full / full.sum(axis=0, keepdims=True), p)
    mean = FuzzyEmbedding.from_vectors(vectors, "mean").p
    np.testing.assert_allclose(mean, np.minimum(30 * p, 1))


def test_set_algebra(sets):
    a, b = sets
    both, either = fuzzy.intersection(a, b), fuzzy.union(a, b)
    np.testing.assert_allclose(
        fuzzy.complement(either),
        fuzzy.intersection(fuzzy.complement(a), fuzzy.complement(b)),
    )
    np.testing.assert_allclose(
        fuzzy.complement(both), fuzzy.union(fuzzy.complement(a), fuzzy.complement(b))
    )
    np.testing.assert_array_equal(fuzzy.difference(a, a), 0)
    assert np.all(fuzzy.includes(both, a))
    assert np.all(fuzzy.includes(a, either))
    np.testing.assert_allclose(
        fuzzy.cardinality(either) + fuzzy.cardinality(both),
        fuzzy.cardinality(a) + fuzzy.cardinality(b),
    )
    np.testing.assert_array_equal(fuzzy.difference(a, b), np.maximum(0, a - b))
    np.testing.assert_array_equal(fuzzy.disjoint_union(a, b), np.minimum(1, a + b))


def test_intersection_is_addition_of_vectors(vectors):
    p = FuzzyEmbedding.from_vectors(vectors).p
    product = np.log(fuzzy.intersection(p[:5], p[5:10])) - vectors[:5] - vectors[5:10]
    np.testing.assert_allclose(product, np.tile(product[:1], (5, 1)), atol=1e-10)


def test_divergence_of_words_is_a_product_of_vectors(vectors):
    embedding = FuzzyEmbedding.from_vectors(vectors)
    p = embedding.p
    for s, t in ((0, 1), (4, 9), (7, 7)):
        expected = p[s] @ (vectors[s] - vectors[t])
        assert fuzzy.kl(p[s], p[t]) == pytest.approx(expected, abs=1e-12)
    for bernoulli in (False, True):
        scores = fuzzy.nearest_scores(p, embedding, bernoulli=bernoulli)
        for s in range(30):
            divergence = fuzzy.kl(np.tile(p[s], (30, 1)), p, bernoulli=bernoulli)
            crossed = fuzzy.cross_entropy(
                np.tile(p[s], (30, 1)), p, bernoulli=bernoulli
            )
            order = np.argsort(-scores[s])
            np.testing.assert_array_equal(order, np.argsort(divergence))
            np.testing.assert_array_equal(order, np.argsort(crossed))


def test_bernoulli_forms(sets):
    a, b = sets
    expected = -np.sum(a * np.log(b) + (1 - a) * np.log(1 - b), axis=-1)
    np.testing.assert_allclose(fuzzy.cross_entropy(a, b, bernoulli=True), expected)
    assert np.all(fuzzy.kl(a, b, bernoulli=True) > 0)
    np.testing.assert_array_equal(fuzzy.kl(a, a, bernoulli=True), 0)
    printed = fuzzy.kl(np.array([0.1]), np.array([0.5]))
    assert printed == pytest.approx(0.1 * np.log(0.2))
    assert printed < 0


def test_zeros_have_no_logarithm_to_fear():
    zero, half = np.zeros(3), np.full(3, 0.5)
    assert fuzzy.entropy(zero) == 0
    assert fuzzy.kl(zero, half) == 0
    assert np.isfinite(fuzzy.kl(half, zero))


def test_inclusion_is_the_order_of_vectors(vectors):
    p = FuzzyEmbedding.from_vectors(vectors).p
    for s in range(30):
        for t in range(30):
            expected = bool(np.all(vectors[s] <= vectors[t]))
            assert bool(fuzzy.includes(p[s], p[t])) == expected
    assert fuzzy.inclusion(p[0], p[1]) == np.mean(vectors[0] <= vectors[1])
    rng = np.random.default_rng(3)
    pairs = rng.normal(size=(2, 200_000, 10))
    rate = np.mean(fuzzy.includes(*pairs))
    assert rate == pytest.approx(2.0**-10, rel=0.15)


def test_entropy_is_bounded_under_the_printed_formula(vectors):
    def bound(count, features):
        share = 1 / count
        binary = -share * np.log(share) - (1 - share) * np.log1p(-share)
        return features * binary

    mean = fuzzy.entropy(FuzzyEmbedding.from_vectors(vectors).p).mean()
    assert mean < bound(30, 6)
    even = fuzzy.entropy(FuzzyEmbedding.from_vectors(np.zeros((30, 6))).p)
    np.testing.assert_allclose(even, bound(30, 6))
    # Far below 6.3, which the paper prints.
    assert bound(71_291, 200) < 0.04


def test_entropy_ranks_words_as_cardinality_does():
    vectors = np.random.default_rng(4).normal(size=(2000, 50)) * 0.5
    p = FuzzyEmbedding.from_vectors(vectors).p
    rho = stats.spearmanr(fuzzy.entropy(p), fuzzy.cardinality(p))[0]
    assert rho > 0.99


def test_vectors_that_are_no_numbers_are_refused(vectors):
    vectors[3, 2] = np.nan
    with pytest.raises(InputError, match="not finite"):
        FuzzyEmbedding.from_vectors(vectors)
