"""A picture of some words: t-SNE (van der Maaten and Hinton 2008), exact."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxemb.errors import InputError

_HALVINGS = 60  # of the interval that a bandwidth is searched in
_EARLY, _MOMENTUM = 250, (0.5, 0.8)  # steps of the first phase; both phases' momentum
_EXAGGERATION = 12.0


def neighbourhoods(
    space: Float[np.ndarray, "words dim"], perplexity: float
) -> Float[np.ndarray, "words words"]:
    """The joint probabilities P of pairs, each word's bandwidth giving the perplexity.

    `p(j|i)` is a normal density of the distance to i over all j but i, of entropy
    `log perplexity`; `P = (p + p^T) / 2n`.
    """
    count = len(space)
    if not 1 <= perplexity <= count - 1:
        raise InputError(
            f"a perplexity of {perplexity:g} among {count} words; expected 1 to "
            f"{count - 1}"
        )
    space = np.asarray(space, np.float64)
    squares = np.square(space).sum(axis=1)
    distances = squares[:, None] + squares[None] - 2 * space @ space.T
    distances = np.maximum(distances, 0)
    np.fill_diagonal(distances, np.inf)
    distances -= distances.min(axis=1, keepdims=True)  # changes no p, and no overflow
    low, high = np.full(count, -50.0), np.full(count, 50.0)  # log of the precision
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        p = _conditional(distances, middle)
        wide = -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=1) > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    p = _conditional(distances, (low + high) / 2)
    return (p + p.T) / (2 * count)


def divergence(
    places: Float[Array, "words two"], joint: Float[Array, "words words"]
) -> Float[Array, ""]:
    """`KL(P || Q)`, Q being `1 / (1 + |y_i - y_j|^2)`, scaled to add up to 1."""
    near = _nearness(places)
    q = near / jnp.sum(near)
    ratio = jnp.log(jnp.maximum(joint, 1e-12)) - jnp.log(jnp.maximum(q, 1e-12))
    return jnp.sum(joint * ratio)


def tsne(
    space: Float[np.ndarray, "words dim"],
    *,
    perplexity: float = 30.0,
    steps: int = 1000,
    seed: int = 0,
) -> Float[np.ndarray, "words 2"]:
    """Places on a plane whose neighbourhoods are like those of a space.

    Momentum descent on `divergence` with early exaggeration and gains of each
    coordinate, as the authors have it. Only who is near whom is kept: neither far
    distances nor directions are, so that parallel offsets need not look parallel.

    Args:
      space: a row a word; all pairs are in memory.
      perplexity: about how many neighbours count.
      steps: of descent.
      seed: of the first places.
    """
    joint = neighbourhoods(space, perplexity)
    first = 1e-4 * np.random.default_rng(seed).normal(size=(len(space), 2))
    rate = max(len(space) / _EXAGGERATION / 4, 50.0)
    places = _descend(jnp.float32(first), jnp.float32(joint), jnp.float32(rate), steps)
    return np.asarray(places, np.float64)


def _conditional(distances: np.ndarray, log_precision: np.ndarray) -> np.ndarray:
    p = np.exp(-distances * np.exp(log_precision)[:, None])
    return p / p.sum(axis=1, keepdims=True)


def _nearness(places):
    squares = jnp.sum(jnp.square(places), axis=1)
    distances = squares[:, None] + squares[None] - 2 * places @ places.T
    near = 1 / (1 + jnp.maximum(distances, 0))
    return near * (1 - jnp.eye(len(places)))


@functools.partial(jax.jit, static_argnames="steps")
def _descend(places, joint, rate, steps: int):
    def move(step, carry):
        places, speed, gains = carry
        early = step < _EARLY
        target = joint * jnp.where(early, _EXAGGERATION, 1.0)
        near = _nearness(places)
        force = (target - near / jnp.sum(near)) * near
        gradient = 4 * (jnp.sum(force, axis=1)[:, None] * places - force @ places)
        along = (gradient > 0) == (speed > 0)
        gains = jnp.maximum(jnp.where(along, 0.8 * gains, gains + 0.2), 0.01)
        momentum = jnp.where(early, *_MOMENTUM)
        speed = momentum * speed - rate * gains * gradient
        places = places + speed
        return places - jnp.mean(places, axis=0, keepdims=True), speed, gains

    start = places, jnp.zeros_like(places), jnp.ones_like(places)
    return jax.lax.fori_loop(0, steps, move, start)[0]
