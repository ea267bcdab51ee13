"""The table of a run, and its tests: similarity, sentence tasks, probes."""

import dataclasses
import functools
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from experiments.common import tables
from experiments.common.datasets import described, planted
from experiments.common.names import similarity_lists
from experiments.dimensional_properties.config import PROBES, TASKS, Config
from jaxemb import terminal
from jaxemb.data import (
    nli,
    paraphrases,
    probing,
    sources,
    synthetic,
    text,
    tokenize,
    treebank,
)
from jaxemb.data.files import Location
from jaxemb.data.sources import Found
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import kinds, lookup, similarity, validation
from jaxemb.eval import sources as tests_lib
from jaxemb.eval.sentences import SentenceTest, Tokens
from jaxemb.spaces.components import Components
from jaxemb.train import results

_CASED = functools.partial(tokenize.kim, lower=False)
_FEWEST = 10  # pairs of a list that can be scored
_ISOTROPY = 100_000  # first rows that isotropy is of


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """A table of word vectors, of which only the words of the tests are kept."""

    name: str
    vectors: WordVectors
    components: Components
    """Of all rows."""
    first: np.ndarray
    """The first rows, whatever words they are of."""
    data: tuple[results.Data, ...]
    native: np.ndarray | None = None
    """The same words in a table that was trained at a smaller width."""


@dataclasses.dataclass(frozen=True, eq=False)
class Tests:
    """Tests by kind."""

    similarity: tuple[kinds.SimilarityTest, ...]
    sentences: tuple[SentenceTest, ...]
    probes: tuple[SentenceTest, ...]
    data: tuple[results.Data, ...]

    @property
    def words(self) -> set[str]:
        """The words that any of them looks up."""
        every = (*self.similarity, *self.sentences, *self.probes)
        return {word for test in every for word in test.words}


def load_table(config: Config, words: set[str]) -> Table:
    """Reads a table and finds the components of all its rows."""
    if config.preset == "smoke":
        table = synthetic.planted_components().vectors
        data = planted("planted vectors", len(table))
    else:
        table, data = _read("vectors", config.vectors)
    kept = table.subset(sorted(lookup.forms_looked_up(words)))
    if not len(kept):
        raise InputError(f"--vectors {config.vectors}: holds no word of any test")
    native, more = _native(config, kept)
    return Table(
        name=data.name,
        vectors=WordVectors(kept.words, kept.matrix, unique=True),
        components=Components.of(table.matrix),
        first=np.asarray(table.matrix[:_ISOTROPY]),
        data=(data, *more),
        native=native,
    )


def _read(
    flag: str, name: str, keep: Collection[str] | None = None
) -> tuple[WordVectors, results.Data]:
    table, data = tables.read(name, keep)
    if not isinstance(table, WordVectors):
        raise InputError(
            f"--{flag} {name}: expected a table of words, found one of word pieces"
        )
    lookup.check_finite(table)
    return table, data


def _native(
    config: Config, table: WordVectors
) -> tuple[np.ndarray | None, tuple[results.Data, ...]]:
    """The rows of a narrower table for the words of one, where one is named."""
    if not config.native:
        return None, ()
    native, data = _read("native", config.native, table.words)
    kept = native.subset(table.words)
    if len(kept) < len(table) or kept.dim >= table.dim:
        raise InputError(
            f"--native {config.native}: holds {len(kept):,} of {len(table):,} words at "
            f"{kept.dim} dimensions; expected all of them at fewer than {table.dim}"
        )
    return np.asarray(kept.matrix, np.float64), (data,)


def load_tests(config: Config) -> Tests:
    """Reads the similarity lists, the sentence tasks and the probes."""
    if config.preset == "smoke":
        return _planted(config)
    names = config.task_names()
    absent = [name for name in (*TASKS, *PROBES) if name not in names]
    if absent and not config.tasks:
        terminal.say(
            f"{', '.join(absent)}: left out, their data are not here; "
            "python -m experiments says which these are"
        )
    lists = tuple(
        test
        for test in tests_lib.find_tests([similarity_lists()]).tests
        if isinstance(test, kinds.SimilarityTest)
    )
    sentences, probes, data = [], [], {}
    for name in names:
        found = sources.get({**TASKS, **PROBES}[name])
        data[found.data_set.name] = described(found)
        if name in TASKS:
            sentences.append(_task(config, name, found))
        else:
            probes.append(_probe(config, name, found))
    used = [
        results.Data(
            name=test.name,
            kind="real",
            source="see jaxemb data list",
            sha256=None,
            size=len(test.pairs),
        )
        for test in lists
    ]
    return Tests(lists, tuple(sentences), tuple(probes), (*data.values(), *used))


