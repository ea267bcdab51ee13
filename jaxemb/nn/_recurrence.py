"""Recurrences over words, with a gradient that keeps matmuls out of the loop.

Differentiating `lax.scan` adds the recurrent kernel's gradient up step by step: a
small matmul, a read and a write of the whole kernel for each word, and over a mesh a
collective for each word. Here the loop only passes back the gates' gradients, and one
matmul over all words and examples follows. Several independent recurrences share one
loop, which then has work for several cores.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Cell(NamedTuple):
    """A step of a recurrence, given what inputs and state put into its gates.

    Attributes:
      forward: from the state, the projected input and the projected state to the new
        state and what the way back needs beside it.
      backward: from the new state's gradient, both states and what was kept, to the
        gradient of the old state (but for what the projected state passes back) and
        that of the projected input.
      of_recurrent: the gradient of the projected state from that of the projected
        input and what was kept; over any leading axes.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    of_recurrent: Callable[..., Any]


class LSTMState(NamedTuple):
    """What an LSTM carries from word to word, in float32."""

    hidden: Any  # batch hidden
    cell: Any  # batch hidden


class GRUState(NamedTuple):
    """What a GRU carries from word to word, in float32."""

    hidden: Any  # batch hidden


def scan_directions(
    cell: Cell,
    projected: tuple[Any, ...],
    masks: tuple[Any, ...],
    kernels: tuple[Any, ...],
    biases: tuple[Any, ...],
    initial: tuple[Any, ...],
    unroll: int,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Runs one masked recurrence per entry of the tuples.

    Args:
      cell: the step.
      projected: inputs times input kernel plus bias, (length, batch, gates * hidden).
      masks: True where there is a word, (length, batch, 1).
      kernels: recurrent kernels, (hidden, gates * hidden), in the dtype of the matmul.
      biases: added to the projected state, (1, gates * hidden); or None.
      initial: the states to start from.
      unroll: as in `lax.scan`.

    Returns:
      The hidden states (length, batch, hidden) and the final states, in float32.
    """
    return _scan(cell, unroll, projected, masks, kernels, biases, initial)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _scan(cell, unroll, projected, masks, kernels, biases, initial) -> Any:
    finals, saved = _forward(cell, unroll, projected, masks, kernels, biases, initial)
    return tuple(state.hidden for state, _ in saved), finals


def _matmul(a: Any, kernel: Any) -> Any:
    return jnp.matmul(
        a.astype(kernel.dtype), kernel, preferred_element_type=jnp.float32
    )


def _each(function: Callable[..., Any], *columns: tuple[Any, ...]) -> Any:
    """Applies a step to every direction; gives states and outputs, a tuple each."""
    results = [function(*row) for row in zip(*columns, strict=True)]
    return tuple(state for state, _ in results), tuple(out for _, out in results)


def _hold(mask: Any, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda n, o: jnp.where(mask, n, o), new, old)


def _forward(cell, unroll, projected, masks, kernels, biases, initial):
    def one(state, kernel, bias, word):
        projected, mask = word
        recurrent = _matmul(state.hidden, kernel)
        if bias is not None:
            recurrent += bias
        new, kept = cell.forward(state, projected.astype(jnp.float32), recurrent)
        state = _hold(mask, new, state)
        return state, (state, kept)

    def step(states, words):
        return _each(one, states, kernels, biases, words)

    words = tuple(zip(projected, masks, strict=True))
    return jax.lax.scan(step, initial, words, unroll=unroll)


def _forward_rule(cell, unroll, projected, masks, kernels, biases, initial):
    finals, saved = _forward(cell, unroll, projected, masks, kernels, biases, initial)
    dtypes = tuple(jnp.zeros([], p.dtype) for p in projected)
    outputs = tuple(state.hidden for state, _ in saved), finals
    return outputs, (masks, kernels, biases, initial, saved, dtypes)


def _backward_rule(cell, unroll, residuals, cotangents):
    masks, kernels, biases, initial, saved, dtypes = residuals
    d_hiddens, d_finals = cotangents

    def one(d_state, kernel, word):
        mask, state, before, kept, d_output = word
        d_state = d_state._replace(hidden=d_state.hidden + d_output)
        d_before, d_gates = cell.backward(d_state, state, before, kept)
        d_gates = jnp.where(mask, d_gates, 0)
        d_before = _hold(mask, d_before, d_state)
        through = _matmul(cell.of_recurrent(d_gates, kept), kernel.T)
        return d_before._replace(hidden=d_before.hidden + through), d_gates

    def step(d_states, words):
        return _each(one, d_states, kernels, words)

    befores = [
        jax.tree.map(_shift, state, start)
        for (state, _), start in zip(saved, initial, strict=True)
    ]
    words = tuple(
        (mask, state, before, kept, d_hidden)
        for mask, (state, kept), before, d_hidden in zip(
            masks, saved, befores, d_hiddens, strict=True
        )
    )
    d_initial, d_gates = jax.lax.scan(
        step, d_finals, words, reverse=True, unroll=unroll
    )
    d_recurrent = [
        cell.of_recurrent(d, kept) for d, (_, kept) in zip(d_gates, saved, strict=True)
    ]
    d_kernels = tuple(
        jnp.einsum(
            "tbh,tbg->hg",
            before.hidden.astype(kernel.dtype),
            d.astype(kernel.dtype),
            preferred_element_type=jnp.float32,
        ).astype(kernel.dtype)
        for kernel, before, d in zip(kernels, befores, d_recurrent, strict=True)
    )
    d_biases = tuple(
        None if bias is None else jnp.sum(d, axis=(0, 1))[None]
        for bias, d in zip(biases, d_recurrent, strict=True)
    )
    d_projected = tuple(
        d.astype(like.dtype) for d, like in zip(d_gates, dtypes, strict=True)
    )
    return d_projected, None, d_kernels, d_biases, d_initial


def _shift(states, start):
    """The state before each step: `start`, then all but the last."""
    return jnp.concatenate([start[None], states[:-1]])


_scan.defvjp(_forward_rule, _backward_rule)


def _scales(hidden: int) -> Any:
    return jnp.asarray(np.repeat([0.5, 0.5, 1.0, 0.5], hidden)[None], jnp.float32)


def _activate(gates: Any) -> Any:
    """Sigmoid of i, f and o, tanh of g: sigmoid(x) = tanh(x / 2) / 2 + 1 / 2.

    One tanh over the whole row is twice as fast on CPU as cutting it in four.
    """
    scale = _scales(gates.shape[-1] // 4)
    return jnp.tanh(gates * scale) * scale + (1 - scale)


def _lstm_forward(state, projected, recurrent):
    active = _activate(projected + recurrent)
    i, f, g, o = jnp.split(active, 4, axis=-1)
    cell = f * state.cell + i * g
    return LSTMState(o * jnp.tanh(cell), cell), active


def _lstm_backward(d_state, state, before, active):
    d_hidden, d_cell = d_state
    i, f, g, o = jnp.split(active, 4, axis=-1)
    tanh_cell = jnp.tanh(state.cell)
    inner = d_cell + d_hidden * o * (1 - jnp.square(tanh_cell))
    d_active = jnp.concatenate(
        [inner * g, inner * before.cell, inner * i, d_hidden * tanh_cell], axis=-1
    )
    scale = _scales(o.shape[-1])
    # The slope of `_activate` at its output: a (1 - a), and 1 - a^2 for g.
    slope = jnp.square(scale) - jnp.square(active - (1 - scale))
    return LSTMState(jnp.zeros_like(d_hidden), inner * f), d_active * slope


LSTM_CELL = Cell(_lstm_forward, _lstm_backward, lambda d_gates, active: d_gates)


class _GRUKept(NamedTuple):
    gates: Any  # r, z and n side by side
    inner: Any  # what the state puts into n, before r


def _gru_forward(state, projected, recurrent):
    hidden = state.hidden.shape[-1]
    both = projected[..., : 2 * hidden] + recurrent[..., : 2 * hidden]
    r, z = jnp.split(0.5 * jnp.tanh(0.5 * both) + 0.5, 2, axis=-1)
    inner = recurrent[..., 2 * hidden :]
    n = jnp.tanh(projected[..., 2 * hidden :] + r * inner)
    kept = _GRUKept(jnp.concatenate([r, z, n], axis=-1), inner)
    return GRUState((1 - z) * n + z * state.hidden), kept


def _gru_backward(d_state, state, before, kept):
    del state
    r, z, n = jnp.split(kept.gates, 3, axis=-1)
    d_n = d_state.hidden * (1 - z) * (1 - jnp.square(n))
    d_z = d_state.hidden * (before.hidden - n) * z * (1 - z)
    d_r = d_n * kept.inner * r * (1 - r)
    d_gates = jnp.concatenate([d_r, d_z, d_n], axis=-1)
    return GRUState(d_state.hidden * z), d_gates


def _gru_of_recurrent(d_gates, kept):
    d_r, d_z, d_n = jnp.split(d_gates, 3, axis=-1)
    r = kept.gates[..., : d_r.shape[-1]]
    return jnp.concatenate([d_r, d_z, d_n * r], axis=-1)


GRU_CELL = Cell(_gru_forward, _gru_backward, _gru_of_recurrent)
