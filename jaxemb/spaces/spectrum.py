"""Gram matrices, their powers, and the order of similarity that a space expresses."""

import numpy as np
from jaxtyping import Float

from jaxemb.errors import InputError

# Eigenvalues below this share of the largest are noise of the arithmetic.
FLOOR = 1e-10
_BLOCK = 16_384


def gram(
    first: Float[np.ndarray, "words a"],
    second: Float[np.ndarray, "same b"] | None = None,
) -> Float[np.ndarray, "a _"]:
    """`first.T @ second` in float64, block by block, so that float32 stays as it is.

    Args:
      first: a space; its rows are words.
      second: another of the same words; `first` itself if None.
    """
    second = first if second is None else second
    if len(first) != len(second):
        raise InputError(
            f"spaces of {len(first)} and {len(second)} words; expected the same words"
        )
    total = np.zeros((first.shape[1], second.shape[1]))
    for start in range(0, len(first), _BLOCK):
        rows = slice(start, start + _BLOCK)
        total += np.asarray(first[rows], np.float64).T @ np.asarray(
            second[rows], np.float64
        )
    return total


def power(
    matrix: Float[np.ndarray, "dim dim"], exponent: float
) -> Float[np.ndarray, "dim dim"]:
    """A power of a symmetric positive semi-definite matrix, by its eigenvalues.

    Eigenvalues are raised to at least `FLOOR` of the largest, which a negative power
    needs where the matrix is not of full rank.
    """
    [result] = powers(matrix, exponent)
    return result


def powers(
    matrix: Float[np.ndarray, "dim dim"], *exponents: float
) -> list[Float[np.ndarray, "dim dim"]]:
    """Several powers as `power` has them, from one decomposition."""
    values, vectors = floored_eigh(matrix)
    return [(vectors * values**exponent) @ vectors.T for exponent in exponents]


def floored_eigh(
    matrix: Float[np.ndarray, "dim dim"],
) -> tuple[Float[np.ndarray, " dim"], Float[np.ndarray, "dim dim"]]:
    """Eigenvalues, largest first and none below the floor, and eigenvectors."""
    if not np.all(np.isfinite(matrix)):
        raise InputError("a space has numbers that are not finite; expected numbers")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    if not values[0] > 0:
        raise InputError("a space of zeros has no directions; expected other rows")
    return np.maximum(values, FLOOR * values[0]), vectors


def similarity_order(
    space: Float[np.ndarray, "words dim"], alpha: float
) -> Float[np.ndarray, "words dim"]:
    """The space `X Q D^alpha`, with `X^T X = Q D Q^T` (Artetxe et al. 2018).

    Its singular values are `s^(1 + 2 alpha)`: 0 is a rotation and changes no cosine,
    1/2 gives the similarity of second order `(X X^T)^2`, negative values flatten the
    spectrum, and -1/2 whitens.
    """
    values, vectors = floored_eigh(gram(space))
    return np.asarray(space, np.float64) @ (vectors * values**alpha)
