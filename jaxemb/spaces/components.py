"""Principal components of a word space: projections, and what is left without them."""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy import special

from jaxemb.errors import InputError
from jaxemb.spaces import spectrum

Space = Float[np.ndarray, "words dim"]


@dataclasses.dataclass(frozen=True, eq=False)
class Components:
    """The mean of a space and the eigenvectors of its covariance, largest first."""

    mean: np.ndarray  # (dim,)
    directions: np.ndarray  # (dim, dim), one a column
    variances: np.ndarray  # (dim,)

    @classmethod
    def of(cls, space: Space) -> "Components":
        """The components of a space, in float64."""
        if len(space) < 2:
            raise InputError(f"a space of {len(space)} words has no components")
        count, mean = len(space), space.mean(axis=0, dtype=np.float64)
        scatter = spectrum.gram(space) - count * np.outer(mean, mean)
        values, vectors = np.linalg.eigh((scatter + scatter.T) / 2)
        variances = np.maximum(values[::-1], 0) / count
        return cls(mean, vectors[:, ::-1], variances)

    def project(self, space: Space, chosen: Sequence[int] | slice) -> np.ndarray:
        """`U_S^T (x - mean)` for each row x; a column for each chosen component."""
        return (np.asarray(space, np.float64) - self.mean[np.newaxis]) @ (
            self.directions[:, chosen]
        )

    def share(self, chosen: Sequence[int] | slice) -> float:
        """Which part of the variance lies in the chosen components."""
        return float(self.variances[chosen].sum() / self.variances.sum())


def thirds(dim: int) -> dict[str, slice]:
    """The top, middle and bottom of the components, in equal parts.

    At 300 dimensions these are the paper's blocks 1-100, 101-200 and 201-300.
    """
    edges = np.linspace(0, dim, 4).round().astype(int).tolist()
    return {
        name: slice(low, high)
        for name, low, high in zip("TMB", edges[:-1], edges[1:], strict=True)
    }


def remove_top(
    space: Space,
    count: int,
    *,
    mean: Literal["vector", "scalar"] = "vector",
    components: Components | None = None,
) -> Space:
    """Subtracts the mean, then the projections on the `count` largest components (PPA).

    `v <- v - sum_{i <= count} (u_i^T v) u_i` (Mu & Viswanath 2018).

    Args:
      space: rows are words.
      count: how many components; 0 subtracts the mean alone.
      mean: "scalar" subtracts the one mean of all numbers, as one public program does
        by mistake, with the components those of the vector-centred space.
      components: those of a larger space, of which these rows are a part.
    """
    if not 0 <= count <= space.shape[1]:
        raise InputError(
            f"{count} components of {space.shape[1]} cannot be removed; expected 0 to "
            f"{space.shape[1]}"
        )
    components = components or Components.of(space)
    top = components.directions[:, :count]
    centre = components.mean[np.newaxis]
    if mean == "scalar":
        centre = np.full_like(centre, centre.mean())
    centred = np.asarray(space, np.float64) - centre
    return centred - (centred @ top) @ top.T


def reduce(
    space: Space, dim: int, count: int = 7, *, components: Components | None = None
) -> Float[np.ndarray, "words {dim}"]:
    """PPA, projection on the `dim` largest components, PPA again (PPA-PCA).

    What PPA leaves has the components that it left, so that all three steps are one
    projection on components `count + 1` to `count + dim`, of which the first `count`
    are 0 (Raunak et al. 2019).

    Args:
      space: rows are words.
      dim: width of the result.
      count: how many components each PPA removes.
      components: those of a larger space, of which these rows are a part.
    """
    if not 1 <= dim <= space.shape[1]:
        raise InputError(
            f"{space.shape[1]} dimensions cannot be reduced to {dim}; expected 1 to "
            f"{space.shape[1]}"
        )
    if not 0 <= count <= dim:
        raise InputError(
            f"{count} components of {dim} cannot be removed; expected 0 to {dim}"
        )
    components = components or Components.of(space)
    kept = components.project(space, slice(2 * count, count + dim))
    # Columns that were removed, and those beyond what the first step left, are 0.
    return np.pad(kept, ((0, 0), (count, dim - count - kept.shape[1])))


def isotropy(space: Space) -> float:
    """`min_c Z(c) / max_c Z(c)`, `Z(c) = sum_w exp(c·w)`; 1 where none is preferred.

    c runs over the eigenvectors of `W^T W` (Mu & Viswanath 2018), with both signs,
    since an eigenvector has none.
    """
    space = np.asarray(space, np.float64)
    _, vectors = np.linalg.eigh(spectrum.gram(space))
    products = space @ vectors
    both = np.concatenate([products, -products], axis=1)
    logs = np.asarray(special.logsumexp(both, axis=0))
    return float(np.exp(logs.min() - logs.max()))
