"""What post-processing does to spaces and to the lexicons induced from them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from jaxemb.analysis import figures
from jaxemb.spaces import spectrum

# A source and a target language to each system's score.
PairScores = Mapping[tuple[str, str], Mapping[str, float]]


class Won(NamedTuple):
    """How many of the pairs a system has won."""

    won: int
    pairs: int


class Gain(NamedTuple):
    """The mean of differences between two systems, and over how many pairs."""

    mean: float
    pairs: int


def wins(scores: PairScores, system: str, *, over: Sequence[str]) -> dict[str, Won]:
    """By source language, the pairs in which a system is above all the others given.

    A tie is no win.
    """
    counts: dict[str, Won] = {}
    for (source, _), systems in scores.items():
        won, pairs = counts.get(source, Won(0, 0))
        above = all(systems[system] > systems[other] for other in over)
        counts[source] = Won(won + above, pairs + 1)
    return counts


def per_source_average(scores: PairScores) -> dict[str, dict[str, float]]:
    """By source language and system, the mean over the target languages."""
    by_source: dict[str, list[Mapping[str, float]]] = {}
    for (source, _), systems in scores.items():
        by_source.setdefault(source, []).append(systems)
    return {
        source: {
            system: float(np.mean([systems[system] for systems in pairs]))
            for system in pairs[0]
        }
        for source, pairs in by_source.items()
    }


def gain_by_type(
    scores: PairScores, better: str, worse: str, types: Mapping[str, str]
) -> dict[tuple[str, str], Gain]:
    """The mean difference of two systems by the types of source and target language.

    Args:
      scores: of all pairs.
      better: a system.
      worse: the system whose score is subtracted.
      types: of each language, e.g. "fusional".
    """
    gains: dict[tuple[str, str], list[float]] = {}
    for (source, target), systems in scores.items():
        kinds = types[source], types[target]
        gains.setdefault(kinds, []).append(systems[better] - systems[worse])
    return {
        kinds: Gain(float(np.mean(differences)), len(differences))
        for kinds, differences in sorted(gains.items())
    }


def gain_map(gains: Mapping[tuple[str, str], Gain]) -> Figure:
    """Gains by the types of the source (rows) and of the target (columns)."""
    sources, targets = (sorted({kinds[i] for kinds in gains}) for i in (0, 1))
    table = np.full((len(sources), len(targets)), np.nan)
    for (source, target), gain in gains.items():
        table[sources.index(source), targets.index(target)] = gain.mean
    return figures.heat_map(
        table, sources, targets, "gain by type", x_label="target", y_label="source"
    )


def spectra(spaces: Mapping[str, np.ndarray]) -> Figure:
    """The singular values of spaces, largest first, over the largest of each."""
    lines = {}
    for name, space in spaces.items():
        values, _ = spectrum.floored_eigh(spectrum.gram(space))
        values = np.sqrt(values / values[0])
        lines[name] = figures.Curve(list(range(1, len(values) + 1)), values.tolist())
    title = "singular values, over the largest"
    return figures.curves(lines, title, x_label="place", log_y=True)


def order_grid(
    orders: Sequence[float], scores: Float[np.ndarray, "source target"]
) -> Figure:
    """Scores by the order of the source (rows) and of the target (columns)."""
    names = [f"{order:g}" for order in orders]
    return figures.heat_map(
        scores, names, names, "score by order", x_label="target", y_label="source"
    )


def seed_curve(scores: Mapping[str, Mapping[int, float]]) -> Figure:
    """The score of each system by the pairs of its seed dictionary."""
    lines = {
        name: figures.Curve(list(by_size), list(by_size.values()))
        for name, by_size in scores.items()
    }
    title = "score by pairs of the seed dictionary"
    return figures.curves(lines, title, x_label="pairs", log_x=True)
