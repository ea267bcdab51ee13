"""Geometric meta-embeddings: the objective by its definition, two solvers, pymanopt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxemb.errors import InputError
from jaxemb.spaces import combine, geometric, manifolds, normalize, spectrum
from jaxemb.spaces.geometric import Geometry, Grams


def rotation(dim, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


def sources(seed=0, words=200, dim=6, count=2):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(words, dim))
    return [
        latent @ rng.normal(size=(dim, dim)) + 0.3 * rng.normal(size=(words, dim))
        for _ in range(count)
    ]


def explicit_objective(geometry, spaces, c):
    total = c * np.sum(geometry.metric**2)
    for s in range(len(spaces)):
        for t in range(s + 1, len(spaces)):
            u, v = geometry.rotations[s], geometry.rotations[t]
            product = spaces[s] @ u.T @ geometry.metric @ v @ spaces[t].T
            total += np.sum((product - np.eye(len(product))) ** 2)
    return total


def test_the_objective_from_grams_is_that_of_all_pairs_of_words():
    for count in (2, 3):
        spaces = sources(count=count)
        rng = np.random.default_rng(1)
        root = rng.normal(size=(6, 6))
        geometry = Geometry(
            tuple(rotation(6, s) for s in range(count)), root @ root.T / 50
        )
        found = geometric.objective(geometry, Grams.of(spaces), 3.0)
        expected = explicit_objective(geometry, spaces, 3.0)
        assert found == pytest.approx(expected, rel=1e-10)


def test_the_closed_form_is_a_minimum():
    spaces = sources(2)
    grams = Grams.of(spaces)
    best = geometric.closed_form(grams, 5.0)
    lowest = geometric.objective(best, grams, 5.0)
    w = best.rotations[0].T @ best.metric @ best.rotations[1]
    residual = grams.products[0][0] @ w @ grams.products[1][1] + 5.0 * w
    np.testing.assert_allclose(residual, grams.products[0][1], rtol=1e-8)
    rng = np.random.default_rng(3)
    for _ in range(200):
        changed = w + 10 ** rng.uniform(-4, 0) * np.abs(w).mean() * rng.normal(
            size=w.shape
        )
        left, values, right = np.linalg.svd(changed)
        other = Geometry((left.T, right), np.diag(values))
        assert geometric.objective(other, grams, 5.0) > lowest


def test_descent_reaches_the_closed_form_from_a_start_of_its_signs_only():
    grams = Grams.of(sources(4))
    best = geometric.closed_form(grams, 5.0)
    lowest = geometric.objective(best, grams, 5.0)
    start = geometric.disturbed(best, jax.random.key(0), 1.5)
    assert geometric.objective(start, grams, 5.0) > 1.05 * lowest
    found, end = geometric.riemannian(grams, 5.0, start, most=1000)
    assert geometric.objective(found, grams, 5.0) == pytest.approx(lowest, rel=1e-5)
    assert end.cost == pytest.approx(geometric.objective(found, grams, 5.0))
    costs = end.costs[: end.iterations]
    assert np.all(np.diff(costs) <= 0)
    for rotated in found.rotations:
        np.testing.assert_allclose(rotated @ rotated.T, np.eye(6), atol=1e-9)
    assert np.linalg.eigvalsh(found.metric).min() > 0
    mirror = np.diag([1.0] * 5 + [-1.0])
    mirrored = Geometry((mirror @ start.rotations[0], start.rotations[1]), start.metric)
    missed, _ = geometric.riemannian(grams, 5.0, mirrored, most=1000)
    assert geometric.objective(missed, grams, 5.0) > lowest * (1 + 1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_random_starts_have_the_asked_signs_and_end_near_the_minimum(seed):
    grams = Grams.of(sources(4))
    best = geometric.closed_form(grams, 5.0)
    start = geometric.random_start(grams, jax.random.key(seed), like=best)
    signs = [[np.linalg.slogdet(u)[0] for u in g.rotations] for g in (start, best)]
    assert signs[0] == signs[1]
    found, _ = geometric.riemannian(grams, 5.0, start, most=1000)
    gap = geometric.objective(found, grams, 5.0) / geometric.objective(best, grams, 5.0)
    assert 1 <= gap < 1.02


@pytest.fixture
def pymanopt():
    """The library, whose import turns on 64 bits for the whole process."""
    before = jax.config.jax_enable_x64
    library = pytest.importorskip("pymanopt")
    jax.config.update("jax_enable_x64", before)
    return library


def test_pymanopt_finds_the_same_minimum(pymanopt):
    from pymanopt.manifolds import Product, Stiefel, SymmetricPositiveDefinite
    from pymanopt.optimizers import ConjugateGradient

    spaces = sources(5, words=100, dim=4)
    grams = Grams.of(spaces)
    gx, gz, gxz = grams.products[0][0], grams.products[1][1], grams.products[0][1]
    manifold = Product([Stiefel(4, 4), Stiefel(4, 4), SymmetricPositiveDefinite(4)])

    @pymanopt.function.numpy(manifold)
    def cost(u, v, b):
        w = u.T @ b @ v
        fit = np.trace(w.T @ gx @ w @ gz) - 2 * np.sum(w * gxz)
        return fit + 100 + 2.0 * np.sum(b**2)

    @pymanopt.function.numpy(manifold)
    def gradient(u, v, b):
        w = u.T @ b @ v
        slope = 2 * gx @ w @ gz - 2 * gxz
        return b @ v @ slope.T, b.T @ u @ slope, u @ slope @ v.T + 4.0 * b

    best = geometric.closed_form(grams, 2.0)
    start = geometric.random_start(grams, jax.random.key(1), like=best)
    optimizer = ConjugateGradient(
        max_iterations=2000, min_gradient_norm=1e-6, verbosity=0
    )
    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient)
    point = [*start.rotations, start.metric]
    theirs = optimizer.run(problem, initial_point=point).cost
    lowest = geometric.objective(best, grams, 2.0)
    assert theirs == pytest.approx(lowest, rel=1e-5)


def test_the_latent_space_may_be_turned():
    spaces = sources(6)
    best = geometric.closed_form(Grams.of(spaces), 5.0)
    turn = rotation(6, 9)
    turned = Geometry(
        tuple(turn.T @ u for u in best.rotations), turn.T @ best.metric @ turn
    )
    for normalised in (True, False):
        plain, other = (
            combine.average(g.latents(spaces, normalize=normalised))
            for g in (best, turned)
        )
        np.testing.assert_allclose(plain @ plain.T, other @ other.T, atol=1e-9)
    x, z = spaces
    w = best.rotations[0].T @ best.metric @ best.rotations[1]
    mean = combine.average(best.latents(spaces, normalize=False))
    expected = (
        x @ spectrum.power(w @ w.T, 0.5) @ x.T
        + x @ w @ z.T
        + z @ w.T @ x.T
        + z @ spectrum.power(w.T @ w, 0.5) @ z.T
    )
    np.testing.assert_allclose(4 * mean @ mean.T, expected, atol=1e-8)


@pytest.mark.parametrize("c", [1e-8, 1.0, 1e12])
def test_a_turned_copy_has_equal_latents(c):
    x = sources(7)[0]
    z = x @ rotation(6, 3).T
    grams = Grams.of([x, z])
    best = geometric.closed_form(grams, c)
    first, second = best.latents([x, z], normalize=False)
    scale = np.abs(first).max()
    np.testing.assert_allclose(first / scale, second / scale, atol=1e-7)
    a = np.linalg.eigvalsh(x.T @ x)[::-1]
    expected = np.sort(a / (a**2 + c))[::-1]
    np.testing.assert_allclose(np.diag(best.metric), expected, rtol=1e-7)
    cosines = [normalize.unit(rows) @ normalize.unit(rows).T for rows in (first,)][0]
    if c < 1e-6:  # whitening
        white = normalize.unit(spectrum.similarity_order(x, -0.5))
        np.testing.assert_allclose(cosines, white @ white.T, atol=1e-6)
    if c > 1e6:  # the similarity of second order
        second_order = normalize.unit(spectrum.similarity_order(x, 0.5))
        expected = second_order @ second_order.T
        np.testing.assert_allclose(cosines, expected, atol=1e-3)


def test_opposite_sources_cancel_in_the_average_only():
    x = sources(8)[0]
    np.testing.assert_array_equal(combine.average([x, -x]), 0)
    best = geometric.closed_form(Grams.of([x, -x]), 1.0)
    assert np.linalg.norm(combine.average(best.latents([x, -x])), axis=1).min() > 0.9


def test_the_identity_is_plain_averaging_and_concatenation_bit_for_bit():
    x, z = sources(9)
    latents = Geometry.identity(2, 6).latents([x, z], normalize=False)
    np.testing.assert_array_equal(combine.average(latents), (x + z) / 2)
    np.testing.assert_array_equal(
        combine.concatenate(latents), np.concatenate([x, z], axis=1)
    )


@pytest.mark.parametrize("seed", range(5))
def test_planted_latents_are_better_seen_through_the_geometry(seed):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(1000, 20))
    truth = normalize.unit(latent)
    spaces = []
    for _ in range(2):
        map_ = rotation(20, rng.integers(1 << 30)) * rng.lognormal(0, 1, 20)[:, None]
        spaces.append(latent @ map_ + 0.3 * rng.normal(size=(1000, 20)))
    spaces = [normalize.unit(s) for s in spaces]
    pairs = rng.integers(0, 1000, size=(4000, 2))

    def score(rows):
        rows = normalize.unit(rows)
        given = np.sum(rows[pairs[:, 0]] * rows[pairs[:, 1]], axis=1)
        true = np.sum(truth[pairs[:, 0]] * truth[pairs[:, 1]], axis=1)
        return stats.spearmanr(given, true)[0]

    plain = score(combine.average(spaces))
    scores = {
        c: score(
            combine.average(geometric.closed_form(Grams.of(spaces), c).latents(spaces))
        )
        for c in (1.0, 1e4)
    }
    assert scores[1.0] > plain + 0.1
    assert scores[1.0] > scores[1e4] + 0.1


def test_ablations_learn_what_they_may():
    grams = Grams.of(sources(10))
    start = Geometry.identity(2, 6)
    turned, _ = geometric.riemannian(grams, 5.0, start, metric=False, most=300)
    np.testing.assert_array_equal(turned.metric, np.eye(6))
    scaled, _ = geometric.riemannian(grams, 5.0, start, rotate=False, most=300)
    for still in scaled.rotations:
        np.testing.assert_array_equal(still, np.eye(6))
    costs = [geometric.objective(g, grams, 5.0) for g in (start, turned, scaled)]
    best = geometric.objective(geometric.closed_form(grams, 5.0), grams, 5.0)
    assert best < min(costs[1:])
    assert max(costs[1:]) < costs[0]


def test_three_sources_start_near_the_minimum():
    grams = Grams.of(sources(11, count=3))
    start = geometric.start_for(grams, 5.0)
    begun = geometric.objective(start, grams, 5.0)
    found, end = geometric.riemannian(grams, 5.0, start, most=2000)
    assert geometric.objective(found, grams, 5.0) < begun
    random = geometric.random_start(grams, jax.random.key(2), like=start)
    other, _ = geometric.riemannian(grams, 5.0, random, most=2000)
    gap = geometric.objective(other, grams, 5.0) / end.cost
    assert gap > 0.999
    two = geometric.start_for(Grams.of(sources(12)), 5.0)
    expected = geometric.closed_form(Grams.of(sources(12)), 5.0)
    assert geometric.objective(two, Grams.of(sources(12)), 5.0) == pytest.approx(
        geometric.objective(expected, Grams.of(sources(12)), 5.0)
    )


def test_tangents_and_retractions():
    with jax.enable_x64(True):
        key = jax.random.key(4)
        for manifold in (manifolds.Orthogonal(5), manifolds.Definite(5)):
            point = manifold.random(key)
            ambient = jax.random.normal(jax.random.key(5), (5, 5))
            tangent = manifold.transport(point, ambient)
            if isinstance(manifold, manifolds.Orthogonal):
                moved = point.T @ tangent
                np.testing.assert_allclose(moved, -moved.T, atol=1e-12)
            ends = [manifold.retract(point, s * tangent) for s in (1e-6, -1e-6)]
            np.testing.assert_allclose((ends[0] - ends[1]) / 2e-6, tangent, atol=1e-5)
            # The gradient's product with a tangent is the derivative along it.
            target = jax.random.normal(jax.random.key(6), (5, 5))
            gradient = manifold.gradient(point, target)
            slope = manifold.inner(point, gradient, tangent)
            assert float(slope) == pytest.approx(float(jnp.sum(target * tangent)))


def test_widths_and_words_that_differ():
    rng = np.random.default_rng(13)
    wide = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 8))
    narrow = rng.normal(size=(50, 3))
    first, second = combine.same_width([wide, narrow])
    np.testing.assert_allclose(first @ first.T, wide @ wide.T, atol=1e-9)
    np.testing.assert_array_equal(second, narrow)
    padded = combine.same_width([wide, narrow], "pad")[1]
    np.testing.assert_array_equal(padded[:, :3], narrow)
    np.testing.assert_array_equal(padded[:, 3:], 0)


def test_missing_rows_come_from_the_other_sources():
    rng = np.random.default_rng(14)
    first = rng.normal(size=(80, 4))
    second = first @ rng.normal(size=(4, 5))
    known = [np.arange(80) < 60, np.arange(80) >= 20]
    holes = [
        np.where(has[:, np.newaxis], space, 77.0)
        for has, space in zip(known, (first, second), strict=True)
    ]
    filled = combine.impute(holes, known, ridge=1e-9)
    np.testing.assert_allclose(filled[1], second, atol=1e-5)
    np.testing.assert_allclose(filled[0], first, atol=1e-5)
    with pytest.raises(InputError, match="20 words are in none"):
        combine.impute(holes, [np.arange(80) < 60] * 2)


def test_bad_arguments_are_named():
    x, z = sources()
    with pytest.raises(InputError, match="c = 0.0: expected a number above 0"):
        geometric.closed_form(Grams.of([x, z]), 0.0)
    with pytest.raises(InputError, match=r"1 sources of widths \[6\]"):
        Grams.of([x])
    with pytest.raises(InputError, match=r"widths \[4, 6\]"):
        Grams.of([x, z[:, :4]])
    with pytest.raises(InputError, match="3 sources: the closed form is for two"):
        geometric.closed_form(Grams.of([x, z, x]), 1.0)
    with pytest.raises(InputError, match="nothing to learn"):
        geometric.riemannian(
            Grams.of([x, z]), 1.0, Geometry.identity(2, 6), metric=False, rotate=False
        )
    x[0, 0] = np.inf
    with pytest.raises(InputError, match="not finite"), np.errstate(invalid="ignore"):
        geometric.closed_form(Grams.of([x, z]), 1.0)
