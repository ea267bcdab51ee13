"""Classifiers of a vector an example."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxemb import axes


class BatchNormClassifier(nn.Module):
    """`Dense(BatchNorm(x))`: a linear classifier of features brought to one scale.

        z = scale * (x - mean) / sqrt(variance + epsilon) + bias     logits = z W + b

    In training mean and variance are those of the global batch, on any number of
    devices; else those in the collection "batch_stats", which `apply` with
    `mutable="batch_stats"` moves towards the batch's by `1 - momentum`. Of features
    that stay as they are while the classifier is trained the right ones are known
    beforehand: `feature_statistics` of all training examples.
    """

    classes: int
    momentum: float = 0.99
    epsilon: float = 1e-3
    dtype: jax.typing.DTypeLike = jnp.float32  # of the features; the logits are float32

    @nn.compact
    def __call__(
        self, features: Float[Array, "batch dim"], *, deterministic: bool
    ) -> Float[Array, "batch {self.classes}"]:
        """The logits, in float32."""
        normalised = nn.BatchNorm(
            use_running_average=deterministic,
            momentum=self.momentum,
            epsilon=self.epsilon,
            dtype=self.dtype,
            axis_name=axes.DATA if axes.is_bound() else None,
            name="norm",
        )(features)
        return nn.Dense(self.classes, name="output")(normalised.astype(jnp.float32))


def feature_statistics(features: Float[Array, "examples dim"]) -> dict:
    """The collection "batch_stats" of a `BatchNormClassifier`: mean and variance."""
    features = jnp.asarray(features, jnp.float32)
    mean, var = jnp.mean(features, axis=0), jnp.var(features, axis=0)
    return {"norm": {"mean": mean, "var": var}}
