"""Words and their ids."""

import collections
import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jaxemb.data import files
from jaxemb.errors import InputError

PAD, UNK = "<pad>", "<unk>"
PAD_ID, UNK_ID = 0, 1


def read_counts(path: files.Location) -> dict[str, int]:
    """Reads how often each word occurs: a word, white space and a count a line.

    This is what GloVe's `vocab_count` writes. Blank lines are left out.

    Raises:
      InputError: with file and line, where a count is no whole number or a word comes
        twice, and where there is no word.
    """
    counts: dict[str, int] = {}
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        word, *rest = line.split()
        # `isdigit` alone lets superscripts through, which `int` refuses.
        if len(rest) != 1 or not (rest[0].isascii() and rest[0].isdigit()):
            problem = "expected a word and how often it occurs"
            raise InputError.at(str(path), number, problem)
        if word in counts:
            raise InputError.at(str(path), number, f"{word!r} comes twice")
        counts[word] = int(rest[0])
    if not counts:
        raise InputError(f"{path}: expected words and their counts, found none")
    return counts


@dataclasses.dataclass(frozen=True)
class Vocab:
    """Words in the order of their ids; id 0 pads, id 1 stands for every other word."""

    words: tuple[str, ...]

    def __post_init__(self):
        if self.words[:2] != (PAD, UNK):
            raise InputError(f"a vocabulary begins with {PAD} and {UNK}")
        if len(self.index) != len(self.words):
            word, _ = collections.Counter(self.words).most_common(1)[0]
            raise InputError(f"the word {word!r} is in the vocabulary twice")

    @classmethod
    def build(
        cls,
        texts: Iterable[Iterable[str]],
        *,
        min_count: int = 1,
        max_size: int | None = None,
    ) -> "Vocab":
        """The words of `texts`, most frequent first, ties in alphabetical order.

        Args:
          texts: the tokens of each text.
          min_count: words seen less often are left out.
          max_size: the most words to keep, the two special ones included.
        """
        if max_size is not None and max_size < 2:
            raise InputError(f"max_size is {max_size}; {PAD} and {UNK} need 2")
        counts = collections.Counter(word for text in texts for word in text)
        del counts[PAD], counts[UNK]
        kept = [word for word, count in counts.items() if count >= min_count]
        kept.sort(key=lambda word: (-counts[word], word))
        return cls((PAD, UNK, *kept)[:max_size])

    @classmethod
    def read(cls, path: files.Location) -> "Vocab":
        """Reads what `write` wrote: one word a line, in the order of ids."""
        words = tuple(files.read_lines(path))
        try:
            return cls(words)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes one word a line, in the order of ids."""
        for word in self.words:
            if "\n" in word or word.endswith("\r"):
                raise InputError(f"the word {word!r} does not fit on a line of {path}")
        with files.write_atomically(path) as part:
            part.write_text(
                "".join(f"{word}\n" for word in self.words),
                encoding="utf-8",
                newline="\n",
            )

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """The id of each word."""
        return {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def encode(self, tokens: Iterable[str]) -> np.ndarray:
        """The ids of `tokens`, int32."""
        index = self.index
        return np.array([index.get(token, UNK_ID) for token in tokens], np.int32)

    def decode(self, ids: Sequence[int] | np.ndarray) -> tuple[str, ...]:
        """The words of `ids`, padding left out."""
        wrong = [i for i in ids if not 0 <= i < len(self)]
        if wrong:
            raise InputError(f"expected ids of 0 to {len(self) - 1}, found {wrong[0]}")
        return tuple(self.words[i] for i in ids if i != PAD_ID)
