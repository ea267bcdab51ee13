"""The paper's systems: post-process, normalise, align, retrieve."""

import dataclasses

import numpy as np

from experiments.bli_postprocessing.config import Config, Direction, System
from experiments.bli_postprocessing.data import Task
from jaxemb.eval import induction
from jaxemb.eval.induction import Induction
from jaxemb.spaces import align, dictionaries, normalize, rcsls, spectrum

_STEPS = "unit", "center", "unit"  # VecMap's; RCSLS takes the first alone


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
    if system == "rcsls":
        source, target = (normalize.unit(s) for s in (spaces.source, spaces.target))
        trained = rcsls.rcsls(
            source[seed_pairs[:, 0]], target[seed_pairs[:, 1]], source, target
        )
        return _mapped(source, target, trained.maps, seed_pairs)
    source, target = (
        normalize.normalize(s, _STEPS) for s in (spaces.source, spaces.target)
    )
    pairs = seed_pairs
    if system == "self-learning":
        settings = dictionaries.SelfLearning(
            cutoff=config.cutoff, direction=direction, patience=config.patience
        )
        pairs = dictionaries.learn(
            source, target, seed_pairs, settings, random_seed=seed
        ).pairs
    rows = source[pairs[:, 0]], target[pairs[:, 1]]
    maps = align.orthogonal if system == "procrustes" else align.advanced
    return _mapped(source, target, maps(*rows), pairs)


def _mapped(
    source: np.ndarray, target: np.ndarray, maps: align.Maps, pairs: np.ndarray
) -> Mapped:
    rows = normalize.unit(source @ maps.source), normalize.unit(target @ maps.target)
    return Mapped(*(side.astype(np.float32) for side in rows), pairs)
