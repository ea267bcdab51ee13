"""Dictionaries between two mapped spaces, and self-learning that improves them."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

from jaxemb.errors import InputError
from jaxemb.spaces import align, retrieval, selection

Direction = Literal["forward", "backward", "union", "mutual"]
Rows = Float[np.ndarray, "_ dim"]
Pairs = Int[np.ndarray, "pairs 2"]  # a source row and a target row

# A dictionary with fewer different words on a side than this share is a collapse.
_COLLAPSED = 0.1
_BATCH = 1024


class Collapsed(RuntimeError):
    """Self-learning has ended where nearly all words translate to a few."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelfLearning:
    """How a dictionary is improved; the values are VecMap's."""

    cutoff: int = 20_000
    """The most frequent words of each side that may enter the dictionary."""
    neighbours: int = 10
    """Of CSLS; 0 takes plain cosines."""
    direction: Direction = "union"
    keep: float = 0.1
    """Which part of the similarities an induction sees at first (stochastic dictionary
    induction); 1 sees all. Both directions see parts of their own, as in VecMap, but
    for "mutual": a pair that must be found in both would be seen by chance twice, and
    the few that are lose what the seed knew."""
    factor: float = 2.0
    """By which that part grows when the objective has stopped to rise."""
    patience: int = 50
    """Iterations without a rise before it grows, or the end once it is 1."""
    threshold: float = 1e-6
    """The least rise that counts."""
    most: int = 2_000
    """Iterations, at most."""


@dataclasses.dataclass(frozen=True, eq=False)
class Learned:
    """A dictionary that self-learning has found, and how it went."""

    pairs: Pairs
    objective: list[float]
    """The mean best similarity, a value an iteration."""
    keep: list[float]
    """Which part of the similarities each iteration saw."""


def induce(
    source: Rows,
    target: Rows,
    *,
    direction: Direction = "mutual",
    neighbours: int = 10,
) -> Pairs:
    """Pairs of nearest words by CSLS between two mapped spaces of unit rows.

    Args:
      source: mapped.
      target: mapped.
      direction: "forward" gives each source word its nearest target word, "backward"
        each target word its nearest source word, "union" all of both (a pair found
        twice counts twice), "mutual" those found in both directions.
      neighbours: of CSLS; 0 takes plain cosines.
    """
    search = retrieval.nearest
    if neighbours:
        search = functools.partial(
            retrieval.csls, neighbours=neighbours, own_penalty=False
        )
    forward, backward = search(source, target), search(target, source)
    return _pairs(forward.rows[:, 0], backward.rows[:, 0], direction)


def learn(
    source: Rows,
    target: Rows,
    seed: Pairs,
    settings: SelfLearning | None = None,
    *,
    random_seed: int = 0,
    report: Callable[[int, float, float], None] | None = None,
) -> Learned:
    """Improves a dictionary: map by it, take the nearest words as the next one.

    The map is orthogonal (Procrustes). Each similarity is set to 0 with probability
    `1 - keep`; `keep` starts low and grows whenever the objective has not risen for
    `patience` iterations, and stagnation at 1 is the end (Artetxe et al. 2018). So is,
    at 1, a dictionary that gives itself, since all that followed would too.

    Args:
      source: rows of length 1, the most frequent words first.
      target: likewise.
      seed: the dictionary to start from.
      settings: how; VecMap's values if None.
      random_seed: of the similarities that are set to 0.
      report: called with the iteration, its objective and `keep`.

    Raises:
      Collapsed: where the result has lost nearly all words of a side.
    """
    settings = settings or SelfLearning()
    if not len(seed):
        raise InputError("self-learning: an empty seed dictionary; expected pairs")
    sides = [
        jnp.asarray(side[: settings.cutoff], jnp.float32) for side in (source, target)
    ]
    root_key = jax.random.key(random_seed)
    pairs, keep, best, waited = seed, settings.keep, -np.inf, 0
    objectives, keeps = [], []
    for number in range(settings.most):
        rotation = align.procrustes(source[pairs[:, 0]], target[pairs[:, 1]])
        mapped = sides[0] @ jnp.asarray(rotation, jnp.float32)
        forward, backward, objective = _induced(
            mapped,
            sides[1],
            jax.random.fold_in(root_key, number),
            keep,
            neighbours=settings.neighbours,
            stochastic=keep < 1,
            together=settings.direction == "mutual",
        )
        before = pairs
        pairs = _pairs(np.asarray(forward), np.asarray(backward), settings.direction)
        if not len(pairs):
            raise Collapsed(f"self-learning: no pair of words at iteration {number}")
        objectives.append(float(objective))
        keeps.append(keep)
        if report is not None:
            report(number, objectives[-1], keep)
        if objectives[-1] >= best + settings.threshold:
            best, waited = objectives[-1], 0
        else:
            waited += 1
        if keep >= 1 and np.array_equal(pairs, before):
            break
        if waited > settings.patience:
            if keep >= 1:
                break
            keep, waited = min(1.0, settings.factor * keep), 0
    _check_collapse(pairs, min(map(len, sides)), settings.direction)
    return Learned(pairs, objectives, keeps)


def _check_collapse(pairs: Pairs, words: int, direction: Direction) -> None:
    different = min(len(np.unique(pairs[:, side])) for side in (0, 1))
    if different < max(2, _COLLAPSED * words):
        raise Collapsed(
            f"self-learning has collapsed: its {len(pairs)} pairs ({direction}) hold "
            f"only {different} different words of one side, of {words}; a larger seed "
            "dictionary or spaces more alike are needed"
        )


