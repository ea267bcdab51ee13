import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, stats
from sklearn.cross_decomposition import CCA

from jaxemb.data import features as reader
from jaxemb.data import sources
from jaxemb.data.features import WordFeatures
from jaxemb.data.vectors import WordVectors, read_word_vectors
from jaxemb.eval import qvec

WORDS = [f"w{i}" for i in range(60)]


def made(seed=0, dim=4, columns=3, words=WORDS):
    rng = np.random.default_rng(seed)
    matrix = rng.random((len(words), columns)) * (
        rng.random((len(words), columns)) > 0.4
    )
    names = tuple(f"f{i}" for i in range(columns))
    rows = rng.normal(size=(len(words), dim))
    rows[:, 0] += 2 * matrix[:, 1]
    known = WordFeatures(tuple(words), names, matrix)
    return WordVectors(tuple(words), rows.astype(np.float32)), known


def normalised(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True).clip(1e-12)


def canonical_by_whitening(x, y):
    """Singular values of Cxx^(-1/2) Cxy Cyy^(-1/2), the textbook formula."""
    x, y = x - x.mean(0), y - y.mean(0)
    white = [np.real(linalg.fractional_matrix_power(z.T @ z, -0.5)) for z in (x, y)]
    return linalg.svdvals(white[0] @ x.T @ y @ white[1])


@given(st.integers(0, 9))
def test_qvec_is_a_sum_of_scipys_highest_correlations(seed):
    vectors, known = made(seed)
    found = qvec.qvec(vectors, known, groups=0)
    rows = np.float64(vectors.matrix)
    best = [
        max(stats.pearsonr(column, feature).statistic for feature in known.matrix.T)
        for column in rows.T
    ]
    assert found.sum == pytest.approx(sum(best))
    assert found.mean == pytest.approx(np.mean(best))
    assert (found.covered, found.total, found.dim) == (60, 60, 4)


@given(st.integers(0, 9))
def test_qvec_cca_is_the_mean_of_all_canonical_correlations(seed):
    vectors, known = made(seed)
    found = qvec.qvec(vectors, known, groups=0)
    rows = np.float64(vectors.matrix)
    expected = canonical_by_whitening(normalised(rows), normalised(known.matrix))
    assert len(expected) == 3 and expected[0] > expected.mean()
    assert found.cca == pytest.approx(expected.mean())
    assert found.cca_first == pytest.approx(expected[0])


def test_the_first_correlation_is_scikit_learns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5))
    y = np.stack([x[:, 0] + rng.normal(size=200), x[:, 1], rng.normal(size=200)], 1)
    first, second = CCA(n_components=1, max_iter=5000).fit_transform(x, y)
    expected = stats.pearsonr(first[:, 0], second[:, 0]).statistic
    found = qvec.canonical_correlations(x, y)
    assert found[0] == pytest.approx(expected, abs=1e-4) and len(found) == 3


@given(st.integers(0, 20))
def test_canonical_correlations_ignore_bases_and_dependent_columns(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(80, 4)), rng.normal(size=(80, 3))
    whole = qvec.canonical_correlations(x, y)
    turned = qvec.canonical_correlations(x @ rng.normal(size=(4, 4)) + 7, 1e-6 * y)
    np.testing.assert_allclose(turned, whole, atol=1e-7)
    repeated = np.concatenate([x, x[:, :2], np.ones((80, 1))], axis=1)
    np.testing.assert_allclose(
        qvec.canonical_correlations(repeated, y), whole, atol=1e-7
    )


def test_too_few_words_for_a_canonical_correlation_are_nan_and_not_one():
    vectors, known = made()
    few = vectors.subset(WORDS[:7])  # 4 dimensions and 3 features fill 6 of them
    found = qvec.qvec(few, known)
    assert math.isnan(found.cca) and not math.isnan(found.sum)
    assert found.covered == 7 and math.isnan(found.low)
    enough = qvec.qvec(vectors.subset(WORDS[:8]), known, groups=0)
    assert 0 < enough.cca < 1


