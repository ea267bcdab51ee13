"""The data axis: what a computation may know of the device it runs on.

`pmap` and `shard_map` bind the axis name `data`; under `jit` over a mesh nothing is
bound, because one program sees the whole batch. Code that asks here gives the same
numbers in both cases.
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec
from jaxtyping import Array, Int

DATA = "data"
# Of its multiples a table has as many rows, so that usual numbers of devices share it.
ROWS = 3 * 512

Tree = TypeVar("Tree")


def is_bound() -> bool:
    """True inside a function mapped over the data axis."""
    try:
        lax.axis_index(DATA)
    except NameError:
        return False
    return True


def filled_rows(rows: int) -> int:
    """How many rows a table of so many has with those that fill up."""
    return rows + -rows % ROWS


def example_offset(local_batch: int) -> Int[Array, ""]:
    """Place of this device's first example in the global batch."""
    if not is_bound():
        return jnp.zeros([], jnp.int32)
    return lax.axis_index(DATA).astype(jnp.int32) * local_batch


def global_batch(local_batch: int) -> int:
    """Examples of the global batch, given those that this program sees."""
    return local_batch * lax.axis_size(DATA) if is_bound() else local_batch


def mean_over_devices(tree: Tree) -> Tree:
    """Averages every leaf over the data axis where it is bound."""
    return lax.pmean(tree, DATA) if is_bound() and jax.tree.leaves(tree) else tree


def sum_over_devices(tree: Tree) -> Tree:
    """Adds up every leaf over the data axis where it is bound."""
    return lax.psum(tree, DATA) if is_bound() and jax.tree.leaves(tree) else tree


def local_part(tree: Tree, local_batch: int) -> Tree:
    """This device's examples of leaves that hold the global batch."""
    if not is_bound():
        return tree
    start = example_offset(local_batch)
    return jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, start, local_batch), tree)


def on_every_device(tree: Tree) -> Tree:
    """The global batch on every device, of leaves split over the data axis.

    For updates of some rows of a table: sending the rows to every device costs their
    size, where summing each device's table would cost the table's.
    """
    if is_bound():
        return jax.tree.map(lambda x: lax.all_gather(x, DATA, tiled=True), tree)
    if DATA in jax.sharding.get_abstract_mesh().axis_names:
        return lax.with_sharding_constraint(tree, PartitionSpec())
    return tree
