"""Weights of words beside scikit-learn's."""

import numpy as np
import pytest

from jaxemb.data.tfidf import Tfidf
from jaxemb.errors import InputError

TEXTS = ["a b b c", "b c d d d", "a a e", "e"]
MORE = ["a z z d", "", "b"]


def dense(found, texts, count):
    ids, weights = found.transform([t.split() for t in texts])
    rows = np.zeros((len(texts), count + 1))
    for i, (start, end) in enumerate(zip(ids.offsets, ids.offsets[1:], strict=False)):
        rows[i, ids.values[start:end]] = weights.values[start:end]
    assert not rows[:, 0].any()
    return rows[:, 1:]


@pytest.mark.parametrize("max_words", [None, 3])
def test_weights_are_scikit_learns(max_words):
    from sklearn.feature_extraction.text import TfidfVectorizer

    found = Tfidf.learn((t.split() for t in TEXTS), min_texts=2, max_words=max_words)
    oracle = TfidfVectorizer(token_pattern=r"\S+", vocabulary=found.words).fit(TEXTS)
    np.testing.assert_allclose(found.idf, oracle.idf_, rtol=1e-6)
    for texts in (TEXTS, MORE):
        wanted = oracle.transform(texts).toarray()
        rows = dense(found, texts, len(found.words))
        np.testing.assert_allclose(rows, wanted, atol=1e-6)
    assert found.words == (
        ("a", "b", "c", "e") if max_words is None else ("a", "b", "c")
    )


def test_texts_without_words_are_refused():
    with pytest.raises(InputError, match="found none"):
        Tfidf.learn([[], []])
