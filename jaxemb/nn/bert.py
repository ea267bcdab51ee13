"""Text encoders as pretrained weights have them: BERT, RoBERTa, DistilBERT, GPT-2.

`jaxemb.pretrained.load_hf` reads their weights and configs.
"""

import dataclasses
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxemb.errors import InputError
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.transformer import (
    Activation,
    Encoded,
    Transformer,
    layer_norm,
    sinusoids,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextConfig:
    """The shape of a text encoder; the defaults are BERT's, base size."""

    vocab: int = 30_522
    """Word pieces."""
    dim: int = 768
    """Width of a state."""
    layers: int = 12
    heads: int = 12
    kept_heads: tuple[int, ...] = ()
    """Of each layer, where some are removed (`pretrained.without_heads`)."""
    inner: int = 3072
    """Width of the networks inside the blocks."""
    positions: int = 512
    """Rows of the table of positions."""
    first_position: int = 0
    """Of the first piece: 2 in RoBERTa, whose first rows stand for padding."""
    position_kind: Literal["learned", "sinusoidal"] = "learned"
    segments: int = 2
    """Rows of the table of segments; 0: there is none."""
    activation: Activation = "gelu"
    embedding_norm: bool = True
    """Whether embeddings are normalised before the first block."""
    pre_norm: bool = False
    """Norms before the parts of a block, and one after the last; else after each."""
    causal: bool = False
    """Whether a piece sees only those up to itself."""
    pooler: bool = True
    """Whether the first piece's state is also given through a tanh layer."""
    dropout_rate: float = 0.1
    attention_dropout_rate: float = 0.1
    epsilon: float = 1e-12
    """Of the norms."""
    initializer_range: float = 0.02
    """Standard deviation of embeddings before training."""

    @property
    def longest(self) -> int:
        """Pieces of the longest text."""
        return self.positions - self.first_position


class TextEncoder(nn.Module):
    """Pieces, positions and segments, added up, and a `Transformer` over them.

        x = piece[id] + position[p] + segment[s]
        states = Transformer(dropout(norm(x)))        (GPT-2: no norm here)

    To perturb or replace the pieces' embeddings take the two halves by themselves:
    `encode(embed(ids) + change, mask)`, with `method="encode"` in `apply`.
    """

    config: TextConfig
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and states
    remat: bool = False
    scan: bool = False

    def setup(self):
        """Makes the parts."""
        config = self.config
        normal = nn.initializers.normal(config.initializer_range)

        def table(rows: int, name: str) -> nn.Embed:
            return nn.Embed(
                rows, config.dim, dtype=self.dtype, embedding_init=normal, name=name
            )

        self.pieces = table(config.vocab, "pieces")
        if config.position_kind == "learned":
            self.places = table(config.positions, "places")
        if config.segments:
            self.segments = table(config.segments, "segments")
        if config.embedding_norm:
            self.norm = layer_norm(config.epsilon, self.dtype, "norm")
        self.dropout = Dropout(config.dropout_rate, name="dropout")
        self.blocks = Transformer(
            layers=config.layers,
            heads=config.heads,
            inner=config.inner,
            activation=config.activation,
            pre_norm=config.pre_norm,
            causal=config.causal,
            dropout_rate=config.dropout_rate,
            attention_dropout_rate=config.attention_dropout_rate,
            epsilon=config.epsilon,
            dtype=self.dtype,
            remat=self.remat,
            scan=self.scan,
            kept_heads=config.kept_heads,
            name="blocks",
        )
        if config.pooler:
            self.pool = nn.Dense(config.dim, dtype=self.dtype, name="pool")

    def __call__(
        self,
        ids: Int[Array, "batch length"],
        mask: Bool[Array, "batch length"],
        segments: Int[Array, "batch length"] | None = None,
        *,
        deterministic: bool,
    ) -> Encoded:
        """The states of every layer; segment 0 everywhere unless given."""
        encoded = self.encode(
            self.embed(ids), mask, segments, deterministic=deterministic
        )
        if self.config.pooler and self.is_initializing():
            self.pooled(encoded)
        return encoded

    def embed(
        self, ids: Int[Array, "batch length"]
    ) -> Float[Array, "batch length {self.config.dim}"]:
        """The pieces' embeddings alone; NaN for an id that there is not."""
        return self.pieces(ids)

    def encode(
        self,
        embeddings: Float[Array, "batch length {self.config.dim}"],
        mask: Bool[Array, "batch length"],
        segments: Int[Array, "batch length"] | None = None,
        *,
        deterministic: bool,
    ) -> Encoded:
        """The states of given embeddings of pieces, before positions and norm."""
        config = self.config
        length = embeddings.shape[1]
        if length > config.longest:
            raise InputError(
                f"a text of {length} pieces; expected at most {config.longest}."
            )
        x = jnp.where(mask[..., None], embeddings, 0).astype(self.dtype)
        first = config.first_position
        if config.position_kind == "learned":
            places = self.places(first + jnp.arange(length))
        else:
            places = sinusoids(first + length, config.dim, self.dtype)[first:]
        x = x + places[None]
        if config.segments:
            of_all = jnp.zeros(mask.shape, jnp.int32) if segments is None else segments
            x = x + self.segments(of_all)
        elif segments is not None:
            raise InputError("segments were given to an encoder that has none.")
        if config.embedding_norm:
            x = self.norm(x)
        x = self.dropout(x, deterministic=deterministic)
        return self.blocks(x, mask, deterministic=deterministic)

    def pooled(self, encoded: Encoded) -> Float[Array, "batch {self.config.dim}"]:
        """`tanh(W h + b)` of the first piece's last state, as BERT classifies."""
        if not self.config.pooler:
            raise InputError("this encoder has no pooler; take encoded.last[:, 0].")
        return jnp.tanh(self.pool(encoded.last[:, 0]))

    def logits_of_pieces(
        self, states: Float[Array, "batch length {self.config.dim}"]
    ) -> Float[Array, "batch length {self.config.vocab}"]:
        """Products with every piece's embedding, in float32: a tied language model."""
        return jnp.einsum(
            "bld,vd->blv",
            states.astype(self.dtype),
            self.pieces.embedding.astype(self.dtype),
            preferred_element_type=jnp.float32,
        )


class Bert(TextEncoder):
    """BERT (Devlin et al. 2019), and by its config RoBERTa, DistilBERT and MiniLM."""


class GPT2(TextEncoder):
    """GPT-2 (Radford et al. 2019): pieces see those before them, norms come first."""
