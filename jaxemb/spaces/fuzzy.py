"""Words as fuzzy sets of features (Bhat et al. 2020).

Component i of a word is read as the probability that the word has feature i:

    p_w[i] = exp(w[i]) / sum_u exp(u[i])

a softmax over the vocabulary, one a column. Sets are arrays of such probabilities, one
a row; the operations take any number of rows.
"""

import dataclasses
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from jaxemb.errors import InputError

Sets = Float[np.ndarray, "*sets dim"]
Values = Float[np.ndarray, "*sets"] | float  # one a set
Normaliser = Literal["softmax", "max", "mean", "exp-exp", "rows", "softmax-rows"]
Direction = Literal["forward", "backward", "mean"]

# What stands for 0 where a logarithm of it is asked for.
_LEAST = 1e-12
# Above it the exponential of an exponential has no logarithm in float64.
_LARGEST = 700.0


@dataclasses.dataclass(frozen=True, eq=False)
class FuzzyEmbedding:
    """The logarithms of a vocabulary's feature probabilities."""

    log_p: np.ndarray  # (words, dim), at most 0

    @classmethod
    def from_vectors(
        cls,
        vectors: Float[np.ndarray, "words dim"],
        normaliser: Normaliser = "softmax",
    ) -> "FuzzyEmbedding":
        """Reads a word space as fuzzy sets.

        Args:
          vectors: rows are words. A constant added to a column changes nothing, save
            under "exp-exp" and "rows".
          normaliser: what a column of `exp(w)` is divided by: its sum ("softmax", what
            the paper says), its largest number ("max", so that a feature has a full
            member), its mean ("mean", clipped at 1), or `sum_u exp(exp(u))`
            ("exp-exp", the denominator as printed, whose second exponential is taken
            for a slip). Or what a row is divided by: `exp(w)` by its sum ("rows"), or
            the softmax of columns by its sum ("softmax-rows"). Under "softmax" the mean
            entropy of n features over V words is at most `entropy_bound(V, n)`, far
            below what the paper prints; where rows sum to 1 no entropy is above
            `entropy_bound(n, n)`, which is just above what it prints.
        """
        vectors = np.asarray(vectors, np.float64)
        if not np.all(np.isfinite(vectors)):
            raise InputError("a word has numbers that are not finite; expected numbers")
        if normaliser == "rows":
            return cls(special.log_softmax(vectors, axis=1))
        total = special.logsumexp(vectors, axis=0, keepdims=True)
        if normaliser == "softmax":
            return cls(vectors - total)
        if normaliser == "softmax-rows":
            return cls(special.log_softmax(vectors - total, axis=1))
        if normaliser == "max":
            return cls(vectors - vectors.max(axis=0, keepdims=True))
        if normaliser == "mean":
            return cls(np.minimum(vectors - total + np.log(len(vectors)), 0.0))
        if normaliser == "exp-exp":
            if np.max(vectors, initial=0) > _LARGEST:
                raise InputError(
                    f"normaliser 'exp-exp': a number above {_LARGEST:g}, whose second "
                    "exponential is too large; take softmax"
                )
            return cls(
                vectors - special.logsumexp(np.exp(vectors), axis=0, keepdims=True)
            )
        names = ", ".join(get_args(Normaliser))
        raise InputError(f"normaliser {normaliser!r}: expected one of {names}")

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


def disjoint_union(a: Sets, b: Sets, *, printed: bool = False) -> Sets:
    """`A + B`, clipped to [0, 1].

    With `printed` it is `max(1, min(0, A + B))`, as the paper has it, which is 1
    whatever the sets: the two bounds have changed places.
    """
    if printed:
        return np.maximum(1, np.minimum(0, a + b))
    return np.clip(a + b, 0, 1)


def complement(a: Sets) -> Sets:
    """`1 - A`."""
    return 1 - a


def difference(a: Sets, b: Sets) -> Sets:
    """`A - min(A, B)`."""
    return a - np.minimum(a, b)


def analogous(a: Sets, b: Sets, x: Sets) -> Sets:
    """The analogy `A : B :: X : Y`, `Y = (B ⊔ X) - min(B ⊔ X, A)`."""
    return difference(disjoint_union(b, x), a)


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


def entropy_bound(words: int, dim: int) -> float:
    """`n h(1/V)`: the largest mean entropy of V words with n features under softmax.

    A column sums to 1 and the binary entropy h is concave, so that its mean over words
    is at most h of the mean probability 1/V. For the same reason `n h(1/n)` bounds the
    entropy of a set that sums to 1.
    """
    return dim * float(special.entr(1 / words) + special.entr(1 - 1 / words))


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


