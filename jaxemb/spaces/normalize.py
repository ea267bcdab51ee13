"""Normalisations of a word space, one after the other as a list of steps names them.

Rows are words. Every function returns float64 and leaves its argument alone; a row or
column of zeros stays one.
"""

import dataclasses
from collections.abc import Sequence
from concurrent import futures

import numpy as np
from jaxtyping import Float

from jaxemb.errors import InputError

Space = Float[np.ndarray, "words dim"]

_BLOCK = 1024  # rows whose float64 copy stays in a cache


def unit(space: Space) -> Space:
    """Every row divided by its length."""
    return _divided(space, axis=1)


def center(space: Space) -> Space:
    """The mean row subtracted from every row."""
    space = np.asarray(space, np.float64)
    return space - space.mean(axis=0, keepdims=True)


def unitdim(space: Space) -> Space:
    """Every column divided by its length over the vocabulary."""
    return _divided(space, axis=0)


def centeremb(space: Space) -> Space:
    """From every row the mean of its own numbers subtracted."""
    space = np.asarray(space, np.float64)
    return space - space.mean(axis=1, keepdims=True)


def standardize(space: Space) -> Space:
    """Every column with mean 0 and variance 1 over the vocabulary, or all zeros."""
    centred = center(space)
    deviation = centred.std(axis=0, keepdims=True)
    return np.divide(
        centred, deviation, out=np.zeros_like(centred), where=deviation > 0
    )


STEPS = {"unit": unit, "center": center, "unitdim": unitdim, "centeremb": centeremb}


def normalize(space: Space, steps: Sequence[str]) -> Space:
    """The steps in their order; VecMap's preset is `("unit", "center", "unit")`."""
    space = np.asarray(space, np.float64)
    for step in steps:
        if step not in STEPS:
            raise InputError(
                f"normalisation {step!r}: expected one of {', '.join(STEPS)}"
            )
        space = STEPS[step](space)
    return space


@dataclasses.dataclass(frozen=True, eq=False)
class UnitCenterUnit:
    """VecMap's `("unit", "center", "unit")` of a large space, row by row.

    Only the mean is of all rows; with it, some rows can be normalised in float64 and
    the others left to `align.map_rows`.
    """

    mean: np.ndarray
    """Of the rows of length 1."""

    @classmethod
    def of(cls, space: Space) -> "UnitCenterUnit":
        """Takes the mean, block by block, on all cores; sums are in one order."""
        if not len(space):
            raise InputError("a space without words has no mean; expected rows")

        def total(start: int) -> np.ndarray:
            rows = np.asarray(space[start : start + _BLOCK], np.float64)
            length = np.sqrt(np.einsum("wd,wd->w", rows, rows))
            shares = np.divide(1, length, out=np.zeros_like(length), where=length != 0)
            return shares @ rows

        with futures.ThreadPoolExecutor() as pool:
            totals = pool.map(total, range(0, len(space), _BLOCK))
            return cls(sum(totals, np.zeros(space.shape[1])) / len(space))

    def rows(self, some: Space) -> Space:
        """Some rows of the space, normalised."""
        return unit(unit(some) - self.mean[np.newaxis])


def _divided(space: Space, axis: int) -> Space:
    space = np.asarray(space, np.float64)
    length = np.linalg.norm(space, axis=axis, keepdims=True)
    # Not `> 0`: what is no number must not become a row of zeros.
    return np.divide(space, length, out=np.zeros_like(space), where=length != 0)
