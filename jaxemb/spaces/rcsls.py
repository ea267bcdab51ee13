"""A linear map trained for retrieval by CSLS (Joulin et al. 2018)."""

import dataclasses

import numpy as np
from jaxtyping import Float

from jaxemb.errors import InputError
from jaxemb.spaces import align, retrieval

Rows = Float[np.ndarray, "_ _"]
Pairs = Float[np.ndarray, "pairs _"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RCSLS:
    """How the map is trained; the values are those of the authors' program."""

    neighbours: int = 10
    learning_rate: float = 1.0
    """Halved, and the step undone, when the loss rises."""
    least_rate: float = 1e-4
    """The end, once the rate is below it."""
    most: int = 10
    """Iterations, at most."""
    negatives: int = 200_000
    """The first words of each vocabulary that may be neighbours."""
    spectral: bool = False
    """Clip the map's singular values to [0, 1] after each step."""


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    """The map and the losses of the steps that were kept."""

    maps: align.Maps
    losses: list[float]


def rcsls(
    source_pairs: Pairs,
    target_pairs: Pairs,
    source: Rows,
    target: Rows,
    settings: RCSLS | None = None,
) -> Trained:
    """Minimises the relaxed CSLS loss over a linear map R of the source.

        (1/m) sum_i [-2 (R x_i)·y_i + (1/k) sum_{y in N_k(R x_i)} (R x_i)·y
                     + (1/k) sum_{x: R x in N_k(y_i)} (R x)·y_i]

    by subgradient descent on all pairs at once, from Procrustes' rotation.

    Args:
      source_pairs: rows of length 1 of the dictionary's source words.
      target_pairs: of its target words.
      source: rows of length 1 of the source vocabulary.
      target: of the target vocabulary.
      settings: how; the authors' values if None.
    """
    settings = settings or RCSLS()
    if source_pairs.shape[1] != target_pairs.shape[1]:
        raise InputError(
            f"RCSLS maps between spaces of one width, not {source_pairs.shape[1]} and "
            f"{target_pairs.shape[1]}"
        )
    x, y = (np.asarray(side, np.float64) for side in (source_pairs, target_pairs))
    near_x, near_y = (
        np.asarray(side[: settings.negatives], np.float64) for side in (source, target)
    )
    kept = align.procrustes(x, y)  # multiplies rows from the right: R transposed
    rate, losses = settings.learning_rate, []
    matrix, kept_gradient = kept, np.zeros_like(kept)
    for _ in range(settings.most + 1):
        loss, gradient = loss_and_gradient(
            matrix, x, y, near_x, near_y, settings.neighbours
        )
        if not losses or loss <= losses[-1]:
            losses.append(loss)
            kept, kept_gradient = matrix, gradient
        else:
            rate /= 2
            if rate < settings.least_rate:
                break
        matrix = kept - rate * kept_gradient
        if settings.spectral:
            left, values, right = np.linalg.svd(matrix)
            matrix = left * np.clip(values, 0, 1)[np.newaxis] @ right
    return Trained(align.Maps(kept, np.eye(len(kept))), losses)


def loss_and_gradient(
    matrix: Float[np.ndarray, "dim dim"],
    source_pairs: Pairs,
    target_pairs: Pairs,
    source: Rows,
    target: Rows,
    neighbours: int,
) -> tuple[float, Float[np.ndarray, "dim dim"]]:
    """The loss at a map, and its gradient with the neighbours held as they are."""
    count = len(source_pairs)
    mapped = source_pairs @ matrix
    near_targets = _mean_rows(mapped, target, target, neighbours)
    near_sources = _mean_rows(target_pairs, source @ matrix, source, neighbours)
    loss = (
        -2 * np.sum(mapped * target_pairs)
        + np.sum(mapped * near_targets)
        + np.sum((near_sources @ matrix) * target_pairs)
    )
    gradient = (
        source_pairs.T @ (near_targets - 2 * target_pairs)
        + near_sources.T @ target_pairs
    )
    return float(loss / count), gradient / count


def _mean_rows(queries: Pairs, searched: Rows, averaged: Rows, k: int) -> Pairs:
    """The mean of `averaged` over the k rows of `searched` nearest to each query."""
    found = retrieval.nearest(queries, searched, min(k, len(searched))).rows
    total = np.zeros((len(queries), averaged.shape[1]))
    for column in found.T:  # one neighbour at a time: no (pairs, k, dim) array
        total += averaged[column]
    return total / found.shape[1]
