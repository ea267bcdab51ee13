"""What a geometric meta-embedding shows, against planted answers."""

import numpy as np
import pytest

from jaxemb.analysis import figures, geometry
from jaxemb.eval.intervals import Interval


def test_alignment_of_copies_and_of_strangers():
    rng = np.random.default_rng(0)
    space = rng.normal(size=(300, 12))
    assert geometry.alignment(space, 3 * space) == pytest.approx((1.0, 1.0))
    stranger = geometry.alignment(space, rng.normal(size=(300, 12)))
    assert abs(stranger.cosine) < 0.1
    assert stranger.found < 0.05
    opposite = geometry.alignment(space, -space)
    assert opposite.cosine == pytest.approx(-1)


def test_figures_say_what_they_show():
    spectrum = figures.to_svg(geometry.metric_spectrum(np.diag([4.0, 2.0, 1.0])))
    assert "eigenvalues of the metric" in spectrum
    scores = {
        c: {
            "mean similarity": Interval(c, c - 1, c + 1),
            "mean analogy": Interval(2.0, 1.0, 3.0),
        }
        for c in (5.0, 0.5)
    }
    path = geometry.regularisation_path(scores)
    [axes] = path.axes
    x, y = axes.lines[0].get_data()
    np.testing.assert_array_equal(x, [0.5, 5.0])
    np.testing.assert_array_equal(y, [0.5, 5.0])
    assert axes.get_xscale() == "log"
    assert {t.get_text() for t in axes.get_legend().get_texts()} == set(scores[5.0])
    gaps = {"RG": Interval(1.0, 0.5, 1.5), "MC": Interval(-1.0, np.nan, np.nan)}
    drawn = geometry.benchmark_differences(gaps)
    labels = [t.get_text() for t in drawn.axes[0].get_yticklabels()]
    assert labels == ["RG", "MC"]
