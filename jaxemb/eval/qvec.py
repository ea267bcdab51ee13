"""QVEC: do the dimensions of a table line up with linguistic features of words?

QVEC (Tsvetkov et al. 2015) adds up, over dimensions, the highest Pearson correlation
with any feature; the mean over dimensions compares tables of different width. QVEC-CCA
(2016) is the mean of all canonical correlations of the two matrices, whose rows are
brought to length one first, as the authors' program computes it. The vocabulary is
what both sides have.

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

    sum: float  # over dimensions, of the highest correlation
    mean: float  # the same, a dimension
    low: float  # jackknife interval of `mean`, over words
    high: float
    cca: float  # mean of all canonical correlations
    cca_low: float  # jackknife interval of `cca`, over words
    cca_high: float
    cca_first: float  # the first canonical correlation
    scored: int  # words that the scores are over
    covered: int  # words of the features that the table has
    total: int  # words of the features
    dim: int
    constant: int  # dimensions with one value for all words; they add 0
    first_rows: int | None
    case: str
    recased: int  # words found only in another case than written
    zero_rows: int  # words whose row is all zeros; they count like any other

    def cells(self) -> dict[str, str]:
        """The fields as the columns of a printed table."""
        constant = f" ({self.constant} constant)" if self.constant else ""
        common = f" ({self.scored} common)" if self.scored < self.covered else ""
        return {
            "qvec": f"{self.sum:.3f}",
            "mean": f"{self.mean:.4f}",
            "95 % interval": intervals.bounds_text(self.low, self.high),
            "cca": f"{self.cca:.4f}",
            "its interval": intervals.bounds_text(self.cca_low, self.cca_high),
            "first": f"{self.cca_first:.4f}",
            "covered": f"{self.covered}/{self.total}{common}",
            "dimensions": f"{self.dim}{constant}",
            "case": lookup.case_text(self.case, self.recased),
        }


class QvecDifference(NamedTuple):
    """The scores of a first table less those of a second, on the words both have."""

    mean: Interval
    cca: Interval
    common: int  # words
    total: int


class Aligned(NamedTuple):
    """Rows of the table and of the features, of the words that all sides have."""

    rows: Float[np.ndarray, "words dim"]
    features: Float[np.ndarray, "words features"]
    found: lookup.Lookup  # words of the features in the table, whatever others have


def qvec(
    vectors: WordVectors,
    features: WordFeatures,
    *,
    others: Sequence[WordVectors] = (),
    first_rows: int | None = None,
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
      first_rows: know only this many first rows.
      case: how words are looked up; see `Case`.
      groups: of the jackknife that gives the intervals; 0 for none.
      level: of the intervals.
      seed: of the order in which words are dealt into groups.

    Returns:
      The scores; nan where there are too few words for one. Canonical correlations
      need more words than dimensions and features together: with fewer they are 1,
      whatever the table.
    """
    x, y, found = align(vectors, features, others, first_rows, case)
    best = _best_correlations(x, y)
    canonical = canonical_correlations(_unit(x), _unit(y))
    parts = _groups(len(x), groups, seed)

    def without(score, x, y):
        return [score(x[kept], y[kept]) for kept in parts]

    aligned = _jackknife(_mean(best), without(_qvec, x, y), level)
    joined = _jackknife(_mean(canonical), without(_cca, _unit(x), _unit(y)), level)
    return Qvec(
        sum=float(np.sum(best)) if best.size else math.nan,
        mean=aligned.mean,
        low=aligned.low,
        high=aligned.high,
        cca=joined.mean,
        cca_low=joined.low,
        cca_high=joined.high,
        cca_first=float(canonical[0]) if canonical.size else math.nan,
        scored=len(x),
        covered=int(np.sum(found.rows >= 0)),
        total=len(features.words),
        dim=vectors.dim,
        constant=int(np.sum(np.ptp(x, axis=0) == 0)) if len(x) else vectors.dim,
        first_rows=first_rows,
        case=case,
        recased=found.recased,
        zero_rows=int(np.sum(found.zero)),
    )


def compare_qvec(
    first: WordVectors,
    second: WordVectors,
    features: WordFeatures,
    *,
    first_rows: int | None = None,
    case: Case = "fallback",
    groups: int = 20,
    level: float = 0.95,
    seed: int = 0,
) -> QvecDifference:
    """QVEC's mean and QVEC-CCA of `first` less those of `second`, with intervals.

    On the words that both tables have; arguments as for `qvec`.
    """
    x, y, _ = align(first, features, (second,), first_rows, case)
    other, _, _ = align(second, features, (first,), first_rows, case)
    parts = _groups(len(x), groups, seed)
    differences = []
    for score, sides in (
        (_qvec, (x, other, y)),
        (_cca, (_unit(x), _unit(other), _unit(y))),
    ):

        def less(kept, score=score, sides=sides) -> float:
            ours, theirs, known = (side[kept] for side in sides)
            return score(ours, known) - score(theirs, known)

        left_out = [less(kept) for kept in parts]
        differences.append(_jackknife(less(np.arange(len(x))), left_out, level))
    mean, cca = differences
    return QvecDifference(mean, cca, len(x), len(features.words))


def align(
    vectors: WordVectors,
    features: WordFeatures,
    others: Sequence[WordVectors] = (),
    first_rows: int | None = None,
    case: Case = "fallback",
) -> Aligned:
    """The rows of both sides for the words that all have, in alphabetical order.

    A row of zeros is a row like any other here: correlations are over words.
    """
    table = lookup.first_rows(vectors, first_rows)
    found = lookup.look_up(table, features.words, case)
    known = found.rows >= 0
    for other in others:
        other = lookup.first_rows(other, first_rows)
        known = known & (lookup.look_up(other, features.words, case).rows >= 0)
    place = {word: i for i, word in enumerate(features.words)}
    order = [
        place[w] for w, is_known in zip(found.words, known, strict=True) if is_known
    ]
    rows = table.matrix[found.rows[known]].astype(np.float64)
    return Aligned(rows, features.matrix[order], found)


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


def _qvec(x, y) -> float:
    return _mean(_best_correlations(x, y))


def _cca(x, y) -> float:
    return _mean(canonical_correlations(x, y))


def _mean(values: Float[np.ndarray, " values"]) -> float:
    return float(np.mean(values)) if values.size else math.nan


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
