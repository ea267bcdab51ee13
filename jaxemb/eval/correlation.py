"""Pearson and Spearman correlation of many resamples at once."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from jaxemb.eval.intervals import Statistic


def pearson(
    x: Float[np.ndarray, "resamples items"], y: Float[np.ndarray, "resamples items"]
) -> Float[np.ndarray, " resamples"]:
    """Pearson's r of each row; nan where x or y is constant or has one item."""
    constant = np.all(x == x[:, :1], axis=1) | np.all(y == y[:, :1], axis=1)
    x = x - np.mean(x, axis=1, keepdims=True)
    y = y - np.mean(y, axis=1, keepdims=True)
    # Scaled first, so that tiny or huge values neither vanish nor overflow squared.
    x = x / np.where(constant, 1.0, np.max(np.abs(x), axis=1))[:, np.newaxis]
    y = y / np.where(constant, 1.0, np.max(np.abs(y), axis=1))[:, np.newaxis]
    spread = np.sqrt(np.sum(x * x, axis=1) * np.sum(y * y, axis=1))
    r = np.sum(x * y, axis=1) / np.where(constant, 1.0, spread)
    return np.where(constant, np.nan, np.clip(r, -1.0, 1.0))


def average_ranks(
    codes: Int[np.ndarray, "resamples items"], levels: int
) -> Float[np.ndarray, "resamples items"]:
    """Ranks from 1 within each row, ties sharing their mean rank.

    `codes` are the values' places among the `levels` distinct ones, so that ranks
    come from counting and not from a sort of each resample.
    """
    rows = len(codes)
    places = codes + levels * np.arange(rows)[:, np.newaxis]
    counts = np.bincount(places.ravel(), minlength=rows * levels)
    counts = counts.reshape(rows, levels)
    ranks = np.cumsum(counts, axis=1) - (counts - 1) / 2
    return np.take(ranks, places)


def pearson_statistic(
    x: Float[np.ndarray, " items"], y: Float[np.ndarray, " items"]
) -> Statistic:
    """Pearson's r as `intervals.bootstrap` calls it."""
    return lambda rows: pearson(x[rows], y[rows])


def spearman_statistic(
    x: Float[np.ndarray, " items"], y: Float[np.ndarray, " items"]
) -> Statistic:
    """Spearman's rho as `intervals.bootstrap` calls it; ranks each resample anew."""
    distinct_x, codes_x = np.unique(x, return_inverse=True)
    distinct_y, codes_y = np.unique(y, return_inverse=True)
    codes = (codes_x, len(distinct_x)), (codes_y, len(distinct_y))

    def statistic(rows: np.ndarray) -> np.ndarray:
        # The mean rank is known, and differences to it are sums of halves, so exact.
        middle = (rows.shape[1] + 1) / 2
        first, second = (average_ranks(c[rows], levels) - middle for c, levels in codes)
        return _cosine(
            np.einsum("ri,ri->r", first, second),
            np.einsum("ri,ri->r", first, first),
            np.einsum("ri,ri->r", second, second),
        )

    return statistic


def weighted_spearman(
    x: Float[np.ndarray, " items"], y: Float[np.ndarray, " items"]
) -> Callable[[Int[np.ndarray, "resamples items"]], Float[np.ndarray, " resamples"]]:
    """Spearman's rho where every item counts as often as its weight says.

    For resamples that are drawn elsewhere, as of units that several sets share; a row
    of weights gives what Spearman's rho of the repeated items is.
    """
    sides = [_Levels(x), _Levels(y)]

    def statistic(weights: np.ndarray) -> np.ndarray:
        total = np.sum(weights, axis=1)
        ranks, constant = zip(*(side.ranks(weights) for side in sides), strict=True)
        # The mean rank is known: (total + 1) / 2.
        first, second = (r - (total[:, np.newaxis] + 1) / 2 for r in ranks)
        rho = _cosine(
            np.einsum("ri,ri,ri->r", weights, first, second),
            np.einsum("ri,ri->r", weights, first * first),
            np.einsum("ri,ri->r", weights, second * second),
        )
        return np.where(constant[0] | constant[1], np.nan, rho)

    return statistic


def _cosine(product: np.ndarray, *squares: np.ndarray) -> np.ndarray:
    """A product over the root of both squares; nan where one is 0."""
    spread = squares[0] * squares[1]
    undefined = spread == 0
    cosine = product / np.sqrt(np.where(undefined, 1.0, spread))
    return np.where(undefined, np.nan, np.clip(cosine, -1.0, 1.0))


class _Levels:
    """The order of some values, for ranks under many weights."""

    def __init__(self, values: Float[np.ndarray, " items"]):
        _, self._codes = np.unique(values, return_inverse=True)
        self._order = np.argsort(self._codes)
        self._starts = np.flatnonzero(np.diff(self._codes[self._order], prepend=-1))

    def ranks(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ranks from 1 of repeated items, ties sharing theirs; which rows have one."""
        held = np.add.reduceat(weights[:, self._order], self._starts, axis=1)
        ranks = np.cumsum(held, axis=1) - (held - 1) / 2
        constant = np.count_nonzero(held, axis=1) < 2
        return ranks[:, self._codes], constant
