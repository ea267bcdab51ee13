"""Nearest neighbours of many words at once, and how far two spaces share them."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import intervals, lookup, search


@dataclasses.dataclass(frozen=True)
class Overlap:
    """How far neighbourhoods of the same words agree; nan where none can be told."""

    overlap: float  # mean share of the k neighbours in one space that the other has
    low: float  # percentile bootstrap interval of `overlap`, over words
    high: float
    jaccard: float  # mean of intersection over union
    k: int
    words: int  # whose neighbours were compared
    common: int  # words of both tables, with a direction in each: the neighbours
    first: int  # words of the first table
    second: int
    first_rows: int | None
    case: str = "exact"

    def cells(self) -> dict[str, str]:
        """The fields as the columns of a printed table."""
        return {
            f"overlap@{self.k}": f"{self.overlap:.3f}",
            "95 % interval": intervals.bounds_text(self.low, self.high),
            "jaccard": f"{self.jaccard:.3f}",
            "words": str(self.words),
            "common": f"{self.common} of {self.first} and {self.second}",
            "case": self.case,
        }


def nearest_neighbours(
    vectors: WordVectors,
    words: Sequence[str],
    k: int = 10,
    *,
    first_rows: int | None = None,
) -> list[list[tuple[str, float]]]:
    """The `k` words of highest cosine to each word, itself left out.

    Args:
      vectors: the table.
      words: as the table writes them.
      k: how many, 1 or more.
      first_rows: search, and know, only this many first rows.

    Returns:
      Words and cosines for each word, nearest first; fewer where the table is small.

    Raises:
      InputError: for a word that the table lacks, or whose row is all zeros.
    """
    table = lookup.first_rows(vectors, first_rows)
    for word in words:
        if not np.any(table[word]):
            raise InputError(
                f"the vector of {word!r} is all zeros; it has no direction"
            )
    queries = np.array([table.index[word] for word in words], np.int64)
    rows, cosines = nearest_rows(table, queries, k)
    return [
        [(table.words[row], float(c)) for row, c in zip(*pair, strict=True) if row >= 0]
        for pair in zip(rows, cosines, strict=True)
    ]


def nearest_rows(
    vectors: WordVectors, queries: Int[np.ndarray, " queries"], k: int = 10
) -> tuple[Int[np.ndarray, "queries k"], Float[np.ndarray, "queries k"]]:
    """As `nearest_neighbours`, by rows; -1 and -inf where the table is small."""
    if k < 1:
        raise InputError(f"k is {k}; expected 1 or more")
    return search.nearest_rows(search.to_device(vectors), queries, k)


def neighbour_overlap(
    first: WordVectors,
    second: WordVectors,
    k: int = 10,
    *,
    sample: int | None = None,
    first_rows: int | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Overlap:
    """Compares the neighbours that words have in two spaces.

    Neighbours are sought among the words that both tables have, written the same, so
    that a table is not charged for words that it lacks.

    Args:
      first: a table.
      second: another, of any dimension.
      k: how many neighbours.
      sample: compare the neighbours of only so many words, drawn without repetition;
        the neighbours themselves still come from all common words.
      first_rows: know only this many first rows of each table.
      resamples: of the bootstrap that gives the interval; 0 for none.
      level: of the interval.
      seed: of the sample and of the resamples.
    """
    if k < 1:
        raise InputError(f"k is {k}; expected 1 or more")
    tables = [lookup.first_rows(table, first_rows) for table in (first, second)]
    known = [
        {word for word, norm in zip(t.words, t.norms, strict=True) if norm > 0}
        for t in tables
    ]
    common = sorted(
        known[0] & known[1]
    )  # ties, and the sample, whatever the rows' order
    queries = np.arange(len(common))
    if sample is not None and sample < len(common):
        queries = np.random.default_rng(seed).choice(len(common), sample, replace=False)
    shared = np.zeros(0)
    size = min(k, len(common) - 1)
    if size > 0:
        near = [nearest_rows(t.subset(common), queries, size)[0] for t in tables]
        pairs = zip(*near, strict=True)
        shared = np.array([len(np.intersect1d(*pair)) for pair in pairs], np.float64)
    share = shared / max(size, 1)
    interval = intervals.bootstrap(
        lambda rows: share[rows].mean(axis=-1),
        len(share),
        seed=seed,
        resamples=resamples,
        level=level,
    )
    jaccard = shared / (2 * max(size, 1) - shared)
    return Overlap(
        overlap=interval.mean,
        low=interval.low,
        high=interval.high,
        jaccard=float(np.mean(jaccard)) if len(jaccard) else float("nan"),
        k=k,
        words=len(shared),
        common=len(common),
        first=len(tables[0]),
        second=len(tables[1]),
        first_rows=first_rows,
    )
