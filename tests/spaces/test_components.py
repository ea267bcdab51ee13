"""Principal components, PPA and isotropy, against sklearn and by their algebra."""

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import PCA

from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import similarity
from jaxemb.spaces import components
from jaxemb.spaces.components import Components


@pytest.fixture
def space():
    rng = np.random.default_rng(0)
    scales = np.exp(-np.arange(9) / 4)[np.newaxis]
    rotation, _ = np.linalg.qr(rng.normal(size=(9, 9)))
    return rng.normal(size=(200, 9)) * scales @ rotation + 0.5


def cosines(rows):
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def test_components_are_those_of_sklearn(space):
    ours, theirs = Components.of(space), PCA().fit(space)
    np.testing.assert_allclose(
        ours.variances * len(space) / (len(space) - 1), theirs.explained_variance_
    )
    projected = ours.project(space, slice(None))
    np.testing.assert_allclose(
        np.abs(projected), np.abs(theirs.transform(space)), atol=1e-12
    )
    single = ours.project(space, [4])
    np.testing.assert_allclose(single[:, 0], projected[:, 4], atol=1e-14)


def test_all_components_keep_the_cosines_of_centred_rows_not_of_raw_ones(space):
    projected = Components.of(space).project(space, slice(None))
    centred = space - space.mean(axis=0, keepdims=True)
    np.testing.assert_allclose(cosines(projected), cosines(centred), atol=1e-12)
    assert np.abs(cosines(projected) - cosines(space)).max() > 0.1


def test_shares_sum_to_one_whatever_rotation_and_scale(space):
    blocks = components.thirds(9)
    of = Components.of(space)
    shares = [of.share(block) for block in blocks.values()]
    assert sum(shares) == pytest.approx(1)
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(9, 9)))
    turned = Components.of(3 * space @ rotation)
    np.testing.assert_allclose([turned.share(b) for b in blocks.values()], shares)


def test_thirds_of_300_are_the_papers_blocks():
    blocks = components.thirds(300)
    assert blocks == {"T": slice(0, 100), "M": slice(100, 200), "B": slice(200, 300)}
    widths = [b.stop - b.start for b in components.thirds(50).values()]
    assert sum(widths) == 50
    assert max(widths) - min(widths) == 1


def test_ppa_by_its_algebra(space):
    centred = space - space.mean(axis=0, keepdims=True)
    np.testing.assert_allclose(components.remove_top(space, 0), centred)
    np.testing.assert_allclose(components.remove_top(space, 9), 0, atol=1e-12)
    three = components.remove_top(space, 3)
    assert np.linalg.matrix_rank(three, tol=1e-9) == 6
    top = Components.of(three).variances[0]
    assert top == pytest.approx(Components.of(space).variances[3])


def test_ppa_commutes_with_rotation(space):
    rotation, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(9, 9)))
    first = components.remove_top(space @ rotation, 2)
    np.testing.assert_allclose(first, components.remove_top(space, 2) @ rotation)


def test_the_scalar_mean_is_one_number(space):
    scalar = components.remove_top(space, 0, mean="scalar")
    np.testing.assert_allclose(scalar, space - space.mean())


def test_ppa_pca_is_its_three_steps(space):
    first = components.remove_top(space, 2)
    expected = components.remove_top(PCA(5).fit_transform(first), 2)
    ours = components.reduce(space, 5, 2)
    np.testing.assert_allclose(ours @ ours.T, expected @ expected.T, atol=1e-10)


def test_similarity_minds_neither_rotation_nor_scale(space):
    rng = np.random.default_rng(4)
    rotation, _ = np.linalg.qr(rng.normal(size=(9, 9)))
    words = tuple(f"w{i}" for i in range(200))
    ends = rng.integers(0, 100, size=(150, 2)) + np.array([[0, 100]])
    pairs = [
        WordPair(words[a], words[b], s)
        for (a, b), s in zip(ends.tolist(), rng.random(150).tolist(), strict=True)
    ]
    rhos = [
        similarity.word_similarity(
            WordVectors(words, rows.astype(np.float32)), pairs, resamples=0
        ).spearman
        for rows in (space, 3.7 * space @ rotation, space + 1)
    ]
    assert rhos[1] == pytest.approx(rhos[0], abs=1e-9)
    assert abs(rhos[2] - rhos[0]) > 1e-3


def test_a_part_of_a_space_is_treated_as_the_whole(space):
    whole, part = Components.of(space), slice(20, 60)
    for count in (0, 3):
        np.testing.assert_allclose(
            components.remove_top(space[part], count, components=whole),
            components.remove_top(space, count)[part],
        )
    np.testing.assert_allclose(
        components.reduce(space[part], 5, 2, components=whole),
        components.reduce(space, 5, 2)[part],
    )


@pytest.mark.parametrize(("dim", "count"), [(9, 2), (5, 5), (9, 6), (4, 0)])
def test_ppa_pca_at_its_edges(space, dim, count):
    first = components.remove_top(space, count)
    expected = components.remove_top(PCA(dim).fit_transform(first), count)
    ours = components.reduce(space, dim, count)
    assert ours.shape == (200, dim)
    np.testing.assert_allclose(ours @ ours.T, expected @ expected.T, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_ppa_takes_a_planted_common_direction_away(seed):
    rng = np.random.default_rng(seed)
    # The direction taken away holds a share of the truth too: 1 of 60 is little.
    clean = rng.normal(size=(2000, 60))
    common = np.zeros(60)
    common[0] = 1.0
    gain = rng.gamma(2.0, 4.0, size=2000)
    polluted = clean + gain[:, np.newaxis] * common[np.newaxis]
    pairs = rng.integers(0, 2000, size=(1000, 2))
    true = cosines(clean)[pairs[:, 0], pairs[:, 1]] + rng.normal(size=1000) * 0.06

    def rho(rows):
        return stats.spearmanr(cosines(rows)[pairs[:, 0], pairs[:, 1]], true)[0]

    assert rho(polluted) < rho(clean) - 0.2
    restored = components.remove_top(polluted, 1)
    assert abs(rho(restored) - rho(clean)) < 0.02
    assert rho(components.remove_top(polluted, 0)) < rho(clean) - 0.2
    even = components.isotropy(clean / 60)
    assert components.isotropy(polluted / 60) < even - 0.2
    assert components.isotropy(restored / 60) == pytest.approx(even, abs=0.02)


def test_isotropy_by_its_sums():
    space = np.random.default_rng(3).normal(size=(40, 4))
    _, vectors = np.linalg.eigh(space.T @ space)
    sums = [np.exp(s * space @ v).sum() for v in vectors.T for s in (1, -1)]
    assert components.isotropy(space) == pytest.approx(min(sums) / max(sums))
    assert np.isfinite(components.isotropy(1e4 * space))


def test_bad_counts_are_named(space):
    with pytest.raises(InputError, match="10 components of 9"):
        components.remove_top(space, 10)
    with pytest.raises(InputError, match="cannot be reduced to 12"):
        components.reduce(space, 12)
    with pytest.raises(InputError, match="6 components of 5 cannot be removed"):
        components.reduce(space, 5, 6)
    with pytest.raises(InputError, match="1 words"):
        Components.of(space[:1])
