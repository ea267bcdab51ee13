"""Ensembles: masks against loops, CONC and AV where they must agree, SVD."""

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics.pairwise import cosine_similarity

from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.spaces import combine
from jaxemb.spaces.ensemble import EmbeddingEnsemble

RNG = np.random.default_rng(0)


def table(words, dim):
    return WordVectors(tuple(words), RNG.normal(size=(len(words), dim)).astype("f4"))


TABLES = {"one": table("abcd", 3), "two": table("cBe", 2)}


def test_rows_and_masks_are_those_of_the_tables():
    ensemble = EmbeddingEnsemble.of(TABLES)
    assert ensemble.words == tuple("abcdBe")
    assert (ensemble.widths, len(ensemble)) == ((3, 2), 6)
    for row, word in enumerate(ensemble.words):
        for source, one in enumerate(TABLES.values()):
            assert ensemble.known[row, source] == (word in one)
            expected = np.zeros(one.dim)
            if word in one:
                expected = one[word] / np.linalg.norm(one[word])
            np.testing.assert_allclose(
                ensemble.matrices[source][row], expected, rtol=1e-6
            )


def test_words_given_and_case():
    plain = EmbeddingEnsemble.of(TABLES, ["A", "zz"], normalise=False)
    assert not plain.known.any()
    recased = EmbeddingEnsemble.of(TABLES, ["A", "zz"], normalise=False, recase=True)
    np.testing.assert_array_equal(recased.known, [[True, False], [False, False]])
    np.testing.assert_allclose(recased.matrices[0][0], TABLES["one"]["a"])
    np.testing.assert_array_equal(recased.anywhere, [True, False])
    assert recased.table(recased.concatenate()).words == ("A",)


def test_a_row_of_zeros_is_as_good_as_missing():
    zero = WordVectors(("a", "b"), np.array([[0, 0], [1, 2]], np.float32))
    ensemble = EmbeddingEnsemble.of({"x": zero})
    np.testing.assert_array_equal(ensemble.known[:, 0], [False, True])


def test_conc_and_av_have_the_same_cosines_where_supports_are_orthogonal():
    first, second = RNG.normal(size=(2, 30, 4))
    blank = np.zeros((30, 4))
    words = [f"w{i}" for i in range(30)]
    sides = [np.hstack([first, blank]), np.hstack([blank, second])]
    tables = {
        str(i): WordVectors(tuple(words), m.astype("f4")) for i, m in enumerate(sides)
    }
    ensemble = EmbeddingEnsemble.of(tables)
    np.testing.assert_allclose(
        cosine_similarity(ensemble.concatenate()),
        cosine_similarity(ensemble.average()),
        atol=1e-12,
    )


def test_the_average_is_over_the_sources_that_have_the_word():
    ensemble = EmbeddingEnsemble.of(TABLES)
    average = ensemble.average()
    padded = np.hstack([ensemble.matrices[1], np.zeros((6, 1))])
    np.testing.assert_allclose(average[0], ensemble.matrices[0][0])
    np.testing.assert_allclose(average[5], padded[5])
    np.testing.assert_allclose(average[2], (ensemble.matrices[0][2] + padded[2]) / 2)


def test_svd_equals_scikit_learn():
    words = [f"w{i}" for i in range(50)]
    ensemble = EmbeddingEnsemble.of({"x": table(words, 6), "y": table(words, 4)})
    ours = ensemble.svd(3)
    theirs = TruncatedSVD(3, algorithm="arpack").fit_transform(ensemble.concatenate())
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-9)
    with pytest.raises(InputError, match="svd: 11 of 10"):
        combine.svd(ensemble.matrices, 11)


def test_take_and_no_tables():
    ensemble = EmbeddingEnsemble.of(TABLES)
    some = ensemble.take(ensemble.known.all(axis=1))
    assert some.words == ("c",)
    np.testing.assert_array_equal(some.matrices[1], ensemble.matrices[1][2:3])
    with pytest.raises(InputError, match="no tables"):
        EmbeddingEnsemble.of({})
