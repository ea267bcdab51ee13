"""`jaxemb eval`: every intrinsic test whose data are here, on one table or several."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from jaxemb import terminal
from jaxemb.data.analogies import Analogy
from jaxemb.data.features import WordFeatures
from jaxemb.data.pairs import WordPair
from jaxemb.data.semeval2012 import Relation
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import analogy, categories, intervals, qvec, relational, similarity
from jaxemb.eval.settings import LEVEL, Settings

_SAMPLE = 1000  # words whose neighbours are compared


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A score, and one value an item for differences where items can be paired."""

    fields: dict[str, Any]
    cells: list[dict[str, str]]
    items: Float[np.ndarray, " items"] | None = None  # nan where not scored


@dataclasses.dataclass(frozen=True)
class Difference:
    """A score less that of the first table, on what both of them cover."""

    metric: str
    difference: float
    low: float  # paired 95 % interval of `difference`
    high: float
    common: int
    total: int


@runtime_checkable
class Test(Protocol):
    """A test: what it is called, what it looks up, how it scores and compares."""

    @property
    def kind(self) -> str:
        """Name of the protocol; tests of one kind are printed as one table."""
        ...

    @property
    def name(self) -> str:
        """Name of the data."""
        ...

    @property
    def words(self) -> set[str]:
        """The words that are looked up."""
        ...

    def score(
        self, vectors: WordVectors, settings: Settings, tables: Sequence[WordVectors]
    ) -> Outcome:
        """The score of one of the tables."""
        ...

    def compare(
        self,
        settings: Settings,
        vectors: tuple[WordVectors, WordVectors],
        outcomes: tuple[Outcome, Outcome],
    ) -> list[Difference]:
        """The first of two tables less the second."""
        ...


@dataclasses.dataclass(frozen=True)
class SimilarityTest:
    """Word similarity on one list."""

    name: str
    pairs: Sequence[WordPair]
    kind = "similarity"

    @property
    def words(self) -> set[str]:
        """The words of the pairs."""
        return {word for pair in self.pairs for word in pair[:2]}

    def score(self, vectors, settings, tables) -> Outcome:
        """Spearman and Pearson."""
        found = similarity.word_similarity(
            vectors,
            self.pairs,
            oov=settings.oov,
            others=tables,
            case=settings.case,
            **settings.bootstrap,
        )
        fields = {**dataclasses.asdict(found), "restrict": settings.restrict}
        return Outcome(fields, [found.cells()])

    def compare(self, settings, vectors, outcomes) -> list[Difference]:
        """Spearman on the pairs that both cover."""
        first, second = vectors
        found = similarity.compare_similarity(
            first, second, self.pairs, case=settings.case, **settings.bootstrap
        )
        bounds = found.difference, found.low, found.high
        return [Difference("spearman", *bounds, found.common, found.total)]


@dataclasses.dataclass(frozen=True)
class AnalogyTest:
    """Analogies, by section."""

    name: str
    sections: Mapping[str, Sequence[Analogy]]
    kind = "analogy"

    @property
    def words(self) -> set[str]:
        """The words of the questions."""
        return {w for rows in self.sections.values() for row in rows for w in row}

    def score(self, vectors, settings, tables) -> Outcome:
        """Accuracies."""
        # A zero vector cannot answer: under that policy the question is wrong.
        policies: dict[str, analogy.OOV] = {"zero": "wrong", "common": "common"}
        oov = policies.get(settings.oov, "skip")
        found, items = analogy.analogies_with_items(
            vectors,
            self.sections,
            oov=oov,
            others=tables,
            method=settings.method,
            normalise=not settings.raw_rows,
            **settings.look_up,
            **settings.bootstrap,
        )
        fields = found.as_dict()
        if settings.cumulative:
            fields["cumulative"] = analogy.cumulative(found)
        return Outcome(fields, found.cells(), items)

    def compare(self, settings, vectors, outcomes) -> list[Difference]:
        """Accuracy on the questions that both count."""
        return [_paired("accuracy", outcomes, settings)]


