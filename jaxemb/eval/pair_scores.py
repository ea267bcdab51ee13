"""Any score of word pairs against what people say, and contrasts of several.

`jaxemb.eval.similarity` is for cosines of whole tables. Here scores come from anywhere:
an asymmetric measure, a compound and its words, the same test after several trainings.
"""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from jaxemb.data.vectors import WordVectors
from jaxemb.eval import correlation, intervals, lookup
from jaxemb.eval.intervals import Interval
from jaxemb.eval.lookup import Case
from jaxemb.spaces import normalize

Metric = Literal["spearman", "pearson"]
_STATISTICS = {
    "spearman": correlation.spearman_statistic,
    "pearson": correlation.pearson_statistic,
}


@dataclasses.dataclass(frozen=True, eq=False)
class PairScores:
    """What a system and what people say of the same pairs."""

    scores: Float[np.ndarray, " pairs"]
    """nan where the system has none."""
    human: Float[np.ndarray, " pairs"]

    @property
    def covered(self) -> int:
        """Pairs with a score."""
        return int(np.sum(~np.isnan(self.scores)))

    def correlation(self, metric: Metric = "spearman", **bootstrap) -> Interval:
        """Spearman's rho or Pearson's r, with a bootstrap interval over pairs.

        Args:
          metric: which.
          **bootstrap: `seed`, `resamples` and `level` of `intervals.bootstrap`.
        """
        return contrast([(1.0, self)], metric, **bootstrap)


def contrast(
    terms: Sequence[tuple[float, PairScores]], metric: Metric = "spearman", **bootstrap
) -> Interval:
    """A weighted sum of correlations, with a paired bootstrap interval over pairs.

    Weights 1 and -1 give a difference of two systems, ±1/n that of their means over n
    trainings, ±1/n of four systems a difference of differences. All terms are taken
    over the pairs that each of them covers, and over the same resamples.

    Args:
      terms: weight and scores; all of the same pairs in the same order.
      metric: which correlation.
      **bootstrap: `seed`, `resamples` and `level` of `intervals.bootstrap`.
    """
    common = ~np.any([np.isnan(one.scores) for _, one in terms], axis=0)
    statistics = [
        (weight, _STATISTICS[metric](one.scores[common], one.human[common]))
        for weight, one in terms
    ]
    return intervals.bootstrap(
        lambda rows: np.sum([w * of(rows) for w, of in statistics], axis=0),
        int(np.sum(common)),
        **bootstrap,
    )


def contrast_lists(
    lists: Sequence[Sequence[tuple[float, PairScores]]],
    units: Sequence[Int[np.ndarray, " _"]],
    **bootstrap,
) -> Interval:
    """The mean over lists of contrasts of Spearman's rho, where lists share pairs.

    Such lists are no independent tests. What is drawn is a unit, as a pair of words in
    either order: it comes with its scores in every list that has it, as often as it was
    drawn.

    Args:
      lists: the terms of `contrast`, one sequence a list.
      units: the number of each pair's unit, of every list.
      **bootstrap: `seed`, `resamples` and `level` of `intervals.bootstrap`.
    """
    statistics, used = [], []
    for terms, of in zip(lists, units, strict=True):
        common = ~np.any([np.isnan(one.scores) for _, one in terms], axis=0)
        statistics.append(
            [
                (w, correlation.weighted_spearman(x.scores[common], x.human[common]))
                for w, x in terms
            ]
        )
        used.append(of[common])
    distinct, places = np.unique(np.concatenate(used), return_inverse=True)
    of_list = np.split(places, np.cumsum([len(of) for of in used])[:-1])

    def statistic(rows: Int[np.ndarray, "resamples draws"]) -> np.ndarray:
        drawn = intervals.times_drawn(rows, len(distinct))
        return np.mean(
            [
                np.sum([weight * rho(drawn[:, of]) for weight, rho in terms], axis=0)
                for terms, of in zip(statistics, of_list, strict=True)
            ],
            axis=0,
        )

    return intervals.bootstrap(statistic, len(distinct), **bootstrap)


def rows_of(
    vectors: WordVectors, items: Sequence[Sequence[str]], case: Case = "fallback"
) -> Int[np.ndarray, "items words"]:
    """The rows of each item's words; -1 for one that is missing or all zeros."""
    found = lookup.look_up(vectors, (word for item in items for word in item), case)
    rows, places = np.where(found.usable, found.rows, -1), found.places
    return np.array([[rows[places[w]] for w in item] for item in items], np.int64)


def scored(
    rows: Int[np.ndarray, "items words"], values: Float[np.ndarray, " covered"]
) -> Float[np.ndarray, " items"]:
    """Values of the items that have all their rows, nan for the others."""
    scores = np.full(len(rows), np.nan)
    scores[np.all(rows >= 0, axis=1)] = values
    return scores


def cosines(
    a: Float[np.ndarray, "items dim"], b: Float[np.ndarray, "items dim"]
) -> Float[np.ndarray, " items"]:
    """The cosine of each row of `a` with that of `b`."""
    products = np.einsum("id,id->i", normalize.unit(a), normalize.unit(b))
    return np.round(products, 12)  # a word with itself ties with any other such
