"""What every meta-embedding gives: a code, its output, and what that should be."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Shaped

from jaxemb import losses
from jaxemb.errors import InputError


class Coded(NamedTuple):
    """Words as a meta-embedding sees them."""

    code: Any  # *batch features: the meta-embedding
    output: Any  # *batch dims: what is decoded from it
    target: Any  # *batch dims: what should be
    counted: Any  # *batch dims, bool: the coordinates that some source knows
    agreement: Any  # *batch: how far the codes of sources lie apart, where that counts


def coordinates(
    known: Bool[Array, "*batch source"], widths: Sequence[int]
) -> Bool[Array, "*batch dims"]:
    """Whether the source that each coordinate belongs to has the word."""
    return jnp.repeat(
        known, np.asarray(widths), axis=-1, total_repeat_length=sum(widths)
    )


def split(
    sources: Shaped[Array, "*batch dims"], widths: Sequence[int]
) -> list[Shaped[Array, "*batch _"]]:
    """The sources that stand side by side."""
    if sources.shape[-1] != sum(widths):
        raise InputError(
            f"sources of widths {tuple(widths)} are {sum(widths)} wide side by side; "
            f"found {sources.shape[-1]}"
        )
    return jnp.split(sources, np.cumsum(widths)[:-1].tolist(), axis=-1)


def masked(
    sources: Float[Array, "*batch dims"],
    known: Bool[Array, "*batch source"],
    widths: Sequence[int],
) -> tuple[Float[Array, "*batch dims"], Bool[Array, "*batch dims"]]:
    """The sources with 0 for what is missing, and which coordinates are known."""
    counted = coordinates(known, widths)
    return jnp.where(counted, sources, 0), counted


def no_agreement(known: Bool[Array, "*batch source"]) -> Float[Array, "*batch"]:
    """The `agreement` of what has one code a word."""
    return jnp.zeros(known.shape[:-1], jnp.float32)


def dense(module: Any, width: int, name: str) -> nn.Dense:
    """A layer with the module's `kernel_init` and `dtype`."""
    return nn.Dense(
        width, kernel_init=module.kernel_init, dtype=module.dtype, name=name
    )


def reconstruction_loss(
    coded: Coded,
    loss: losses.Reconstruction,
    parts: Sequence[int],
    weights: Sequence[float] | None = None,
) -> Float[Array, "*batch"]:
    """The loss of each part of the output, summed, plus `agreement`; one value a word.

        sum_i λ_i L_r(part i of the output) + agreement

    Args:
      coded: what a meta-embedding gave.
      loss: of a part.
      parts: the module's property of that name: the widths of what angles or softmaxes
        are taken over.
      weights: λ_i, one a part; all 1 unless given. Where every source is an output of
        its own they are weights of sources (Bao & Bollegala 2018).
    """
    weights = [1.0] * len(parts) if weights is None else weights
    if len(weights) != len(parts):
        raise InputError(
            f"reconstruction_loss has {len(weights)} weights; expected one for each of "
            f"{len(parts)} parts"
        )
    columns = (split(x, parts) for x in (coded.target, coded.output, coded.counted))
    each = [
        losses.reconstruction(target, output, loss, mask)
        for target, output, mask in zip(*columns, strict=True)
    ]
    weighted = [weight * one for weight, one in zip(weights, each, strict=True)]
    return jnp.sum(jnp.stack(weighted), axis=0) + coded.agreement
