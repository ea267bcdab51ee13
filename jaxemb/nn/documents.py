"""Classifiers of documents: a regularised LSTM, XML-CNN, HAN, a linear one of words."""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxemb import numerics
from jaxemb.nn.conv import maps_over_windows
from jaxemb.nn.dropout import Dropout, TypeDropout
from jaxemb.nn.recurrent import BiGRU, BiLSTM


class RegLSTM(nn.Module):
    """LSTM_reg of Adhikari et al. (2019), DocBERT's main student.

        h = BiLSTM(type dropout(x))      logits = W dropout(max_t relu(h_t)) + b

    The forward recurrent kernel is dropped from, as in the authors' program, or both.
    They average parameters (`optim.parameter_ema`), and may penalise the states, which
    are sown as "states" (`losses.activation_penalty`).
    """

    classes: int
    hidden: int = 512  # of each direction
    type_dropout_rate: float = 0.2  # of kinds of words, where `ids` are given
    weight_drop: tuple[float, float] = (0.1, 0.0)  # forward and backward
    dropout_rate: float = 0.5
    dtype: jax.typing.DTypeLike = jnp.float32  # of the LSTM; the logits are float32
    unroll: int = 1

    @nn.compact
    def __call__(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        ids: Int[Array, "batch length"] | None = None,
        *,
        deterministic: bool,
    ) -> Float[Array, "batch {self.classes}"]:
        """The logits, in float32; `ids` tell which words are of one kind."""
        vectors = jnp.where(mask[..., None], vectors, 0)
        if ids is not None:
            vectors = TypeDropout(self.type_dropout_rate, name="type_dropout")(
                vectors, ids, deterministic=deterministic
            )
        states, _ = BiLSTM(
            self.hidden,
            weight_drop=self.weight_drop,
            dtype=self.dtype,
            unroll=self.unroll,
            name="encoder",
        )(vectors, mask, deterministic=deterministic)
        self.sow("intermediates", "states", states)
        # relu grows, so it may follow the maximum, over far fewer numbers.
        pooled = nn.relu(numerics.masked_max(states, mask[..., None], axis=1))
        self.sow("intermediates", "features", pooled)
        pooled = Dropout(self.dropout_rate, name="dropout")(
            pooled, deterministic=deterministic
        )
        return nn.Dense(self.classes, name="output")(pooled.astype(jnp.float32))


