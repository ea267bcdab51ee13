"""What every reader of word vectors shares: the request, the rows kept, the report."""

import dataclasses
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxemb.data.formats.subwords import Subwords
from jaxemb.errors import InputError

_PROBLEMS_KEPT = 10
_BLIND_ALLOCATION = 1 << 24  # bytes reserved on the word of a header alone
_HEADER = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,9})[ \t\r]*")


@dataclasses.dataclass(frozen=True)
class ReadReport:
    """What a reader left out."""

    duplicates: int = 0
    """Rows whose word had come before; the first row won."""
    skipped: int = 0
    """Bad lines or records that `on_bad="skip"` left out."""
    problems: tuple[str, ...] = ()
    """The first ten of them, each naming file and place."""

    def __str__(self) -> str:
        first = f" (first: {self.problems[0]})" if self.problems else ""
        return f"{self.skipped} bad rows skipped{first}, {self.duplicates} duplicates"


class Request(NamedTuple):
    """What the caller wants of a file."""

    name: str  # of the file, for messages
    keep: frozenset[str] | None = None
    limit: int | None = None  # only the first rows of the file
    on_bad: str = "error"
    encoding: str = "utf-8"
    size: int | None = None  # bytes after decompression, where known

    def holds(self, count: int, minimum: int) -> bool:
        """Whether the file can hold `count` records of at least `minimum` bytes."""
        return self.size is None or count * minimum <= self.size


class Table(NamedTuple):
    """A file's words and rows."""

    words: tuple[str, ...]
    matrix: np.ndarray  # (vocab, dim) float32
    report: ReadReport
    subwords: Subwords | None = None


class TableBuilder:
    """Collects rows: of duplicates the first wins, bad ones raise or are counted."""

    def __init__(
        self, request: Request, dim: int, *, unit: str = "line", expected: int = 0
    ):
        """Starts empty.

        Args:
          request: the caller's wishes.
          dim: numbers a row.
          unit: what a place in this file is called: "line", "record" or "row".
          expected: rows to reserve room for; more may come.
        """
        self._request, self._dim, self._unit = request, dim, unit
        if request.keep is not None:
            expected = min(expected, len(request.keep))
        if request.limit is not None:
            expected = min(expected, request.limit)
        if request.size is None:
            expected = min(expected, _BLIND_ALLOCATION // (4 * dim))
        self._expected = expected
        self._matrix = np.empty((0, dim), np.float32)
        self._words: dict[str, None] = {}  # in order
        self._duplicates = 0
        self._skipped = 0
        self._problems: list[str] = []

    @property
    def complete(self) -> bool:
        """Whether every word to keep has been found."""
        keep = self._request.keep
        return keep is not None and len(self._words) == len(keep)

    def bad(self, number: int | None, problem: str) -> None:
        """Raises for the line or record of that number, or counts it as skipped."""
        name = self._request.name
        if number is None:
            error = InputError(f"{name}: {problem}")
        elif self._unit == "line":
            error = InputError.at(name, number, problem)
        else:
            error = InputError(f"{name}: {self._unit} {number}: {problem}")
        if self._request.on_bad == "error":
            raise error
        self._skipped += 1
        if len(self._problems) < _PROBLEMS_KEPT:
            self._problems.append(str(error))

    def add(self, words: Sequence[str], rows: np.ndarray, numbers: Sequence[int]):
        """Appends rows, leaving out repeated, unwanted and non-finite ones.

        Args:
          words: one a row.
          rows: float32, (words, dim).
          numbers: the line or record that each came from.
        """
        known, keep = self._words, self._request.keep
        fresh = dict.fromkeys(words)
        if (
            keep is None
            and len(fresh) == len(words)
            and known.keys().isdisjoint(fresh)
            and np.isfinite(rows).all()
        ):
            known.update(fresh)
        else:
            finite = np.asarray(np.isfinite(rows).all(axis=1))
            chosen = []
            for i, word in enumerate(words):
                if keep is not None and word not in keep:
                    continue
                if not finite[i]:
                    self.bad(numbers[i], "a number is NaN or too large for float32")
                elif word in known:
                    self._duplicates += 1
                else:
                    known[word] = None
                    chosen.append(i)
            rows = rows[chosen]
        self._append(rows)

    def build(self, subwords: Subwords | None = None) -> Table:
        """The table, its matrix trimmed in place."""
        self._resize(len(self._words))
        report = ReadReport(self._duplicates, self._skipped, tuple(self._problems))
        return Table(tuple(self._words), self._matrix, report, subwords)

    def _append(self, rows: np.ndarray) -> None:
        end = len(self._words)
        if end > len(self._matrix):
            grown = len(self._matrix) + len(self._matrix) // 8
            if not len(self._matrix):
                # Fresh pages cost nothing until they are written.
                self._matrix = np.empty((max(self._expected, end), self._dim), "f4")
            else:
                self._resize(max(grown, end))
        self._matrix[end - len(rows) : end] = rows

    def _resize(self, count: int) -> None:
        # realloc moves pages, not bytes: a second copy never exists.
        if count != len(self._matrix):
            self._matrix.resize((count, self._dim), refcheck=False)


def parse_header(line: bytes) -> tuple[int, int] | None:
    """The number of words and the dimension, where these are all that a line holds."""
    found = _HEADER.fullmatch(line)
    return None if found is None else (int(found[1]), int(found[2]))


def decode_words(
    raw: Sequence[bytes], builder: TableBuilder, encoding: str, numbers: Sequence[int]
) -> tuple[list[str], list[int]]:
    """Decodes words, reporting the undecodable; returns them and their positions."""
    words, positions = [], []
    for position, word in enumerate(raw):
        try:
            words.append(word.decode(encoding))
            positions.append(position)
        except UnicodeDecodeError:
            builder.bad(numbers[position], f"the word {word!r} is not valid {encoding}")
    return words, positions
