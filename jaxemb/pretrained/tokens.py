"""Texts as word pieces, and which word each piece belongs to.

Cutting is the `tokenizers` library's, by the `tokenizer.json` that comes with weights.
"""

import dataclasses
import functools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Encoding, Tokenizer

from jaxemb.data.batching import Ragged, length_buckets
from jaxemb.errors import InputError
from jaxemb.pretrained.huggingface import Pretrained


class Pieces(NamedTuple):
    """Texts cut into pieces, end to end; the same lengths in all three."""

    ids: Ragged
    segments: Ragged
    """0, and 1 in the second text of a pair."""
    words: Ragged
    """The number of the word that a piece belongs to; -1 of [CLS] and the like."""

    def __len__(self) -> int:
        return len(self.ids)

    def columns(self) -> dict[str, Ragged]:
        """`ids`, `mask` and `segments`, which encoders and heads take; for batches."""
        mask = Ragged(np.ones(len(self.ids.values), bool), self.ids.offsets)
        return {"ids": self.ids, "mask": mask, "segments": self.segments}


@dataclasses.dataclass(frozen=True, eq=False)
class Cutter:
    """Cuts texts into the pieces of a pretrained encoder."""

    tokenizer: Tokenizer
    longest: int
    """Pieces of the longest text that the encoder takes, [CLS] and the like too."""

    @classmethod
    def of(cls, pretrained: Pretrained) -> "Cutter":
        """The tokenizer that came with the weights.

        Raises:
          InputError: where none did, or it cannot be read.
        """
        if pretrained.tokenizer is None:
            raise InputError("no tokenizer.json beside these weights; expected one")
        try:
            tokenizer = Tokenizer.from_buffer(pretrained.tokenizer)
        except Exception as error:  # the library raises a bare Exception
            raise InputError(f"tokenizer.json: not a tokeniser ({error})") from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return cls(tokenizer, pretrained.config.longest)

    def texts(
        self, texts: Sequence[str] | Sequence[tuple[str, str]], *, cut: bool = True
    ) -> Pieces:
        """Texts, or pairs of texts, as they are written.

        Args:
          texts: of one kind.
          cut: leave out what is beyond the longest text; of a pair, the end of the
            longer one. Otherwise such a text is an InputError.
        """
        return self._pieces(list(texts), cut, split=False)

    def sentences(
        self, sentences: Sequence[Sequence[str]], *, cut: bool = False
    ) -> Pieces:
        """Sentences that are words already; `words` numbers these.

        Byte-level tokenizers (GPT-2, RoBERTa) read a word by the space before it: here
        every word has one, the first too, as transformers' `add_prefix_space` has it.
        """
        return self._pieces([list(s) for s in sentences], cut, split=True)

    @functools.cached_property
    def around(self) -> tuple[list[int], list[int]]:
        """The ids that stand before and after a text: [CLS] and [SEP], or none."""
        encoding = self.tokenizer.encode("a")
        own = [i for i, s in enumerate(encoding.special_tokens_mask) if not s]
        if not own:
            return encoding.ids, []
        return encoding.ids[: own[0]], encoding.ids[own[-1] + 1 :]

    @functools.cached_property
    def _of_words(self) -> Tokenizer:
        """The tokenizer for words that were split before, each after a space."""
        plan = json.loads(self.tokenizer.to_str())
        _add_prefix_space(plan.get("pre_tokenizer"))
        return Tokenizer.from_str(json.dumps(plan))

    def bare(
        self, texts: Sequence[str] | Sequence[Sequence[str]]
    ) -> list[tuple[list[int], list[int]]]:
        """Of texts, or sentences that are words already, pieces and the word of each.

        Without [CLS] and the like; of any length.
        """
        split = not isinstance(texts[0], str) if len(texts) else False
        tokenizer = self._of_words if split else self.tokenizer
        encodings = tokenizer.encode_batch(
            [list(s) if split else s for s in texts],
            is_pretokenized=split,
            add_special_tokens=False,
        )
        return [(encoding.ids, _words(encoding)) for encoding in encodings]

    def _pieces(self, texts: list, cut: bool, split: bool) -> Pieces:
        tokenizer = self._of_words if split else self.tokenizer
        if cut:
            tokenizer.enable_truncation(self.longest)
        try:
            encodings = tokenizer.encode_batch(texts, is_pretokenized=split)
        finally:
            tokenizer.no_truncation()
        for number, encoding in enumerate(encodings):
            if len(encoding.ids) > self.longest:
                raise InputError(
                    f"text {number} has {len(encoding.ids)} pieces; the encoder takes "
                    f"{self.longest}: cut it, or take windows"
                )
        return Pieces(
            Ragged.of([e.ids for e in encodings]),
            Ragged.of([e.type_ids for e in encodings]),
            Ragged.of([_words(e) for e in encodings]),
        )


def _add_prefix_space(plan: Any) -> None:
    """Sets it in all byte-level parts of a pre-tokenizer's JSON."""
    if not isinstance(plan, dict):
        return
    if plan.get("type") == "ByteLevel":
        plan["add_prefix_space"] = True
    for part in plan.get("pretokenizers", ()):  # of a sequence
        _add_prefix_space(part)


def _words(encoding: Encoding) -> list[int]:
    return [-1 if word is None else word for word in encoding.word_ids]


class Window(NamedTuple):
    """A stretch of a text, and the part of it that counts."""

    start: int
    end: int
    first: int
    """The pieces from here …"""
    last: int
    """… up to, and without, this one are taken from this window."""


def windows(length: int, size: int, overlap: int) -> list[Window]:
    """Stretches of `size` that cover a long text, neighbours sharing `overlap`.

    Every place counts in one window: of two that share it the one whose edge is
    farther, so that pieces keep context on both sides.
    """
    if not 0 <= overlap < size:
        raise InputError(f"overlap is {overlap}; expected 0 or more, below {size}")
    starts = [0]
    while starts[-1] + size < length:
        starts.append(min(starts[-1] + size - overlap, length - size))
    found = []
    first = 0
    for place, start in enumerate(starts):
        end = min(start + size, length)
        following = starts[place + 1] if place + 1 < len(starts) else None
        last = end if following is None else (following + end + 1) // 2
        found.append(Window(start, end, first, last))
        first = last
    return found


class LikeLengths(NamedTuple):
    """Texts that are encoded together."""

    rows: np.ndarray
    """Their numbers."""
    filled: np.ndarray
    """The same, and the first again until there are as many as in every batch."""
    length: int
    """That all are padded to."""


def by_length(
    lengths: np.ndarray, batch_size: int, buckets: int, longest: int
) -> list[LikeLengths]:
    """Batches of one size in the order of lengths, of a few padded lengths.

    Args:
      lengths: of all texts, in pieces.
      batch_size: texts of a batch.
      buckets: how many padded lengths there are.
      longest: that the encoder takes; nothing is padded beyond it.
    """
    sizes = length_buckets(lengths, buckets) if len(lengths) else ()
    order = np.argsort(lengths, kind="stable")
    batches = []
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        filled = np.concatenate([rows, np.repeat(rows[:1], batch_size - len(rows))])
        size = next(s for s in sizes if s >= lengths[rows].max())
        batches.append(LikeLengths(rows, filled, min(size, longest)))
    return batches


def padded(pieces: Ragged, rows: np.ndarray, length: int) -> tuple[np.ndarray, ...]:
    """The named rows as a matrix, and its mask."""
    mask = np.arange(length) < pieces.lengths[rows][:, None]
    return pieces.padded(rows, length), mask