@functools.partial(jax.jit, static_argnames=("neighbours", "stochastic", "together"))
def _induced(
    source: Float[Array, "sources dim"],
    target: Float[Array, "targets dim"],
    key: PRNGKeyArray,
    keep: Float[Array, ""] | float,
    *,
    neighbours: int,
    stochastic: bool,
    together: bool = False,
) -> tuple[Int[Array, " sources"], Int[Array, " targets"], Float[Array, ""]]:
    """The nearest words in both directions, and the mean of the best similarities.

    One product of the target with the source for its penalties, and one of the source
    with the target for all else: the penalty of a source word is known as soon as its
    row of similarities is, and the best source word of a target word is kept as rows go
    by. CSLS is taken as `cos - r / 2` of the other side, which orders alike.
    """
    penalty = _half_means(target, source, neighbours)
    batches, weights = _in_batches(source)
    count = len(target)

    def take_batch(best, batch):
        rows, real, first = batch
        similarities = _products(rows, target)
        own = _half_mean(similarities, neighbours)
        forward = similarities - penalty[jnp.newaxis]
        backward = similarities - own[:, jnp.newaxis]
        if stochastic:
            there, back = jax.random.split(jax.random.fold_in(key, first))
            back = there if together else back
            shape = len(rows), count
            forward = jnp.where(seen(there, shape, keep), forward, 0)
            backward = jnp.where(seen(back, shape, keep), backward, 0)
        backward = jnp.where(real[:, jnp.newaxis], backward, -jnp.inf)
        plain = jnp.where(real[:, jnp.newaxis], similarities, -jnp.inf)
        scores, places = selection.column_top_k(backward, 1)
        better = scores[:, 0] > best[1]
        best = (
            jnp.where(better, first + places[:, 0], best[0]),
            jnp.where(better, scores[:, 0], best[1]),
            jnp.maximum(best[2], jnp.max(plain, axis=0)),
        )
        _, nearest = selection.top_k(forward, 1)
        return best, (nearest[:, 0], jnp.max(similarities, axis=1))

    lowest = jnp.full(count, -jnp.inf)
    start = (jnp.zeros(count, jnp.int32), lowest, lowest)
    firsts = jnp.arange(len(batches), dtype=jnp.int32) * batches.shape[1]
    best, (nearest, highest) = jax.lax.scan(
        take_batch, start, (batches, weights, firsts)
    )
    sources = len(source)
    forward = nearest.reshape(-1)[:sources]
    objective = (jnp.mean(highest.reshape(-1)[:sources]) + jnp.mean(best[2])) / 2
    return forward, best[0], objective


def seen(
    key: PRNGKeyArray, shape: tuple[int, int], keep: Float[Array, ""] | float
) -> Bool[Array, "rows columns"]:
    """Which entries of a matrix are kept, each with probability `keep`.

    A hash of its row and column under the key: the generators of `jax.random` would
    cost several times the product that the entries come from.
    """
    rows, columns = (
        _mixed(offset + jnp.arange(size, dtype=jnp.uint32))
        for offset, size in zip(jax.random.bits(key, (2,)), shape, strict=True)
    )
    bits = _mixed(rows[:, jnp.newaxis] ^ columns[jnp.newaxis])
    return (bits >> 8) < jnp.asarray(keep * 2**24, jnp.uint32)


def _mixed(x: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """A bijection of 32 bits in which each bit depends on all."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> shift)) * jnp.uint32(factor)
    return x ^ (x >> 16)


def _half_means(
    queries: Float[Array, "queries dim"], rows: Float[Array, "rows dim"], k: int
) -> Float[Array, " queries"]:
    """Half of CSLS's r for each query."""
    batches, _ = _in_batches(queries)
    halves = jax.lax.map(lambda batch: _half_mean(_products(batch, rows), k), batches)
    return halves.reshape(-1)[: len(queries)]


def _half_mean(
    similarities: Float[Array, "batch rows"], k: int
) -> Float[Array, " batch"]:
    if not k:
        return jnp.zeros(len(similarities))
    values, _ = selection.top_k(similarities, min(k, similarities.shape[1]))
    return jnp.mean(values, axis=1) / 2


def _in_batches(
    rows: Float[Array, "rows dim"],
) -> tuple[Float[Array, "batches batch dim"], Bool[Array, "batches batch"]]:
    """Rows in batches of one size, and which of them are real."""
    count, dim = rows.shape
    size = min(_BATCH, count)
    batches = -(-count // size)
    padded = jnp.pad(rows, ((0, batches * size - count), (0, 0)))
    real = jnp.arange(batches * size) < count
    return padded.reshape(batches, size, dim), real.reshape(batches, size)


def _products(
    queries: Float[Array, "batch dim"], rows: Float[Array, "rows dim"]
) -> Float[Array, "batch rows"]:
    precision = jax.lax.Precision.HIGHEST  # an accelerator must not round to bfloat16
    return jnp.dot(queries, rows.T, precision=precision)


def _pairs(forward: np.ndarray, backward: np.ndarray, direction: Direction) -> Pairs:
    there = np.stack([np.arange(len(forward)), forward], axis=1)
    back = np.stack([backward, np.arange(len(backward))], axis=1)
    if direction == "forward":
        return there
    if direction == "backward":
        return back
    if direction == "union":
        return np.concatenate([there, back])
    if direction != "mutual":
        raise InputError(
            f"direction {direction!r}: expected forward, backward, union or mutual"
        )
    return there[backward[forward] == np.arange(len(forward))]
