"""Translations by cosine or CSLS between whole vocabularies, in constant memory.

`CSLS(x, z) = 2 cos(x, z) - r_Z(x) - r_X(z)`, where r is the mean cosine of a word to
its k nearest words on the other side (Conneau et al. 2018): words that are near to
everything are pushed back. Scores exist for `_SCORES` pairs at a time.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxemb.errors import InputError
from jaxemb.spaces import selection

_SCORES = 1 << 26
_WIDEST = 2048
_BATCH = 1024
_BLOCK = 8192

Rows = Float[np.ndarray, "_ dim"]


class Nearest(NamedTuple):
    """The best rows of the other side for each query, best first."""

    rows: Int[np.ndarray, "queries k"]
    scores: Float[np.ndarray, "queries k"]


def nearest(
    queries: Rows,
    rows: Rows,
    k: int = 1,
    *,
    query_penalty: Float[np.ndarray, " queries"] | None = None,
    row_penalty: Float[np.ndarray, " words"] | None = None,
) -> Nearest:
    """The `k` rows of highest `scale · q·z - penalty(q) - penalty(z)` for each query.

    Rows are taken as they are: give unit rows for cosines. With no penalty the scale is
    1 and the score the product; with penalties it is 2, as CSLS has it. Of equal scores
    the first row comes first.

    Args:
      queries: one a row.
      rows: to choose from.
      k: how many; at most the number of rows.
      query_penalty: r of each query, from `mean_of_nearest`.
      row_penalty: r of each row.
    """
    _check_count(k, len(rows))
    hubs = row_penalty is not None
    best_rows = np.empty((len(queries), k), np.int64)
    scores = np.empty((len(queries), k), np.float32)
    table = jnp.asarray(rows, jnp.float32)
    penalty = jnp.asarray(
        np.zeros(len(rows)) if row_penalty is None else row_penalty, jnp.float32
    )
    block = min(_BLOCK, len(rows))
    for chosen in selection.batches(len(queries), min(_BATCH, len(queries))):
        batch = jnp.asarray(queries[chosen], jnp.float32)
        best = _none(len(chosen), k)
        for start in range(0, len(rows), block):
            best = _better(table, penalty, batch, best, start, block=block, hubs=hubs)
        best_rows[chosen], scores[chosen] = (np.asarray(part) for part in best)
    if query_penalty is not None:
        scores -= np.asarray(query_penalty, np.float32)[:, np.newaxis]
    return Nearest(best_rows, scores)


def mean_of_nearest(
    queries: Rows, rows: Rows, k: int = 10
) -> Float[np.ndarray, " queries"]:
    """CSLS's r: the mean product of each query with its `k` nearest rows."""
    return nearest(queries, rows, min(k, len(rows))).scores.mean(axis=1)


def csls(
    source: Rows,
    target: Rows,
    k: int = 1,
    *,
    neighbours: int = 10,
    own_penalty: bool = True,
) -> Nearest:
    """The `k` target rows of highest CSLS for each source row; rows of length 1.

    One product of all words with all: r of some target words is known as soon as their
    products with the source are, and the best target words of every source word are
    kept as target words go by.

    Args:
      source: one word a row.
      target: to choose from.
      k: how many; at most the number of target rows.
      neighbours: that r is the mean over.
      own_penalty: whether scores are less r of the source word too, as CSLS is. The
        order of a word's translations is the same without, and found in less time.
    """
    _check_count(k, len(target))
    table = jnp.asarray(source, jnp.float32)
    found = _none(len(source), k)
    near = min(neighbours, len(target)) if own_penalty else 0
    cosines = jnp.full((len(source), near), -jnp.inf)
    size = min(_batch_beside(len(source)), len(target))
    for start in range(0, len(target), size):
        first = min(start, len(target) - size)  # the last batch overlaps that before
        batch = jnp.asarray(target[first : first + size], jnp.float32)
        found, cosines = _better_by_csls(
            table, batch, found, cosines, first, start, neighbours=neighbours
        )
    best, scores = (np.array(part) for part in found)
    if own_penalty:
        scores -= np.mean(np.asarray(cosines), axis=1, keepdims=True)
    return Nearest(best.astype(np.int64), scores)


