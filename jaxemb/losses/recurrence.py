"""Penalties of recurrent states."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics


def activation_penalty(
    states: Float[Array, "batch length dim"], mask: Bool[Array, "batch length"]
) -> tuple[Float[Array, " batch"], Float[Array, " batch"]]:
    """AR and TAR of Merity et al. (2018), one value of each an example.

    `mean_t |h_t|^2` and `mean_t |h_{t+1} - h_t|^2`, over real words and over pairs of
    them; 0 where there are none.
    """
    states = jnp.where(mask[..., None], states.astype(jnp.float32), 0)
    sizes = jnp.sum(jnp.square(states), axis=-1)
    steps = jnp.sum(jnp.square(states[:, 1:] - states[:, :-1]), axis=-1)
    return (
        numerics.masked_mean(sizes, mask, axis=1),
        numerics.masked_mean(steps, mask[:, 1:] & mask[:, :-1], axis=1),
    )
