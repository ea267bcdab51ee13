"""Penalties that drive whole groups of parameters to zero."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxemb import numerics


def l21(table: Float[Array, "*rows dim"]) -> Float[Array, ""]:
    """The L2,1 norm `sum_i sqrt(sum_j table[i, j]^2)`: the sum of the rows' lengths.

    Its gradient is `row / |row|`, taken as 0 at a row of zeros, so that a table may
    start at zero. A gradient step on it shrinks rows but never lands on exact zeros;
    `optim.group_lasso_prox` does.
    """
    return jnp.sum(numerics.safe_norm(table, axis=-1))
