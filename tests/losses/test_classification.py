import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special

from jaxemb import losses

LOGITS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32) * 50
LABELS = np.array([0, 2, 1, 2])


def test_cross_entropy_is_minus_the_log_probability():
    loss = losses.softmax_cross_entropy(jnp.array(LOGITS), jnp.array(LABELS))
    log_p = scipy.special.log_softmax(LOGITS.astype(np.float64), axis=-1)
    np.testing.assert_allclose(loss, -log_p[range(4), LABELS], rtol=1e-5, atol=1e-5)


def test_loss_and_gradient_equal_optax():
    x, labels = jnp.array(LOGITS), jnp.array(LABELS)
    theirs = optax.softmax_cross_entropy_with_integer_labels
    loss, gradient = jax.vjp(lambda x: losses.softmax_cross_entropy(x, labels), x)
    expected, expected_gradient = jax.vjp(lambda x: theirs(x, labels), x)
    np.testing.assert_allclose(loss, expected, rtol=1e-6, atol=1e-6)
    weights = jnp.array([1.0, -2.0, 3.0, 0.5])
    np.testing.assert_allclose(
        gradient(weights)[0], expected_gradient(weights)[0], atol=1e-6
    )


def test_a_mask_takes_examples_out_whatever_they_hold():
    logits = jnp.array(LOGITS).at[1].set(jnp.nan)
    labels = jnp.array([0, -1, 1, 2])
    mask = jnp.array([True, False, True, True])
    total = lambda x: jnp.sum(losses.softmax_cross_entropy(x, labels, mask=mask))
    gradient = jax.grad(total)(logits)
    loss = losses.softmax_cross_entropy(logits, labels, mask=mask)
    assert loss[1] == 0 and (gradient[1] == 0).all()
    assert jnp.isfinite(loss).all() and jnp.isfinite(gradient).all()
    assert (loss[jnp.array([0, 2, 3])] > 0).any()


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_that_is_no_class_is_nan(label):
    loss = losses.softmax_cross_entropy(jnp.zeros((2, 3)), jnp.array([1, label]))
    assert jnp.isnan(loss[1]) and jnp.isfinite(loss[0])


def test_low_precision_logits_give_a_float32_loss():
    x = jnp.array(LOGITS, jnp.bfloat16)
    loss = losses.softmax_cross_entropy(x, jnp.array(LABELS))
    assert loss.dtype == jnp.float32
