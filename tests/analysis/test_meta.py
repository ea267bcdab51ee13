"""Spreads and ratios against matplotlib and scipy."""

import numpy as np
from matplotlib import cbook
from scipy import stats

from jaxemb.analysis import figures, meta

RNG = np.random.default_rng(0)


def test_the_five_numbers_are_those_of_matplotlib():
    scores = np.concatenate([RNG.beta(2, 5, 60), [0.99, 1.0]])
    (theirs,) = cbook.boxplot_stats(scores)
    names = "whislo", "q1", "med", "q3", "whishi"
    np.testing.assert_allclose(meta.spread(scores), [theirs[n] for n in names])


def test_the_interval_of_a_ratio_of_variances():
    first, second = RNG.normal(size=6), 2 * RNG.normal(size=9)
    ratio, low, high = meta.variance_ratio(first, second)
    f = stats.f(5, 8)
    expected = np.var(first, ddof=1) / np.var(second, ddof=1)
    np.testing.assert_allclose(
        (ratio, low, high), expected / np.array([1, f.ppf(0.975), f.ppf(0.025)])
    )
    assert np.isnan(meta.variance_ratio(first, second[:1])).all()
    assert np.isnan(meta.variance_ratio(first, np.ones(3))).all()


def test_early_is_the_mean_of_the_first_epochs_less_the_best():
    curves = np.array([[1.0, 2.0, 9.0], [3.0, 5.0, 4.0]])
    assert meta.early(curves, 2) == [-7.5, -1.0]
    assert meta.early(curves + 8.0, 2) == [-7.5, -1.0]  # better, not faster
    assert meta.early(np.full((1, 3), 0.5), 2) == [0.0]


def test_figures_name_what_they_show():
    lists = {"SimLex": RNG.random(50), "RG": RNG.random(20)}
    drawn = figures.to_svg(meta.score_distributions(lists))
    assert "SimLex" in drawn and "RG" in drawn
    curves = {"Meta": RNG.random((3, 4)), "CONC": RNG.random((1, 4))}
    drawn = figures.to_svg(meta.learning_curves(curves, "dev accuracy"))
    assert "dev accuracy" in drawn and "CONC" in drawn
