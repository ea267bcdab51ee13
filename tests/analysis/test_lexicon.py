"""Scores by pair of languages, counted by hand and as a paper counts them."""

import numpy as np
import pytest

from experiments.bli_postprocessing import printed
from jaxemb.analysis import figures, lexicon

SCORES = {
    ("a", "b"): {"old": 1.0, "other": 3.0, "new": 4.0},
    ("a", "c"): {"old": 2.0, "other": 1.0, "new": 2.0},  # a tie is no win
    ("b", "a"): {"old": 5.0, "other": 6.0, "new": 7.0},
}


def test_wins_are_over_all_others_and_strict():
    counted = lexicon.wins(SCORES, "new", over=("old", "other"))
    assert counted == {"a": (1, 2), "b": (1, 1)}
    assert lexicon.wins(SCORES, "new", over=("other",))["a"] == (2, 2)


def test_averages_are_over_targets():
    assert lexicon.per_source_average(SCORES) == {
        "a": {"old": 1.5, "other": 2.0, "new": 3.0},
        "b": {"old": 5.0, "other": 6.0, "new": 7.0},
    }


def test_gains_by_the_types_of_both_sides():
    types = {"a": "x", "b": "y", "c": "y"}
    gains = lexicon.gain_by_type(SCORES, "new", "old", types)
    assert gains == {("x", "y"): (1.5, 2), ("y", "x"): (2.0, 1)}
    figure = lexicon.gain_map(gains)
    [axes, *_] = figure.axes
    shown = np.ma.filled(axes.images[0].get_array(), np.nan)
    np.testing.assert_array_equal(shown, [[np.nan, 1.5], [2.0, np.nan]])
    assert ">nan<" not in figures.to_svg(figure)


def test_the_papers_appendix_has_every_pair_once():
    for size in printed.SIZES:
        scores = printed.appendix(size)
        assert len(scores) == 15 * 14
        assert all(source != target for source, target in scores)
    # Three cells of the appendix, read off the page.
    assert printed.appendix("5k")["BG", "CA"] == {
        printed.SUPERVISED: 43.2,
        printed.SELF_LEARNING: 45.6,
        printed.POSTPROC: 47.3,
    }


def test_what_the_paper_says_twice_is_the_same_but_for_four_figures():
    told = printed.disagreements()
    assert set(told) == {
        "KO, supervised, 5k",
        "KO, self-learning, 5k",
        "mean, supervised, 5k",
        "wins, 1k",
    }
    assert told["wins, 1k"] == (181, 179)
    assert told["KO, supervised, 5k"] == (23.9, pytest.approx(15.44, abs=0.01))
