"""Intervals of a score and of a difference, and the verdict that they support.

Three kinds: Student's t over seeds or folds (few values, assumed independent), the
percentile bootstrap over test items (many values, nothing assumed of their shape), and
Wilson's for the share of items that are right, which says something at 0 and at 1 too.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy import special

Verdict = Literal["supported", "contradicted", "inconclusive"]

# One value for each row of item indices, which is one resample of the test set.
Statistic = Callable[
    [Int[np.ndarray, "resamples items"]], Float[np.ndarray, " resamples"]
]

_CHUNK = 1 << 16  # indices drawn at once: what a statistic makes of them stays in cache


@dataclasses.dataclass(frozen=True)
class Interval:
    """A value and its interval; `low` and `high` are nan where none can be given."""

    mean: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an interval: one value alone has none."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def bounds(self) -> list[float] | None:
        """`[low, high]` as `results.json` holds it, None where there is none."""
        return [self.low, self.high] if self.known else None

    def __str__(self) -> str:
        if self.known:
            return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"
        return f"{self.mean:.4g} [no interval]"


def t_interval(
    values: Sequence[float] | Float[np.ndarray, " values"], level: float = 0.95
) -> Interval:
    """Student-t interval of the mean of independent values, one a seed or fold.

    One value gives its mean and no interval; no value gives nan. A nan among the
    values makes the result nan: a failed seed must not vanish from a mean.
    """
    values = np.asarray(values, np.float64)
    n = len(values)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan)
    mean = float(np.mean(values))
    if n == 1:
        return Interval(mean, math.nan, math.nan)
    # stdtrit is the quantile function of Student's t; scipy.stats takes 1 s to import.
    quantile = float(special.stdtrit(n - 1, (1 + level) / 2))
    half = quantile * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half)


def paired_t(
    first: Sequence[float] | Float[np.ndarray, " values"],
    second: Sequence[float] | Float[np.ndarray, " values"],
    level: float = 0.95,
) -> Interval:
    """Student-t interval of the mean of `first - second`, paired by seed or fold."""
    if len(first) != len(second):
        raise ValueError(
            f"paired values must be as many: {len(first)} against {len(second)}"
        )
    return t_interval(np.subtract(first, second, dtype=np.float64), level)


def sum_of_means(
    terms: Sequence[tuple[float, Sequence[float] | Float[np.ndarray, " _"]]],
    level: float = 0.95,
) -> Interval:
    """A weighted sum of means over runs of independent systems, by Welch's interval.

    Weights 1 and -1 give Welch's t interval of a difference. A system of one run, as
    one that is not trained, has no spread; without any spread there are no bounds.
    """
    whole = float(sum(weight * np.mean(values) for weight, values in terms))
    parts = [
        (weight**2 * np.var(values, ddof=1) / len(values), len(values) - 1)
        for weight, values in terms
        if len(values) > 1
    ]
    variance = float(sum(part for part, _ in parts))
    if variance == 0:
        return Interval(whole, math.nan, math.nan)
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    half = float(special.stdtrit(freedom, (1 + level) / 2)) * math.sqrt(variance)
    return Interval(whole, whole - half, whole + half)


def wilson(hits: int, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval of the proportion `hits / n`; nan where `n` is 0.

    Unlike a bootstrap it has a width where no item is right, or every one.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"hits is {hits}; expected 0 to {n}")
    if n == 0:
        return Interval(math.nan, math.nan, math.nan)
    share = hits / n
    square = float(special.ndtri((1 + level) / 2)) ** 2
    middle = (share + square / (2 * n)) / (1 + square / n)
    spread = math.sqrt(square * (share * (1 - share) / n + square / (4 * n * n)))
    half = spread / (1 + square / n)
    low = 0.0 if hits == 0 else middle - half
    return Interval(share, low, 1.0 if hits == n else middle + half)


def bootstrap(
    statistic: Statistic,
    n: int,
    *,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
) -> Interval:
    """Percentile bootstrap over `n` test items.

    `statistic` gets whole blocks of resamples, so that it can be one array program:
    `bootstrap(lambda rows: hits[rows].mean(-1), len(hits))`. `mean` of the result is
    the statistic of the items themselves. Resamples in which it is undefined (nan: a
    correlation of constants) are left out; `resamples=0` gives no interval.
    """
    if n == 0:
        return Interval(math.nan, math.nan, math.nan)
    whole = float(statistic(np.arange(n)[np.newaxis])[0])
    if n == 1 or resamples == 0:
        return Interval(whole, math.nan, math.nan)
    rng = np.random.default_rng(seed)
    rows = max(1, _CHUNK // n)
    drawn = np.concatenate(
        [
            statistic(rng.integers(0, n, (min(rows, resamples - start), n)))
            for start in range(0, resamples, rows)
        ]
    )
    drawn = drawn[~np.isnan(drawn)]
    if math.isnan(whole) or drawn.size == 0:
        return Interval(whole, math.nan, math.nan)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(whole, float(low), float(high))


def mean_of(parts: Sequence[Interval]) -> Interval:
    """The mean of independent figures, each with its interval.

    Distances to the bounds add as standard errors do: by their squares, upwards and
    downwards apart. None where a part has none.
    """
    if not parts:
        return Interval(math.nan, math.nan, math.nan)
    mean = float(np.mean([part.mean for part in parts]))
    below = math.sqrt(sum((part.mean - part.low) ** 2 for part in parts))
    above = math.sqrt(sum((part.high - part.mean) ** 2 for part in parts))
    return Interval(mean, mean - below / len(parts), mean + above / len(parts))


def mean_together(parts: Sequence[Interval]) -> Interval:
    """The mean of figures over the same test items, as of one table a seed.

    They move together from resample to resample, so distances to the bounds are
    averaged: the width is right for figures that move as one, and too wide for others.
    None where a part has none.
    """
    if not parts:
        return Interval(math.nan, math.nan, math.nan)
    means = (np.mean([getattr(p, n) for p in parts]) for n in ("mean", "low", "high"))
    return Interval(*map(float, means))


def with_spread(items: Interval, runs: Interval) -> Interval:
    """A mean over seeds or folds, uncertain by its test items and by the runs too.

    The two are crossed, and their errors add by squares, upwards and downwards apart:

        mean +- sqrt(distance of `items`^2 + distance of `runs`^2)

    Args:
      items: the mean over runs, with an interval over the items of the test.
      runs: the same mean, with an interval over runs; where there is none (one run)
        that of the items is left as it is.
    """
    if not runs.known:
        return items
    below = math.hypot(items.mean - items.low, runs.mean - runs.low)
    above = math.hypot(items.high - items.mean, runs.high - runs.mean)
    return Interval(items.mean, items.mean - below, items.mean + above)


def paired_bootstrap(
    first: Statistic,
    second: Statistic,
    n: int,
    *,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
) -> Interval:
    """Percentile bootstrap of `first - second`, both on the same resamples."""
    return bootstrap(
        lambda rows: first(rows) - second(rows),
        n,
        seed=seed,
        resamples=resamples,
        level=level,
    )


def crossed_bootstrap(
    values: Float[np.ndarray, " items"],
    units: Int[np.ndarray, "items 2"],
    *,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
) -> Interval:
    """Bootstrap of the mean of items that are made of two units each (Owen 2007).

    A unit is in many items, which are then no independent draws: an analogy is made of
    two pairs of words, and each pair is asked with all others. Units are drawn, and an
    item counts as often as its first was drawn times as often as its second was:

        sum_i c[u_i] c[v_i] x_i / sum_i c[u_i] c[v_i]

    Args:
      values: one an item.
      units: the numbers of its two units.
      seed: of the draws.
      resamples: how many.
      level: of the interval.
    """
    _, places = np.unique(units, return_inverse=True)
    first, second = places.reshape(-1, 2).T
    n = int(places.max(initial=-1)) + 1
    totals, items = np.zeros((n, n)), np.zeros((n, n))
    np.add.at(totals, (first, second), values)
    np.add.at(items, (first, second), 1.0)

    def statistic(rows: Int[np.ndarray, "resamples units"]) -> np.ndarray:
        drawn = times_drawn(rows, n).astype(np.float64)
        weight = np.einsum("ru,ru->r", drawn @ items, drawn)
        total = np.einsum("ru,ru->r", drawn @ totals, drawn)
        return np.divide(
            total, weight, out=np.full(len(rows), np.nan), where=weight > 0
        )

    return bootstrap(statistic, n, seed=seed, resamples=resamples, level=level)


def times_drawn(
    rows: Int[np.ndarray, "resamples draws"], n: int
) -> Int[np.ndarray, "resamples n"]:
    """How often each of n items is in each resample."""
    shifted = rows + n * np.arange(len(rows))[:, np.newaxis]
    return np.bincount(shifted.ravel(), minlength=len(rows) * n).reshape(-1, n)


def bounds_text(low: float, high: float) -> str:
    """An interval as printed tables have it; `none` where there is none."""
    if math.isnan(low) or math.isnan(high):
        return "none"
    return f"[{low:.3f}, {high:.3f}]"


def verdict(low: float, high: float) -> Verdict:
    """What the interval of a paired difference, claimed to be positive, says.

    Supported when it lies above 0, contradicted when it lies below, else inconclusive;
    so is a missing interval (nan).
    """
    if low > 0:
        return "supported"
    if high < 0:
        return "contradicted"
    return "inconclusive"


def verdict_within(low: float, high: float, margin: float) -> Verdict:
    """What the interval of a difference, claimed to be within a margin of 0, says.

    Supported when all of it is, contradicted when none is, else inconclusive; so is a
    missing interval (nan).
    """
    if -margin < low and high < margin:
        return "supported"
    if low > margin or high < -margin:
        return "contradicted"
    return "inconclusive"
