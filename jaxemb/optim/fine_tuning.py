"""Adam with a rate that falls, and as Devlin et al. tune pretrained encoders."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxemb.errors import InputError
from jaxemb.optim.groups import Where, by_path

NO_DECAY = r"(.*/)?(bias|scale)"
"""Biases and the scales of norms."""


def warmup_linear(
    learning_rate: float, warmup_steps: int, num_steps: int
) -> optax.Schedule:
    """From 0 up to `learning_rate` in a line over the warm-up, then down to 0.

    `rate t / warmup` before, `rate (num - t) / (num - warmup)` after, 0 from `num` on.
    """
    if not 0 <= warmup_steps < num_steps:
        raise InputError(
            f"warmup_steps is {warmup_steps}; expected 0 or more, below {num_steps}."
        )

    def schedule(step):
        rising = step / max(warmup_steps, 1)
        falling = (num_steps - step) / (num_steps - warmup_steps)
        share = jnp.where(step < warmup_steps, rising, falling)
        return learning_rate * jnp.clip(share, 0.0, 1.0)

    return schedule


def falling_adam(
    learning_rate: float | jax.Array, num_steps: int
) -> optax.GradientTransformation:
    """Adam whose rate falls in a line from `learning_rate` to 0 after `num_steps`.

    The rate that it falls from is part of the state, so that one program serves all:
    what was initialised with one is updated by any.
    """
    return optax.chain(
        optax.inject_hyperparams(optax.adam)(learning_rate=learning_rate),
        optax.scale_by_schedule(warmup_linear(1.0, 0, num_steps)),
    )


def bert_adam(
    learning_rate: optax.ScalarOrSchedule,
    *,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-6,
    weight_decay: float = 0.01,
    no_decay: Where = NO_DECAY,
    bias_correction: bool = False,
) -> optax.GradientTransformation:
    """Adam with decoupled decay as BERT was trained: moments are not corrected.

        m = b1 m + (1 - b1) g     v = b2 v + (1 - b2) g^2
        p = p - rate (m / (sqrt(v) + eps) + weight_decay p)

    Without the correction the first steps are larger: of m a tenth of g is there, of
    the root of v a thirtieth, so that the first update is 3 times that of AdamW. Tune
    with a warm-up.

    Args:
      learning_rate: a number or a schedule; see `warmup_linear`.
      b1: decay of the mean gradient.
      b2: decay of its square.
      eps: added to the root.
      weight_decay: of all parameters but those of `no_decay`.
      no_decay: paths of parameters that do not decay, as `by_path` takes them.
      bias_correction: whether moments are corrected, as AdamW does.
    """
    adam = (
        optax.scale_by_adam(b1, b2, eps)
        if bias_correction
        else scale_by_uncorrected_adam(b1, b2, eps)
    )
    spared = by_path(no_decay)

    def decays(params: Any) -> Any:
        return jax.tree.map(lambda spare: not spare, spared(params))

    return optax.chain(
        adam,
        optax.add_decayed_weights(weight_decay, decays),
        optax.scale_by_learning_rate(learning_rate),
    )


class UncorrectedAdamState(NamedTuple):
    """The two moments, trees like the parameters."""

    mean: Any
    square: Any


def scale_by_uncorrected_adam(
    b1: float = 0.9, b2: float = 0.999, eps: float = 1e-6
) -> optax.GradientTransformation:
    """`m / (sqrt(v) + eps)`, with m and v as Adam has them before their correction."""

    def init_fn(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return UncorrectedAdamState(zeros, zeros)

    def update_fn(updates, state, params=None):
        del params
        moved = lambda b, g, old: b * old + (1 - b) * g  # noqa: E731
        mean = jax.tree.map(lambda g, m: moved(b1, g, m), updates, state.mean)
        square = jax.tree.map(
            lambda g, v: moved(b2, jnp.square(g), v), updates, state.square
        )
        updates = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), mean, square)
        return updates, UncorrectedAdamState(mean, square)

    return optax.GradientTransformation(init_fn, update_fn)
