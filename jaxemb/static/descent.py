"""Row-sparse descent: gradients of the rows that were read, added where they are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxemb import axes

Tables = dict[str, jax.Array]
Ids = Mapping[str, Int[Array, "..."]]
# From rows to a sum over examples, or to a tuple that begins with it.
RowLoss = Callable[[dict[str, jax.Array]], Any]


def take(tables: Mapping[str, jax.Array], ids: Ids) -> dict[str, jax.Array]:
    """The rows of each table that `ids` names; some row where an id is past the last.

    Ids past the last fill up: nothing may depend on what is read there, and nothing is
    written there.
    """
    return {
        name: tables[name].at[index].get(mode="clip") for name, index in ids.items()
    }


def descend(
    tables: Tables,
    ids: Ids,
    loss_fn: RowLoss,
    learning_rate: Float[Array, ""],
    most: float | None = None,
    *,
    whole: Sequence[str] = (),
    examples: Float[Array, ""] | float = 1.0,
    clip_norm: float | None = None,
) -> tuple[Tables, Any]:
    """One step of gradient descent on the rows named.

    Args:
      tables: by name, a row an entry; only the rows named are read and written.
      ids: by table, the rows that the loss is a function of; a row may come often, and
        then takes the sum of its gradients.
      loss_fn: of those rows.
      learning_rate: of plain descent.
      most: how many gradients a row takes at the full rate. None of them knows of the
        others, so that the sum of very many overshoots; beyond `most` places the sum is
        scaled as if there were so many.
      whole: tables that the loss reads as they are, beside the rows, and of which every
        example is a place.
      examples: how many the loss is a sum over, on all devices; for `whole` and
        `clip_norm`.
      clip_norm: the length of all parameters' gradient together, divided by the
        examples, that a longer one is cut to; None: never.

    Returns:
      The tables, and what `loss_fn` gave before the step.
    """
    grads, loss = _gradient(tables, ids, loss_fn, whole)
    of_whole = axes.sum_over_devices({name: grads.pop(name) for name in whole})
    ids, grads = axes.on_every_device((dict(ids), grads))
    if clip_norm is not None:
        squares = sum(jnp.sum(jnp.square(g)) for g in of_whole.values())
        squares += sum(_square(ids[name], grads[name]) for name in ids)
        longest = clip_norm * examples
        learning_rate *= jnp.minimum(1, longest * jax.lax.rsqrt(squares + 1e-30))
    tables = dict(tables)
    for name, gradient in of_whole.items():
        share = 1.0 if most is None else jnp.minimum(1, most / jnp.maximum(examples, 1))
        tables[name] -= learning_rate * share * gradient
    for name, index in ids.items():
        steps = -learning_rate * grads[name]
        if most is not None:
            counts = jnp.zeros(len(tables[name])).at[index].add(1.0, mode="drop")
            places = counts.at[index].get(mode="clip")
            steps *= jnp.minimum(1, most / jnp.maximum(places, 1))[..., None]
        tables[name] = tables[name].at[index].add(steps, mode="drop")
    return tables, axes.sum_over_devices(loss)


def adagrad(
    tables: Tables,
    squares: Tables,
    ids: Ids,
    loss_fn: RowLoss,
    learning_rate: float,
) -> tuple[Tables, Tables, Any]:
    """One step of AdaGrad (Duchi et al. 2011) on the rows named, as GloVe has it.

    The sums of squares are of gradients times learning rate, and a gradient is divided
    by the root of the sum before it. A row that comes often is divided by that of the
    squares before and of its other gradients, so that many at once do not throw it.
    That sum is got by taking the gradient's own square from the new sum again, which
    rounds to nothing where it is very large; so it is held at 1, where sums begin.

    Args:
      tables: by name, a row an entry.
      squares: for every number of the tables, the sum of squares so far, 1 or more.
      ids: by table, the rows that the loss is a function of.
      loss_fn: of those rows.
      learning_rate: of AdaGrad.

    Returns:
      The tables, the squares, and what `loss_fn` gave before the step.
    """
    grads, loss = _gradient(tables, ids, loss_fn)
    steps = jax.tree.map(lambda g: learning_rate * g, grads)
    ids, steps = axes.on_every_device((dict(ids), steps))
    tables, squares = dict(tables), dict(squares)
    for name, step in steps.items():
        own = jnp.square(step)
        squares[name] = squares[name].at[ids[name]].add(own)
        others = jnp.maximum(squares[name][ids[name]] - own, 1.0)
        tables[name] = tables[name].at[ids[name]].add(-step / jnp.sqrt(others))
    return tables, squares, axes.sum_over_devices(loss)


def unless_exploded(
    total: Float[Array, ""], count: Float[Array, ""], largest: float
) -> Float[Array, ""]:
    """A sum of losses, or infinity, which stops a run, where their mean is too large.

    Args:
      total: the sum.
      count: of how many.
      largest: what the mean never reaches while anything is learnt.
    """
    return jnp.where(total > largest * count, jnp.inf, total)


def _gradient(
    tables: Tables, ids: Ids, loss_fn: RowLoss, whole: Sequence[str] = ()
) -> tuple[Tables, Any]:
    def first(rows):
        loss = loss_fn(rows)
        return (loss[0] if isinstance(loss, tuple) else loss), loss

    read = {**take(tables, ids), **{name: tables[name] for name in whole}}
    return jax.grad(first, has_aux=True)(read)


def _square(
    index: Int[Array, "..."], gradients: Float[Array, "... dim"]
) -> Float[Array, ""]:
    """The squared length of a table's gradient, of which rows may come in parts."""
    index, rows = index.reshape(-1), gradients.reshape(-1, gradients.shape[-1])
    order = jnp.argsort(index)
    index = index[order]
    number = jnp.cumsum(index != jnp.roll(index, 1))
    sums = jax.ops.segment_sum(
        rows[order], number, len(index) + 1, indices_are_sorted=True
    )
    return jnp.sum(jnp.square(sums))