def _batch_beside(words: int) -> int:
    """How many words of the other side are taken at once."""
    return min(_WIDEST, max(64, _SCORES // words // 64 * 64))


def ranks(
    queries: Rows,
    rows: Rows,
    gold: Int[np.ndarray, " queries"],
    *,
    row_penalty: Float[np.ndarray, " words"] | None = None,
) -> Int[np.ndarray, " queries"]:
    """The rank, from 1, of one row among all for each query.

    A row with the same score as the gold one stands before it where it comes first in
    the table, so that a rank does not depend on how ties are sorted.

    Args:
      queries: one a row; may repeat.
      rows: to rank.
      gold: the row whose rank is asked for.
      row_penalty: as in `nearest`.
    """
    if len(gold) and not 0 <= gold.min() <= gold.max() < len(rows):
        raise InputError(f"a gold row outside the {len(rows)} rows")
    table = jnp.asarray(rows, jnp.float32)
    hubs = row_penalty is not None
    penalty = jnp.asarray(
        np.zeros(len(rows)) if row_penalty is None else row_penalty, jnp.float32
    )
    out = np.empty(len(queries), np.int64)
    block = min(_BLOCK, len(rows))
    for chosen in selection.batches(len(queries), min(_BATCH, len(queries))):
        batch = jnp.asarray(queries[chosen], jnp.float32)
        wanted = jnp.asarray(gold[chosen], jnp.int32)
        # The gold score comes from the same blocks, to be the same to the last bit.
        scored = jnp.full(len(chosen), -jnp.inf)
        for start in range(0, len(rows), block):
            scored = _gold_score(
                table, penalty, batch, wanted, scored, start, block=block, hubs=hubs
            )
        before = jnp.zeros(len(chosen), jnp.int32)
        for start in range(0, len(rows), block):
            before += _before(
                table, penalty, batch, wanted, scored, start, block=block, hubs=hubs
            )
        out[chosen] = 1 + np.asarray(before)
    return out


def _scores(
    table: Float[Array, "words dim"],
    penalty: Float[Array, " words"],
    queries: Float[Array, "batch dim"],
    start: Int[Array, ""] | int,
    block: int,
    hubs: bool,
) -> tuple[Float[Array, "batch block"], Int[Array, "1 block"]]:
    """Scores of one block and its row numbers; -inf at rows of the block before."""
    first = jnp.minimum(start, len(table) - block)
    rows = jax.lax.dynamic_slice_in_dim(table, first, block)
    pushed = jax.lax.dynamic_slice_in_dim(penalty, first, block)
    precision = jax.lax.Precision.HIGHEST  # an accelerator must not round to bfloat16
    scores = jnp.dot(queries, rows.T, precision=precision)
    if hubs:
        scores = 2 * scores - pushed[jnp.newaxis]
    numbers = (first + jnp.arange(block, dtype=jnp.int32))[jnp.newaxis]
    return jnp.where(numbers < start, -jnp.inf, scores), numbers


def _check_count(k: int, rows: int) -> None:
    if not 1 <= k <= rows:
        raise InputError(f"k = {k}: expected 1 to {rows}, the rows to choose from")


def _none(queries: int, k: int) -> selection.Best:
    return jnp.full((queries, k), -1, jnp.int32), jnp.full((queries, k), -jnp.inf)


@functools.partial(
    jax.jit, static_argnames=("neighbours",), donate_argnames=("best", "cosines")
)
def _better_by_csls(table, batch, best, cosines, first, start, *, neighbours):
    """The best of each row of the table by CSLS without its own r, so far.

    And its largest cosines so far. Rows of the batch below `start` have gone by before.
    """
    precision = jax.lax.Precision.HIGHEST  # an accelerator must not round to bfloat16
    products = jnp.dot(batch, table.T, precision=precision)
    near, _ = selection.top_k(products, min(neighbours, len(table)))
    penalty = jnp.mean(near, axis=1, keepdims=True)
    new = (first + jnp.arange(len(batch)) >= start)[:, jnp.newaxis]
    k, count = best[0].shape[1], cosines.shape[1]
    scores = jnp.where(new, 2 * products - penalty, -jnp.inf)
    values, places = selection.column_top_k(scores, min(k, len(batch)))
    best = selection.merge(best, (first + places, values))
    if count:
        products = jnp.where(new, products, -jnp.inf)
        values, _ = selection.column_top_k(products, min(count, len(batch)))
        cosines, _ = jax.lax.top_k(jnp.concatenate([cosines, values], axis=1), count)
    return best, cosines


@functools.partial(jax.jit, static_argnames=("block", "hubs"))
def _better(table, penalty, queries, best, start, *, block, hubs):
    scores, numbers = _scores(table, penalty, queries, start, block, hubs)
    k = min(best[0].shape[1], block)
    values, places = selection.top_k(scores, k)
    return selection.merge(best, (numbers[0, places], values))


@functools.partial(jax.jit, static_argnames=("block", "hubs"))
def _gold_score(table, penalty, queries, gold, scored, start, *, block, hubs):
    scores, numbers = _scores(table, penalty, queries, start, block, hubs)
    is_gold = (numbers == gold[:, jnp.newaxis]) & (numbers >= start)
    return jnp.maximum(scored, jnp.max(jnp.where(is_gold, scores, -jnp.inf), axis=1))


@functools.partial(jax.jit, static_argnames=("block", "hubs"))
def _before(table, penalty, queries, gold, scored, start, *, block, hubs):
    scores, numbers = _scores(table, penalty, queries, start, block, hubs)
    scored, gold = scored[:, jnp.newaxis], gold[:, jnp.newaxis]
    stands = (scores > scored) | ((scores == scored) & (numbers < gold))
    return jnp.sum(stands & (numbers >= start), axis=1, dtype=jnp.int32)
