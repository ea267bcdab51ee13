import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jaxemb.eval import correlation


@given(
    st.lists(
        st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=2, max_size=20
    ),
    st.floats(1e-100, 1e100),
)
def test_correlations_are_scipys_with_ties(pairs, scale):
    x, y = np.array(pairs, np.float64).T * scale
    whole = np.arange(len(x))[np.newaxis]
    rho = correlation.spearman_statistic(x, y)(whole)[0]
    r = correlation.pearson_statistic(x, y)(whole)[0]
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(rho) and np.isnan(r)
    else:
        assert rho == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
        assert r == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)


def ranks_by_counting(values):
    """1, those below, and half of the others that are equal."""
    return [
        1 + sum(v < u for v in values) + (sum(v == u for v in values) - 1) / 2
        for u in values
    ]


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=15), st.randoms())
def test_spearman_is_pearson_of_ranks_with_ties_averaged(x, random):
    y = [value + random.randint(0, 3) for value in x]
    rows = np.arange(len(x))[np.newaxis]
    found = correlation.spearman_statistic(np.array(x) * 1.0, np.array(y) * 1.0)(rows)
    a, b = (np.array(ranks_by_counting(side)) for side in (x, y))
    a, b = a - a.mean(), b - b.mean()
    if a.any() and b.any():
        expected = np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))
        assert found[0] == pytest.approx(expected, abs=1e-12)


def test_each_resample_is_ranked_anew():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=25).round(1), rng.normal(size=25)
    rows = rng.integers(0, 25, (30, 25))
    found = correlation.spearman_statistic(x, y)(rows)
    expected = [stats.spearmanr(x[row], y[row]).statistic for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_one_item_has_no_correlation():
    one = np.array([[1.0]])
    assert np.isnan(correlation.pearson(one, one)[0])


@given(st.integers(0, 30))
def test_weights_are_repetitions(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 5, 12) / 2, rng.normal(size=12)
    weights = rng.integers(0, 4, (3, 12))
    found = correlation.weighted_spearman(x, y)(weights)
    for row, rho in zip(weights, found, strict=True):
        expected = stats.spearmanr(np.repeat(x, row), np.repeat(y, row)).statistic
        assert rho == pytest.approx(expected)


def test_weights_that_leave_one_value_have_no_correlation():
    statistic = correlation.weighted_spearman(np.array([1.0, 1, 2]), np.arange(3.0))
    found = statistic(np.array([[1, 3, 0], [0, 0, 0], [2, 0, 1]]))
    assert np.isnan(found[:2]).all() and found[2] == pytest.approx(1)
