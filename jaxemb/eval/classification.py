"""Classification metrics that add up over batches of unequal size."""

import dataclasses
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


def _divide(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
