"""Losses that tell a true pair from noise."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics


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


def context_weights(
    scores: Float[Array, "*batch contexts"],
    mask: Bool[Array, "*batch contexts"],
    *,
    attention: bool = True,
    scale: float = 1.0,
) -> Float[Array, "*batch contexts"]:
    """How much each context counts: `a_j = softmax_j(scale * s_j)`, or all alike.

    Equation 13 of "Using Dynamic Embeddings to Improve Static Embeddings", with s_j the
    product of the centre and its j-th context.

    Args:
      scores: the products s.
      mask: False for contexts that only fill up, which count 0.
      attention: whether weights follow the scores; else they are `1 / contexts`.
      scale: of the scores in the softmax; the paper's code has `1 / sqrt(dim)`.
    """
    return numerics.masked_softmax(scores * (scale if attention else 0.0), mask)


def aggregated_sgns(
    centre: Float[Array, "*batch dim"],
    context: Float[Array, "*batch contexts dim"],
    noise: Float[Array, "*batch noise dim"],
    *,
    mask: Bool[Array, "*batch contexts"] | None = None,
    attention: bool = True,
) -> Float[Array, "*batch"]:
    """Skip-gram whose contexts are summed up before they are told from noise.

    `-log s(sum_j a_j context_j . centre) - sum_k log s(-centre . noise_k)`, one value
    per centre: equation 15 of "Using Dynamic Embeddings to Improve Static Embeddings",
    a being `context_weights`. A centre without contexts counts nothing.

    Args:
      centre: vectors of the words that predict.
      context: vectors of the words around each.
      noise: vectors of the noise words of each centre.
      mask: False for contexts that only fill up.
      attention: see `context_weights`.
    """
    centre, context, noise = (x.astype(jnp.float32) for x in (centre, context, noise))
    true = jnp.einsum("...d,...cd->...c", centre, context)
    false = jnp.einsum("...d,...nd->...n", centre, noise)
    mask = jnp.ones(true.shape, bool) if mask is None else mask
    weights = context_weights(true, mask, attention=attention)
    loss = jax.nn.softplus(-jnp.sum(weights * true, axis=-1))
    loss += jnp.sum(jax.nn.softplus(false), axis=-1)
    return jnp.where(jnp.any(mask, axis=-1), loss, 0)
