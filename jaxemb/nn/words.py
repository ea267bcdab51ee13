"""Encoders of words in their context that taggers and classifiers choose from."""

from typing import Any, Literal, get_args

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb.errors import InputError
from jaxemb.nn.conv import ConvEncoder
from jaxemb.nn.highway import HighwayEncoder
from jaxemb.nn.recurrent import GRU, LSTM, BiGRU, BiLSTM

Encoder = Literal["lstm", "gru", "cnn", "highway"]


def check_choice(module: nn.Module, name: str, kinds: Any) -> None:
    """Raises InputError where a field of a module is none of its choices."""
    value = getattr(module, name)
    if value not in get_args(kinds):
        raise InputError(
            f"{type(module).__name__}.{name} is {value!r}; expected one of "
            f"{', '.join(get_args(kinds))}."
        )


def word_encoder(
    kind: Encoder,
    hidden: int,
    name: str,
    *,
    bidirectional: bool = True,
    dtype: jax.typing.DTypeLike = jnp.float32,
    unroll: int = 1,
) -> nn.Module:
    """A module of vectors and a mask whose states are `2 * hidden` wide.

    Args:
      kind: "lstm", "gru", "cnn" (windows of three), or "highway" (each word alone).
      hidden: of each direction.
      name: of the module.
      bidirectional: else one direction, forwards, is twice as wide.
      dtype: of matmuls and output.
      unroll: of the recurrent ones.
    """
    if kind == "cnn":
        return ConvEncoder(2 * hidden, dtype=dtype, name=name)
    if kind == "highway":
        return HighwayEncoder(2 * hidden, dtype=dtype, name=name)
    both, one = (BiLSTM, LSTM) if kind == "lstm" else (BiGRU, GRU)
    if bidirectional:
        return both(hidden, dtype=dtype, unroll=unroll, name=name)
    return one(2 * hidden, dtype=dtype, unroll=unroll, name=name)


def encode(
    encoder: Any,
    vectors: Float[Array, "batch length dim"],
    mask: Bool[Array, "batch length"],
) -> Float[Array, "batch length _"]:
    """The states at every word, whichever encoder it is."""
    states = encoder(vectors, mask)
    return states[0] if isinstance(states, tuple) else states
