"""Classification metrics that add up over batches of unequal size."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Ratio:
    """`total / count`, kept apart so that batches of unequal size add up.

    Counts are int32, since float32 stops counting at 2^24; start a sum at
    `Ratio(0, 0)`.
    """

    total: Any  # int32 or float32 scalar; Any since jax rebuilds it with other leaves
    count: Any  # int32 scalar

    def __add__(self, other: "Ratio") -> "Ratio":
        return Ratio(self.total + other.total, self.count + other.count)

    @property
    def value(self) -> Float[Array, "..."]:
        """The ratio; nan when nothing was counted."""
        return jnp.asarray(self.total) / jnp.asarray(self.count)


def ratio(
    values: Float[Array, "*batch"] | Bool[Array, "*batch"],
    mask: Bool[Array, "*batch"] | None = None,
) -> Ratio:
    """Mean of one value an example over the unmasked, whatever is under the mask."""
    if mask is None:
        mask = jnp.ones(values.shape, bool)
    dtype = jnp.int32 if values.dtype == bool else jnp.float32
    total = jnp.sum(jnp.where(mask, values, 0), dtype=dtype)
    return Ratio(total, jnp.sum(mask, dtype=jnp.int32))


def accuracy(
    logits: Float[Array, "*batch classes"],
    labels: Int[Array, "*batch"],
    mask: Bool[Array, "*batch"] | None = None,
) -> Ratio:
    """Share of the unmasked positions whose highest logit is the label."""
    return ratio(jnp.argmax(logits, axis=-1) == labels, mask)


def confusion(
    predictions: Int[Array, "*batch"],
    labels: Int[Array, "*batch"],
    classes: int,
    mask: Bool[Array, "*batch"] | None = None,
) -> Int[Array, "{classes} {classes}"]:
    """Counts by true class (row) and predicted class (column); batches add.

    A masked position, or a class outside of `range(classes)`, is counted nowhere.
    """
    valid = (labels >= 0) & (labels < classes)
    valid &= (predictions >= 0) & (predictions < classes)
    if mask is not None:
        valid &= mask
    cell = jnp.where(valid, labels * classes + predictions, classes * classes)
    counts = jnp.bincount(cell.reshape(-1), length=classes * classes + 1)
    return counts[:-1].reshape(classes, classes).astype(jnp.int32)


@dataclasses.dataclass(frozen=True)
class Scores:
    """Precision, recall and F1 of every class and their unweighted means."""

    accuracy: float
    precision: np.ndarray  # classes
    recall: np.ndarray  # classes
    f1: np.ndarray  # classes
    macro_f1: float
    support: np.ndarray  # classes; examples of each


def scores(counts: Int[Array, "classes classes"] | Int[np.ndarray, "classes classes"]):
    """`Scores` of a confusion matrix.

    A class never predicted has precision 0, one that never occurs has recall 0, as in
    scikit-learn with `zero_division=0`; the macro mean is over all classes.
    """
    table = np.asarray(counts).astype(np.float64)
    hits, support, predicted = np.diag(table), table.sum(axis=1), table.sum(axis=0)
    f1 = _divide(2 * hits, support + predicted)
    return Scores(
        accuracy=float(hits.sum() / table.sum()) if table.sum() else float("nan"),
        precision=_divide(hits, predicted),
        recall=_divide(hits, support),
        f1=f1,
        macro_f1=float(np.mean(f1)) if table.sum() else float("nan"),
        support=support.astype(np.int64),
    )


def macro_f1(
    counts: Int[Array, "classes classes"] | Int[np.ndarray, "classes classes"],
):
    """Unweighted mean of the classes' F1, from a confusion matrix."""
    return scores(counts).macro_f1


def auc(
    scores: Float[np.ndarray, " examples"], positive: Bool[np.ndarray, " examples"]
) -> float:
    """Area under the ROC curve: of pairs of a positive and a negative, those in order.

        AUC = (sum of the positives' ranks - P (P + 1) / 2) / (P N)

    with mean ranks for equal scores, so that such a pair counts half. nan where all
    examples are of one class.
    """
    return float(_areas(np.asarray(scores)[:, np.newaxis], [positive])[0])


def auc_ovr(
    scores: Float[np.ndarray, "examples classes"], labels: Int[np.ndarray, " examples"]
) -> float:
    """The unweighted mean over classes of the `auc` of each against all others.

    Scores of a class may be on any scale of their own, but softmax first where they are
    logits: it is the scores of different examples that are compared. A class that does
    not occur has no area, and makes the mean nan.
    """
    classes = np.arange(scores.shape[1])
    return float(np.mean(_areas(scores, [labels == c for c in classes])))


def _areas(
    scores: Float[np.ndarray, "examples columns"],
    positive: Sequence[Bool[np.ndarray, " examples"]],
) -> Float[np.ndarray, " columns"]:
    """The area of each column; ranks of positives are places among sorted scores."""
    areas = np.full(scores.shape[1], np.nan)
    ordered = np.sort(scores, axis=0)
    for column, hits in enumerate(positive):
        count, others = int(np.sum(hits)), int(np.sum(~hits))
        if not count or not others or np.isnan(ordered[-1, column]):
            continue
        found, places = scores[hits, column], ordered[:, column]
        below = np.searchsorted(places, found, "left")
        upto = np.searchsorted(places, found, "right")
        ranks = (below + upto + 1) / 2
        excess = np.sum(ranks) - count * (count + 1) / 2
        areas[column] = excess / (count * others)
    return areas


def _divide(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def multilabel_counts(
    predicted: Bool[np.ndarray, "examples classes"],
    gold: Bool[np.ndarray, "examples classes"],
) -> Int[np.ndarray, "3 classes"]:
    """Hits, false alarms and misses of every class, of which examples have any number.

    `micro_f1` of their sum is what document classification calls F1.
    """
    return np.stack(
        [
            np.sum(predicted & gold, axis=0),
            np.sum(predicted & ~gold, axis=0),
            np.sum(~predicted & gold, axis=0),
        ]
    )


def micro_f1(counts: Int[np.ndarray, "3 classes"]) -> float:
    """`2 h / (2 h + f + m)` of all classes' hits, false alarms and misses; 0 of none.

    Of one predicted and one right class an example it is the accuracy.
    """
    hits, alarms, misses = (int(total) for total in np.sum(counts, axis=1))
    return 2 * hits / max(1, 2 * hits + alarms + misses)


def f1_of_classes(
    counts: Int[np.ndarray, "3 classes"],
) -> Float[np.ndarray, " classes"]:
    """F1 of every class by itself; 0 for one that is neither there nor predicted."""
    hits, alarms, misses = counts.astype(np.float64)
    return _divide(2 * hits, 2 * hits + alarms + misses)
