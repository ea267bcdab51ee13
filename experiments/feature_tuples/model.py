"""The systems that are compared, and every score of one table by each of them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.feature_tuples.config import FITTED, Config, Normaliser
from experiments.feature_tuples.data import Space, Tests
from jaxemb.data.compounds import Compound
from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import compounds as compounds_eval
from jaxemb.eval import function_words, pair_scores, ranked_analogy
from jaxemb.eval.function_words import Ranking
from jaxemb.eval.lookup import Case
from jaxemb.eval.pair_scores import PairScores
from jaxemb.eval.ranked_analogy import RankedAnalogies
from jaxemb.spaces import fuzzy, normalize
from jaxemb.spaces.fuzzy import FuzzyEmbedding, Measure

UNIT = "unit rows"
MAIN = ("cosine", "KL", "CE")
EVERY_LIST = (*MAIN, f"{FITTED}: CE, Bernoulli")
RESTRICTED = ("3CosAdd", "sets")
PROTOCOLS: tuple[compounds_eval.Protocol, ...] = ("constituents", "joined")


class System(NamedTuple):
    """A measure under a normaliser; without a measure, the cosine of raw vectors."""

    name: str
    measure: Measure | None = None
    normaliser: Normaliser = "softmax"
    unit: bool = False
    """Rows have length 1 before all else, as word2vec's own tools read vectors."""


def similarity_systems(config: Config) -> list[System]:
    """The cosine, the paper's two measures, then every other reading of them."""
    made = [System("cosine")]
    for direction, how in (
        ("forward", ""),
        ("backward", ", reversed"),
        ("mean", ", both ways"),
    ):
        for bernoulli, form in ((False, ""), (True, ", Bernoulli")):
            for kind, short in (("kl", "KL"), ("cross-entropy", "CE")):
                measure = Measure(kind, bernoulli, direction)
                made.append(System(f"{short}{form}{how}", measure, config.normaliser))
    plain = made[1:5]
    for other in config.variants:
        for name, measure, *_ in plain:
            made.append(System(f"{other}: {name}", measure, other))
    for name, measure, *_ in plain:
        made.append(System(f"{UNIT}: {name}", measure, config.normaliser, unit=True))
    return made


def analogy_systems(config: Config) -> list[System]:
    """3CosAdd, the paper's sets, then other readings; a forward CE answers as KL."""
    made = [System("3CosAdd")]
    for name, measure in (
        ("sets", Measure("kl")),
        ("sets, Bernoulli", Measure("kl", True)),
        ("sets, reversed", Measure("kl", False, "backward")),
    ):
        made.append(System(name, measure, config.normaliser))
    made.append(System(f"{UNIT}: sets", Measure("kl"), config.normaliser, unit=True))
    if "max" in config.variants:
        made.append(System("max: sets", Measure("kl"), "max"))
    for other in config.variants:
        if other in ("max", FITTED):
            name = f"{other}: sets, Bernoulli"
            made.append(System(name, Measure("kl", True), other))
    return made


def compound_systems(config: Config) -> list[System]:
    """The cosine, the paper's measures and their proper forms."""
    made = [System("cosine")]
    for name, measure in (
        ("KL", Measure("kl")),
        ("CE", Measure("cross-entropy")),
        ("KL, Bernoulli", Measure("kl", True)),
    ):
        made.append(System(name, measure, config.normaliser))
    for name, measure in (
        ("KL, Bernoulli", Measure("kl", True)),
        ("CE, Bernoulli", Measure("cross-entropy", True)),
    ):
        if config.fitted:
            made.append(System(f"{FITTED}: {name}", measure, FITTED))
    return made


@dataclasses.dataclass(eq=False)
class Measured:
    """Every score of one space; lists have an entry a seed."""

    space: Space
    similarity: dict[str, dict[str, list[PairScores]]]
    """List to system to scores."""
    compounds: dict[tuple[str, str], dict[str, list[PairScores]]]
    """Set of compounds and protocol to system to scores."""
    analogies: dict[str, list[RankedAnalogies]]
    restricted: dict[str, list[RankedAnalogies]]
    """Among the most frequent words only."""
    rankings: dict[str, list[Ranking]]
    """What words are ranked by, to function words found."""
    entropies: dict[str, dict[str, list[float]]]
    """Normaliser to a word, or "mean of words", to its entropy."""


class Views:
    """One table under every normaliser, each computed once."""

    def __init__(self, table: WordVectors):
        self.table = table
        self._made: dict[tuple[str, bool], FuzzyEmbedding] = {}

    def embedding(self, normaliser: Normaliser, unit: bool = False) -> FuzzyEmbedding:
        key = normaliser, unit
        if key not in self._made:
            matrix = self.table.matrix
            rows = normalize.unit(matrix) if unit else matrix
            self._made[key] = FuzzyEmbedding.from_vectors(rows, normaliser)
        return self._made[key]


