import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from jaxemb.analysis import figures, reconstruction
from jaxemb.losses import distances

FIVE = {
    "D1": distances.d1,
    "D√2": distances.d_sqrt2,
    "D2": distances.d2,
    "D∞": distances.d_inf,
    "Dcos": distances.d_cos,
}


def test_contours_go_through_the_same_point():
    figure = reconstruction.distance_contours(FIVE, target=(1.0, 0.6), radius=0.5)
    [axes] = figure.axes
    assert len(axes.collections) == 5
    for name, contours in zip(FIVE, axes.collections, strict=True):
        points = np.concatenate([path.vertices for path in contours.get_paths()])
        gap = np.abs(points - np.array([1.5, 0.6])).max(axis=1).min()
        assert gap < 0.02, name
        if name == "D∞":  # a square
            sides = np.abs(points - np.array([1.0, 0.6])).max(axis=1)
            np.testing.assert_allclose(sides, 0.5, atol=0.02)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == list(FIVE)
    assert "<svg" in figures.to_svg(figure)


def test_the_best_constant_is_the_median_and_the_mean():
    rng = np.random.default_rng(0)
    x = rng.gamma(1.0, size=(301, 3)) - 0.5
    for distance, wanted in (
        (distances.d1, np.median(x, axis=0)),
        (distances.d2, x.mean(axis=0)),
    ):
        found, value = reconstruction.best_constant(distance, jnp.asarray(x))
        np.testing.assert_allclose(found, wanted, atol=0.01)
        least = float(np.mean(distance(jnp.asarray(x), jnp.asarray(wanted + 0 * x))))
        np.testing.assert_allclose(value, least, rtol=1e-4)
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    found, value = reconstruction.best_constant(distances.d_cos, jnp.asarray(x))
    np.testing.assert_allclose(value, -np.linalg.norm(units.mean(axis=0)), rtol=1e-4)


@pytest.mark.parametrize("name", ["D1", "D2", "D∞", "Dcos"])
def test_the_best_constant_without_negative_coordinates(name):
    """Beside a search that knows no gradients."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(101, 2)) + np.array([0.8, -0.6])
    _, value = reconstruction.best_constant(
        FIVE[name], jnp.asarray(x), nonnegative=True
    )

    def mean(v):
        return float(
            np.mean(FIVE[name](jnp.asarray(x), jnp.asarray(np.abs(v) + 0 * x)))
        )

    searched = optimize.minimize(mean, [0.8, 0.1], method="Nelder-Mead").fun
    np.testing.assert_allclose(value, searched, rtol=2e-3)
