"""A task as ids, splits and what else evaluation needs."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.common.datasets import described
from experiments.delta_embedding.config import Config
from jaxemb.data import batching, sources, squad, vectors, vocab
from jaxemb.errors import InputError
from jaxemb.train import results

# The draw that stands for words without a vector: U(-0.25, 0.25), as Kim has it.
_OOV_SEED = 0

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Columns of the three parts."""

    train: batching.Columns
    dev: batching.Columns
    test: batching.Columns


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Examples, encoded."""

    vocab: vocab.Vocab
    columns: batching.Columns
    """Of all examples; the ragged ones hold ids of words."""
    data: tuple[results.Data, ...]
    classes: int = 0
    """Of a classification."""
    splits: Rows | None = None
    """Row numbers of train, dev and test where the task has such a split."""
    groups: np.ndarray | None = None
    """One number an example; a fold never parts those of one number."""
    others: Mapping[str, batching.Columns] = dataclasses.field(default_factory=dict)
    """More sets to test on, once training has ended."""
    questions: tuple[squad.AlignedQuestion, ...] = ()
    """Of the rows, where these are questions."""
    notes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What a reader of the results must know of the texts."""

    def split(self, config: Config, part: int) -> Split:
        """The part's three sets: a fold of the cross-validation, or the one split."""
        if config.protocol == "seeds":
            if self.splits is None:
                raise InputError(f"--protocol seeds: {config.task} has no split")
            rows = self.splits
        elif config.kind.name == "reading":
            raise InputError(f"--protocol folds: {config.task} has a split of its own")
        else:
            examples = next(iter(map(len, self.columns.values())))
            rows = fold(examples, config.parts, part, self.groups)
        return Split(*(batching.take(self.columns, r) for r in rows))

    def steps_per_epoch(self, config: Config, part: int) -> int:
        """Batches that the part's examples to train on make."""
        train = self.split(config, part).train
        return batching.Shuffled(train, config.batch_size, part).steps_per_epoch

    @property
    def texts(self) -> dict[str, batching.Ragged]:
        """The columns that hold ids of words."""
        return ragged(self.columns)

    def buckets(self, config: Config) -> batching.Buckets:
        """Padded lengths; each text of a pair has its own."""
        lengths = {
            name: np.concatenate(
                [
                    ragged(columns)[name].lengths
                    for columns in (self.columns, *self.others.values())
                ]
            )
            for name in self.texts
        }
        counts = (config.buckets, config.second_buckets)
        padded = {
            name: batching.length_buckets(of, count, multiple=4)
            for (name, of), count in zip(lengths.items(), counts, strict=False)
        }
        return padded if len(padded) > 1 else next(iter(padded.values()))

    def tokens_without_vector(self, words: vectors.WordVectors) -> float:
        """Share of the running words that the table lacks."""
        missing = np.array([word not in words for word in self.vocab.words])
        running = np.concatenate([text.values for text in self.texts.values()])
        return float(missing[running].mean())

    def commonest_without_vector(
        self, words: vectors.WordVectors, k: int = 10
    ) -> dict[str, float]:
        """The most frequent words that the table lacks: share of the running words."""
        running = np.concatenate([text.values for text in self.texts.values()])
        counts = np.bincount(running, minlength=len(self.vocab))
        by_count = (w for w in np.argsort(-counts, kind="stable") if counts[w])
        named = (
            (self.vocab.words[w], float(counts[w] / len(running))) for w in by_count
        )
        absent = ((word, share) for word, share in named if word not in words)
        return dict(itertools.islice(absent, k))

    def table(self, words: vectors.WordVectors) -> np.ndarray:
        """The vocabulary's rows; padding is 0, missing words have one seeded draw."""
        table = words.lookup(self.vocab.words, oov="random", seed=_OOV_SEED)
        table = np.array(table, np.float32)
        table[vocab.PAD_ID] = 0
        return table


def counted(found: sources.Found, examples: int) -> results.Data:
    """Describes a data set; one with fewer examples than the catalogue's is a part."""
    whole = examples == found.data_set.rows
    return described(found, examples, kind=None if whole else "subset")


def ragged(columns: batching.Columns) -> dict[str, batching.Ragged]:
    """The columns that hold ids of words."""
    return {n: c for n, c in columns.items() if isinstance(c, batching.Ragged)}


def fold(
    examples: int, folds: int, index: int, groups: np.ndarray | None = None
) -> Rows:
    """Train, dev and test rows: one fold tests, a tenth of the others is dev.

    Args:
      examples: how many.
      folds: how many.
      index: of the fold that tests.
      groups: one number an example; those of one number stay together, and folds are
        of about as many numbers.
    """
    if groups is not None:
        names, place = np.unique(groups, return_inverse=True)
        parts = fold(len(names), folds, index)
        train, dev, test = (np.flatnonzero(np.isin(place, part)) for part in parts)
        return train, dev, test
    order = np.random.default_rng(0).permutation(examples)
    test = order[index::folds]
    rest = np.random.default_rng([1, index]).permutation(np.setdiff1d(order, test))
    dev = len(rest) // 10
    return rest[dev:], rest[:dev], test


def numbered(keys: list[Any]) -> np.ndarray:
    """A number for each key, the same for equal ones, in the order of first sight."""
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys])


def ends(*sizes: int) -> Rows:
    """Row numbers of three sets that stand one after the other."""
    places = np.cumsum([0, *sizes])
    train, dev, test = (
        np.arange(a, b) for a, b in zip(places, places[1:], strict=False)
    )
    return train, dev, test
