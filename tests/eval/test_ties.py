import numpy as np
import pytest

from jaxemb.data.vectors import WordVectors
from jaxemb.eval import ties

METHODS = [("3cosadd", True), ("3cosadd", False), ("3cosmul", True)]
METHODS += [("norm", True), ("norm", False)]


def made(scale=1.0, rows=40):
    """Rows of which the last ten repeat the first, four times as long."""
    matrix = np.random.default_rng(0).normal(size=(rows, 5)).astype(np.float32)
    matrix[-10:] = matrix[:10]
    words = tuple(f"w{i}" for i in range(rows))
    return WordVectors(words, (scale * matrix).astype(np.float32))


def by_loop(vectors, question, barred, method, normalise):
    """Rows whose score is the highest, one candidate after the other."""
    rows = vectors.matrix.astype(np.float64)
    unit = [row / np.linalg.norm(row) for row in rows]
    own = unit if normalise else rows
    a, b, c = question
    target = own[b] - own[a] + own[c]
    scores = {}
    for row in range(len(rows)):
        if row in barred or not np.any(rows[row]):
            continue
        if method == "3cosadd":
            scores[row] = unit[row] @ target / np.linalg.norm(target)
        elif method == "norm":
            scores[row] = -np.linalg.norm(target - own[row]) / np.linalg.norm(target)
        else:
            near = [(1 + unit[row] @ unit[term]) / 2 for term in question]
            scores[row] = near[1] * near[2] / (near[0] + 1e-3)
    best = max(scores.values(), default=None)
    return [row for row, score in scores.items() if best - score < 1e-9]


@pytest.mark.parametrize(("method", "normalise"), METHODS)
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_best_rows_are_those_of_a_loop(monkeypatch, method, normalise, scale):
    monkeypatch.setattr(ties, "_BATCH", 16)
    monkeypatch.setattr(ties, "_BLOCK", 13)
    vectors = made(scale)
    rng = np.random.default_rng(1)
    questions = np.array([rng.choice(40, 3, replace=False) for _ in range(50)])
    barred = np.concatenate([questions, np.full((50, 1), -1)], axis=1)
    found = ties.best_rows(
        vectors, questions, barred, method=method, normalise=normalise
    )
    expected = [
        by_loop(vectors, question, set(out), method, normalise)
        for question, out in zip(questions.tolist(), barred.tolist(), strict=True)
    ]
    assert found == expected
    assert {len(rows) for rows in found} == {1, 2}


def test_rows_that_differ_in_the_last_digit_do_not_tie():
    vectors, question = made(), (11, 12, 13)
    barred = [row for row in range(40) if row not in (0, 30)]
    arguments = np.array([question]), np.array([barred])
    assert ties.best_rows(vectors, *arguments) == [[0, 30]]
    vectors.matrix[30, 2] = np.nextafter(vectors.matrix[0, 2], np.float32(9))
    unit = vectors.matrix[[0, 30]].astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    own = vectors.matrix[list(question)].astype(np.float64)
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    first, second = unit @ (own[1] - own[0] + own[2])
    assert ties.best_rows(vectors, *arguments) == [[0 if first > second else 30]]


def test_zero_and_excluded_rows_are_no_answer():
    vectors = made()
    vectors.matrix[3:] = 0
    every = np.arange(40)[np.newaxis]
    assert ties.best_rows(vectors, np.array([[0, 1, 2]]), every) == [[]]
    assert ties.best_rows(vectors, np.array([[0, 1, 2]]), every[:, :2]) == [[2]]
