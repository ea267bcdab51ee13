"""What is trained above a text encoder: classes of texts, pieces, choices; pieces.

Every module has its encoder under the name `encoder`: pretrained weights go to
`params["encoder"]`. Those that classify have two halves, `embed` and `logits`, between
which embeddings of pieces can be perturbed.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxemb.nn.bert import TextConfig, TextEncoder
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.transformer import ACTIVATIONS, layer_norm

Ids = Int[Array, "batch length"]
Mask = Bool[Array, "batch length"]


class _Classifier(nn.Module):
    """`W dropout(s) + b` of states s that are read from an encoder."""

    classes: int
    config: TextConfig
    dropout_rate: float = 0.1
    dtype: jax.typing.DTypeLike = jnp.float32  # of the encoder; logits are float32
    remat: bool = False

    def setup(self):
        """Makes the parts."""
        self.encoder = _encoder(self)
        self.dropout = Dropout(self.dropout_rate, name="dropout")
        self.output = nn.Dense(self.classes, name="output")

    def __call__(
        self, ids: Ids, mask: Mask, segments: Ids | None = None, *, deterministic: bool
    ) -> Float[Array, "batch *pieces {self.classes}"]:
        """The logits, in float32."""
        embeddings = self.embed(ids)
        return self.logits(embeddings, mask, segments, deterministic=deterministic)

    def embed(self, ids: Ids) -> Float[Array, "batch length {self.config.dim}"]:
        """The pieces' embeddings alone, as the encoder has them."""
        return self.encoder.embed(ids)

    def logits(
        self,
        embeddings: Float[Array, "batch length {self.config.dim}"],
        mask: Mask,
        segments: Ids | None = None,
        *,
        deterministic: bool,
    ) -> Float[Array, "batch *pieces {self.classes}"]:
        """The logits of given embeddings of pieces, in float32."""
        encoded = self.encoder.encode(
            embeddings, mask, segments, deterministic=deterministic
        )
        states = self.dropout(self._read(encoded), deterministic=deterministic)
        return self.output(states.astype(jnp.float32))

    def _read(self, encoded: Any) -> Array:
        return encoded.last


class SequenceClassifier(_Classifier):
    """`W dropout(p) + b` of a text, or of a pair of texts, which is one with segments.

    p is the encoder's pooled state; without a pooler, the first piece's last state.
    """

    def _read(self, encoded: Any) -> Array:
        if self.config.pooler:
            return self.encoder.pooled(encoded)
        return encoded.last[:, 0]


class PieceClassifier(_Classifier):
    """`W dropout(h_t) + b` of every piece; `align_wordpieces` makes words of pieces.

    The logits are 0 at padding.
    """

    def logits(
        self,
        embeddings: Float[Array, "batch length {self.config.dim}"],
        mask: Mask,
        segments: Ids | None = None,
        *,
        deterministic: bool,
    ) -> Float[Array, "batch length {self.classes}"]:
        """The logits of given embeddings of pieces, in float32; 0 at padding."""
        logits = super().logits(embeddings, mask, segments, deterministic=deterministic)
        return jnp.where(mask[..., None], logits, 0)

    def _read(self, encoded: Any) -> Array:
        if self.config.pooler and self.is_initializing():
            self.encoder.pooled(encoded)  # unused here, and in pretrained weights
        return encoded.last


class MultipleChoice(nn.Module):
    """`w . dropout(p) + b` of every choice, each a text together with the question."""

    config: TextConfig
    dropout_rate: float = 0.1
    dtype: jax.typing.DTypeLike = jnp.float32  # of the encoder; logits are float32
    remat: bool = False

    def setup(self):
        """Makes the classifier of one choice."""
        self.text = SequenceClassifier(
            1, self.config, self.dropout_rate, self.dtype, self.remat, name="text"
        )

    def __call__(
        self,
        ids: Int[Array, "batch choices length"],
        mask: Bool[Array, "batch choices length"],
        segments: Int[Array, "batch choices length"] | None = None,
        *,
        deterministic: bool,
    ) -> Float[Array, "batch choices"]:
        """The logits of the choices, in float32; of one without pieces the lowest."""
        embeddings = self.embed(ids)
        return self.logits(embeddings, mask, segments, deterministic=deterministic)

    def embed(
        self, ids: Int[Array, "batch choices length"]
    ) -> Float[Array, "batch choices length {self.config.dim}"]:
        """The pieces' embeddings alone, as the encoder has them."""
        flat = self.text.embed(ids.reshape(-1, ids.shape[-1]))
        return flat.reshape(*ids.shape, -1)

    def logits(
        self,
        embeddings: Float[Array, "batch choices length {self.config.dim}"],
        mask: Bool[Array, "batch choices length"],
        segments: Int[Array, "batch choices length"] | None = None,
        *,
        deterministic: bool,
    ) -> Float[Array, "batch choices"]:
        """The logits of given embeddings of pieces, as those of ids."""
        batch, choices, length = mask.shape
        flat = batch * choices, length
        logits = self.text.logits(
            embeddings.reshape(*flat, -1),
            mask.reshape(flat),
            None if segments is None else segments.reshape(flat),
            deterministic=deterministic,
        )
        lowest = jnp.finfo(jnp.float32).min
        return jnp.where(mask.any(axis=-1), logits.reshape(batch, choices), lowest)


class MaskedLM(nn.Module):
    """Which piece stands at each place: BERT's head, tied to its table of pieces.

    logits_t = E norm(activation(W h_t + b)) + c
    """

    config: TextConfig
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls; logits are float32
    remat: bool = False

    @nn.compact
    def __call__(
        self,
        ids: Ids,
        mask: Mask,
        segments: Ids | None = None,
        places: Int[Array, "batch places"] | None = None,
        *,
        deterministic: bool,
    ) -> Float[Array, "batch _ {self.config.vocab}"]:
        """The logits of all pieces, in float32; 0 at padding.

        Of every place, or only of the `places` of each text: with a large vocabulary
        most of the work is here, and only hidden pieces are asked for.
        """
        config = self.config
        encoder = _encoder(self)
        encoded = encoder(ids, mask, segments, deterministic=deterministic)
        last = encoded.last
        if places is not None:
            last = jnp.take_along_axis(last, places[..., None], axis=1)
            mask = jnp.take_along_axis(mask, places, axis=1)
        states = nn.Dense(config.dim, dtype=self.dtype, name="transform")(last)
        states = ACTIVATIONS[config.activation](states)
        states = layer_norm(config.epsilon, self.dtype, "transform_norm")(states)
        bias = self.param("bias", nn.initializers.zeros, (config.vocab,), jnp.float32)
        logits = encoder.logits_of_pieces(states) + bias[None, None]
        return jnp.where(mask[..., None], logits, 0)


class CausalLM(nn.Module):
    """Which piece comes next: `logits_t = E h_t`, with GPT-2's table of pieces."""

    config: TextConfig
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls; logits are float32
    remat: bool = False

    @nn.compact
    def __call__(
        self, ids: Ids, mask: Mask, *, deterministic: bool
    ) -> Float[Array, "batch length {self.config.vocab}"]:
        """The logits of the piece after each place, in float32."""
        encoder = _encoder(self)
        encoded = encoder(ids, mask, deterministic=deterministic)
        return encoder.logits_of_pieces(encoded.last)


def _encoder(module) -> TextEncoder:
    return TextEncoder(
        module.config, dtype=module.dtype, remat=module.remat, name="encoder"
    )
