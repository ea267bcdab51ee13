"""Documents as sentences of words, their transfer set, and what students read."""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.common import tables
from experiments.common.datasets import described, planted
from experiments.docbert_distillation.config import REVIEWS, Config
from jaxemb.data import augment, batching, hedwig, reuters, sources, synthetic, text
from jaxemb.data.conllu import read_conllu
from jaxemb.data.corpus.readers import review_sentences
from jaxemb.data.lexical_tags import LexicalTagger
from jaxemb.data.stopwords import content_words
from jaxemb.data.tfidf import Tfidf
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import lookup
from jaxemb.train import results

SEED = 0  # of draws, splits and copies, the same for every run
PARTS = "train", "dev", "test"


class Document(NamedTuple):
    """What is classified."""

    id: str
    sentences: augment.Document
    classes: tuple[int, ...]

    @property
    def words(self) -> list[str]:
        """Of all sentences."""
        return [word for sentence in self.sentences for word in sentence]


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Documents in parts."""

    names: tuple[str, ...]
    """Of the classes."""
    multi_label: bool
    documents: dict[str, list[Document]]
    """Of the parts, and of "copies": the transfer set without what it was made of."""
    data: tuple[results.Data, ...]

    @property
    def classes(self) -> int:
        """How many there are."""
        return len(self.names)

    def right(self, documents: Sequence[Document]) -> np.ndarray:
        """Whether a document has a class, for every class."""
        found = np.zeros((len(documents), self.classes), bool)
        for row, document in enumerate(documents):
            found[row, list(document.classes)] = True
        return found

    def labels(self, documents: Sequence[Document]) -> np.ndarray:
        """A class each, or 0 and 1 for every class, as losses take them."""
        if not self.multi_label:
            return np.array([d.classes[0] for d in documents], np.int32)
        return self.right(documents).astype(np.float32)

    def digest(self, *parts: str) -> str:
        """Of documents and their classes, all parts unless some are named.

        What runs depend on, whichever settings led to it.
        """
        of = [self._digests[part] for part in parts or sorted(self.documents)]
        whole = repr((self.names, self.multi_label, of))
        return hashlib.sha256(whole.encode()).hexdigest()

    @functools.cached_property
    def _digests(self) -> dict[str, str]:
        return {
            part: hashlib.sha256(repr(own).encode()).hexdigest()
            for part, own in self.documents.items()
        }


def load(config: Config) -> Task:
    """Reads a collection and makes its transfer set."""
    if config.data == "planted":
        names, parts, data, tagger = _planted(config)
    else:
        read = {"reuters": _reuters, "imdb": _imdb}.get(config.data, _hedwig)
        names, parts, own = read(config)
        tagger, treebank = _tagger()
        data = (own, treebank)
    copies = augment.transfer_set(
        [d.sentences for d in parts["train"]],
        tagger.tag,
        factor=config.factor,
        seed=SEED,
    )
    changed = [
        Document(
            f"{parts['train'][c.source].id}+{c.number}",
            c.sentences,
            parts["train"][c.source].classes,
        )
        for c in copies
    ]
    return Task(names, config.multi_label, {**parts, "copies": changed}, data)


def _reuters(config: Config):
    found = sources.get("reuters-21578")
    split = reuters.modapte_90(reuters.read_reuters(found))
    number = {topic: place for place, topic in enumerate(split.topics)}

    def document(wire: reuters.Wire) -> Document:
        whole = f"{wire.title}\n<br />{wire.body}"  # which ends a sentence
        classes = tuple(number[topic] for topic in wire.topics)
        return Document(f"wire-{wire.id}", _sentences(whole), classes)

    train = [document(wire) for wire in split.train]
    order = np.random.default_rng(SEED).permutation(len(train))
    held = round(len(train) * 1943 / 7770)  # the share of the authors' files
    parts = {
        "train": [train[i] for i in order[held:]],
        "dev": [train[i] for i in order[:held]],
        "test": [document(wire) for wire in split.test],
    }
    whole = config.documents is None
    size = sum(map(len, parts.values()))
    parts = _cut(config, parts)
    used = described(
        found,
        size if whole else sum(map(len, parts.values())),
        name="reuters-21578, ModApte, 90 topics",
        kind=None if whole else "subset",
    )
    return split.topics, parts, used


def _imdb(config: Config):
    found = sources.get("imdb")
    train, dev, test = config.documents or (20_000, 5_000, REVIEWS)
    every = {"train": [], "test": []}
    for part, count in (("train", train + dev), ("test", test)):
        rng = np.random.default_rng([SEED, part == "test"])
        rows = list(text.imdb_lines(found.part(part), ratings=config.ratings))
        every[part] = [
            Document(f"{part}-{i}", _sentences(rows[i].text), (rows[i].label,))
            for i in rng.permutation(len(rows))[:count].tolist()
        ]
    parts = {
        "train": every["train"][:train],
        "dev": every["train"][train:],
        "test": every["test"],
    }
    stars = tuple(map(str, range(1, 11)))
    size = sum(map(len, parts.values()))
    used = described(found, size, name="imdb, some of its reviews", kind="subset")
    return stars if config.ratings else ("negative", "positive"), parts, used


def _hedwig(config: Config):
    """The paper's own files; of a class nothing but its number is told."""
    found = sources.get(config.data)
    single = not config.multi_label
    parts, classes = {}, 0
    for part in PARTS:
        rows = hedwig.read_hedwig(found.part(part), single=single)
        classes = rows[0].bits
        parts[part] = [
            Document(f"{part}-{i}", _sentences(row.text), row.classes)
            for i, row in enumerate(rows)
        ]
    parts = _cut(config, parts)
    used = described(
        found,
        sum(map(len, parts.values())),
        kind=None if config.documents is None else "subset",
    )
    return tuple(f"class {i}" for i in range(classes)), parts, used


