"""What a geometric meta-embedding has done: its metric, its alignment, its gains."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from jaxemb.analysis import figures
from jaxemb.eval.intervals import Interval
from jaxemb.spaces import normalize, retrieval

Space = Float[np.ndarray, "words dim"]


class Alignment(NamedTuple):
    """How near the same word is to itself in two sources of one latent space."""

    cosine: float  # the mean over words
    found: float  # share of words whose nearest neighbour in the other source they are


def alignment(first: Space, second: Space) -> Alignment:
    """Compares the latents of two sources, row by row and by retrieval."""
    first, second = normalize.unit(first), normalize.unit(second)
    nearest = retrieval.nearest(first, second).rows[:, 0]
    return Alignment(
        cosine=float(np.mean(np.sum(first * second, axis=1))),
        found=float(np.mean(nearest == np.arange(len(first)))),
    )


def metric_spectrum(metric: Float[np.ndarray, "dim dim"]) -> Figure:
    """The eigenvalues of the shared metric, largest first, over the largest."""
    values = np.linalg.eigvalsh(metric)[::-1]
    places = list(range(1, len(values) + 1))
    line = figures.Curve(places, (values / values[0]).tolist())
    return figures.curves(
        {"metric": line},
        "eigenvalues of the metric, over the largest",
        x_label="place",
        log_y=True,
    )


def regularisation_path(scores: Mapping[float, Mapping[str, Interval]]) -> Figure:
    """Scores against the weight of the metric's norm.

    Args:
      scores: weight to the score of each measure.
    """
    weights = sorted(scores)
    measures = list(scores[weights[0]])
    lines = {
        name: figures.Curve(
            weights,
            [scores[c][name].mean for c in weights],
            [scores[c][name].low for c in weights],
            [scores[c][name].high for c in weights],
        )
        for name in measures
    }
    title = "score against the weight c of the metric's norm"
    return figures.curves(lines, title, x_label="c", log_x=True)


def benchmark_differences(gaps: Mapping[str, Interval]) -> Figure:
    """The difference of two systems on every test, with its interval."""
    rows = [
        {"name": name, "measured": gap.mean, "interval": gap.bounds()}
        for name, gap in gaps.items()
    ]
    return figures.intervals(rows, "difference on each test, in points")
