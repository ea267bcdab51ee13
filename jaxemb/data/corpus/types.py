"""The words of a text and their counts, while it is read once."""

import collections
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxemb.errors import InputError


class Types:
    """Every word seen so far, numbered by first occurrence, and its count.

    Where there are more than `prune_at` of them, rare ones are forgotten and the rest
    numbered anew; `final_ids` then tells for each period between two prunings what its
    numbers have become. Memory is that of the words that are known at one time.
    """

    def __init__(self, scratch: Path, prune_at: int | None = None):
        """Keeps what is needed of earlier periods in the folder `scratch`."""
        self.counts = np.zeros(1 << 12, np.int64)
        self._scratch, self._prune_at = scratch, prune_at
        self._index = self._numbered([])
        self._prunings: list[int] = []  # the chunk before which each took place
        self._chunks = 0

    def __len__(self) -> int:
        return len(self._index)

    def number(self, words: Sequence[Any]) -> np.ndarray:
        """The numbers of a chunk of words, int32, new ones given as they come.

        Raises:
          InputError: where what is given is no word; some are found in `select` only.
        """
        self._prune_if_full()
        self._chunks += 1
        try:
            ids = np.fromiter(map(self._index.__getitem__, words), np.int32, len(words))
        except TypeError:  # no hash, so no word
            bad = next(word for word in words if not isinstance(word, str))
            raise InputError(_not_words(bad)) from None
        if self._chunks == 1:
            self._check()
        if len(self) > len(self.counts):
            room = max(2 * len(self.counts), len(self))
            self.counts = np.concatenate(
                [self.counts, np.zeros(room - len(self.counts), np.int64)]
            )
        return ids

    def count(self, ids: np.ndarray) -> None:
        """Counts occurrences of words by their numbers."""
        self.counts[: len(self)] += np.bincount(ids, minlength=len(self))

    def select(
        self, min_count: int, max_words: int | None
    ) -> tuple[list[str], np.ndarray, np.ndarray]:
        """The most frequent words, their counts, and the id of each number or -1."""
        self._check()
        words = list(self._index)
        counts = self.counts[: len(words)]
        kept = np.flatnonzero(counts >= min_count).tolist()
        kept.sort(key=lambda i: (-counts[i], words[i]))
        kept = kept[:max_words]
        ids = np.full(len(words), -1, np.int32)
        ids[kept] = np.arange(len(kept), dtype=np.int32)
        return [str(words[i]) for i in kept], counts[kept], ids

    def final_ids(self, ids: np.ndarray) -> Iterator[np.ndarray]:
        """For every chunk that was numbered, in order, the id of each number in it."""
        for period in reversed(range(len(self._prunings))):
            survivors = np.load(self._step(period))
            np.save(self._map(period + 1), ids)
            ids = _compose(survivors, ids)
        period = 0
        for chunk in range(self._chunks):
            if period < len(self._prunings) and chunk == self._prunings[period]:
                period += 1
                ids = np.load(self._map(period))
            yield ids

    def _numbered(self, words: list[str]) -> dict[str, int]:
        index = collections.defaultdict(itertools.count(len(words)).__next__)
        index.update(zip(words, range(len(words)), strict=True))
        return index

    def _prune_if_full(self) -> None:
        if self._prune_at is None or len(self) <= self._prune_at:
            return
        self._check()
        counts = self.counts[: len(self)]
        # The least count of which at most half the permitted types have more.
        limit = np.partition(counts, -(self._prune_at // 2) - 1)[
            -(self._prune_at // 2) - 1
        ]
        survivors = np.flatnonzero(counts > limit)
        mapping = np.full(len(counts), -1, np.int32)
        mapping[survivors] = np.arange(len(survivors), dtype=np.int32)
        np.save(self._step(len(self._prunings)), mapping)
        self._prunings.append(self._chunks)
        keep = mapping >= 0
        words = list(itertools.compress(self._index, keep.tolist()))
        self.counts = counts[survivors]
        self._index = self._numbered(words)

    def _check(self) -> None:
        for word in self._index:
            if not isinstance(word, str):
                raise InputError(_not_words(word))
        if "" in self._index:
            raise InputError(
                "a sentence holds an empty word; `str.split()` without an argument "
                "gives none"
            )

    def _step(self, period: int) -> Path:
        return self._scratch / f"survivors-{period}.npy"

    def _map(self, period: int) -> Path:
        return self._scratch / f"ids-{period}.npy"


def _compose(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    composed = first.copy()
    known = first >= 0
    composed[known] = second[first[known]]
    return composed


def _not_words(found: object) -> str:
    return (
        "expected sentences of words (str), found a word of type "
        f"{type(found).__name__}: {str(found)[:40]!r}"
    )
