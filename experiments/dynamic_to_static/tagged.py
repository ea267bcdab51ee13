"""Sentences to tag: words as numbers, their spelling, their tags."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.common import treebank
from experiments.common.datasets import described, planted
from experiments.common.treebank import Sentence
from experiments.dynamic_to_static.config import Config, Task
from experiments.dynamic_to_static.data import PLANTED
from jaxemb.data import batching, conll, sources, synthetic, vocab
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.train import results

LETTERS = 16  # of a longer word the first and last eight
_NORM = 5.0  # mean length of the vectors of words, whatever table they are of


@dataclasses.dataclass(frozen=True, eq=False)
class Corpus:
    """The parts of a task, encoded."""

    words: tuple[str, ...]
    """Every type, from number 1 on; 0 pads."""
    letters: np.ndarray
    """(types, LETTERS), of number 0 too."""
    characters: int
    tags: tuple[str, ...]
    spans: bool
    """Whether tags are of spans; else each counts by itself."""
    parts: Mapping[str, Sequence[Sentence]]
    columns: Mapping[str, batching.Columns]
    """`types`, `tags` and `places` of train, dev and test; a place is that of a word in
    all parts, one after the other."""
    data: results.Data


def read(config: Config, task: Task) -> Corpus:
    """Reads a task's sentences."""
    parts, used = _parts(config, task)
    sentences = [s for own in parts.values() for s in own]
    words = tuple(dict.fromkeys(w for own, _ in sentences for w in own))
    index = {word: i for i, word in enumerate(words, 1)}
    letters = vocab.Vocab.build(words)
    tags, numbered = treebank.number_tags(parts)
    columns, start = {}, 0
    for name, own in parts.items():
        lengths = [len(s.words) for s in own]
        ends = start + np.concatenate([[0], np.cumsum(lengths)])
        columns[name] = {
            "types": batching.Ragged.of([[index[w] for w in s.words] for s in own]),
            "tags": batching.Ragged.of(numbered[name]),
            "places": batching.Ragged.of(
                [np.arange(a, b) for a, b in zip(ends, ends[1:], strict=False)]
            ),
        }
        start = int(ends[-1])
    spelled = batching.Ragged.of([[], *map(letters.encode, words)])
    return Corpus(
        words,
        treebank.shortened(spelled, LETTERS).padded(np.arange(len(words) + 1), LETTERS),
        len(letters),
        tags,
        task == "chunking",
        parts,
        columns,
        used,
    )


def rows_of(corpus: Corpus, table: WordVectors) -> tuple[np.ndarray, float]:
    """Vectors of all types, 0 of those that lack one; the share of words that have.

    Of length 5 on average, so that no table is of another scale than the others.
    """
    vectors, known = treebank.vectors_of(table, corpus.words)
    vectors, known = np.pad(vectors, ((1, 0), (0, 0))), np.pad(known, (1, 0))
    types = corpus.columns["test"]["types"]
    assert isinstance(types, batching.Ragged)
    return scaled(vectors), float(np.mean(known[types.values]))


def scaled(vectors: np.ndarray) -> np.ndarray:
    """Vectors divided by one number, so that those that are not 0 have that length."""
    lengths = np.linalg.norm(np.asarray(vectors, np.float32), axis=1)
    if not lengths.any():
        raise InputError("no word of the sentences to tag has a vector in the table")
    return (vectors * (_NORM / lengths[lengths > 0].mean())).astype(np.float32)


def _senses(world: synthetic.PlantedSenses, words: Sequence[str]) -> tuple[str, ...]:
    """A tag for homographs only: the sense that the word after them tells."""
    tags = ["O"] * len(words)
    for place, word in enumerate(words):
        if word in world.neighbours:
            first, _ = world.neighbours[word]
            tags[place] = "B-one" if words[place + 1] in first else "B-other"
    return tuple(tags)


def _parts(
    config: Config, task: Task
) -> tuple[dict[str, list[Sentence]], results.Data]:
    if config.text == "planted":
        world = synthetic.planted_senses(sentences=PLANTED)
        own = [Sentence(tuple(s), _senses(world, s)) for s in world.sentences]
        parts = {"train": own[:60], "dev": own[60:80], "test": own[80:100]}
        return parts, planted("planted senses, tagged", 100)
    most = config.tagging.sentences
    if task == "pos":
        parts, found = treebank.read_ewt("xpos")
    else:
        found = sources.get("conll2000")
        read = {
            name: [
                Sentence(s["words"], s["chunks"])
                for s in conll.read_conll(found.part(name), conll.CONLL2000)
            ]
            for name in ("train", "test")
        }
        step = config.tagging.held_out
        parts = {
            "train": [s for i, s in enumerate(read["train"]) if i % step],
            "dev": read["train"][::step],
            "test": read["test"],
        }
    whole = most is None or most >= len(parts["train"])
    parts["train"] = parts["train"][:most]
    size = sum(map(len, parts.values()))
    return parts, described(found, size, kind=found.kind if whole else "subset")
