"""The teacher with its words spelled, and what its students are tested on."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping

import numpy as np

from experiments.common import tables
from experiments.common.datasets import described, planted
from experiments.common.names import similarity_lists
from experiments.subword_reconstruction import treebank
from experiments.subword_reconstruction.config import SIMILARITY_LISTS, Config
from jaxemb.data import batching, pairs, sources, synthetic, vocab
from jaxemb.data.analogies import Analogy, read_analogies
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import analogy, lookup
from jaxemb.train import results


@dataclasses.dataclass(frozen=True, eq=False)
class Tests:
    """What is asked of tables; only what the teacher has all words of."""

    similarity: Mapping[str, list[pairs.WordPair]] = dataclasses.field(
        default_factory=dict
    )
    analogies: Mapping[str, dict[str, list[Analogy]]] = dataclasses.field(
        default_factory=dict
    )
    """Syntactic and semantic, in sections."""
    totals: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """How many of each there are, covered or not."""
    data: tuple[results.Data, ...] = ()

    @functools.cached_property
    def words(self) -> set[str]:
        """Every word, as the tests write it."""
        words = {w for rows in self.similarity.values() for p in rows for w in p[:2]}
        questions = (
            q for s in self.analogies.values() for rows in s.values() for q in rows
        )
        return words | {w for question in questions for w in question}

    @property
    def covered(self) -> dict[str, int]:
        """How many of each the teacher has all words of."""
        return {
            **{name: len(rows) for name, rows in self.similarity.items()},
            **{name: sum(map(len, s.values())) for name, s in self.analogies.items()},
        }


@dataclasses.dataclass(frozen=True, eq=False)
class Teacher:
    """The words to imitate, the most frequent first, and how each is spelled."""

    vectors: WordVectors
    characters: vocab.Vocab
    """Of these words, and of the treebank's where there is one."""
    spelled: batching.Ragged
    size: int
    """Words of the whole table."""
    data: results.Data

    def taught(self, rows: np.ndarray, vectors: np.ndarray) -> "Teacher":
        """Of some words only, with vectors of another's making."""
        words = tuple(self.vectors.words[row] for row in rows)
        return dataclasses.replace(
            self,
            vectors=WordVectors(words, vectors.astype(np.float32), unique=True),
            spelled=self.spelled.take(rows),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """All that a run reads."""

    teacher: Teacher
    tests: Tests
    treebank: treebank.Treebank | None

    @property
    def data(self) -> list[results.Data]:
        """As results name it."""
        more = (self.treebank.data,) if self.treebank else ()
        return [self.teacher.data, *self.tests.data, *more]


def load(config: Config) -> World:
    """Reads the teacher, the tests as far as it covers them, and the treebank."""
    if config.preset == "smoke":
        made = synthetic.planted_morphology()
        table = made.vectors.subset(made.train)
        used = planted("planted morphology", len(table))
        tests = _planted_tests(made)
    else:
        read, used = tables.read(config.teacher)
        if not isinstance(read, WordVectors):
            raise InputError(
                f"--teacher {config.teacher}: expected a table of words, found one of "
                "word pieces"
            )
        table = read
        lookup.check_finite(table)
        tests = _tests(table) if config.tests_tables else Tests()
    texts = treebank.read(config) if "tagging" in config.studies else None
    found = lookup.look_up(table, tests.words, "fallback").rows
    rows = np.union1d(np.arange(min(config.words, len(table))), found)
    words = tuple(table.words[row] for row in rows)
    spelled = [*words, *(texts.words if texts else ())]
    characters = vocab.Vocab.build(spelled)
    teacher = Teacher(
        WordVectors(words, np.asarray(table.matrix)[rows], unique=True),
        characters,
        batching.Ragged.of([characters.encode(word) for word in words]),
        len(table),
        used,
    )
    encoded = treebank.encode(texts, characters, table) if texts else None
    return World(teacher, tests, encoded)


def _planted_tests(made: synthetic.PlantedMorphology) -> Tests:
    return Tests(
        {"planted": list(made.pairs)},
        {"syntactic": {"planted": list(made.analogies)}},
        {"planted": len(made.pairs), "syntactic": len(made.analogies)},
    )


def _tests(table: WordVectors) -> Tests:
    """The lists and questions whose words the teacher has."""
    lists, asked = sources.get(similarity_lists()), sources.get("analogies")
    similarity = {}
    for name, names in SIMILARITY_LISTS.items():
        place = next(lists.parts[n] for n in names if n in lists.parts)
        similarity[name] = pairs.read_pairs(place)
    google = read_analogies(asked.part("google"))
    semantic = {n: q for n, q in google.items() if not n.startswith(analogy.SYNTACTIC)}
    syntactic = read_analogies(asked.part("msr"))
    whole = Tests(similarity, {"syntactic": syntactic, "semantic": semantic})
    looked_up = lookup.look_up(table, whole.words, "fallback")
    known = {
        w for w, row in zip(looked_up.words, looked_up.rows, strict=True) if row >= 0
    }

    def covered(words: Iterable[str]) -> bool:
        return known.issuperset(words)

    return Tests(
        {n: [p for p in rows if covered(p[:2])] for n, rows in similarity.items()},
        {
            name: {s: [q for q in rows if covered(q)] for s, rows in own.items()}
            for name, own in whole.analogies.items()
        },
        whole.covered,
        (described(lists), described(asked)),
    )