def _cut(config: Config, parts: dict[str, list[Document]]) -> dict[str, list[Document]]:
    if config.documents is None:
        return parts
    return {
        part: own[:count]
        for (part, own), count in zip(parts.items(), config.documents, strict=True)
    }


def _sentences(raw: str) -> augment.Document:
    cut = review_sentences(" ".join(raw.split()), punctuation=True)
    return tuple(tuple(sentence) for sentence in cut)


def _tagger() -> tuple[LexicalTagger, results.Data]:
    found = sources.get("ud-english-ewt")
    tagged = [
        [(word.form, word.xpos or "_") for word in sentence.words]
        for sentence in read_conllu(found.part("train"))
    ]
    used = described(found, len(tagged), name="ud-english-ewt, tags of words")
    return LexicalTagger.learn(tagged), used


def _planted(config: Config):
    """Two topics a document: two sentences of one, a third of another or the same.

    Where documents have one class it is that of the two sentences.
    """
    world = synthetic.planted_topics(num_sentences=480, length=6)
    of = {word: i for i, topic in enumerate(world.topics) for word in topic}
    by_topic: dict[int, list[augment.Words]] = {i: [] for i in range(4)}
    for sentence in world.sentences:
        known = [of[word] for word in sentence if word in of]
        by_topic[max(set(known), key=known.count) if known else 0].append(sentence)
    rng = np.random.default_rng(SEED)
    documents = []
    for number in range(120):
        first, second = rng.integers(4, size=2)
        own = [by_topic[int(t)][int(rng.integers(60))] for t in (first, first, second)]
        topics = {int(first), int(second)} if config.multi_label else {int(first)}
        classes = tuple(sorted(topics))
        documents.append(Document(f"planted-{number}", tuple(own), classes))
    parts = {"train": documents[:64], "dev": documents[64:88], "test": documents[88:]}
    tags = [[(word, "AB"[len(word) % 2]) for word in s] for s in world.sentences]
    names = tuple(f"topic {i}" for i in range(4))
    data = (planted("planted topics", len(documents)),)
    return names, parts, data, LexicalTagger.learn(tags)


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """What students read: numbers of words, their vectors, and weights of words."""

    table: np.ndarray
    """Row 0 pads, row 1 is of unknown words; both are 0."""
    tfidf: Tfidf
    columns: dict[str, dict[str, batching.Ragged | np.ndarray]]
    """By part: words, their tf-idf, sentences for HAN, labels."""
    buckets: tuple[int, ...]
    covered: float
    """The share of the test part's words that have a vector."""
    data: tuple[results.Data, ...]


def read_inputs(config: Config, task: Task) -> Inputs:
    """Vectors of the words of all parts, and every part as students read it."""
    kinds = {w for own in task.documents.values() for d in own for w in d.words}
    table, used = _vectors(config, sorted(kinds - {augment.MASK}))
    index = {word: row + 2 for row, word in enumerate(table.words)}
    matrix = np.concatenate([np.zeros((2, table.dim)), table.matrix]).astype(np.float32)
    weights = Tfidf.learn(
        (content_words(d.words) for d in task.documents["train"]),
        max_words=config.students.words,
    )
    columns = {
        part: _columns(config, task, own, index, weights)
        for part, own in task.documents.items()
    }
    lengths = np.concatenate([own["words"].lengths for own in columns.values()])
    test = [index.get(w, 1) for d in task.documents["test"] for w in d.words]
    return Inputs(
        matrix,
        weights,
        columns,
        batching.length_buckets(lengths, config.students.buckets),
        float(np.mean(np.array(test) > 1)),
        used,
    )


def _vectors(
    config: Config, words: Sequence[str]
) -> tuple[WordVectors, tuple[results.Data, ...]]:
    if config.students.vectors == "planted":
        rng = np.random.default_rng(SEED)
        matrix = rng.normal(size=(len(words), 8)).astype(np.float32)
        return WordVectors(tuple(words), matrix), ()
    keep = lookup.forms_looked_up(set(words))
    table, used = tables.read(config.students.vectors, keep)
    if not isinstance(table, WordVectors):
        raise InputError(f"--students.vectors {used.name}: expected a table of words")
    known = [word for word in words if word in table]
    rows = np.array([table.index[word] for word in known])
    return WordVectors(tuple(known), np.asarray(table.matrix[rows])), (used,)


def _columns(config: Config, task: Task, documents, index, weights: Tfidf) -> dict:
    settings = config.students
    words = [[index.get(w, 1) for w in d.words] for d in documents]
    ids, values = weights.transform([content_words(d.words) for d in documents])
    count, longest = settings.sentences
    sentences = np.zeros((len(documents), count, longest), np.int32)
    for row, document in enumerate(documents):
        for place, sentence in enumerate(document.sentences[:count]):
            found = [index.get(w, 1) for w in sentence[:longest]]
            sentences[row, place, : len(found)] = found
    return {
        "words": batching.Ragged.of([w[: settings.length] for w in words]),
        "features": ids,
        "values": values,
        "sentences": sentences,
        "labels": task.labels(documents),
    }
