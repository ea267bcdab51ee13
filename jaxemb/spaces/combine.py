"""Several sources as one: common words, equal widths, average, concatenation."""

import functools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float

from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.spaces import spectrum

Space = Float[np.ndarray, "words _"]


def average(sources: Sequence[Space]) -> Float[np.ndarray, "words dim"]:
    """The mean over sources (Coates & Bollegala 2018)."""
    first, *rest = (np.asarray(source, np.float64) for source in sources)
    if any(source.shape != first.shape for source in rest):
        raise InputError(
            f"sources of shapes {[s.shape for s in sources]} have no average; expected "
            "one shape: see spaces.combine.same_width"
        )
    return functools.reduce(np.add, rest, first) / len(sources)


def concatenate(sources: Sequence[Space]) -> Float[np.ndarray, "words dims"]:
    """The sources side by side (Yin & Schütze 2016)."""
    return np.concatenate([np.asarray(s, np.float64) for s in sources], axis=1)


def svd(sources: Sequence[Space], dim: int) -> Float[np.ndarray, "words {dim}"]:
    """`U S` of the sources side by side, the `dim` largest of it, not centred."""
    joined = concatenate(sources)
    if not 1 <= dim <= joined.shape[1]:
        raise InputError(f"svd: {dim} of {joined.shape[1]} dimensions")
    _, vectors = np.linalg.eigh(spectrum.gram(joined))
    return joined @ vectors[:, ::-1][:, :dim]


def same_width(
    sources: Sequence[Float[np.ndarray, "_ _"]], how: Literal["pca", "pad"] = "pca"
) -> list[np.ndarray]:
    """Sources of one width.

    Args:
      sources: rows are words, of each source its own.
      how: "pca" projects each wider source on its largest principal directions, not
        centred; "pad" gives each narrower one columns of zeros.
    """
    widths = [source.shape[1] for source in sources]
    if how == "pad":
        return [
            np.pad(np.asarray(s, np.float64), ((0, 0), (0, max(widths) - width)))
            for s, width in zip(sources, widths, strict=True)
        ]
    if how != "pca":
        raise InputError(f"same_width: how={how!r}: expected pca or pad")
    narrowed = []
    for source, width in zip(sources, widths, strict=True):
        source = np.asarray(source, np.float64)
        if width > min(widths):
            _, vectors = np.linalg.eigh(spectrum.gram(source))
            source = source @ vectors[:, ::-1][:, : min(widths)]
        narrowed.append(source)
    return narrowed


def common_words(sources: Sequence[WordVectors]) -> list[str]:
    """The words that all sources have, in the order of the first."""
    first, *rest = sources
    words = [word for word in first.words if all(word in other for other in rest)]
    if not words:
        raise InputError("the sources have no word in common")
    return words


def all_words(sources: Sequence[WordVectors]) -> list[str]:
    """The words that any source has, in the order of the first, then the second, …."""
    return list(dict.fromkeys(word for source in sources for word in source.words))


def impute(
    sources: Sequence[Space],
    known: Sequence[np.ndarray],
    ridge: float = 1e-3,
) -> list[np.ndarray]:
    """Fills rows that a source lacks from the sources that have them.

    For each source and each other one a linear map is fitted on the words that both
    have, by ridge regression with `ridge` of the mean eigenvalue; a missing row is the
    mean of what the maps make of the word's rows elsewhere.

    Args:
      sources: rows of the same words; what stands in missing rows does not matter.
      known: for each source which rows it has; each word must be known somewhere.
      ridge: relative weight.
    """
    anywhere = np.any(known, axis=0)
    if not anywhere.all():
        raise InputError(f"{int((~anywhere).sum())} words are in none of the sources")
    filled = []
    for s, (source, has) in enumerate(zip(sources, known, strict=True)):
        total = np.zeros(source.shape)
        votes = np.zeros(len(source))
        for t, (other, other_has) in enumerate(zip(sources, known, strict=True)):
            wanted = ~has & other_has
            if t == s or not wanted.any():
                continue
            both = has & other_has
            if not both.any():
                continue
            square = spectrum.gram(other[both])
            square += ridge * np.trace(square) / len(square) * np.eye(len(square))
            fitted = np.linalg.solve(square, spectrum.gram(other[both], source[both]))
            total[wanted] += np.asarray(other[wanted], np.float64) @ fitted
            votes[wanted] += 1
        missing = ~has
        if np.any(votes[missing] == 0):
            raise InputError(
                f"source {s} has no word in common with those that have what it lacks"
            )
        out = np.asarray(source, np.float64).copy()
        out[missing] = total[missing] / votes[missing, np.newaxis]
        filled.append(out)
    return filled
