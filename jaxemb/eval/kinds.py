"""The kinds of tests of `jaxemb eval`: what each looks up, scores and compares.

A difference between two tables is over the items that both of them cover, paired, and
says how many these are, whatever the policy for missing words.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from jaxemb.data.analogies import Analogy
from jaxemb.data.features import WordFeatures
from jaxemb.data.pairs import WordPair
from jaxemb.data.semeval2012 import Relation
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import analogy, categories, intervals, qvec, relational, similarity
from jaxemb.eval.settings import LEVEL, Settings

Tables = tuple[WordVectors, WordVectors]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A score: all that is known of it, and the rows of a printed table."""

    fields: dict[str, Any]
    cells: list[dict[str, str]]
    items: Float[np.ndarray, " items"] | None = None  # to pair by; nan: not covered


@dataclasses.dataclass(frozen=True)
class Difference:
    """A score of a first table less that of a second, on what both of them cover."""

    metric: str
    difference: float
    low: float  # paired 95 % interval of `difference`
    high: float
    common: int  # items that both cover
    total: int
    interval: str  # how `low` and `high` were found

    def cells(self) -> dict[str, str]:
        """The fields as the columns of a printed table."""
        return {
            "metric": self.metric,
            "difference": f"{self.difference:+.3f}",
            "95 % interval": intervals.bounds_text(self.low, self.high),
            "common": f"{self.common}/{self.total}",
        }


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
        self, settings: Settings, vectors: Tables, outcomes: tuple[Outcome, Outcome]
    ) -> list[Difference]:
        """The first of two tables less the second, on what both cover."""
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
        fields = {
            **dataclasses.asdict(found),
            "first_rows": settings.first_rows,
            "interval": "bootstrap over pairs",
        }
        return Outcome(fields, [found.cells()])

    def compare(self, settings, vectors, outcomes) -> list[Difference]:
        """Spearman."""
        first, second = vectors
        found = similarity.compare_similarity(
            first, second, self.pairs, case=settings.case, **settings.bootstrap
        )
        bounds = found.difference, found.low, found.high
        counts = found.common, found.total
        how = "paired bootstrap over pairs"
        return [Difference("spearman", *bounds, *counts, how)]


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
        found = analogy.analogies(
            vectors,
            self.sections,
            oov=policies.get(settings.oov, "skip"),
            others=tables,
            method=settings.method,
            epsilon=settings.epsilon,
            normalise=not settings.raw_rows,
            level=LEVEL,
            **settings.look_up,
        )
        fields = {**found.as_dict(), "interval": "Wilson over questions"}
        if settings.cumulative:
            fields["cumulative"] = analogy.cumulative(found)
        return Outcome(fields, found.cells(), found.items)

    def compare(self, settings, vectors, outcomes) -> list[Difference]:
        """Accuracy."""
        here, there = (outcome.items for outcome in outcomes)
        both = ~np.isnan(here) & ~np.isnan(there)
        found = paired(here, there, settings)
        counts = int(np.sum(both)), len(both)
        how = "paired bootstrap over questions"
        return [Difference("accuracy", *found, *counts, how)]


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
        found = self._score(vectors, settings, oov, tables)
        fields = {**found.as_dict(), "interval": "bootstrap over relations"}
        return Outcome(fields, [found.cells()])

    def compare(self, settings, vectors, outcomes) -> list[Difference]:
        """Both scores, on the pairs that both tables have, over relations with both."""
        scores = [self._score(v, settings, "common", vectors) for v in vectors]
        found = []
        for metric in ("spearman", "maxdiff"):
            here, there = (
                np.array([getattr(r, metric) for r in score.relations], np.float64)
                for score in scores
            )
            pairs = np.array([r.covered for r in scores[0].relations], np.int64)
            common = int(np.sum(pairs[~np.isnan(here) & ~np.isnan(there)]))
            bounds = paired(here, there, settings)
            how = "paired bootstrap over relations"
            counts = common, scores[0].total
            found.append(Difference(metric, *bounds, *counts, how))
        return found

    def _score(self, vectors, settings, oov, tables):
        return relational.relational_similarity(
            vectors,
            self.relations,
            oov=oov,
            others=tables,
            **settings.look_up,
            **settings.bootstrap,
        )


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
        oov = "common" if settings.oov == "common" else "skip"
        others = tables if oov == "common" else ()
        found = qvec.qvec(vectors, self.features, others=others, **self._how(settings))
        how = "jackknife over words"
        fields = {**dataclasses.asdict(found), "oov": oov, "interval": how}
        return Outcome(fields, [{**found.cells(), "oov": oov}])

    def compare(self, settings, vectors, outcomes) -> list[Difference]:
        """Both scores."""
        first, second = vectors
        found = qvec.compare_qvec(first, second, self.features, **self._how(settings))
        how = "paired jackknife over words"
        return [
            Difference(
                metric,
                value.mean,
                value.low,
                value.high,
                found.common,
                found.total,
                how,
            )
            for metric, value in (("mean", found.mean), ("cca", found.cca))
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
        found = self._score(vectors, settings, tables if oov == "common" else ())
        how = "Student's t over seeds"
        fields = {**dataclasses.asdict(found), "oov": oov, "interval": how}
        return Outcome(fields, [{**found.cells(), "oov": oov}])

    def compare(self, settings, vectors, outcomes) -> list[Difference]:
        """Purity, paired by seed."""
        here, there = (self._score(v, settings, vectors) for v in vectors)
        seeds = min(len(here.values), len(there.values))  # none where there is no score
        found = intervals.paired_t(here.values[:seeds], there.values[:seeds], LEVEL)
        counts = min(here.scored, there.scored), here.total
        bounds = found.mean, found.low, found.high
        return [Difference("purity", *bounds, *counts, "paired t over seeds")]

    def _score(self, vectors, settings, others):
        return categories.categorisation(
            vectors,
            self.features,
            others=others,
            geometry=settings.k_means,
            level=LEVEL,
            seed=settings.seed,
            **settings.look_up,
        )


def paired(
    here: Float[np.ndarray, " items"],
    there: Float[np.ndarray, " items"],
    settings: Settings,
) -> tuple[float, float, float]:
    """Mean difference of the items that neither side lacks, and its interval."""
    differences = here - there
    differences = differences[~np.isnan(differences)]
    found = intervals.bootstrap(
        lambda rows: differences[rows].mean(axis=-1),
        len(differences),
        **settings.bootstrap,
    )
    return found.mean, found.low, found.high
