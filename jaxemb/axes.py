"""The data axis: what a computation may know of the device it runs on.

`pmap` and `shard_map` bind the axis name `data`; under `jit` over a mesh nothing is
bound, because one program sees the whole batch. Code that asks here gives the same
numbers in both cases.
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

DATA = "data"

Tree = TypeVar("Tree")


def is_bound() -> bool:
    """True inside a function mapped over the data axis."""
    try:
        lax.axis_index(DATA)
    except NameError:
        return False
    return True


def example_offset(local_batch: int) -> Int[Array, ""]:
    """Place of this device's first example in the global batch."""
    if not is_bound():
        return jnp.zeros([], jnp.int32)
    return lax.axis_index(DATA).astype(jnp.int32) * local_batch


def mean_over_devices(tree: Tree) -> Tree:
    """Averages every leaf over the data axis where it is bound."""
    return lax.pmean(tree, DATA) if is_bound() and jax.tree.leaves(tree) else tree
