"""What alpha does to a model's embeddings: scores, directions, clusters, the metric."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from jaxemb.analysis import figures
from jaxemb.spaces import alpha as alpha_lib
from jaxemb.spaces.alpha import Limit, Metric, Model

Embedding = Float[np.ndarray, "words dim"]
# From an embedding to its score on each measure.
Score = Callable[[Embedding], Mapping[str, float]]


class Sweep(NamedTuple):
    """Scores along a family of embeddings."""

    alphas: tuple[float, ...]  # ascending
    scores: dict[str, tuple[float, ...]]  # measure to one an alpha
    limits: dict[str, dict[str, float]]  # limit to its scores


class FisherSpectrum(NamedTuple):
    """How the Fisher matrix stretches directions."""

    values: Float[np.ndarray, " dim"]  # eigenvalues, largest first
    isotropy: float
    """`(sum of values)^2 / (dim · sum of squares)`: 1 where the metric is the plain one
    but for scale, 1 / dim where it knows one direction only."""


class LimitClusters(NamedTuple):
    """The clusters of words that share their limit."""

    contexts: Int[np.ndarray, " clusters"]  # the rows they share, of the largest first
    sizes: Int[np.ndarray, " clusters"]  # words in each
    own: float  # share of the words that are their own context
    alone: float  # share of the words that share their limit with no other


class Drift(NamedTuple):
    """How far embeddings have turned from those at alpha = 1."""

    alphas: tuple[float, ...]
    mean: tuple[float, ...]  # of the cosines over words, one an alpha
    low: tuple[float, ...]  # their 5 % quantile
    high: tuple[float, ...]  # and 95 %
    limit: float  # the mean at minus infinity


def alpha_sweep(
    model: Model,
    alphas: Iterable[float],
    score: Score,
    limits: Iterable[Limit] = (Limit(),),
) -> Sweep:
    """Scores every member of a family; one embedding is in memory at a time.

    Args:
      model: tables and reference.
      alphas: in any order.
      score: of an embedding whose rows have any length.
      limits: at minus infinity.
    """
    by_alpha: dict[float, Mapping[str, float]] = {}
    by_limit: dict[str, dict[str, float]] = {}
    for member, embedding in alpha_lib.family(model, alphas, limits):
        if isinstance(member, Limit):
            by_limit[str(member)] = dict(score(embedding))
        else:
            by_alpha[member] = score(embedding)
    order = sorted(by_alpha)
    measures = by_alpha[order[0]] if order else {}
    scores = {m: tuple(float(by_alpha[a][m]) for a in order) for m in measures}
    return Sweep(tuple(order), scores, by_limit)


def sweep_figure(
    lines: Mapping[str, figures.Curve],
    title: str,
    *,
    limits: Mapping[str, float] | None = None,
) -> Figure:
    """Scores against alpha, and those of limits as dotted lines.

    Args:
      lines: system to its curve over alphas.
      title: above the figure.
      limits: a score of each system at minus infinity, and those of baselines.
    """
    return figures.curves(lines, title, x_label="α", levels=limits)


def fisher_spectrum(model: Model) -> FisherSpectrum:
    """The eigenvalues of `I(p0)`, and how equal they are."""
    values = np.linalg.eigvalsh(model.fisher)[::-1]
    isotropy = values.sum() ** 2 / (len(values) * np.sum(values**2))
    return FisherSpectrum(values, float(isotropy))


def spectrum_figure(spectra: Mapping[str, FisherSpectrum]) -> Figure:
    """Eigenvalues of Fisher matrices, over the largest of each."""
    lines = {}
    for name, found in spectra.items():
        places = list(range(1, len(found.values) + 1))
        shares = (found.values / found.values[0]).tolist()
        lines[f"{name}, isotropy {found.isotropy:.2f}"] = figures.Curve(places, shares)
    title = "eigenvalues of the Fisher matrix, over the largest"
    return figures.curves(lines, title, x_label="place", log_y=True)


def limit_clusters(
    model: Model, contexts: Int[np.ndarray, "words k"] | None = None
) -> LimitClusters:
    """Which words share `argmax_c p_w(c) / p0(c)`, and with it their limit.

    Args:
      model: tables and reference; a word is its own context in the row of its number.
      contexts: the rows that `top_contexts` gave, if they are known.
    """
    if contexts is None:
        contexts, _ = alpha_lib.top_contexts(model, 1)
    first = contexts[:, 0]
    found, sizes = np.unique(first, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    return LimitClusters(
        contexts=found[order],
        sizes=sizes[order],
        own=float(np.mean(first == np.arange(len(first)))),
        alone=float(np.sum(sizes == 1) / len(first)),
    )


def clusters_figure(clusters: Mapping[str, LimitClusters]) -> Figure:
    """Sizes of the limits' clusters, the largest first."""
    lines = {
        f"{name}, {len(found.sizes):,} clusters": figures.Curve(
            list(range(1, len(found.sizes) + 1)), found.sizes.tolist()
        )
        for name, found in clusters.items()
    }
    title = "words that share a limit, by size of the cluster"
    return figures.curves(lines, title, x_label="place", log_x=True, log_y=True)


def alpha_direction_drift(
    model: Model, alphas: Sequence[float], metric: Metric = "F"
) -> Drift:
    """Cosines, in a metric, of words' embeddings with their own at alpha = 1."""

    def unit(embedding: Embedding) -> Embedding:
        rows = alpha_lib.normalised(embedding, model, metric)
        return alpha_lib.in_metric(rows, model, metric)

    start = unit(alpha_lib.alpha_embedding(model, 1.0))
    alphas = sorted(set(map(float, alphas)))
    cosines = {
        member: np.einsum("wd,wd->w", unit(embedding), start)
        for member, embedding in alpha_lib.family(model, alphas, (Limit(),))
    }
    limit = float(cosines.pop(Limit()).mean())
    low, high = (
        tuple(float(np.quantile(one, q)) for one in cosines.values())
        for q in (0.05, 0.95)
    )
    mean = tuple(float(one.mean()) for one in cosines.values())
    return Drift(tuple(alphas), mean, low, high, limit)


def drift_figure(drifts: Mapping[str, Drift]) -> Figure:
    """Cosines with the embedding at alpha = 1, the mean and 90 % of the words."""
    lines = {
        name: figures.Curve(d.alphas, d.mean, d.low, d.high)
        for name, d in drifts.items()
    }
    title = "cosine with the same word at α = 1; dotted: the limit"
    levels = {name: d.limit for name, d in drifts.items()}
    return figures.curves(lines, title, x_label="α", levels=levels)
