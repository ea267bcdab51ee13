"""Nearest rows of a large table, in batches of queries and blocks of rows.

Every batch has the same shape, so that a search compiles once, and no more than
`batch × block` scores exist at a time: 400,000 rows of 300 numbers need little more
memory than the table itself.

Scores are float32 sums, whose last digits the order of rows, the shape of a batch and
the device may move. A question whose two best scores are no farther apart than that is
called close; `jaxemb.eval.ties` decides it.
"""

import functools
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxemb.data.vectors import WordVectors
from jaxemb.eval import lookup
from jaxemb.eval.analogy import Method
from jaxemb.spaces import selection

BATCH = 256  # queries at a time
BLOCK = 4096  # rows at a time

# Far more than a sum of a few hundred products is off by in float32, as a share of what
# is summed; a quotient of such sums is off by more.
_ERROR, _QUOTIENT_ERROR = 2e-6, 2e-5


class Table(NamedTuple):
    """A table on the device, with what turns products into cosines."""

    matrix: Float[Array, "vocab dim"]
    inverse_norms: Float[Array, " vocab"]  # 0 for a row of zeros


class Completions(NamedTuple):
    """The row that completes each analogy."""

    rows: Int[np.ndarray, " questions"]  # -1 where every row is excluded
    close: Bool[np.ndarray, " questions"]  # another row may score as high, or higher


def to_device(vectors: WordVectors) -> Table:
    """Puts a table on the device.

    Raises:
      InputError: naming the first word whose row is not finite.
    """
    lookup.check_finite(vectors)
    norms = vectors.norms
    inverse = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
    # Not `jnp.asarray`, which needs twice the memory for a moment.
    return Table(jax.device_put(vectors.matrix), jax.device_put(inverse))


def complete_analogies(
    table: Table,
    questions: Int[np.ndarray, "questions 3"],
    excluded: Int[np.ndarray, "questions rows"],
    *,
    method: Method = "3cosadd",
    normalise: bool = True,
    epsilon: float = 1e-3,
) -> Completions:
    """The row that completes `a : b :: c : ?`, and whether another comes near it.

    Args:
      table: the rows to choose from.
      questions: the rows of a, b and c.
      excluded: rows that may not be the answer; -1 stands for none.
      method: see `jaxemb.eval.analogy.Method`.
      normalise: whether rows have length one before offsets are taken.
      epsilon: of 3CosMul's denominator.
    """
    answers = np.full(len(questions), -1, np.int64)
    close = np.zeros(len(questions), bool)
    how: dict[str, Any] = {"method": method, "normalise": normalise}
    for rows in selection.batches(len(questions), BATCH):
        asked = questions[rows]
        found, scores = _search(
            table, asked, excluded[rows], k=2, epsilon=epsilon, **how
        )
        answers[rows] = found[:, 0]
        best = np.where(found[:, 0] >= 0, scores[:, 0], 0)
        close[rows] = best - scores[:, 1] <= _error(table, asked, best, **how)
    return Completions(answers, close)


def nearest_rows(
    table: Table,
    queries: Int[np.ndarray, " queries"],
    k: int,
) -> tuple[Int[np.ndarray, "queries k"], Float[np.ndarray, "queries k"]]:
    """The `k` rows of highest cosine to each queried row, itself left out.

    Returns:
      Rows, nearest first and the first row first among equals, and their cosines; -1
      and -inf where the table has fewer rows with a direction.
    """
    found = np.full((len(queries), k), -1, np.int64)
    cosines = np.full((len(queries), k), -np.inf, np.float32)
    for rows in selection.batches(len(queries), BATCH):
        asked = queries[rows, np.newaxis]
        found[rows], cosines[rows] = _search(table, asked, asked, k=k, method="cosine")
    return found, cosines


def _search(
    table: Table,
    queries: Int[np.ndarray, "batch terms"],
    excluded: Int[np.ndarray, "batch rows"],
    *,
    k: int,
    **settings: Any,
) -> tuple[Int[np.ndarray, "batch {k}"], Float[np.ndarray, "batch {k}"]]:
    """The best `k` rows for each query, over blocks of the table."""
    vocab = len(table.matrix)
    block = min(BLOCK, vocab)
    shape = len(queries), k
    best = jnp.full(shape, -1, jnp.int32), jnp.full(shape, -jnp.inf)
    asked, barred = (jnp.asarray(x, jnp.int32) for x in (queries, excluded))
    for start in range(0, vocab, block):
        best = _better(table, asked, barred, best, start, block=block, **settings)
    rows, scores = (np.asarray(part) for part in best)
    return np.where(scores == -np.inf, -1, rows), scores


