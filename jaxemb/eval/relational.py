"""SemEval-2012 Task 2: are pairs as typical of a relation as people find them?

The protocol. A relation has a few example pairs x:y. A pair a:b is rated by the mean
cosine of its offset b - a with the offsets y - x of the examples, rows of length one.
Two scores a relation, as the task's own scorer has them: Spearman's rho of these
ratings with people's, ties at their mean rank; and MaxDiff accuracy, the share of right
choices of the most and the least typical of four pairs, right being any pair that no
other had more votes than; who chose nothing has no vote. Of pairs with equal ratings
the one that the question names first is chosen. The score of a table is the mean over
the 69 test relations, its interval a bootstrap over them; that of the MaxDiff accuracy
of one relation is Wilson's.

One difference: where all ratings are equal the official scorer says 0 and chooses all
the same; here both scores are nan, and the relation is left out of the means.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float

from jaxemb.data.semeval2012 import TRAINING, Pair, Relation
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import correlation, intervals, lookup
from jaxemb.eval.lookup import Case

OOV = Literal["skip", "zero", "common"]
"""A pair with a missing word: leave it out (`skip`), rate it 0 (`zero`), or leave out
what any of the tables compared lacks (`common`). A choice among pairs of which one is
left out is left out too.
"""


class RelationScore(NamedTuple):
    """The score on one relation; nan where there is none."""

    name: str
    spearman: float
    maxdiff: float
    maxdiff_low: float  # Wilson's interval of `maxdiff`, over choices
    maxdiff_high: float
    right: int  # choices, of which every question has two
    covered: int  # pairs with a rating
    total: int
    choices: int  # questions that MaxDiff is over


@dataclasses.dataclass(frozen=True)
class RelationalSimilarity:
    """The scores of one table: means over relations, with intervals over them."""

    spearman: float
    low: float
    high: float
    maxdiff: float
    maxdiff_low: float
    maxdiff_high: float
    scored: int  # pairs with a rating, of relations with a correlation
    with_score: int  # relations with a correlation
    relations: tuple[RelationScore, ...]
    covered: int  # pairs of the relations that the table has both words of
    total: int
    choices: int  # MaxDiff questions answered
    first_rows: int | None
    oov: str
    case: str
    recased: int  # words found only in another case than written
    zero_rows: int  # words whose row is all zeros; they count as missing

    def as_dict(self) -> dict[str, Any]:
        """The fields, one object a relation among them."""
        relations = [relation._asdict() for relation in self.relations]
        return {**dataclasses.asdict(self), "relations": relations}

    def cells(self) -> dict[str, str]:
        """The fields as the columns of a printed table."""
        common = f" ({self.scored} common)" if self.oov == "common" else ""
        return {
            "spearman": f"{self.spearman:.3f}",
            "95 % interval": intervals.bounds_text(self.low, self.high),
            "maxdiff": f"{self.maxdiff:.3f}",
            "its interval": intervals.bounds_text(self.maxdiff_low, self.maxdiff_high),
            "relations": f"{self.with_score}/{len(self.relations)}",
            "covered": f"{self.covered}/{self.total}{common}",
            "oov": self.oov,
            "case": lookup.case_text(self.case, self.recased),
        }


def relational_similarity(
    vectors: WordVectors,
    relations: Iterable[Relation],
    *,
    oov: OOV = "skip",
    others: Sequence[WordVectors] = (),
    training: bool = False,
    first_rows: int | None = None,
    case: Case = "fallback",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> RelationalSimilarity:
    """Rates the pairs of every relation and scores the ratings; see the module.

    Args:
      vectors: the table under test.
      relations: as `read_semeval2012` has them.
      oov: see `OOV`.
      others: the tables compared with, for `oov="common"`.
      training: whether to score the ten training relations instead of the test.
      first_rows: know only this many first rows.
      case: how words are looked up; see `Case`.
      resamples: of the bootstrap that gives the intervals; 0 for none.
      level: of the intervals.
      seed: of the resamples.
    """
    if oov not in get_args(OOV):
        raise InputError(f"oov is {oov!r}; expected one of {', '.join(get_args(OOV))}")
    chosen = [r for r in relations if (r.name in TRAINING) == training]
    words = {w for r in chosen for pair in (*r.paradigms, *r.ratings) for w in pair}
    table = lookup.first_rows(vectors, first_rows)
    found = lookup.look_up(table, words, case)
    known = _usable(found)
    counted = known
    for other in others if oov == "common" else ():
        other = lookup.first_rows(other, first_rows)
        counted = counted & _usable(lookup.look_up(other, words, case))
    rows = _unit_rows(table, found)
    scores, covered = [], 0
    for relation in chosen:
        ratings = rate_pairs(relation, {w: rows[w] for w in counted})
        if oov == "zero" and ratings:
            ratings = {pair: ratings.get(pair, 0.0) for pair in relation.ratings}
        scores.append(score_ratings(relation, ratings, level))
        covered += sum(known.issuperset(pair) for pair in relation.ratings)
    settings: dict[str, Any] = {"resamples": resamples, "level": level, "seed": seed}
    rho = _mean([score.spearman for score in scores], settings)
    hits = _mean([score.maxdiff for score in scores], settings)
    if resamples and (not hits.known or hits.low == hits.high):
        # One relation, or the same accuracy in all: no resample differs.
        choices = 2 * sum(score.choices for score in scores)
        pooled = intervals.wilson(sum(s.right for s in scores), choices, level)
        hits = intervals.Interval(hits.mean, pooled.low, pooled.high)
    defined = [score for score in scores if not math.isnan(score.spearman)]
    return RelationalSimilarity(
        spearman=rho.mean,
        low=rho.low,
        high=rho.high,
        maxdiff=hits.mean,
        maxdiff_low=hits.low,
        maxdiff_high=hits.high,
        scored=sum(score.covered for score in defined),
        with_score=len(defined),
        relations=tuple(scores),
        covered=covered,
        total=sum(score.total for score in scores),
        choices=sum(score.choices for score in scores),
        first_rows=first_rows,
        oov=oov,
        case=case,
        recased=found.recased,
        zero_rows=int(np.sum(found.zero)),
    )


def rate_pairs(
    relation: Relation, rows: Mapping[str, Float[np.ndarray, " dim"]]
) -> dict[Pair, float]:
    """Mean cosine of a pair's offset with those of the relation's examples.

    Pairs with a word that has no row are left out, and so are all pairs where no
    example has rows. An offset of zeros (two equal rows) has the cosine 0.
    """
    examples = [_direction(rows, pair) for pair in relation.paradigms]
    examples = [offset for offset in examples if offset is not None]
    if not examples:
        return {}
    middle = np.mean(examples, axis=0)
    offsets = {pair: _direction(rows, pair) for pair in relation.ratings}
    return {p: float(o @ middle) for p, o in offsets.items() if o is not None}


def score_ratings(
    relation: Relation, ratings: Mapping[Pair, float], level: float = 0.95
) -> RelationScore:
    """Spearman and MaxDiff of ratings, whoever made them, as the task scores them.

    Ratings that differ by no more than rounding are equal, for both scores.
    """
    ratings = {pair: round(value, 12) for pair, value in ratings.items()}
    pairs = [pair for pair in relation.ratings if pair in ratings]
    ours = np.array([ratings[pair] for pair in pairs], np.float64)
    theirs = np.array([relation.ratings[pair] for pair in pairs], np.float64)
    rho = math.nan
    if pairs:
        statistic = correlation.spearman_statistic(ours, theirs)
        rho = float(statistic(np.arange(len(pairs))[np.newaxis])[0])
    votes: dict[tuple[Pair, ...], tuple[Counter[Pair], Counter[Pair]]] = {}
    for choice in relation.choices:
        counts = votes.setdefault(choice.pairs, (Counter(), Counter()))
        for count, pair in zip(counts, (choice.least, choice.most), strict=True):
            if pair is not None:
                count[pair] += 1
    if not np.any(ours != ours[:1]):  # ratings that say nothing choose nothing
        votes = {}
    answered = {q: v for q, v in votes.items() if all(pair in ratings for pair in q)}
    right = 0
    for question, (least, most) in answered.items():
        lowest = min(question, key=ratings.__getitem__)  # the first of equals
        highest = max(question, key=ratings.__getitem__)
        right += least[lowest] == max(least.values(), default=0)
        right += most[highest] == max(most.values(), default=0)
    maxdiff = intervals.wilson(right, 2 * len(answered), level)
    return RelationScore(
        name=relation.name,
        spearman=rho,
        maxdiff=maxdiff.mean,
        maxdiff_low=maxdiff.low,
        maxdiff_high=maxdiff.high,
        right=right,
        covered=len(pairs),
        total=len(relation.ratings),
        choices=len(answered),
    )


def _usable(found: lookup.Lookup) -> set[str]:
    return {
        w for w, is_usable in zip(found.words, found.usable, strict=True) if is_usable
    }


def _unit_rows(
    table: WordVectors, found: lookup.Lookup
) -> dict[str, Float[np.ndarray, " dim"]]:
    rows = {}
    for word, row, usable in zip(found.words, found.rows, found.usable, strict=True):
        if usable:
            value = table.matrix[row].astype(np.float64)
            value /= np.max(np.abs(value))
            rows[word] = value / np.linalg.norm(value)
    return rows


def _direction(
    rows: Mapping[str, Float[np.ndarray, " dim"]], pair: Pair
) -> Float[np.ndarray, " dim"] | None:
    if pair[0] not in rows or pair[1] not in rows:
        return None
    offset = rows[pair[1]] - rows[pair[0]]
    return offset / (np.linalg.norm(offset) or 1.0)


def _mean(values: Sequence[float], settings: Mapping[str, Any]):
    defined = np.array([v for v in values if not math.isnan(v)], np.float64)
    return intervals.bootstrap(
        lambda rows: defined[rows].mean(axis=-1), len(defined), **settings
    )
