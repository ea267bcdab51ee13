"""Masked LSTMs: one matmul for all inputs, one scan for both directions."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics
from jaxemb.nn._lstm_scan import LSTMState, scan_directions
from jaxemb.nn.dropout import Dropout


class _Gates(nn.Module):
    """The parameters of one direction; projects the inputs of all steps at once."""

    hidden: int
    forget_bias: float
    dtype: jax.typing.DTypeLike

    @nn.compact
    def __call__(self, inputs: Array) -> tuple[Array, Array]:
        recurrent = self.param(
            "recurrent", _orthogonal_gates, (self.hidden, 4 * self.hidden), jnp.float32
        )
        dense = nn.Dense(
            4 * self.hidden,
            dtype=self.dtype,
            bias_init=lambda key, shape, dtype=jnp.float32: (
                jnp.zeros(shape, dtype)
                .at[self.hidden : 2 * self.hidden]
                .set(self.forget_bias)
            ),
            name="input",
        )
        return dense(inputs), jnp.asarray(recurrent, self.dtype)


def _orthogonal_gates(key, shape, dtype=jnp.float32):
    square = (shape[0], shape[0])
    blocks = [
        nn.initializers.orthogonal()(k, square, dtype) for k in jax.random.split(key, 4)
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
        inputs, steps = _time_major(inputs, mask)
        if self.reverse:
            inputs, steps = inputs[::-1], steps[::-1]
        gates = _Gates(self.hidden, self.forget_bias, self.dtype, name="cell")
        projected, recurrent = gates(inputs)
        start = initial or _zero_state(mask, self.hidden)
        (states,), (final,) = scan_directions(
            (projected,), (steps,), (recurrent,), (start,), self.unroll
        )
        states = states[::-1] if self.reverse else states
        return _batch_major(states, mask, self.dtype), final


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

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
    ) -> tuple[Float[Array, "batch length {2*self.hidden}"], LSTMState]:
        """The states at every word, in `dtype`, and each direction's last state."""
        inputs, steps = _time_major(inputs, mask)
        gates = [
            _Gates(self.hidden, self.forget_bias, self.dtype, name=name)
            for name in ("forward", "backward")
        ]
        projected, recurrent = zip(
            gates[0](inputs), gates[1](inputs[::-1]), strict=True
        )
        start = _zero_state(mask, self.hidden)
        (forward, backward), finals = scan_directions(
            projected, (steps, steps[::-1]), recurrent, (start, start), self.unroll
        )
        states = jnp.concatenate([forward, backward[::-1]], axis=-1)
        final = [jnp.concatenate(pair, axis=-1) for pair in zip(*finals, strict=True)]
        return _batch_major(states, mask, self.dtype), LSTMState(*final)


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


def _zero_state(mask: Array, hidden: int) -> LSTMState:
    zeros = jnp.zeros((mask.shape[0], hidden), jnp.float32)
    return LSTMState(zeros, zeros)


def _time_major(inputs: Array, mask: Array) -> tuple[Array, Array]:
    # Zeros at padding: the weights' gradient multiplies them, and 0 * NaN is NaN.
    inputs = jnp.where(mask[..., None], inputs, 0)
    return jnp.swapaxes(inputs, 0, 1), mask.T[..., None]


def _batch_major(states: Array, mask: Array, dtype) -> Array:
    states = jnp.swapaxes(states, 0, 1).astype(dtype)
    return jnp.where(mask[..., None], states, 0)
