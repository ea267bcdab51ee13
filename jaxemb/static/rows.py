"""Tables with empty rows at their end, so that any usual number of devices share them.

A table has as many rows on one device as on a thousand, and so has its checkpoint:
one that many devices wrote goes on on one, and the other way round.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

MULTIPLE = 3 * 512


def filled(rows: int) -> int:
    """How many rows a table of so many has with those that fill up."""
    return rows + -rows % MULTIPLE


def uniform(
    key: jax.Array, rows: int, shape: tuple[int, ...], width: float
) -> Float[Array, "filled ..."]:
    """Numbers uniform in +-0.5 / width; zeros in the rows that fill up.

    They are those of `jax.random.uniform` of the shape without these rows, since each
    is a function of its place.
    """
    whole = (filled(rows), *shape)
    table = (jax.random.uniform(key, whole) - 0.5) / width
    place = jax.lax.broadcasted_iota(jnp.int32, whole, 0)
    return jnp.where(place < rows, table, 0)


def zeros(rows: int, shape: tuple[int, ...]) -> Float[Array, "filled ..."]:
    """As many rows of zeros."""
    return jnp.zeros((filled(rows), *shape))
