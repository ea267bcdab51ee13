"""Closed-form fits: checks 3, 4 and 9 of the paper's card."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
import scipy.optimize

from jaxemb.analysis import linear
from jaxemb.data import synthetic
from jaxemb.errors import InputError
from jaxemb.losses import distances

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(12, 3))
TARGETS = RNG.normal(size=(12, 2))


def test_median_and_mean():
    """Check 3: constant features, and one outlier."""
    features, targets = np.full((3, 1), 1.0), np.array([[1.0], [2.0], [999.0]])
    assert linear.least_absolute_deviations(features, targets).item() == pytest.approx(
        2
    )
    assert linear.least_squares(features, targets).item() == pytest.approx(334)
    # z = (1/d') 1 with d' = 3, as printed: weights are many, their mean is the median.
    thirds = np.full((3, 3), 1 / 3)
    fits = thirds @ linear.least_absolute_deviations(thirds, targets)
    np.testing.assert_allclose(fits, np.full((3, 1), 2.0))
    with pytest.raises(InputError, match="rank 3, found rank 1"):
        linear.least_squares(thirds, targets)
    z, x = jnp.asarray(thirds, jnp.float32), jnp.asarray(targets, jnp.float32)
    loss = lambda weights: jnp.mean(distances.d2(x, z @ weights))
    step = lambda _, weights: weights - jax.grad(loss)(weights)
    weights = jax.jit(lambda w: jax.lax.fori_loop(0, 50, step, w))(jnp.zeros((3, 1)))
    np.testing.assert_allclose(z @ weights, np.full((3, 1), 334.0), rtol=1e-5)

    def total(value):  # of one coordinate: the largest is the only one
        return float(distances.d_inf(jnp.array(targets), jnp.full((3, 1), value)).sum())

    found = scipy.optimize.minimize_scalar(total, bounds=(0, 1000), method="bounded")
    assert found.x == pytest.approx(2, abs=1e-2)


def test_gradient_descent_on_d2_reaches_the_closed_form():
    """Check 4, first half."""
    z, x = jnp.array(FEATURES, jnp.float32), jnp.array(TARGETS, jnp.float32)
    loss = lambda weights: jnp.mean(distances.d2(x, z @ weights))
    step = lambda _, weights: weights - 0.2 * jax.grad(loss)(weights)
    weights = jax.jit(lambda w: jax.lax.fori_loop(0, 500, step, w))(jnp.zeros((3, 2)))
    np.testing.assert_allclose(
        weights, linear.least_squares(FEATURES, TARGETS), atol=1e-4
    )


def test_leaving_a_word_out_moves_its_fit_by_the_formula():
    """Check 4, second half."""
    whole = FEATURES @ linear.least_squares(FEATURES, TARGETS)
    change = linear.leave_one_out(FEATURES, TARGETS)
    for row in range(len(FEATURES)):
        others = np.delete(FEATURES, row, axis=0), np.delete(TARGETS, row, axis=0)
        again = FEATURES[row] @ linear.least_squares(*others)
        np.testing.assert_allclose(again - whole[row], change[row], atol=1e-10)


def test_absolute_deviations_are_least():
    """Against a search without derivatives, and the optimality of the median."""
    weights = linear.least_absolute_deviations(FEATURES, TARGETS)
    for column, own in zip(TARGETS.T, weights.T, strict=True):
        total = lambda w, column=column: np.abs(column - FEATURES @ w).sum()
        options = {"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-9}
        found = scipy.optimize.minimize(
            total, own + 0.3, method="Nelder-Mead", options=options
        )
        assert total(own) <= found.fun + 1e-9
        near = [own + 1e-3 * RNG.normal(size=3) for _ in range(50)]
        assert all(total(w) >= total(own) - 1e-12 for w in near)


def test_outliers_hurt_squares_more():
    """Check 9 for the linear model: a tenth of the teacher's rows is noise."""
    world = synthetic.planted_morphology(dim=4)
    stems = sorted({stem for stem, _ in world.parts.values()})
    suffixes = sorted({suffix for _, suffix in world.parts.values()})

    def features(words):
        rows = np.zeros((len(words), len(stems) + len(suffixes) - 1))
        for row, word in zip(rows, words, strict=True):
            stem, suffix = world.parts[word]
            row[stems.index(stem)] = 1
            if suffix != suffixes[0]:
                row[len(stems) + suffixes.index(suffix) - 1] = 1
        return rows

    train, test = features(world.train), features(world.held_out)
    targets = world.vectors.lookup(world.train).astype(np.float64)
    rng = np.random.default_rng(0)
    broken = rng.choice(len(targets), len(targets) // 10, replace=False)
    targets[broken] += 30 * rng.normal(size=(len(broken), 4))
    truth = world.vectors.lookup(world.held_out)
    errors = {
        fit.__name__: np.abs(test @ fit(train, targets) - truth).sum(axis=1).mean()
        for fit in (linear.least_squares, linear.least_absolute_deviations)
    }
    assert errors["least_absolute_deviations"] < 0.5 * errors["least_squares"]


def test_mistakes_are_named(monkeypatch):
    with pytest.raises(InputError, match="rank 2, found rank 1"):
        linear.least_squares(np.ones((4, 2)), np.ones((4, 1)))
    alone = np.eye(3)
    assert np.isnan(linear.leave_one_out(alone, np.ones((3, 1)))).all()
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user has none
    with pytest.raises(InputError, match="targets for 12 words, found 3"):
        linear.least_absolute_deviations(FEATURES, TARGETS[:3])
