"""Which alpha: chosen on some items or seeds, scored on the others."""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.alpha_embeddings import data
from experiments.alpha_embeddings.config import Config
from experiments.alpha_embeddings.intrinsic import PURITY, Part, spearman

_BEST = 3  # alphas whose test scores give the paper's ±


class Pick(NamedTuple):
    """The embedding that is best elsewhere, and the items it is tested on."""

    name: str
    items: np.ndarray  # bool


def share(items: np.ndarray) -> float:
    """Of right answers among the questions asked; 0 where a table can answer none."""
    asked = items[~np.isnan(items)]
    return float(asked.mean()) if len(asked) else 0.0


class Chooser:
    """Cross-validation over test items, the folds being the same for all systems."""

    def __init__(self, config: Config, tests: data.Tests, parts: Sequence[Part]):
        """Takes the seeds of one width.

        Args:
          config: how many folds.
          tests: pairs and questions.
          parts: one a seed.
        """
        self._count = config.folds
        self._people = np.array([pair.score for pair in tests.pooled])
        pairs = [frozenset(map(str.lower, pair[:2])) for pair in tests.pooled]
        self._pairs = data.folds(pairs, config.folds)
        asked = itertools.chain(*tests.analogies.values())
        questions = [tuple(map(str.lower, question)) for question in asked]
        self._questions = data.folds(questions, config.folds)
        self._parts = parts

    def rho(self, part: Part, name: str, items: np.ndarray) -> float:
        """Spearman's rho × 100 over some pairs."""
        return 100 * spearman(part.cosines[name][items], self._people[items])

    def rho_by_fold(self, name: str) -> list[float]:
        """Of one embedding, for each seed the mean over folds."""
        folds = [self._pairs == f for f in range(self._count)]
        return [
            float(np.mean([self.rho(part, name, fold) for fold in folds]))
            for part in self._parts
        ]

    def by_pairs(self, names: Sequence[str]) -> list[list[Pick]]:
        """For each seed and fold of pairs the best on the other folds."""
        picks = []
        for part in self._parts:
            picks.append([])
            for f in range(self._count):
                here = self._pairs == f
                scores = {name: self.rho(part, name, ~here) for name in names}
                picks[-1].append(Pick(max(scores, key=scores.__getitem__), here))
        return picks

    def by_questions(self, names: Sequence[str], own: np.ndarray) -> list[list[Pick]]:
        """For each seed and fold of the questions `own` the best on the other folds."""
        return [
            [Pick(ranked[0], here) for ranked, here in self._ranked(part, names, own)]
            for part in self._parts
        ]

    def items(self, picks: Sequence[Sequence[Pick]]) -> list[np.ndarray]:
        """For each seed the questions as their picks answer them; nan elsewhere."""
        answered = []
        for part, of_seed in zip(self._parts, picks, strict=True):
            items = np.full(len(of_seed[0].items), np.nan)
            for pick in of_seed:
                items[pick.items] = part.items[pick.name][pick.items]
            answered.append(items)
        return answered

    def spread(self, names: Sequence[str], own: np.ndarray) -> list[float]:
        """Deviation in points of the test scores of the best few, for each seed."""
        spreads = []
        for part in self._parts:
            of_folds = []
            for ranked, here in self._ranked(part, names, own):
                scores = [share(part.items[n][here]) for n in ranked[:_BEST]]
                of_folds.append(100 * np.std(scores))
            spreads.append(float(np.mean(of_folds)))
        return spreads

    def by_seeds(self, values: Mapping[str, Sequence[float]]) -> list[str] | None:
        """For each seed the embedding that is best on the mean of the other seeds."""
        table = np.array(list(values.values()))
        seeds = table.shape[1]
        if seeds < 2:
            return None
        others = [np.delete(table, seed, axis=1).mean(axis=1) for seed in range(seeds)]
        return [list(values)[int(np.argmax(one))] for one in others]

    def purity(self, names: Sequence[str]) -> list[float] | None:
        """Of the embedding that is best on the other seeds."""
        values = {n: [part.scores[n][PURITY] for part in self._parts] for n in names}
        picked = self.by_seeds(values)
        if picked is None:
            return None
        return [values[name][seed] for seed, name in enumerate(picked)]

    def _ranked(self, part: Part, names: Sequence[str], own: np.ndarray):
        """For each fold the embeddings, best elsewhere first, and the fold."""
        for f in range(self._count):
            here = self._questions == f
            scores = {n: share(part.items[n][own & ~here]) for n in names}
            ranked = sorted(scores, key=scores.__getitem__, reverse=True)
            yield ranked, own & here
