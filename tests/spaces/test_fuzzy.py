"""Fuzzy feature sets: their algebra, and sums written out."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hypothesis_numpy
from scipy import special, stats

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
    bound = fuzzy.entropy_bound
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


def test_the_printed_disjoint_union_is_always_one(sets):
    np.testing.assert_array_equal(fuzzy.disjoint_union(*sets, printed=True), 1)
    assert np.any(fuzzy.disjoint_union(*sets) < 1)


def test_the_printed_denominator_has_two_exponentials(vectors):
    p = FuzzyEmbedding.from_vectors(vectors, "exp-exp").p
    expected = np.exp(vectors) / np.exp(np.exp(vectors)).sum(axis=0, keepdims=True)
    np.testing.assert_allclose(p, expected)
    assert np.all(p.sum(axis=0) < 1)  # no distribution: a slip
    with pytest.raises(InputError, match="second exponential is too large"):
        FuzzyEmbedding.from_vectors(vectors + 800, "exp-exp")


def test_the_entropy_bound_is_its_formula():
    for words, dim in ((30, 6), (71_291, 200)):
        p = 1 / words
        expected = dim * stats.entropy([p, 1 - p])
        assert fuzzy.entropy_bound(words, dim) == pytest.approx(expected)
    assert fuzzy.entropy_bound(71_291, 200) == pytest.approx(0.034, abs=5e-4)
    assert fuzzy.entropy_bound(3_000_000, 300) == pytest.approx(0.0016, abs=5e-5)


def test_rows_that_sum_to_one(vectors):
    p = FuzzyEmbedding.from_vectors(vectors, "rows").p
    np.testing.assert_allclose(p, special.softmax(vectors, axis=1))
    columns = FuzzyEmbedding.from_vectors(vectors).p
    p = FuzzyEmbedding.from_vectors(vectors, "softmax-rows").p
    np.testing.assert_allclose(p, columns / columns.sum(axis=1, keepdims=True))
    assert np.all(fuzzy.entropy(p) < fuzzy.entropy_bound(6, 6))
    even = FuzzyEmbedding.from_vectors(np.zeros((30, 6)), "softmax-rows").p
    np.testing.assert_allclose(fuzzy.entropy(even), fuzzy.entropy_bound(6, 6))
    shifts = np.random.default_rng(2).normal(size=(1, 6))
    moved = FuzzyEmbedding.from_vectors(vectors + shifts, "softmax-rows").p
    np.testing.assert_allclose(moved, p)


@given(
    hypothesis_numpy.arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 5)),
        elements=st.floats(-30, 30),
    )
)
def test_no_table_has_more_entropy_than_the_bound(rows):
    mean = np.mean(fuzzy.entropy(FuzzyEmbedding.from_vectors(rows).p))
    assert mean <= fuzzy.entropy_bound(*rows.shape) * (1 + 1e-12)


def by_loops(measure, a, b):
    """The measure written out, feature by feature."""
    if measure.direction == "backward":
        a, b = b, a
    total = 0.0
    for p, q in zip(a, b, strict=True):
        present = p * math.log(p / q)
        absent = (1 - p) * math.log((1 - p) / (1 - q))
        total += present + (absent if measure.bernoulli else 0)
        if measure.kind == "cross-entropy":
            total -= p * math.log(p) + (1 - p) * math.log(1 - p)
    if measure.direction == "mean":
        other = dataclasses.replace(measure, direction="forward")
        return (-total + by_loops(other, b, a)) / 2
    return -total


MEASURES = [
    fuzzy.Measure(kind, bernoulli, direction)
    for kind in ("kl", "cross-entropy")
    for bernoulli in (False, True)
    for direction in ("forward", "backward", "mean")
]


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_measures_are_their_sums_and_order_as_their_products_do(measure, vectors, sets):
    a, b = sets
    found = measure.similarity(a, b)
    for i in range(len(a)):
        assert found[i] == pytest.approx(by_loops(measure, a[i], b[i]))
    embedding = FuzzyEmbedding.from_vectors(vectors)
    made = measure.products(a, embedding)
    scores = made.queries @ made.rows.T
    for i in range(len(a)):
        expected = [by_loops(measure, a[i], word) for word in embedding.p]
        gap = scores[i] - expected
        np.testing.assert_allclose(gap, gap[0], atol=1e-9)


def test_measures_meet_zeros_and_ones(vectors):
    embedding = FuzzyEmbedding.from_vectors(vectors, "max")
    empty_and_full = np.stack([np.zeros(6), np.ones(6)])
    for measure in MEASURES:
        made = measure.products(empty_and_full, embedding)
        scores = made.queries @ made.rows.T
        expected = np.array(
            [
                measure.similarity(np.tile(y, (30, 1)), embedding.p)
                for y in empty_and_full
            ]
        )
        gap = scores - expected
        np.testing.assert_allclose(gap, np.tile(gap[:, :1], (1, 30)), atol=1e-8)


def test_an_analogy_is_a_clipped_sum_less_the_first(vectors):
    p = FuzzyEmbedding.from_vectors(vectors, "max").p
    for a, b, x in ((0, 1, 2), (5, 9, 7)):
        expected = [max(0.0, min(1.0, p[b, i] + p[x, i]) - p[a, i]) for i in range(6)]
        np.testing.assert_allclose(fuzzy.analogous(p[a], p[b], p[x]), expected)
    np.testing.assert_array_equal(fuzzy.analogous(p[3], p[3], np.zeros(6)), 0)