@dataclasses.dataclass(frozen=True)
class RelationalTest:
    """SemEval-2012 Task 2."""

    name: str
    relations: Sequence[Relation]
    kind = "relational"

    @property
    def words(self) -> set[str]:
        """The words of examples and rated pairs."""
        pairs = [p for r in self.relations for p in (*r.paradigms, *r.ratings)]
        return {word for pair in pairs for word in pair}

    def score(self, vectors, settings, tables) -> Outcome:
        """Spearman and MaxDiff, means over relations."""
        oov = settings.oov if settings.oov in ("zero", "common") else "skip"
        found = relational.relational_similarity(
            vectors,
            self.relations,
            oov=oov,
            others=tables,
            **settings.look_up,
            **settings.bootstrap,
        )
        items = np.array([r.spearman for r in found.relations], np.float64)
        return Outcome(found.as_dict(), [found.cells()], items)

    def compare(self, settings, vectors, outcomes) -> list[Difference]:
        """Spearman over the relations that both have one for."""
        return [_paired("spearman", outcomes, settings)]


@dataclasses.dataclass(frozen=True)
class QvecTest:
    """QVEC and QVEC-CCA."""

    name: str
    features: WordFeatures
    kind = "qvec"

    @property
    def words(self) -> set[str]:
        """The words with features."""
        return set(self.features.words)

    def score(self, vectors, settings, tables) -> Outcome:
        """The correlations."""
        others = tables if settings.oov == "common" else ()
        found = qvec.qvec(vectors, self.features, others=others, **self._how(settings))
        oov = "common" if settings.oov == "common" else "skip"
        fields = {**dataclasses.asdict(found), "oov": oov}
        return Outcome(fields, [{**found.cells(), "oov": oov}])

    def compare(self, settings, vectors, outcomes) -> list[Difference]:
        """Both scores on the words that both tables have."""
        first, second = vectors
        how = self._how(settings)
        differences = qvec.compare_qvec(first, second, self.features, **how)
        known = qvec.align(first, self.features, (second,), **settings.look_up)
        counts = len(known.rows), len(self.features.words)
        return [
            Difference(metric, found.mean, found.low, found.high, *counts)
            for metric, found in zip(("mean", "cca"), differences, strict=True)
        ]

    def _how(self, settings: Settings) -> dict[str, Any]:
        groups = 20 if settings.resamples else 0
        fixed = {"groups": groups, "level": LEVEL, "seed": settings.seed}
        return {**fixed, **settings.look_up}


@dataclasses.dataclass(frozen=True)
class CategoriesTest:
    """Purity of clusters against supersenses."""

    name: str
    features: WordFeatures
    kind = "categories"

    @property
    def words(self) -> set[str]:
        """The words with a class."""
        return set(categories.classes_of(self.features))

    def score(self, vectors, settings, tables) -> Outcome:
        """Purity."""
        oov = "common" if settings.oov == "common" else "skip"
        found = categories.categorisation(
            vectors,
            self.features,
            others=tables if oov == "common" else (),
            geometry=settings.k_means,
            level=LEVEL,
            seed=settings.seed,
            **settings.look_up,
        )
        fields = {**dataclasses.asdict(found), "oov": oov}
        cells = [{**found.cells(), "oov": oov}]
        return Outcome(fields, cells, np.array(found.values, np.float64))

    def compare(self, settings, vectors, outcomes) -> list[Difference]:
        """Purity, paired by seed; each table on the words that it has."""
        here, there = (outcome.items for outcome in outcomes)
        found = intervals.Interval(math.nan, math.nan, math.nan)
        if here.size and here.size == there.size:
            found = intervals.paired_t(here, there, LEVEL)
        covered = min(outcome.fields["covered"] for outcome in outcomes)
        counts = covered, outcomes[0].fields["total"]
        return [Difference("purity", found.mean, found.low, found.high, *counts)]


