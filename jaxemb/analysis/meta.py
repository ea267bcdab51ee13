"""What meta-embeddings are supervised by, and how fast they are learned."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy import special

from jaxemb.analysis import figures
from jaxemb.eval import intervals


class Spread(NamedTuple):
    """Quartiles of some scores, and Tukey's whiskers."""

    low: float  # the least score within 1.5 boxes of the lower quartile
    quartile: float
    median: float
    third: float
    high: float


def spread(scores: Float[np.ndarray, " scores"]) -> Spread:
    """The five numbers of a box plot."""
    first, median, third = np.quantile(scores, [0.25, 0.5, 0.75])
    reach = 1.5 * (third - first)
    inside = scores[(scores >= first - reach) & (scores <= third + reach)]
    numbers = inside.min(), first, median, third, inside.max()
    return Spread(*(float(number) for number in numbers))


def score_distributions(lists: Mapping[str, Float[np.ndarray, " _"]]) -> Figure:
    """Box plots of what people said, one a list."""
    return figures.boxes(
        {name: spread(scores) for name, scores in lists.items()},
        "what people said, from 0 to 1",
    )


def early(curves: Float[np.ndarray, "seeds epochs"], first: int) -> list[float]:
    """How fast each seed learns: the mean of its first epochs less its own best epoch.

    0 for what is at its best from the start, and the lower the longer the way that is
    left. A system that is better all along is no faster by that: its level cancels.
    """
    return (curves[:, :first].mean(axis=1) - curves.max(axis=1)).tolist()


def variance_ratio(
    first: Float[np.ndarray, " values"],
    second: Float[np.ndarray, " _"],
    level: float = 0.95,
) -> tuple[float, float, float]:
    """`var(first) / var(second)` and its interval by the F distribution.

    nan where either has fewer than two values, or the second does not vary.
    """
    if min(len(first), len(second)) < 2 or np.ptp(second) == 0:
        return np.nan, np.nan, np.nan
    ratio = float(np.var(first, ddof=1) / np.var(second, ddof=1))
    degrees = len(first) - 1, len(second) - 1
    bounds = [special.fdtri(*degrees, p) for p in ((1 + level) / 2, (1 - level) / 2)]
    return ratio, ratio / float(bounds[0]), ratio / float(bounds[1])


def learning_curves(
    curves: Mapping[str, Float[np.ndarray, "_ epochs"]], title: str
) -> Figure:
    """Scores against epochs, the mean of seeds with a band of 95 %."""
    lines = {}
    for name, values in curves.items():
        bands = [intervals.t_interval(column) for column in values.T]
        epochs: Sequence[float] = list(range(1, values.shape[1] + 1))
        mean = [band.mean for band in bands]
        if bands[0].known:
            low, high = [b.low for b in bands], [b.high for b in bands]
            lines[name] = figures.Curve(epochs, mean, low, high)
        else:
            lines[name] = figures.Curve(epochs, mean)
    return figures.curves(lines, title, x_label="epoch")
