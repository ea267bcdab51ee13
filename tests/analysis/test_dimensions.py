"""What components are worth, in a world where it is known."""

import numpy as np
import pytest

from jaxemb.analysis import dimensions, figures
from jaxemb.data import synthetic
from jaxemb.errors import InputError
from jaxemb.eval import sentences, validation
from jaxemb.eval.intervals import Interval
from jaxemb.spaces.components import Components

ROWS = 9000
DIM, DECIDING = 24, 21


class World:
    """Sentences of which component 21 of 24 decides the class, and a split of them."""

    def __init__(self):
        made = synthetic.planted_components(num_sentences=ROWS)
        assert (made.vectors.dim, made.deciding) == (DIM, DECIDING)
        self.rows = made.vectors.matrix.astype(np.float64)
        self.components = Components.of(self.rows)
        self.directions = made.directions
        part = np.arange(ROWS) % 3
        self.test = sentences.SentenceTest(
            "planted",
            [one.tokens for one in made.sentences],
            np.array([one.label for one in made.sentences]),
            2,
            validation.split(*(part == p for p in range(3))),
        )
        self.bags = self.test.bags(made.vectors)

    def accuracy(self, space):
        return self.test.outcome(self.bags, space).fields["accuracy"]


@pytest.fixture(scope="module")
def world():
    return World()


def test_the_world_is_as_planted(world):
    falling = world.components.variances
    assert np.all(np.diff(falling) < 0)
    found = np.abs(np.sum(world.components.directions * world.directions, axis=0))
    np.testing.assert_allclose(found, 1, atol=1e-4)
    with pytest.raises(InputError, match="1 <= deciding <= dim < num_words"):
        synthetic.planted_components(deciding=25)


def test_the_block_of_least_variance_wins_where_it_decides(world):
    blocks = dimensions.block_split_eval(world.components, world.rows, world.accuracy)
    shares = dimensions.variance_shares(world.components)
    assert shares["T"] > shares["M"] > shares["B"]
    assert sum(shares.values()) == pytest.approx(1)
    assert blocks["B"] > 0.95
    assert abs(blocks["T"] - 0.5) < 0.03
    assert abs(blocks["M"] - 0.5) < 0.03


def test_at_variance_one_a_block_does_not_pay_for_its_scale(world):
    """Raw, a thousandth of the scale costs accuracy; standardised it costs nothing."""
    small = world.rows / 1000
    components = Components.of(small)
    raw = dimensions.block_split_eval(components, small, world.accuracy)
    even = dimensions.block_split_eval(
        components, small, world.accuracy, standardise=True
    )
    plain = dimensions.block_split_eval(
        world.components, world.rows, world.accuracy, standardise=True
    )
    assert even["B"] == pytest.approx(plain["B"], abs=1e-3)
    assert even["B"] > 0.95 > raw["B"]
    projected = world.components.project(world.rows, slice(None))
    scaled = dimensions.standardised(world.components, projected)
    np.testing.assert_allclose(scaled.var(axis=0), 1, rtol=1e-6)


def test_a_component_without_variance_stays_zero():
    rows = np.random.default_rng(0).normal(size=(50, 4)) * np.array([[2, 1, 1, 0]])
    components = Components.of(rows)
    scaled = dimensions.standardised(components, components.project(rows, slice(None)))
    np.testing.assert_allclose(scaled[:, :3].var(axis=0), 1)
    np.testing.assert_array_equal(scaled[:, 3], 0)


def test_ppa_destroys_what_it_removes_and_nothing_else(world):
    counts = 0, DECIDING - 1, DECIDING
    found = dimensions.ppa_eval(world.components, world.rows, world.accuracy, counts)
    assert found[0] > 0.95
    assert found[DECIDING - 1] > 0.95
    assert abs(found[DECIDING] - 0.5) < 0.03


def test_the_curve_rises_where_the_deciding_component_comes_in(world):
    widths = DECIDING - 1, DECIDING, DIM
    curve = dimensions.cumulative_pc_curve(
        world.components, world.rows, world.accuracy, widths
    )
    assert list(curve) == list(widths)
    assert abs(curve[DECIDING - 1] - 0.5) < 0.03
    assert curve[DECIDING] > 0.95
    every = world.accuracy(world.rows)
    assert curve[DIM] == pytest.approx(every, abs=1e-9)


def test_a_single_component_is_found_whatever_its_variance(world):
    projected = world.components.project(world.rows, slice(None))
    features = world.test.features(world.bags, projected)[:600]
    labels = world.test.labels[:600]
    plan = validation.rotated([str(i % 10) for i in range(600)])
    probe = dimensions.single_pc_probe(features, labels, 2, plan, resamples=200)
    assert probe.peak == DECIDING
    assert probe.accuracies[DECIDING - 1] > 0.95
    others = np.delete(probe.accuracies, DECIDING - 1)
    assert others.max() < 0.6
    assert probe.by_third["B"] > probe.by_third["T"]
    assert probe.rank_correlation.low < probe.rank_correlation.mean
    assert probe.majority == pytest.approx(max(np.mean(labels), 1 - np.mean(labels)))
    drawn = dimensions.probe_figure({"planted": probe})
    [line] = [one for one in drawn.axes[0].lines if one.get_label() == "planted"]
    x, y = line.get_data()
    assert x[np.argmax(y)] == DECIDING


def test_dominance_counts_wins_and_clear_ones():
    gaps = {
        ("M", "T"): [Interval(1.0, 0.5, 2.0), Interval(2.0, -1.0, 4.0)],
        ("B", "T"): [Interval(-1.0, -2.0, -0.5), Interval(0.0, -1.0, 1.0)],
    }
    first, second = dimensions.dominance_counts(gaps)
    assert (first.lower, first.higher) == ("M", "T")
    assert (first.wins, first.clear, first.tests) == (2, 1, 2)
    assert (second.wins, second.clear, second.tests) == (0, 0, 2)
    assert dimensions.block_pairs() == [("M", "T"), ("B", "T"), ("B", "M")]


def test_figures_say_what_they_show(world):
    lines = {f"list {i}": {10: 1.0 * i, 20: 2.0 * i} for i in range(8)}
    drawn = dimensions.curve_figure(lines, "scores", mark=15)
    [axes] = drawn.axes
    x, y = axes.lines[3].get_data()
    np.testing.assert_array_equal(x, [10, 20])
    np.testing.assert_array_equal(y, [3, 6])
    assert axes.lines[8].get_xdata()[0] == 15
    looks = {(one.get_color(), one.get_linestyle()) for one in axes.lines[:8]}
    assert len(looks) == 8
    names = {text.get_text() for text in drawn.legends[0].get_texts()}
    assert names == set(lines)
    share = dimensions.variance_figure(world.components)
    assert share.axes[0].lines[0].get_ydata()[-1] == pytest.approx(1)
    assert "share of the variance" in figures.to_svg(share)
