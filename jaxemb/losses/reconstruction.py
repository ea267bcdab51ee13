"""How far an autoencoder's output is from its input, where some inputs are missing."""

from typing import Literal, get_args

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb.errors import InputError
from jaxemb.losses import distances

Reconstruction = Literal["l1", "l2", "cosine", "kl"]
"""`sum |x - y|`, `sum (x - y)^2`, `(1 - cos(x, y))^2`, or the divergence of softmaxes.
"""

_PLAIN = {
    "l1": distances.d1,
    "l2": distances.d2,
    "cosine": distances.squared_cosine,
}


def reconstruction(
    target: Float[Array, "*batch dim"],
    output: Float[Array, "*batch dim"],
    loss: Reconstruction,
    mask: Bool[Array, "*batch dim"] | None = None,
) -> Float[Array, "*batch"]:
    """One value a vector ("Meta-embedding as auxiliary task", eqs. 3 to 5).

    Args:
      target: what should come out.
      output: what did.
      loss: see `Reconstruction`.
      mask: the coordinates that count; the loss of a vector without any is 0.
    """
    if loss not in get_args(Reconstruction):
        raise InputError(
            f"reconstruction loss {loss!r}; expected one of "
            f"{', '.join(get_args(Reconstruction))}"
        )
    if loss == "kl":
        return distances.kl_softmax(target, output, mask)
    if mask is None:
        return _PLAIN[loss](target, output)
    kept = (jnp.where(mask, x, 0) for x in (target, output))
    return jnp.where(jnp.any(mask, axis=-1), _PLAIN[loss](*kept), 0)
