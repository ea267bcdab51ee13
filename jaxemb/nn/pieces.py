"""From states of word pieces to vectors of words and of texts."""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxemb import numerics

Pooling = Literal["mean", "first", "last"]


def align_wordpieces(
    states: Float[Array, "batch pieces dim"],
    words: Int[Array, "batch pieces"],
    num_words: int,
    pooling: Pooling = "mean",
) -> Float[Array, "batch {num_words} dim"]:
    """The vector of each word: the mean of its pieces' states, or the first or last.

    A word without pieces is 0. In the dtype of the states; means are in float32.

    Args:
      states: of pieces.
      words: the number of the word that each piece belongs to; -1 where it belongs to
        none, as [CLS] and padding do.
      num_words: of the longest sentence.
      pooling: what becomes of the pieces of a word.
    """
    pieces = states.shape[1]
    owned = words[:, None, :] == jnp.arange(num_words)[None, :, None]
    if pooling != "mean":
        place = jnp.arange(pieces)[None, None]
        order = place if pooling == "last" else pieces - 1 - place
        chosen = jnp.argmax(jnp.where(owned, order, -1), axis=-1)
        found = jnp.take_along_axis(states, chosen[..., None], axis=1)
        return jnp.where(owned.any(axis=-1)[..., None], found, 0)
    counts = owned.sum(axis=-1, dtype=jnp.float32)[..., None]
    # 0 * NaN is NaN: pieces of no word may hold anything.
    safe = jnp.where((words >= 0)[..., None], states, 0).astype(jnp.float32)
    total = jnp.matmul(
        owned.astype(jnp.float32), safe, precision=jax.lax.Precision.HIGHEST
    )
    return (total / jnp.maximum(counts, 1)).astype(states.dtype)


def mean_pooled(
    states: Float[Array, "batch length dim"], mask: Bool[Array, "batch length"]
) -> Float[Array, "batch dim"]:
    """The mean of a text's states over its pieces, at length 1, in float32.

    `mean / |mean|`: sentence encoders as MiniLM are trained for it. 0 without pieces.
    """
    return numerics.safe_unit(numerics.masked_mean(states, mask[..., None], axis=1))
