"""Every space that is compared: the table, parts of its components, and baselines."""

from collections.abc import Iterator

import numpy as np

from experiments.dimensional_properties.config import Config
from experiments.dimensional_properties.data import Table
from jaxemb.analysis import dimensions
from jaxemb.spaces import components as components_lib


def widths(dim: int) -> tuple[int, int]:
    """Two thirds and half of the width: the paper's 200 and 150 of 300."""
    return round(2 * dim / 3), round(dim / 2)


def names(config: Config, dim: int) -> dict[str, str]:
    """What systems are called, by what they are."""
    wide, narrow = widths(dim)
    return {
        "full": "full",
        "centred": "mean only",
        "ppa": f"PPA-{config.removed}",
        "scalar": f"PPA-{config.removed}, scalar mean",
        "all": "all components",
        "pca": f"PCA-{wide}",
        "reduced": f"PPA-PCA-{narrow}",
        "random": "random",
    }


def systems(config: Config, table: Table) -> Iterator[tuple[str, np.ndarray]]:
    """System to matrix, in the order of the paper's tables."""
    rows, components = table.vectors.matrix, table.components
    dim = rows.shape[1]
    wide, narrow = widths(dim)
    called = names(config, dim)

    def removed(count: int, **how) -> np.ndarray:
        return components_lib.remove_top(rows, count, components=components, **how)

    yield called["full"], np.asarray(rows, np.float64)
    yield called["centred"], removed(0)
    yield called["ppa"], removed(config.removed)
    yield called["scalar"], removed(config.removed, mean="scalar")
    every = components.project(rows, slice(None))
    yield called["all"], every
    yield called["pca"], every[:, :wide]
    yield (
        called["reduced"],
        components_lib.reduce(rows, narrow, config.reduced, components=components),
    )
    for suffix, standardise in (("", False), (", standardised", True)):
        blocks = dimensions.block_split_eval(
            components, rows, lambda space: space, standardise=standardise
        )
        for name, space in blocks.items():
            yield name + suffix, space
    yield "all, standardised", dimensions.standardised(components, every)
    normal = np.random.default_rng(config.seed).normal(size=rows.shape)
    yield called["random"], normal
