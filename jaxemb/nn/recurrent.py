"""Masked LSTMs and GRUs: one matmul for all inputs, one scan for both directions."""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxemb import numerics
from jaxemb.nn._recurrence import (
    GRU_CELL,
    LSTM_CELL,
    Cell,
    GRUState,
    LSTMState,
    scan_directions,
)
from jaxemb.nn.dropout import Dropout, drop_weights


class _Gates(nn.Module):
    """The parameters of one direction; projects the inputs of all steps at once."""

    hidden: int
    dtype: jax.typing.DTypeLike
    weight_drop: float = 0.0  # share of the recurrent kernel that is dropped

    def project(self, inputs: Array, gates: int, bias_init: Any) -> tuple[Array, Array]:
        recurrent = self.param(
            "recurrent",
            _orthogonal_gates,
            (self.hidden, gates * self.hidden),
            jnp.float32,
        )
        if self.weight_drop:
            recurrent = drop_weights(
                self.make_rng("dropout"), recurrent, self.weight_drop
            )
        dense = nn.Dense(
            gates * self.hidden, dtype=self.dtype, bias_init=bias_init, name="input"
        )
        return dense(inputs), jnp.asarray(recurrent, self.dtype)


class _LSTMGates(_Gates):
    forget_bias: float = 1.0

    @nn.compact
    def __call__(self, inputs: Array) -> tuple[Array, Array, None]:
        def bias_init(key, shape, dtype=jnp.float32):
            del key
            forget = slice(self.hidden, 2 * self.hidden)
            return jnp.zeros(shape, dtype).at[forget].set(self.forget_bias)

        return *self.project(inputs, 4, bias_init), None


class _GRUGates(_Gates):
    @nn.compact
    def __call__(self, inputs: Array) -> tuple[Array, Array, Array]:
        zeros = nn.initializers.zeros
        bias = self.param("recurrent_bias", zeros, (self.hidden,), jnp.float32)
        bias = jnp.pad(bias, (2 * self.hidden, 0))[None]
        return *self.project(inputs, 3, zeros), bias


def _orthogonal_gates(key, shape, dtype=jnp.float32):
    square = (shape[0], shape[0])
    blocks = [
        nn.initializers.orthogonal()(k, square, dtype)
        for k in jax.random.split(key, shape[1] // shape[0])
    ]
    return jnp.concatenate(blocks, axis=1)


class LSTM(nn.Module):
    """A long short-term memory over right-padded sequences.

    With gates in the order i, f, g, o (torch's, so weights carry over):

        i, f, o = sigmoid(x W + h U + b)      g = tanh(x W + h U + b)
        c' = f * c + i * g                    h' = o * tanh(c')

    At a masked step the state is held and the output is 0. With `reverse` the
    sequence is read from its last real word to its first. The gradient is written by
    hand for reverse mode (`jax.grad`); forward mode (`jax.jvp`) is a TypeError.
    """

    hidden: int
    reverse: bool = False
    forget_bias: float = 1.0  # where the bias of the forget gate starts
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output; states float32
    unroll: int = 1  # steps of the scan in one loop iteration

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        initial: LSTMState | None = None,
    ) -> tuple[Float[Array, "batch length {self.hidden}"], LSTMState]:
        """The states after every word, in `dtype`, and the one after the last word."""
        gates = _LSTMGates(
            self.hidden, self.dtype, forget_bias=self.forget_bias, name="cell"
        )
        start = initial or LSTMState(*2 * [_zeros(mask, self.hidden)])
        return _run(
            LSTM_CELL, [gates], [self.reverse], inputs, mask, start, self.unroll
        )


class BiLSTM(nn.Module):
    """Two LSTMs, one reading forwards and one backwards, side by side.

    The reverse one starts at the last real word of each sequence. Outputs and final
    states are `[forward; backward]`, `2 * hidden` wide. As for `LSTM`, only reverse
    mode differentiates it.
    """

    hidden: int  # of each direction
    forget_bias: float = 1.0
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output; states float32
    unroll: int = 1
    weight_drop: tuple[float, float] = (0.0, 0.0)  # of the recurrent kernels

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "batch length dim"] | Float[Array, "vocab dim"],
        mask: Bool[Array, "batch length"],
        ids: Int[Array, "batch length"] | None = None,
        *,
        deterministic: bool = True,
    ) -> tuple[Float[Array, "batch length {2*self.hidden}"], LSTMState]:
        """The states at every word, in `dtype`, and each direction's last state.

        `weight_drop` is in force unless `deterministic`; see `dropout.drop_weights`.

        With `ids`, `inputs` is a table and word t has its row `ids[:, t]`. Where the
        table has fewer rows than there are words, that saves half of the work: rows
        are multiplied by the input kernel, not words.
        """
        gates = [
            _LSTMGates(
                self.hidden,
                self.dtype,
                0.0 if deterministic else rate,
                self.forget_bias,
                name=name,
            )
            for name, rate in zip(
                ("forward", "backward"), self.weight_drop, strict=True
            )
        ]
        start = LSTMState(*2 * [_zeros(mask, self.hidden)])
        return _run(
            LSTM_CELL, gates, [False, True], inputs, mask, start, self.unroll, ids
        )


