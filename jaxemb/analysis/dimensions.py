"""What the principal components of a word space are worth, by their variance.

Spaces made of some of the components are given to any `evaluate`; whatever that returns
(a score, an interval, outcomes of many tests) comes back by component, block or width.
`components` are those of a whole table, `rows` the words that are evaluated.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from jaxemb.analysis import figures
from jaxemb.eval import correlation, intervals, validation
from jaxemb.eval.intervals import Interval
from jaxemb.eval.validation import Labels, Plan
from jaxemb.spaces import components as components_lib
from jaxemb.spaces.components import Components

Rows = Float[np.ndarray, "words dim"]
Result = TypeVar("Result")
Evaluate = Callable[[Float[np.ndarray, "words _"]], Result]


def cumulative_pc_curve(
    components: Components,
    rows: Rows,
    evaluate: Evaluate[Result],
    widths: Iterable[int],
) -> dict[int, Result]:
    """Width k to what the space of the first k components is worth."""
    projected = components.project(rows, slice(None))
    return {width: evaluate(projected[:, :width]) for width in widths}


def block_split_eval(
    components: Components,
    rows: Rows,
    evaluate: Evaluate[Result],
    *,
    standardise: bool = False,
) -> dict[str, Result]:
    """Top, middle and bottom third of the components, each as a space of its own.

    Args:
      components: of the table.
      rows: words.
      evaluate: of a space.
      standardise: whether every component is scaled to variance 1, so that a penalty
        on a classifier's weights has the same meaning in every block.
    """
    projected = components.project(rows, slice(None))
    if standardise:
        projected = standardised(components, projected)
    blocks = components_lib.thirds(rows.shape[1])
    return {name: evaluate(projected[:, block]) for name, block in blocks.items()}


def standardised(components: Components, projected: Rows) -> Rows:
    """All components at variance 1 over the table; one without any variance stays 0."""
    deviations = np.sqrt(components.variances)
    known = deviations > 1e-7 * deviations[0]
    return (
        projected * np.where(known, 1 / np.where(known, deviations, 1), 0)[np.newaxis]
    )


def variance_shares(components: Components) -> dict[str, float]:
    """Block to its share of the variance, `sum_{i in S} lambda_i / sum lambda`."""
    blocks = components_lib.thirds(len(components.variances))
    return {name: components.share(block) for name, block in blocks.items()}


def ppa_eval(
    components: Components,
    rows: Rows,
    evaluate: Evaluate[Result],
    counts: Iterable[int],
    *,
    mean: Literal["vector", "scalar"] = "vector",
) -> dict[int, Result]:
    """Number of components removed (0: the mean alone) to what is left is worth."""
    return {
        count: evaluate(
            components_lib.remove_top(rows, count, mean=mean, components=components)
        )
        for count in counts
    }


@dataclasses.dataclass(frozen=True, eq=False)
class SinglePC:
    """How well each component alone tells the classes of a task."""

    accuracies: Float[np.ndarray, " dim"]
    """Shares, the component of most variance first."""
    rank_correlation: Interval
    """Spearman's rho of accuracy and place by variance, with a bootstrap interval over
    components: above 0 where components of little variance tell more."""
    majority: float
    """What the commonest class would score."""

    @classmethod
    def of(
        cls,
        accuracies: Float[np.ndarray, " dim"],
        majority: float,
        *,
        resamples: int = 1000,
        seed: int = 0,
    ) -> "SinglePC":
        """Correlates accuracies with places.

        Args:
          accuracies: shares, the component of most variance first.
          majority: what the commonest class would score.
          resamples: of the bootstrap.
          seed: of the bootstrap.
        """
        places = np.arange(1, len(accuracies) + 1, dtype=np.float64)
        rho = intervals.bootstrap(
            correlation.spearman_statistic(places, accuracies),
            len(accuracies),
            seed=seed,
            resamples=resamples,
        )
        return cls(accuracies, rho, majority)

    @property
    def peak(self) -> int:
        """The best component, counted from 1; the first of equals."""
        return int(np.argmax(self.accuracies)) + 1

    @property
    def by_third(self) -> dict[str, float]:
        """The mean accuracy of the components of each third."""
        blocks = components_lib.thirds(len(self.accuracies))
        return {name: float(self.accuracies[b].mean()) for name, b in blocks.items()}


def single_pc_probe(
    features: Float[np.ndarray, "rows dim"],
    labels: Labels,
    classes: int,
    plan: Plan,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> SinglePC:
    """Classifies by one component at a time.

    Args:
      features: sentences in the space of the components, a column for each.
      labels: their classes.
      classes: how many there are.
      plan: the protocol.
      resamples: of the bootstrap.
      seed: of the bootstrap.
    """
    accuracies = accuracies_of_each(features, labels, classes, plan)
    majority = validation.majority(labels, plan)
    return SinglePC.of(accuracies, majority, resamples=resamples, seed=seed)


def accuracies_of_each(
    features: Float[np.ndarray, "rows dim"],
    labels: Labels,
    classes: int,
    plan: Plan,
) -> Float[np.ndarray, " dim"]:
    """Shares of tested rows that a classifier of one feature alone gets right."""
    found = validation.cross_validate_each(features, labels, classes, plan)
    return np.array([one.accuracy for one in found])


@dataclasses.dataclass(frozen=True)
class Dominance:
    """How often one block beats another that has more variance."""

    lower: str
    higher: str
    wins: int
    """Tests on which the block of less variance scores higher."""
    clear: int
    """Of these, those whose paired interval lies above 0."""
    tests: int


def dominance_counts(
    gaps: Mapping[tuple[str, str], Sequence[Interval]],
) -> list[Dominance]:
    """Counts, for each pair of blocks, the tests that the lower one wins.

    Args:
      gaps: (lower, higher) to the score of the first less that of the second, a test
        each, with its paired interval.
    """
    return [
        Dominance(
            *(lower, higher),
            wins=sum(gap.mean > 0 for gap in of),
            clear=sum(gap.low > 0 for gap in of),
            tests=len(of),
        )
        for (lower, higher), of in gaps.items()
    ]


def block_pairs() -> list[tuple[str, str]]:
    """Blocks of less variance with those of more: M and T, B and T, B and M."""
    return [(b, a) for a, b in itertools.combinations("TMB", 2)]


def curve_figure(
    curves: Mapping[str, Mapping[int, float]], title: str, *, mark: int | None = None
) -> Figure:
    """Scores against the number of components, a line a test.

    Args:
      curves: test to score by width.
      title: above the figure.
      mark: a width at which an upright line stands.
    """
    lines = {
        name: figures.Curve(list(points), list(points.values()))
        for name, points in curves.items()
    }
    place = None if mark is None else float(mark)
    return figures.curves(lines, title, x_label="first components", mark_x=place)


def probe_figure(probes: Mapping[str, SinglePC]) -> Figure:
    """Accuracy of every component alone against its place by variance."""
    lines, levels = {}, {}
    for name, probe in probes.items():
        places = list(range(1, len(probe.accuracies) + 1))
        lines[name] = figures.Curve(places, (100 * probe.accuracies).tolist())
        levels[name] = 100 * probe.majority
    return figures.curves(
        lines,
        "accuracy of one component alone; dotted: the commonest class",
        x_label="component, that of most variance first",
        levels=levels,
        joined=False,
    )


def variance_figure(components: Components) -> Figure:
    """The share of the variance in the first components."""
    total = np.cumsum(components.variances) / components.variances.sum()
    line = figures.Curve(list(range(1, len(total) + 1)), total.tolist())
    title = "share of the variance in the first components"
    return figures.curves({"variance": line}, title, x_label="first components")
