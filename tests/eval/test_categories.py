import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import cluster
from sklearn.metrics.cluster import contingency_matrix

from jaxemb.data.features import WordFeatures
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import categories


def planted(spread=0.05, zero=False):
    """Three classes of ten words, around three directions."""
    rng = np.random.default_rng(0)
    middles = np.repeat(np.eye(3, 6), 10, axis=0)
    rows = middles + spread * rng.normal(size=(30, 6))
    if zero:
        rows[4] = 0
    words = tuple(f"w{i}" for i in range(30))
    weights = np.repeat(np.eye(3), 10, axis=0) * 0.8 + 0.1
    known = WordFeatures(words, ("person", "act", "time"), weights)
    return WordVectors(words, rows.astype(np.float32)), known


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1))
def test_purity_is_scikit_learns_contingency(pairs):
    clusters, classes = (np.array(side) for side in zip(*pairs, strict=True))
    table = contingency_matrix(classes, clusters)
    expected = table.max(axis=0).sum() / table.sum()
    assert categories.purity(clusters, classes) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_euclidean_k_means_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(80, 3))
    start = rows[:5].copy()
    theirs = cluster.KMeans(5, init=start, n_init=1, tol=0, algorithm="lloyd").fit(rows)
    ours = categories.k_means(rows, 5, geometry="euclidean", centres=start)
    np.testing.assert_array_equal(ours.labels, theirs.labels_)
    np.testing.assert_allclose(ours.centres, theirs.cluster_centers_, atol=1e-9)
    assert ours.cost == pytest.approx(theirs.inertia_)


@given(st.integers(0, 10))
def test_spherical_k_means_ends_where_nothing_moves(seed):
    rows = np.random.default_rng(seed).normal(size=(50, 4))
    found = categories.k_means(rows, 4, seed=seed)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_array_equal(found.labels, np.argmax(unit @ found.centres.T, 1))
    for label, centre in enumerate(found.centres):
        total = unit[found.labels == label].sum(axis=0)
        np.testing.assert_allclose(centre, total / np.linalg.norm(total), atol=1e-9)
    longer = categories.k_means(rows * np.linspace(0.1, 9, 50)[:, None], 4, seed=seed)
    np.testing.assert_array_equal(longer.labels, found.labels)


def test_an_empty_cluster_starts_again():
    rows = np.array([[0.0], [0.1], [5.0], [9.0]])
    start = np.array([[0.0], [7.0], [100.0]])
    found = categories.k_means(rows, 3, geometry="euclidean", centres=start)
    assert len(set(found.labels)) == 3


@pytest.mark.parametrize("geometry", ["spherical", "euclidean"])
def test_planted_classes_are_found(geometry):
    vectors, known = planted()
    found = categories.categorisation(vectors, known, geometry=geometry, seeds=5)
    assert found.best == 1.0 and found.purity > 0.8
    assert found.low <= found.purity <= found.high
    expected = stats.binomtest(30, 30).proportion_ci(method="wilson")
    bounds = found.best_low, found.best_high
    assert bounds == pytest.approx((expected.low, expected.high))
    assert (found.covered, found.total, found.clusters) == (30, 30, 3)
    assert found.largest == pytest.approx(1 / 3) and len(found.values) == 5
    again = categories.categorisation(vectors, known, geometry=geometry, seeds=5)
    assert again == found


def test_a_class_has_more_than_half_of_the_weight():
    words = ("a", "b", "c", "none")
    weights = np.array([[3.0, 1.0], [1.0, 1.0], [0.0, 0.2], [0.0, 0.0]])
    known = WordFeatures(words, ("x", "y"), weights)
    assert categories.classes_of(known) == {"a": "x", "c": "y"}


def test_missing_zero_and_lone_classes():
    vectors, known = planted(zero=True)
    part = vectors.subset([f"w{i}" for i in range(3, 30)])
    found = categories.categorisation(part, known)
    assert (found.covered, found.total, found.zero_rows) == (26, 30, 1)
    common = categories.categorisation(planted()[0], known, others=(part,))
    assert (common.scored, common.covered) == (26, 30)
    assert "30/30 (26 common)" in common.cells()["covered"]
    for words in ([], ["w0"], ["w0", "w1"]):  # nothing, and a single class
        none = categories.categorisation(vectors.subset(words), known)
        assert math.isnan(none.purity) and math.isnan(none.best)
        assert (none.scored, none.covered) == (0, len(words))


def test_bad_numbers_are_named():
    vectors, known = planted()
    with pytest.raises(InputError, match="seeds is 0; expected 1 or more"):
        categories.categorisation(vectors, known, seeds=0)
    with pytest.raises(InputError, match="clusters is 5; expected 1 to 3"):
        categories.k_means(np.zeros((3, 2)), 5)