def _error(
    table: Table,
    questions: Int[np.ndarray, "batch 3"],
    best: Float[np.ndarray, " batch"],
    *,
    method: Method,
    normalise: bool,
) -> Float[np.ndarray, " batch"]:
    """How far apart two scores may be that are the same but for rounding."""
    if method == "3cosmul":
        return _QUOTIENT_ERROR * np.abs(best)
    lengths = np.ones(questions.shape)
    if not normalise:
        inverse = np.asarray(table.inverse_norms[questions], np.float64)
        lengths = 1 / np.where(inverse > 0, inverse, np.inf)
    summed = lengths.sum(axis=1)
    if method == "norm":
        summed = summed**2 + np.abs(best)
    return _ERROR * summed


@functools.partial(jax.jit, static_argnames=("block", "method", "normalise"))
def _better(
    table: Table,
    queries: Int[Array, "batch terms"],
    excluded: Int[Array, "batch rows"],
    best: tuple[Int[Array, "batch k"], Float[Array, "batch k"]],
    start: Int[Array, ""] | int,
    *,
    block: int,
    method: Method | Literal["cosine"],
    normalise: bool = True,
    epsilon: Float[Array, ""] | float = 0.0,
) -> tuple[Int[Array, "batch k"], Float[Array, "batch k"]]:
    """The best rows so far and those of one block, whichever are better."""
    vocab = len(table.matrix)
    # The last block ends with the table and may begin inside the one before it.
    first = jnp.minimum(start, vocab - block)
    rows = jax.lax.dynamic_slice_in_dim(table.matrix, first, block)
    inverse = jax.lax.dynamic_slice_in_dim(table.inverse_norms, first, block)
    terms = table.matrix[queries]  # batch terms dim
    if normalise or method == "3cosmul":
        terms = terms * table.inverse_norms[queries][..., jnp.newaxis]
    if method == "norm" and normalise:
        rows = rows * inverse[:, jnp.newaxis]
    scores = _scores(terms, rows, inverse[jnp.newaxis], method, epsilon)
    offsets = jnp.arange(block, dtype=jnp.int32)[jnp.newaxis]
    unfit = (first + offsets < start) | (inverse == 0)[jnp.newaxis]
    scores = jnp.where(unfit, -jnp.inf, scores)
    place = excluded - first
    place = jnp.where((place >= 0) & (place < block), place, block)
    each = jnp.arange(len(queries))[:, jnp.newaxis]
    scores = scores.at[each, place].set(-jnp.inf, mode="drop")
    values, places = selection.top_k(scores, min(best[0].shape[1], block))
    return selection.merge(best, (first + places.astype(jnp.int32), values))


def _scores(
    terms: Float[Array, "batch terms dim"],
    rows: Float[Array, "block dim"],
    inverse: Float[Array, "1 block"],
    method: Method | Literal["cosine"],
    epsilon: Float[Array, ""] | float,
) -> Float[Array, "batch block"]:
    if method == "cosine":
        return _product(terms[:, 0], rows) * inverse
    a, b, c = terms[:, 0], terms[:, 1], terms[:, 2]
    if method == "3cosadd":
        return _product(b - a + c, rows) * inverse
    if method == "norm":  # argmin |t - d|² is argmax t·d - |d|²/2
        half = jnp.sum(rows**2, axis=1)[jnp.newaxis] / 2
        return _product(b - a + c, rows) - half
    # A rounded cosine may be less than -1, and the denominator then no longer positive.
    near_a, near_b, near_c = (
        jnp.maximum((1 + _product(term, rows) * inverse) / 2, 0) for term in (a, b, c)
    )
    return near_b * near_c / (near_a + epsilon)


def _product(
    queries: Float[Array, "batch dim"], rows: Float[Array, "block dim"]
) -> Float[Array, "batch block"]:
    precision = jax.lax.Precision.HIGHEST  # an accelerator must not round to bfloat16
    return jnp.dot(queries, rows.T, precision=precision)
