"""Offsets and attention, against loops."""

import itertools

import numpy as np
import pytest

from jaxemb.analysis import contexts, figures
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError

PAIRS = [("he", "she"), ("king", "queen"), ("man", "woman"), ("uncle", "xyz")]


@pytest.fixture
def table():
    words = tuple(w for pair in PAIRS[:3] for w in pair) + ("uncle",)
    matrix = np.random.default_rng(0).normal(size=(len(words), 5)).astype(np.float32)
    return WordVectors(words, matrix)


def unit(x):
    return x / np.linalg.norm(x)


def test_parallelism_is_the_mean_cosine_of_every_two_offsets(table):
    offsets = [unit(table[b]) - unit(table[a]) for a, b in PAIRS[:3]]
    wanted = [unit(x) @ unit(y) for x, y in itertools.combinations(offsets, 2)]
    found = contexts.offset_parallelism(table, PAIRS)
    assert found == pytest.approx(np.mean(wanted), abs=1e-6)


def test_offsets_that_are_the_same_are_parallel():
    rng = np.random.default_rng(1)
    first = np.zeros((3, 8))
    first[:, :6] = rng.normal(size=(3, 6))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = first + np.eye(8)[7]  # of the same length before and after, all three
    words = tuple(w for pair in PAIRS[:3] for w in pair)
    rows = np.stack([first, second], axis=1).reshape(6, 8).astype(np.float32)
    parallel = contexts.offset_parallelism(WordVectors(words, rows), PAIRS)
    # Rows are cut to length 1: what remains of the common direction is most of it.
    assert parallel > 0.6
    with pytest.raises(InputError, match="expected two or more"):
        contexts.offset_parallelism(WordVectors(words, rows), PAIRS[:1])


def test_pairs_are_drawn_and_joined(table):
    svg = figures.to_svg(contexts.pairs_figure(table, PAIRS, "pairs"))
    for word in ("he", "queen", "woman"):
        assert f">{word}</text>" in svg
    assert ">xyz</text>" not in svg


@pytest.mark.parametrize("bins", [1, 3, 5])
def test_edges_are_quantiles_of_the_words_of_a_text(bins):
    counts = np.random.default_rng(3).integers(1, 200, 60)
    edges = contexts.frequency_edges(counts, bins)
    every = np.repeat(counts, counts)
    shares = np.arange(1, bins + 1) / bins
    wanted = np.quantile(every, shares, method="inverted_cdf")
    assert edges.tolist() == sorted(set(wanted.tolist()))
    assert edges[-1] == counts.max()
    # A word that is most of a text leaves fewer bins.
    assert contexts.frequency_edges(np.array([60, 20, 20]), 5).tolist() == [20, 60]


def test_attention_by_frequency_is_a_loop_over_pairs():
    rng = np.random.default_rng(2)
    counts = np.array([900, 400, 90, 30, 7, 5])
    sentences = []
    for _ in range(30):
        ids = rng.integers(0, len(counts), 5)
        weights = rng.random((5, 5)) * (1 - np.eye(5))
        weights[0] = 0
        weights[0, 3] = 1.0  # the others of its window weigh nothing, and count
        weights /= weights.sum(axis=1, keepdims=True)
        sentences.append(contexts.Attended(weights, ~np.eye(5, dtype=bool), ids))
    found = contexts.attention_by_frequency(sentences, counts, [7, 90, 900])
    assert [(one.low, one.high) for one in found] == [(1, 7), (8, 90), (91, 900)]
    assert sum(one.places for one in found) == 30 * 20
    for one in found:
        own = [
            weights[i, j] * 4
            for weights, _, ids in sentences
            for i in range(5)
            for j in range(5)
            if i != j and one.low <= counts[ids[j]] <= one.high
        ]
        assert one.relative == pytest.approx(np.mean(own))
        assert one.places == len(own)
    total = sum(one.relative * one.places for one in found)
    assert total / (30 * 20) == pytest.approx(1)  # weights add up to 1
