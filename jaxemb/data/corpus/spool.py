"""A text on disk while its words are counted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxemb.data.corpus.types import Types
from jaxemb.data.corpus.writing import Encoded


def held_apart(first: int, number: int, every: int) -> np.ndarray:
    """Which of `number` sentences, of which `first` came before, are held out."""
    if not every:
        return np.zeros(number, bool)
    return np.arange(first + 1, first + number + 1) % every == 0


class Spool:
    """A text as provisional numbers of its words, on disk."""

    def __init__(self, scratch: Path, *, held_out: int, prune_at: int | None):
        """Opens its files in the folder `scratch`."""
        self.types = Types(scratch, prune_at)
        self.sentences = 0
        self._scratch = scratch
        self._held_out = held_out
        self._sizes: list[tuple[int, int]] = []  # words and sentences of each chunk
        self._ids = (scratch / "ids").open("wb")
        self._lengths = (scratch / "lengths").open("wb")

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_) -> None:
        self._ids.close()
        self._lengths.close()

    def add(self, words: list[Any], lengths: np.ndarray) -> None:
        """Counts and keeps a chunk of sentences: all their words, their lengths."""
        ids = self.types.number(words)
        apart = held_apart(self.sentences, len(lengths), self._held_out)
        self.types.count(ids[~np.repeat(apart, lengths)] if apart.any() else ids)
        self._ids.write(ids.data)
        self._lengths.write(lengths.data)
        self._sizes.append((len(ids), len(lengths)))
        self.sentences += len(lengths)

    def encoded(self, final: np.ndarray) -> Iterator[Encoded]:
        """The chunks with their final ids, given those that `types.select` gave."""
        self._ids.flush()
        self._lengths.flush()
        done = 0
        with (
            (self._scratch / "ids").open("rb") as ids,
            (self._scratch / "lengths").open("rb") as lengths,
        ):
            maps = self.types.final_ids(final)
            for (words, sentences), to_final in zip(self._sizes, maps, strict=True):
                yield Encoded(
                    to_final[np.fromfile(ids, np.int32, words)],
                    np.fromfile(lengths, np.int64, sentences),
                    held_apart(done, sentences, self._held_out),
                )
                done += sentences
