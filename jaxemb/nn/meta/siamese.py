"""Two words through the same layers, and how far apart they come out."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxemb.errors import InputError
from jaxemb.losses import distances

Distance = Literal["manhattan", "euclidean", "cosine", "asymmetric"]
_DISTANCES = {
    "manhattan": distances.d1,
    "euclidean": distances.d_sqrt2,
    "cosine": distances.cosine_dissimilarity,
    "asymmetric": distances.asymmetric_cosine,
}


class Compared(NamedTuple):
    """A pair of words, in float32."""

    distance: Any  # *batch; `losses.exp_neg_distance` makes a similarity of it
    cosine: Any  # *batch: of the last layer


class SiameseHead(nn.Module):
    """`h_{k+1} = tanh(W_k h_k + b_k)` of both words, then a distance of the last ones.

    ("Meta-embedding as auxiliary task", eq. 6, without the exponential.)
    """

    features: Sequence[int] = (50, 10)
    distance: Distance = "manhattan"
    kernel_init: nn.initializers.Initializer = nn.initializers.lecun_normal()
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls

    @nn.compact
    def __call__(
        self, first: Float[Array, "*batch dim"], second: Float[Array, "*batch dim"]
    ) -> Compared:
        """Compares words."""
        if self.distance not in get_args(Distance):
            raise InputError(
                f"SiameseHead.distance is {self.distance!r}; expected one of "
                f"{', '.join(get_args(Distance))}."
            )
        states = jnp.stack([first, second], axis=-2)  # *batch 2 dim
        for i, width in enumerate(self.features):
            dense = nn.Dense(
                width, kernel_init=self.kernel_init, dtype=self.dtype, name=f"layer_{i}"
            )
            states = nn.tanh(dense(states))
        a, b = states[..., 0, :], states[..., 1, :]
        return Compared(_DISTANCES[self.distance](a, b), -distances.d_cos(a, b))
