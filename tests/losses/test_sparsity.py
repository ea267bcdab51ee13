import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxemb import losses

TABLES = hnp.arrays(np.float32, (5, 4), elements=st.floats(-100, 100, width=32))


@given(TABLES, st.integers(0, 2**31 - 1))
def test_rotating_the_rows_keeps_the_penalty(table, seed):
    rotation = scipy.stats.ortho_group.rvs(4, random_state=seed)
    rotated = (table.astype(np.float64) @ rotation).astype(np.float32)
    np.testing.assert_allclose(
        losses.l21(jnp.array(rotated)),
        losses.l21(jnp.array(table)),
        rtol=1e-4,
        atol=1e-5,
    )


def test_an_elementwise_penalty_would_fail_the_rotation():
    table = np.array([[1.0, 0.0]])
    turned = table @ (np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2))
    assert abs(np.abs(turned).sum() - np.abs(table).sum()) > 0.4
    np.testing.assert_allclose(losses.l21(jnp.array(turned)), 1, rtol=1e-6)


@given(TABLES)
def test_value_is_the_sum_of_row_lengths(table):
    expected = sum(np.sqrt(sum(float(x) ** 2 for x in row)) for row in table)
    np.testing.assert_allclose(losses.l21(jnp.array(table)), expected, rtol=1e-5)


def test_low_precision_rows_are_added_in_float32():
    table = jnp.full((3000, 8), 0.1, jnp.bfloat16)
    expected = np.linalg.norm(np.asarray(table, np.float64), axis=1).sum()
    value = losses.l21(table)
    assert value.dtype == jnp.float32
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_the_gradient_is_exact_and_zero_at_a_zero_row():
    table = jnp.array([[0.0, 0.0], [3.0, -4.0], [0.0, 1e-12]])
    gradient = jax.jit(jax.grad(losses.l21))(table)
    np.testing.assert_allclose(gradient, [[0, 0], [0.6, -0.8], [0, 1]], rtol=1e-6)


def test_a_table_of_zeros_has_a_finite_gradient_under_jit():
    value, gradient = jax.jit(jax.value_and_grad(losses.l21))(jnp.zeros((7, 3)))
    assert value == 0 and (gradient == 0).all()
