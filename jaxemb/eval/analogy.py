"""Word analogies: `a` is to `b` as `c` is to which word?

The answer is sought among all rows of the table, or its first so many, but for those of
the three words asked with. Where two words score the same, none is the answer; see
`jaxemb.eval.ties`. Every score has its coverage, Wilson's interval over questions, and
what moves it: the method, the rows searched, the policy for missing words and case.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

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
    low: float  # Wilson's interval of `accuracy`, over questions
    high: float
    correct: int
    scored: int  # questions that the accuracy is over
    covered: int  # questions whose four words the table has, with a direction
    total: int


@dataclasses.dataclass(frozen=True)
class Accuracies:
    """Scores by section and in all."""

    whole: Section
    sections: tuple[Section, ...]
    semantic: Section | None  # None where sections do not tell the two apart
    syntactic: Section | None

    @property
    def groups(self) -> tuple[Section, ...]:
        """Every section, if there are several, then the totals that there are."""
        totals = [self.semantic, self.syntactic, self.whole]
        sections = self.sections if len(self.sections) > 1 else ()
        return (*sections, *(total for total in totals if total is not None))


@dataclasses.dataclass(frozen=True)
class Analogies(Accuracies):
    """The scores of one table on one set of questions."""

    method: str
    epsilon: float | None  # of 3CosMul
    normalised: bool
    tied: int  # covered questions that several words answer equally well: wrong
    first_rows: int | None
    oov: str
    case: str
    recased: int  # words found only in another case than written
    zero_rows: int  # words whose row is all zeros; they count as missing
    items: Float[np.ndarray, " questions"] = dataclasses.field(
        compare=False, repr=False
    )  # whatever the policy: 1 for a right answer, 0 for a wrong one, nan for no score

    def as_dict(self) -> dict[str, Any]:
        """The fields but for `items`, those of `whole` beside the others."""
        fields = dataclasses.asdict(self)
        whole = fields.pop("whole")
        del whole["name"], fields["items"]
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
    tied: Bool[np.ndarray, " questions"]  # covered, but several words score the same
    one_direction: bool  # all rows point the same way: no word answers better
    recased: int
    zero_rows: int


class Asked(NamedTuple):
    """Questions as a table knows them."""

    found: lookup.Lookup
    words: Int[np.ndarray, "questions 4"]  # places in `found`
    covered: Bool[np.ndarray, " questions"]


def answer(
    vectors: WordVectors,
    questions: Sequence[Analogy],
    *,
    method: Method = "3cosadd",
    normalise: bool = True,
    first_rows: int | None = None,
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
      first_rows: search, and know, only this many first rows.
      case: how words are looked up; see `Case`.
      epsilon: of 3CosMul's denominator, more than 0; gensim has 1e-6.
    """
    if method not in get_args(Method):
        raise InputError(
            f"method is {method!r}; expected one of {', '.join(get_args(Method))}"
        )
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon is {epsilon}; expected a number above 0")
    table = lookup.first_rows(vectors, first_rows)
    found, words, covered = ask(table, questions, case)
    rows = found.rows[words]  # questions 4
    answers = np.full(len(questions), -1, np.int64)
    tied = np.zeros(len(questions), bool)
    one_direction = False
    if np.any(covered):
        from jaxemb.eval import search, ties  # jax, only where something is searched

        on_device = search.to_device(table)
        one_direction = _one_direction(table)
    if np.any(covered) and not one_direction:
        barred = _variants(table, found, case)[words[:, :3]].reshape(len(words), -1)
        how: dict[str, Any] = {"method": method, "normalise": normalise}
        how["epsilon"] = epsilon
        best = search.complete_analogies(
            on_device, rows[covered, :3], barred[covered], **how
        )
        answers[covered] = best.rows
        close = np.flatnonzero(covered)[best.close]
        shared = ties.best_rows(table, rows[close, :3], barred[close], **how)
        for question, same in zip(close.tolist(), shared, strict=True):
            names = {_name(table.words[row], case) for row in same}
            tied[question] = len(names) > 1
            answers[question] = same[0] if len(names) == 1 else -1
    correct = covered & (answers == rows[:, 3])
    if case == "ignore":
        for i in np.flatnonzero(covered & (answers >= 0) & ~correct).tolist():
            word = table.words[int(answers[i])]
            correct[i] = _name(word, case) == _name(questions[i].d, case)
    return Answers(
        rows=answers,
        correct=correct,
        covered=covered,
        tied=tied,
        one_direction=one_direction,
        recased=found.recased,
        zero_rows=int(np.sum(found.zero)),
    )


