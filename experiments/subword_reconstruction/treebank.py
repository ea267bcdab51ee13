"""Tagged sentences, words as types with their spelling."""

import collections
import dataclasses
from collections.abc import Mapping

import numpy as np

from experiments.common import treebank
from experiments.common.datasets import described, planted
from experiments.subword_reconstruction.config import Config
from jaxemb.data import batching, synthetic, vocab
from jaxemb.data.vectors import WordVectors
from jaxemb.train import results


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """Sentences of words with tags."""

    parts: treebank.Parts
    """Of train, dev and test."""
    data: results.Data

    @property
    def words(self) -> set[str]:
        """Of the training part."""
        return {word for words, _ in self.parts["train"] for word in words}


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

    @property
    def share_without_vector(self) -> float:
        """Of the words of the training part, those that the whole teacher lacks.

        As written and in lower case; every occurrence counts.
        """
        return float(np.mean(~self.has_vector[self.splits["train"]["types"].values]))


def read(config: Config) -> Texts:
    """Reads the treebank, or makes sentences."""
    if config.preset == "smoke":
        pairs = synthetic.planted_morphology().sentences
        made = [treebank.Sentence(*zip(*sentence, strict=True)) for sentence in pairs]
        parts = {"train": made[:40], "dev": made[40:50], "test": made[50:]}
        return Texts(parts, planted("planted sentences", len(made)))
    every, found = treebank.read_ewt(config.tagging.tags)
    most = dict.fromkeys(every, config.tagging.held_out)
    most["train"] = config.tagging.sentences
    parts = {name: sentences[: most[name]] for name, sentences in every.items()}
    size = sum(map(len, parts.values()))
    kind = found.kind if size == sum(map(len, every.values())) else "subset"
    return Texts(parts, described(found, size, kind=kind))


def encode(texts: Texts, characters: vocab.Vocab, table: WordVectors) -> Treebank:
    """Numbers for words, tags and characters.

    Args:
      texts: the sentences.
      characters: of the training part and of the teacher's words that are taught.
      table: the whole teacher.
    """
    parts = texts.parts
    seen = vocab.Vocab.build(s.words for s in parts["train"])
    every = vocab.Vocab.build(s.words for part in parts.values() for s in part)
    words = (*seen.words, *(w for w in every.words if w not in seen))
    index = {word: i for i, word in enumerate(words)}
    counts = collections.Counter(w for s in parts["train"] for w in s.words)
    tags, numbered = treebank.number_tags(parts)
    columns = {
        name: {
            "types": batching.Ragged.of([[index[w] for w in s.words] for s in part]),
            "tags": batching.Ragged.of(numbered[name]),
        }
        for name, part in parts.items()
    }
    vectors, has_vector = treebank.vectors_of(table, words[2:])
    own = seen.words[2:]
    return Treebank(
        words=words,
        known=len(seen),
        singletons=np.array([counts[word] == 1 for word in words]),
        own_characters=len(set("".join(own))),
        spelled=batching.Ragged.of([[], [], *map(characters.encode, words[2:])]),
        vectors=np.pad(vectors, ((2, 0), (0, 0))),
        has_vector=np.pad(has_vector, (2, 0)),
        words_with_teacher=len(set(own) | set(table.words)),
        tags=tags,
        splits=columns,
        data=texts.data,
    )
