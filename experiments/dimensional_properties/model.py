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


def pca_name(width: int) -> str:
    """What the system of the first components is called."""
    return f"PCA-{width}"


def native_name(width: int) -> str:
    """What the table that was trained at a smaller width is called."""
    return f"trained at {width}"


def names(config: Config, dim: int) -> dict[str, str]:
    """What systems are called, by what they are."""
    wide, narrow = widths(dim)
    return {
        "full": "full",
        "centred": "mean only",
        "ppa": f"PPA-{config.removed}",
        "scalar": f"PPA-{config.removed}, scalar mean",
        "all": "all components",
        "pca": pca_name(wide),
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
    if table.native is not None:
        width = table.native.shape[1]
        yield native_name(width), table.native
        if width != wide:
            yield pca_name(width), every[:, :width]
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


def single_components(table: Table) -> dict[str, np.ndarray]:
    """Spaces whose columns are probed one by one.

    A penalty sees scale, so that components of little variance are at a disadvantage
    unless all of them have variance 1.
    """
    every = table.components.project(table.vectors.matrix, slice(None))
    standardised = dimensions.standardised(table.components, every)
    return {"one component": every, "one component, standardised": standardised}
