import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxemb import optim
from jaxemb.errors import InputError

TABLES = hnp.arrays(np.float32, (4, 3), elements=st.floats(-5, 5, width=32))


def apply(transform, params, updates):
    updates, _ = transform.update(updates, transform.init(params), params)
    return np.asarray(optax.apply_updates(params, updates))


@given(TABLES, TABLES, st.floats(0, 1), st.floats(0, 4))
def test_prox_is_row_wise_soft_thresholding(params, updates, step_size, c):
    new = apply(
        optim.group_lasso_prox(step_size, c), jnp.array(params), jnp.array(updates)
    )
    for row, result in zip((params + updates).astype(np.float64), new, strict=True):
        norm = np.sqrt(sum(x * x for x in row))
        scale = max(0.0, 1 - step_size * c / norm) if norm else 0.0
        np.testing.assert_allclose(result, scale * row, rtol=1e-4, atol=3e-6)


@pytest.mark.parametrize("threshold", [0.1, 1.0, 3.0])
def test_prox_minimises_its_definition(threshold):
    """argmin_z |z - row|^2 / 2 + threshold |z|, found by scipy."""
    row = np.array([1.0, -2.0, 0.5])
    objective = lambda z: (
        np.sum((z - row) ** 2) / 2 + threshold * np.sqrt(np.sum(z**2) + 1e-14)
    )
    best = scipy.optimize.minimize(objective, row / 2, tol=1e-12).x
    params = jnp.array([[0.3, 0.3, 0.3]])
    new = apply(
        optim.group_lasso_prox(0.5, 2 * threshold),
        params,
        jnp.array(row[None]) - params,
    )
    np.testing.assert_allclose(new[0], best, atol=1e-4)


def test_prox_ends_are_exact():
    params = jnp.array([[0.1, 0.7], [1e-3, 0.0], [0.0, 0.0]])
    updates = jnp.array([[0.3, 1e-9], [1e-4, 1e-4], [0.0, 0.0]])
    none = optim.group_lasso_prox(0.1, 0.0)
    kept, _ = none.update(updates, none.init(params), params)
    np.testing.assert_array_equal(kept, updates)
    np.testing.assert_array_equal(
        apply(optim.group_lasso_prox(1.0, 1e6), params, updates), 0
    )


def test_prox_reads_a_schedule_at_the_count_of_updates():
    schedule = optax.piecewise_constant_schedule(0.5, {2: 0.0})
    transform = optim.group_lasso_prox(schedule, 1.0)
    params = jnp.array([[3.0, 4.0]])
    state = transform.init(params)
    norms = []
    for _ in range(4):
        updates, state = transform.update(jnp.zeros((1, 2)), state, params)
        params = optax.apply_updates(params, updates)
        norms.append(float(jnp.linalg.norm(params)))
    np.testing.assert_allclose(norms, [4.5, 4.0, 4.0, 4.0], rtol=1e-5)


def test_where_chooses_the_table():
    params = {"embed": {"delta": jnp.ones((2, 2))}, "output": jnp.ones((2, 2))}
    transform = optim.group_lasso_prox(1.0, 100.0, where="embed/delta")
    updates, _ = transform.update(
        jax.tree.map(jnp.zeros_like, params), transform.init(params), params
    )
    new = optax.apply_updates(params, updates)
    assert (new["embed"]["delta"] == 0).all() and (new["output"] == 1).all()


@given(TABLES, TABLES, st.floats(0.125, 6), st.sampled_from([0, 1]))
def test_max_norm_scales_only_what_is_too_long(params, updates, limit, axis):
    new = apply(optim.max_norm(limit, axis=axis), jnp.array(params), jnp.array(updates))
    old = params + updates
    norms = np.linalg.norm(old.astype(np.float64), axis=axis, keepdims=True)
    expected = old * np.minimum(1, limit / np.maximum(norms, 1e-30))
    np.testing.assert_allclose(new, expected, rtol=1e-4, atol=3e-6)


def test_max_norm_of_a_dense_is_over_its_inputs():
    kernel = jnp.array([[3.0, 0.1], [4.0, 0.1]])  # two inputs, two outputs
    new = apply(optim.max_norm(2.5), kernel, jnp.zeros((2, 2)))
    np.testing.assert_allclose(new, [[1.5, 0.1], [2.0, 0.1]], rtol=1e-6)


def test_mistakes_are_named():
    with pytest.raises(InputError, match="c is -1"):
        optim.group_lasso_prox(0.1, -1.0)
    with pytest.raises(InputError, match="limit is 0"):
        optim.max_norm(0.0)
    transform = optim.max_norm(1.0)
    with pytest.raises(ValueError, match="needs the parameters"):
        transform.update(jnp.ones(2), transform.init(jnp.ones(2)))
