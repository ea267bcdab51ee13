import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from jaxemb.analysis import delta, figures

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    root = ElementTree.fromstring(figures.to_svg(figure))
    return [node.text for node in root.iter(f"{SVG}text")]


def history(shift=0.0, steps=range(10, 60, 10)):
    return [{"step": s, "train/loss": 1 / s + shift} for s in steps]


def curves():
    return figures.learning_curves(
        {"fixed": [history(), history(0.2)], "delta <x>": [history(0.4)]}, "train/loss"
    )


def shifted():
    before = (delta.Neighbour("good", 0.5, 1), delta.Neighbour("yet", 0.4, -1))
    after = (delta.Neighbour("yet", 0.7, -1), delta.Neighbour("bad", -0.2, -1))
    return figures.neighbour_shift(delta.NeighbourShift("not", before, after))


def made():
    table = np.random.default_rng(0).normal(size=(300, 4))
    table[:100] = 0
    return table


def histogram():
    return figures.norm_histogram(delta.norm_histogram(made()))


def bars():
    rows = [
        {"name": "a", "metric": "acc", "measured": 1.0, "interval": [0.5, 1.5]},
        {"name": "b", "metric": "acc", "measured": 2.0, "interval": None},
    ]
    rows = [{**rows[0], "published": None}, {**rows[1], "published": 1.9}]
    return figures.intervals(rows)


@pytest.mark.parametrize("draw", [curves, shifted, histogram, bars])
def test_the_same_figure_is_the_same_bytes_and_global_state_is_left_alone(draw):
    before = dict(matplotlib.rcParams)
    first, second = figures.to_svg(draw()), figures.to_svg(draw())
    assert first == second
    assert dict(matplotlib.rcParams) == before
    assert "<dc:date>" not in first


def test_learning_curves_name_their_arms():
    found = texts(curves())
    assert {"fixed", "delta <x>", "step"} <= set(found)
    assert any("train/loss" in t and "2 runs" in t for t in found)


def test_curves_over_seeds_are_the_mean_where_all_have_values():
    first = history(steps=range(10, 60, 10))
    second = history(1.0, steps=range(20, 90, 10))
    [axes] = figures.learning_curves({"arm": [first, second]}, "train/loss").axes
    [line] = axes.get_lines()
    np.testing.assert_array_equal(line.get_xdata(), [20, 30, 40, 50])
    steps = np.array([20, 30, 40, 50])
    np.testing.assert_allclose(line.get_ydata(), 1 / steps + 0.5)
    assert len(axes.collections) == 1  # the band


def test_curves_pass_over_other_metrics_nan_and_absent_arms():
    lines = [{"step": 1, "a": 1.0}, {"step": 2, "b": 5.0}, {"step": 3, "a": None}]
    lines += [{"step": 4, "a": float("nan")}, {"step": 5, "a": 2.0}]
    figure = figures.learning_curves({"arm": [lines], "other": [[]]}, "a")
    [line] = figure.axes[0].get_lines()
    np.testing.assert_array_equal(line.get_xdata(), [1, 5])
    assert figures.to_svg(figures.learning_curves({}, "a"))


def test_long_curves_are_thinned():
    lines = [{"step": s, "a": float(s)} for s in range(5000)]
    [line] = figures.learning_curves({"arm": [lines]}, "a").axes[0].get_lines()
    x = np.asarray(line.get_xdata())
    assert len(x) <= 400 and x[0] == 0 and x[-1] == 4999


def test_neighbour_shift_marks_sides_and_joins_what_stays():
    figure = shifted()
    found = texts(figure)
    assert {"+ good", "− yet", "− bad", "before", "after", "−0.20"} <= set(found)
    joined = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 2]
    assert len(joined) == 1  # only "yet" is on both sides


def test_histogram_tells_the_zeros_and_claims_no_movement():
    [title] = [t for t in texts(histogram()) if "row norms" in t]
    assert title.endswith("200 non-zero rows, 100 exactly zero")


def test_published_values_are_ticks_only_where_there_are_any():
    row = {"name": "a", "metric": "acc", "measured": 1.0, "interval": [0.5, 1.5]}
    assert "tick" not in figures.intervals_key([row, {**row, "published": None}])
    rows = [row, {**row, "published": 1.9}]
    assert "upright tick: published" in figures.intervals_key(rows)
    ticks = [len(figures.intervals(r).axes[0].get_lines()) for r in ([row], rows[1:])]
    assert ticks[1] - ticks[0] == 1


def test_long_titles_are_not_cut_off():
    rows = [
        {"name": f"glove-100d-subset/delta-1e-{i}", "measured": 0.1 * i, "interval": []}
        for i in range(3)
    ]
    title = "Spearman on SimLex-999 (999 of 999 pairs) with " + 9 * "more words "
    metric = "a/metric/with/a/long/name/" * 2
    seeds = [[{"step": s, metric: s + seed} for s in (1, 2)] for seed in (0, 1)]
    for figure in (
        figures.intervals(rows, title),
        figures.learning_curves({"arm": seeds}, metric),
        figures.norm_histogram(delta.norm_histogram(made()), title),
    ):
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        shown = [t for t in figure.findobj(Text) if t.get_text() and t.get_visible()]
        [head] = [t for t in shown if t.get_text().count("\n")]
        box = head.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        assert box.y0 >= figure.axes[0].get_window_extent().y1


def test_save_writes_the_caption_beside(tmp_path):
    path = figures.save(bars(), tmp_path / "figures" / "bars.svg", "What it shows. ")
    assert path.read_text() == figures.to_svg(bars())
    assert path.with_suffix(".txt").read_text() == "What it shows.\n"