def covered(tests: Tests, table: Table) -> Tests:
    """The tests without similarity lists of which the table has too few pairs."""
    kept = []
    for test in tests.similarity:
        known = similarity.known_words(table.vectors, test.pairs)
        pairs = sum(a in known and b in known for a, b, _ in test.pairs)
        if pairs >= _FEWEST:
            kept.append(test)
        else:
            terminal.say(f"{test.name}: left out, the table has {pairs} of its pairs")
    return dataclasses.replace(tests, similarity=tuple(kept))


class _Row(NamedTuple):
    """A sentence or two in words, and their class."""

    first: tuple[str, ...]
    label: int
    second: tuple[str, ...] | None = None


def _sentences(path: Location) -> list[_Row]:
    return [_Row(*row) for row in text.read_kim(path)]


def _questions(path: Location) -> list[_Row]:
    return [_Row(*row) for row in text.read_kim(path, tokenize=_CASED)]


def _trees(path: Location) -> list[_Row]:
    return [_Row(*row) for row in text.read_sst(path)]


def _entailments(path: Location) -> list[_Row]:
    """SICK has no punctuation, so that white space parts its words."""
    cut = tokenize.whitespace
    return [
        _Row(cut(pair.premise), pair.label, cut(pair.hypothesis))
        for pair in nli.read_nli(path).pairs
    ]


def _paraphrases(path: Location) -> list[_Row]:
    return [
        _Row(_CASED(pair.first), pair.label, _CASED(pair.second))
        for pair in paraphrases.read_mrpc(path)
    ]


# Readers of the tasks that are not in Kim's format, lower-cased.
_READERS = {
    "SST2": _trees,
    "SST5": _trees,
    "TREC": _questions,
    "SICK-E": _entailments,
    "MRPC": _paraphrases,
}


def _task(config: Config, name: str, found: Found) -> SentenceTest:
    """A task of SentEval in its protocol: nested, folds then test, or one split."""
    read = _READERS.get(name, _sentences)
    parts = {part: read(place) for part, place in found.parts.items()}
    rows = [row for part in parts.values() for row in part]
    labels = np.array([row.label for row in rows], np.int64)
    part_of = np.repeat(list(parts), [len(part) for part in parts.values()])
    dev = {"dev", "validation"} & set(parts)
    if "all" in parts:
        plan = validation.nested(labels, config.folds, config.seed)
    elif dev:
        sides = "train", dev.pop(), "test"
        plan = validation.split(*(part_of == side for side in sides))
    else:
        plan = validation.folds_then_test(
            labels, part_of == "test", config.folds, config.seed
        )
    sentences = [row.first for row in rows]
    others = [row.second for row in rows if row.second is not None]
    classes = int(labels.max()) + 1
    return SentenceTest(name, sentences, labels, classes, plan, others or None)


def _probe(config: Config, name: str, found: Found) -> SentenceTest:
    """A probing task of the treebank's files, each of which is on one side only."""
    documents = {
        part: treebank.read_treebank(place) for part, place in found.parts.items()
    }
    if name == "TreeDepth":
        task = probing.tree_depth(documents)
    else:
        task = probing.top_constituents(documents, most=config.most, seed=config.seed)
    return _grouped(
        name,
        [example.tokens for example in task.examples],
        np.array([example.label for example in task.examples], np.int64),
        len(task.classes),
        [example.document for example in task.examples],
    )


def _grouped(
    name: str, sentences: Tokens, labels: np.ndarray, classes: int, of: Sequence[str]
) -> SentenceTest:
    return SentenceTest(name, sentences, labels, classes, validation.rotated(of))


def _planted(config: Config) -> Tests:
    """One task of each protocol, on sentences that one component decides."""
    world = synthetic.planted_components()
    tokens = [example.tokens for example in world.sentences]
    labels = np.array([example.label for example in world.sentences], np.int64)
    nested = validation.nested(labels, config.folds, config.seed)
    # A pair is of the class in which its two sentences stand to each other.
    others = [*tokens[1:], tokens[0]]
    relation = labels + np.roll(labels, -1)
    third = np.arange(len(labels)) % 3
    split = validation.split(*(third == part for part in range(3)))
    documents = [f"document {number % 10}" for number in range(len(labels))]
    return Tests(
        (kinds.SimilarityTest("planted pairs", world.pairs),),
        (
            SentenceTest("planted", tokens, labels, 2, nested),
            SentenceTest("planted relation", tokens, relation, 3, split, others),
        ),
        (_grouped("planted probe", tokens, labels, 2, documents),),
        (planted("planted sentences", len(labels)),),
    )
