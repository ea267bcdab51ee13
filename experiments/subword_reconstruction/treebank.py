"""Tagged sentences, words as types with their spelling."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.common.datasets import described, planted
from experiments.subword_reconstruction.config import Config
from jaxemb.data import batching, conllu, sources, synthetic, vocab
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import lookup
from jaxemb.train import results

Sentences = Sequence[Sequence[tuple[str, str]]]


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """Sentences of words with tags."""

    parts: Mapping[str, Sentences]
    """Of train, dev and test."""
    data: results.Data

    @property
    def words(self) -> set[str]:
        """Of the training part."""
        return {word for sentence in self.parts["train"] for word, _ in sentence}


@dataclasses.dataclass(frozen=True, eq=False)
class Treebank:
    """Sentences, encoded."""

    words: tuple[str, ...]
    """Every type: padding, unknown, those of the training part, then the others."""
    known: int
    """How many of them are padding, unknown or in the training part."""
    singletons: np.ndarray
    """True for the types that the training part has once."""
    own_characters: int
    """Characters of the training part."""
    spelled: batching.Ragged
    vectors: np.ndarray
    """The whole teacher's, of the types that it has as written or in lower case."""
    has_vector: np.ndarray
    """True for these."""
    words_with_teacher: int
    """Different words of the training part and of the whole teacher."""
    tags: tuple[str, ...]
    splits: Mapping[str, batching.Columns]
    """Columns `types` and `tags` of train, dev and test."""
    data: results.Data


def read(config: Config) -> Texts:
    """Reads the treebank, or makes sentences."""
    if config.preset == "smoke":
        made = synthetic.planted_morphology().sentences
        parts = {"train": made[:40], "dev": made[40:50], "test": made[50:]}
        return Texts(parts, planted("planted sentences", len(made)))
    found = sources.get("ud-english-ewt")
    parts, whole = {}, True
    for name in ("train", "dev", "test"):
        every = conllu.read_conllu(found.part(name))
        most = config.tagging.sentences if name == "train" else config.tagging.held_out
        kept = every[:most]
        whole &= len(kept) == len(every)
        parts[name] = [
            [(w.form, getattr(w, config.tagging.tags) or "_") for w in sentence.words]
            for sentence in kept
        ]
    size = sum(map(len, parts.values()))
    kind = found.kind if whole else "subset"
    return Texts(parts, described(found, size, kind=kind))


def encode(texts: Texts, characters: vocab.Vocab, table: WordVectors) -> Treebank:
    """Numbers for words, tags and characters.

    Args:
      texts: the sentences.
      characters: of the training part and of the teacher's words that are taught.
      table: the whole teacher.
    """
    parts = texts.parts
    seen = vocab.Vocab.build([w for w, _ in s] for s in parts["train"])
    every = vocab.Vocab.build([w for w, _ in s] for p in parts.values() for s in p)
    words = (*seen.words, *(w for w in every.words if w not in seen))
    index = {word: i for i, word in enumerate(words)}
    counts = collections.Counter(w for s in parts["train"] for w, _ in s)
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
    found = lookup.look_up(table, words[2:], "fallback")
    rows = np.full(len(words), -1)
    rows[[index[word] for word in found.words]] = found.rows
    has_vector = rows >= 0
    vectors = np.where(has_vector[:, None], np.asarray(table.matrix)[rows], 0)
    own = seen.words[2:]
    return Treebank(
        words=words,
        known=len(seen),
        singletons=np.array([counts[word] == 1 for word in words]),
        own_characters=len(set("".join(own))),
        spelled=batching.Ragged.of([[], [], *map(characters.encode, words[2:])]),
        vectors=vectors.astype(np.float32),
        has_vector=has_vector,
        words_with_teacher=len(set(own) | set(table.words)),
        tags=tags,
        splits=columns,
        data=texts.data,
    )
