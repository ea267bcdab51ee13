"""Dropout whose masks do not depend on how a batch is spread over devices."""

import math
from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxemb import axes
from jaxemb.errors import InputError

_LEVELS = 1 << 16


class Dropout(nn.Module):
    """Zeroes entries with probability `rate`, and divides the others by `1 - rate`.

    The leading axis holds the examples. The mask of example `i` of the *global* batch
    is drawn from `fold_in(key, i)`, so one device or eight, `jit` or `pmap`, drop the
    same entries, as long as every device is given the same key. Drawing is what dropout
    costs: a random word serves two entries, and `rate` is rounded to 16 bits.
    """

    rate: float  # probability of dropping, in [0, 1]
    broadcast: Sequence[int] = ()  # axes along which one mask is shared, e.g. (1,)
    deterministic: bool | None = None  # here or in the call: True switches it off
    rng_collection: str = "dropout"

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "batch ..."],
        deterministic: bool | None = None,
    ) -> Float[Array, "batch ..."]:
        """Applies the dropout; the output keeps the dtype of the input."""
        deterministic = nn.merge_param(
            "deterministic", self.deterministic, deterministic
        )
        if not 0 <= self.rate <= 1:
            raise InputError(f"Dropout.rate is {self.rate}; expected one in [0, 1].")
        if deterministic or self.rate == 0:
            return inputs
        if self.rate == 1:
            return jnp.zeros_like(inputs)
        kept = max(1, round((1 - self.rate) * _LEVELS))
        key = self.make_rng(self.rng_collection)
        mask = _keep_mask(key, kept, inputs.shape, self.broadcast)
        return jnp.where(mask, inputs / (kept / _LEVELS), jnp.zeros_like(inputs))


class TypeDropout(nn.Module):
    """Zeroes all occurrences of a kind of word, and divides the others by `1 - rate`.

    Embedding dropout of Gal and Ghahramani (2016) and Merity et al. (2018): whether a
    word is dropped depends on the step and its id, so it is for a whole batch, on any
    number of devices.
    """

    rate: float  # probability of dropping, in [0, 1)

    @nn.compact
    def __call__(
        self,
        vectors: Float[Array, "batch length dim"],
        ids: Int[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch length dim"]:
        """Applies the dropout; the output keeps the dtype of the input."""
        if not 0 <= self.rate < 1:
            raise InputError(f"TypeDropout.rate is {self.rate}; expected one in [0, 1)")
        if deterministic or self.rate == 0:
            return vectors
        key, keep = self.make_rng("dropout"), 1 - self.rate
        kept = lambda i: jax.random.bernoulli(jax.random.fold_in(key, i), keep)  # noqa: E731
        mask = jax.vmap(jax.vmap(kept))(ids)[..., None]
        return jnp.where(mask, vectors / keep, jnp.zeros_like(vectors))


def drop_weights(
    key: PRNGKeyArray, kernel: Float[Array, "..."], rate: float
) -> Float[Array, "..."]:
    """A kernel with entries zeroed and the others scaled up (Wan et al. 2013).

    Of a recurrent kernel: DropConnect of Merity et al. (2018), one mask for all words
    and all examples of a step.
    """
    if not 0 <= rate < 1:
        raise InputError(f"drop_weights: rate is {rate}; expected one in [0, 1)")
    mask = jax.random.bernoulli(key, 1 - rate, kernel.shape)
    return jnp.where(mask, kernel / (1 - rate), 0)


def _keep_mask(
    key: Array, kept: int, shape: Sequence[int], broadcast: Sequence[int]
) -> Array:
    """True for `kept` of `_LEVELS`, an example's entries a function of its index."""
    shared = {axis + len(shape) if axis < 0 else axis for axis in broadcast}
    if not shared <= set(range(1, len(shape))):
        raise InputError(
            f"Dropout.broadcast is {tuple(broadcast)}; expected axes of an input of "
            f"shape {tuple(shape)} other than the first, which holds the examples."
        )
    per_example = [
        1 if axis in shared else shape[axis] for axis in range(1, len(shape))
    ]
    size = math.prod(per_example)
    index = axes.example_offset(shape[0]) + jnp.arange(shape[0])
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, index)
    words = jax.vmap(lambda key: jax.random.bits(key, [-(-size // 2)]))(keys)
    # Neighbours share a word, so that more entries, as of padding, change none before.
    pairs = jnp.stack([words % _LEVELS < kept, words // _LEVELS < kept], axis=-1)
    masks = pairs.reshape(shape[0], -1)[:, :size].reshape(shape[0], *per_example)
    return jnp.broadcast_to(masks, shape)
