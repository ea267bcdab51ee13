"""The recurrence of the LSTM, with a gradient that keeps matmuls out of the loop.

Differentiating `lax.scan` adds the recurrent kernel's gradient up step by step: a
small matmul, a read and a write of the whole kernel for each word, and over a mesh a
collective for each word. Here the loop only passes back the gates' gradients, and one
matmul over all words and examples follows. Several independent recurrences share one
loop, which then has work for several cores.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class LSTMState(NamedTuple):
    """What an LSTM carries from word to word, in float32."""

    hidden: Any  # batch hidden
    cell: Any  # batch hidden


def scan_directions(
    projected: tuple[Any, ...],
    masks: tuple[Any, ...],
    kernels: tuple[Any, ...],
    initial: tuple[LSTMState, ...],
    unroll: int,
) -> tuple[tuple[Any, ...], tuple[LSTMState, ...]]:
    """Runs one masked LSTM per entry of the tuples.

    Args:
      projected: inputs times input kernel plus bias, (length, batch, 4 * hidden).
      masks: True where there is a word, (length, batch, 1).
      kernels: recurrent kernels, (hidden, 4 * hidden), in the dtype of the matmul.
      initial: the states to start from.
      unroll: as in `lax.scan`.

    Returns:
      The hidden states (length, batch, hidden) and the final states, in float32.
    """
    return _scan(projected, masks, kernels, initial, unroll)


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def _scan(projected, masks, kernels, initial, unroll) -> Any:
    finals, saved = _forward(projected, masks, kernels, initial, unroll)
    return tuple(hidden for hidden, _, _ in saved), finals


def _scales(hidden: int) -> Any:
    return jnp.asarray(np.repeat([0.5, 0.5, 1.0, 0.5], hidden)[None], jnp.float32)


def _activate(gates: Any) -> Any:
    """Sigmoid of i, f and o, tanh of g: sigmoid(x) = tanh(x / 2) / 2 + 1 / 2.

    One tanh over the whole row is twice as fast on CPU as cutting it in four.
    """
    scale = _scales(gates.shape[-1] // 4)
    return jnp.tanh(gates * scale) * scale + (1 - scale)


def _matmul(a: Any, kernel: Any) -> Any:
    return jnp.matmul(
        a.astype(kernel.dtype), kernel, preferred_element_type=jnp.float32
    )


def _forward(projected, masks, kernels, initial, unroll):
    def one(state, kernel, projected, mask):
        hidden, cell = state
        active = _activate(projected.astype(jnp.float32) + _matmul(hidden, kernel))
        i, f, g, o = jnp.split(active, 4, axis=-1)
        new_cell = f * cell + i * g
        new_hidden = o * jnp.tanh(new_cell)
        hidden = jnp.where(mask, new_hidden, hidden)
        cell = jnp.where(mask, new_cell, cell)
        return LSTMState(hidden, cell), (hidden, cell, active)

    def step(states, inputs):
        results = [
            one(state, kernel, *x)
            for state, kernel, x in zip(states, kernels, inputs, strict=True)
        ]
        return tuple(state for state, _ in results), tuple(out for _, out in results)

    inputs = tuple(zip(projected, masks, strict=True))
    return jax.lax.scan(step, initial, inputs, unroll=unroll)


def _forward_rule(projected, masks, kernels, initial, unroll):
    finals, saved = _forward(projected, masks, kernels, initial, unroll)
    dtypes = tuple(jnp.zeros([], p.dtype) for p in projected)
    outputs = tuple(hidden for hidden, _, _ in saved), finals
    return outputs, (masks, kernels, initial, saved, dtypes)


def _backward_rule(unroll, residuals, cotangents):
    masks, kernels, initial, saved, dtypes = residuals
    d_hiddens, d_finals = cotangents

    def one(d_state, kernel, mask, active, cell, previous_cell, d_output):
        d_hidden, d_cell = d_state
        d_hidden = d_hidden + d_output
        i, f, g, o = jnp.split(active, 4, axis=-1)
        tanh_cell = jnp.tanh(cell)
        inner = d_cell + d_hidden * o * (1 - jnp.square(tanh_cell))
        d_active = jnp.concatenate(
            [inner * g, inner * previous_cell, inner * i, d_hidden * tanh_cell], axis=-1
        )
        scale = _scales(o.shape[-1])
        # The slope of `_activate` at its output: a (1 - a), and 1 - a^2 for g.
        slope = jnp.square(scale) - jnp.square(active - (1 - scale))
        d_gates = jnp.where(mask, d_active * slope, 0)
        d_hidden = jnp.where(mask, 0, d_hidden) + _matmul(d_gates, kernel.T)
        d_cell = jnp.where(mask, inner * f, d_cell)
        return LSTMState(d_hidden, d_cell), d_gates

    def step(d_states, inputs):
        results = [
            one(d_state, kernel, *x)
            for d_state, kernel, x in zip(d_states, kernels, inputs, strict=True)
        ]
        return tuple(state for state, _ in results), tuple(out for _, out in results)

    before = [
        (_shift(hidden, start.hidden), _shift(cell, start.cell))
        for (hidden, cell, _), start in zip(saved, initial, strict=True)
    ]
    inputs = tuple(
        (mask, active, cell, previous_cell, d_hidden)
        for mask, (_, cell, active), (_, previous_cell), d_hidden in zip(
            masks, saved, before, d_hiddens, strict=True
        )
    )
    d_initial, d_gates = jax.lax.scan(
        step, d_finals, inputs, reverse=True, unroll=unroll
    )
    d_kernels = tuple(
        jnp.einsum(
            "tbh,tbg->hg",
            previous.astype(kernel.dtype),
            d.astype(kernel.dtype),
            preferred_element_type=jnp.float32,
        ).astype(kernel.dtype)
        for kernel, (previous, _), d in zip(kernels, before, d_gates, strict=True)
    )
    d_projected = tuple(
        d.astype(like.dtype) for d, like in zip(d_gates, dtypes, strict=True)
    )
    return d_projected, None, d_kernels, d_initial


def _shift(states, start):
    """The state before each step: `start`, then all but the last."""
    return jnp.concatenate([start[None], states[:-1]])


_scan.defvjp(_forward_rule, _backward_rule)