class XMLCNN(nn.Module):
    """XML-CNN (Liu et al. 2017): the largest features of each part of a document.

    Feature maps as in `KimCNN`; their windows are cut into `parts` like stretches, of
    which neighbours may share one window (as torch's adaptive pooling cuts them), and

        logits = W dropout(relu(V [max over each part of each map] + a)) + b
    """

    classes: int
    widths: Sequence[int] = (2, 4, 8)
    maps: int = 100  # feature maps of each width
    parts: int = 8
    features: int = 512  # of the layer between
    dropout_rate: float = 0.5
    dtype: jax.typing.DTypeLike = jnp.float32  # of the maps; the logits are float32

    @nn.compact
    def __call__(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch {self.classes}"]:
        """The logits, in float32."""
        vectors = jnp.where(mask[..., None], vectors, 0).astype(self.dtype)
        pooled = []
        for width in self.widths:
            dense = nn.Dense(self.maps, dtype=self.dtype, name=f"width_{width}")
            maps, real = maps_over_windows(dense, vectors, mask, width)
            parts = max_over_parts(maps, jnp.sum(real, axis=1), self.parts)
            pooled.append(nn.relu(parts).reshape(parts.shape[0], -1))
        features = jnp.concatenate(pooled, axis=-1)
        hidden = nn.Dense(self.features, dtype=self.dtype, name="hidden")(features)
        hidden = nn.relu(hidden)
        self.sow("intermediates", "features", hidden)
        hidden = Dropout(self.dropout_rate, name="dropout")(
            hidden, deterministic=deterministic
        )
        return nn.Dense(self.classes, name="output")(hidden.astype(jnp.float32))


def max_over_parts(
    maps: Float[Array, "batch length maps"],
    lengths: Int[Array, " batch"],
    parts: int,
) -> Float[Array, "batch {parts} maps"]:
    """The largest of each map over each of `parts` stretches of the first `lengths`.

    Stretch p is `[floor(p n / parts), ceil((p + 1) n / parts))` of n; all are 0 where
    n is 0.
    """
    place = jnp.arange(maps.shape[1])[None]
    found = []
    for part in range(parts):
        first = part * lengths // parts
        last = -(-(part + 1) * lengths // parts)
        inside = (place >= first[:, None]) & (place < last[:, None])
        found.append(numerics.masked_max(maps, inside[..., None], axis=1))
    return jnp.stack(found, axis=1)


class AttentionPool(nn.Module):
    """`sum_t a_t h_t` with `a = softmax_t(c . tanh(W h_t + b))` (Yang et al. 2016)."""

    features: int  # width of W h
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output

    @nn.compact
    def __call__(
        self,
        states: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
    ) -> Float[Array, "batch dim"]:
        """The mean over the real words; 0 where there are none."""
        states = jnp.where(mask[..., None], states, 0).astype(self.dtype)
        hidden = nn.Dense(self.features, dtype=self.dtype, name="hidden")(states)
        context = self.param("context", _context, (self.features,), jnp.float32)
        scores = jnp.einsum("blf,f->bl", jnp.tanh(hidden).astype(jnp.float32), context)
        weights = numerics.masked_softmax(scores, mask)
        self.sow("intermediates", "weights", weights)
        return jnp.einsum("bl,bld->bd", weights.astype(self.dtype), states)


def _context(key, shape, dtype=jnp.float32):
    return jax.random.uniform(key, shape, dtype, -0.25, 0.25)


class HAN(nn.Module):
    """Hierarchical attention (Yang et al. 2016): words to sentences to a document.

    A BiGRU and an `AttentionPool` over the words of every sentence, the same again
    over its sentences, and a dense layer.
    """

    classes: int
    hidden: int = 50  # of each direction, of both GRUs
    dtype: jax.typing.DTypeLike = jnp.float32  # of the GRUs; the logits are float32
    unroll: int = 1

    @nn.compact
    def __call__(
        self,
        vectors: Float[Array, "batch sentences length dim"],
        mask: Bool[Array, "batch sentences length"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch {self.classes}"]:
        """The logits, in float32; a sentence without words is no sentence."""
        del deterministic  # there is nothing to drop
        batch, sentences = mask.shape[:2]
        words = mask.reshape(batch * sentences, -1)
        flat = vectors.reshape(*words.shape, vectors.shape[-1])
        encoded = self._level("word", flat, words).reshape(batch, sentences, -1)
        pooled = self._level("sentence", encoded, jnp.any(mask, axis=-1))
        self.sow("intermediates", "features", pooled)
        return nn.Dense(self.classes, name="output")(pooled.astype(jnp.float32))

    def _level(self, name: str, vectors: Array, mask: Array) -> Array:
        encoder = BiGRU(
            self.hidden, dtype=self.dtype, unroll=self.unroll, name=f"{name}_encoder"
        )
        pool = AttentionPool(2 * self.hidden, self.dtype, name=f"{name}_attention")
        return pool(encoder(vectors, mask)[0], mask)


class TfidfLinear(nn.Module):
    """A linear classifier of weighted words: `sum_i weight_i W[id_i] + b`.

    Trained by cross-entropy it is a logistic regression, by a hinge a support vector
    machine. Ids are as `data.tfidf.Tfidf.transform` gives them: from 1, 0 for none.
    """

    classes: int
    words: int

    @nn.compact
    def __call__(
        self, ids: Int[Array, "batch length"], weights: Float[Array, "batch length"]
    ) -> Float[Array, "batch {self.classes}"]:
        """The logits, in float32; NaN for an id that there is not."""
        kernel = self.param(
            "kernel", nn.initializers.zeros, (self.words, self.classes), jnp.float32
        )
        bias = self.param("bias", nn.initializers.zeros, (self.classes,), jnp.float32)
        real = ids != 0
        rows = jnp.where(ids < 0, self.words, jnp.where(real, ids - 1, 0))
        found = jnp.take(kernel, rows, axis=0, mode="fill")
        weighted = jnp.where(real, weights.astype(jnp.float32), 0)[..., None] * found
        return jnp.sum(weighted, axis=1) + bias[None]
