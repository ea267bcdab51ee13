"""Classification of texts: a class for all words together."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.words import Encoder, check_choice, encode, word_encoder


class TextClassifier(nn.Module):
    """Words in their context, the maximum over words, and a dense layer.

        h = max over words of encoder(dropout(x))      logits = W dropout(h) + b

    A text without words has the states 0.
    """

    classes: int
    hidden: int = 100  # of each direction; half the states
    encoder: Encoder = "lstm"
    bidirectional: bool = True  # of the recurrent encoders
    dropout_rate: float = 0.0
    dtype: jax.typing.DTypeLike = jnp.float32  # of the encoder; logits are float32
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
        check_choice(self, "encoder", Encoder)
        encoder = word_encoder(
            self.encoder,
            self.hidden,
            "encoder",
            bidirectional=self.bidirectional,
            dtype=self.dtype,
            unroll=self.unroll,
        )
        dropout = Dropout(self.dropout_rate, name="dropout")
        vectors = jnp.where(mask[..., None], vectors, 0)
        vectors = dropout(vectors, deterministic=deterministic)
        states = encode(encoder, vectors, mask)
        pooled = numerics.masked_max(states, mask[..., None], axis=1)
        self.sow("intermediates", "features", pooled)
        pooled = dropout(pooled, deterministic=deterministic)
        return nn.Dense(self.classes, name="output")(pooled.astype(jnp.float32))
