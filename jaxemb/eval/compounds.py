"""Compositionality of noun compounds: does a space know which mean what they say?

Two protocols. `constituents`: a compound is as compositional as its two words are
alike. `joined`: as the vector of the compound, one word of the text (`swimming_pool`),
is like what its two words make together: their sum, or as fuzzy sets their intersection
(which is the sum but for a factor a column; see `jaxemb.spaces.fuzzy.intersection`).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Int

from jaxemb.data.compounds import Compound
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import pair_scores
from jaxemb.eval.lookup import Case
from jaxemb.eval.pair_scores import PairScores
from jaxemb.spaces import fuzzy
from jaxemb.spaces.fuzzy import FuzzyEmbedding, Measure

Protocol = Literal["constituents", "joined"]

# "Adjusted to account for asymmetry": both directions, head to modifier and back.
BOTH_WAYS = Measure(direction="mean")


def by_cosine(
    vectors: WordVectors,
    compounds: Sequence[Compound],
    protocol: Protocol = "constituents",
    *,
    case: Case = "fallback",
) -> PairScores:
    """`cos(head, modifier)`, or `cos(compound, head + modifier)`."""
    rows = _rows(vectors, compounds, protocol, case)
    head, modifier, *joined = vectors.matrix[_covered(rows).T].astype(np.float64)
    pair = (joined[0], head + modifier) if joined else (head, modifier)
    return _scores(rows, pair_scores.cosines(*pair), compounds)


def by_sets(
    vectors: WordVectors,
    embedding: FuzzyEmbedding,
    compounds: Sequence[Compound],
    protocol: Protocol = "constituents",
    measure: Measure = BOTH_WAYS,
    *,
    case: Case = "fallback",
) -> PairScores:
    """`measure(head, modifier)`, or `measure(compound, head ∩ modifier)`."""
    rows = _rows(vectors, compounds, protocol, case)
    head, modifier, *joined = np.exp(embedding.log_p[_covered(rows).T])
    pair = head, modifier
    if joined:
        pair = joined[0], fuzzy.intersection(head, modifier)
    return _scores(rows, np.asarray(measure.similarity(*pair)), compounds)


def _rows(vectors, compounds, protocol, case) -> Int[np.ndarray, "compounds words"]:
    names = [
        (c.head, c.modifier, *((c.joined,) if protocol == "joined" else ()))
        for c in compounds
    ]
    return pair_scores.rows_of(vectors, names, case)


def _covered(rows: np.ndarray) -> np.ndarray:
    return rows[np.all(rows >= 0, axis=1)]


def _scores(
    rows: np.ndarray, values: np.ndarray, compounds: Sequence[Compound]
) -> PairScores:
    human = np.array([compound.score for compound in compounds], np.float64)
    return PairScores(pair_scores.scored(rows, values), human)
