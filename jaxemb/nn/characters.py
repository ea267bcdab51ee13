"""Words as their characters spell them; character 0 pads, on the right."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxemb.errors import InputError
from jaxemb.nn.conv import max_over_windows
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.recurrent import BiLSTM

Head = Literal["relu", "linear", "highway"]


class CharBiLSTM(nn.Module):
    """A word's vector from two LSTMs over its characters.

    "Reconstruction of Word Embeddings from Sub-Word Parameters", eq. 2 and 3, with f
    the last state of the LSTM that reads forwards and b that of the other:

        z = W_f f + W_b b + c                    h = max(0, z)
        "linear": z      "relu": h      "highway": t * h + (1 - t) * z,
                                        t = sigmoid(V h + d)

    A word without characters has f = b = 0.
    """

    vocab: int  # of characters, the padding included
    features: int  # width of the word's vector
    hidden: int = 100  # of characters' vectors and of each LSTM
    head: Head = "relu"
    dropout_rate: float = 0.0  # of f and b
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output
    unroll: int = 1

    @nn.compact
    def __call__(
        self,
        characters: Int[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch {self.features}"]:
        """The vectors of words, in `dtype`."""
        if self.head not in get_args(Head):
            raise InputError(
                f"CharBiLSTM.head is {self.head!r}; expected 'relu', 'linear' or "
                "'highway'."
            )
        lstm = BiLSTM(self.hidden, dtype=self.dtype, unroll=self.unroll, name="lstm")
        table = _characters(self).embedding.astype(self.dtype)
        _, last = lstm(table, characters != 0, characters)
        self.sow("intermediates", "states", last.hidden)
        states = Dropout(self.dropout_rate, name="dropout")(
            last.hidden, deterministic=deterministic
        )
        z = _dense(self, "project")(states)
        if self.head == "linear":
            return z
        h = nn.relu(z)
        if self.head == "relu":
            return h
        t = nn.sigmoid(_dense(self, "gate")(h))
        return t * h + (1 - t) * z


class CharCNN(nn.Module):
    """A word's vector from windows of its characters (Ma and Hovy 2016).

        tanh(max over p of W [e_p; ...; e_{p+width-1}] + b)

    with e zero outside the word. A word without characters is 0.
    """

    vocab: int  # of characters, the padding included
    features: int = 30
    hidden: int = 30  # width of characters' vectors
    width: int = 3
    dropout_rate: float = 0.0  # of the characters' vectors
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output

    @nn.compact
    def __call__(
        self,
        characters: Int[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch {self.features}"]:
        """The vectors of words, in `dtype`."""
        dropout = Dropout(self.dropout_rate, name="dropout")
        vectors = dropout(_characters(self)(characters), deterministic=deterministic)
        mask = characters != 0
        vectors = jnp.where(mask[..., None], vectors, 0)
        pooled = max_over_windows(_dense(self, "filters"), vectors, mask, self.width)
        return jnp.tanh(pooled)


def uniform_rows(
    key: Any, shape: Sequence[int], dtype: Any = jnp.float32
) -> Float[Array, "..."]:
    """A lookup table whose rows have length 1 on average: uniform in ±sqrt(3 / dim)."""
    bound = (3 / shape[-1]) ** 0.5
    return jax.random.uniform(key, shape, dtype, -bound, bound)


def _characters(module: CharBiLSTM | CharCNN) -> nn.Embed:
    return nn.Embed(
        module.vocab,
        module.hidden,
        dtype=module.dtype,
        embedding_init=uniform_rows,
        name="characters",
    )


def _dense(module: CharBiLSTM | CharCNN, name: str) -> nn.Dense:
    return nn.Dense(
        module.features,
        dtype=module.dtype,
        kernel_init=nn.initializers.xavier_uniform(),
        name=name,
    )
