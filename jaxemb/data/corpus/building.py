"""Text as one long array of word ids on disk: what trainers of word vectors read.

`build` reads a text once and needs memory for its different words, not for its length:
while words are counted, their provisional numbers go to a scratch file, which is
renumbered when the vocabulary is known. `open_corpus` maps the result into memory.
"""

import dataclasses
import functools
import itertools
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64

from jaxemb.data.corpus.files import Meter, new_folder, read_array
from jaxemb.data.corpus.readers import read_sentences
from jaxemb.data.corpus.spool import Spool
from jaxemb.data.corpus.writing import (
    HELD_OUT,
    INFO,
    WORDS,
    Encoded,
    corpus_digest,
    write_corpus,
)
from jaxemb.errors import InputError

_CHUNK = 1 << 18  # words handled at once


@dataclasses.dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences as ids of their known words, memory-mapped.

    Attributes:
      words: by falling count, words of the same count in alphabetical order (of code
        points); their places are their ids.
      counts: how often each occurs in `tokens`.
      tokens: the ids, sentence after sentence, words that are not known left out.
      starts: where each sentence begins in `tokens`, and the end of the last.
      raw: the same in words as they were read, known or not: what was read before
        each sentence. The first is 0, so that what precedes the first sentence counts
        with it, and the last is the number of all words.
      held_out: the sentences kept apart; `words` is the same, `counts` its own.
      folder: where it is.
      sha256: of words, tokens, sentences and the held-out part, as `build` found it.
    """

    words: tuple[str, ...]
    counts: Int64[np.ndarray, " vocab"]
    tokens: Int32[np.ndarray, " tokens"]
    starts: Int64[np.ndarray, " boundaries"]
    raw: Int64[np.ndarray, " boundaries"]
    held_out: "Corpus | None"
    folder: Path
    sha256: str

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self.starts) - 1

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """The id of each word."""
        return {word: i for i, word in enumerate(self.words)}

    def sentence(self, number: int) -> list[str]:
        """The known words of one sentence."""
        ids = self.tokens[self.starts[number] : self.starts[number + 1]]
        return [self.words[i] for i in ids]


def build(
    text: str | os.PathLike[str] | Iterable[Sequence[str]] | Iterable[str],
    folder: str | os.PathLike[str],
    *,
    min_count: int = 5,
    max_words: int | None = None,
    max_sentence: int = 10_000,
    held_out: int = 0,
    prune_at: int | None = None,
    progress: bool = True,
) -> Corpus:
    """Counts the words of a text and writes it, encoded, into a new folder.

    The text is read once, so any iterator will do. The folder appears when it is
    complete; one that holds something is never written over.

    Vocabulary and counts are those of gensim's Word2Vec for the same `min_count`
    (words seen fewer times are left out), but for the order of equal counts, which
    there depends on the order of the text. Its `max_final_vocab` leaves all words of
    the lowest count out where they do not all fit, `max_words` the alphabetically last.

    Args:
      text: a file with one sentence a line (see `read_sentences`), or sentences of
        words, or single words, which are cut into sentences of `max_sentence`.
      folder: where to write it.
      min_count: words that occur less often are unknown.
      max_words: how many words are known at most.
      max_sentence: longer sentences are cut into sentences of as many words.
      held_out: with N every N-th sentence, after cutting and blank ones not counted,
        is kept apart and adds nothing to vocabulary and counts; 0 keeps none.
      prune_at: how many different words may be in memory (about 200 bytes each).
        Where there are more, the rarest are forgotten until half as many are left;
        occurrences before that are unknown, and counts are of the others.
      progress: whether to tell on standard error how far it is.

    Raises:
      InputError: where the text has no words or none often enough, or is not made of
        words, or the folder is not new.
    """
    check_settings(min_count, max_words, max_sentence, held_out, prune_at)
    settings = {
        "min_count": min_count,
        "max_words": max_words,
        "max_sentence": max_sentence,
        "held_out": held_out,
        "prune_at": prune_at,
    }
    named = os.fspath(text) if isinstance(text, str | os.PathLike) else "the text"
    with new_folder(folder) as part, tempfile.TemporaryDirectory(dir=part) as scratch:
        with Spool(Path(scratch), held_out=held_out, prune_at=prune_at) as spool:
            with Meter("reading", "words", show=progress) as meter:
                sentences = _sentences(text, max_sentence)
                for chunk, lengths in chunks(sentences, max_sentence):
                    spool.add(chunk, lengths)
                    meter.advance(len(chunk))
            words, counts, ids = spool.types.select(min_count, max_words)
            _check_words(spool, words, min_count, named)
            with Meter("encoding", "words", show=progress) as meter:
                encoded = _metered(spool.encoded(ids), meter)
                write_corpus(encoded, part, words, counts, settings)
    return open_corpus(folder)


def open_corpus(folder: str | os.PathLike[str]) -> Corpus:
    """Opens what `build` wrote.

    Raises:
      InputError: where there is no corpus, or its files do not belong together.
    """
    folder = Path(folder)
    if not (folder / INFO).is_file():
        raise InputError(f"{folder}: no corpus here ({INFO} is missing)")
    words = tuple((folder / WORDS).read_bytes().decode().split("\n")[:-1])
    told = json.loads((folder / INFO).read_text()).get("sha256")
    kept_apart = folder / HELD_OUT
    held_out = None
    if kept_apart.is_dir():
        held_out = _open_part(kept_apart, words, None, told or "")
    main = _open_part(folder, words, held_out, told or "")
    # Corpora of earlier versions do not tell it.
    return main if told else dataclasses.replace(main, sha256=corpus_digest(folder))


def _sentences(text: Any, max_sentence: int) -> Iterator[Any]:
    """Sentences of whatever `text` is."""
    if isinstance(text, str | os.PathLike):
        return iter(read_sentences(text, max_sentence=max_sentence))
    if not isinstance(text, Iterable):
        raise InputError(
            "expected a path or sentences of words, found an object of type "
            f"{type(text).__name__}"
        )
    items = iter(text)
    first = next(items, None)
    if first is None:
        return iter(())
    items = itertools.chain([first], items)
    if isinstance(first, str):
        if len(first.split()) > 1:
            raise InputError(
                f"expected sentences that are split into words, found {first[:40]!r}"
            )
        return iter(lambda: list(itertools.islice(items, max_sentence)), [])
    return items


def chunks(
    sentences: Iterator[Any], max_sentence: int
) -> Iterator[tuple[list[Any], np.ndarray]]:
    """Many sentences in one list of words, with the length of each, none of them 0.

    Longer ones than `max_sentence` are cut.
    """
    words: list[Any] = []
    lengths: list[int] = []
    for sentence in sentences:
        kind = type(sentence)  # asking for a list first is twice as fast
        if kind is not list and (
            issubclass(kind, str | bytes) or not issubclass(kind, Iterable)
        ):
            raise InputError(
                "expected sentences that are split into words, found "
                f"{str(sentence)[:40]!r} of type {kind.__name__}"
            )
        before = len(words)
        words.extend(sentence)
        length = len(words) - before
        while length > max_sentence:
            lengths.append(max_sentence)
            length -= max_sentence
        if length:
            lengths.append(length)
        if len(words) >= _CHUNK:
            yield words, np.array(lengths, np.int64)
            words, lengths = [], []
    if words:
        yield words, np.array(lengths, np.int64)


def _metered(encoded: Iterator[Encoded], meter: Meter) -> Iterator[Encoded]:
    for chunk in encoded:
        yield chunk
        meter.advance(len(chunk.ids))


def _check_words(spool: Spool, words: list[str], min_count: int, named: str) -> None:
    if not spool.sentences:
        raise InputError(f"{named}: expected words, found none")
    if not words:
        raise InputError(
            f"{named}: no word occurs {min_count} times (min_count); the most frequent "
            f"occurs {spool.types.counts.max()} times"
        )


def _open_part(
    folder: Path, words: tuple[str, ...], held_out: Corpus | None, sha256: str
) -> Corpus:
    names = ("counts", "tokens", "starts", "raw")
    counts, tokens, starts, raw = (read_array(folder / f"{n}.npy") for n in names)
    if len(counts) != len(words):
        raise InputError(
            f"{folder}: expected {len(words)} counts, one a word, found {len(counts)}"
        )
    if len(starts) != len(raw) or starts[-1] != len(tokens):
        raise InputError(f"{folder}: tokens, starts and raw do not belong together")
    return Corpus(words, counts, tokens, starts, raw, held_out, folder, sha256)


def check_settings(
    min_count: int,
    max_words: int | None,
    max_sentence: int,
    held_out: int,
    prune_at: int | None = None,
) -> None:
    """Refuses settings of `build` that cannot be used."""
    least = {"min_count": (min_count, 1), "max_sentence": (max_sentence, 1)}
    least |= {"max_words": (max_words, 1), "prune_at": (prune_at, 2)}
    for name, (value, minimum) in least.items():
        if value is not None and value < minimum:
            raise InputError(f"{name} is {value}; expected {minimum} or more")
    if held_out < 0 or held_out == 1:
        raise InputError(
            f"held_out is {held_out}; expected 0, or N of 2 or more to keep every N-th "
            "sentence apart"
        )