class Products(NamedTuple):
    """A measure as one product: `queries @ rows.T` orders words as it does."""

    queries: Float[np.ndarray, "queries _"]
    rows: Float[np.ndarray, "words _"]


@dataclasses.dataclass(frozen=True)
class Measure:
    """How alike two sets are: minus a divergence or a cross-entropy."""

    kind: Literal["kl", "cross-entropy"] = "cross-entropy"
    bernoulli: bool = False
    """Count absent features too; the paper's printed sums do not."""
    direction: Direction = "forward"
    """The first set from the second, the second from the first, or the mean of both."""

    def similarity(self, a: Sets, b: Sets) -> Values:
        """`-D(A || B)` or `-H(A, B)`; the other way round, or the mean of both."""
        if self.direction == "backward":
            a, b = b, a
        found = self._distance(a, b)
        if self.direction == "mean":
            found = (found + self._distance(b, a)) / 2
        return -found

    def products(
        self, sets: Float[np.ndarray, "queries dim"], embedding: FuzzyEmbedding
    ) -> Products:
        """The same of every set with every word, up to a constant of the set.

        With y a set, t a word and sums over features, forward and backward are

            y·ln t                [+ (1 - y)·ln(1 - t)]
            t·ln y - Σ t ln t     [+ (1 - t)·ln(1 - y) - Σ (1 - t) ln(1 - t)]

        for divergences, the brackets with `bernoulli` only. Forward cross-entropy
        orders words alike, since it differs by the entropy of y; backward adds that of
        t. A 0 below a logarithm counts as 1e-12. Columns of the rows have mean 0, which
        changes no order and saves digits in float32.
        """
        parts = []
        if self.direction in ("forward", "mean"):
            parts.append(self._forward(sets, embedding))
        if self.direction in ("backward", "mean"):
            parts.append(self._backward(sets, embedding))
        queries, rows = (
            np.concatenate(side, axis=1) for side in zip(*parts, strict=True)
        )
        centred = rows - rows.mean(axis=0, keepdims=True)
        return Products(queries / len(parts), centred)

    def _distance(self, a: Sets, b: Sets) -> Values:
        measure = kl if self.kind == "kl" else cross_entropy
        return measure(a, b, bernoulli=self.bernoulli)

    def _forward(self, sets: np.ndarray, embedding: FuzzyEmbedding) -> Products:
        if not self.bernoulli:
            return Products(sets, embedding.log_p)
        absent = _log_absent(embedding)
        bias = absent.sum(axis=1, keepdims=True)
        return Products(_with_ones(sets), np.hstack([embedding.log_p - absent, bias]))

    def _backward(self, sets: np.ndarray, embedding: FuzzyEmbedding) -> Products:
        p = embedding.p
        queries = np.log(np.maximum(sets, _LEAST))
        if self.bernoulli:
            queries = queries - np.log(np.maximum(1 - sets, _LEAST))
        present, absent = special.entr(p), special.entr(1 - p)
        bias = np.zeros_like(p)
        if self.kind == "kl":
            bias = present + absent if self.bernoulli else present
        elif not self.bernoulli:
            bias = -absent
        return Products(
            _with_ones(queries), np.hstack([p, bias.sum(axis=1, keepdims=True)])
        )


PRINTED = Measure()  # cross-entropy as printed, of which the paper's neighbours are


def nearest_scores(
    queries: Float[np.ndarray, "queries dim"],
    embedding: FuzzyEmbedding,
    *,
    bernoulli: bool = False,
) -> Float[np.ndarray, "queries words"]:
    """`-KL(query || word)` up to a constant of the query, for all words at once.

    See `Measure.products`. Cross-entropy orders words alike, since it differs by the
    query's own entropy.
    """
    made = Measure("kl", bernoulli).products(queries, embedding)
    return made.queries @ made.rows.T


def _with_ones(rows: np.ndarray) -> np.ndarray:
    return np.hstack([rows, np.ones((len(rows), 1))])


def _log_absent(embedding: FuzzyEmbedding) -> np.ndarray:
    """`ln(1 - p)`, exact where p is tiny."""
    return np.log(np.maximum(-np.expm1(embedding.log_p), _LEAST))


def _kl_terms(a: Sets, b: Sets, bernoulli: bool) -> Sets:
    terms = special.rel_entr(a, np.maximum(b, _LEAST))
    if bernoulli:
        terms = terms + special.rel_entr(1 - a, np.maximum(1 - b, _LEAST))
    return terms
