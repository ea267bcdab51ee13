import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxemb import nn


def by_loops(states, words, num_words, pooling):
    found = np.zeros((len(states), num_words, states.shape[-1]))
    for b, row in enumerate(words):
        for word in range(num_words):
            own = [states[b, p] for p in range(len(row)) if row[p] == word]
            if own:
                rules = {"mean": np.mean(own, axis=0), "first": own[0], "last": own[-1]}
                found[b, word] = rules[pooling]
    return found


WORDS = np.array([[-1, 0, 0, 1, 2, 2, 2, -1], [-1, 0, 2, -1, -1, -1, -1, -1]])


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_words_are_pooled_as_by_loops(pooling):
    states = np.random.default_rng(0).normal(size=(2, 8, 3)).astype(np.float32)
    states[WORDS < 0] = np.nan  # what belongs to no word may hold anything
    found = nn.align_wordpieces(jnp.asarray(states), jnp.asarray(WORDS), 4, pooling)
    np.testing.assert_allclose(found, by_loops(states, WORDS, 4, pooling), rtol=1e-6)


def test_each_piece_counts_once():
    states = np.eye(8, dtype=np.float32)[None].repeat(2, 0)
    found = np.asarray(nn.align_wordpieces(jnp.asarray(states), jnp.asarray(WORDS), 3))
    pieces = (found > 0).sum(axis=1)
    np.testing.assert_array_equal(pieces, WORDS >= 0)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 6), min_size=3, max_size=3))
def test_texts_have_vectors_of_length_one(lengths):
    states = np.random.default_rng(1).normal(size=(3, 6, 4)).astype(np.float32)
    mask = np.arange(6) < np.array(lengths)[:, None]
    found = nn.mean_pooled(jnp.asarray(states), jnp.asarray(mask))
    for row, length, own in zip(found, lengths, states, strict=True):
        mean = own[:length].mean(axis=0) if length else np.zeros(4)
        wanted = mean / (np.linalg.norm(mean) or 1)
        np.testing.assert_allclose(row, wanted, rtol=1e-5, atol=1e-6)
