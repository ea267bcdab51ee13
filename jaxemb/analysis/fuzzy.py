"""What words show as fuzzy sets of features: neighbours, asymmetry, entropy, hubs."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from scipy import stats

from jaxemb.analysis import figures
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import function_words
from jaxemb.eval.analogy import Accuracies
from jaxemb.eval.function_words import Ranking
from jaxemb.eval.intervals import Interval
from jaxemb.spaces import fuzzy, normalize, retrieval
from jaxemb.spaces.fuzzy import FuzzyEmbedding, Measure, Normaliser, Products

Set = Float[np.ndarray, " dim"]
Neighbours = list[tuple[str, float]]  # nearest first

# Sign to what it does to sets, and to raw vectors where the paper names an analogue.
_SIGNS: dict[str, tuple[Callable[[Set, Set], Set], Callable | None]] = {
    "|": (fuzzy.union, None),
    "&": (fuzzy.intersection, np.add),
    "+": (fuzzy.disjoint_union, np.add),
    "-": (fuzzy.difference, np.subtract),
}
_ALIASES = {"∪": "|", "∩": "&", "⊔": "+", "\\": "-"}


class Expression(NamedTuple):
    """Words and the operations between them, taken from left to right."""

    words: tuple[str, ...]
    signs: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Expression":
        r"""Reads `rose | violet`: a word, or words and signs in turns, with spaces.

        `|` or `∪` is union, `&` or `∩` intersection, `+` or `⊔` disjoint union, `-` or
        `\` difference.
        """
        words, signs = text.split()[::2], text.split()[1::2]
        signs = [_ALIASES.get(sign, sign) for sign in signs]
        if len(words) != len(signs) + 1 or not set(signs) <= set(_SIGNS):
            raise InputError(
                f"{text!r}: expected words with |, &, + or - between them, all parted "
                "by spaces"
            )
        return cls(tuple(words), tuple(signs))


@dataclasses.dataclass(frozen=True, eq=False)
class FuzzySpace:
    """A table of words and the same words as fuzzy sets."""

    vectors: WordVectors
    embedding: FuzzyEmbedding

    @classmethod
    def of(
        cls, vectors: WordVectors, normaliser: Normaliser = "softmax"
    ) -> "FuzzySpace":
        """Reads a table as fuzzy sets."""
        return cls(vectors, FuzzyEmbedding.from_vectors(vectors.matrix, normaliser))

    def knows(self, expression: str) -> bool:
        """Whether the table has all words of an expression."""
        return all(w in self.vectors for w in Expression.parse(expression).words)

    def set_of(self, expression: str) -> Set:
        """The set that an expression stands for."""
        words, signs = Expression.parse(expression)
        first, *rest = (np.exp(self.embedding.log_p[self._row(w)]) for w in words)
        for sign, other in zip(signs, rest, strict=True):
            first = _SIGNS[sign][0](first, other)
        return first

    def neighbours(
        self, expression: str, k: int = 10, measure: Measure = fuzzy.PRINTED
    ) -> Neighbours:
        """The words most like an expression; those it is made of are left out."""
        target = self.set_of(expression)
        made = measure.products(target[np.newaxis], self.embedding)
        rows = self._best((made.queries @ made.rows.T)[0], expression, k)
        found = np.exp(self.embedding.log_p[rows])
        alike = measure.similarity(np.broadcast_to(target, found.shape), found)
        return self._named(rows, np.asarray(alike))

    def raw_neighbours(self, expression: str, k: int = 10) -> Neighbours | None:
        """By cosine to the sum or difference of vectors; None for a union.

        The paper takes addition for the analogue of intersection, and names none of
        union.
        """
        words, signs = Expression.parse(expression)
        first, *rest = (np.float64(self.vectors.matrix[self._row(w)]) for w in words)
        for sign, other in zip(signs, rest, strict=True):
            analogue = _SIGNS[sign][1]
            if analogue is None:
                return None
            first = analogue(first, other)
        unit = normalize.unit(self.vectors.matrix)
        scores = unit @ (first / (np.linalg.norm(first) or 1))
        rows = self._best(scores, expression, k)
        return self._named(rows, scores[rows])

    def _row(self, word: str) -> int:
        self.vectors[word]  # which says what is wrong of a word that is missing
        return self.vectors.index[word]

    def _best(
        self, scores: Float[np.ndarray, " words"], expression: str, k: int
    ) -> Int[np.ndarray, " k"]:
        scores = scores.copy()
        own = [self.vectors.index[w] for w in Expression.parse(expression).words]
        scores[own] = -np.inf
        order = np.argsort(-scores, kind="stable")[:k]
        return order[scores[order] > -np.inf]

    def _named(self, rows: np.ndarray, scores: np.ndarray) -> Neighbours:
        names = (self.vectors.words[row] for row in rows)
        return list(zip(names, map(float, scores), strict=True))


class Asymmetry(NamedTuple):
    """A measure of two expressions, in both directions."""

    first: str
    second: str
    forward: float
    backward: float


def asymmetry_report(
    space: FuzzySpace, pairs: Sequence[tuple[str, str]], measure: Measure
) -> list[Asymmetry]:
    """Divergences (not similarities) of pairs of expressions, both ways."""
    found = []
    for first, second in pairs:
        a, b = space.set_of(first), space.set_of(second)
        there, back = -measure.similarity(a, b), -measure.similarity(b, a)
        found.append(Asymmetry(first, second, float(there), float(back)))
    return found


def top_entropy_words(
    space: FuzzySpace,
    known: Sequence[str],
    *,
    counts: Int[np.ndarray, " words"] | None = None,
    least: int = 100,
) -> Ranking:
    """Frequent words by falling entropy; see `jaxemb.eval.function_words.ranked`."""
    entropies = np.asarray(fuzzy.entropy(space.embedding.p))
    return function_words.ranked(
        space.vectors.words, entropies, known, counts=counts, least=least
    )


def inclusion_scores(
    space: FuzzySpace, pairs: Sequence[tuple[str, str]]
) -> Float[np.ndarray, " pairs"]:
    """Which part of its features each first word has no more than the second has.

    Above one half, the first lies in the second rather than the other way round. The
    paper ties inclusion to hyponymy and shows nothing of it: this is beyond it.
    """
    first, second = (
        np.stack([space.set_of(pair[side]) for pair in pairs]) for side in (0, 1)
    )
    return np.asarray(fuzzy.inclusion(first, second))


@dataclasses.dataclass(frozen=True, eq=False)
class Hubs:
    """How often words are among the neighbours of others."""

    counts: Int[np.ndarray, " words"]
    words: tuple[str, ...]
    k: int
    queries: int

    @property
    def skewness(self) -> float:
        """Of the counts: 0 where all are as often, large where a few always are."""
        return float(stats.skew(self.counts))

    @property
    def never(self) -> float:
        """The share of words that are nobody's neighbour."""
        return float(np.mean(self.counts == 0))

    def top(self, n: int = 10) -> list[tuple[str, int]]:
        """The words that are neighbours most often."""
        order = np.argsort(-self.counts, kind="stable")[:n]
        return [(self.words[row], int(self.counts[row])) for row in order]


def hub_report(
    space: FuzzySpace,
    measure: Measure | None = fuzzy.PRINTED,
    *,
    k: int = 10,
    queries: int = 5000,
    seed: int = 0,
) -> Hubs:
    """Counts how often each word is among the `k` nearest of others.

    Args:
      space: where.
      measure: of sets; None for cosines of the raw vectors.
      k: neighbours.
      queries: how many words are asked for theirs, drawn without repetition.
      seed: of the draw.
    """
    size = len(space.vectors)
    rows = np.random.default_rng(seed).permutation(size)[:queries]
    if measure is None:
        unit = normalize.unit(space.vectors.matrix)
        made = Products(unit[rows], unit)
    else:
        made = measure.products(np.exp(space.embedding.log_p[rows]), space.embedding)
    # Of length 1, since probabilities may be too small for the products of float32.
    asked = normalize.unit(made.queries)
    near = retrieval.nearest(asked, made.rows, min(k + 1, size)).rows
    own = near == rows[:, np.newaxis]
    own[~np.any(own, axis=1), -1] = True  # k of them, with or without the word itself
    counts = np.bincount(near[~own], minlength=size)
    return Hubs(counts, space.vectors.words, k, len(rows))


def dimension_sweep(
    scores: Mapping[str, Mapping[int, Interval]], metric: str = "Spearman"
) -> Figure:
    """A score of each system against the dimension of the vectors.

    Args:
      scores: system to dimension to score.
      metric: what the score is.
    """
    lines = {}
    for name, by_dim in scores.items():
        found = [by_dim[dim] for dim in sorted(by_dim)]
        bands = all(one.known for one in found)
        lines[name] = figures.Curve(
            sorted(by_dim),
            [one.mean for one in found],
            [one.low for one in found] if bands else None,
            [one.high for one in found] if bands else None,
        )
    title = f"{metric} by dimension"
    return figures.curves(lines, title, x_label="dimensions")


def hub_histogram(hubs: Mapping[str, Hubs]) -> Figure:
    """Which share of words is a neighbour at least so often, of several measures."""
    lines = {}
    for name, found in hubs.items():
        counts = np.sort(found.counts[found.counts > 0])[::-1]
        share = np.arange(1, len(counts) + 1) / len(found.counts)
        last = np.append(counts[1:] != counts[:-1], True)  # one point a count
        lines[name] = figures.Curve(counts[last].tolist(), share[last].tolist())
    one = next(iter(hubs.values()))
    title = (
        f"share of words that are among the {one.k} neighbours of so many of "
        f"{one.queries:,} words or more"
    )
    label = "times a neighbour"
    return figures.curves(lines, title, x_label=label, log_x=True, log_y=True)


def function_word_curves(rankings: Mapping[str, Ranking], most: int = 100) -> Figure:
    """Function words among the first n of several rankings."""
    lines = {}
    for name, ranking in rankings.items():
        curve = ranking.curve(most)
        lines[name] = figures.Curve(list(range(1, len(curve) + 1)), curve.tolist())
    title = "function words among the first n words"
    return figures.curves(lines, title, x_label="n")


def section_accuracies(systems: Mapping[str, Accuracies]) -> Figure:
    """Accuracy in per cent of every system on every section that has a score."""
    scored = {
        name: {group.name: 100 * group.accuracy for group in one.groups if group.scored}
        for name, one in systems.items()
    }
    names = list(next(iter(scored.values())))
    values = np.array([[one[name] for one in scored.values()] for name in names])
    return figures.heat_map(values, names, list(systems), "analogies, accuracy (%)")
