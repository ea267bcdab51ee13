"""Similarity, purity and analogies: every embedding is scored, and nothing chosen."""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from experiments.alpha_embeddings import data, model
from experiments.alpha_embeddings.config import PARTS, Config
from experiments.alpha_embeddings.model import Name
from jaxemb import terminal
from jaxemb.data import files
from jaxemb.data.vectors import WordVectors, write_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval import analogy, categories, correlation, similarity

ALL, PURITY, TOTAL, TIED = "all", "purity", "total", "tied"
KINDS = "semantic", "syntactic", TOTAL


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """What is known of some embeddings of one trained model."""

    scores: dict[str, dict[str, float]]
    """Embedding to measure to score."""
    cosines: dict[str, np.ndarray]
    """Of the pooled pairs; nan where a word is missing."""
    items: dict[str, np.ndarray]
    """Of the questions: 1 right, 0 wrong, nan not asked."""

    def write(self, path: Path) -> None:
        """Appears once it is whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.write_atomically(path) as part:
            with part.open("wb") as stream:
                np.savez_compressed(
                    stream,
                    scores=json.dumps(self.scores),
                    names=json.dumps([*self.scores]),
                    cosines=_stacked(self.cosines),
                    items=_stacked(self.items),
                )

    @classmethod
    def read(cls, path: Path) -> "Part":
        """Reads what `write` wrote."""
        with np.load(path) as kept:
            names = json.loads(str(kept["names"]))
            arrays = [
                dict(zip(names, kept[field].astype(np.float64), strict=False))
                for field in ("cosines", "items")
            ]
            return cls(json.loads(str(kept["scores"])), *arrays)

    @classmethod
    def merged(cls, parts: Iterable["Part"]) -> "Part":
        """Several as one."""
        whole = cls({}, {}, {})
        for part in parts:
            whole.scores.update(part.scores)
            whole.cosines.update(part.cosines)
            whole.items.update(part.items)
        return whole


def _stacked(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    if not arrays:
        return np.zeros((0, 0), np.float32)
    return np.stack(list(arrays.values())).astype(np.float32)


# ---------------------------------------------------------------------------- measured


def measure(
    config: Config,
    source: data.Source,
    tests: data.Tests,
    published: Mapping[str, WordVectors],
    workdir: Path,
) -> dict[str, list[Part]]:
    """Name of the tables to what is known of each seed; parts that are there stay.

    What was published has no seeds, and is with the first.
    """
    found: dict[str, list[Part]] = {}
    pairs = list(itertools.product(config.variants, config.references))
    for one in source.models():
        rows = tested_rows(one, tests)
        if tests.analogies:
            rows = None  # analogies are searched for among all words
        words = one.tables.words
        words = words if rows is None else tuple(words[r] for r in rows)
        board = Board(config, tests, words)
        parts = []
        for label in ("baselines", *pairs):
            name = label if isinstance(label, str) else "-".join(label)
            path = workdir / "parts" / one.label / f"{name}.npz"
            if not path.exists():
                if isinstance(label, str):
                    other = None if one.seed else published.get(one.name)
                    plain = model.baselines(one.tables, other, rows)
                    part = board.score(plain.items())
                else:
                    part = board.score(_embedded(config, one, label, rows, workdir))
                part.write(path)
                if config.run.progress:
                    terminal.say(f"{one.label} · {name}: {_told(part)}")
            parts.append(Part.read(path))
        found.setdefault(one.name, []).append(Part.merged(parts))
    return found


def tested_rows(one: data.Model, tests: data.Tests) -> np.ndarray:
    """The rows of the words that tests name."""
    pairs = itertools.chain(*tests.similarity.values())
    questions = itertools.chain(*tests.analogies.values())
    named = itertools.chain(*(pair[:2] for pair in pairs), *questions)
    wanted = {word.lower() for word in named}
    if tests.classes is not None:
        wanted |= set(tests.classes.words)
    rows = [row for row, word in enumerate(one.tables.words) if word in wanted]
    if not rows:
        raise InputError(
            f"the {len(one.tables.words):,} words of the tables are in no test; "
            "expected English words in lower case"
        )
    return np.array(rows, np.int64)


def _embedded(
    config: Config, one: data.Model, label, rows, workdir: Path
) -> Iterator[tuple[str, np.ndarray]]:
    """Embeddings of a variant and a reference, by name, perhaps written too."""
    variant, reference = label
    of = model.geometry(config, one, variant, reference, rows)
    for member, embedding in model.members(config, of):
        for metric in config.metrics:
            matrix = model.in_metric(embedding, of, metric)
            name = Name(variant, reference, metric, member)
            if config.export:
                words = one.tables.words
                words = words if rows is None else tuple(words[r] for r in rows)
                place = workdir / "vectors" / one.label / f"{name}.txt"
                write_word_vectors(place, WordVectors(words, matrix, unique=True))
            yield str(name), matrix


def _told(part: Part) -> str:
    """The best of the first measure that there is."""
    known = next(iter(part.scores.values()))
    name = next(m for m in (ALL, TOTAL, PURITY) if m in known)
    best = max(part.scores, key=lambda one: part.scores[one][name])
    return f"{name} up to {part.scores[best][name]:.2f}, {best}"


class Board:
    """Scores embeddings of one vocabulary."""

    def __init__(self, config: Config, tests: data.Tests, words: tuple[str, ...]):
        self._config, self._tests, self._words = config, tests, words
        rows = [(n, pair) for n, pairs in tests.similarity.items() for pair in pairs]
        self._pairs = [pair for _, pair in rows]
        self._list_of = np.array([name for name, _ in rows])

    def score(self, embeddings: Iterable[tuple[str, np.ndarray]]) -> Part:
        """Everything that the tests tell of some embeddings."""
        part = Part({}, {}, {})
        for name, matrix in embeddings:
            table = WordVectors(self._words, np.ascontiguousarray(matrix), unique=True)
            scores: dict[str, float] = {}
            if self._pairs:
                part.cosines[name] = self._similarity(table, scores)
            if self._tests.classes is not None:
                found = categories.categorisation(
                    table, self._tests.classes, seeds=self._config.restarts
                )
                scores[PURITY] = 100 * found.purity
            if self._tests.analogies:
                part.items[name] = self._analogies(table, scores)
            part.scores[name] = scores
        return part

    def _similarity(self, table: WordVectors, scores: dict[str, float]) -> np.ndarray:
        cosines = similarity.pair_cosines(table, self._pairs, case="lower")
        people = np.array([pair.score for pair in self._pairs])
        for name in self._tests.similarity:
            own = self._list_of == name
            scores[name] = 100 * spearman(cosines[own], people[own])
        pooled = cosines[~np.isin(self._list_of, PARTS)]
        target = np.array([pair.score for pair in self._tests.pooled])
        scores[ALL] = 100 * spearman(pooled, target)
        return pooled

    def _analogies(self, table: WordVectors, scores: dict[str, float]) -> np.ndarray:
        found = analogy.analogies(
            table,
            self._tests.analogies,
            method="norm",
            normalise=False,
            case="lower",
        )
        sections = found.semantic, found.syntactic, found.whole
        for kind, section in zip(KINDS, sections, strict=True):
            if section is not None:
                scores[kind] = 100 * section.accuracy
        scores[TIED] = 100 * found.tied / max(found.whole.covered, 1)
        return found.items


def spearman(cosines: np.ndarray, people: np.ndarray) -> float:
    """Over the pairs that have a cosine."""
    known = ~np.isnan(cosines)
    if not known.any():
        return float("nan")
    statistic = correlation.spearman_statistic(cosines[known], people[known])
    return float(statistic(np.arange(known.sum())[np.newaxis])[0])
