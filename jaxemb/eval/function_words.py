"""Function words found without a tagger: by entropy, or by frequency alone.

Words that occur often enough are ranked; the score is how many of the first n are
function words of a given list.
"""

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxemb.errors import InputError
from jaxemb.eval import intervals
from jaxemb.eval.intervals import Statistic


@dataclasses.dataclass(frozen=True, eq=False)
class Ranking:
    """Words in an order, and which of them are function words."""

    words: tuple[str, ...]
    hits: Bool[np.ndarray, " words"]

    def found(self, n: int) -> int:
        """Function words among the first n."""
        return int(np.sum(self.hits[:n]))

    def curve(self, most: int) -> Int[np.ndarray, " n"]:
        """`found` of 1, 2, …, as far as there are words."""
        return np.cumsum(self.hits[:most])

    def resampled(self, n: int) -> Statistic:
        """`found(n)` of resamples of the words, as `intervals.bootstrap` calls it.

        A word that is drawn twice stands twice. Words are numbered by the alphabet, so
        that rankings of the same words are of the same resamples.
        """
        order = np.argsort(np.argsort(self.words))

        def statistic(rows: Int[np.ndarray, "resamples draws"]) -> np.ndarray:
            drawn = intervals.times_drawn(rows, len(order))[:, order]
            before = np.cumsum(drawn, axis=1) - drawn
            return np.clip(n - before, 0, drawn) @ self.hits.astype(np.float64)

        return statistic


def ranked(
    words: Sequence[str],
    values: Float[np.ndarray, " words"] | Int[np.ndarray, " words"],
    function_words: Collection[str],
    *,
    counts: Int[np.ndarray, " words"] | None = None,
    least: int = 100,
) -> Ranking:
    """Ranks frequent words by falling value, of equals the more frequent first.

    Args:
      words: a vocabulary by falling frequency, as most tables have it.
      values: what to rank by: entropies, cardinalities, counts.
      function_words: lower-cased.
      counts: how often each word occurs. Without them `least` is a number of rows.
      least: how often a word must occur; without counts, how many of the first words
        are ranked.
    """
    if counts is None:
        frequent = np.arange(len(words)) < least
    else:
        frequent = counts >= least
    if not np.any(frequent):
        raise InputError(f"no word occurs {least} times or more; lower the threshold")
    rows = np.flatnonzero(frequent)
    order = rows[np.argsort(-np.asarray(values, np.float64)[rows], kind="stable")]
    known = frozenset(function_words)
    chosen = tuple(words[int(row)] for row in order)
    return Ranking(chosen, np.array([word.lower() in known for word in chosen], bool))
