import math

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import neighbours, search

WORDS = tuple(f"w{i}" for i in range(45))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(search, "BATCH", 16)
    monkeypatch.setattr(search, "BLOCK", 20)


def table(seed=0, words=WORDS, dim=5):
    rows = np.random.default_rng(seed).normal(size=(len(words), dim))
    return WordVectors(tuple(words), rows.astype(np.float32))


def near(vectors, words, k):
    """Sets of neighbours by scikit-learn, among `words`."""
    rows = np.stack([vectors[w] for w in words])
    found = NearestNeighbors(n_neighbors=k + 1, metric="cosine").fit(rows)
    indices = found.kneighbors(rows, return_distance=False)[:, 1:]
    return [{words[i] for i in row} for row in indices]


def test_neighbours_are_gensims():
    vectors = table()
    keyed = vectors.to_gensim()
    found = neighbours.nearest_neighbours(vectors, WORDS[::2], 7)
    for word, ours in zip(WORDS[::2], found, strict=True):
        theirs = keyed.most_similar(word, topn=7)
        assert [w for w, _ in ours] == [w for w, _ in theirs]
        cosines = [c for _, c in theirs]
        assert [c for _, c in ours] == pytest.approx(cosines, abs=1e-6)


def test_restricted_and_small_tables():
    found = neighbours.nearest_neighbours(table(), ["w0", "w3"], 9, first_rows=4)
    assert [len(ours) for ours in found] == [3, 3]
    assert {w for w, _ in found[0]} == {"w1", "w2", "w3"}
    vectors = table()
    vectors.matrix[1] = 0
    found = neighbours.nearest_neighbours(vectors, ["w0"], 9, first_rows=4)
    assert {w for w, _ in found[0]} == {"w2", "w3"}
    with pytest.raises(InputError, match="'w1' is all zeros"):
        neighbours.nearest_neighbours(vectors, ["w1"])
    with pytest.raises(InputError, match="'x' is not among"):
        neighbours.nearest_neighbours(vectors, ["x"])
    with pytest.raises(InputError, match="k is 0; expected 1 or more"):
        neighbours.nearest_neighbours(vectors, ["w0"], 0)


def test_equal_rows_come_in_the_order_of_the_table():
    rows = np.ones((45, 3), np.float32)
    [found] = neighbours.nearest_neighbours(WordVectors(WORDS, rows), ["w5"], 6)
    assert [w for w, _ in found] == ["w0", "w1", "w2", "w3", "w4", "w6"]


def test_overlap_is_that_of_sets_of_neighbours():
    first, second = table(), table(1, [*WORDS[5:], "other"], dim=7)
    second.matrix[0] = 0  # w5 has no neighbours there
    common = list(WORDS[6:])
    sides = zip(near(first, common, 4), near(second, common, 4), strict=True)
    shared = [(len(a & b), len(a | b)) for a, b in sides]
    found = neighbours.neighbour_overlap(first, second, 4)
    assert found.overlap == pytest.approx(np.mean([i / 4 for i, _ in shared]))
    assert found.jaccard == pytest.approx(np.mean([i / u for i, u in shared]))
    assert (found.common, found.words) == (39, 39)
    assert (found.first, found.second) == (45, 41)
    assert found.low < found.overlap < found.high


def test_overlap_does_not_depend_on_the_order_of_rows():
    first, second = table(), table(1)
    first.matrix[20:] = first.matrix[:25]  # ties, also for the last place
    order = np.random.default_rng(3).permutation(45)
    moved = [
        WordVectors(tuple(WORDS[i] for i in order), np.copy(t.matrix[order]))
        for t in (first, second)
    ]
    found = [
        neighbours.neighbour_overlap(*pair, 4, sample=30, resamples=20)
        for pair in ((first, second), moved)
    ]
    assert found[0] == found[1]


def test_overlap_of_a_turned_space_is_whole():
    first = table()
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    second = WordVectors(WORDS, (3 * first.matrix @ turn).astype(np.float32))
    found = neighbours.neighbour_overlap(first, second, 5, sample=20)
    assert found.overlap == found.jaccard == 1 and found.words == 20


@pytest.mark.parametrize("words", [["x", "y"], ["w1", "x"]])
def test_nothing_in_common_is_nan(words):
    found = neighbours.neighbour_overlap(table(), table(words=words))
    assert math.isnan(found.overlap) and math.isnan(found.jaccard)
    assert found.words == 0 and found.common == ("w1" in words)
