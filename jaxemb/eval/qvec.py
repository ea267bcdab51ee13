"""QVEC: do the dimensions of a table line up with linguistic features of words?

QVEC (Tsvetkov et al. 2015) adds up, over dimensions, the highest Pearson correlation
with any feature; the mean over dimensions compares tables of different width. QVEC-CCA
(2016) is the first canonical correlation of the two matrices, whose rows are brought to
length one first, as the authors' program does. The vocabulary is what both sides have.

Intervals are Student's t over a jackknife that leaves out a group of words at a time: a
bootstrap repeats words, which raises maxima and canonical correlations by itself.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from jaxemb.data.features import WordFeatures
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import intervals, lookup
from jaxemb.eval.intervals import Interval
from jaxemb.eval.lookup import Case


@dataclasses.dataclass(frozen=True)
class Qvec:
    """The scores of one table; nan where there is none."""

    total: float  # sum over dimensions of the highest correlation
    mean: float  # the same, a dimension
    low: float  # jackknife interval of `mean`, over words
    high: float
    cca: float  # first canonical correlation
    cca_low: float
    cca_high: float
    cca_mean: float  # of all canonical correlations
    covered: int  # words that both sides have
    words: int  # of the features
    dim: int
    constant: int  # dimensions with one value for all words; they add 0
    restrict: int | None
    case: str
    recased: int  # words found only in another case than written

    def cells(self) -> dict[str, str]:
        """The fields as the columns of a printed table."""
        constant = f" ({self.constant} constant)" if self.constant else ""
        return {
            "qvec": f"{self.total:.3f}",
            "mean": f"{self.mean:.4f}",
            "95 % interval": intervals.bounds_text(self.low, self.high),
            "cca": f"{self.cca:.4f}",
            "its interval": intervals.bounds_text(self.cca_low, self.cca_high),
            "mean cca": f"{self.cca_mean:.4f}",
            "covered": f"{self.covered}/{self.words}",
            "dimensions": f"{self.dim}{constant}",
            "case": lookup.case_text(self.case, self.recased),
        }


class Aligned(NamedTuple):
    """Rows of the table and of the features, of the words that both have."""

    rows: Float[np.ndarray, "words dim"]
    features: Float[np.ndarray, "words features"]
    recased: int


def qvec(
    vectors: WordVectors,
    features: WordFeatures,
    *,
    others: Sequence[WordVectors] = (),
    restrict: int | None = None,
    case: Case = "fallback",
    groups: int = 20,
    level: float = 0.95,
    seed: int = 0,
) -> Qvec:
    """QVEC and QVEC-CCA of a table.

    Args:
      vectors: the table under test.
      features: words and their linguistic features.
      others: count only words that these tables have too.
      restrict: know only this many first rows.
      case: how words are looked up; see `Case`.
      groups: of the jackknife that gives the intervals; 0 for none.
      level: of the intervals.
      seed: of the order in which words are dealt into groups.

    Returns:
      The scores; nan where there are too few words for one. Canonical correlations
      need more words than dimensions and features together: with fewer they are 1,
      whatever the table.
    """
    x, y, recased = align(vectors, features, others, restrict, case)
    best = _best_correlations(x, y)
    canonical = canonical_correlations(_unit(x), _unit(y))
    first = float(canonical[0]) if canonical.size else math.nan
    parts = _groups(len(x), groups, seed)

    def without(score, x, y):
        return [score(x[kept], y[kept]) for kept in parts]

    mean = float(np.mean(best)) if best.size else math.nan
    aligned = _jackknife(mean, without(_mean_best, x, y), level)
    joined = _jackknife(first, without(_first, _unit(x), _unit(y)), level)
    return Qvec(
        total=float(np.sum(best)) if best.size else math.nan,
        mean=aligned.mean,
        low=aligned.low,
        high=aligned.high,
        cca=joined.mean,
        cca_low=joined.low,
        cca_high=joined.high,
        cca_mean=float(np.mean(canonical)) if canonical.size else math.nan,
        covered=len(x),
        words=len(features.words),
        dim=vectors.dim,
        constant=int(np.sum(np.ptp(x, axis=0) == 0)) if len(x) else vectors.dim,
        restrict=restrict,
        case=case,
        recased=recased,
    )


def compare_qvec(
    first: WordVectors,
    second: WordVectors,
    features: WordFeatures,
    *,
    restrict: int | None = None,
    case: Case = "fallback",
    groups: int = 20,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Interval, Interval]:
    """QVEC's mean and QVEC-CCA of `first` less those of `second`, with intervals.

    On the words that both tables have; arguments as for `qvec`.
    """
    x, y, _ = align(first, features, (second,), restrict, case)
    other, _, _ = align(second, features, (first,), restrict, case)
    parts = _groups(len(x), groups, seed)
    differences = []
    for score, sides in (
        (_mean_best, (x, other, y)),
        (_first, (_unit(x), _unit(other), _unit(y))),
    ):

        def less(kept, score=score, sides=sides) -> float:
            ours, theirs, known = (side[kept] for side in sides)
            return score(ours, known) - score(theirs, known)

        left_out = [less(kept) for kept in parts]
        differences.append(_jackknife(less(np.arange(len(x))), left_out, level))
    return differences[0], differences[1]


def align(
    vectors: WordVectors,
    features: WordFeatures,
    others: Sequence[WordVectors] = (),
    restrict: int | None = None,
    case: Case = "fallback",
) -> Aligned:
    """The rows of both sides for the words that all have, in alphabetical order.

    A row of zeros is a row like any other here: correlations are over words.
    """
    table = lookup.first_rows(vectors, restrict)
    found = lookup.look_up(table, features.words, case)
    known = found.rows >= 0
    for other in others:
        other = lookup.first_rows(other, restrict)
        known = known & (lookup.look_up(other, features.words, case).rows >= 0)
    place = {word: i for i, word in enumerate(features.words)}
    order = [
        place[w] for w, is_known in zip(found.words, known, strict=True) if is_known
    ]
    rows = table.matrix[found.rows[known]].astype(np.float64)
    return Aligned(rows, features.matrix[order], found.recased)


def canonical_correlations(
    x: Float[np.ndarray, "words dim"], y: Float[np.ndarray, "words features"]
) -> Float[np.ndarray, " correlations"]:
    """Canonical correlations, highest first; none where words are too few to tell.

    By orthonormal bases of both centred column spaces, whose product has them as its
    singular values: no covariance is formed or inverted, so that columns that depend
    on each other do no harm.
    """
    if len(x) < 2:
        return np.zeros(0)
    basis_x, basis_y = _basis(x), _basis(y)
    ranks = basis_x.shape[1], basis_y.shape[1]
    if min(ranks) == 0 or sum(ranks) > len(x) - 1:
        return np.zeros(0)
    values = np.linalg.svd(basis_x.T @ basis_y, compute_uv=False)
    return np.clip(values, 0.0, 1.0)


def _basis(columns: Float[np.ndarray, "words dim"]) -> Float[np.ndarray, "words rank"]:
    centred = columns - columns.mean(axis=0)
    scale = np.max(np.abs(centred), axis=0)
    centred = centred[:, scale > 1e-12 * np.maximum(1e-300, np.max(np.abs(columns)))]
    if not centred.shape[1]:
        return centred
    orthogonal, triangle = np.linalg.qr(centred)
    left, values, _ = np.linalg.svd(triangle, full_matrices=False)
    tolerance = values[0] * max(centred.shape) * np.finfo(np.float64).eps
    return orthogonal @ left[:, values > tolerance]


def _best_correlations(
    x: Float[np.ndarray, "words dim"], y: Float[np.ndarray, "words features"]
) -> Float[np.ndarray, " scored"]:
    """The highest correlation of each dimension; none where no pair has one."""
    if len(x) < 2:
        return np.zeros(0)
    units = []
    for columns in (x, y):
        constant = np.ptp(columns, axis=0) == 0
        centred = np.where(constant, 0.0, columns - columns.mean(axis=0))
        norms = np.linalg.norm(centred, axis=0)
        units.append(centred / np.where(norms == 0, 1.0, norms))
    if not np.any(units[0]) or not np.any(units[1]):
        return np.zeros(0)
    return np.max(units[0].T @ units[1], axis=1)


def _mean_best(x, y) -> float:
    best = _best_correlations(x, y)
    return float(np.mean(best)) if best.size else math.nan


def _first(x, y) -> float:
    canonical = canonical_correlations(x, y)
    return float(canonical[0]) if canonical.size else math.nan


def _unit(rows: Float[np.ndarray, "words dim"]) -> Float[np.ndarray, "words dim"]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms == 0, 1.0, norms)


def _groups(words: int, groups: int, seed: int) -> list[Int[np.ndarray, " kept"]]:
    """The words that are kept when each group in turn is left out."""
    if groups < 2 or words < groups:
        return []
    group = np.random.default_rng(seed).permutation(words) % groups
    return [np.flatnonzero(group != i) for i in range(groups)]


def _jackknife(value: float, left_out: Sequence[float], level: float) -> Interval:
    n = len(left_out)
    if n < 2 or math.isnan(value) or any(map(math.isnan, left_out)):
        return Interval(value, math.nan, math.nan)
    error = math.sqrt((n - 1) * float(np.var(left_out)))
    half = float(special.stdtrit(n - 1, (1 + level) / 2)) * error
    return Interval(value, value - half, value + half)
