"""Attention between two masked sequences."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics


def attend(
    scores: Float[Array, "batch queries keys"],
    mask: Bool[Array, "batch keys"],
    values: Float[Array, "batch keys dim"],
) -> tuple[Float[Array, "batch queries dim"], Float[Array, "batch queries keys"]]:
    """`sum_k softmax_k(scores)[q, k] values[k]` over the real keys, and the softmax.

    The softmax is in float32; the sum has the dtype of `values`. Where no key is real
    both are 0.
    """
    weights = numerics.masked_softmax(scores, mask[:, None, :])
    mixed = jnp.einsum("bqk,bkd->bqd", weights.astype(values.dtype), values)
    return mixed, weights


class Trilinear(nn.Module):
    """The similarity `w . [x_i; y_j; x_i * y_j]` of every pair (Seo et al. 2017).

    Computed as `x_i . w_x + y_j . w_y + (x_i * w_xy) . y_j`, so that the concatenation,
    which is three times as wide as a word for every pair of words, is never made.
    """

    @nn.compact
    def __call__(
        self, x: Float[Array, "batch queries dim"], y: Float[Array, "batch keys dim"]
    ) -> Float[Array, "batch queries keys"]:
        """The similarities, in float32."""
        dim = x.shape[-1]
        kernel = self.param("kernel", _one_output, (3, dim), jnp.float32)
        w_x, w_y, w_xy = kernel.astype(x.dtype)
        alone = (x @ w_x)[:, :, None] + (y @ w_y)[:, None, :]
        both = jnp.einsum(
            "bid,bjd->bij", x * w_xy[None, None], y, preferred_element_type=jnp.float32
        )
        return alone.astype(jnp.float32) + both


def _one_output(key, shape, dtype=jnp.float32):
    """As a Dense of one output starts, over all three parts."""
    inputs = shape[0] * shape[1]
    return nn.initializers.lecun_normal()(key, (inputs, 1), dtype).reshape(shape)
