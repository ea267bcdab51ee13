"""Losses of similarities against float64, scikit-learn and torch's arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import sklearn.metrics
from scipy import special

from jaxemb import losses

D = np.concatenate([[0.0], np.logspace(-4, 3, 40)])
Y = np.linspace(0, 1, len(D))


def test_bce_equals_float64():
    ours = losses.bce_from_distance(
        jnp.array(D, jnp.float32), jnp.array(Y, jnp.float32)
    )
    d = np.maximum(D, 1e-6)
    exact = Y * d - (1 - Y) * np.log(-np.expm1(-d))
    np.testing.assert_allclose(ours, exact, rtol=1e-5, atol=1e-6)
    # Away from the ends it is the cross-entropy that anyone computes.
    inside = (D > 1e-3) & (D < 10)
    p = np.exp(-D[inside])
    plain = -special.xlogy(Y[inside], p) - special.xlog1py(1 - Y[inside], -p)
    np.testing.assert_allclose(ours[inside], plain, rtol=1e-4)


def test_the_gradient_of_bce_equals_float64():
    """`y - (1 - y) / expm1(d)`, and 0 below the floor."""
    total = lambda d, y: losses.bce_from_distance(d, y).sum()
    ours = jax.grad(total)(jnp.array(D, jnp.float32), jnp.array(Y, jnp.float32))
    assert ours[0] == 0
    d, y = D[1:], Y[1:]
    with np.errstate(over="ignore"):
        exact = y - (1 - y) / np.expm1(d)
    np.testing.assert_allclose(ours[1:], exact, rtol=1e-5, atol=1e-6)


def test_bce_and_its_gradient_are_finite_at_both_ends():
    total = lambda d, y: losses.bce_from_distance(d, y).sum()
    for distance in (0.0, 1e-12, 1e3, -2.0):
        for target in (0.0, 0.3, 1.0):
            d, y = jnp.full([3], distance), jnp.full([3], target)
            assert jnp.isfinite(losses.bce_from_distance(d, y)).all()
            assert jnp.isfinite(jax.grad(total)(d, y)).all()


def test_brier_equals_scikit_learn():
    truth = np.array([0, 1, 1, 0, 1])
    p = np.array([0.1, 0.8, 0.4, 0.5, 1.0])
    ours = losses.brier(jnp.array(p), jnp.array(truth, jnp.float32)).mean()
    expected = sklearn.metrics.brier_score_loss(truth, p)
    np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_a_similarity_is_never_above_1():
    found = losses.exp_neg_distance(jnp.array([-3.0, 0.0, 1.0]))
    np.testing.assert_allclose(found, [1, 1, np.exp(-1)], rtol=1e-6)
