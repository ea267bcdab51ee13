"""Losses of a distance between two vectors against a similarity in [0, 1]."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxemb import numerics

_FLOOR = 1e-6  # of a distance: below it log(1 - exp(-d)) has no finite slope

Values = Float[Array, "*batch"]


def exp_neg_distance(distance: Values) -> Values:
    """`exp(-d)`, a similarity in (0, 1]; a distance below 0 counts as 0."""
    return jnp.exp(-jnp.maximum(distance.astype(jnp.float32), 0))


def brier(predicted: Values, target: Values) -> Values:
    """`(y - p)^2` (Brier 1950); of a similarity that is no probability, OLS."""
    return jnp.square(target.astype(jnp.float32) - predicted.astype(jnp.float32))


def bce_from_distance(
    distance: Values, target: Values, *, floor: float = _FLOOR
) -> Values:
    """`-y log p - (1 - y) log(1 - p)` with `p = exp(-d)` ("Meta-embedding", eq. 8).

    Computed as `y d - (1 - y) log(1 - exp(-d))`, so that value and gradient are finite
    where p rounds to 0 or to 1.

    Args:
      distance: d.
      target: y in [0, 1].
      floor: the least d that counts; below it the gradient is 0.
    """
    d = jnp.maximum(distance.astype(jnp.float32), floor)
    y = target.astype(jnp.float32)
    return y * d - (1 - y) * numerics.log1mexp(d)
