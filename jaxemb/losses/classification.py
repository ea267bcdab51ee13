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
