"""Sentences with a tag for every word, as taggers read them."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from jaxemb.data import batching, conllu, sources
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import lookup


class Sentence(NamedTuple):
    """Words, and a tag for each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


Parts = Mapping[str, Sequence[Sentence]]


def read_ewt(
    tags: Literal["upos", "xpos"],
) -> tuple[dict[str, list[Sentence]], sources.Found]:
    """UD English EWT: train, dev and test, a word without a tag as `_`."""
    found = sources.get("ud-english-ewt")
    return {
        name: [
            Sentence(tuple(s.forms), tuple(getattr(w, tags) or "_" for w in s.words))
            for s in conllu.read_conllu(found.part(name))
        ]
        for name in ("train", "dev", "test")
    }, found


def number_tags(parts: Parts) -> tuple[tuple[str, ...], dict[str, list[list[int]]]]:
    """The tags of the training part, and those of every part as numbers.

    A tag that training has never seen is no class: its number is one past the last,
    and it is never right.
    """
    tags = tuple(sorted({tag for s in parts["train"] for tag in s.tags}))
    place = {tag: i for i, tag in enumerate(tags)}
    return tags, {
        name: [[place.get(tag, len(tags)) for tag in s.tags] for s in own]
        for name, own in parts.items()
    }


def vectors_of(
    table: WordVectors, words: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """A row a word, as written or in lower case, 0 where there is none; which have one.

    Args:
      table: where they are looked up.
      words: each once.
    """
    found = lookup.look_up(table, words, "fallback")
    places = found.places
    rows = found.rows[[places[word] for word in words]]
    matrix = np.asarray(table.matrix, np.float32)
    return np.where((rows >= 0)[:, None], matrix[rows], 0), rows >= 0


def shortened(spelled: batching.Ragged, longest: int) -> batching.Ragged:
    """Words as letters, without the middle of those that are too long.

    Args:
      spelled: a row of letters a word.
      longest: letters that are kept, half of them from each end.
    """
    ends = longest // 2
    values, offsets = spelled.values, spelled.offsets
    return batching.Ragged.of(
        [
            values[a:b]
            if b - a <= longest
            else np.concatenate([values[a : a + ends], values[b - ends : b]])
            for a, b in zip(offsets, offsets[1:], strict=False)
        ]
    )
