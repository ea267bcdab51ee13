"""From variables and examples to named scores."""

from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.delta_embedding.config import Config
from experiments.delta_embedding.task import Task
from jaxemb import train
from jaxemb.data import batching, squad, vocab
from jaxemb.eval import classification
from jaxemb.eval import squad as squad_eval

_BATCH = 200
_LONG_BATCH = 64  # of paragraphs, whose states are the most of the memory

Score = Callable[[Any, batching.Columns], dict[str, float]]


def scorer(config: Config, task: Task, module: Any) -> Score:
    """Accuracy of a classification; exact match and F1 of answers."""
    buckets = task.buckets(config)
    if config.kind.name == "reading":
        return _answers(config, task, module, buckets)
    count = train.everywhere(hits(module))

    def score(variables: Any, columns: batching.Columns) -> dict[str, float]:
        counts = [
            count(variables, batch)
            for batch in batching.in_order(columns, _BATCH, buckets)
        ]
        total = sum(counts[1:], start=counts[0])
        return {"accuracy": float(total.value)}

    return score


def hits(module: Any):
    """Counts the right answers of a batch, as a `Ratio` that adds up over batches."""

    def count(variables, batch) -> classification.Ratio:
        logits = module.apply(variables, batch, deterministic=True)
        return classification.accuracy(logits, batch["labels"], batch["weight"] > 0)

    return count


def _answers(
    config: Config, task: Task, module: Any, buckets: batching.Buckets
) -> Score:
    def decode(variables, batch) -> squad_eval.BestSpan:
        logits = module.apply(variables, batch, deterministic=True)
        words = batch["context"] != vocab.PAD_ID
        longest = config.limits.answer
        return squad_eval.best_span(*logits, words, max_length=longest)

    decode = train.everywhere(decode)

    def score(variables: Any, columns: batching.Columns) -> dict[str, float]:
        predicted, wanted = {}, {}
        for batch in batching.in_order(columns, _LONG_BATCH, buckets):
            found = decode(variables, batch)
            spans = zip(np.asarray(found.start), np.asarray(found.end), strict=True)
            for number, weight, span in zip(
                batch["number"], batch["weight"], spans, strict=True
            ):
                if weight:
                    question = task.questions[number]
                    own = question.source
                    predicted[own.id] = question.text(squad.Span(*map(int, span)))
                    wanted[own.id] = [answer.text for answer in own.answers]
        scores = squad_eval.squad_em_f1(predicted, wanted, resamples=0)
        return {"exact": scores.exact, "f1": scores.f1}

    return score
