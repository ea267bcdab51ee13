"""The paper's systems: post-process, normalise, align, retrieve."""

import dataclasses

import numpy as np

from experiments.bli_postprocessing.config import GRID, Config, Direction, System
from experiments.bli_postprocessing.data import Task
from jaxemb.eval import induction
from jaxemb.spaces import align, dictionaries, normalize, rcsls, retrieval, spectrum

_FOLDS = 5


@dataclasses.dataclass(frozen=True, eq=False)
class Spaces:
    """Both sides after post-processing, not yet normalised."""

    source: np.ndarray
    target: np.ndarray

    @classmethod
    def of(cls, task: Task, alpha_source: float, alpha_target: float) -> "Spaces":
        """The orders 0 and 0 are a rotation each: the baselines."""
        return cls(
            spectrum.similarity_order(task.source.matrix, alpha_source),
            spectrum.similarity_order(task.target.matrix, alpha_target),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Mapped:
    """Both sides in one space, rows of length 1."""

    source: np.ndarray
    target: np.ndarray
    pairs: np.ndarray
    """The dictionary that the map was made from."""

    def ranks(self, task: Task, neighbours: int) -> np.ndarray:
        """Of the test pairs, by CSLS or, without neighbours, by cosine."""
        return induction.gold_ranks(
            self.source, self.target, task.test, neighbours=neighbours
        )


def align_spaces(
    config: Config,
    system: System,
    spaces: Spaces,
    seed_pairs: np.ndarray,
    *,
    direction: Direction = "mutual",
    seed: int = 0,
) -> Mapped:
    """Maps both sides by a system; only self-learning has a direction and a seed."""
    sides = spaces.source, spaces.target
    if system == "rcsls":  # which only takes rows of length 1
        sides = tuple(map(normalize.unit, sides))
        seeds = (side[seed_pairs[:, i]] for i, side in enumerate(sides))
        maps = rcsls.rcsls(*seeds, *sides).maps
        mapped = (
            normalize.unit(side @ matrix).astype(np.float32)
            for side, matrix in zip(sides, (maps.source, maps.target), strict=True)
        )
        return Mapped(*mapped, seed_pairs)
    normalisers = [normalize.UnitCenterUnit.of(side) for side in sides]
    pairs = seed_pairs
    if system == "self-learning":
        is_random = direction in config.dropout
        settings = dictionaries.SelfLearning(
            cutoff=config.random_cutoff if is_random else config.cutoff,
            direction=direction,
            keep=0.1 if is_random else 1.0,
            patience=config.patience,
        )
        most = max(settings.cutoff, 1 + int(seed_pairs.max(initial=0)))
        frequent = (n.rows(s[:most]) for n, s in zip(normalisers, sides, strict=True))
        pairs = dictionaries.learn(
            *frequent, seed_pairs, settings, random_seed=seed
        ).pairs
    rows = (n.rows(sides[i][pairs[:, i]]) for i, n in enumerate(normalisers))
    maps = (align.orthogonal if system == "procrustes" else align.advanced)(*rows)
    mapped = (
        align.map_rows(side, n, matrix)
        for side, n, matrix in zip(
            sides, normalisers, (maps.source, maps.target), strict=True
        )
    )
    return Mapped(*mapped, pairs)


def tuned_orders(
    config: Config, task: Task, seed_pairs: np.ndarray
) -> tuple[float, float]:
    """The orders of the grid with the highest MRR on parts of the seed dictionary.

    All translations of a source word are in the same part. Among the most frequent rows
    only, which nearly all seed pairs are of.
    """
    pairs = seed_pairs[np.all(seed_pairs < config.cutoff, axis=1)]
    fold = _folds(pairs[:, 0])
    sources, targets = (
        [_frequent_rows(side.matrix, order, config.cutoff) for order in GRID]
        for side in (task.source, task.target)
    )
    scores = np.zeros((len(GRID), len(GRID)))
    for (i, j), _ in np.ndenumerate(scores):
        for number in range(_FOLDS):
            fitted, held = pairs[fold != number], pairs[fold == number]
            maps = align.advanced(sources[i][fitted[:, 0]], targets[j][fitted[:, 1]])
            queries = normalize.unit(sources[i][held[:, 0]] @ maps.source)
            answers = normalize.unit(targets[j] @ maps.target)
            ranks = retrieval.ranks(queries, answers, held[:, 1])
            scores[i, j] += np.sum(1 / ranks)
    best = np.unravel_index(np.argmax(scores), scores.shape)
    return GRID[best[0]], GRID[best[1]]


def _folds(words: np.ndarray) -> np.ndarray:
    """A fold for each place, the same wherever the word is the same."""
    _, numbers = np.unique(words, return_inverse=True)
    dealt = np.arange(int(numbers.max(initial=0)) + 1) % _FOLDS
    return np.random.default_rng(0).permutation(dealt)[numbers]


def _frequent_rows(matrix: np.ndarray, order: float, most: int) -> np.ndarray:
    """Post-processed and normalised as the whole space would be."""
    space = spectrum.similarity_order(matrix, order)
    return normalize.UnitCenterUnit.of(space).rows(space[:most])
