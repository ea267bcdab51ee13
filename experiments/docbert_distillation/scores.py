"""Predictions and their scores."""

from collections.abc import Sequence

import numpy as np

from experiments.docbert_distillation.data import Document, Task
from jaxemb.eval import classification, intervals


def predicted(task: Task, logits: np.ndarray) -> np.ndarray:
    """Which classes a document has: those of probability 1/2 and more, or the best."""
    if task.multi_label:
        return logits >= 0
    return np.argmax(logits, axis=1)[:, None] == np.arange(task.classes)


def score(task: Task, logits: np.ndarray, documents: Sequence[Document]) -> float:
    """Micro-averaged F1, which is the accuracy where a document has one class."""
    counts = classification.multilabel_counts(
        predicted(task, logits), task.right(documents)
    )
    return classification.micro_f1(counts)


def class_scores(
    task: Task, logits: np.ndarray, documents: Sequence[Document]
) -> np.ndarray:
    """F1 of every class; nan for a class that none of the documents has."""
    gold = task.right(documents)
    counts = classification.multilabel_counts(predicted(task, logits), gold)
    return np.where(gold.any(axis=0), classification.f1_of_classes(counts), np.nan)


def macro_f1(task: Task, logits: np.ndarray, documents: Sequence[Document]) -> float:
    """The mean F1 of the classes that documents have; IMDB's lack 5 and 6 stars."""
    return float(np.nanmean(class_scores(task, logits, documents)))


def agreement(task: Task, first: np.ndarray, second: np.ndarray) -> float:
    """The share of documents of which two models predict the same classes."""
    same = predicted(task, first) == predicted(task, second)
    return float(np.mean(np.all(same, axis=1)))


def resampled(
    task: Task, logits: np.ndarray, documents: Sequence[Document]
) -> intervals.Statistic:
    """The score, in points, of resamples of documents."""
    found, gold = predicted(task, logits), task.right(documents)
    hits = np.sum(found & gold, axis=1)
    sizes = np.sum(found, axis=1) + np.sum(gold, axis=1)
    return lambda rows: 200 * hits[rows].sum(-1) / np.maximum(1, sizes[rows].sum(-1))
