"""Transforms that move the parameters *after* an update: chain them last."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxemb import numerics
from jaxemb.errors import InputError
from jaxemb.optim.groups import Where, by_path


class GroupLassoState(NamedTuple):
    """State of `group_lasso_prox`."""

    count: jax.typing.ArrayLike  # int32 scalar: updates so far


def group_lasso_prox(
    step_size: optax.ScalarOrSchedule,
    c: jax.typing.ArrayLike,
    *,
    where: Where | None = None,
) -> optax.GradientTransformation:
    """Shrinks every row of the updated parameters by `step_size * c`, at most to 0.

        row <- max(0, 1 - step_size * c / |row|) * row,   row = parameter + update

    After `optax.sgd(step_size)` this is proximal gradient descent on
    `loss + c * losses.l21(table)`, and rows that the loss needs less than `c` end at
    exactly 0. After an adaptive optimiser, whose steps are no multiple of the
    gradient, it is a decoupled heuristic of the same effect.

    Args:
      step_size: the learning rate of the optimiser before it in the chain; a schedule
        is read at the number of updates so far, as optax reads it.
      c: the weight of the penalty, at least 0.
      where: which parameters (see `by_path`); without it all, or use `optax.masked`.
        A row is a vector along the last axis.
    """
    if isinstance(c, float | int) and c < 0:
        raise InputError(f"group_lasso_prox: c is {c}; expected at least 0.")

    def init_fn(params):
        del params
        return GroupLassoState(jnp.zeros([], jnp.int32))

    def update_fn(updates, state, params=None):
        params = _required(params, "group_lasso_prox")
        size = step_size(state.count) if callable(step_size) else step_size
        threshold = size * c

        def shrink(update, param):
            row = param + update
            norm = numerics.safe_norm(row, keepdims=True)
            share = threshold / jnp.where(norm > 0, norm, 1)
            # Two exact ends: 0 for a row within the threshold, no change for c = 0.
            return jnp.where(norm <= threshold, -param, update - share * row)

        updates = jax.tree.map(shrink, updates, params)
        return updates, GroupLassoState(optax.safe_increment(state.count))

    return _selected(optax.GradientTransformation(init_fn, update_fn), where)


def max_norm(
    limit: float, *, axis: int = 0, where: Where | None = None
) -> optax.GradientTransformation:
    """Scales the vectors along `axis` of the updated parameters to at most `limit`.

        column <- min(1, limit / |column|) * column,   column = parameter + update

    With axis 0 these are the weights into one output of a Dense (Hinton et al. 2012;
    Kim 2014 has the limit 3 on the last layer).

    Args:
      limit: the largest L2 norm allowed, greater than 0.
      axis: the axis that a norm is taken over.
      where: which parameters (see `by_path`); without it all, biases too.
    """
    if limit <= 0:
        raise InputError(f"max_norm: limit is {limit}; expected more than 0.")

    def update_fn(updates, state, params=None):
        params = _required(params, "max_norm")

        def project(update, param):
            column = param + update
            norm = numerics.safe_norm(column, axis, keepdims=True)
            inside = norm <= limit
            scaled = column * (limit / jnp.where(inside, limit, norm))
            return jnp.where(inside, update, scaled - param)

        return jax.tree.map(project, updates, params), state

    transform = optax.GradientTransformation(
        lambda params: optax.EmptyState(), update_fn
    )
    return _selected(transform, where)


def _selected(
    transform: optax.GradientTransformation, where: str | Callable | None
) -> optax.GradientTransformation:
    return transform if where is None else optax.masked(transform, by_path(where))


def _required(params: Any, name: str) -> Any:
    if params is None:
        raise ValueError(f"{name} needs the parameters: update(grads, state, params).")
    return params
