"""The best of many scores, taken block by block: shared by every search over rows."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

_GROUP = 64  # columns whose maximum is taken first

Best = tuple[Int[Array, "batch _"], Float[Array, "batch _"]]  # rows, and their scores


def batches(count: int, size: int) -> Iterator[Int[np.ndarray, " {size}"]]:
    """Indices in batches of one size; the last repeats its last index to be as long."""
    for start in range(0, count, size):
        yield np.minimum(np.arange(start, start + size), count - 1)


def top_k(
    scores: Float[Array, "batch words"], k: int
) -> tuple[Float[Array, "batch {k}"], Int[Array, "batch {k}"]]:
    """`jax.lax.top_k`, the same to the order of equals, faster over many columns."""
    groups = scores.shape[1] // _GROUP
    if groups <= 2 * k:
        values, columns = jax.lax.top_k(scores, k)
        return values, columns
    return _by_groups(scores, k, groups)


def merge(best: Best, new: Best) -> Best:
    """The best rows so far and new ones, whichever are better, as many as so far.

    Of equals those so far come first, so that blocks in order keep the first row.
    """
    rows = jnp.concatenate([best[0], new[0]], axis=1)
    scores = jnp.concatenate([best[1], new[1]], axis=1)
    scores, places = jax.lax.top_k(scores, best[0].shape[1])
    return jnp.take_along_axis(rows, places, axis=1), scores


def column_top_k(
    scores: Float[Array, "rows columns"], k: int
) -> tuple[Float[Array, "columns {k}"], Int[Array, "columns {k}"]]:
    """The k largest scores of each column and their rows; of equals the first row.

    As `top_k` of the transpose, which would be larger than all that is looked at here:
    by groups of rows, since the k largest lie in the k groups with the largest maxima.
    """
    rows, columns = scores.shape
    group = _GROUP
    while group * group > rows // k and k > 1:  # maxima and candidates as many
        group //= 2
    groups = rows // group
    if groups <= 2 * k or rows % group:
        values, places = jax.lax.top_k(scores.T, k)
        return values, places
    grouped = scores.reshape(groups, group, columns)
    _, chosen = jax.lax.top_k(jnp.max(grouped, axis=1).T, k)
    chosen = jnp.sort(chosen, axis=1)  # so that of equals the first stays first
    some = jnp.take_along_axis(grouped, chosen.T[:, jnp.newaxis], axis=0)
    values, places = jax.lax.top_k(some.reshape(k * group, columns).T, k)
    first = group * jnp.take_along_axis(chosen, places // group, axis=1)
    return values, first + places % group


def _by_groups(scores: Array, k: int, groups: int) -> tuple[Array, Array]:
    """The k largest lie in the k groups of columns with the largest maxima."""
    batch, words = scores.shape
    rest = scores[:, groups * _GROUP :]
    grouped = scores[:, : groups * _GROUP].reshape(batch, groups, _GROUP)
    _, chosen = jax.lax.top_k(jnp.max(grouped, axis=2), k)
    # In the order of their columns, so that of equals the first stays first.
    chosen = jnp.sort(chosen, axis=1)
    some = jnp.take_along_axis(grouped, chosen[:, :, jnp.newaxis], axis=1)
    offsets = jnp.arange(_GROUP, dtype=chosen.dtype)[jnp.newaxis, jnp.newaxis]
    columns = (chosen[:, :, jnp.newaxis] * _GROUP + offsets).reshape(batch, -1)
    last = jnp.arange(groups * _GROUP, words, dtype=chosen.dtype)[jnp.newaxis]
    last = jnp.broadcast_to(last, rest.shape)
    candidates = jnp.concatenate([some.reshape(batch, -1), rest], axis=1)
    columns = jnp.concatenate([columns, last], axis=1)
    values, places = jax.lax.top_k(candidates, k)
    return values, jnp.take_along_axis(columns, places, axis=1)