@pytest.mark.parametrize("words", [[], ["x"], ["w1"]])
def test_no_overlap_is_nan(words):
    vectors = WordVectors(tuple(words), np.ones((len(words), 4), np.float32))
    found = qvec.qvec(vectors, made()[1])
    assert all(map(math.isnan, (found.sum, found.mean, found.cca, found.low)))
    assert found.covered == ("w1" in words)


def test_constant_dimensions_add_nothing_and_are_counted():
    vectors, known = made()
    vectors.matrix[:, 2] = 5
    found = qvec.qvec(vectors, known, groups=0)
    kept = WordVectors(
        vectors.words, np.ascontiguousarray(vectors.matrix[:, [0, 1, 3]])
    )
    assert found.constant == 1
    assert found.sum == pytest.approx(qvec.qvec(kept, known, groups=0).sum)
    same = WordVectors(tuple(WORDS), np.ones((60, 4), np.float32))
    none = qvec.qvec(same, known)
    assert math.isnan(none.sum) and math.isnan(none.cca) and none.covered == 60


def test_the_interval_is_a_jackknife_over_words():
    vectors, known = made()
    found = qvec.qvec(vectors, known, groups=60)  # leaves out one word at a time
    left = [
        qvec.qvec(vectors.subset([w for w in WORDS if w != out]), known, groups=0).mean
        for out in WORDS
    ]
    error = math.sqrt(59 / 60 * sum((x - np.mean(left)) ** 2 for x in left))
    half = stats.t.ppf(0.975, 59) * error
    bounds = (found.mean - half, found.mean + half)
    assert (found.low, found.high) == pytest.approx(bounds)
    assert found.cca_low < found.cca < found.cca_high


def test_common_words_and_case():
    vectors, known = made()
    upper = WordVectors(tuple(w.upper() for w in WORDS), vectors.matrix)
    assert qvec.qvec(upper, known, groups=0).covered == 0
    found = qvec.qvec(upper, known, groups=0, case="ignore")
    assert (found.covered, found.recased) == (60, 60)
    part = vectors.subset(WORDS[10:])
    common = qvec.qvec(vectors, known, groups=0, others=(part,))
    assert common.sum == qvec.qvec(part, known, groups=0).sum
    assert (common.scored, common.covered) == (50, 60)
    assert qvec.qvec(vectors, known, groups=0, first_rows=9).covered == 9


def test_a_difference_is_on_common_words():
    first, known = made()
    second = WordVectors(tuple(WORDS[5:]), made(3)[0].matrix[5:])
    mean, cca, common, total = qvec.compare_qvec(first, second, known)
    assert (common, total) == (55, 60)
    ours = qvec.qvec(first.subset(WORDS[5:]), known)
    theirs = qvec.qvec(second, known)
    assert mean.mean == pytest.approx(ours.mean - theirs.mean)
    assert cca.mean == pytest.approx(ours.cca - theirs.cca)
    assert mean.low < mean.mean < mean.high
    same = qvec.compare_qvec(first, first, known).mean
    assert same.mean == same.low == same.high == 0


@pytest.mark.data
def test_glove_as_paper_01_prints_it():
    glove, oracle = sources.locate("glove-100d-subset"), sources.locate("qvec")
    if glove is None or oracle is None:
        pytest.skip("needs glove.6B.100d.subset.txt and qvec/")
    known = reader.read_features(oracle.part("supersenses-en"))
    vectors = read_word_vectors(glove.path, keep=set(known.words))
    found = qvec.qvec(vectors, known, groups=0)
    assert found.covered == 4173
    assert found.cca == pytest.approx(0.37536, abs=0.003)  # as printed
    assert found.sum > 10 and found.mean < 0.2 and found.cca_first > 0.8