def run(
    names: Sequence[str],
    tables: Sequence[WordVectors],
    tests: Sequence[Test],
    settings: Settings,
    *,
    neighbours: bool = False,
    json: bool = False,
) -> None:
    """Scores every table on every test and prints scores, then differences.

    Args:
      names: what the tables are called.
      tables: the tables; differences are to the first.
      tests: in the order in which they are printed.
      settings: of the run.
      neighbours: whether to compare the neighbours that words have in the tables.
      json: print one object a line instead of tables.
    """
    several = len(tables) > 1
    how = settings.bootstrap
    lines: dict[str, list[dict[str, str]]] = {}  # kind to the rows of its table
    zero_rows = 0
    for test in tests:
        outcomes = [test.score(table, settings, tables) for table in tables]
        for name, outcome in zip(names, outcomes, strict=True):
            zero_rows = max(zero_rows, outcome.fields.get("zero_rows", 0))
            head = {"test": test.kind, "vectors": name, "set": test.name}
            _put(lines, head, outcome.fields | how, outcome.cells, several, json)
            running = outcome.fields.get("cumulative", ())
            cells = [{k: _text(v) for k, v in row.items()} for row in running]
            _put(lines, head | {"test": "cumulative"}, None, cells, several, json)
        pairs = list(zip(names, tables, outcomes, strict=True))
        for name, table, outcome in pairs[1:]:
            both = (table, tables[0]), (outcome, outcomes[0])
            for found in test.compare(settings, *both):
                head = {"test": "difference", "vectors": name, "less": names[0]}
                head |= {"of": test.kind, "set": test.name}
                fields = {**dataclasses.asdict(found), "case": settings.case}
                _put(lines, head, fields | how, [_cells(found)], several, json)
    if neighbours:
        _compare_neighbours(names, tables, settings, lines, json)
    kinds = sorted(lines, key=("difference", "neighbours").__contains__)  # these last
    for place, kind in enumerate(kinds):
        if place:
            print()
        terminal.print_table(lines[kind], right=_NUMBERS)
    if zero_rows and not json:
        terminal.say(
            f"Up to {zero_rows} words of a set have a zero row; they count as missing."
        )


_NUMBERS = (
    *("spearman", "95 % interval", "pearson", "covered", "accuracy", "maxdiff", "cca"),
    *("its interval", "qvec", "mean", "mean cca", "purity", "best", "difference"),
    *("one cluster", "jaccard", "overlap@10", "common", "total", "words", "seeds"),
    *("clusters", "relations", "semantic", "syntactic"),
)


def _put(
    lines: dict[str, list[dict[str, str]]],
    head: dict[str, str],
    fields: dict[str, Any] | None,
    cells: Iterable[dict[str, str]],
    several: bool,
    json: bool,
) -> None:
    if json:
        return terminal.print_json([] if fields is None else [head | fields])
    shown = {k: v for k, v in head.items() if k not in ("test", "vectors")}
    shown |= {"vectors": head["vectors"]} if several else {}
    for row in cells:
        lines.setdefault(head["test"], []).append(shown | row)


def _compare_neighbours(names, tables, settings: Settings, lines, json: bool) -> None:
    from jaxemb.eval import neighbours  # jax

    how = settings.bootstrap
    for name, table in list(zip(names, tables, strict=True))[1:]:
        found = neighbours.neighbour_overlap(
            table, tables[0], sample=_SAMPLE, restrict=settings.restrict, **how
        )
        head = {"test": "neighbours", "vectors": name, "with": names[0]}
        _put(lines, head, dataclasses.asdict(found) | how, [found.cells()], True, json)


def _paired(
    metric: str, outcomes: tuple[Outcome, Outcome], settings: Settings
) -> Difference:
    here, there = (outcome.items for outcome in outcomes)
    assert here is not None and there is not None
    both = ~np.isnan(here) & ~np.isnan(there)
    differences = (here - there)[both]
    found = intervals.bootstrap(
        lambda rows: differences[rows].mean(axis=-1),
        len(differences),
        **settings.bootstrap,
    )
    counts = len(differences), len(both)
    return Difference(metric, found.mean, found.low, found.high, *counts)


def _cells(found: Difference) -> dict[str, str]:
    return {
        "metric": found.metric,
        "difference": f"{found.difference:+.3f}",
        "95 % interval": intervals.bounds_text(found.low, found.high),
        "common": f"{found.common}/{found.total}",
    }


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3f}"
