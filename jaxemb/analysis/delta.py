"""What tuning did to a table: which words moved, how far, and past which neighbours.

Zhang, Wu and Dou (2019), "Delta Embedding Learning", Tables 4 and 5. The functions take
plain tables, so they serve any two versions of one.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from jaxemb.errors import InputError

Table = Float[np.ndarray, "vocab dim"] | Float[Array, "vocab dim"]

_BLOCK = 8192  # rows taken at once


class RankedWord(NamedTuple):
    """A word and the length of its row."""

    word: str
    norm: float


class Neighbour(NamedTuple):
    """A word near the query; `side` is +1 or -1 by a polarity lexicon, else 0."""

    word: str
    cosine: float
    side: int


@dataclasses.dataclass(frozen=True)
class NeighbourShift:
    """The nearest words of one word in two versions of a table, nearest first."""

    word: str
    before: tuple[Neighbour, ...]
    after: tuple[Neighbour, ...]


class NormHistogram(NamedTuple):
    """Counts of rows by norm; rows that are exactly zero are counted apart."""

    counts: Int[np.ndarray, " bins"]
    edges: Float[np.ndarray, " edges"]
    zeros: int


def row_norms(table: Table) -> Float[np.ndarray, " vocab"]:
    """Euclidean norm of every row, in float64."""
    norms = [np.linalg.norm(rows, axis=1) for _, rows in _blocks(table)]
    return np.concatenate(norms) if norms else np.zeros(0)


def norm_ranking(delta: Table, words: Sequence[str], k: int = 20) -> list[RankedWord]:
    """The `k` words with the longest rows of `delta`, longest first (Table 4).

    Ties keep the order of the vocabulary; words that did not move are left out.
    """
    _check_length("delta", delta, words)
    _check_count(k)
    norms = row_norms(delta)
    order = np.argsort(-norms, kind="stable")[:k]
    return [RankedWord(words[int(i)], float(norms[i])) for i in order if norms[i] > 0]


def listed_above_others(
    norms: Float[np.ndarray, " words"], words: Sequence[str], listed: Collection[str]
) -> float:
    """How surely a listed word moved farther than another one: the area under ROC.

        P(norm of a listed word > norm of another) + P(both the same) / 2

    over all pairs of a listed word and one that is not; 0.5 if lists say nothing, nan
    where no word is listed or every one is.
    """
    _check_length("norms", norms, words)
    chosen = np.array([word in listed for word in words], bool)
    ours, others = norms[chosen], np.sort(norms[~chosen])
    if not ours.size or not others.size:
        return float("nan")
    below = np.searchsorted(others, ours, side="left")
    same = np.searchsorted(others, ours, side="right") - below
    return float(np.mean((below + same / 2) / others.size))


def listed_among_alike(
    norms: Float[np.ndarray, " words"],
    counts: Int[np.ndarray, " words"],
    words: Sequence[str],
    listed: Collection[str],
    k: int = 20,
) -> dict[str, float]:
    """Of each listed word, the share of words of like frequency that moved less.

    Frequent words are updated more often and move farther for that alone. A listed word
    is set beside the k words that are not listed whose frequencies are nearest to its
    own, by their ratio (of those as near, the more frequent); ties count half.
    """
    chosen = np.array([word in listed for word in words], bool)
    rest = np.flatnonzero(~chosen)
    if not len(rest):
        return {}
    logs = np.log(counts)
    found = {}
    for place in np.flatnonzero(chosen).tolist():
        gaps = np.abs(logs[rest] - logs[place])
        alike = rest[np.lexsort((-counts[rest], gaps))[:k]]
        below = norms[alike] < norms[place]
        same = norms[alike] == norms[place]
        found[words[place]] = float(np.mean(below + same / 2))
    return found


def positive_share(neighbours: Sequence[Neighbour]) -> float:
    """Share of the neighbours with a positive side; nan where there are none."""
    sides = [neighbour.side > 0 for neighbour in neighbours]
    return float(np.mean(sides)) if sides else float("nan")


def moved_fraction(delta: Table, tau: float = 0.0) -> float:
    """Share of the rows whose norm is above `tau`; nan for a table without rows."""
    norms = row_norms(delta)
    return float(np.mean(norms > tau)) if norms.size else float("nan")


def norm_histogram(delta: Table, bins: int = 40) -> NormHistogram:
    """How far the rows moved: equal bins from 0 to the longest row."""
    norms = row_norms(delta)
    moved = norms[norms > 0]
    top = float(moved.max()) if moved.size else 1.0
    counts, edges = np.histogram(moved, bins=bins, range=(0.0, top))
    return NormHistogram(counts, edges, int(norms.size - moved.size))


def nearest(
    table: Table,
    words: Sequence[str],
    word: str,
    k: int = 10,
    *,
    keep: Collection[str] | None = None,
) -> list[tuple[str, float]]:
    """The `k` words of highest cosine with `word`, itself left out.

    Args:
      table: one row a word.
      words: of the rows.
      word: the query.
      k: how many.
      keep: only these words count as neighbours, where given.

    Raises:
      InputError: where the table lacks the word, or its row is zero.
    """
    _check_length("table", table, words)
    _check_count(k)
    try:
        row = words.index(word)
    except ValueError as error:
        raise InputError(f"{word!r} is not among the {len(words)} words") from error
    query = np.asarray(table[row], np.float64)
    if not np.any(query):
        raise InputError(f"the row of {word!r} is zero, so it has no neighbours")
    cosines = _cosines(table, query / np.linalg.norm(query))
    cosines[row] = -np.inf
    if keep is not None:
        cosines[[other not in keep for other in words]] = -np.inf
    order = np.argsort(-cosines, kind="stable")[:k]
    return [(words[int(i)], float(cosines[i])) for i in order if cosines[i] > -np.inf]


def neighbour_shift(
    before: Table,
    after: Table,
    words: Sequence[str],
    word: str,
    k: int = 10,
    *,
    keep: Collection[str] | None = None,
    polarity: Mapping[str, float | int] | None = None,
) -> NeighbourShift:
    """Nearest words of `word` before and after tuning (Table 5).

    Args:
      before: the table as it was.
      after: the table as it is, same rows.
      words: of the rows.
      word: the query, *not* in the paper.
      k: neighbours on each side.
      keep: only these words count as neighbours; the words of `polarity` by default.
      polarity: word to a number whose sign says which side it is on.
    """
    if keep is None and polarity is not None:
        keep = {w for w, value in polarity.items() if value}
    sides = polarity or {}

    def around(table: Table) -> tuple[Neighbour, ...]:
        found = nearest(table, words, word, k, keep=keep)
        return tuple(
            Neighbour(w, cosine, int(np.sign(sides.get(w, 0)))) for w, cosine in found
        )

    return NeighbourShift(word, around(before), around(after))


def _blocks(table: Table) -> Iterator[tuple[slice, np.ndarray]]:
    """Parts of a table in float64, so that a large one is never copied whole."""
    for start in range(0, len(table), _BLOCK):
        place = slice(start, start + _BLOCK)
        yield place, np.asarray(table[place], np.float64)


def _cosines(table: Table, unit: np.ndarray) -> np.ndarray:
    """Cosines of every row with a unit vector; -inf for a zero row, near nothing."""
    out = np.full(len(table), -np.inf)
    for place, rows in _blocks(table):
        lengths = np.linalg.norm(rows, axis=1)
        np.divide(rows @ unit, lengths, out=out[place], where=lengths > 0)
    return out


def _check_count(k: int) -> None:
    if k < 1:
        raise InputError(f"k is {k}; expected 1 or more")


def _check_length(name: str, table: Table | np.ndarray, words: Sequence[str]) -> None:
    if len(table) != len(words):
        raise InputError(f"{name} has {len(table)} rows for {len(words)} words")
