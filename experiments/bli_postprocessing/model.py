"""The paper's systems: post-process, normalise, align, retrieve."""

import dataclasses

import numpy as np

from experiments.bli_postprocessing.config import Config, Direction, System
from experiments.bli_postprocessing.data import Task
from jaxemb.eval import induction
from jaxemb.eval.induction import Induction
from jaxemb.spaces import align, dictionaries, normalize, rcsls, spectrum


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

    def score(
        self,
        task: Task,
        neighbours: int,
        resamples: int,
        style: induction.Gold = "pairs",
    ) -> Induction:
        """MRR and precision on the test pairs."""
        return induction.induction(
            self.source,
            self.target,
            task.test,
            total=task.test_total if style == "pairs" else None,
            style=style,
            neighbours=neighbours,
            resamples=resamples,
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
