"""The arrays of a corpus, written chunk by chunk."""

import contextlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxemb.data.corpus.files import ArrayWriter, digest
from jaxemb.errors import InputError

INFO, WORDS, HELD_OUT = "corpus.json", "words.txt", "held_out"


class Encoded(NamedTuple):
    """Sentences as ids of their words, -1 for those that are not known."""

    ids: np.ndarray  # int32, one a word
    lengths: np.ndarray  # int64, one a sentence, none of them 0
    apart: np.ndarray  # bool, one a sentence: whether it is held out

    def known(self) -> np.ndarray:
        """How many words of each sentence are known."""
        starts = np.cumsum(self.lengths) - self.lengths
        return np.add.reduceat(self.ids >= 0, starts, dtype=np.int64)

    def part(self, apart: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the sentences held out or the others: ids, known words, all words."""
        chosen = self.apart == apart
        ids = self.ids[np.repeat(chosen, self.lengths)]
        return ids[ids >= 0], self.known()[chosen], self.lengths[chosen]


def write_corpus(
    chunks: Iterable[Encoded],
    folder: Path,
    words: Sequence[str],
    counts: np.ndarray,
    settings: dict[str, Any],
) -> None:
    """Writes a corpus into a folder that is there.

    Args:
      chunks: the text.
      folder: where.
      words: by their ids.
      counts: of each in the sentences that are not held out.
      settings: what the corpus was made with; `held_out` is one of them.
    """
    apart_counts = np.zeros(len(words), np.int64)
    every = settings["held_out"]
    sentences = 0
    with contextlib.ExitStack() as stack:
        main = stack.enter_context(_SentenceWriter(folder))
        other = None
        if every:
            other = stack.enter_context(_SentenceWriter(folder / HELD_OUT))
        for chunk in chunks:
            main.write(*chunk.part(apart=False))
            sentences += len(chunk.lengths)
            if other is not None:
                ids, known, raw = chunk.part(apart=True)
                other.write(ids, known, raw)
                apart_counts += np.bincount(ids, minlength=len(words))
    if other is not None:
        if not apart_counts.any():
            raise InputError(
                f"held_out keeps every {every}-th sentence apart, but of {sentences} "
                "none with a known word"
            )
        np.save(folder / HELD_OUT / "counts.npy", apart_counts)
    _write_vocabulary(folder, words, counts, settings)


def corpus_digest(folder: Path) -> str:
    """The sha256 of all that training depends on: words, text and the part held out."""
    names = ("counts.npy", "tokens.npy", "starts.npy")
    paths = [folder / name for name in (WORDS, *names)]
    if (folder / HELD_OUT).is_dir():
        paths += [folder / HELD_OUT / name for name in names]
    return digest(paths)


class _SentenceWriter:
    """Writes the arrays of a corpus chunk by chunk."""

    def __init__(self, folder: Path):
        """Opens them in `folder`."""
        folder.mkdir(exist_ok=True)
        self._tokens = ArrayWriter(folder / "tokens.npy", np.int32)
        self._starts = ArrayWriter(folder / "starts.npy", np.int64)
        self._raw = ArrayWriter(folder / "raw.npy", np.int64)
        self._read = 0

    def __enter__(self) -> "_SentenceWriter":
        return self

    def __exit__(self, *_) -> None:
        self._starts.write(np.array([len(self._tokens)]))
        if not len(self._raw):
            self._raw.write(np.array([0]))
        self._raw.write(np.array([self._read]))
        for writer in (self._tokens, self._starts, self._raw):
            writer.__exit__()

    def write(self, tokens: np.ndarray, known: np.ndarray, raw: np.ndarray) -> None:
        """Appends sentences: ids of known words, how many a sentence, all words."""
        starts = len(self._tokens) + np.cumsum(known) - known
        before = self._read + np.cumsum(raw) - raw
        kept = known > 0
        before = before[kept]
        if not len(self._raw):
            before[:1] = 0
        self._tokens.write(tokens)
        self._starts.write(starts[kept])
        self._raw.write(before)
        self._read += int(raw.sum())


def _write_vocabulary(
    folder: Path, words: Sequence[str], counts: np.ndarray, settings: dict[str, Any]
) -> None:
    """Writes what makes arrays a corpus: words, counts, then settings and digest."""
    for word in words:
        if "\n" in word:
            raise InputError(f"the word {word!r} holds a line break")
    try:
        text = "".join(f"{word}\n" for word in words).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"a word is not valid Unicode ({error.reason})") from error
    (folder / WORDS).write_bytes(text)
    np.save(folder / "counts.npy", counts.astype(np.int64))
    info = {"format": 1, **settings, "sha256": corpus_digest(folder)}
    (folder / INFO).write_text(json.dumps(info, indent=1) + "\n")
