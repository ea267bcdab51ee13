"""Tables with empty rows at their end, so that any usual number of devices share them.

A table has as many rows on one device as on a thousand, and so has its checkpoint:
one that many devices wrote goes on on one, and the other way round.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxemb import axes


def uniform(
    key: jax.Array, rows: int, shape: tuple[int, ...], width: float
) -> Float[Array, "filled ..."]:
    """Numbers uniform in +-0.5 / width; zeros in the rows that fill up.

    They are those of `jax.random.uniform` of the shape without these rows, since each
    is a function of its place.
    """
    whole = (axes.filled_rows(rows), *shape)
    table = (jax.random.uniform(key, whole) - 0.5) / width
    place = jax.lax.broadcasted_iota(jnp.int32, whole, 0)
    return jnp.where(place < rows, table, 0)


def zeros(rows: int, shape: tuple[int, ...]) -> Float[Array, "filled ..."]:
    """As many rows of zeros."""
    return jnp.zeros((axes.filled_rows(rows), *shape))
