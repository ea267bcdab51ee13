"""Word similarity: do cosines order word pairs as people do?

Every score comes with its coverage and the two choices that move it: what is done with
a word that the table lacks (`oov`), and with one that it has in another case (`case`).
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float

from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import correlation, intervals

OOV = Literal["skip", "zero", "mean", "subword"]
"""A missing word: `skip` its pairs, give it the `zero` or the `mean` vector, or compose
it by `subword` n-grams of a fastText table, and skip it where it has none.
"""

Case = Literal["fallback", "exact", "lower", "ignore"]
"""How a word of the test finds its row.

`exact` as written; `fallback` as written, else lower-cased; `lower` lower-cased always;
`ignore` the first row that differs in case only (what gensim does).
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
    composed: int  # more pairs that are scored, with a word made of its n-grams
    oov: str
    case: str
    recased: int  # words found only in another case than written
    zero_rows: int  # words whose row is all zeros; they count as missing

    def cells(self) -> dict[str, str]:
        """The fields as the columns of a printed table."""
        bounds = f"[{self.low:.3f}, {self.high:.3f}]"
        composed = f" (+{self.composed} composed)" if self.composed else ""
        recased = f" ({self.recased} words)" if self.recased else ""
        return {
            "spearman": f"{self.spearman:.3f}",
            "95 % interval": "none" if math.isnan(self.low) else bounds,
            "pearson": f"{self.pearson:.3f}",
            "covered": f"{self.covered}/{self.total}{composed}",
            "oov": self.oov,
            "case": self.case + recased,
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
    cosines = result.cosines[used]
    human = np.array([pair.score for pair in pairs], np.float64)[used]
    if not np.any(scored):  # the policy alone would decide the score
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


def words_looked_up(pairs: Iterable[WordPair], case: Case = "fallback") -> set[str]:
    """Every form that a test may look up, to read only these rows of a large file.

    Not for `case="ignore"`, where any row may match.
    """
    words = {word for pair in pairs for word in pair[:2]}
    lowered = {word.lower() for word in words}
    return {"exact": words, "lower": lowered, "fallback": words | lowered}[case]


def known_words(
    vectors: WordVectors, pairs: Iterable[WordPair], case: Case = "fallback"
) -> set[str]:
    """The words of a test that the table has, as the test writes them."""
    words = sorted({word for pair in pairs for word in pair[:2]})
    found = _rows_of(vectors.index, words, case)
    return {w for w, (_, row) in zip(words, found, strict=True) if row is not None}


def _cosines(
    vectors: WordVectors, pairs: Sequence[WordPair], oov: OOV, case: Case
) -> _Cosines:
    words = sorted({word for pair in pairs for word in pair[:2]})
    place = {word: i for i, word in enumerate(words)}
    found = _rows_of(vectors.index, words, case)
    known = np.array([row is not None for _, row in found], bool)
    unit = np.zeros((len(words), vectors.dim), np.float64)
    rows = [row for _, row in found if row is not None]
    unit[known] = vectors.matrix[rows]
    if not np.all(np.isfinite(unit)):
        bad = words[int(np.flatnonzero(~np.all(np.isfinite(unit), axis=1))[0])]
        raise InputError(f"the vector of {bad!r} is not finite; expected numbers")
    zero = known & ~np.any(unit, axis=1)
    known &= ~zero  # no direction, so no cosine: as good as missing
    usable = known
    if oov == "mean":
        unit[~known] = vectors.mean
    elif oov == "subword":
        absent = np.flatnonzero([row is None for _, row in found])
        forms = [found[i][0] if case == "lower" else words[i] for i in absent]
        unit[absent] = vectors.lookup(forms, oov="subword")
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
        recased=sum(
            row is not None and form != word
            for word, (form, row) in zip(words, found, strict=True)
        ),
        zero_rows=int(np.sum(zero)),
    )


def _rows_of(
    index: Mapping[str, int], words: Sequence[str], case: Case
) -> list[tuple[str, int | None]]:
    """The form found and its row, or None, for each word."""
    if case == "exact":
        return [(word, index.get(word)) for word in words]
    if case == "lower":
        return [(word.lower(), index.get(word.lower())) for word in words]
    if case == "fallback":
        forms = [word if word in index else word.lower() for word in words]
        return [(form, index.get(form)) for form in forms]
    if case == "ignore":
        first: dict[str, tuple[str, int]] = {}
        for form, row in index.items():
            first.setdefault(form.upper(), (form, row))
        return [first.get(word.upper(), (word, None)) for word in words]
    raise InputError(f"case is {case!r}; expected one of {', '.join(get_args(Case))}")
