import decimal

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxemb import numerics

ROWS = hnp.arrays(
    np.float32,
    (3, 4),
    elements=st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False),
)


@given(ROWS)
def test_safe_norm_is_the_norm_without_overflow_or_underflow(x):
    expected = np.linalg.norm(x.astype(np.float64), axis=-1)
    norm = np.asarray(numerics.safe_norm(jnp.array(x)))
    np.testing.assert_allclose(norm, expected, rtol=1e-5, atol=1e-36)


def test_safe_norm_has_gradients_of_two_orders_at_zero():
    x = jnp.array([[0.0, 0.0], [3.0, 4.0], [1e-25, 0.0]])
    total = lambda x: jnp.sum(numerics.safe_norm(x))
    gradient = jax.jit(jax.grad(total))(x)
    np.testing.assert_allclose(gradient, [[0, 0], [0.6, 0.8], [1, 0]], rtol=1e-6)
    second = jax.jit(jax.hessian(numerics.safe_norm))
    assert np.isfinite(second(x[0])).all()
    unit = np.array([0.6, 0.8])
    expected = (np.eye(2) - np.outer(unit, unit)) / 5  # d(x / |x|)
    np.testing.assert_allclose(second(x[1]), expected, atol=1e-6)


def test_safe_norm_of_low_precision_is_taken_in_float32():
    x = jnp.full((2, 1000), 0.1, jnp.bfloat16)
    norm = numerics.safe_norm(x)
    assert norm.dtype == jnp.float32
    expected = np.linalg.norm(np.asarray(x, np.float64), axis=-1)
    np.testing.assert_allclose(norm, expected, rtol=1e-6)
    gradient = jax.grad(lambda x: jnp.sum(numerics.safe_norm(x)))(x)
    assert gradient.dtype == jnp.bfloat16


def test_safe_norm_of_an_infinite_entry_is_infinite_and_of_nan_nan():
    x = jnp.array([[jnp.inf, 1.0], [-jnp.inf, jnp.inf], [jnp.nan, 1.0], [3.0, 4.0]])
    np.testing.assert_array_equal(
        numerics.safe_norm(x), [np.inf, np.inf, np.nan, np.float32(5)]
    )


def test_safe_norm_takes_axes_and_vmap():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    for axis in (0, 1, -1):
        norm = numerics.safe_norm(jnp.array(x), axis, keepdims=True)
        expected = np.linalg.norm(x, axis=axis, keepdims=True)
        np.testing.assert_allclose(norm, expected, rtol=1e-6)
    mapped = jax.vmap(jax.grad(lambda r: jnp.sum(numerics.safe_norm(r))))(jnp.array(x))
    expected = x / np.linalg.norm(x, axis=-1, keepdims=True)
    np.testing.assert_allclose(mapped, expected, rtol=1e-5)


def test_masked_reductions_are_those_of_the_kept_entries():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 5)).astype(np.float32) * 30
    mask = rng.random((6, 5)) < 0.5
    mask[0], mask[1] = False, True
    x[2, ~mask[2]] = np.nan
    arguments = jnp.array(x), jnp.array(mask)
    softmax = np.asarray(numerics.masked_softmax(*arguments))
    largest = numerics.masked_max(*arguments, empty=-7.0)
    mean = numerics.masked_mean(*arguments, axis=-1)
    for row in range(6):
        kept = x[row, mask[row]]
        np.testing.assert_array_equal(softmax[row, ~mask[row]], 0)
        if len(kept):
            expected = scipy.special.softmax(kept.astype(np.float64))
            np.testing.assert_allclose(softmax[row, mask[row]], expected, rtol=1e-5)
        assert largest[row] == (kept.max() if len(kept) else -7)
        expected = kept.mean() if len(kept) else 0
        np.testing.assert_allclose(mean[row], expected, rtol=1e-5)
    whole = numerics.masked_mean(*arguments)
    np.testing.assert_allclose(whole, x[mask].mean(), rtol=1e-5)


def test_masked_entries_take_no_gradient():
    x = jnp.array([1.0, jnp.nan, 3.0])
    mask = jnp.array([True, False, True])
    for f in (numerics.masked_softmax, numerics.masked_max, numerics.masked_mean):
        gradient = jax.grad(lambda x, f=f: jnp.sum(jnp.sin(f(x, mask))))(x)
        assert gradient[1] == 0 and jnp.isfinite(gradient).all()


def test_softplus_and_its_slope():
    x = np.array([-90.0, -20.0, -3.0, -1e-3, 0.0, 0.5, 17.0, 80.0], np.float32)
    exact = np.logaddexp(0, x.astype(np.float64))
    np.testing.assert_allclose(numerics.softplus(jnp.array(x)), exact, atol=1e-6)
    slope = jax.vmap(jax.grad(numerics.softplus))(jnp.array(x))
    np.testing.assert_allclose(
        slope, scipy.special.expit(x.astype(np.float64)), atol=1e-6
    )


def test_log1mexp_equals_float64_and_its_gradient_is_finite():
    x = np.concatenate([np.logspace(-6, 3, 60), [np.log(2)]]).astype(np.float32)
    with decimal.localcontext(prec=460):  # 1 - exp(-1000) has 435 nines
        exact = [float((1 - (-decimal.Decimal(float(v))).exp()).ln()) for v in x]
    ours = numerics.log1mexp(jnp.array(x))
    np.testing.assert_allclose(ours, exact, rtol=2e-6, atol=1e-36)  # no denormals
    slope = jax.vmap(jax.grad(numerics.log1mexp))(jnp.array(x))
    with np.errstate(over="ignore"):
        expected = 1 / np.expm1(x.astype(np.float64))
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-36)
    assert numerics.log1mexp(jnp.zeros([])) == -jnp.inf


def test_the_gradient_of_masked_max_survives_compilation():
    """Under jit, entries that were computed twice once differed from their maximum."""
    key = jax.random.key(0)
    kernels = [0.5 * jax.random.normal(k, (4, 4)) for k in jax.random.split(key, 4)]
    x = jax.random.normal(key, (8, 5, 4))
    mask = (
        jnp.arange(5)[None, :, None]
        < jnp.array([5, 3, 1, 4, 2, 5, 1, 3])[:, None, None]
    )

    def total(kernels):
        states = jax.nn.relu(x @ kernels[0])
        for gate, transform in (kernels[1:3], kernels[2:]):
            t = jax.nn.sigmoid(states @ gate - 1)
            states = t * jax.nn.relu(states @ transform) + (1 - t) * states
        return jnp.sum(jnp.sin(numerics.masked_max(states, mask, axis=1)))

    compiled = jax.jit(jax.grad(total))(kernels)
    with jax.disable_jit():
        eager = jax.grad(total)(kernels)
    for one, other in zip(compiled, eager, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_safe_unit_is_a_direction_and_flat_at_zero():
    x = jnp.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0]])
    np.testing.assert_allclose(
        numerics.safe_unit(x), [[0.6, 0.8], [0, 0], [1, 0]], rtol=1e-6
    )
    slope = jax.jacobian(numerics.safe_unit)(x[:2])
    np.testing.assert_array_equal(slope[1], np.zeros((2, 2, 2)))
    # The projection that takes the direction itself away, over the length.
    wanted = (np.eye(2) - np.outer([0.6, 0.8], [0.6, 0.8])) / 5
    np.testing.assert_allclose(slope[0, :, 0], wanted, rtol=1e-5)
