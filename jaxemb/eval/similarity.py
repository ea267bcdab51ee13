"""Word similarity: do cosines order word pairs as people do?

Every score comes with its coverage and the two choices that move it: what is done with
a word that the table lacks (`oov`), and with one that it has in another case (`case`).
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float

from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import correlation, intervals, lookup
from jaxemb.eval.lookup import Case

OOV = Literal["skip", "zero", "mean", "subword", "common"]
"""A missing word: `skip` its pairs, give it the `zero` or the `mean` vector, or compose
it by `subword` n-grams of a fastText table, and skip it where it has none; `common`
skips every pair that any of the tables compared lacks.
"""


@dataclasses.dataclass(frozen=True)
class Similarity:
    """The score of one table on one set; nan where no score exists."""

    spearman: float
    pearson: float
    low: float  # percentile bootstrap interval of `spearman`, over pairs
    high: float
    covered: int  # pairs of which the table has both words, with a direction
    total: int
    scored: int  # pairs that the score is over
    composed: int  # more pairs that are scored, with a word made of its n-grams
    oov: str
    case: str
    recased: int  # words found only in another case than written
    zero_rows: int  # words whose row is all zeros; they count as missing

    def cells(self) -> dict[str, str]:
        """The fields as the columns of a printed table."""
        composed = f" (+{self.composed} composed)" if self.composed else ""
        if self.oov == "common":
            composed = f" ({self.scored} common)"
        return {
            "spearman": f"{self.spearman:.3f}",
            "95 % interval": intervals.bounds_text(self.low, self.high),
            "pearson": f"{self.pearson:.3f}",
            "covered": f"{self.covered}/{self.total}{composed}",
            "oov": self.oov,
            "case": lookup.case_text(self.case, self.recased),
        }


@dataclasses.dataclass(frozen=True)
class SimilarityDifference:
    """Spearman of a first table less that of a second, on the pairs both cover."""

    first: float
    second: float
    difference: float
    low: float  # paired percentile bootstrap interval of `difference`
    high: float
    common: int
    total: int
    case: str


class ListsDifference(NamedTuple):
    """Changes of Spearman on several lists, and of its mean over them."""

    by_list: dict[str, intervals.Interval]
    mean: intervals.Interval
    values: dict[str, list[float]]  # of each list, one a couple of tables


class _Cosines(NamedTuple):
    cosines: Float[np.ndarray, " pairs"]
    covered: Bool[np.ndarray, " pairs"]
    composed: Bool[np.ndarray, " pairs"]  # not covered, but scored
    recased: int
    zero_rows: int


def word_similarity(
    vectors: WordVectors,
    pairs: Sequence[WordPair],
    *,
    oov: OOV = "skip",
    others: Sequence[WordVectors] = (),
    case: Case = "fallback",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Similarity:
    """Spearman and Pearson correlation of cosines with human scores.

    Args:
      vectors: the table under test.
      pairs: two words and a human score each.
      oov: what a missing word gets; `covered` is counted the same way under each.
      others: the tables compared with, for `oov="common"`.
      case: how words are looked up; see `Case`.
      resamples: of the bootstrap that gives the interval; 0 for none.
      level: of the interval.
      seed: of the resamples; the same seed gives the same interval.

    Returns:
      The score; nan where the table has no pair of the set.
    """
    if oov not in get_args(OOV):
        raise InputError(f"oov is {oov!r}; expected one of {', '.join(get_args(OOV))}")
    result = _cosines(vectors, pairs, oov, case)
    scored = result.covered | result.composed
    used = np.ones_like(scored) if oov in ("zero", "mean") else scored
    for other in others if oov == "common" else ():
        used = used & _cosines(other, pairs, oov, case).covered
    cosines = result.cosines[used]
    human = np.array([pair.score for pair in pairs], np.float64)[used]
    if not np.any(scored & used):  # the policy alone would decide the score
        rho, r = intervals.Interval(math.nan, math.nan, math.nan), math.nan
    else:
        spearman = correlation.spearman_statistic(cosines, human)
        rho = intervals.bootstrap(
            spearman, len(human), seed=seed, resamples=resamples, level=level
        )
        r = float(correlation.pearson(cosines[np.newaxis], human[np.newaxis])[0])
    return Similarity(
        spearman=rho.mean,
        pearson=r,
        low=rho.low,
        high=rho.high,
        covered=int(np.sum(result.covered)),
        total=len(pairs),
        scored=len(human) if np.any(scored & used) else 0,
        composed=int(np.sum(result.composed)),
        oov=oov,
        case=case,
        recased=result.recased,
        zero_rows=result.zero_rows,
    )


def compare_similarity(
    first: WordVectors,
    second: WordVectors,
    pairs: Sequence[WordPair],
    *,
    case: Case = "fallback",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> SimilarityDifference:
    """Spearman of `first` less that of `second`, with a paired bootstrap interval.

    Only pairs that both tables cover count: a table must not win by the hard words it
    lacks.
    """
    ours, theirs = (_cosines(v, pairs, "skip", case) for v in (first, second))
    common = ours.covered & theirs.covered
    human = np.array([pair.score for pair in pairs], np.float64)[common]
    scores = [
        correlation.spearman_statistic(side.cosines[common], human)
        for side in (ours, theirs)
    ]
    n = len(human)
    difference = intervals.paired_bootstrap(
        scores[0], scores[1], n, seed=seed, resamples=resamples, level=level
    )
    whole = np.arange(n)[np.newaxis]
    alone = [float(score(whole)[0]) if n else math.nan for score in scores]
    return SimilarityDifference(
        first=alone[0],
        second=alone[1],
        difference=difference.mean,
        low=difference.low,
        high=difference.high,
        common=n,
        total=len(pairs),
        case=case,
    )


def compare_lists(
    tables: Iterable[tuple[WordVectors, WordVectors]],
    lists: Mapping[str, Sequence[WordPair]],
    *,
    case: Case = "fallback",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> ListsDifference:
    """Spearman of first tables less that of second ones, over lists that share pairs.

    Lists overlap (WS-353 holds its halves and all of MC-30 is from RG-65), so they
    are no independent tests. What is drawn is a pair of words, whatever their order and
    case: it comes with its score in every list that has it, as often as it was drawn.

    Args:
      tables: couples to compare, one a seed or fold; the mean over them is taken in
        every resample.
      lists: name to pairs. Only those that all tables cover count, and lists of which
        two are left.
      case: how words are looked up; see `Case`.
      resamples: of the bootstrap; 0 for no intervals.
      level: of the intervals.
      seed: of the draws.
    """
    cosines = {name: ([], []) for name in lists}
    covered = {name: np.ones(len(pairs), bool) for name, pairs in lists.items()}
    for couple in tables:
        for name, pairs in lists.items():
            for side, vectors in zip(cosines[name], couple, strict=True):
                found = _cosines(vectors, pairs, "skip", case)
                side.append(found.cosines)
                covered[name] &= found.covered
    units: dict[tuple[str, ...], int] = {}
    statistics, values = {}, {}
    for name, pairs in lists.items():
        kept = np.flatnonzero(covered[name]).tolist()
        if len(kept) < 2:
            continue
        human = np.array([pairs[i].score for i in kept], np.float64)
        words = (tuple(sorted(w.lower() for w in pairs[i][:2])) for i in kept)
        places = np.array([units.setdefault(key, len(units)) for key in words])
        gaps = [
            _spearman_gap(a[kept], b[kept], human)
            for a, b in zip(*cosines[name], strict=True)
        ]
        once = np.ones((1, len(kept)), int)
        values[name] = [float(gap(once)[0]) for gap in gaps]
        statistics[name] = _mean_of_drawn(gaps, places)

    def interval(names: Iterable[str]) -> intervals.Interval:
        def statistic(rows: np.ndarray) -> np.ndarray:
            drawn = intervals.times_drawn(rows, len(units))
            return np.mean([statistics[name](drawn) for name in names], axis=0)

        return intervals.bootstrap(
            statistic, len(units), resamples=resamples, level=level, seed=seed
        )

    if not statistics:
        return ListsDifference({}, intervals.Interval(math.nan, math.nan, math.nan), {})
    by_list = {name: interval([name]) for name in statistics}
    return ListsDifference(by_list, interval(list(statistics)), values)


def _spearman_gap(ours: np.ndarray, theirs: np.ndarray, human: np.ndarray) -> Callable:
    first, second = (correlation.weighted_spearman(x, human) for x in (ours, theirs))
    return lambda weights: first(weights) - second(weights)


def _mean_of_drawn(gaps: Sequence[Callable], units: np.ndarray) -> Callable:
    """From how often each unit was drawn to the mean of the gaps."""
    return lambda drawn: np.mean([gap(drawn[:, units]) for gap in gaps], axis=0)


def pair_cosines(
    vectors: WordVectors, pairs: Sequence[WordPair], *, case: Case = "fallback"
) -> Float[np.ndarray, " pairs"]:
    """The cosine of every pair; nan where the table lacks a word, or its direction."""
    found = _cosines(vectors, pairs, "skip", case)
    return np.where(found.covered, found.cosines, np.nan)


def pooled(lists: Mapping[str, Sequence[WordPair]]) -> list[WordPair]:
    """The pairs of all lists as one, the score of each in the range of its list.

    People rate from 0 to 4 here and from 0 to 50 there: each list's scores go from 0 to
    1, by its own least and greatest, before pairs of different lists are ranked. A list
    without a range is left out.
    """
    pairs = []
    for rows in lists.values():
        scores = [pair.score for pair in rows]
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        if high > low:
            pairs += [WordPair(a, b, (s - low) / (high - low)) for a, b, s in rows]
    return pairs


def words_looked_up(pairs: Iterable[WordPair], case: Case = "fallback") -> set[str]:
    """Every form that a test may look up, to read only these rows of a large file.

    Not for `case="ignore"`, where any row may match.
    """
    return lookup.forms_looked_up({w for pair in pairs for w in pair[:2]}, case)


def known_words(
    vectors: WordVectors, pairs: Iterable[WordPair], case: Case = "fallback"
) -> set[str]:
    """The words of a test that the table has, as the test writes them."""
    found = lookup.look_up(vectors, (w for pair in pairs for w in pair[:2]), case)
    return {w for w, row in zip(found.words, found.rows, strict=True) if row >= 0}


def _cosines(
    vectors: WordVectors, pairs: Sequence[WordPair], oov: OOV, case: Case
) -> _Cosines:
    found = lookup.look_up(vectors, (w for pair in pairs for w in pair[:2]), case)
    place = found.places
    unit = np.zeros((len(found.words), vectors.dim), np.float64)
    unit[found.rows >= 0] = vectors.matrix[found.rows[found.rows >= 0]]
    known = usable = found.usable  # a row of zeros has no cosine: as good as missing
    if oov == "mean":
        lookup.check_finite(vectors)
        unit[~known] = vectors.mean
    elif oov == "subword":
        absent = np.flatnonzero(found.rows < 0)
        forms = found.forms if case == "lower" else found.words
        unit[absent] = vectors.lookup([forms[i] for i in absent], oov="subword")
        usable = np.any(unit, axis=1)
    unit /= np.maximum(np.max(np.abs(unit), axis=1, keepdims=True, initial=0.0), 1e-300)
    length = np.linalg.norm(unit, axis=1, keepdims=True)
    unit /= np.where(length == 0, 1.0, length)
    ends = np.array([[place[a], place[b]] for a, b, _ in pairs], int).reshape(-1, 2)
    cosines = np.einsum("pd,pd->p", unit[ends[:, 0]], unit[ends[:, 1]])
    covered = np.all(known[ends], axis=1)
    return _Cosines(
        cosines=np.round(cosines, 12),  # a word with itself ties with any other such
        covered=covered,
        composed=np.all(usable[ends], axis=1) & ~covered,
        recased=found.recased,
        zero_rows=int(np.sum(found.zero)),
    )
