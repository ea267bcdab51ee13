import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jaxemb.eval import intervals
from jaxemb.eval.intervals import Interval

values = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


@given(values, st.floats(0.5, 0.999))
def test_t_interval_is_scipys(sample, level):
    found = intervals.t_interval(sample, level)
    assert found.mean == pytest.approx(np.mean(sample), abs=1e-9)
    scale = stats.sem(sample)
    if scale > 1e-9:
        low, high = stats.t.interval(level, len(sample) - 1, np.mean(sample), scale)
        assert found.low == pytest.approx(low, rel=1e-6, abs=1e-6)
        assert found.high == pytest.approx(high, rel=1e-6, abs=1e-6)
    else:
        assert found.low == pytest.approx(found.high, abs=1e-6)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_paired_t_is_scipys(level):
    rng = np.random.default_rng(0)
    first, second = rng.normal(1, 1, 10), rng.normal(0, 1, 10)
    found = intervals.paired_t(first, second, level)
    expected = stats.ttest_rel(first, second).confidence_interval(level)
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.mean == pytest.approx(np.mean(first - second))
    with pytest.raises(ValueError, match="10 against 9"):
        intervals.paired_t(list(first), list(second[:9]))


def test_pairing_matters():
    # Folds that differ far more than the arms do: only the paired interval sees it.
    folds = np.array([70.0, 75.0, 80.0, 85.0])
    better = folds + np.array([0.9, 1.1, 1.0, 1.0])
    alone = intervals.t_interval(better - folds.mean())
    paired = intervals.paired_t(better, folds)
    assert intervals.verdict(alone.low, alone.high) == "inconclusive"
    assert intervals.verdict(paired.low, paired.high) == "supported"


def test_too_few_values_say_so():
    one = intervals.t_interval([79.3])
    assert one.mean == 79.3 and not one.known and one.bounds() is None
    assert str(one) == "79.3 [no interval]"
    assert math.isnan(intervals.t_interval([]).mean)
    assert intervals.verdict(one.low, one.high) == "inconclusive"
    mean_of = np.array([5.0])
    single = intervals.bootstrap(lambda rows: mean_of[rows].mean(-1), 1)
    assert single.mean == 5.0 and not single.known
    assert math.isnan(intervals.bootstrap(lambda rows: rows.mean(-1), 0).mean)
    none = intervals.bootstrap(lambda rows: rows.mean(-1), 4, resamples=0)
    assert none.mean == 1.5 and not none.known


def test_a_failed_seed_does_not_vanish():
    found = intervals.t_interval([1.0, math.nan, 3.0])
    assert math.isnan(found.mean) and not found.known


@given(st.integers(1, 300), st.floats(0, 1), st.floats(0.5, 0.999))
def test_wilson_is_scipys(n, share, level):
    hits = round(share * n)
    found = intervals.wilson(hits, n, level)
    test = stats.binomtest(hits, n)
    expected = test.proportion_ci(confidence_level=level, method="wilson")
    assert found.mean == hits / n
    assert found.low == pytest.approx(expected.low, abs=1e-12)
    assert found.high == pytest.approx(expected.high, abs=1e-12)


def test_wilson_has_a_width_at_its_ends():
    none, all_ = intervals.wilson(0, 7), intervals.wilson(7, 7)
    assert none.low == 0 < none.high and all_.low < 1 == all_.high
    empty = intervals.wilson(0, 0)
    assert math.isnan(empty.mean) and not empty.known
    with pytest.raises(ValueError, match="hits is 8; expected 0 to 7"):
        intervals.wilson(8, 7)


def test_bootstrap_is_scipys_percentile_method(monkeypatch):
    data = np.random.default_rng(3).exponential(size=40)
    expected = stats.bootstrap(
        (data,),
        np.mean,
        vectorized=True,
        n_resamples=500,
        method="percentile",
        rng=np.random.default_rng(7),
    ).confidence_interval
    monkeypatch.setattr(intervals, "_CHUNK", 1000)  # several chunks, the last shorter
    found = intervals.bootstrap(
        lambda rows: data[rows].mean(-1), len(data), seed=7, resamples=500
    )
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.mean == pytest.approx(data.mean())


def test_bootstrap_leaves_out_undefined_resamples():
    data = np.array([0.0, 1.0])

    def nan_when_constant(rows):
        drawn = data[rows]
        return np.where(np.ptp(drawn, axis=1) == 0, np.nan, drawn.mean(-1))

    found = intervals.bootstrap(nan_when_constant, 2, resamples=50)
    assert (found.low, found.high) == (0.5, 0.5)
    undefined = intervals.bootstrap(lambda rows: np.full(len(rows), np.nan), 3)
    assert math.isnan(undefined.mean) and not undefined.known


def test_paired_bootstrap_resamples_both_alike():
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=10, size=100)
    first, second = noise + 1.0, noise
    found = intervals.paired_bootstrap(
        lambda rows: first[rows].mean(-1), lambda rows: second[rows].mean(-1), 100
    )
    assert found.low == pytest.approx(1.0) and found.high == pytest.approx(1.0)


