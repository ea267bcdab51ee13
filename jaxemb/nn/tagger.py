"""Sequence labelling: a class for every word."""

from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxemb import losses
from jaxemb.nn import crf
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.words import Encoder, check_choice, encode, word_encoder

Head = Literal["softmax", "crf"]


class Tagger(nn.Module):
    """Words in their context, an MLP for each, and a softmax or a chain over them.

        h = encoder(dropout(x)), layer on layer
        e_t = W2 relu(W1 dropout(h_t) + b1) + b2

    "softmax": `p(y_t) = softmax(e_t)`, word by word. "crf": e are the emissions of a
    linear chain; see `crf`.
    """

    classes: int
    hidden: int = 100  # of each direction; half the states
    encoder: Encoder = "lstm"
    bidirectional: bool = True  # of the recurrent encoders
    head: Head = "softmax"
    layers: int = 1  # of the encoder
    mlp: int | None = 100  # width of W1; None: e = W2 dropout(h) + b2
    dropout_rate: float = 0.0
    constraints: crf.Constraints | None = None  # "softmax": in decoding only
    dtype: jax.typing.DTypeLike = jnp.float32  # of the encoder; emissions are float32
    unroll: int = 1

    def setup(self):
        """Makes the layers."""
        check_choice(self, "encoder", Encoder)
        check_choice(self, "head", Head)
        self.encoders = [self._encoder(f"encoder_{i}") for i in range(self.layers)]
        self.dropout = Dropout(self.dropout_rate, name="dropout")
        if self.mlp is not None:
            self.inner = nn.Dense(self.mlp, dtype=self.dtype, name="inner")
        self.output = nn.Dense(self.classes, name="output")
        if self.head == "crf":
            self.crf = crf.CRF(self.classes, self.constraints, name="crf")

    def _encoder(self, name: str) -> nn.Module:
        return word_encoder(
            self.encoder,
            self.hidden,
            name,
            bidirectional=self.bidirectional,
            dtype=self.dtype,
            unroll=self.unroll,
        )

    def __call__(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch length {self.classes}"]:
        """The emissions e, in float32; 0 at padding."""
        states: Any = jnp.where(mask[..., None], vectors, 0)
        for encoder in self.encoders:
            states = self.dropout(states, deterministic=deterministic)
            states = encode(encoder, states, mask)
        self.sow("intermediates", "states", states)
        states = self.dropout(states, deterministic=deterministic)
        if self.mlp is not None:
            states = nn.relu(self.inner(states))
        if self.head == "crf":
            self.crf.chain()  # so that `init` makes its parameters
        emissions = self.output(states.astype(jnp.float32))
        return jnp.where(mask[..., None], emissions, 0)

    def loss(
        self,
        vectors: Float[Array, "batch length dim"],
        tags: Int[Array, "batch length"],
        mask: Bool[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, " batch"]:
        """`-log p(tags)`, one value a sentence."""
        emissions = self(vectors, mask, deterministic=deterministic)
        if self.head == "crf":
            return self.crf(emissions, tags, mask)
        return losses.softmax_cross_entropy(emissions, tags, mask=mask).sum(axis=1)

    def decode(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
    ) -> Int[Array, "batch length"]:
        """The best tags, under the constraints if there are any; 0 at padding."""
        emissions = self(vectors, mask, deterministic=True)
        if self.head == "softmax" and self.constraints is None:
            return jnp.where(mask, jnp.argmax(emissions, axis=-1), 0)
        return crf.decode(emissions, mask, self._chain())[0]

    def k_best(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        k: int,
    ) -> tuple[Int[Array, "batch {k} length"], Float[Array, "batch {k}"]]:
        """The k best tags of each sentence and their scores, as `crf.k_best`."""
        emissions = self(vectors, mask, deterministic=True)
        return crf.k_best(emissions, mask, self._chain(), k)

    def marginals(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
    ) -> Float[Array, "batch length {self.classes}"]:
        """`p(y_t)` as it is trained, word by word or of the chain; 0 at padding."""
        emissions = self(vectors, mask, deterministic=True)
        if self.head == "crf":
            return self.crf.marginals(emissions, mask)
        return jnp.where(mask[..., None], nn.softmax(emissions), 0)

    def _chain(self) -> crf.Chain:
        """What decoding goes by: without a CRF only what is forbidden."""
        if self.head == "crf":
            return self.crf.chain()
        square, row = jnp.zeros((self.classes, self.classes)), jnp.zeros(self.classes)
        chain = crf.Chain(square, row, row)
        return chain if self.constraints is None else self.constraints.apply(chain)
