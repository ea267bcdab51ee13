"""Two systems on the same items and the same seeds: a difference and its verdict.

With several seeds there are two intervals: over test items, of the mean of seeds, and
over seeds, of the score on all items. A claim is supported, or contradicted, where both
say so.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.feature_tuples.config import Config
from jaxemb.eval import intervals, pair_scores
from jaxemb.eval.function_words import Ranking
from jaxemb.eval.intervals import Interval, Verdict
from jaxemb.eval.pair_scores import Metric, PairScores
from jaxemb.eval.ranked_analogy import RankedAnalogies
from jaxemb.train import results


class Gap(NamedTuple):
    """A difference, claimed to be above 0."""

    items: Interval
    seeds: Interval | None
    """None of a single seed."""
    over: str
    """What the items are, and how many."""

    @property
    def known(self) -> bool:
        """Whether there is an interval to judge by."""
        return self.items.known

    @property
    def verdict(self) -> Verdict:
        """What both intervals say."""
        both = [one for one in (self.items, self.seeds) if one is not None]
        return intervals.verdict(min(o.low for o in both), max(o.high for o in both))

    def claim(self, text: str, unit: str = "") -> results.Claim:
        """The claim with its evidence."""
        digits = 2 if unit else 4
        evidence = (
            f"paired difference {self.items.mean:+.{digits}f}{unit} "
            f"{_bounds(self.items, digits)}, bootstrap over {self.over}"
        )
        if self.seeds is not None:
            evidence += f"; over seeds {_bounds(self.seeds, digits)}"
        return results.Claim(claim=text, verdict=self.verdict, evidence=evidence)


def correlations(
    config: Config,
    terms: Sequence[tuple[float, Sequence[PairScores]]],
    metric: Metric = "spearman",
) -> Gap:
    """A weighted sum of correlations, each the mean over seeds.

    Args:
      config: of the run.
      terms: weight, and scores of the same pairs by seed.
      metric: which correlation.
    """
    seeds = len(terms[0][1])
    flat = [(weight / seeds, one) for weight, many in terms for one in many]
    items = pair_scores.contrast(flat, metric, resamples=config.resamples)
    by_seed = [
        pair_scores.contrast(
            [(weight, many[seed]) for weight, many in terms], metric, resamples=0
        ).mean
        for seed in range(seeds)
    ]
    common = int(np.sum(~np.any([np.isnan(one.scores) for _, one in flat], axis=0)))
    return Gap(items, _over_seeds(by_seed), f"{common} pairs")


def analogies(
    config: Config, terms: Sequence[tuple[float, Sequence[RankedAnalogies]]]
) -> Gap:
    """A weighted sum of accuracies (%), over the questions that every table covers.

    Google's questions are made by asking each pair of words with every other of its
    section, so that pairs are resampled and not questions.

    Args:
      config: of the run.
      terms: weight, and answers to the same questions by seed.
    """
    gaps = sum(
        100 * weight * np.stack([one.items() for one in many]) for weight, many in terms
    )  # seeds questions
    known = ~np.any(np.isnan(gaps), axis=0)
    gaps, pairs = gaps[:, known], terms[0][1][0].pairs[known]
    items = intervals.crossed_bootstrap(
        gaps.mean(axis=0), pairs, resamples=config.resamples
    )
    over = f"the {len(np.unique(pairs))} word pairs of {len(pairs)} questions"
    return Gap(items, _over_seeds(gaps.mean(axis=1).tolist()), over)


def rankings(
    config: Config, better: Sequence[Ranking], worse: Sequence[Ranking], n: int
) -> Gap:
    """Function words among the first n of two rankings of the same words."""
    statistics = [
        (a.resampled(n), b.resampled(n)) for a, b in zip(better, worse, strict=True)
    ]
    words = len(better[0].words)
    items = intervals.bootstrap(
        lambda rows: np.mean([a(rows) - b(rows) for a, b in statistics], axis=0),
        words,
        resamples=config.resamples,
    )
    by_seed = [
        float(a.found(n) - b.found(n)) for a, b in zip(better, worse, strict=True)
    ]
    return Gap(items, _over_seeds(by_seed), f"{words} words")


def shares(config: Config, inside: Sequence[np.ndarray], over: str) -> Gap:
    """How many points above one half the share of items is; one array a seed."""
    gaps = 100 * (np.stack(inside) - 0.5)  # seeds items
    by_item = gaps.mean(axis=0)
    items = intervals.bootstrap(
        lambda rows: by_item[rows].mean(axis=-1),
        len(by_item),
        resamples=config.resamples,
    )
    seeds = _over_seeds(gaps.mean(axis=1).tolist())
    return Gap(items, seeds, f"{len(by_item)} {over}")


def _over_seeds(by_seed: Sequence[float]) -> Interval | None:
    return intervals.t_interval(by_seed) if len(by_seed) > 1 else None


def _bounds(interval: Interval, digits: int) -> str:
    return f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
