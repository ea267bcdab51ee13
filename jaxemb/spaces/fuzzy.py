"""Words as fuzzy sets of features (Bhat et al. 2020).

Component i of a word is read as the probability that the word has feature i:

    p_w[i] = exp(w[i]) / sum_u exp(u[i])

a softmax over the vocabulary, one a column. Sets are arrays of such probabilities, one
a row; the operations take any number of rows.
"""

import dataclasses
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from jaxemb.errors import InputError

Sets = Float[np.ndarray, "*sets dim"]
Values = Float[np.ndarray, "*sets"] | float  # one a set
Normaliser = Literal["softmax", "max", "mean"]

# What stands for 0 where a logarithm of it is asked for.
_LEAST = 1e-12


@dataclasses.dataclass(frozen=True, eq=False)
class FuzzyEmbedding:
    """The logarithms of a vocabulary's feature probabilities."""

    log_p: np.ndarray  # (words, dim), at most 0 save for the normaliser "mean"

    @classmethod
    def from_vectors(
        cls,
        vectors: Float[np.ndarray, "words dim"],
        normaliser: Normaliser = "softmax",
    ) -> "FuzzyEmbedding":
        """Reads a word space as fuzzy sets.

        Args:
          vectors: rows are words; a constant added to a column changes nothing.
          normaliser: what a column of `exp(w)` is divided by: its sum ("softmax", the
            printed formula), its largest number ("max", so that a feature has a full
            member), or its mean ("mean", clipped at 1). Under the sum the entropy of n
            features over V words is at most `n h(1/V)`, far below the figures that the
            paper prints: those need another divisor, which it does not name.
        """
        vectors = np.asarray(vectors, np.float64)
        if not np.all(np.isfinite(vectors)):
            raise InputError("a word has numbers that are not finite; expected numbers")
        total = special.logsumexp(vectors, axis=0, keepdims=True)
        if normaliser == "softmax":
            return cls(vectors - total)
        if normaliser == "max":
            return cls(vectors - vectors.max(axis=0, keepdims=True))
        if normaliser == "mean":
            return cls(np.minimum(vectors - total + np.log(len(vectors)), 0.0))
        raise InputError(f"normaliser {normaliser!r}: expected softmax, max or mean")

    @property
    def p(self) -> Float[np.ndarray, "words dim"]:
        """The probabilities."""
        return np.exp(self.log_p)


def intersection(a: Sets, b: Sets) -> Sets:
    """`A·B`; of two words it is the sum of their vectors but for a factor a column."""
    return a * b


def union(a: Sets, b: Sets) -> Sets:
    """`A + B - A·B`."""
    return a + b - a * b


def disjoint_union(a: Sets, b: Sets) -> Sets:
    """`A + B`, clipped to [0, 1]; the printed `max(1, min(0, A + B))` is always 1."""
    return np.clip(a + b, 0, 1)


def complement(a: Sets) -> Sets:
    """`1 - A`."""
    return 1 - a


def difference(a: Sets, b: Sets) -> Sets:
    """`A - min(A, B)`."""
    return a - np.minimum(a, b)


def cardinality(a: Sets) -> Values:
    """`sum_i A[i]`."""
    return np.sum(a, axis=-1)


def includes(a: Sets, b: Sets) -> Bool[np.ndarray, "*sets"] | np.bool_:
    """Whether A lies in B: `A[i] <= B[i]` for all i."""
    return np.all(a <= b, axis=-1)


def inclusion(a: Sets, b: Sets) -> Values:
    """Which part of the features has `A[i] <= B[i]`; beyond the paper."""
    return np.mean(a <= b, axis=-1)


def entropy(a: Sets) -> Values:
    """`sum_i -A ln A - (1 - A) ln(1 - A)`."""
    return np.sum(special.entr(a) + special.entr(1 - a), axis=-1)


def kl(a: Sets, b: Sets, *, bernoulli: bool = False) -> Values:
    """`sum_i A ln(A / B)`, as printed; with `bernoulli` the divergence of features.

    The printed sum lacks the terms of absent features and may be below 0; the other
    adds `(1 - A) ln((1 - A) / (1 - B))` and is 0 for equal sets only. `0 ln 0` is 0; a
    B of 0 counts as 1e-12.
    """
    return np.sum(_kl_terms(a, b, bernoulli), axis=-1)


def cross_entropy(a: Sets, b: Sets, *, bernoulli: bool = False) -> Values:
    """The entropy of A and its divergence from B, together."""
    return entropy(a) + kl(a, b, bernoulli=bernoulli)


def nearest_scores(
    queries: Float[np.ndarray, "queries dim"],
    embedding: FuzzyEmbedding,
    *,
    bernoulli: bool = False,
) -> Float[np.ndarray, "queries words"]:
    """`-KL(query || word)` up to a constant of the query, for all words at once.

    `sum_i A ln B` is one matrix product with the words' logarithms (and, with
    `bernoulli`, one more with those of the absent features). Cross-entropy orders words
    alike, since it differs by the query's own entropy.
    """
    scores = queries @ embedding.log_p.T
    if bernoulli:
        absent = np.log(np.maximum(-np.expm1(embedding.log_p), _LEAST))
        scores += (1 - queries) @ absent.T
    return scores


def _kl_terms(a: Sets, b: Sets, bernoulli: bool) -> Sets:
    terms = special.rel_entr(a, np.maximum(b, _LEAST))
    if bernoulli:
        terms = terms + special.rel_entr(1 - a, np.maximum(1 - b, _LEAST))
    return terms
