"""What is trained above a text encoder: classes of texts, pieces, choices; pieces.

Every module has its encoder under the name `encoder`: pretrained weights go to
`params["encoder"]`.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxemb.nn.bert import TextConfig, TextEncoder
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.transformer import ACTIVATIONS, layer_norm

Ids = Int[Array, "batch length"]
Mask = Bool[Array, "batch length"]


class SequenceClassifier(nn.Module):
    """`W dropout(p) + b` of a text, or of a pair of texts, which is one with segments.

    p is the encoder's pooled state; without a pooler, the first piece's last state.
    """

    classes: int
    config: TextConfig
    dropout_rate: float = 0.1
    dtype: jax.typing.DTypeLike = jnp.float32  # of the encoder; logits are float32
    remat: bool = False

    @nn.compact
    def __call__(
        self, ids: Ids, mask: Mask, segments: Ids | None = None, *, deterministic: bool
    ) -> Float[Array, "batch {self.classes}"]:
        """The logits, in float32."""
        encoder = _encoder(self)
        encoded = encoder(ids, mask, segments, deterministic=deterministic)
        first = encoder.pooled(encoded) if self.config.pooler else (encoded.last[:, 0])
        first = Dropout(self.dropout_rate, name="dropout")(
            first, deterministic=deterministic
        )
        return nn.Dense(self.classes, name="output")(first.astype(jnp.float32))


class PieceClassifier(nn.Module):
    """`W dropout(h_t) + b` of every piece; `align_wordpieces` makes words of pieces."""

    classes: int
    config: TextConfig
    dropout_rate: float = 0.1
    dtype: jax.typing.DTypeLike = jnp.float32  # of the encoder; logits are float32
    remat: bool = False

    @nn.compact
    def __call__(
        self, ids: Ids, mask: Mask, segments: Ids | None = None, *, deterministic: bool
    ) -> Float[Array, "batch length {self.classes}"]:
        """The logits, in float32; 0 at padding."""
        encoded = _encoder(self)(ids, mask, segments, deterministic=deterministic)
        states = Dropout(self.dropout_rate, name="dropout")(
            encoded.last, deterministic=deterministic
        )
        logits = nn.Dense(self.classes, name="output")(states.astype(jnp.float32))
        return jnp.where(mask[..., None], logits, 0)


class MultipleChoice(nn.Module):
    """`w . dropout(p) + b` of every choice, each a text together with the question."""

    config: TextConfig
    dropout_rate: float = 0.1
    dtype: jax.typing.DTypeLike = jnp.float32  # of the encoder; logits are float32
    remat: bool = False

    @nn.compact
    def __call__(
        self,
        ids: Int[Array, "batch choices length"],
        mask: Bool[Array, "batch choices length"],
        segments: Int[Array, "batch choices length"] | None = None,
        *,
        deterministic: bool,
    ) -> Float[Array, "batch choices"]:
        """The logits of the choices, in float32; of one without pieces the lowest."""
        batch, choices, length = ids.shape
        flat = batch * choices, length
        logits = SequenceClassifier(
            1, self.config, self.dropout_rate, self.dtype, self.remat, name="text"
        )(
            ids.reshape(flat),
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
