"""One gradient step as a pure function of state and batch."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxemb import axes
from jaxemb.errors import InputError
from jaxemb.train.state import State

Metrics = dict[str, Any]  # scalars, or a `metrics.Mean` of two
LossFn = Callable[[dict[str, Any], Any, jax.Array], tuple[jax.Array, Metrics]]
Step = Callable[[State, Any], tuple[State, Metrics]]


def make_step(
    loss_fn: LossFn, tx: optax.GradientTransformation, *, accumulate: int = 1
) -> Step:
    """Builds `step(state, batch) -> (state, metrics)`.

    Args:
      loss_fn: from variables, batch and key to the mean loss over the batch and scalar
        metrics that are means over the batch too, so that parts of a batch average.
      tx: the optimiser.
      accumulate: in how many parts, one after the other, a batch is taken before its
        one update; divides the memory that activations need.

    Returns:
      The step. Its metrics hold `loss` beside what `loss_fn` gave.
    """
    gradient = jax.grad(_with_loss(loss_fn), has_aux=True)

    def step(state: State, batch: Any) -> tuple[State, Metrics]:
        if accumulate == 1:
            grads, metrics = gradient(state.params, state.frozen, batch, state.step_key)
        else:
            grads, metrics = _accumulated(gradient, state, batch, accumulate)
        grads, metrics = axes.mean_over_devices((grads, metrics))
        updates, opt_state = tx.update(grads, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        new = dataclasses.replace(
            state, step=state.step + 1, params=params, opt_state=opt_state
        )
        return new, metrics

    return step


def over_seeds(step: Step, *, batch_axis: int | None = None) -> Step:
    """Maps a step over the seeds that are the leading axis of a state.

    Args:
      step: for one seed; it leaves `State.frozen`, which seeds share, as it is.
      batch_axis: None where all seeds see the same batch, 0 where each has its own.
    """
    if batch_axis not in (0, None):
        raise InputError(f"batch_axis {batch_axis}; expected 0 or None")

    def one(own: State, frozen: Any, batch: Any) -> tuple[State, Metrics]:
        state, metrics = step(dataclasses.replace(own, frozen=frozen), batch)
        return dataclasses.replace(state, frozen=None), metrics

    each = over_models(one, (0, None, batch_axis))

    def together(state: State, batch: Any) -> tuple[State, Metrics]:
        own = dataclasses.replace(state, frozen=None)
        new, metrics = each(own, state.frozen, batch)
        return dataclasses.replace(new, frozen=state.frozen), metrics

    return together


def over_models(
    function: Callable[..., Any], in_axes: Sequence[int | None]
) -> Callable[..., Any]:
    """Maps a function over models of the same shape: `vmap`, but in turn on CPU.

    A CPU's caches hold one model at a time, and its compiler makes slow programs of
    some reductions with the models' axis (those of cosines).

    Args:
      function: of one model.
      in_axes: for each argument 0, where models have their own, or None.
    """
    if 0 not in in_axes or any(axis not in (0, None) for axis in in_axes):
        raise InputError(
            f"in_axes {tuple(in_axes)}; expected 0 or None for each, and 0 once or more"
        )
    at_once = jax.vmap(function, in_axes=tuple(in_axes))

    def in_turn(*arguments: Any) -> Any:
        def one(own: tuple[Any, ...]) -> Any:
            left = iter(own)
            return function(
                *(
                    shared if axis is None else next(left)
                    for shared, axis in zip(arguments, in_axes, strict=True)
                )
            )

        own = (x for x, axis in zip(arguments, in_axes, strict=True) if axis == 0)
        return jax.lax.map(one, tuple(own))

    def mapped(*arguments: Any) -> Any:
        if len(arguments) != len(in_axes):
            raise TypeError(f"expected {len(in_axes)} arguments, got {len(arguments)}")
        return jax.lax.platform_dependent(*arguments, cpu=in_turn, default=at_once)

    return mapped


def _with_loss(loss_fn: LossFn):
    def loss_of(params, frozen, batch, key):
        loss, metrics = loss_fn({"params": params, **frozen}, batch, key)
        return loss, {"loss": loss, **metrics}

    return loss_of


def _accumulated(gradient, state: State, batch: Any, parts: int):
    """Mean gradient; a part is every `parts`-th example, so shards stay in place."""

    def split(x):
        if x.shape[0] % parts:
            raise InputError(
                f"a batch of {x.shape[0]} examples cannot be taken in {parts} parts"
            )
        return jnp.swapaxes(x.reshape(x.shape[0] // parts, parts, *x.shape[1:]), 0, 1)

    def add_part(total, part):
        index, examples = part
        key = jax.random.fold_in(state.step_key, index)
        new = gradient(state.params, state.frozen, examples, key)
        return jax.tree.map(jnp.add, total, new), None

    split_batch = jax.tree.map(split, batch)
    first = jax.tree.map(lambda x: x[0], split_batch)
    shapes = jax.eval_shape(gradient, state.params, state.frozen, first, state.step_key)
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    total, _ = jax.lax.scan(add_part, zeros, (jnp.arange(parts), split_batch))
    return jax.tree.map(lambda x: x / parts, total)
