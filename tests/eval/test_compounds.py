import math

import numpy as np
import pytest
from scipy.spatial import distance

from jaxemb.data.compounds import Compound
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import compounds
from jaxemb.spaces.fuzzy import FuzzyEmbedding, Measure

WORDS = ("bank", "account", "bank_account", "snail", "mail", "snail_mail", "end")
RATED = [
    Compound("bank", "account", 4.7),
    Compound("snail", "mail", 1.3),
    Compound("end", "user", 4.2),  # "user" is missing
    Compound("mail", "account", 3.0),  # no such word in the text
]


@pytest.fixture
def vectors():
    rows = np.random.default_rng(0).normal(size=(len(WORDS), 4))
    return WordVectors(WORDS, rows.astype(np.float32))


def cross_entropy(a, b):
    """As printed: the entropy of features and the one-sided sum."""
    entropy = sum(-p * math.log(p) - (1 - p) * math.log(1 - p) for p in a)
    return entropy + sum(p * math.log(p / q) for p, q in zip(a, b, strict=True))


def test_constituents(vectors):
    found = compounds.by_cosine(vectors, RATED)
    assert found.covered == 3
    expected = 1 - distance.cosine(vectors["bank"], vectors["account"])
    assert found.scores[0] == pytest.approx(expected, abs=1e-6)
    embedding = FuzzyEmbedding.from_vectors(vectors.matrix)
    p = dict(zip(WORDS, embedding.p, strict=True))
    sets = compounds.by_sets(vectors, embedding, RATED)
    there = cross_entropy(p["snail"], p["mail"])
    back = cross_entropy(p["mail"], p["snail"])
    assert sets.scores[1] == pytest.approx(-(there + back) / 2)
    np.testing.assert_array_equal(sets.human, [4.7, 1.3, 4.2, 3.0])
    assert np.isnan(sets.scores[2])


def test_joined(vectors):
    found = compounds.by_cosine(vectors, RATED, "joined")
    assert found.covered == 2
    total = vectors["snail"] + vectors["mail"]
    expected = 1 - distance.cosine(vectors["snail_mail"], total)
    assert found.scores[1] == pytest.approx(expected, abs=1e-6)
    embedding = FuzzyEmbedding.from_vectors(vectors.matrix)
    p = dict(zip(WORDS, embedding.p, strict=True))
    sets = compounds.by_sets(vectors, embedding, RATED, "joined", Measure())
    expected = -cross_entropy(p["bank_account"], p["bank"] * p["account"])
    assert sets.scores[0] == pytest.approx(expected)
