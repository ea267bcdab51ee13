"""Averages of the parameters over training."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxemb.errors import InputError


class ParameterEmaState(NamedTuple):
    """State of `parameter_ema`."""

    count: jax.typing.ArrayLike  # int32 scalar: updates so far
    ema: optax.Params  # the tree of the parameters


def parameter_ema(decay: float, *, debias: bool = True) -> optax.GradientTransformation:
    """Keeps the exponential moving average of the parameters in its state.

        ema <- ema + a (parameter + update - ema),   a = 1 - decay

    It must be the last of the chain: it takes the updates that reach it for the ones
    that are applied, and passes them on unchanged. `ema_params` reads the average.

    Args:
      decay: in [0, 1); 0.999 averages over about the last thousand updates.
      debias: takes `a = (1 - decay) / (1 - decay^t)` at update t, so that the average
        is over the updated parameters alone; else it starts at the initial ones.
    """
    if not 0 <= decay < 1:
        raise InputError(f"parameter_ema: decay is {decay}; expected one in [0, 1).")

    def init_fn(params):
        return ParameterEmaState(
            jnp.zeros([], jnp.int32), jax.tree.map(jnp.array, params)
        )

    def update_fn(updates, state, params=None):
        if params is None:
            raise ValueError("parameter_ema needs the parameters in `update`.")
        count = optax.safe_increment(state.count)
        share = 1 - decay
        if debias and decay > 0:
            # expm1: 1 - decay^t has no correct digits left for a decay close to 1.
            share = share / -jnp.expm1(count * math.log(decay))
        ema = jax.tree.map(
            lambda e, p, u: e + jnp.asarray(share, e.dtype) * (p + u - e),
            state.ema,
            params,
            updates,
        )
        return updates, ParameterEmaState(count, ema)

    return optax.GradientTransformation(init_fn, update_fn)


def ema_params(opt_state: Any) -> Any:
    """The averaged parameters in the state of any chain that holds a `parameter_ema`.

    Before the first update they are the initial parameters.
    """
    found = all_ema_params(opt_state)
    if len(found) != 1:
        raise InputError(
            f"The optimiser's state holds {len(found)} parameter averages; expected "
            "one parameter_ema in the chain."
        )
    return found[0]


def all_ema_params(opt_state: Any) -> list[Any]:
    """The averaged parameters of every `parameter_ema` in the state; often none."""
    is_ema = lambda node: isinstance(node, ParameterEmaState)  # noqa: E731
    nodes = jax.tree.leaves(opt_state, is_leaf=is_ema)
    return [node.ema for node in nodes if is_ema(node)]
