"""What static vectors trained from contexts show: offsets, and what is attended to."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.figure import Figure

from jaxemb.analysis import figures
from jaxemb.analysis.tsne import tsne
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError

Pairs = Sequence[tuple[str, str]]


def offset_parallelism(table: WordVectors, pairs: Pairs) -> float:
    """The mean cosine of the offsets of every two pairs, rows taken at length 1.

    1: the same relation is the same direction for all pairs; 0: there is none. A
    number for what a picture by t-SNE, which keeps no directions, only suggests.

    Raises:
      InputError: where fewer than two pairs have both words, or an offset is 0.
    """
    ends = known_pairs(table, pairs)
    if len(ends) < 2:
        raise InputError(f"{len(ends)} of the pairs known; expected two or more")
    first, second = (
        table.lookup([pair[side] for pair in ends]).astype(np.float64)
        for side in (0, 1)
    )
    first, second = (
        x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, second)
    )
    offsets = second - first
    lengths = np.linalg.norm(offsets, axis=1, keepdims=True)
    if not lengths.all():
        raise InputError("two words of a pair have the same direction")
    total = np.sum(offsets / lengths, axis=0)
    count = len(ends)
    return float((total @ total - count) / (count * (count - 1)))


def pairs_figure(table: WordVectors, pairs: Pairs, title: str, seed: int = 0) -> Figure:
    """The words of pairs on a plane by t-SNE, each pair joined (Figure 6)."""
    ends = known_pairs(table, pairs)
    words = list(dict.fromkeys(word for pair in ends for word in pair))
    rows = table.lookup(words).astype(np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    perplexity = min(30.0, (len(words) - 1) / 3)
    places = dict(zip(words, tsne(rows, perplexity=perplexity, seed=seed), strict=True))
    return figures.joined_words(places, ends, title)


class AttentionBin(NamedTuple):
    """Words whose counts lie between two bounds, and how they are attended to."""

    low: int
    high: int
    """The largest count, included."""
    relative: float
    """Mean of a word's weight over what it would have if all of the window had the
    same; nan where no word of the bin was in a window."""
    places: int
    """How often such a word was in a window."""


class Attended(NamedTuple):
    """A sentence, and how much each of its words weighs each other one."""

    weights: Float[np.ndarray, "words words"]
    """A row a centre, which adds up to 1 over its window."""
    inside: Bool[np.ndarray, "words words"]
    """Which words are in the window of each centre; a weight there may be 0."""
    ids: Int[np.ndarray, " words"]
    """The numbers of its words."""


def frequency_edges(
    counts: Int[np.ndarray, " vocab"], bins: int = 5
) -> Int[np.ndarray, " edges"]:
    """The largest counts of bins that hold about equal shares of a text's words.

    Args:
      counts: of every word in the text.
      bins: how many; fewer come out where one word is more than a share of the text.
    """
    ordered = np.sort(counts)
    held = np.cumsum(ordered)
    shares = np.arange(1, bins + 1) * held[-1]
    return np.unique(ordered[np.searchsorted(held * bins, shares)])


def attention_by_frequency(
    sentences: Iterable[Attended],
    counts: Int[np.ndarray, " vocab"],
    edges: Sequence[int] | Int[np.ndarray, " bins"],
) -> list[AttentionBin]:
    """How much words are attended to, by how often they occur.

    Args:
      sentences: as `Attended` has them.
      counts: of every word.
      edges: the largest count of each bin, ascending, as `frequency_edges` gives them:
        the same for all that is compared.
    """
    shares, seen = [], []
    for weights, inside, ids in sentences:
        around = inside.sum(axis=1, keepdims=True)
        shares.append((weights * around)[inside])
        seen.append(np.broadcast_to(counts[ids], weights.shape)[inside])
    share, count = np.concatenate(shares), np.concatenate(seen)
    found, below = [], 0
    for edge in edges:
        inside = (count > below) & (count <= edge)
        mean = float(share[inside].mean()) if inside.any() else float("nan")
        found.append(AttentionBin(below + 1, int(edge), mean, int(inside.sum())))
        below = int(edge)
    return found


def known_pairs(table: WordVectors, pairs: Pairs) -> list[tuple[str, str]]:
    """The pairs of which a table has both words."""
    return [(a, b) for a, b in pairs if a in table and b in table]
