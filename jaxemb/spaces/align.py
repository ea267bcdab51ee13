"""Linear maps that bring two word spaces together, from pairs of words.

Rows are words and row i of `source` translates row i of `target`. A map multiplies rows
from the right, `space @ map`, in float64.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxemb.errors import InputError
from jaxemb.spaces import spectrum
from jaxemb.spaces.normalize import UnitCenterUnit

Pairs = Float[np.ndarray, "pairs _"]

_BATCH = 8192


@dataclasses.dataclass(frozen=True, eq=False)
class Maps:
    """A map for each of two spaces, into one space."""

    source: np.ndarray  # (dim of source, shared)
    target: np.ndarray  # (dim of target, shared)


def procrustes(source: Pairs, target: Pairs) -> Float[np.ndarray, "dim dim"]:
    """The orthogonal W with the least `|source W - target|` (Schönemann 1966).

    With `source^T target = P S Q^T` it is `W = P Q^T`.
    """
    _check(source, target)
    left, _, right = np.linalg.svd(spectrum.gram(source, target))
    return left @ right


def orthogonal(source: Pairs, target: Pairs) -> Maps:
    """Procrustes' rotation for the source; the target stays."""
    return Maps(procrustes(source, target), np.eye(target.shape[1]))


def advanced(
    source: Pairs,
    target: Pairs,
    *,
    whiten: bool = True,
    reweight: float = 0.5,
    dewhiten: bool = True,
) -> Maps:
    """VecMap's map in several steps (Artetxe et al. 2018).

    1. whiten each side: `W1 = (X^T X)^(-1/2)`, over the pairs;
    2. rotate: with `(X W1x)^T (Z W1z) = P S Q^T`, X by P and Z by Q;
    3. multiply both sides by `S^reweight`;
    4. undo the whitening in the rotated spaces: X by `P^T W1x^(-1) P`, Z likewise by Q.

    Without the first step the others use the pairs as they are.

    Args:
      source: rows of the pairs' source words, normalised.
      target: rows of their target words.
      whiten: whether to take the first step.
      reweight: power of the singular values; 0 leaves them out.
      dewhiten: whether to take the last step; nothing without the first.
    """
    _check(source, target)
    whitening = undoing = [np.eye(side.shape[1]) for side in (source, target)]
    if whiten:
        roots = [spectrum.powers(spectrum.gram(s), -0.5, 0.5) for s in (source, target)]
        whitening, undoing = zip(*roots, strict=True)
    cross = whitening[0] @ spectrum.gram(source, target) @ whitening[1]
    left, values, right = np.linalg.svd(cross, full_matrices=False)
    maps = []
    for white, undo, rotation in zip(whitening, undoing, (left, right.T), strict=True):
        matrix = white @ rotation * values[np.newaxis] ** reweight
        if whiten and dewhiten:
            matrix = matrix @ rotation.T @ undo @ rotation
        maps.append(matrix)
    return Maps(*maps)


def map_rows(
    space: Float[np.ndarray, "words dim"],
    normaliser: UnitCenterUnit,
    matrix: Float[np.ndarray, "dim shared"],
) -> Float[np.ndarray, "words shared"]:
    """All rows of a space normalised, mapped, and of length 1 again; in float32.

    One pass over the space and one product, on the device, in constant memory beside
    what is returned.

    Args:
      space: as it was given to the normaliser.
      normaliser: of that space.
      matrix: a map, e.g. `advanced(...).source`.
    """
    out = np.empty((len(space), matrix.shape[1]), np.float32)
    mean, map_ = (jnp.asarray(x, jnp.float32) for x in (normaliser.mean, matrix))
    size = min(_BATCH, len(space))
    for start in range(0, len(space), size):
        # The last batch overlaps the one before, so that all are of one size.
        rows = slice(min(start, len(space) - size), min(start + size, len(space)))
        batch = jnp.asarray(space[rows], jnp.float32)
        out[rows] = np.asarray(_map_batch(batch, mean, map_))
    return out


@jax.jit
def _map_batch(
    rows: Float[Array, "batch dim"],
    mean: Float[Array, " dim"],
    matrix: Float[Array, "dim shared"],
) -> Float[Array, "batch shared"]:
    # unit(unit(unit(x) - m) W) = unit(x W / |x| - m W): the product comes first, and
    # what is normalised is read once.
    dot = functools.partial(jnp.dot, precision=jax.lax.Precision.HIGHEST)  # no bfloat16
    mapped = dot(rows, matrix) * _shares(rows)
    return _unit(mapped - dot(mean, matrix)[jnp.newaxis])


def _unit(rows: Float[Array, "batch dim"]) -> Float[Array, "batch dim"]:
    return rows * _shares(rows)


def _shares(rows: Float[Array, "batch dim"]) -> Float[Array, "batch 1"]:
    """One over the length of each row; 0 of a row of zeros."""
    squares = jnp.sum(jnp.square(rows), axis=1, keepdims=True)
    return jnp.where(squares > 0, jax.lax.rsqrt(squares), 0)


def _check(source: Pairs, target: Pairs) -> None:
    if not len(source) or len(source) != len(target):
        raise InputError(
            f"{len(source)} source and {len(target)} target words; expected as many "
            "of each, at least one"
        )
