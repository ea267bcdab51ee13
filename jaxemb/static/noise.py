"""Drawing noise words: any distribution over the vocabulary, two numbers a draw."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


def alias_table(weights: Float[np.ndarray, " vocab"]) -> dict[str, np.ndarray]:
    """The table of Walker's alias method, for weights of any sum.

    Word i is kept with probability `threshold[i]` and else replaced by `alias[i]`,
    where i is uniform: so every draw costs the same, however large the vocabulary.

    Raises:
      ValueError: for weights that are negative, not finite, or all zero.
    """
    weights = np.asarray(weights, np.float64)
    total = weights.sum()
    if not (np.all(weights >= 0) and np.isfinite(total) and total > 0):
        raise ValueError("weights must be finite, not negative, and not all zero")
    scaled = weights * (len(weights) / total)
    threshold = np.ones(len(weights), np.float32)
    alias = np.arange(len(weights), dtype=np.int32)
    poor = np.flatnonzero(scaled < 1).tolist()
    rich = np.flatnonzero(scaled >= 1).tolist()
    left = scaled.tolist()
    while poor and rich:
        small, large = poor.pop(), rich[-1]
        threshold[small], alias[small] = left[small], large
        left[large] -= 1 - left[small]
        if left[large] < 1:
            poor.append(rich.pop())
    return {"threshold": threshold, "alias": alias}


def unigram(
    counts: Int[np.ndarray, " vocab"], power: float = 0.75
) -> dict[str, np.ndarray]:
    """The alias table of word counts raised to `power`."""
    return alias_table(np.asarray(counts, np.float64) ** power)


def draw(
    table: dict[str, Any], key: jax.Array, shape: tuple[int, ...]
) -> Int[Array, "..."]:
    """Words drawn independently from an alias table."""
    place_key, keep_key = jax.random.split(key)
    threshold, alias = jnp.asarray(table["threshold"]), jnp.asarray(table["alias"])
    place = jax.random.randint(place_key, shape, 0, len(alias), jnp.int32)
    keep = jax.random.uniform(keep_key, shape) < threshold[place]
    return jnp.where(keep, place, alias[place])
