"""Convolutions over words, as matmuls of shifted copies."""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics
from jaxemb.errors import InputError
from jaxemb.nn.dropout import Dropout


class KimCNN(nn.Module):
    """The sentence classifier of Kim (2014).

    For each width w, with x zero outside the sentence ("wide" convolution):

        feature = max over p of relu(W [x_p; ...; x_{p+w-1}] + b)

    over the windows that hold at least one real word, so padding changes nothing; then
    `Dense(dropout(features))`. A sentence without words has the features 0.
    """

    classes: int
    widths: Sequence[int] = (3, 4, 5)
    maps: int = 100  # feature maps of each width
    dropout_rate: float = 0.5
    dtype: jax.typing.DTypeLike = jnp.float32  # of the features; the logits are float32

    def setup(self):
        """Makes one Dense for each width, and the classifier."""
        # `nn.Conv` is 6 times slower on CPU, forwards and backwards.
        self.filters = [
            nn.Dense(self.maps, dtype=self.dtype, name=f"width_{width}")
            for width in self.widths
        ]
        self.dropout = Dropout(self.dropout_rate, name="dropout")
        self.output = nn.Dense(self.classes, name="output")

    def features(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
    ) -> Float[Array, "batch features"]:
        """The pooled feature maps, `maps` of each width in turn, in `dtype`."""
        vectors = jnp.where(mask[..., None], vectors, 0).astype(self.dtype)
        pooled = []
        for width, dense in zip(self.widths, self.filters, strict=True):
            # relu grows, so it may follow the maximum, over far fewer numbers.
            pooled.append(nn.relu(max_over_windows(dense, vectors, mask, width)))
        return jnp.concatenate(pooled, axis=-1)

    def __call__(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch {self.classes}"]:
        """The logits, in float32."""
        features = self.features(vectors, mask)
        self.sow("intermediates", "features", features)
        features = self.dropout(features, deterministic=deterministic)
        return self.output(features.astype(jnp.float32))


class ConvEncoder(nn.Module):
    """Words in their context, by convolutions that keep the length.

        y_t = relu(W [x_{t-k}; ...; x_{t+k}] + b),   width = 2 k + 1

    once a layer, x being zero outside the sentence. Outputs at padding are 0.
    """

    features: int
    width: int = 3  # odd
    layers: int = 1
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output

    @nn.compact
    def __call__(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
    ) -> Float[Array, "batch length {self.features}"]:
        """The features of every word, in `dtype`."""
        if self.width % 2 == 0:
            raise InputError(f"ConvEncoder.width is {self.width}; expected an odd one.")
        side = self.width // 2
        for i in range(self.layers):
            vectors = jnp.where(mask[..., None], vectors, 0).astype(self.dtype)
            windows = _windows(vectors, self.width)
            centred = jnp.concatenate(windows, axis=-1)[:, side : side + mask.shape[1]]
            dense = nn.Dense(self.features, dtype=self.dtype, name=f"layer_{i}")
            vectors = nn.relu(dense(centred))
        return jnp.where(mask[..., None], vectors, 0)


def max_over_windows(
    dense: nn.Dense,
    vectors: Float[Array, "batch length dim"],
    mask: Bool[Array, "batch length"],
    width: int,
) -> Float[Array, "batch features"]:
    """The largest of each feature over the windows that hold at least one real word.

    Windows reach over both ends, where there are zeros; `vectors` has some at padding.
    0 for a sentence without words.
    """
    maps, real = maps_over_windows(dense, vectors, mask, width)
    return numerics.masked_max(maps, real[..., None], axis=1)


def maps_over_windows(
    dense: nn.Dense,
    vectors: Float[Array, "batch length dim"],
    mask: Bool[Array, "batch length"],
    width: int,
) -> tuple[Float[Array, "batch windows features"], Bool[Array, "batch windows"]]:
    """The features of every window of `max_over_windows`, and which hold a word."""
    maps = dense(jnp.concatenate(_windows(vectors, width), axis=-1))
    return maps, jnp.any(jnp.stack(_windows(mask, width)), axis=0)


def _windows(x: Array, width: int) -> list[Array]:
    """The members of every window: `width` copies of x, each shifted by one more."""
    ends = [(0, 0), (width - 1, width - 1)] + [(0, 0)] * (x.ndim - 2)
    padded = jnp.pad(x, ends)
    count = x.shape[1] + width - 1
    return [padded[:, i : i + count] for i in range(width)]
