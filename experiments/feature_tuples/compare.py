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
from jaxemb.eval.intervals import Interval, Verdict
from jaxemb.eval.pair_scores import Metric, PairScores
from jaxemb.train import results


class Gap(NamedTuple):
    """A difference, claimed to be above 0."""

    items: Interval
    seeds: Interval | None
    """None of a single seed."""
    over: str
    """What the items are, and how many."""

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


def means(
    config: Config,
    better: Sequence[np.ndarray],
    worse: Sequence[np.ndarray],
    over: str,
    *,
    scale: float = 100.0,
) -> Gap:
    """The difference of means over items, `scale` times; nan items are left out.

    Args:
      config: of the run.
      better: one value an item, by seed.
      worse: the same of the other system.
      over: what items are.
      scale: 100 for per cent.
    """
    gaps = scale * (np.stack(better) - np.stack(worse))  # seeds items
    gaps = gaps[:, ~np.any(np.isnan(gaps), axis=0)]
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
