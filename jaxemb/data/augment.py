"""Texts changed at random to have more of them: pure functions of a text and a seed.

A document is sentences of words. Nothing here keeps state: the same generator gives the
same text. As in Tang et al. (2019), "Distilling Task-Specific Knowledge from BERT", and
DocBERT's transfer sets, which shuffle sentences beside. A user's own texts and tags:

    from jaxemb.data import augment

    texts = ["The dog sleeps. A cat runs off.", "The cat sleeps. It is fine."]
    documents = [tuple(tuple(s.split()) for s in t.split(".") if s) for t in texts]
    tags = {"The": "D", "A": "D", "dog": "N", "cat": "N", "sleeps": "V", "runs": "V"}
    tag = lambda words: [tags.get(word, word) for word in words]  # any tagger

    copies = augment.transfer_set(documents, tag, factor=4, seed=0)
    larger = documents + [copy.sentences for copy in copies]
    labels = [0, 1] + [[0, 1][copy.source] for copy in copies]
"""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jaxemb.errors import InputError

MASK = "[MASK]"

Words = tuple[str, ...]
Document = tuple[Words, ...]
Tag = Callable[[Sequence[str]], Sequence[str]]


@dataclasses.dataclass(frozen=True, eq=False)
class WordsByTag:
    """The words that a corpus has of each tag, and how often."""

    words: Mapping[str, np.ndarray]
    shares: Mapping[str, np.ndarray]
    """Cumulative, up to 1."""

    @classmethod
    def count(cls, sentences: Iterable[Sequence[str]], tag: Tag) -> "WordsByTag":
        """Counts the words of sentences under the tags that `tag` gives them."""
        counts: dict[str, collections.Counter] = {}
        for sentence in sentences:
            for word, own in zip(sentence, tag(sentence), strict=True):
                counts.setdefault(own, collections.Counter())[word] += 1
        words, shares = {}, {}
        for own, found in counts.items():
            ordered = sorted(found)
            words[own] = np.array(ordered, object)
            running = np.cumsum([found[word] for word in ordered])
            shares[own] = running / running[-1]
        return cls(words, shares)

    def draw(self, tag: str, generator: np.random.Generator) -> str:
        """A word of the tag, as often as the corpus has it."""
        if tag not in self.words:
            raise InputError(f"WordsByTag: no word of tag {tag!r}")
        place = np.searchsorted(self.shares[tag], generator.random(), side="right")
        return str(self.words[tag][place])


def mask_or_swap(
    words: Sequence[str],
    tags: Sequence[str],
    vocabulary: WordsByTag,
    generator: np.random.Generator,
    *,
    mask_rate: float = 0.1,
    swap_rate: float = 0.1,
) -> Words:
    """Hides some words behind `MASK` and puts others of the same tag for some.

    One uniform draw a word decides: below `mask_rate` it is hidden, in the next
    `swap_rate` it is swapped. There are as many words as before.

    Args:
      words: of a sentence or a text.
      tags: of each word.
      vocabulary: what swapped words are drawn from.
      generator: of all that is drawn.
      mask_rate: share of words that are hidden.
      swap_rate: share of words that are swapped; a word may be drawn for itself.
    """
    if mask_rate < 0 or swap_rate < 0 or mask_rate + swap_rate > 1:
        raise InputError(
            f"mask_or_swap: rates of {mask_rate} and {swap_rate}; expected 0 or more, "
            "and 1 or less together."
        )
    draws = generator.random(len(words))
    changed = []
    for word, tag, draw in zip(words, tags, draws, strict=True):
        if draw < mask_rate:
            word = MASK
        elif draw < mask_rate + swap_rate:
            word = vocabulary.draw(tag, generator)
        changed.append(word)
    return tuple(changed)


def mask(
    words: Sequence[str], generator: np.random.Generator, rate: float = 0.1
) -> Words:
    """Hides a share of the words behind `MASK`."""
    hidden = generator.random(len(words)) < rate
    return tuple(MASK if h else w for w, h in zip(words, hidden, strict=True))


def pos_swap(
    words: Sequence[str],
    tags: Sequence[str],
    vocabulary: WordsByTag,
    generator: np.random.Generator,
    rate: float = 0.1,
) -> Words:
    """Puts words of the same tag for a share of the words."""
    return mask_or_swap(
        words, tags, vocabulary, generator, mask_rate=0.0, swap_rate=rate
    )


def shuffle_sentences(
    sentences: Sequence[Words], generator: np.random.Generator
) -> Document:
    """The same sentences in a random order."""
    return tuple(sentences[place] for place in generator.permutation(len(sentences)))


def sample_ngram(
    words: Sequence[str], generator: np.random.Generator, longest: int = 5
) -> Words:
    """A stretch of one to `longest` words, all lengths and places alike.

    Tang et al. take it in place of a quarter of the texts; DocBERT does not.
    """
    if not words:
        return ()
    length = int(generator.integers(1, min(longest, len(words)) + 1))
    start = int(generator.integers(0, len(words) - length + 1))
    return tuple(words[start : start + length])


class Copy(NamedTuple):
    """A changed document."""

    source: int
    """The number of the document that it was."""
    number: int
    """From 1: 0 is the document itself."""
    sentences: Document


def transfer_set(
    documents: Sequence[Document],
    tag: Tag,
    *,
    factor: int,
    seed: int,
    mask_rate: float = 0.1,
    swap_rate: float = 0.1,
    shuffle: bool = True,
    ngram_rate: float = 0.0,
) -> list[Copy]:
    """The changed copies that make a set of documents `factor` times as large.

    Every copy is masked, swapped and shuffled in one pass. Copies that equal their
    document or another of its copies, or of whose words none is left, are dropped, so
    that there may be fewer. A copy depends on its document's number and words, its own
    number and the seed alone, and on what all documents have for swapping.

    Args:
      documents: sentences of words.
      tag: from the words of a sentence to their tags.
      factor: how many times as many texts there are to be, the documents counted.
      seed: of all that is drawn.
      mask_rate: see `mask_or_swap`.
      swap_rate: see `mask_or_swap`.
      shuffle: whether sentences change places.
      ngram_rate: share of copies of which `sample_ngram` leaves a stretch.
    """
    if factor < 1:
        raise InputError(f"transfer_set: factor is {factor}; expected 1 or more.")
    vocabulary = WordsByTag.count((s for d in documents for s in d), tag)
    copies = []
    for source, document in enumerate(documents):
        tags = [tag(sentence) for sentence in document]
        seen = {document}
        for number in range(1, factor):
            generator = np.random.default_rng([seed, source, number])
            rates = {"mask_rate": mask_rate, "swap_rate": swap_rate}
            changed = tuple(
                mask_or_swap(sentence, own, vocabulary, generator, **rates)
                for sentence, own in zip(document, tags, strict=True)
            )
            if shuffle:
                changed = shuffle_sentences(changed, generator)
            if ngram_rate and generator.random() < ngram_rate:
                changed = (sample_ngram([w for s in changed for w in s], generator),)
            left = any(word != MASK for sentence in changed for word in sentence)
            if left and changed not in seen:
                seen.add(changed)
                copies.append(Copy(source, number, changed))
    return copies
