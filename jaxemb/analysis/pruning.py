"""What pruning removes and what it leaves: masks, orders of weights, features.

Pure functions of arrays; `experiments/compressing_bert` shows them.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.figure import Figure

from jaxemb.analysis import figures
from jaxemb.errors import InputError
from jaxemb.spaces.components import Components

Weights = Float[np.ndarray, "..."]
Mask = Bool[np.ndarray, "..."]


def mask_difference(first: Mask, second: Mask) -> float:
    """The share of places on which two masks differ; `2 s (1 - s)` by chance."""
    if first.shape != second.shape:
        raise InputError(f"masks of {first.shape} and {second.shape} are compared.")
    return float(np.mean(first != second))


def sort_order_movement(before: Weights, after: Weights) -> Float[np.ndarray, " n"]:
    """How far every weight moved in the order of |w|, as a share of all places.

    `|rank'(w) - rank(w)| / n`, by the rank before. 0 where the order stays, 1/3 in the
    mean where it is drawn anew.
    """
    ranks = [_ranks(np.abs(np.ravel(w))) for w in (before, after)]
    movement = np.empty(len(ranks[0]))
    movement[ranks[0]] = np.abs(ranks[1] - ranks[0]) / len(ranks[0])
    return movement


def movement_by_rank(
    before: Weights, after: Weights, bins: int, by: Literal["start", "end"] = "start"
) -> Float[np.ndarray, " bins"]:
    """Mean movement of the weights in each part of the order, before or after."""
    if by == "end":
        before, after = after, before
    parts = np.array_split(sort_order_movement(before, after), bins)
    return np.array([part.mean() for part in parts])


def pruned_magnitude_mass(weights: Weights, sparsity: float) -> float:
    """Which share of all |w| the removed weights have.

    Of normal weights `1 - exp(-q^2 / 2)`, with q the quantile of (1 + s) / 2.
    """
    sizes = np.sort(np.abs(np.ravel(weights)).astype(np.float64))
    return float(sizes[: int(sparsity * len(sizes) + 1e-3)].sum() / sizes.sum())


class Moments(NamedTuple):
    """Of the weights of a matrix."""

    mean: float
    deviation: float
    skewness: float
    kurtosis: float
    """Beyond that of the normal distribution, which has 0."""


def weight_moments(weights: Weights) -> Moments:
    """Mean, standard deviation, and how far from normal (Table 3)."""
    values = np.ravel(weights).astype(np.float64)
    apart = values - values.mean()
    deviation = apart.std()
    scaled = apart / deviation
    return Moments(
        float(values.mean()),
        float(deviation),
        float(np.mean(scaled**3)),
        float(np.mean(scaled**4) - 3),
    )


def head_sparsity_range(
    mask: Bool[np.ndarray, "inputs outputs"], heads: int, axis: int = 1
) -> tuple[float, float]:
    """The lowest and the highest share of zeros among a matrix's heads (Figure 4)."""
    if mask.shape[axis] % heads:
        raise InputError(f"{mask.shape} cannot be split into {heads} heads.")
    parts = np.split(~mask, heads, axis=axis)
    shares = [float(part.mean()) for part in parts]
    return min(shares), max(shares)


def weight_heatmap(
    weights: Float[np.ndarray, "rows columns"], rows: int, columns: int
) -> Float[np.ndarray, "{rows} {columns}"]:
    """Mean |w| of the blocks that a matrix is cut into (Figure 7)."""
    sizes = np.abs(weights)
    bands = np.array_split(sizes, rows, axis=0)
    return np.array(
        [[part.mean() for part in np.array_split(b, columns, axis=1)] for b in bands]
    )


def feature_cosine_by_layer(
    first: Sequence[Float[np.ndarray, "examples dim"]],
    second: Sequence[Float[np.ndarray, "examples dim"]],
) -> list[float]:
    """Mean cosine of an example's features in two models, layer by layer."""
    found = []
    for a, b in zip(first, second, strict=True):
        norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        products = np.sum(a.astype(np.float64) * b, axis=1)
        found.append(float(np.mean(products / np.where(norms > 0, norms, 1))))
    return found


def subspace_overlap(
    first: Float[np.ndarray, "examples dim"],
    second: Float[np.ndarray, "examples dim"],
    count: int,
) -> float:
    """How much of one model's principal components the other's span.

    `|U_1^T U_2|^2 / k` of the k largest components: 1 for the same space, k / dim by
    chance.
    """
    bases = [Components.of(x).directions[:, :count] for x in (first, second)]
    return float(np.sum((bases[0].T @ bases[1]) ** 2) / count)


def variance_in_components(
    features: Float[np.ndarray, "examples dim"], counts: Sequence[int]
) -> list[float]:
    """Which share of the variance the largest components have, for some numbers."""
    components = Components.of(features)
    return [components.share(slice(0, count)) for count in counts]


def attention_distance_by_layer(
    first: Sequence[Float[np.ndarray, "batch heads queries keys"]],
    second: Sequence[Float[np.ndarray, "batch heads queries keys"]],
    mask: Bool[np.ndarray, "batch length"],
) -> list[float]:
    """Mean total variation between two models' attention, layer by layer.

    `sum_k |A_k - B_k| / 2` of every real query: 0 for the same, 1 for none in common.
    """
    found = []
    for a, b in zip(first, second, strict=True):
        distance = np.abs(a - b).sum(axis=-1) / 2
        real = np.broadcast_to(mask[:, None, :], distance.shape)
        found.append(float(distance[real].mean()))
    return found


def attention_entropy_by_layer(
    attention: Sequence[Float[np.ndarray, "batch heads queries keys"]],
    mask: Bool[np.ndarray, "batch length"],
) -> list[float]:
    """Mean entropy of attention in nats, layer by layer."""
    found = []
    for weights in attention:
        logs = np.log(np.where(weights > 0, weights, 1))
        entropy = -(weights * logs).sum(axis=-1)
        real = np.broadcast_to(mask[:, None, :], entropy.shape)
        found.append(float(entropy[real].mean()))
    return found


class LossLine(NamedTuple):
    """A score as a line over the loss of pretraining."""

    slope: float
    """Points of score for each unit of loss."""
    correlation: float


def accuracy_vs_pretrain_loss(
    losses: Sequence[float], scores: Sequence[float]
) -> LossLine:
    """The line of least squares through scores over losses (Figure 2)."""
    slope = float(np.polyfit(losses, scores, 1)[0])
    return LossLine(slope, float(np.corrcoef(losses, scores)[0, 1]))


def sparsity_by_matrix(masks: Mapping[str, Mask]) -> dict[str, float]:
    """The share of zeros of every mask."""
    return {path: float(np.mean(~np.asarray(mask))) for path, mask in masks.items()}


def heat_figure(blocks: Float[np.ndarray, "rows columns"], title: str) -> Figure:
    """Mean |w| of blocks of a matrix, in hundredths of the largest."""
    shown = 100 * blocks / blocks.max()
    rows, columns = ([str(i + 1) for i in range(n)] for n in blocks.shape)
    return figures.heat_map(
        shown,
        rows,
        columns,
        title,
        x_label="blocks of outputs",
        y_label="blocks of inputs",
    )


def _ranks(values: Float[np.ndarray, " n"]) -> np.ndarray:
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks
