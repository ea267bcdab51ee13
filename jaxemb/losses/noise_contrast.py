"""Losses that tell a true pair from noise."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def sgns(
    centre: Float[Array, "*batch dim"],
    context: Float[Array, "*batch contexts dim"],
    noise: Float[Array, "*batch contexts noise dim"],
    *,
    mask: Bool[Array, "*batch contexts"] | None = None,
) -> Float[Array, "*batch"]:
    """Skip-gram with negative sampling (Mikolov et al. 2013), one value per centre.

    `sum_c [-log s(centre . context_c) - sum_k log s(-centre . noise_ck)]`, s being the
    logistic function: every pair stands against noise words of its own.

    Args:
      centre: vectors of the words that predict.
      context: vectors of the words around each.
      noise: vectors of the noise words of each pair.
      mask: False for contexts that only fill up: they and their noise count nothing.
    """
    centre, context, noise = (x.astype(jnp.float32) for x in (centre, context, noise))
    true = jnp.einsum("...d,...cd->...c", centre, context)
    false = jnp.einsum("...d,...cnd->...cn", centre, noise)
    pairs = jax.nn.softplus(-true) + jnp.sum(jax.nn.softplus(false), axis=-1)
    return jnp.sum(pairs if mask is None else jnp.where(mask, pairs, 0), axis=-1)
