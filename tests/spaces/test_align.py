"""Procrustes, VecMap's map and RCSLS, against planted answers and plain numpy."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from jaxemb.errors import InputError
from jaxemb.spaces import align, normalize, rcsls, retrieval, spectrum

GRID = (-0.5, -0.25, 0.0, 0.15, 0.5)


def rotation(dim, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


def planted(seed=0, words=300, dim=8, noise=0.05):
    rng = np.random.default_rng(seed)
    scales = np.exp(-np.arange(dim) / 4)[np.newaxis]
    source = rng.normal(size=(words, dim)) * scales
    target = source @ rotation(dim, seed) + noise * rng.normal(size=(words, dim))
    return source, target


def cross_cosines(source, target, maps):
    rows = [
        normalize.unit(source @ maps.source),
        normalize.unit(target @ maps.target),
    ]
    return rows[0] @ rows[1].T


def mrr(source, target, maps):
    rows = [
        normalize.unit(source @ maps.source),
        normalize.unit(target @ maps.target),
    ]
    return float(np.mean(1 / retrieval.ranks(*rows, np.arange(len(source)))))


def test_procrustes_finds_a_planted_rotation_and_beats_random_ones():
    source, _ = planted()
    truth = rotation(8, 5)
    np.testing.assert_allclose(align.procrustes(source, source @ truth), truth)
    source, target = planted(noise=0.3)
    found = align.procrustes(source, target)
    np.testing.assert_allclose(found @ found.T, np.eye(8), atol=1e-12)
    np.testing.assert_allclose(found, orthogonal_procrustes(source, target)[0])
    error = np.linalg.norm(source @ found - target)
    for seed in range(1000):
        assert np.linalg.norm(source @ rotation(8, seed) - target) > error


def vecmap_in_numpy(x, z, reweight, dewhiten):
    """The steps of the card, one after the other, with scipy-free inverse roots."""

    def root(m, sign):
        u, s, vt = np.linalg.svd(m, full_matrices=False)
        return vt.T @ np.diag(s**sign) @ vt

    white_x, white_z = root(x, -1.0), root(z, -1.0)
    xw, zw = x @ white_x, z @ white_z
    p, s, qt = np.linalg.svd(xw.T @ zw)
    xw, zw = xw @ p * s**reweight, zw @ qt.T * s**reweight
    if dewhiten:
        xw = xw @ p.T @ np.linalg.inv(white_x) @ p
        zw = zw @ qt @ np.linalg.inv(white_z) @ qt.T
    return xw, zw


@pytest.mark.parametrize("reweight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("dewhiten", [True, False])
def test_the_map_in_steps_is_vecmaps(reweight, dewhiten):
    x, z = planted(1, noise=0.3)
    maps = align.advanced(x, z, reweight=reweight, dewhiten=dewhiten)
    expected = vecmap_in_numpy(x, z, reweight, dewhiten)
    products = (x @ maps.source) @ (z @ maps.target).T
    np.testing.assert_allclose(products, expected[0] @ expected[1].T, atol=1e-9)


def test_spaces_of_different_width_can_be_mapped():
    x, z = planted(2)
    maps = align.advanced(np.concatenate([x, x[:, :2] ** 2], axis=1), z)
    assert maps.source.shape == (10, 8)
    assert maps.target.shape == (8, 8)


ALIGNERS = {
    "orthogonal": align.orthogonal,
    "advanced": align.advanced,
    "not de-whitened": lambda x, z: align.advanced(x, z, dewhiten=False),
    "rcsls": lambda x, z: rcsls.rcsls(x, z, x, z).maps,
}


@pytest.mark.parametrize("name", ALIGNERS)
def test_order_zero_changes_no_cosine(name):
    x, z = planted(3, noise=0.2)
    seed = slice(100)

    def cosines(x, z):
        x, z = (normalize.normalize(s, ["unit", "center", "unit"]) for s in (x, z))
        return cross_cosines(x, z, ALIGNERS[name](x[seed], z[seed]))

    zeros = [spectrum.similarity_order(side, 0.0) for side in (x, z)]
    # RCSLS looks for neighbours in float32, where a rotation is not exact.
    tolerance = 1e-5 if name == "rcsls" else 1e-10
    np.testing.assert_allclose(cosines(*zeros), cosines(x, z), atol=tolerance)


@pytest.mark.parametrize("alphas", [(a, b) for a in GRID for b in GRID])
def test_whitening_undoes_any_order_unless_something_else_is_done(alphas):
    x, z = planted(4, noise=0.2)
    changed = [
        spectrum.similarity_order(side, alpha)
        for side, alpha in zip((x, z), alphas, strict=True)
    ]

    def cosines(x, z, dewhiten):
        return cross_cosines(x, z, align.advanced(x, z, dewhiten=dewhiten))

    plain = cosines(x, z, False)
    np.testing.assert_allclose(cosines(*changed, False), plain, atol=1e-9)
    if alphas != (0.0, 0.0):
        gap = cosines(*changed, True) - cosines(x, z, True)
        assert np.abs(gap).max() > 0.01
        units = cosines(*map(normalize.unit, changed), False)
        assert np.abs(units - cosines(*map(normalize.unit, (x, z)), False)).max() > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_a_mismatch_of_spectra_is_mended_by_the_right_orders_only(seed):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(2000, 30))
    spread = np.exp(-np.arange(30) / 8)[np.newaxis]
    source = (latent * spread**1.5) @ rotation(30, seed)
    target = (latent * spread**0.5) @ rotation(30, seed + 10)
    source, target = (s + 0.01 * rng.normal(size=s.shape) for s in (source, target))

    def score(alphas):
        sides = [
            normalize.unit(spectrum.similarity_order(side, alpha))
            for side, alpha in zip((source, target), alphas, strict=True)
        ]
        return mrr(*sides, align.orthogonal(*(side[:200] for side in sides)))

    base, mended, harmed = score((0.0, 0.0)), score((-0.25, 0.15)), score((0.15, -0.25))
    assert 0.93 < base < 0.99
    assert mended > 0.99
    assert 0.45 < harmed < 0.65


def test_rcsls_gradient_is_that_of_finite_differences():
    x, z = (normalize.unit(side) for side in planted(5, words=40, dim=5, noise=0.3))
    matrix = align.procrustes(x[:20], z[:20])
    _, gradient = rcsls.loss_and_gradient(matrix, x[:20], z[:20], x, z, 3)
    step = 1e-5
    numeric = np.zeros_like(matrix)
    for index in np.ndindex(matrix.shape):
        change = np.zeros_like(matrix)
        change[index] = step
        ends = [
            rcsls.loss_and_gradient(matrix + s * change, x[:20], z[:20], x, z, 3)[0]
            for s in (1, -1)
        ]
        numeric[index] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)


@pytest.mark.parametrize("spectral", [False, True])
def test_rcsls_lowers_its_loss_and_helps_retrieval(spectral):
    x, z = planted(6, words=400, dim=10, noise=0.25)
    z = z * np.linspace(0.5, 1.5, 10)[np.newaxis]  # no rotation will do
    x, z = normalize.unit(x), normalize.unit(z)
    settings = rcsls.RCSLS(spectral=spectral, learning_rate=0.5, most=30)
    trained = rcsls.rcsls(x[:200], z[:200], x, z, settings)
    assert len(trained.losses) > 2
    assert np.all(np.diff(trained.losses) <= 0)
    values = np.linalg.svd(trained.maps.source, compute_uv=False)
    if spectral:
        assert values.max() <= 1 + 1e-12
    else:
        assert mrr(x, z, trained.maps) > mrr(x, z, align.orthogonal(x[:200], z[:200]))


def test_bad_pairs_are_named():
    x, z = planted()
    with pytest.raises(InputError, match="0 source and 0 target words"):
        align.procrustes(x[:0], z[:0])
    with pytest.raises(InputError, match="one width, not 8 and 7"):
        rcsls.rcsls(x, z[:, :7], x, z[:, :7])


@pytest.mark.parametrize("words", [5, 8192, 8200])
def test_all_rows_are_mapped_as_one_after_the_other_would_be(words):
    rng = np.random.default_rng(3)
    space = rng.normal(loc=0.3, size=(words, 6)).astype(np.float32)
    space[2] = 0
    matrix = rng.normal(size=(6, 4))
    steps = normalize.normalize(space, ("unit", "center", "unit"))
    normaliser = normalize.UnitCenterUnit.of(space)
    np.testing.assert_allclose(normaliser.rows(space[1:4]), steps[1:4], atol=1e-12)
    found = align.map_rows(space, normaliser, matrix)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, normalize.unit(steps @ matrix), atol=2e-6)
