"""Texts as weighted words."""

import collections
import dataclasses
import functools
from collections.abc import Iterable, Sequence

import numpy as np

from jaxemb.data.batching import Ragged
from jaxemb.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class Tfidf:
    """`tf * idf` of a text's words, at length 1; as scikit-learn's defaults have it.

    idf = ln((1 + n) / (1 + df)) + 1, of n texts in which df have the word. Words that
    were not there when it was learnt count nothing.
    """

    words: tuple[str, ...]
    """In alphabetical order; a word's number is its place."""
    idf: np.ndarray

    @classmethod
    def learn(
        cls,
        texts: Iterable[Sequence[str]],
        *,
        min_texts: int = 1,
        max_words: int | None = None,
    ) -> "Tfidf":
        """Counts in how many texts every word is.

        Args:
          texts: words of each, without those that are not to count.
          min_texts: words in fewer texts are left out.
          max_words: the most words to keep, those in the most texts; ties in
            alphabetical order.
        """
        counts: collections.Counter = collections.Counter()
        number = 0
        for text in texts:
            number += 1
            counts.update(set(text))
        kept = sorted(
            (word for word, count in counts.items() if count >= min_texts),
            key=lambda word: (-counts[word], word),
        )
        words = tuple(sorted(kept[:max_words]))
        if not words:
            raise InputError("Tfidf: expected texts with words, found none")
        have = np.array([counts[word] for word in words])
        return cls(words, np.log((1 + number) / (1 + have)) + 1)

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """The number of each word."""
        return {word: place for place, word in enumerate(self.words)}

    def transform(self, texts: Sequence[Sequence[str]]) -> tuple[Ragged, Ragged]:
        """Numbers of words from 1, since 0 fills batches up, and their weights."""
        ids, weights = [], []
        for text in texts:
            known = (self.index[word] for word in text if word in self.index)
            counts = sorted(collections.Counter(known).items())
            own = np.array([place for place, _ in counts], np.int64)
            weight = np.array([count for _, count in counts]) * self.idf[own]
            ids.append(own + 1)
            weights.append(weight / (np.linalg.norm(weight) or 1.0))
        return Ragged.of(ids), Ragged.of(weights, np.float32)
