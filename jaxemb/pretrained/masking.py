"""Hiding pieces of a text, for a masked language model to find."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray


class Hidden(NamedTuple):
    """A batch in which some pieces are hidden."""

    ids: Int[Array, "batch length"]
    chosen: Bool[Array, "batch length"]
    """Where the loss is taken; the right pieces are the ids that were given."""


def mlm_mask(
    key: PRNGKeyArray,
    ids: Int[Array, "batch length"],
    mask: Bool[Array, "batch length"],
    *,
    vocab: int,
    mask_id: int,
    special_ids: Sequence[int] = (),
    rate: float = 0.15,
) -> Hidden:
    """Chooses places as BERT does, each with probability `rate`.

    Of the chosen ones 80 % show `mask_id`, 10 % any piece of the vocabulary, and 10 %
    what they are. Padding and `special_ids` are never chosen.
    """
    choose_key, what_key, piece_key = jax.random.split(key, 3)
    special = jnp.asarray(list(special_ids) or [-1], ids.dtype)
    free = mask & ~jnp.isin(ids, special)
    chosen = free & jax.random.bernoulli(choose_key, rate, ids.shape)
    what = jax.random.uniform(what_key, ids.shape)
    pieces = jax.random.randint(piece_key, ids.shape, 0, vocab, ids.dtype)
    shown = jnp.where(what < 0.8, jnp.asarray(mask_id, ids.dtype), pieces)
    shown = jnp.where(what < 0.9, shown, ids)
    return Hidden(jnp.where(chosen, shown, ids), chosen)


def chosen_places(
    chosen: Bool[Array, "batch length"], most: int
) -> tuple[Int[Array, "batch {most}"], Bool[Array, "batch {most}"]]:
    """The first `most` chosen places of each text, and which of them are any.

    For `nn.MaskedLM`, so that the logits of other places are not computed.
    """
    order = jnp.argsort(~chosen, axis=1, stable=True)[:, :most]
    return order, jnp.take_along_axis(chosen, order, axis=1)
