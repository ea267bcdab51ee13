"""Reconstruction losses: against scipy, and with coordinates that do not count."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.spatial.distance as scipy_distance
from scipy import special

from jaxemb import losses
from jaxemb.errors import InputError
from jaxemb.losses import distances

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 6, 5)).astype(np.float32)
MASK = RNG.random((6, 5)) < 0.6
MASK[0], MASK[1] = True, False

ORACLES = {
    "l1": scipy_distance.cityblock,
    "l2": scipy_distance.sqeuclidean,
    "cosine": lambda x, y: scipy_distance.cosine(x, y) ** 2,
    "kl": lambda x, y: special.rel_entr(special.softmax(x), special.softmax(y)).sum(),
}


@pytest.mark.parametrize("loss", ORACLES)
def test_only_coordinates_that_count(loss):
    whole = losses.reconstruction(jnp.array(X), jnp.array(Y), loss)
    oracle = ORACLES[loss]
    expected = [oracle(x, y) for x, y in zip(X, Y, strict=True)]
    np.testing.assert_allclose(whole, expected, rtol=1e-4)
    found = losses.reconstruction(jnp.array(X), jnp.array(Y), loss, jnp.array(MASK))
    expected = [
        oracle(x[m], y[m]) if m.any() else 0.0
        for x, y, m in zip(X, Y, MASK, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)
    total = lambda y: losses.reconstruction(
        jnp.array(X), y, loss, jnp.array(MASK)
    ).sum()
    gradient = jax.grad(total)(jnp.array(Y))
    assert jnp.isfinite(gradient).all()
    assert (gradient[~MASK] == 0).all()


def test_kl_is_at_least_0_and_blind_to_constants():
    x, y = jnp.array(X), jnp.array(Y)
    assert (distances.kl_softmax(x, y) >= 0).all()
    shifted = x + jnp.arange(6.0)[:, None] * jnp.ones([1, 5])
    np.testing.assert_allclose(distances.kl_softmax(x, shifted), 0, atol=1e-6)
    assert jnp.isfinite(distances.kl_softmax(1e4 * x, -1e4 * y)).all()


def test_squared_cosine_is_no_metric():
    angles = np.deg2rad([0, 45, 90])
    a, b, c = jnp.array(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    d = distances.squared_cosine
    through = float(d(a, b) + d(b, c))
    np.testing.assert_allclose(through, 2 * (1 - np.sqrt(0.5)) ** 2, rtol=1e-5)
    assert float(d(a, c)) > through  # 1 against 0.172
    np.testing.assert_allclose(d(a, 7 * a), 0, atol=1e-6)
    assert d(a, -a) > 3.9 and d(a, b) > 0
    np.testing.assert_allclose(d(3 * a, b), d(b, a), rtol=1e-6)


def test_the_asymmetric_score():
    x, y = jnp.array(X), jnp.array(Y)
    here, there = distances.asymmetric_cosine(x, y), distances.asymmetric_cosine(y, x)
    assert (jnp.abs(here - there) > 1e-4).all()
    expected = 1 - np.sum(X * Y, axis=1) / np.sum(X * X, axis=1)
    np.testing.assert_allclose(here, expected, rtol=1e-5)
    same = Y * (np.linalg.norm(X, axis=1) / np.linalg.norm(Y, axis=1))[:, None]
    np.testing.assert_allclose(
        distances.asymmetric_cosine(x, jnp.array(same)),
        [scipy_distance.cosine(a, b) for a, b in zip(X, Y, strict=True)],
        rtol=1e-4,
    )
    across, along = jnp.array([[1.0, 0.0]]), jnp.array([[0.0, 5.0]])
    assert distances.asymmetric_cosine(across, along) == 1
    assert distances.asymmetric_cosine(along, across) == 1
    np.testing.assert_allclose(distances.asymmetric_cosine(x, 3 * x), -2, rtol=1e-5)
    zero = jnp.zeros_like(x)
    slope = jax.grad(lambda u: distances.asymmetric_cosine(u, y).sum())(zero)
    assert (distances.asymmetric_cosine(zero, y) == 1).all() and (slope == 0).all()


def test_an_unknown_loss_is_named():
    with pytest.raises(InputError, match="'mse'; expected one of l1, l2, cosine, kl"):
        losses.reconstruction.__wrapped__(jnp.array(X), jnp.array(Y), "mse")
