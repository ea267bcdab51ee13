"""Convolutions over words, as matmuls of shifted copies."""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics
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
            maps = dense(jnp.concatenate(_windows(vectors, width), axis=-1))
            real = jnp.any(jnp.stack(_windows(mask, width)), axis=0)[..., None]
            # relu grows, so it may follow the maximum, over far fewer numbers.
            pooled.append(nn.relu(numerics.masked_max(maps, real, axis=1)))
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


def _windows(x: Array, width: int) -> list[Array]:
    """The members of every window: `width` copies of x, each shifted by one more."""
    ends = [(0, 0), (width - 1, width - 1)] + [(0, 0)] * (x.ndim - 2)
    padded = jnp.pad(x, ends)
    count = x.shape[1] + width - 1
    return [padded[:, i : i + count] for i in range(width)]