class GRU(nn.Module):
    """A gated recurrent unit over right-padded sequences.

    With gates in the order r, z, n (torch's, so weights carry over):

        r, z = sigmoid(x W + h U + b)         n = tanh(x W + b + r * (h U + d))
        h' = (1 - z) * n + z * h

    Masks, `reverse` and differentiation are as for `LSTM`.
    """

    hidden: int
    reverse: bool = False
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output; states float32
    unroll: int = 1

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        initial: GRUState | None = None,
    ) -> tuple[Float[Array, "batch length {self.hidden}"], GRUState]:
        """The states after every word, in `dtype`, and the one after the last word."""
        gates = _GRUGates(self.hidden, self.dtype, name="cell")
        start = initial or GRUState(_zeros(mask, self.hidden))
        return _run(GRU_CELL, [gates], [self.reverse], inputs, mask, start, self.unroll)


class BiGRU(nn.Module):
    """Two GRUs, one reading forwards and one backwards, side by side, as `BiLSTM`."""

    hidden: int  # of each direction
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output; states float32
    unroll: int = 1

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "batch length dim"] | Float[Array, "vocab dim"],
        mask: Bool[Array, "batch length"],
        ids: Int[Array, "batch length"] | None = None,
    ) -> tuple[Float[Array, "batch length {2*self.hidden}"], GRUState]:
        """The states at every word, in `dtype`, and each direction's last state.

        With `ids`, `inputs` is a table and word t has its row `ids[:, t]`. Where the
        table has fewer rows than there are words, that saves half of the work: rows
        are multiplied by the input kernel, not words.
        """
        gates = [
            _GRUGates(self.hidden, self.dtype, name=name)
            for name in ("forward", "backward")
        ]
        start = GRUState(_zeros(mask, self.hidden))
        return _run(
            GRU_CELL, gates, [False, True], inputs, mask, start, self.unroll, ids
        )


class LSTMClassifier(nn.Module):
    """`Dense(dropout(last state of an LSTM))`."""

    classes: int
    hidden: int = 128  # of each direction
    dropout_rate: float = 0.5
    bidirectional: bool = False
    dtype: jax.typing.DTypeLike = jnp.float32  # of the LSTM; the logits are float32
    unroll: int = 1

    @nn.compact
    def __call__(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch {self.classes}"]:
        """The logits, in float32."""
        encoder = BiLSTM if self.bidirectional else LSTM
        _, last = encoder(
            self.hidden, dtype=self.dtype, unroll=self.unroll, name="encoder"
        )(vectors, mask)
        self.sow("intermediates", "features", last.hidden)
        features = Dropout(self.dropout_rate, name="dropout")(
            last.hidden, deterministic=deterministic
        )
        return nn.Dense(self.classes, name="output")(features)


class BiLSTMPoolClassifier(nn.Module):
    """A BiLSTM, the maximum of its states over words, and two dense layers.

        h = max over words of [forward; backward]
        logits = W dropout(relu(V h + a)) + b

    A text without words has the states 0.
    """

    classes: int
    hidden: int = 32  # of each direction
    features: int = 20  # of the dense layer between
    dropout_rate: float = 0.05
    dtype: jax.typing.DTypeLike = jnp.float32  # of the LSTM; the logits are float32
    unroll: int = 1

    @nn.compact
    def __call__(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch {self.classes}"]:
        """The logits, in float32."""
        states, _ = BiLSTM(
            self.hidden, dtype=self.dtype, unroll=self.unroll, name="encoder"
        )(vectors, mask)
        pooled = numerics.masked_max(states, mask[..., None], axis=1)
        self.sow("intermediates", "features", pooled)
        hidden = nn.relu(nn.Dense(self.features, name="hidden")(pooled))
        hidden = Dropout(self.dropout_rate, name="dropout")(
            hidden, deterministic=deterministic
        )
        return nn.Dense(self.classes, name="output")(hidden)


def _zeros(mask: Array, hidden: int) -> Array:
    return jnp.zeros((mask.shape[0], hidden), jnp.float32)


def _run(
    cell: Cell,
    gates: Sequence[Any],
    backwards: Sequence[bool],
    inputs: Array,
    mask: Array,
    start: Any,
    unroll: int,
    ids: Array | None = None,
) -> tuple[Array, Any]:
    """States at every word and final states, directions side by side."""
    steps = mask.T[..., None]
    if ids is None:
        # Zeros at padding: the weights' gradient multiplies them, and 0 * NaN is NaN.
        inputs = jnp.swapaxes(jnp.where(mask[..., None], inputs, 0), 0, 1)
    projected, kernels, biases = zip(*(own(inputs) for own in gates), strict=True)
    if ids is not None:  # past the table: NaN, which padding does not spread
        projected = [jnp.take(p, ids.T, axis=0, mode="fill") for p in projected]

    def turned(x: Array, backward: bool) -> Array:
        return x[::-1] if backward else x

    states, finals = scan_directions(
        cell,
        tuple(turned(*pair) for pair in zip(projected, backwards, strict=True)),
        tuple(turned(steps, backward) for backward in backwards),
        kernels,
        biases,
        (start,) * len(gates),
        unroll,
    )
    ahead = [turned(*pair) for pair in zip(states, backwards, strict=True)]
    states = jnp.swapaxes(jnp.concatenate(ahead, axis=-1), 0, 1).astype(gates[0].dtype)
    final = jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=-1), *finals)
    return jnp.where(mask[..., None], states, 0), final
