"""Highway layers."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class Highway(nn.Module):
    """Layers that each choose between a transformation and their input.

        y = t * relu(W x + b) + (1 - t) * x,   t = sigmoid(V x + d)

    (Srivastava et al. 2015). With a negative `gate_bias` they start close to identity.
    """

    layers: int = 2
    gate_bias: float = -1.0
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output

    @nn.compact
    def __call__(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """The output of the last layer, in `dtype`."""
        dim = x.shape[-1]
        x = x.astype(self.dtype)
        for i in range(self.layers):
            gate = nn.Dense(
                dim,
                dtype=self.dtype,
                bias_init=nn.initializers.constant(self.gate_bias),
                name=f"gate_{i}",
            )
            transform = nn.Dense(dim, dtype=self.dtype, name=f"transform_{i}")
            t = nn.sigmoid(gate(x))
            x = t * nn.relu(transform(x)) + (1 - t) * x
        return x


class HighwayEncoder(nn.Module):
    """Each word by itself: a dense layer, then highway layers; 0 at padding."""

    features: int
    layers: int = 2
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output

    @nn.compact
    def __call__(
        self,
        vectors: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
    ) -> Float[Array, "batch length {self.features}"]:
        """The features of every word, in `dtype`."""
        vectors = jnp.where(mask[..., None], vectors, 0)
        dense = nn.Dense(self.features, dtype=self.dtype, name="input")
        states = Highway(self.layers, dtype=self.dtype, name="highway")(
            nn.relu(dense(vectors))
        )
        return jnp.where(mask[..., None], states, 0)
