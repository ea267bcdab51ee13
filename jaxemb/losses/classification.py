"""Losses over class logits."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def softmax_cross_entropy(
    logits: Float[Array, "*batch classes"],
    labels: Int[Array, "*batch"],
    *,
    mask: Bool[Array, "*batch"] | None = None,
) -> Float[Array, "*batch"]:
    """`-log softmax(logits)[label]`, one float32 value per example.

    Args:
      logits: unnormalised scores, of any float dtype.
      labels: the right classes; one outside `[0, classes)` gives NaN.
      mask: False for the examples that only fill up a batch: their loss and their
        gradient are 0, whatever their logits and label.
    """
    real = jnp.ones(labels.shape, bool) if mask is None else mask
    known = (labels >= 0) & (labels < logits.shape[-1])
    logits = jnp.where(real[..., None], logits.astype(jnp.float32), 0)
    right = jnp.where(known, labels, 0)[..., None]
    log_p = jnp.take_along_axis(jax.nn.log_softmax(logits), right, axis=-1)[..., 0]
    return jnp.where(real, jnp.where(known, -log_p, jnp.nan), 0)


def sigmoid_cross_entropy(
    logits: Float[Array, "*batch classes"],
    labels: Float[Array, "*batch classes"],
    *,
    mask: Bool[Array, "*batch"] | None = None,
) -> Float[Array, "*batch"]:
    """`-mean_k [y_k ln s(x_k) + (1 - y_k) ln s(-x_k)]`, s being the logistic function.

    One float32 value per example, of which any number of classes are right.

    Args:
      logits: unnormalised scores, of any float dtype.
      labels: 1 for the right classes and 0 for the others; or probabilities.
      mask: as in `softmax_cross_entropy`.
    """
    logits = logits.astype(jnp.float32)
    if mask is not None:
        logits = jnp.where(mask[..., None], logits, 0)
    each = labels * jax.nn.softplus(-logits) + (1 - labels) * jax.nn.softplus(logits)
    mean = jnp.mean(each, axis=-1)
    return mean if mask is None else jnp.where(mask, mean, 0)


def one_vs_rest_hinge(
    logits: Float[Array, "*batch classes"],
    labels: Float[Array, "*batch classes"],
) -> Float[Array, "*batch"]:
    """`mean_k max(0, 1 - (2 y_k - 1) x_k)`: a linear support vector machine a class.

    One float32 value per example; `labels` are 1 for the right classes and 0 else.
    """
    signs = 2 * labels - 1
    return jnp.mean(jax.nn.relu(1 - signs * logits.astype(jnp.float32)), axis=-1)
