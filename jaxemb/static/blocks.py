"""A corpus as blocks of neighbouring words, a function of the step.

A chunk is a run of whole sentences and is what one step trains on. Frequent words are
left out of it by chance; what remains is laid out in blocks, each of which makes one
update of the tables, and a block in groups, within which every product of a word and
its neighbours is part of one small matrix product. Nothing is laid out as pairs.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from jaxemb.data.corpus import Corpus
from jaxemb.errors import InputError
from jaxemb.static.settings import check_at_least
from jaxemb.static.subwords import NGrams

_WIDEST = 127  # radii are kept in bytes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """Sizes of the parts of a text: a chunk is cut into updates, these into groups.

    Larger parts are faster, and another size gives other vectors of the same quality
    as long as an update meets most of its words seldom: the words of an update see the
    tables as they were before it.
    """

    chunk: int = 32_768
    """Words of a step, about, before frequent ones are left out: what is laid out at
    once, and the distance at which the learning rate falls."""
    groups: int | None = None
    """Groups of an update, which devices and processes share out: a multiple of their
    number. If None, 64, or 16 where words are made of n-grams or of an encoder's
    vectors: the same n-gram comes often, and all its places in an update move it at
    once. Take fewer, too, for a vocabulary so small that an update meets every word
    often."""
    group: int = 16
    """Neighbouring words that share a matrix product and their noise words."""

    def __post_init__(self):
        for field in ("chunk", "group"):
            check_at_least(1, self, field)
        if self.groups is not None:
            check_at_least(1, self, "groups")

    def settled(self, subwords: bool = False) -> "Layout":
        """The same with `groups` chosen."""
        if self.groups is not None:
            return self
        return dataclasses.replace(self, groups=16 if subwords else 64)

    @property
    def block(self) -> int:
        """Words of an update; of a layout that is settled."""
        assert self.groups is not None
        return self.groups * self.group


def keep_probability(
    counts: Int[np.ndarray, " vocab"], sample: float
) -> Float[np.ndarray, " vocab"]:
    """The chance that an occurrence of a word is trained on.

    `sqrt(sample / f) + sample / f` for a word of frequency f, at most 1: what word2vec
    computes. A sample of 0 keeps all.
    """
    if sample <= 0:
        return np.ones(len(counts), np.float32)
    ratio = sample * counts.sum() / np.maximum(counts, 1)
    return np.minimum(np.sqrt(ratio) + ratio, 1).astype(np.float32)


def reach(
    sentence: Int[np.ndarray, " words"], radius: Int[np.ndarray, " words"]
) -> tuple[Int[np.ndarray, " words"], Int[np.ndarray, " words"]]:
    """How many words before and after each are its neighbours.

    Args:
      sentence: the number of each word's sentence, never falling.
      radius: of each word's window, which ends with its sentence.
    """
    count = len(sentence)
    here = np.arange(count)
    new = np.ones(count, bool)
    new[1:] = sentence[1:] != sentence[:-1]
    first = np.flatnonzero(new)
    lengths = np.diff(first, append=count)
    before = here - np.repeat(first, lengths)
    after = np.repeat(first + lengths, lengths) - 1 - here
    return np.minimum(before, radius), np.minimum(after, radius)


class _Drawn(NamedTuple):
    """What is kept of a chunk."""

    tokens: np.ndarray
    places: np.ndarray
    """Where each stands in the corpus."""
    before: np.ndarray
    after: np.ndarray
    raw: int
    """Words of the chunk before any were left out, unknown ones too."""


class Blocks:
    """`blocks(step)`: the chunk of a step, its words drawn and laid out.

    Chunks come in a new order each epoch. All randomness is a function of seed and
    step, so that a run can go on from any step; and each process of several takes its
    own groups of every block.
    """

    def __init__(
        self,
        corpus: Corpus,
        layout: Layout,
        *,
        window: int = 5,
        dynamic: bool = True,
        sample: float = 1e-3,
        seed: int = 0,
        ngrams: NGrams | None = None,
        vectors: Callable[[np.ndarray], np.ndarray] | None = None,
        process: tuple[int, int] = (0, 1),
    ):
        """Plans the chunks.

        Args:
          corpus: to train on.
          layout: sizes of the parts.
          window: the largest radius of a window.
          dynamic: draw each word's radius from 1 to `window`, so that near neighbours
            count more; else it is `window`.
          sample: the frequency above which words are left out; 0 for never.
          seed: of order and draws.
          ngrams: of the vocabulary, to be laid out with the words.
          vectors: from places in `corpus.tokens`, of any shape, to a vector of each,
            to be laid out with the words.
          process: index and number of the processes that share a block.
        """
        if not 1 <= window <= _WIDEST:
            raise InputError(f"window is {window}; expected 1 to {_WIDEST}")
        layout = layout.settled()
        assert layout.groups is not None
        if layout.groups % process[1]:
            raise InputError(
                f"layout: {layout.groups} groups of a block cannot be shared by "
                f"{process[1]} processes"
            )
        self.window = window
        self._groups, self._group = layout.groups, layout.group
        self._block = layout.block
        self._corpus = corpus
        self._dynamic = dynamic
        self._sample, self._keep = sample, keep_probability(corpus.counts, sample)
        self._seed, self._ngrams, self._vectors = seed, ngrams, vectors
        share = layout.groups // process[1]
        self._own_groups = slice(process[0] * share, (process[0] + 1) * share)
        number = max(1, math.ceil(len(corpus.tokens) / layout.chunk))
        # Chunks end with the sentence nearest to equal shares of the words; one that
        # falls within a long sentence is none.
        aims = np.arange(number + 1) * (len(corpus.tokens) / number)
        borders = np.searchsorted(corpus.starts, aims)
        borders[-1] = len(corpus.starts) - 1
        self._sentences = np.unique(borders)
        self.num_chunks = len(self._sentences) - 1
        longest = int(np.diff(corpus.starts[self._sentences]).max())
        self._num_blocks = max(1, math.ceil(longest / self._block))

    def __call__(self, step: int) -> dict[str, np.ndarray]:
        """The batch of a step.

        Returns:
          `words`: (groups, blocks, group + 2 window), words with `window` neighbours on
          either side, filled up by the number after the last word's; `before`, `after`:
          (groups, blocks, group), how many of them are neighbours indeed, 0 for those
          that fill up; `blocks`, `raw`: (groups,),
          how many blocks hold words, and how many words of text the step covers. With
          n-grams `ngrams`, `owners`: (groups, blocks, most), as `NGrams.lay_out` has
          them. With vectors `vectors`: (groups, blocks, group, dim), any numbers where
          nothing but filling is.

        Raises:
          InputError: where no word of the whole epoch has a neighbour.
        """
        tokens, places, before, after, raw = self._drawn(step)
        epoch = step // self.num_chunks
        if not before.any() and not self.has_neighbours(epoch):
            raise InputError(
                f"{self._corpus.folder}: nothing to learn in epoch {epoch + 1}, since "
                "no sentence has two words left (those that are known, and not left "
                f"out by sample={self._sample})"
            )
        blocks = max(1, math.ceil(len(tokens) / self._block))
        # Past the last row of a table: no word's gradients are counted there.
        filling = len(self._corpus.words)
        words = self._in_groups(tokens.astype(np.int32), self.window, filling)
        batch = {
            "words": words,
            "before": self._in_groups(before.astype(np.int8), 0, 0),
            "after": self._in_groups(after.astype(np.int8), 0, 0),
            "blocks": np.full(self._groups, blocks, np.int32),
            "raw": np.full(self._groups, raw, np.int32),
        }
        batch = {name: leaf[self._own_groups] for name, leaf in batch.items()}
        if self._ngrams is not None:
            centres = words[..., self.window : words.shape[-1] - self.window]
            most = self._ngrams.most(centres)
            own = self._ngrams.lay_out(centres[self._own_groups], most)
            batch["ngrams"], batch["owners"] = own
        if self._vectors is not None:
            own = self._in_groups(places, 0, 0)[self._own_groups]
            batch["vectors"] = self._vectors(own)
        return batch

    @functools.lru_cache(maxsize=2)  # noqa: B019 - lives as long as the run
    def has_neighbours(self, epoch: int) -> bool:
        """Whether any word of an epoch has a neighbour, frequent words left out."""
        steps = range(epoch * self.num_chunks, (epoch + 1) * self.num_chunks)
        return any(self._drawn(step).before.any() for step in steps)

    def _drawn(self, step: int) -> "_Drawn":
        epoch, place = divmod(step, self.num_chunks)
        chunk = int(self._order(epoch)[place])
        first, last = self._sentences[chunk : chunk + 2].tolist()
        tokens, sentence = self._tokens_of(first, last)
        rng = np.random.default_rng([self._seed, epoch, 1 + place])
        kept = rng.random(len(tokens), np.float32) < self._keep[tokens]
        tokens, sentence = tokens[kept], sentence[kept]
        places = int(self._corpus.starts[first]) + np.flatnonzero(kept)
        if self._dynamic:
            radius = rng.integers(1, self.window, len(tokens), np.int8, endpoint=True)
        else:
            radius = np.full(len(tokens), self.window, np.int8)
        before, after = reach(sentence, radius)
        raw = int(self._corpus.raw[last] - self._corpus.raw[first])
        return _Drawn(tokens, places, before, after, raw)

    @functools.lru_cache(maxsize=2)  # noqa: B019 - lives as long as the run
    def _order(self, epoch: int) -> np.ndarray:
        rng = np.random.default_rng([self._seed, epoch, 0])
        return rng.permutation(self.num_chunks)

    def _tokens_of(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        starts = np.asarray(self._corpus.starts[first : last + 1])
        tokens = np.asarray(self._corpus.tokens[starts[0] : starts[-1]])
        sentence = np.repeat(np.arange(last - first, dtype=np.int32), np.diff(starts))
        return tokens, sentence

    def _in_groups(self, values: np.ndarray, halo: int, filling: int) -> np.ndarray:
        """(groups, blocks, group + 2 halo), overlapping by the halo."""
        size = self._num_blocks * self._block
        padded = np.full(size + 2 * halo, filling, values.dtype)
        padded[halo : halo + len(values)] = values
        windows = np.lib.stride_tricks.sliding_window_view(
            padded, self._group + 2 * halo
        )[:: self._group]
        windows = windows.reshape(self._num_blocks, self._groups, -1)
        return np.ascontiguousarray(windows.swapaxes(0, 1))
