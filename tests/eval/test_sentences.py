"""Sentences as means of word vectors, and their classification."""

import numpy as np
import pytest

from jaxemb.data import synthetic
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import kinds, sentences, validation
from jaxemb.eval.settings import Settings


@pytest.fixture(scope="module")
def world():
    return synthetic.planted_components(num_sentences=90)


def test_means_by_their_definition():
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    table = WordVectors(("a", "b", "C", "d"), rows)
    texts = [("a", "b", "a"), ("A", "C", "c"), ("x",), (), ("d", "x", "d")]
    found = sentences.bags(table, texts)
    expected = [
        (2 * rows[0] + rows[1]) / 3,
        (rows[0] + rows[2]) / 2,  # c is not a row, nor is its lower case
        np.zeros(2),
        np.zeros(2),
        rows[3],
    ]
    np.testing.assert_allclose(found.means(rows), expected)
    assert (found.covered, found.total, found.empty) == (7, 10, 2)
    exact = sentences.bags(table, texts, "exact")
    np.testing.assert_allclose(exact.means(rows)[1], rows[2])
    doubled = found.means(np.concatenate([rows, 2 * rows], axis=1))
    np.testing.assert_allclose(doubled[:, 2:], 2 * doubled[:, :2])


def test_pairs_do_not_mind_their_order():
    a, b = np.random.default_rng(0).normal(size=(2, 5, 3))
    features = sentences.pair_features(a, b)
    np.testing.assert_array_equal(features, sentences.pair_features(b, a))
    np.testing.assert_array_equal(features[:, :3], abs(a - b))
    np.testing.assert_array_equal(features[:, 3:], a * b)


def made(world, others=None):
    tokens = [example.tokens for example in world.sentences]
    labels = np.array([example.label for example in world.sentences])
    plan = validation.nested(labels, 3)
    return sentences.SentenceTest("planted", tokens, labels, 2, plan, others)


def test_a_task_is_a_test_like_the_others(world):
    test = made(world)
    assert isinstance(test, kinds.Test)
    assert test.words == {w for s in world.sentences for w in s.tokens}
    settings = Settings(resamples=200)
    found = test.score(world.vectors, settings, ())
    features = test.features(test.bags(world.vectors), world.vectors.matrix)
    direct = validation.cross_validate(features, test.labels, 2, test.plan)
    assert found.fields["accuracy"] == pytest.approx(direct.accuracy)
    assert found.fields["low"] < direct.accuracy < found.fields["high"]
    assert found.fields["majority"] == 0.5
    assert found.fields["covered"] == found.fields["total"] == 540
    noise = np.random.default_rng(0).normal(size=world.vectors.matrix.shape)
    other = WordVectors(world.vectors.words, noise.astype(np.float32))
    worse = test.score(other, settings, ())
    [gap] = test.compare(settings, (world.vectors, other), (found, worse))
    assert gap.difference == pytest.approx(
        found.fields["accuracy"] - worse.fields["accuracy"]
    )
    assert gap.low < gap.difference < gap.high
    assert gap.common == gap.total == 90


def test_only_pairs_and_empty_sentences_feel_the_mean(world):
    """An intercept takes up a shift of every sentence, but not of a product."""
    test = made(world)
    found = test.bags(world.vectors)
    rows = world.vectors.matrix.astype(np.float64)
    raw, shifted = (test.outcome(found, m) for m in (rows, rows + 1.0))
    np.testing.assert_array_equal(raw.items, shifted.items)
    pairs = made(world, [*test.sentences[1:], test.sentences[0]])
    both = pairs.bags(world.vectors)
    assert len(both) == 2
    first, second = (pairs.features(both, m) for m in (rows, rows + 1.0))
    np.testing.assert_allclose(first[:, :24], second[:, :24])
    assert np.abs(first[:, 24:] - second[:, 24:]).max() > 0.1
