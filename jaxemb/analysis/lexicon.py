"""What post-processing does to spaces and to the lexicons induced from them."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from jaxemb.analysis import figures
from jaxemb.spaces import spectrum


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