def test_same_seed_same_interval():
    data = np.random.default_rng(0).normal(size=30)
    again = [
        intervals.bootstrap(lambda rows: data[rows].mean(-1), 30, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert again[0] == again[1] != again[2]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.2, 1.6, "supported"),
        (-1.6, -0.2, "contradicted"),
        (-0.1, 0.1, "inconclusive"),
        (0.0, 1.0, "inconclusive"),
        (-1.0, 0.0, "inconclusive"),
        (math.nan, math.nan, "inconclusive"),
    ],
)
def test_verdict(low, high, expected):
    assert intervals.verdict(low, high) == expected


def test_the_mean_of_independent_figures():
    """Against the standard error of a sum, by simulation."""
    rng = np.random.default_rng(0)
    deviations = 1.0, 2.0, 0.5
    parts = [Interval(5.0, 5 - 1.96 * d, 5 + 1.96 * d) for d in deviations]
    found = intervals.mean_of(parts)
    drawn = sum(rng.normal(5.0, d, size=400_000) for d in deviations) / 3
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.mean == 5.0
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)
    assert not intervals.mean_of([*parts, Interval(1.0, np.nan, np.nan)]).known
    assert np.isnan(intervals.mean_of([]).mean)


def test_figures_that_move_together():
    same = [Interval(m, m - 1, m + 2) for m in (3.0, 5.0)]
    assert intervals.mean_together(same) == Interval(4.0, 3.0, 6.0)
    # Of items that move as one the width is that of the mean's own bootstrap.
    items = np.random.default_rng(0).normal(size=(200, 1)) + np.array([[0.0, 1.0]])
    apart = [
        intervals.bootstrap(lambda rows, of=of: of[rows].mean(-1), 200)
        for of in items.T
    ]
    whole = items.mean(axis=1)
    expected = intervals.bootstrap(lambda rows: whole[rows].mean(-1), 200)
    found = intervals.mean_together(apart)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert math.isnan(intervals.mean_together([]).mean)
    assert not intervals.mean_together([*same, Interval(1.0, math.nan, math.nan)]).known


def test_the_spread_of_items_and_that_of_runs_add_up():
    """Crossed: x[item, run] = a[item] + b[run]; the interval covers as it should."""
    rng = np.random.default_rng(0)
    items, runs, covered = 60, 5, []
    for _ in range(400):
        x = rng.normal(size=(items, 1)) + 0.2 * rng.normal(size=(1, runs))
        by_item, by_run = x.mean(1), x.mean(0)
        over_items = intervals.t_interval(by_item)
        both = intervals.with_spread(over_items, intervals.t_interval(by_run))
        assert both.mean == over_items.mean
        covered.append([i.low < 0 < i.high for i in (over_items, both)])
    alone, both = np.mean(covered, axis=0)
    assert alone < 0.9 < 0.93 < both < 0.99


def test_one_run_leaves_the_interval_over_items():
    items = Interval(1.0, 0.5, 3.0)
    assert intervals.with_spread(items, intervals.t_interval([1.0])) == items
    both = intervals.with_spread(items, Interval(1.0, 0.0, 2.0))
    assert (both.low, both.high) == pytest.approx((1 - 1.25**0.5, 1 + 5**0.5))


def test_items_that_share_units_are_resampled_by_units():
    rng = np.random.default_rng(0)
    units = np.array([(i, j) for i in range(12) for j in range(12) if i != j]) + 5
    values = rng.normal(size=len(units))
    found = intervals.crossed_bootstrap(values, units, resamples=300, seed=4)
    assert found.mean == pytest.approx(values.mean())
    drawn, again = [], np.random.default_rng(4)
    for row in again.integers(0, 12, (300, 12)):
        times = {unit + 5: int(np.sum(row == unit)) for unit in range(12)}
        weights = [times[i] * times[j] for i, j in units.tolist()]
        drawn.append(np.average(values, weights=weights))
    expected = np.quantile(drawn, [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    # What units bring along does not average out over the items that share them.
    effects = rng.normal(size=12)
    shared = effects[units - 5].sum(axis=1)
    by_unit = intervals.crossed_bootstrap(shared, units)
    by_item = intervals.bootstrap(lambda rows: shared[rows].mean(-1), len(shared))
    assert by_unit.high - by_unit.low > 2 * (by_item.high - by_item.low)
    none = intervals.crossed_bootstrap(np.zeros(0), np.zeros((0, 2), np.int64))
    assert math.isnan(none.mean)


def test_a_difference_of_means_is_welchs():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=5), 1 + 2 * rng.normal(size=3)
    found = intervals.sum_of_means([(1.0, a), (-1.0, b)])
    welch = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    np.testing.assert_allclose(found.bounds(), [welch.low, welch.high])
    # One that is not trained is a constant.
    alone = intervals.sum_of_means([(1.0, a), (-1.0, [0.5])])
    np.testing.assert_allclose(
        alone.bounds(), np.array(intervals.t_interval(a).bounds()) - 0.5
    )
    assert not intervals.sum_of_means([(1.0, [1.0]), (-1.0, [0.5])]).known


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.5, 0.9, "supported"),
        (-0.5, 1.0, "inconclusive"),
        (-1.2, -0.1, "inconclusive"),
        (1.1, 2.0, "contradicted"),
        (-3.0, -1.1, "contradicted"),
        (float("nan"), float("nan"), "inconclusive"),
    ],
)
def test_verdict_within_a_margin(low, high, expected):
    assert intervals.verdict_within(low, high, 1.0) == expected
