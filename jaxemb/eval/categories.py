"""Categorisation: do clusters of words agree with classes that people gave them?

Classes are here the supersenses of QVEC's file, not those of AP or BLESS: a word is of
the class that has more than half of its weight, and of none otherwise.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float, Int

from jaxemb.data.features import WordFeatures
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import intervals, lookup
from jaxemb.eval.lookup import Case

Geometry = Literal["spherical", "euclidean"]
"""What k-means measures with: cosines to centres of length one, or distances."""


@dataclasses.dataclass(frozen=True)
class Purity:
    """The score of one table; nan where there is none."""

    purity: float  # mean over seeds
    low: float  # Student-t interval of the mean, over seeds: the same words each time
    high: float
    best: float  # of the seed whose clusters are tightest
    best_low: float  # Wilson's interval of `best`, over words
    best_high: float
    largest: float  # what one cluster of everything would have
    seeds: int
    clusters: int  # one a class
    scored: int  # words that the score is over
    covered: int  # words with a class that the table has, with a direction
    total: int  # words with a class
    geometry: str
    first_rows: int | None
    case: str
    recased: int  # words found only in another case than written
    zero_rows: int  # words whose row is all zeros; they count as missing
    values: tuple[float, ...]  # one a seed

    def cells(self) -> dict[str, str]:
        """The fields as the columns of a printed table."""
        common = f" ({self.scored} common)" if self.scored < self.covered else ""
        return {
            "purity": f"{self.purity:.3f}",
            "95 % interval": intervals.bounds_text(self.low, self.high),
            "seeds": str(self.seeds),
            "best": f"{self.best:.3f}",
            "its interval": intervals.bounds_text(self.best_low, self.best_high),
            "one cluster": f"{self.largest:.3f}",
            "clusters": str(self.clusters),
            "covered": f"{self.covered}/{self.total}{common}",
            "k-means": self.geometry,
            "case": lookup.case_text(self.case, self.recased),
        }


class Clusters(NamedTuple):
    """What k-means ended with."""

    labels: Int[np.ndarray, " words"]
    centres: Float[np.ndarray, "clusters dim"]
    cost: float  # sum of squared distances to the centres


def classes_of(features: WordFeatures) -> dict[str, str]:
    """The class of each word in which one feature has more than half of the weight."""
    weights = features.matrix / np.maximum(
        features.matrix.sum(axis=1, keepdims=True), 1e-300
    )
    largest = np.argmax(weights, axis=1)
    return {
        word: features.names[at]
        for word, at, row in zip(features.words, largest, weights, strict=True)
        if row[at] > 0.5
    }


def categorisation(
    vectors: WordVectors,
    features: WordFeatures,
    *,
    others: Sequence[WordVectors] = (),
    geometry: Geometry = "spherical",
    first_rows: int | None = None,
    case: Case = "fallback",
    seeds: int = 10,
    level: float = 0.95,
    seed: int = 0,
) -> Purity:
    """Purity of k-means clusters, as many as there are classes.

    Args:
      vectors: the table under test.
      features: words and their features, of which one is a word's class.
      others: count only words that these tables have too.
      geometry: see `Geometry`.
      first_rows: know only this many first rows.
      case: how words are looked up; see `Case`.
      seeds: how many times clusters are sought, each from another start.
      level: of the interval.
      seed: the first of the seeds.

    Returns:
      The score; nan where no word is covered, or only words of one class, or all rows
      are the same.
    """
    if seeds < 1:
        raise InputError(f"seeds is {seeds}; expected 1 or more")
    gold = classes_of(features)
    table = lookup.first_rows(vectors, first_rows)
    found = lookup.look_up(table, gold, case)
    known = found.usable
    for other in others:
        other = lookup.first_rows(other, first_rows)
        known = known & lookup.look_up(other, gold, case).usable
    names = [w for w, is_known in zip(found.words, known, strict=True) if is_known]
    _, labels = np.unique([gold[word] for word in names], return_inverse=True)
    rows = table.matrix[found.rows[known]].astype(np.float64)
    classes = int(labels.max()) + 1 if len(labels) else 0
    runs = []
    placed = _unit(rows) if geometry == "spherical" else rows
    if classes > 1 and np.max(np.ptp(placed, axis=0)) > 1e-9:  # else all in one place
        starts = range(seed, seed + seeds)
        runs = [k_means(rows, classes, geometry=geometry, seed=s) for s in starts]
    scores = [purity(run.labels, labels) for run in runs]
    interval = intervals.t_interval(scores, level)
    tightest = int(np.argmin([run.cost for run in runs])) if runs else -1
    right = round(scores[tightest] * len(names)) if runs else 0
    best = intervals.wilson(right, len(names) if runs else 0, level)
    return Purity(
        purity=interval.mean,
        low=interval.low,
        high=interval.high,
        best=best.mean,
        best_low=best.low,
        best_high=best.high,
        largest=float(np.max(np.bincount(labels)) / len(labels)) if runs else math.nan,
        seeds=seeds,
        clusters=classes,
        scored=len(names) if runs else 0,
        covered=int(np.sum(found.usable)),
        total=len(gold),
        geometry=geometry,
        first_rows=first_rows,
        case=case,
        recased=found.recased,
        zero_rows=int(np.sum(found.zero)),
        values=tuple(scores),
    )


def purity(
    clusters: Int[np.ndarray, " words"], classes: Int[np.ndarray, " words"]
) -> float:
    """Share of the words that are of the most frequent class of their cluster."""
    if not len(clusters):
        return math.nan
    counts = np.zeros((clusters.max() + 1, classes.max() + 1), np.int64)
    np.add.at(counts, (clusters, classes), 1)
    return float(counts.max(axis=1).sum() / len(clusters))


def k_means(
    rows: Float[np.ndarray, "words dim"],
    clusters: int,
    *,
    geometry: Geometry = "spherical",
    seed: int = 0,
    centres: Float[np.ndarray, "clusters dim"] | None = None,
    iterations: int = 300,
) -> Clusters:
    """Lloyd's k-means from k-means++ centres, until no word changes its cluster.

    Args:
      rows: one a word; for `spherical` only their directions count.
      clusters: how many, 1 or more and not more than words.
      geometry: see `Geometry`.
      seed: of the first centres.
      centres: the first centres, instead.
      iterations: at most.
    """
    if geometry not in get_args(Geometry):
        known = ", ".join(get_args(Geometry))
        raise InputError(f"geometry is {geometry!r}; expected one of {known}")
    if not 1 <= clusters <= len(rows):
        raise InputError(f"clusters is {clusters}; expected 1 to {len(rows)}")
    spherical = geometry == "spherical"
    rows = _unit(rows) if spherical else rows
    if centres is None:
        centres = _first_centres(rows, clusters, np.random.default_rng(seed))
    centres = _unit(centres) if spherical else centres
    labels = np.full(len(rows), -1)
    squares = np.sum(rows**2, axis=1)
    for _ in range(iterations):
        distances = _squared_distances(rows, squares, centres)
        new = np.argmin(distances, axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
        centres = _means(rows, labels, clusters, distances)
        centres = _unit(centres) if spherical else centres
    cost = float(np.sum((rows - centres[labels]) ** 2))
    return Clusters(labels, centres, cost)


def _first_centres(rows, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++: each further centre drawn by its squared distance to the others."""
    squares = np.sum(rows**2, axis=1)
    chosen = [int(rng.integers(len(rows)))]
    nearest = np.full(len(rows), np.inf)
    while len(chosen) < clusters:
        last = _squared_distances(rows, squares, rows[chosen[-1:]])[:, 0]
        nearest = np.minimum(nearest, last)
        nearest[chosen] = 0.0
        total = nearest.sum()
        weights = nearest / total if total > 0 else None
        chosen.append(int(rng.choice(len(rows), p=weights)))
    return rows[chosen]


def _means(rows, labels, clusters: int, distances) -> np.ndarray:
    sums = np.zeros((clusters, rows.shape[1]))
    np.add.at(sums, labels, rows)
    counts = np.bincount(labels, minlength=clusters)
    centres = sums / np.maximum(counts, 1)[:, np.newaxis]
    # An empty cluster starts again at the word that is farthest from its own centre.
    farthest = np.argsort(-distances[np.arange(len(rows)), labels])
    for empty, word in zip(np.flatnonzero(counts == 0), farthest, strict=False):
        centres[empty] = rows[word]
    return centres


def _squared_distances(rows, squares, centres) -> np.ndarray:
    products = rows @ centres.T
    lengths = np.sum(centres**2, axis=1)
    return np.maximum(squares[:, np.newaxis] - 2 * products + lengths[np.newaxis], 0.0)


def _unit(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms == 0, 1.0, norms)
