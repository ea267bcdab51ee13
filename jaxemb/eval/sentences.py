"""Sentence classification by a linear model over means of word vectors.

A sentence is the unweighted mean of the vectors of its words, of those that the table
has, and zero where it has none; a pair of sentences a, b is `[|a - b|; a * b]`. The
classifier is `logistic.fit`, chosen and tested as `validation` has it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from jaxemb.data.vectors import WordVectors
from jaxemb.eval import intervals, kinds, lookup, validation
from jaxemb.eval.kinds import Difference, Outcome
from jaxemb.eval.lookup import Case
from jaxemb.eval.settings import LEVEL, Settings
from jaxemb.eval.validation import Plan

Tokens = Sequence[tuple[str, ...]]


class Bags(NamedTuple):
    """Which rows of a table each sentence is the mean of."""

    weights: Any  # scipy's sparse (sentences, rows), each sentence's sum to 1 or 0
    covered: int  # running words that the table has
    total: int
    empty: int  # sentences without any such word

    def means(
        self, matrix: Float[np.ndarray, "rows dim"]
    ) -> Float[np.ndarray, "sentences dim"]:
        """The sentences in a space of the same words, in float64."""
        return np.asarray(self.weights @ np.asarray(matrix, np.float64))


def bags(vectors: WordVectors, sentences: Tokens, case: Case = "fallback") -> Bags:
    """Looks up every word of every sentence."""
    found = lookup.look_up(vectors, (w for tokens in sentences for w in tokens), case)
    row_of = dict(zip(found.words, found.rows.tolist(), strict=True))
    rows = [[row_of[w] for w in tokens if row_of[w] >= 0] for tokens in sentences]
    counts = np.array([len(row) for row in rows], np.int64)
    ends = np.concatenate([[0], np.cumsum(counts)])
    values = np.repeat(1 / np.maximum(counts, 1), counts)
    columns = np.array([row for one in rows for row in one], np.int64)
    shape = len(sentences), len(vectors)
    weights = sparse.csr_matrix((values, columns, ends), shape)
    weights.sum_duplicates()
    total = sum(map(len, sentences))
    return Bags(weights, int(counts.sum()), total, int(np.sum(counts == 0)))


def pair_features(
    first: Float[np.ndarray, "pairs dim"], second: Float[np.ndarray, "pairs dim"]
) -> Float[np.ndarray, "pairs _"]:
    """`[|a - b|; a * b]`, which do not change with the order of a and b."""
    return np.concatenate([np.abs(first - second), first * second], axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class SentenceTest:
    """A task: sentences or pairs of them, their classes, and a protocol."""

    name: str
    sentences: Tokens
    labels: Int[np.ndarray, " rows"]
    classes: int
    plan: Plan
    others: Tokens | None = None
    """The second sentence of each pair."""
    kind = "sentences"

    @property
    def words(self) -> set[str]:
        """The words of the sentences."""
        both = (*self.sentences, *(self.others or ()))
        return {word for tokens in both for word in tokens}

    @property
    def majority(self) -> float:
        """What the commonest class among the tested rows would score."""
        return validation.majority(self.labels, self.plan)

    def bags(self, vectors: WordVectors, case: Case = "fallback") -> tuple[Bags, ...]:
        """Of the sentences, or of the first and the second ones."""
        sides = [self.sentences, *([] if self.others is None else [self.others])]
        return tuple(bags(vectors, side, case) for side in sides)

    def features(
        self, found: Sequence[Bags], matrix: Float[np.ndarray, "words dim"]
    ) -> Float[np.ndarray, "rows _"]:
        """What the classifier sees, in a space of the words that were looked up in."""
        means = [side.means(matrix) for side in found]
        return means[0] if len(means) == 1 else pair_features(*means)

    def outcome(
        self, found: Sequence[Bags], matrix: Float[np.ndarray, "words dim"]
    ) -> Outcome:
        """The score of a space; see `bags`, which many spaces may share."""
        result = validation.cross_validate(
            self.features(found, matrix), self.labels, self.classes, self.plan
        )
        tested = result.hits[~np.isnan(result.hits)]
        value = intervals.wilson(int(tested.sum()), len(tested), LEVEL)
        fields = {
            "accuracy": value.mean,
            "low": value.low,
            "high": value.high,
            "majority": self.majority,
            "rounds": list(result.accuracies),
            "chosen": list(result.chosen),
            "gradient_norm": result.gradient_norm,
            "covered": sum(side.covered for side in found),
            "total": sum(side.total for side in found),
            "empty": sum(side.empty for side in found),
            "tested": len(tested),
            "interval": "Wilson over tested rows",
        }
        cells = {
            "accuracy": f"{value.mean:.3f}",
            "95 % interval": intervals.bounds_text(value.low, value.high),
            "majority": f"{self.majority:.3f}",
            "covered": f"{fields['covered']}/{fields['total']}",
        }
        return Outcome(fields, [cells], result.hits)

    def score(
        self, vectors: WordVectors, settings: Settings, tables: Sequence[WordVectors]
    ) -> Outcome:
        """Accuracy of a table."""
        del tables  # every sentence is classified, whatever words a table lacks
        return self.outcome(self.bags(vectors, settings.case), vectors.matrix)

    def compare(
        self,
        settings: Settings,
        vectors: kinds.Tables,
        outcomes: tuple[Outcome, Outcome],
    ) -> list[Difference]:
        """Accuracy, paired by row."""
        del vectors
        here, there = (np.asarray(outcome.items) for outcome in outcomes)
        found = kinds.paired(here, there, settings)
        tested = outcomes[0].fields["tested"]
        how = "paired bootstrap over tested rows"
        return [Difference("accuracy", *found, tested, tested, how)]
