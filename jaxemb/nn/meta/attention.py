"""Sources weighed word by word."""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics
from jaxemb.nn.meta import coded


class DynamicMetaEmbedding(nn.Module):
    """Attention over projected sources (Kiela et al. 2018).

        x_i' = P_i x_i + b_i      m = sum_i softmax_i(a . x_i' + c) x_i'

    over the sources that have the word; m is 0 where none has. The weights are sown as
    `weights`.
    """

    widths: Sequence[int]
    features: int = 200  # of the space that every source is projected into
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output

    @nn.compact
    def __call__(
        self, sources: Float[Array, "*batch dims"], known: Bool[Array, "*batch source"]
    ) -> Float[Array, "*batch {self.features}"]:
        """The meta-embedding of every word."""
        clean, _ = coded.masked(sources, known, self.widths)
        projected = [
            nn.Dense(self.features, dtype=self.dtype, name=f"project_{i}")(x)
            for i, x in enumerate(coded.split(clean, self.widths))
        ]
        stacked = jnp.stack(projected, axis=-2)  # *batch source features
        scores = nn.Dense(1, dtype=self.dtype, name="score")(stacked)[..., 0]
        weights = numerics.masked_softmax(scores, known)
        self.sow("intermediates", "weights", weights)
        return jnp.sum(weights[..., None].astype(self.dtype) * stacked, axis=-2)
