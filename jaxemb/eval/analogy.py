"""Word analogies: `a` is to `b` as `c` is to which word?

The answer is sought among all rows of the table, or its first `restrict`, but for those
of the three words asked with. Every score has its coverage, an interval over questions,
and what moves it: the method, the rows searched, the policy for missing words and case.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxemb.data.analogies import Analogy
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import intervals, lookup
from jaxemb.eval.lookup import Case

Method = Literal["3cosadd", "3cosmul", "norm"]
"""How the fourth word is chosen, from the cosines or rows of the three.

`3cosadd` the highest cosine to b - a + c; `3cosmul` the highest cos(d, b) cos(d, c) /
(cos(d, a) + epsilon) with cosines moved to [0, 1]; `norm` the least length of
b - a + c - d, which on rows of length one answers as `3cosadd` does.
"""

OOV = Literal["skip", "wrong", "common"]
"""A question with a missing word: leave it out (`skip`), count it as `wrong` (gensim's
`dummy4unknown`), or leave out what any of the tables compared lacks (`common`).
"""

SYNTACTIC = "gram"  # how the names of Google's syntactic sections begin


@dataclasses.dataclass(frozen=True)
class Section:
    """The score on some questions; nan where none is scored."""

    name: str
    accuracy: float
    low: float  # percentile bootstrap interval of `accuracy`, over questions
    high: float
    correct: int
    scored: int  # questions that the accuracy is over
    covered: int  # questions whose four words the table has, with a direction
    total: int


@dataclasses.dataclass(frozen=True)
class Analogies:
    """The scores of one table on one set of questions."""

    whole: Section
    sections: tuple[Section, ...]
    semantic: Section | None  # None where sections do not tell the two apart
    syntactic: Section | None
    method: str
    normalised: bool
    restrict: int | None
    oov: str
    case: str
    recased: int  # words found only in another case than written
    zero_rows: int  # words whose row is all zeros; they count as missing

    @property
    def groups(self) -> tuple[Section, ...]:
        """Every section, if there are several, then the totals that there are."""
        totals = [self.semantic, self.syntactic, self.whole]
        sections = self.sections if len(self.sections) > 1 else ()
        return (*sections, *(total for total in totals if total is not None))

    def as_dict(self) -> dict[str, Any]:
        """The fields, those of `whole` beside the others."""
        fields = dataclasses.asdict(self)
        whole = fields.pop("whole")
        del whole["name"]
        return {**whole, **fields}

    def cells(self) -> list[dict[str, str]]:
        """The scores as the rows of a printed table."""
        common = self.oov == "common"
        return [
            {
                "section": group.name,
                "accuracy": f"{group.accuracy:.3f}",
                "95 % interval": intervals.bounds_text(group.low, group.high),
                "covered": f"{group.covered}/{group.total}"
                + (f" ({group.scored} common)" if common else ""),
                "method": self.method,
                "oov": self.oov,
                "case": lookup.case_text(self.case, self.recased),
            }
            for group in self.groups
        ]


@dataclasses.dataclass(frozen=True)
class Answers:
    """What a table answers, question by question in the order of the sections."""

    rows: Int[np.ndarray, " questions"]  # -1 where there is no answer
    correct: Bool[np.ndarray, " questions"]
    covered: Bool[np.ndarray, " questions"]
    one_direction: bool  # all rows point the same way: no word answers better
    recased: int
    zero_rows: int


def answer(
    vectors: WordVectors,
    questions: Sequence[Analogy],
    *,
    method: Method = "3cosadd",
    normalise: bool = True,
    restrict: int | None = None,
    case: Case = "fallback",
    epsilon: float = 1e-3,
) -> Answers:
    """Answers questions one by one; those with a missing word have no answer.

    With `case="ignore"` a row that differs from a word asked with in case only is no
    answer either, and one that differs so from the fourth word is right, as in gensim.

    Args:
      vectors: the table under test.
      questions: four words each.
      method: see `Method`.
      normalise: whether rows have length one before offsets are taken; 3CosMul takes
        cosines in any case.
      restrict: search, and know, only this many first rows.
      case: how words are looked up; see `Case`.
      epsilon: of 3CosMul's denominator; gensim has 1e-6.
    """
    if method not in get_args(Method):
        raise InputError(
            f"method is {method!r}; expected one of {', '.join(get_args(Method))}"
        )
    table = lookup.first_rows(vectors, restrict)
    found = lookup.look_up(table, (w for q in questions for w in q), case)
    places = found.places
    asked = np.array([[places[w] for w in q] for q in questions], int).reshape(-1, 4)
    rows = found.rows[asked]  # questions 4
    usable = (
        found.usable & (table.norms[found.rows] > 0) if len(table) else found.usable
    )
    covered = np.all(usable[asked], axis=1)
    answers = np.full(len(questions), -1, np.int64)
    one_direction = False
    if np.any(covered):
        from jaxemb.eval import search  # jax, only where there is something to search

        on_device = search.to_device(table)
        one_direction = _one_direction(table)
    if np.any(covered) and not one_direction:
        others = _variants(table, found, case)
        answers[covered] = search.complete_analogies(
            on_device,
            rows[covered, :3],
            others[asked[covered, :3]].reshape(np.count_nonzero(covered), -1),
            method=method,
            normalise=normalise,
            epsilon=epsilon,
        )
    correct = covered & (answers == rows[:, 3])
    if case == "ignore":
        for i in np.flatnonzero(covered & (answers >= 0) & ~correct).tolist():
            word = table.words[int(answers[i])]
            correct[i] = word.upper() == questions[i].d.upper()
    zero = int(np.sum(found.zero))
    counts = found.recased, zero
    return Answers(answers, correct, covered, one_direction, *counts)


def analogies(
    vectors: WordVectors,
    sections: Mapping[str, Sequence[Analogy]],
    *,
    oov: OOV = "skip",
    others: Sequence[WordVectors] = (),
    method: Method = "3cosadd",
    normalise: bool = True,
    restrict: int | None = None,
    case: Case = "fallback",
    epsilon: float = 1e-3,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Analogies:
    """Accuracy by section and in all; semantic and syntactic if sections tell them.

    Args:
      vectors: the table under test.
      sections: questions by name of section.
      oov: see `OOV`.
      others: the tables compared with, for `oov="common"`.
      method: see `Method`.
      normalise: as for `answer`.
      restrict: as for `answer`.
      case: how words are looked up; see `Case`.
      epsilon: as for `answer`.
      resamples: of the bootstrap that gives the interval; 0 for none.
      level: of the interval.
      seed: of the resamples.

    Returns:
      The scores; nan where no question is covered, or all rows point the same way.
    """
    return analogies_with_items(
        vectors,
        sections,
        oov=oov,
        others=others,
        method=method,
        normalise=normalise,
        restrict=restrict,
        case=case,
        epsilon=epsilon,
        resamples=resamples,
        level=level,
        seed=seed,
    )[0]


def analogies_with_items(
    vectors: WordVectors,
    sections: Mapping[str, Sequence[Analogy]],
    *,
    oov: OOV = "skip",
    others: Sequence[WordVectors] = (),
    method: Method = "3cosadd",
    normalise: bool = True,
    restrict: int | None = None,
    case: Case = "fallback",
    epsilon: float = 1e-3,
    **bootstrap: Any,
) -> tuple[Analogies, Float[np.ndarray, " questions"]]:
    """As `analogies`, with 1 for a right answer, 0 for a wrong one, nan for none."""
    questions = [question for rows in sections.values() for question in rows]
    found = answer(
        vectors,
        questions,
        method=method,
        normalise=normalise,
        restrict=restrict,
        case=case,
        epsilon=epsilon,
    )
    scored = scored_questions(
        found, questions, oov=oov, case=case, restrict=restrict, others=others
    )
    scores = Analogies(
        **_sections(sections, found, scored, bootstrap),
        method=method,
        normalised=normalise,
        restrict=restrict,
        oov=oov,
        case=case,
        recased=found.recased,
        zero_rows=found.zero_rows,
    )
    return scores, np.where(scored, found.correct.astype(np.float64), np.nan)


def scored_questions(
    found: Answers,
    questions: Sequence[Analogy],
    *,
    oov: OOV = "skip",
    case: Case = "fallback",
    restrict: int | None = None,
    others: Sequence[WordVectors] = (),
) -> Bool[np.ndarray, " questions"]:
    """The questions that a policy counts; see `OOV`."""
    if oov not in get_args(OOV):
        raise InputError(f"oov is {oov!r}; expected one of {', '.join(get_args(OOV))}")
    if found.one_direction:
        return np.zeros(len(questions), bool)
    if oov == "wrong":
        known = np.any(found.covered)  # else the policy alone would decide the score
        return np.full(len(questions), known)
    scored = found.covered
    for other in others if oov == "common" else ():
        table = lookup.first_rows(other, restrict)
        words = lookup.look_up(table, (w for q in questions for w in q), case)
        places, usable = words.places, words.usable
        theirs = [all(usable[places[w]] for w in question) for question in questions]
        scored = scored & np.array(theirs, bool)
    return scored


def cumulative(scores: Analogies) -> list[dict[str, float | str]]:
    """Running accuracies after each section, as word2vec's `compute-accuracy` prints.

    Of all sections so far, of the semantic and of the syntactic ones; nan as long as
    there is none, or where sections do not tell the two apart. A column stands still
    while sections of the other kind are added.
    """
    rows = []
    counts = {"total": [0, 0], "semantic": [0, 0], "syntactic": [0, 0]}
    for section in scores.sections:
        kind = "syntactic" if section.name.startswith(SYNTACTIC) else "semantic"
        for name in ("total", kind) if scores.semantic is not None else ("total",):
            counts[name][0] += section.correct
            counts[name][1] += section.scored
        after = {n: c / k if k else math.nan for n, (c, k) in counts.items()}
        rows.append({"after": section.name, **after})
    return rows


def _sections(
    sections: Mapping[str, Sequence[Analogy]],
    found: Answers,
    scored: Bool[np.ndarray, " questions"],
    bootstrap: Mapping[str, Any],
) -> dict[str, Any]:
    names = list(sections)
    of = np.repeat(np.arange(len(names)), [len(rows) for rows in sections.values()])
    syntactic = np.array([name.startswith(SYNTACTIC) for name in names], bool)

    def score(name: str, chosen: Bool[np.ndarray, " questions"]) -> Section:
        hits = found.correct[chosen & scored].astype(np.float64)
        interval = intervals.bootstrap(
            lambda rows: hits[rows].mean(axis=-1), len(hits), **bootstrap
        )
        covered = int(np.sum(found.covered[chosen]))
        counts = int(hits.sum()), len(hits), covered, int(np.sum(chosen))
        return Section(name, interval.mean, interval.low, interval.high, *counts)

    both = bool(np.any(syntactic) and not np.all(syntactic))
    return {
        "whole": score("total", np.ones(len(of), bool)),
        "sections": tuple(score(name, of == i) for i, name in enumerate(names)),
        "semantic": score("semantic", ~syntactic[of]) if both else None,
        "syntactic": score("syntactic", syntactic[of]) if both else None,
    }


def _variants(
    table: WordVectors, found: lookup.Lookup, case: Case
) -> Int[np.ndarray, "words variants"]:
    """The rows that a word asked with bars: its own or, without case, all its forms."""
    if case != "ignore":
        return found.rows[:, np.newaxis]
    rows: dict[str, list[int]] = {word.upper(): [] for word in found.words}
    for row, word in enumerate(table.words):
        if (same := rows.get(word.upper())) is not None:
            same.append(row)
    most = max(1, *map(len, rows.values()))
    return np.array(
        [(rows[w.upper()] + [-1] * most)[:most] for w in found.words], np.int64
    )


def _one_direction(table: WordVectors) -> bool:
    """Whether no two rows differ but in length."""
    rows = np.flatnonzero(table.norms)
    first = table.matrix[rows[0]] / table.norms[rows[0]]
    for start in range(0, len(rows), 8192):
        some = rows[start : start + 8192]
        unit = table.matrix[some] / table.norms[some][:, np.newaxis]
        if np.max(np.abs(unit - first)) > 1e-6:
            return False
    return True
