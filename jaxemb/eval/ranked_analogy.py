"""Word analogies by any score that is a product, with the best five answers.

`jaxemb.eval.analogy` answers by cosines of offsets. Here a system is what it makes of
the three words asked with (`queries`) and what it compares that with (`rows`): a word's
score is the product of the two. 3CosAdd is one such system, and so is every measure of
`jaxemb.spaces.fuzzy`. A question is right at k if fewer than k of the other words score
as high as the fourth word: a tie counts against it, as it does there.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from jaxemb.data.analogies import Analogy
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import analogy, lookup
from jaxemb.eval.analogy import Accuracies
from jaxemb.eval.lookup import Case
from jaxemb.spaces import fuzzy, normalize, retrieval
from jaxemb.spaces.fuzzy import FuzzyEmbedding, Measure, Products

DEEPEST = 5
# Rows that float32 finds, of which float64 then chooses: the three words asked with,
# those looked for, and as many again.
_FOUND = 3 + 2 * DEEPEST + 3
_TOLERANCE = 1e-12
_CHUNK = 2048  # questions whose candidates are in memory in float64

# From the rows of a, b and c, one question a line, to products.
System = Callable[[Int[np.ndarray, "questions 3"]], Products]


@dataclasses.dataclass(frozen=True, eq=False)
class RankedAnalogies:
    """What a system answers."""

    ranks: Float[np.ndarray, " questions"]
    """Of the fourth word, from 1; infinite beyond `DEEPEST`, nan where the table lacks
    a word of the question."""
    answers: Int[np.ndarray, "questions found"]
    """The best rows, best first; -1 where there is none."""
    sections: Mapping[str, Sequence[Analogy]]

    def at(self, k: int = 1) -> Accuracies:
        """Accuracies where a question is right if its answer is among the best k."""
        if not 1 <= k <= DEEPEST:
            raise InputError(f"k is {k}; expected 1 to {DEEPEST}")
        covered = ~np.isnan(self.ranks)
        return analogy.by_section(self.sections, self.ranks <= k, covered, covered)

    @property
    def pairs(self) -> Int[np.ndarray, "questions 2"]:
        """Which two pairs of words a question is made of, for `crossed_bootstrap`."""
        return analogy.word_pairs(self.sections)

    def items(self, k: int = 1) -> Float[np.ndarray, " questions"]:
        """1 for a question that is right at k, 0 for a wrong one, nan for no score."""
        return np.where(np.isnan(self.ranks), np.nan, self.ranks <= k)


def ranked_analogies(
    vectors: WordVectors,
    sections: Mapping[str, Sequence[Analogy]],
    system: System,
    *,
    first_rows: int | None = None,
    case: Case = "fallback",
) -> RankedAnalogies:
    """Answers all questions by one system.

    Args:
      vectors: names the rows of the system; a word whose row is all zeros is missing.
      sections: questions by name of section.
      system: see `System`; it may know more rows than are searched.
      first_rows: search, and know, only this many first rows, as word2vec's
        `compute-accuracy` does.
      case: how words are looked up; not `ignore`.
    """
    if case == "ignore":
        raise InputError("case is 'ignore'; expected one of fallback, exact, lower")
    table = lookup.first_rows(vectors, first_rows)
    questions = [question for rows in sections.values() for question in rows]
    found, words, covered = analogy.ask(table, questions, case)
    rows = found.rows[words]  # questions 4
    ranks = np.full(len(questions), np.nan)
    answers = np.full((len(questions), DEEPEST), -1, np.int64)
    if np.any(covered):
        made = system(rows[covered, :3])
        made = Products(made.queries, made.rows[: len(table)])
        ranks[covered], answers[covered] = _ranked(made, rows[covered])
    return RankedAnalogies(ranks, answers, sections)


def three_cos_add(vectors: WordVectors) -> System:
    """`cos(d, b - a + c)` with a, b and c of length 1, but for the query's length."""
    unit = normalize.unit(vectors.matrix)

    def system(asked: Int[np.ndarray, "questions 3"]) -> Products:
        a, b, c = (unit[asked[:, i]] for i in range(3))
        return Products(b - a + c, unit)

    return system


def fuzzy_analogy(
    embedding: FuzzyEmbedding, measure: Measure = fuzzy.PRINTED
) -> System:
    """The word most like `(B ⊔ C)` less `A` (Bhat et al. 2020, sec. 4.5)."""
    p = embedding.p

    def system(asked: Int[np.ndarray, "questions 3"]) -> Products:
        a, b, c = (p[asked[:, i]] for i in range(3))
        return measure.products(fuzzy.analogous(a, b, c), embedding)

    return system


def _ranked(
    made: Products, rows: Int[np.ndarray, "questions 4"]
) -> tuple[Float[np.ndarray, " questions"], Int[np.ndarray, "questions found"]]:
    """The ranks of fourth words, and the best rows, decided in float64."""
    # Of length 1, since probabilities may be too small for the products of float32.
    queries = normalize.unit(made.queries)
    count = min(_FOUND, len(made.rows))
    near = retrieval.nearest(queries, made.rows, count).rows
    ranks, best = np.empty(len(rows)), np.full((len(rows), DEEPEST), -1, np.int64)
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        ranks[part], best[part] = _decided(
            queries[part], made.rows, near[part], rows[part]
        )
    return ranks, best


def _decided(
    queries: Float[np.ndarray, "questions k"],
    rows: Float[np.ndarray, "words k"],
    near: Int[np.ndarray, "questions found"],
    asked: Int[np.ndarray, "questions 4"],
) -> tuple[Float[np.ndarray, " questions"], Int[np.ndarray, "questions best"]]:
    scores = np.einsum("qk,qfk->qf", queries, rows[near])
    barred = np.any(near[:, :, np.newaxis] == asked[:, np.newaxis, :3], axis=2)
    scores[barred] = -np.inf
    gold = np.einsum("qk,qk->q", queries, rows[asked[:, 3]])[:, np.newaxis]
    margin = _TOLERANCE * np.maximum(1, np.abs(gold))
    others = (near != asked[:, 3:]) & (scores >= gold - margin)
    ranks = 1.0 + np.sum(others, axis=1)
    there = np.any((near == asked[:, 3:]) & ~barred, axis=1)
    ranks[~there | (ranks > DEEPEST)] = np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :DEEPEST]
    best = np.take_along_axis(near, order, axis=1)
    best[np.take_along_axis(scores, order, axis=1) == -np.inf] = -1
    return ranks, _padded(best)


def _padded(best: Int[np.ndarray, "questions some"]) -> np.ndarray:
    missing = DEEPEST - best.shape[1]
    return np.pad(best, ((0, 0), (0, missing)), constant_values=-1)
