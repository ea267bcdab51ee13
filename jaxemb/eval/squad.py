"""Reading comprehension: the span that is predicted, and SQuAD's exact match and F1.

Scores follow the official program of SQuAD 1.1: answers are lower-cased, without
punctuation, articles and repeated spaces; of several references the best counts.
"""

import collections
import dataclasses
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxemb.errors import InputError
from jaxemb.eval import intervals

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_MARKS = str.maketrans("", "", string.punctuation)  # the 32 of ASCII


@dataclasses.dataclass(frozen=True, eq=False)
class SquadScores:
    """Scores of a set of questions, in [0, 1]; nan where there are none."""

    exact: float
    exact_low: float  # percentile bootstrap intervals, over questions
    exact_high: float
    f1: float
    f1_low: float
    f1_high: float
    questions: int
    unanswered: int  # without a prediction; they count as wrong
    values: Mapping[str, np.ndarray]  # "exact" and "f1" of every question, in order


class BestSpan(NamedTuple):
    """First and last word of the best span, inclusive, and its score."""

    start: Any  # int32
    end: Any  # int32
    score: Any  # float


def normalize_answer(text: str) -> str:
    """Lower case, without punctuation, the words a, an and the, and extra spaces."""
    text = text.lower().translate(_WITHOUT_MARKS)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(prediction: str, reference: str) -> float:
    """1 where both are the same once normalised, else 0."""
    return float(normalize_answer(prediction) == normalize_answer(reference))


def token_f1(prediction: str, reference: str) -> float:
    """Harmonic mean of precision and recall of the normalised words.

    `2 shared / (words predicted + words of the reference)`, a word being shared as
    often as both have it; 0 where none is, also if both are empty.
    """
    given, wanted = (normalize_answer(text).split() for text in (prediction, reference))
    shared = sum((collections.Counter(given) & collections.Counter(wanted)).values())
    return 2 * shared / (len(given) + len(wanted)) if shared else 0.0


def squad_em_f1(
    predictions: Mapping[str, str],
    references: Mapping[str, Sequence[str]],
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> SquadScores:
    """Exact match and F1 of predicted answers, the mean over questions.

    Args:
      predictions: question id to answer; a question without one counts as wrong.
      references: question id to the answers that people gave, one at least.
      resamples: of the bootstrap over questions that gives the intervals; 0 for none.
      level: of the intervals.
      seed: of the resamples.

    Raises:
      InputError: naming a question without any reference.
    """
    values = {}
    for name, metric in (("exact", exact_match), ("f1", token_f1)):
        scores = []
        for question, answers in references.items():
            if not answers:
                raise InputError(
                    f"question {question} has no reference; leave out those that "
                    "cannot be answered"
                )
            given = predictions.get(question)
            of_answers = [0.0 if given is None else metric(given, a) for a in answers]
            scores.append(max(of_answers))
        values[name] = np.array(scores, np.float64)
    found = {
        name: intervals.bootstrap(
            lambda rows, of=of: of[rows].mean(axis=-1),
            len(of),
            seed=seed,
            resamples=resamples,
            level=level,
        )
        for name, of in values.items()
    }
    return SquadScores(
        exact=found["exact"].mean,
        exact_low=found["exact"].low,
        exact_high=found["exact"].high,
        f1=found["f1"].mean,
        f1_low=found["f1"].low,
        f1_high=found["f1"].high,
        questions=len(references),
        unanswered=sum(question not in predictions for question in references),
        values=values,
    )


def best_span(
    start: Float[Array, "*batch length"],
    end: Float[Array, "*batch length"],
    mask: Bool[Array, "*batch length"],
    *,
    max_length: int | None = None,
) -> BestSpan:
    """The span k <= l of real words with the highest `start[k] + end[l]`, exactly.

    With logits or log-probabilities that is the highest `p_start[k] p_end[l]`. For
    every l the best k is a running maximum, or one over a window, so the cost grows
    with the length and not with its square. Of equal spans the one that ends first is
    taken, and of these the one that begins first.

    Args:
      start: scores of every word as the first.
      end: scores of every word as the last.
      mask: True at real words, one at least.
      max_length: the most words of a span; None for any number.
    """
    if max_length is not None and max_length < 1:
        raise InputError(f"best_span: max_length is {max_length}; expected 1 or more.")
    length = start.shape[-1]
    start, end = (jnp.where(mask, x, -jnp.inf) for x in (start, end))
    window = length if max_length is None else min(max_length, length)
    if window == length:
        highest = jax.lax.cummax(start, axis=start.ndim - 1)
    else:
        ones = (1,) * (start.ndim - 1)
        before = [(0, 0)] * (start.ndim - 1) + [(window - 1, 0)]
        highest = jax.lax.reduce_window(
            start, -jnp.inf, jax.lax.max, (*ones, window), (*ones, 1), before
        )
    total = highest + end
    last = jnp.argmax(total, axis=-1)
    place = jnp.arange(length)
    place = place.reshape((1,) * (start.ndim - 1) + (length,))
    inside = (place <= last[..., None]) & (place > last[..., None] - window)
    first = jnp.argmax(jnp.where(inside, start, -jnp.inf), axis=-1)
    return BestSpan(
        first.astype(jnp.int32), last.astype(jnp.int32), jnp.max(total, axis=-1)
    )