def analogies(
    vectors: WordVectors,
    sections: Mapping[str, Sequence[Analogy]],
    *,
    oov: OOV = "skip",
    others: Sequence[WordVectors] = (),
    method: Method = "3cosadd",
    normalise: bool = True,
    first_rows: int | None = None,
    case: Case = "fallback",
    epsilon: float = 1e-3,
    level: float = 0.95,
) -> Analogies:
    """Accuracy by section and in all; semantic and syntactic if sections tell them.

    Args:
      vectors: the table under test.
      sections: questions by name of section.
      oov: see `OOV`.
      others: the tables compared with, for `oov="common"`.
      method: see `Method`.
      normalise: as for `answer`.
      first_rows: as for `answer`.
      case: how words are looked up; see `Case`.
      epsilon: as for `answer`.
      level: of the intervals.

    Returns:
      The scores; nan where no question is covered, or all rows point the same way.
    """
    if oov not in get_args(OOV):
        raise InputError(f"oov is {oov!r}; expected one of {', '.join(get_args(OOV))}")
    questions = [question for rows in sections.values() for question in rows]
    found = answer(
        vectors,
        questions,
        method=method,
        normalise=normalise,
        first_rows=first_rows,
        case=case,
        epsilon=epsilon,
    )
    answered = found.covered & (not found.one_direction)
    scored = answered
    if oov == "wrong" and np.any(answered):  # else the policy alone decides the score
        scored = np.ones(len(questions), bool)
    for other in others if oov == "common" else ():
        scored = scored & ask(lookup.first_rows(other, first_rows), questions, case)[2]
    return Analogies(
        **vars(by_section(sections, found.correct, found.covered, scored, level)),
        method=method,
        epsilon=epsilon if method == "3cosmul" else None,
        normalised=normalise or method == "3cosmul",
        tied=int(np.sum(found.tied)),
        first_rows=first_rows,
        oov=oov,
        case=case,
        recased=found.recased,
        zero_rows=found.zero_rows,
        items=np.where(answered, found.correct.astype(np.float64), np.nan),
    )


def cumulative(scores: Accuracies) -> list[dict[str, float | str]]:
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


def by_section(
    sections: Mapping[str, Sequence[Analogy]],
    correct: Bool[np.ndarray, " questions"],
    covered: Bool[np.ndarray, " questions"],
    scored: Bool[np.ndarray, " questions"],
    level: float = 0.95,
) -> Accuracies:
    """Adds answers up, by section and in all, with Wilson's intervals.

    Args:
      sections: questions by name of section.
      correct: whether each is answered rightly, in the order of the sections.
      covered: whether the table has its four words.
      scored: which questions the accuracy is over.
      level: of the intervals.
    """
    names = list(sections)
    of = np.repeat(np.arange(len(names)), [len(rows) for rows in sections.values()])
    syntactic = np.array([name.startswith(SYNTACTIC) for name in names], bool)

    def score(name: str, chosen: Bool[np.ndarray, " questions"]) -> Section:
        hits = correct[chosen & scored]
        right = int(np.sum(hits))
        interval = intervals.wilson(right, len(hits), level)
        counts = right, len(hits), int(np.sum(covered[chosen])), int(np.sum(chosen))
        return Section(name, interval.mean, interval.low, interval.high, *counts)

    both = bool(np.any(syntactic) and not np.all(syntactic))
    return Accuracies(
        whole=score("total", np.ones(len(of), bool)),
        sections=tuple(score(name, of == i) for i, name in enumerate(names)),
        semantic=score("semantic", ~syntactic[of]) if both else None,
        syntactic=score("syntactic", syntactic[of]) if both else None,
    )


def ask(table: WordVectors, questions: Sequence[Analogy], case: Case) -> Asked:
    """Looks questions up; a row too short for float32 to measure has no direction."""
    found = lookup.look_up(table, (w for q in questions for w in q), case)
    places = found.places
    words = np.array([[places[w] for w in q] for q in questions], int).reshape(-1, 4)
    usable = found.usable
    usable[usable] = table.norms[found.rows[usable]] > 0
    return Asked(found, words, np.all(usable[words], axis=1))


def word_pairs(
    sections: Mapping[str, Sequence[Analogy]],
) -> Int[np.ndarray, "questions 2"]:
    """Which two pairs of words a question is made of, for `crossed_bootstrap`.

    Numbers of pairs, question by question in the order of the sections.
    """
    numbers: dict[tuple[str, str], int] = {}
    return np.array(
        [
            [numbers.setdefault(pair, len(numbers)) for pair in (q[:2], q[2:])]
            for questions in sections.values()
            for q in questions
        ],
        np.int64,
    ).reshape(-1, 2)


def _name(word: str, case: Case) -> str:
    """What two forms of one word have in common."""
    return word.upper() if case == "ignore" else word


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
    most = 1 << (most - 1).bit_length()  # few widths, since a search compiles for each
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
