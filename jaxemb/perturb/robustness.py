"""What small changes of embeddings do to a trained model."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from jaxemb import losses, numerics
from jaxemb.perturb.ascent import Ascent, Embeddings, Mask, ascend
from jaxemb.perturb.objective import Logits, LogitsOf


class Attacked(NamedTuple):
    """One entry an example."""

    loss: Any  # cross-entropy of changed embeddings
    right: Any  # bool: whether the label still has the highest logit
    divergence: Any  # KL(f(x) | f(x + d))
    logits: Any  # of changed embeddings
    ratio: Any  # the Euclidean length of the change over that of the text's embeddings


def attack(
    logits_of: LogitsOf,
    labels: Int[Array, " batch"],
    embeddings: Embeddings,
    mask: Mask,
    key: Key[Array, ""],
    epsilon: Any,
    ascent: Ascent = Ascent(),  # noqa: B008
) -> Attacked:
    """The model at the end of an ascent of its loss in the ball of a radius.

    Args:
      logits_of: the model from its embeddings on, without dropout.
      labels: the right classes.
      embeddings: clean ones; the first axis holds the examples.
      mask: False at padding.
      key: of the ascent's start.
      epsilon: the radius, which may be traced; 0 is the clean model. Steps and start
        of `ascent` are taken in proportion to its own radius.
      ascent: how.
    """
    share = epsilon / ascent.epsilon
    scaled = dataclasses.replace(
        ascent, epsilon=epsilon, eta=ascent.eta * share, sigma=ascent.sigma * share
    )

    def loss(changed):
        logits = logits_of(changed, key)
        return losses.softmax_cross_entropy(logits, labels)

    change = ascend(loss, embeddings, mask, key, scaled)
    clean, changed = (logits_of(x, key) for x in (embeddings, embeddings + change))
    flat = (len(embeddings), -1)
    real = jnp.where(mask[..., None], embeddings, 0)
    before, moved = (numerics.safe_norm(x.reshape(flat)) for x in (real, change))
    return Attacked(
        loss=losses.softmax_cross_entropy(changed, labels),
        right=jnp.argmax(changed, axis=-1) == labels,
        divergence=losses.distances.kl_softmax(clean, changed),
        logits=changed,
        ratio=moved / jnp.where(before == 0, 1, before),
    )


def along(
    logits_of: LogitsOf,
    embeddings: Embeddings,
    direction: Embeddings,
    distances: Float[Array, " points"],
    key: Key[Array, ""],
) -> Logits:
    """The logits on a line through embeddings, at points `distances` along it."""
    return jax.lax.map(lambda t: logits_of(embeddings + t * direction, key), distances)
