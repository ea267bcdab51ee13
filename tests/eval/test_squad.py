import collections
import itertools
import re
import string

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.errors import InputError
from jaxemb.eval import squad


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Norman dukes.", "norman dukes"),
        ("an apple, a pear & the end", "apple pear end"),
        ("Theatre of another", "theatre of another"),  # articles are whole words
        ("U.S.A.", "usa"),
        ("well-known", "wellknown"),  # marks go, and leave no space
        ("a-b", "ab"),
        ("“quoted” – text", "“quoted” – text"),  # only ASCII's marks go
        ("the", ""),
        ("\tTHE\n answer ", "answer"),
        ("3.14 a.m.", "314 am"),
        ("l'a", "la"),
    ],
)
def test_normalisation(text, expected):
    assert squad.normalize_answer(text) == expected


def step_by_step(text):
    """The official program's steps one after the other, a character at a time."""
    lowered = text.lower()
    kept = "".join(c for c in lowered if c not in set(string.punctuation))
    for article in ("a", "an", "the"):
        kept = re.sub(rf"\b{article}\b", " ", kept)
    return " ".join(kept.split())


TEXTS = st.text(st.sampled_from("aanthe THE.,-'“é1\t ") | st.characters(), max_size=20)


@given(TEXTS)
def test_normalisation_step_by_step(text):
    assert squad.normalize_answer(text) == step_by_step(text)


@pytest.mark.parametrize(
    ("prediction", "reference", "exact", "f1"),
    [
        ("the cat", "Cat!", 1, 1),
        ("black cat", "cat", 0, 2 / 3),
        ("cat cat dog", "cat dog dog", 0, 2 / 3),
        ("cat", "dog", 0, 0),
        ("the", "a", 1, 0),  # both empty: the official program has this too
        ("", "cat", 0, 0),
    ],
)
def test_scores_of_one_answer(prediction, reference, exact, f1):
    assert squad.exact_match(prediction, reference) == exact
    assert squad.token_f1(prediction, reference) == pytest.approx(f1)


@given(TEXTS, TEXTS)
def test_f1_is_the_harmonic_mean(prediction, reference):
    words = [step_by_step(text).split() for text in (prediction, reference)]
    left, hits = collections.Counter(words[1]), 0
    for word in words[0]:
        if left[word]:
            left[word] -= 1
            hits += 1
    expected = 0.0
    if hits:
        precision, recall = hits / len(words[0]), hits / len(words[1])
        expected = 2 * precision * recall / (precision + recall)
    assert squad.token_f1(prediction, reference) == pytest.approx(expected)


def test_the_best_reference_counts_and_no_answer_is_wrong():
    references = {"1": ["dog", "the black cat"], "2": ["x"], "3": ["left out"]}
    found = squad.squad_em_f1({"1": "cat", "2": "x", "9": "y"}, references)
    assert (found.questions, found.unanswered) == (3, 1)
    assert found.exact == pytest.approx(1 / 3)
    assert found.f1 == pytest.approx((2 / 3 + 1) / 3)
    np.testing.assert_allclose(found.values["f1"], [2 / 3, 1, 0])
    assert found.f1_low <= found.f1 <= found.f1_high
    assert found.exact_low < found.exact < found.exact_high
    with pytest.raises(InputError, match="question 4 has no reference"):
        squad.squad_em_f1({}, {"4": []})
    assert np.isnan(squad.squad_em_f1({}, {}).f1)


def brute_force(start, end, mask, longest):
    """Every span k <= l of real words, the first best by its end, then by its start."""
    best = None
    for last, first in itertools.product(range(len(start)), repeat=2):
        if first <= last and mask[first] and mask[last]:
            if longest is not None and last - first + 1 > longest:
                continue
            score = start[first] + end[last]
            if best is None or score > best[2]:
                best = first, last, score
    return best


LENGTH, BATCH = 9, 40


@pytest.mark.parametrize("longest", [None, 1, 3, 9, 50])
@pytest.mark.parametrize("ties", [False, True])
def test_decoding_is_brute_force(longest, ties):
    """Check 8 of the card."""
    rng = np.random.default_rng(0)
    start, end = rng.normal(size=(2, BATCH, LENGTH)).astype(np.float32)
    if ties:
        start, end = rng.integers(0, 3, (2, BATCH, LENGTH)).astype(np.float32)
    mask = np.arange(LENGTH) < rng.integers(1, LENGTH + 1, (BATCH, 1))
    decode = jax.jit(lambda *x: squad.best_span(*x, max_length=longest))
    found = decode(*map(jnp.array, (start, end, mask)))
    for row in range(BATCH):
        expected = brute_force(start[row], end[row], mask[row], longest)
        assert (found.start[row], found.end[row]) == expected[:2]
        np.testing.assert_allclose(found.score[row], expected[2], rtol=1e-6)


def test_decoding_maximises_the_product_of_probabilities():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(2, BATCH, LENGTH)).astype(np.float32)
    p_start, p_end = (
        np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
        for x in logits.astype(np.float64)
    )
    real = jnp.ones((BATCH, LENGTH), bool)
    found = squad.best_span(*map(jnp.array, logits), real)
    for row in range(BATCH):
        products = np.triu(np.outer(p_start[row], p_end[row]))
        assert products[found.start[row], found.end[row]] == products.max()


def test_a_span_has_a_word():
    with pytest.raises(InputError, match="max_length is 0"):
        squad.best_span(jnp.zeros(3), jnp.zeros(3), jnp.ones(3, bool), max_length=0)
