"""The batched search against brute force over all rows at once, in float64."""

import jax
import numpy as np
import pytest

from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import search

ROWS, DIM = 57, 6
METHODS = [("3cosadd", True), ("3cosadd", False), ("3cosmul", True)]
METHODS += [("norm", True), ("norm", False)]


def made(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(rows, DIM)) * rng.uniform(0.2, 3, size=(rows, 1))
    words = tuple(f"w{i}" for i in range(rows))
    return WordVectors(words, matrix.astype(np.float32))


def asked(n, seed=1, rows=ROWS):
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(rows, 3, replace=False) for _ in range(n)])


def scores_of(vectors, questions, method, normalise, epsilon):
    """Every score of every row by the definition of the method."""
    rows = vectors.matrix.astype(np.float64)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    own = unit if normalise else rows
    a, b, c = (own[questions[:, i]] for i in range(3))
    target = b - a + c
    if method == "3cosadd":
        return target @ unit.T
    if method == "norm":
        return -np.linalg.norm(target[:, None] - own[None], axis=2)
    near = [(1 + unit[questions[:, i]] @ unit.T) / 2 for i in range(3)]
    return near[1] * near[2] / (near[0] + epsilon)


@pytest.fixture(params=[(16, 13), (5, 57), (64, 8)], ids=str)
def shapes(request, monkeypatch):
    """Batches and blocks that do and do not divide what is searched."""
    monkeypatch.setattr(search, "BATCH", request.param[0])
    monkeypatch.setattr(search, "BLOCK", request.param[1])


@pytest.mark.parametrize(("method", "normalise"), METHODS)
def test_completions_are_those_of_brute_force(shapes, method, normalise):
    vectors, questions = made(), asked(37)
    excluded = np.concatenate([questions, asked(37, seed=2), [[-1]] * 37], axis=1)
    found = search.complete_analogies(
        search.to_device(vectors),
        questions,
        excluded,
        method=method,
        normalise=normalise,
        epsilon=0.02,
    )
    scores = scores_of(vectors, questions, method, normalise, 0.02)
    for row, out in zip(scores, excluded, strict=True):
        row[out[out >= 0]] = -np.inf
    np.testing.assert_array_equal(found.rows, scores.argmax(axis=1))
    assert not found.close.any()


@pytest.mark.parametrize(("method", "normalise"), METHODS)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_equal_rows_are_close_and_others_are_not(monkeypatch, method, normalise, scale):
    monkeypatch.setattr(search, "BATCH", 16)
    monkeypatch.setattr(search, "BLOCK", 13)
    vectors = made()
    vectors.matrix[40:57] = vectors.matrix[:17]
    vectors.matrix[:] *= np.float32(scale)
    questions = asked(80)
    found = search.complete_analogies(
        search.to_device(vectors),
        questions,
        questions,
        method=method,
        normalise=normalise,
    )
    scores = scores_of(vectors, questions, method, normalise, 1e-3)
    np.put_along_axis(scores, questions, -np.inf, axis=1)
    first, second = -np.sort(-scores, axis=1)[:, :2].T
    expected = first - second < 1e-9 * np.abs(first)
    np.testing.assert_array_equal(found.close, expected)
    assert 0 < expected.sum() < 80
    sure = ~expected
    np.testing.assert_array_equal(found.rows[sure], scores.argmax(axis=1)[sure])


def test_nothing_left_to_answer_with():
    vectors = made(rows=4)
    table = search.to_device(vectors)
    question = np.array([[0, 1, 2]])
    none = search.complete_analogies(table, question, np.array([[0, 1, 2, 3]]))
    assert none.rows.tolist() == [-1] and none.close.tolist() == [False]
    one = search.complete_analogies(table, question, question)
    assert one.rows.tolist() == [3] and one.close.tolist() == [False]
    matrix = vectors.matrix.copy()
    matrix[3] = 0  # a row without a direction is no answer either
    again = search.to_device(WordVectors(vectors.words, matrix))
    assert search.complete_analogies(again, question, question).rows.tolist() == [-1]
    empty = search.complete_analogies(
        table, np.zeros((0, 3), int), np.zeros((0, 3), int)
    )
    assert empty.rows.shape == empty.close.shape == (0,)


@pytest.mark.parametrize("k", [1, 2, 5, 60])
def test_nearest_rows_are_those_of_brute_force(shapes, k):
    vectors = made()
    queries = np.array([0, 56, 13, 12, 26, 3, 3])
    rows, cosines = search.nearest_rows(search.to_device(vectors), queries, k)
    unit = vectors.matrix.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    scores = unit[queries] @ unit.T
    scores[np.arange(len(queries)), queries] = -np.inf
    order = np.argsort(-scores, axis=1)[:, : min(k, ROWS - 1)]
    np.testing.assert_array_equal(rows[:, : ROWS - 1], order)
    expected = np.take_along_axis(scores, order, axis=1)
    np.testing.assert_allclose(cosines[:, : ROWS - 1], expected, atol=1e-6)
    assert np.all(rows[:, ROWS - 1 :] == -1)
    assert np.all(cosines[:, ROWS - 1 :] == -np.inf)


def test_a_search_compiles_once_for_any_number_of_questions(monkeypatch):
    monkeypatch.setattr(search, "BATCH", 8)
    monkeypatch.setattr(search, "BLOCK", 19)
    table = search.to_device(made(seed=3))

    def complete(n, epsilon):
        questions = asked(n)
        search.complete_analogies(
            table, questions, questions, method="3cosmul", epsilon=epsilon
        )
        return search._better._cache_size()

    before = complete(3, 1e-3)
    assert [complete(n, 1e-3 * n) for n in (1, 8, 9, 40)] == [before] * 4


def test_memory_does_not_grow_with_the_table(monkeypatch):
    """Temporaries of a step are those of a batch and a block, whatever the table."""
    monkeypatch.setattr(search, "BLOCK", 64)

    def temporaries(rows):
        table = search.to_device(made(rows=rows))
        three = np.zeros((8, 3), np.int32)
        best = np.full((8, 2), -1, np.int32), np.zeros((8, 2), np.float32)
        how = {"block": 64, "method": "3cosadd"}
        compiled = search._better.lower(table, three, three, best, 0, **how).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert temporaries(4096) <= temporaries(256) + 1024


def test_the_device_gets_numbers_only():
    vectors = made()
    vectors.matrix[5, 1] = np.nan
    with pytest.raises(InputError, match="'w5' is not finite"):
        search.to_device(vectors)
    zero = made()
    zero.matrix[5] = 0
    table = search.to_device(zero)
    assert float(table.inverse_norms[5]) == 0 and isinstance(table.matrix, jax.Array)
