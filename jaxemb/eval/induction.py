"""Bilingual lexicon induction: how high the gold translation of a word is ranked."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from jaxemb.data.translations import Translation
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import intervals
from jaxemb.eval.intervals import Interval
from jaxemb.spaces import retrieval

Gold = Literal["pairs", "grouped"]
Rows = Float[np.ndarray, "_ dim"]


@dataclasses.dataclass(frozen=True)
class Induction:
    """Scores over test items, with bootstrap intervals over them."""

    mrr: Interval
    precision: dict[int, Interval]
    """By k: the share of items with the gold translation among the first k."""
    ranks: np.ndarray
    """Of every covered item, from 1."""
    total: int
    """Items, covered or not."""

    @property
    def covered(self) -> int:
        """Items whose words both spaces have."""
        return len(self.ranks)

    @classmethod
    def of(
        cls,
        ranks: Int[np.ndarray, " items"],
        *,
        total: int | None = None,
        at: Sequence[int] = (1, 5, 10),
        resamples: int = 1000,
        seed: int = 0,
    ) -> "Induction":
        """Scores ranks.

        Args:
          ranks: of every covered item, from 1.
          total: items, covered or not; as many as ranks if None.
          at: the k of precision.
          resamples: of the bootstrap; 0 gives no intervals.
          seed: of the bootstrap.
        """
        scores = {"mrr": 1 / ranks, **{str(k): (ranks <= k).astype(float) for k in at}}
        means = {
            name: intervals.bootstrap(
                lambda rows, values=values: values[rows].mean(axis=-1),
                len(values),
                seed=seed,
                resamples=resamples,
            )
            for name, values in scores.items()
        }
        return cls(
            mrr=means["mrr"],
            precision={k: means[str(k)] for k in at},
            ranks=ranks,
            total=len(ranks) if total is None else total,
        )


def induction(
    source: Rows,
    target: Rows,
    gold: Int[np.ndarray, "pairs 2"],
    *,
    total: int | None = None,
    style: Gold = "pairs",
    neighbours: int = 0,
    at: Sequence[int] = (1, 5, 10),
    resamples: int = 1000,
    seed: int = 0,
) -> Induction:
    """Ranks all target rows for each gold pair.

    Args:
      source: mapped rows of length 1.
      target: mapped rows of length 1. Where words share a row, give each row once:
        rows are ranked, not words.
      gold: a source row and a target row for each pair.
      total: items of the test set, with those that are not covered; if None, what
        `gold` holds.
      style: "pairs" scores each line of a dictionary by itself, as xling-eval does;
        "grouped" scores each source word by its best translation, as MUSE does.
      neighbours: of CSLS; 0 ranks by cosine.
      at: the k of precision.
      resamples: of the bootstrap; 0 gives no intervals.
      seed: of the bootstrap.
    """
    ranks = gold_ranks(source, target, gold, neighbours=neighbours)
    if style == "grouped":
        ranks = best_ranks(ranks, gold)
    return Induction.of(ranks, total=total, at=at, resamples=resamples, seed=seed)


def gold_ranks(
    source: Rows,
    target: Rows,
    gold: Int[np.ndarray, "pairs 2"],
    *,
    neighbours: int = 0,
) -> Int[np.ndarray, " pairs"]:
    """The rank, from 1, of each pair's target row for its source row.

    Args:
      source: mapped rows of length 1.
      target: mapped rows of length 1.
      gold: a source row and a target row for each pair.
      neighbours: of CSLS; 0 ranks by cosine.
    """
    penalty = None
    if neighbours:
        penalty = retrieval.mean_of_nearest(target, source, neighbours)
    return retrieval.ranks(source[gold[:, 0]], target, gold[:, 1], row_penalty=penalty)


def best_ranks(
    ranks: Int[np.ndarray, " pairs"], gold: Int[np.ndarray, "pairs 2"]
) -> Int[np.ndarray, " words"]:
    """For each source word the rank of its best translation."""
    words, group = np.unique(gold[:, 0], return_inverse=True)
    best = np.full(len(words), np.iinfo(np.int64).max)
    np.minimum.at(best, group, ranks)
    return best


def covered(
    dictionary: Sequence[Translation],
    source: Mapping[str, int],
    target: Mapping[str, int],
) -> Int[np.ndarray, "pairs 2"]:
    """The rows of those pairs whose words both sides have.

    Args:
      dictionary: pairs of words.
      source: the row of each source word.
      target: the row of each target word; words may share one.
    """
    rows = [
        (source[pair.source], target[pair.target])
        for pair in dictionary
        if pair.source in source and pair.target in target
    ]
    return np.array(rows, np.int64).reshape(-1, 2)


def lexicon_induction(
    source: WordVectors,
    target: WordVectors,
    dictionary: Sequence[Translation],
    *,
    style: Gold = "pairs",
    **settings,
) -> Induction:
    """`induction` between two tables that are mapped already, over a test dictionary.

    Raises:
      InputError: where no pair of the dictionary is covered.
    """
    gold = covered(dictionary, source.index, target.index)
    if not len(gold):
        raise InputError(
            f"none of {len(dictionary)} pairs is in both tables; expected mapped "
            "tables of the dictionary's languages"
        )
    total = len(dictionary)
    if style == "grouped":
        total = len({pair.source for pair in dictionary})
    matrices = (source.normalised().matrix, target.normalised().matrix)
    return induction(*matrices, gold, total=total, style=style, **settings)
