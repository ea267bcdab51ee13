"""One answer or none: the rows that share the highest score of an analogy.

The rule. A question is answered by the row whose score is higher than that of every
other row. Where several rows share the highest score the table does not tell their
words apart, and the question has no answer: it counts as wrong. No order of rows, shape
of a batch or device can then make it right. Scores are the same if they differ by no
more than rounding in float64 explains.

The search on the device is in float32 and cannot see this; it hands over the few
questions that it finds close.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from jaxemb.data.vectors import WordVectors
from jaxemb.eval.analogy import Method

TOLERANCE = 1e-12  # of scores of about 1, which float64 sums are good to 1e-15 of

_BATCH = 64  # questions at a time
_BLOCK = 8192  # rows at a time


def best_rows(
    vectors: WordVectors,
    questions: Int[np.ndarray, "questions 3"],
    excluded: Int[np.ndarray, "questions rows"],
    *,
    method: Method = "3cosadd",
    normalise: bool = True,
    epsilon: float = 1e-3,
) -> list[list[int]]:
    """All rows that share the highest score of each question, in float64.

    Args:
      vectors: the rows to choose from; those of zeros are none.
      questions: the rows of a, b and c.
      excluded: rows that may not be the answer; -1 stands for none.
      method: see `jaxemb.eval.analogy.Method`.
      normalise: whether rows have length one before offsets are taken.
      epsilon: of 3CosMul's denominator.

    Returns:
      For each question its rows in ascending order; none where all are excluded.
    """
    found = []
    for start in range(0, len(questions), _BATCH):
        part = slice(start, start + _BATCH)
        asked = _Questions(vectors, questions[part], method, normalise, epsilon)
        found += _best_rows(vectors, asked, excluded[part])
    return found


def _best_rows(
    vectors: WordVectors,
    asked: "_Questions",
    excluded: Int[np.ndarray, "questions rows"],
) -> list[list[int]]:
    best = np.full(len(excluded), -np.inf)
    rows: list[list[np.ndarray]] = [[] for _ in excluded]
    scores: list[list[np.ndarray]] = [[] for _ in excluded]
    for first, block in _blocks(vectors):
        found = asked.scores(block)
        found[:, vectors.norms[first : first + len(block)] == 0] = -np.inf
        question, column = np.nonzero(
            (excluded >= first) & (excluded < first + len(block))
        )
        found[question, excluded[question, column] - first] = -np.inf
        best = np.maximum(best, found.max(axis=1))
        least = _least(best)
        for i in np.flatnonzero(np.any(found >= least[:, np.newaxis], axis=1)).tolist():
            places = np.flatnonzero(found[i] >= least[i])
            rows[i].append(first + places)
            scores[i].append(found[i, places])
    return [
        np.concatenate(r)[np.concatenate(s) >= low].tolist() if r else []
        for r, s, low in zip(rows, scores, _least(best), strict=True)
    ]


def _least(best: Float[np.ndarray, " questions"]) -> Float[np.ndarray, " questions"]:
    """The lowest score that is the same as the best; nan where there is no score."""
    scale = np.maximum(1.0, np.abs(best))
    return np.where(best > -np.inf, best - TOLERANCE * scale, np.nan)


def _blocks(
    vectors: WordVectors,
) -> Iterator[tuple[int, Float[np.ndarray, "rows dim"]]]:
    for first in range(0, len(vectors), _BLOCK):
        yield first, vectors.matrix[first : first + _BLOCK].astype(np.float64)


class _Questions:
    """The terms of some questions, and the score of every row for each.

    Offsets are measured in the sum of the lengths of a, b and c, so that scores are of
    about 1 whatever the length of rows.
    """

    def __init__(
        self,
        vectors: WordVectors,
        questions: Int[np.ndarray, "questions 3"],
        method: Method,
        normalise: bool,
        epsilon: float,
    ):
        self.method, self.epsilon = method, epsilon
        self.normalise = normalise or method == "3cosmul"
        rows = vectors.matrix[questions].astype(np.float64)  # questions 3 dim
        lengths = np.linalg.norm(rows, axis=2)
        if self.normalise:
            rows /= lengths[..., np.newaxis]
            lengths = np.ones_like(lengths)
        a, b, c = self.terms = [rows[:, i] for i in range(3)]
        self.unit = lengths.sum(axis=1)[:, np.newaxis]
        self.target = (b - a + c) / self.unit

    def scores(
        self, rows: Float[np.ndarray, "rows dim"]
    ) -> Float[np.ndarray, "questions rows"]:
        squares = np.einsum("rd,rd->r", rows, rows)
        lengths = np.where(squares > 0, np.sqrt(squares), 1.0)
        if self.method == "3cosmul":
            near = ((1 + term @ rows.T / lengths) / 2 for term in self.terms)
            near_a, near_b, near_c = (np.maximum(cosines, 0) for cosines in near)
            return near_b * near_c / (near_a + self.epsilon)
        products = self.target @ rows.T
        if self.method == "3cosadd":
            return products / lengths
        if self.normalise:
            products, squares = products / lengths, np.ones_like(squares)
        # The squared distance in squared units: |t - d|² = |t|² - 2 t·d + |d|².
        length = np.einsum("qd,qd->q", self.target, self.target)[:, np.newaxis]
        return 2 * products / self.unit - squares / self.unit**2 - length
