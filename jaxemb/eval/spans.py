"""Precision, recall and F1 of labelled spans, as conlleval counts them.

A span is right if it has the words and the type of one in the gold tags. Tags are read
in one of two modes, which scores name. "conlleval" is that program's: lenient, and the
one that papers report. "strict IOB2", or of another scheme, is seqeval's strict mode:
only spans that are well-formed in the scheme count. See `jaxemb.data.tags.spans`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from jaxemb.data import tags as tags_lib
from jaxemb.data.tags import Scheme
from jaxemb.errors import InputError
from jaxemb.eval import intervals


@dataclasses.dataclass(frozen=True)
class Counts:
    """Spans; counts of parts add up."""

    correct: int
    predicted: int
    gold: int

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.correct + other.correct,
            self.predicted + other.predicted,
            self.gold + other.gold,
        )

    @property
    def precision(self) -> float:
        """Share of the predicted spans that are right; 0 where there is none."""
        return _share(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        """Share of the gold spans that were found; 0 where there is none."""
        return _share(self.correct, self.gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of both; 0 where both are."""
        return _share(2 * self.correct, self.predicted + self.gold)


@dataclasses.dataclass(frozen=True)
class SpanScores:
    """The scores of predicted tags; shares are in [0, 1]."""

    whole: Counts
    types: Mapping[str, Counts]  # by name, in alphabetical order; they add up to whole
    low: float  # percentile bootstrap interval of F1, over sentences
    high: float
    accuracy: float  # share of the words whose tags are the same; nan without words
    words: int
    scheme: str | None  # of strict mode
    sentences: Int[np.ndarray, "sentences 3"] = dataclasses.field(
        compare=False, repr=False
    )  # correct, predicted and gold of each

    @property
    def mode(self) -> str:
        """How tags were read: "conlleval", or "strict" and the scheme."""
        return f"strict {self.scheme}" if self.scheme else "conlleval"

    @property
    def f1(self) -> float:
        """Micro F1, over all types."""
        return self.whole.f1

    @property
    def macro_f1(self) -> float:
        """The unweighted mean over the types; 0 where there is none."""
        return float(np.mean([c.f1 for c in self.types.values()] or [0.0]))

    def as_dict(self) -> dict[str, Any]:
        """Every figure by name, those of types under `types`."""
        return {
            **_figures(self.whole),
            "low": self.low,
            "high": self.high,
            "macro_f1": self.macro_f1,
            "accuracy": self.accuracy,
            "words": self.words,
            "mode": self.mode,
            "types": {name: _figures(counts) for name, counts in self.types.items()},
        }

    def cells(self) -> list[dict[str, str]]:
        """A row a type, then all, as a printed table has them (in per cent)."""
        rows = [*self.types.items(), ("all", self.whole)]
        return [
            {
                "type": name,
                "precision": f"{100 * counts.precision:.2f}",
                "recall": f"{100 * counts.recall:.2f}",
                "F1": f"{100 * counts.f1:.2f}",
                "gold": str(counts.gold),
            }
            for name, counts in rows
        ]


def span_scores(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    *,
    scheme: Scheme | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> SpanScores:
    """Compares predicted tags with the right ones, sentence by sentence.

    Args:
      gold: the tags of each sentence.
      predicted: as many sentences of as many words.
      scheme: None for conlleval mode; or strict mode, in which only spans count that
        are well-formed in this scheme.
      resamples: of the bootstrap that gives the interval; 0 for none.
      level: of the interval.
      seed: of the resamples.

    Raises:
      InputError: naming a sentence that differs in length, or a tag that is none.
    """
    if len(gold) != len(predicted):
        raise InputError(
            f"expected as many sentences as the {len(gold)} of the gold tags, found "
            f"{len(predicted)}"
        )
    types: dict[str, Counts] = {}
    sentences = np.zeros((len(gold), 3), np.int64)
    same = words = 0
    for number, (right, ours) in enumerate(zip(gold, predicted, strict=True)):
        if len(right) != len(ours):
            raise InputError(
                f"sentence {number}: expected {len(right)} tags, found {len(ours)}"
            )
        true = set(tags_lib.spans(right, scheme))
        found = set(tags_lib.spans(ours, scheme))
        for place, part in enumerate((true & found, found, true)):
            sentences[number, place] = len(part)
            for span in part:
                one = Counts(*(int(place == i) for i in range(3)))
                types[span.type] = types.get(span.type, Counts(0, 0, 0)) + one
        words += len(right)
        same += sum(a == b for a, b in zip(right, ours, strict=True))
    interval = intervals.bootstrap(
        f1_statistic(sentences), len(sentences), seed=seed, resamples=resamples,
        level=level,
    )  # fmt: skip
    return SpanScores(
        whole=sum(types.values(), start=Counts(0, 0, 0)),
        types=dict(sorted(types.items())),
        low=interval.low,
        high=interval.high,
        accuracy=same / words if words else float("nan"),
        words=words,
        scheme=scheme,
        sentences=sentences,
    )


def f1_statistic(counts: Int[np.ndarray, "sentences 3"]) -> intervals.Statistic:
    """Micro F1 of resampled sentences, for a bootstrap, paired or not."""

    def statistic(
        rows: Int[np.ndarray, "resamples items"],
    ) -> Float[np.ndarray, " resamples"]:
        correct, predicted, gold = (counts[:, i][rows].sum(axis=-1) for i in range(3))
        return 2 * correct / np.maximum(predicted + gold, 1)

    return statistic


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _figures(counts: Counts) -> dict[str, float]:
    return {
        "precision": counts.precision,
        "recall": counts.recall,
        "f1": counts.f1,
        **dataclasses.asdict(counts),
    }