def measure_space(config: Config, space: Space, tests: Tests) -> Measured:
    """Takes every test with every table of a space."""
    measured = Measured(space, {}, {}, {}, {}, {}, {})
    for table in space.tables:
        views = Views(table)
        _add_similarity(config, measured, views, tests.similarity)
        _add_compounds(config, measured, views, tests.compounds)
        _add_rankings(config, measured, views, tests.function_words)
        _add_entropies(config, measured, views)
        if space.analogies:
            _add_analogies(config, measured, views, tests)
    return measured


def pair_similarity(
    views: Views, pairs: Sequence[WordPair], system: System, case: Case
) -> PairScores:
    """One system's scores of a list of pairs."""
    rows = pair_scores.rows_of(views.table, [pair[:2] for pair in pairs], case)
    first, second = rows[np.all(rows >= 0, axis=1)].T
    if system.measure is None:
        matrix = views.table.matrix
        values = pair_scores.cosines(matrix[first], matrix[second])
    else:
        log_p = views.embedding(system.normaliser, system.unit).log_p
        sets = np.exp(log_p[first]), np.exp(log_p[second])
        values = np.asarray(system.measure.similarity(*sets))
    human = np.array([pair.score for pair in pairs], np.float64)
    return PairScores(pair_scores.scored(rows, values), human)


def _add_similarity(
    config: Config,
    measured: Measured,
    views: Views,
    lists: Mapping[str, Sequence[WordPair]],
) -> None:
    case = measured.space.case
    for place, (name, pairs) in enumerate(lists.items()):
        by_system = measured.similarity.setdefault(name, {})
        for system in similarity_systems(config):
            if system.unit and measured.space.unit_rows:
                continue
            if place and system.name not in EVERY_LIST:  # other readings: SimLex-999
                continue
            scores = pair_similarity(views, pairs, system, case)
            by_system.setdefault(system.name, []).append(scores)


def _add_compounds(
    config: Config,
    measured: Measured,
    views: Views,
    sets: Mapping[str, Sequence[Compound]],
) -> None:
    case = measured.space.case
    # Head and modifier both ways; of a compound and its parts, the compound first.
    directions = {"constituents": "mean", "joined": "forward"}
    for name, rated in sets.items():
        for protocol in PROTOCOLS:
            by_system = measured.compounds.setdefault((name, protocol), {})
            for system in compound_systems(config):
                if system.measure is None:
                    scores = compounds_eval.by_cosine(
                        views.table, rated, protocol, case=case
                    )
                else:
                    scores = compounds_eval.by_sets(
                        views.table,
                        views.embedding(system.normaliser),
                        rated,
                        protocol,
                        dataclasses.replace(
                            system.measure, direction=directions[protocol]
                        ),
                        case=case,
                    )
                by_system.setdefault(system.name, []).append(scores)


def _add_rankings(
    config: Config, measured: Measured, views: Views, known: Sequence[str]
) -> None:
    counts, words = measured.space.counts, views.table.words
    least = config.frequent_rows if counts is None else config.frequent
    by_count = -np.arange(len(words)) if counts is None else counts
    sets = views.embedding(config.normaliser).p
    values = {"entropy": fuzzy.entropy(sets), "frequency": by_count}
    for other in config.variants:
        values[f"entropy, {other}"] = fuzzy.entropy(views.embedding(other).p)
    values["cardinality"] = fuzzy.cardinality(sets)
    if not measured.space.unit_rows:
        values |= {"length": views.table.norms, "shortness": -views.table.norms}
        unit = views.embedding(config.normaliser, unit=True)
        values[f"entropy, {UNIT}"] = fuzzy.entropy(unit.p)
    for name, one in values.items():
        ranking = function_words.ranked(
            words, np.asarray(one), known, counts=counts, least=least
        )
        measured.rankings.setdefault(name, []).append(ranking)


def _add_entropies(config: Config, measured: Measured, views: Views) -> None:
    for normaliser in (config.normaliser, *config.variants):
        entropies = np.asarray(fuzzy.entropy(views.embedding(normaliser).p))
        found = {"mean of words": float(entropies.mean())}
        for word in ("noble", "the"):
            if word in views.table:
                found[word] = float(entropies[views.table.index[word]])
        kept = measured.entropies.setdefault(normaliser, {})
        for name, value in found.items():
            kept.setdefault(name, []).append(value)


def _add_analogies(
    config: Config, measured: Measured, views: Views, tests: Tests
) -> None:
    case = measured.space.case
    for system in analogy_systems(config):
        if system.unit and measured.space.unit_rows:
            continue
        if system.measure is None:
            asked = ranked_analogy.three_cos_add(views.table)
        else:
            asked = ranked_analogy.fuzzy_analogy(
                views.embedding(system.normaliser, system.unit), system.measure
            )
        found = ranked_analogy.ranked_analogies(
            views.table, tests.analogies, asked, case=case
        )
        measured.analogies.setdefault(system.name, []).append(found)
        # word2vec's habit, for its own method and the paper's.
        if system.name in RESTRICTED and config.candidates < len(views.table):
            found = ranked_analogy.ranked_analogies(
                views.table,
                tests.analogies,
                asked,
                first_rows=config.candidates,
                case=case,
            )
            measured.restricted.setdefault(system.name, []).append(found)
