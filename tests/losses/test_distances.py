"""Distances against scipy, and what the paper's card promises of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.spatial.distance as scipy_distance
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxemb.losses import distances

NUMBERS = st.floats(-100, 100, width=32).map(lambda x: 0.0 if abs(x) < 1e-3 else x)
PAIRS = hnp.arrays(np.float32, (2, 3, 4), elements=NUMBERS)
ALL = {
    "d1": (distances.d1, scipy_distance.cityblock),
    "d2": (distances.d2, scipy_distance.sqeuclidean),
    "d_sqrt2": (distances.d_sqrt2, scipy_distance.euclidean),
    "d_inf": (distances.d_inf, scipy_distance.chebyshev),
    "d_cos": (distances.d_cos, lambda u, v: scipy_distance.cosine(u, v) - 1),
    "squared_cosine": (
        distances.squared_cosine,
        lambda u, v: scipy_distance.cosine(u, v) ** 2,
    ),
}
RNG = np.random.default_rng(0)
U, V = RNG.normal(size=(2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("name", ALL)
def test_equals_scipy(name):
    ours, theirs = ALL[name]
    expected = [theirs(u, v) for u, v in zip(U, V, strict=True)]
    np.testing.assert_allclose(ours(jnp.array(U), jnp.array(V)), expected, rtol=1e-4)
    low = ours(jnp.array(U, jnp.bfloat16), jnp.array(V, jnp.bfloat16))
    assert low.dtype == jnp.float32 and low.shape == (3,)


def test_kl_equals_scipy():
    p, q = (scipy.special.softmax(x, axis=-1) for x in (U, V))
    p[0, 1] = q[0, 1] = p[1, 2] = 0
    expected = scipy.special.rel_entr(p, q).sum(axis=-1)
    p, q = jnp.array(p), jnp.array(q)
    np.testing.assert_allclose(distances.kl(p, q), expected, rtol=1e-5)
    for side in (0, 1):
        gradient = jax.grad(lambda *x: distances.kl(*x).sum(), side)(p, q)
        assert jnp.isfinite(gradient).all()
        assert (gradient[p == 0] == 0).all()
    assert distances.kl(p, q.at[2, 0].set(0))[2] == jnp.inf


@jax.jit
def norms(u, v):
    four = distances.d1, distances.d_sqrt2, distances.d2, distances.d_inf
    return [distance(u, v) for distance in four]


@given(PAIRS)
def test_chain_of_norms(pair):
    """Check 1 of the card."""
    one, root, two, most = (np.asarray(x, np.float64) for x in norms(*pair))
    slack = 1 + 1e-5
    assert (most <= root * slack).all() and (root <= one * slack).all()
    assert (one <= np.sqrt(4) * root * slack).all()
    np.testing.assert_allclose(two, root**2, rtol=1e-5)


@jax.jit
def cosine_and_slope_along(u, v):
    total = lambda v: (distances.d_cos(u, v).sum(), distances.d_cos(u, v))
    gradient, value = jax.grad(total, has_aux=True)(v)
    return value, jnp.sum(gradient * v, axis=-1)


@given(PAIRS, st.floats(0.01, 100))
def test_cosine_sees_directions_only(pair, scale):
    """Check 2 of the card."""
    u, v = pair
    value, along = cosine_and_slope_along(u, v)
    assert (np.abs(value) <= 1 + 1e-5).all()
    factor = np.float32(scale)
    for arguments in ((factor * u, v), (u, factor * v)):
        scaled, _ = cosine_and_slope_along(*arguments)
        np.testing.assert_allclose(scaled, value, atol=1e-5)
    np.testing.assert_allclose(along, np.zeros(3), atol=1e-5)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("where", ["both", "same", "first", "second"])
def test_gradients_are_finite_at_zero(name, where):
    zero, some = jnp.zeros((2, 4)), jnp.array(U[:2])
    u, v = {
        "both": (zero, zero),
        "same": (some, some),
        "first": (zero, some),
        "second": (some, zero),
    }[where]
    distance, _ = ALL[name]
    total = lambda u, v: distance(u, v).sum()
    gradients = jax.jit(jax.grad(total, (0, 1)))(u, v)
    assert all(jnp.isfinite(g).all() for g in gradients)
    if where in ("both", "same"):
        for gradient in gradients:
            np.testing.assert_allclose(gradient, np.zeros((2, 4)), atol=1e-6)
    if name == "d_cos" and where != "same":
        assert (distance(u, v) == 0).all()


@pytest.mark.parametrize("name", ALL)
def test_no_nonnegative_vector_is_below_the_floor(name):
    """Check 5 of the card, by a bounded search from many starts."""
    distance, theirs = ALL[name]
    floor = distances.nonnegative_floor(distance, jnp.array(U))
    if name == "d2":
        np.testing.assert_allclose(floor, (np.minimum(U, 0) ** 2).sum(-1), rtol=1e-5)
    if name == "d1":
        np.testing.assert_allclose(floor, np.maximum(-U, 0).sum(-1), rtol=1e-5)
    for row, least in zip(U, floor, strict=True):
        found = [
            scipy.optimize.minimize(
                lambda v, row=row: theirs(row, v),
                np.abs(RNG.normal(size=4)) + 0.1,
                bounds=[(1e-9, None)] * 4,
                method="Nelder-Mead",
            ).fun
            for _ in range(3)
        ]
        assert min(found) >= least - 1e-4
        assert min(found) <= least + 0.05 * (1 + abs(float(least)))


def test_symmetric_kl_of_softmaxes():
    rng = np.random.default_rng(4)
    u, v = rng.normal(size=(2, 20, 5)).astype(np.float32)
    p, q = (scipy.special.softmax(x.astype(float), axis=-1) for x in (u, v))
    u, v = jnp.asarray(u), jnp.asarray(v)
    both = distances.symmetric_kl_softmax
    wanted = (scipy.special.rel_entr(p, q) + scipy.special.rel_entr(q, p)).sum(-1)
    np.testing.assert_allclose(both(u, v), wanted, rtol=1e-4)
    np.testing.assert_array_equal(both(u, v), both(v, u))
    assert np.abs(both(u, u + 3)).max() < 1e-6
    assert (np.asarray(both(u, v)) > 1e-3).all()
