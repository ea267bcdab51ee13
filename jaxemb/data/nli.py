"""Sentence pairs by entailment: MultiNLI, SNLI, SICK.

One reader for JSON lines and one for tab-separated files, which finds its columns by
the names that the official releases give them. Pairs on which annotators found no
majority have no gold label (`-`): they are left out, and counted.
"""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from jaxemb.data import files
from jaxemb.errors import InputError

LABELS = ("entailment", "neutral", "contradiction")

_UNLABELLED = ("-", "hidden")  # no majority; MultiNLI's test sets
# What the releases call each column, SICK's names last.
_PREMISE = "sentence1", "premise", "sentence_A"
_HYPOTHESIS = "sentence2", "hypothesis", "sentence_B"
_LABEL = "gold_label", "label", "entailment_judgment"


class SentencePair(NamedTuple):
    """A premise, a hypothesis, and what the first says of the second."""

    premise: str
    hypothesis: str
    label: int
    """Place in `LABELS`."""
    genre: str | None = None
    """Where the file has one."""


@dataclasses.dataclass(frozen=True)
class SentencePairs:
    """The pairs that have a label, in the order of their file."""

    pairs: tuple[SentencePair, ...]
    unlabelled: int
    """How many were left out."""

    def of_genre(self, genre: str) -> "SentencePairs":
        """The pairs of one genre.

        Raises:
          InputError: where there is none, naming the genres that there are.
        """
        kept = tuple(pair for pair in self.pairs if pair.genre == genre)
        if not kept:
            there = sorted({pair.genre for pair in self.pairs if pair.genre})
            known = f"there are {', '.join(there)}" if there else "they have none"
            raise InputError(f"no pair of the genre {genre!r}; {known}")
        return SentencePairs(kept, self.unlabelled)


def read_nli(path: files.Location) -> SentencePairs:
    """Reads an official file: `.jsonl` (packed or not) as JSON lines, else columns.

    Raises:
      InputError: with file and line, also where no labelled pair is found.
    """
    return _labelled(nli_lines(path), path)


def read_lines_apart(
    premises: files.Location, hypotheses: files.Location, labels: files.Location
) -> SentencePairs:
    """Reads three files of as many lines each, as e-SNLI has SNLI's dev and test."""
    return _labelled(apart_lines(premises, hypotheses, labels), labels)


def nli_lines(path: files.Location) -> Iterator[SentencePair | None]:
    """The pairs of an official file; None for each without a label."""
    name = files.resolve(path).name
    if ".jsonl" in name:
        return _json_lines(path)
    return _columns(path)


def apart_lines(
    premises: files.Location, hypotheses: files.Location, labels: files.Location
) -> Iterator[SentencePair | None]:
    """The pairs of three files side by side; None for each without a label."""
    sides = (files.read_lines(path) for path in (premises, hypotheses, labels))
    for number, row in enumerate(itertools.zip_longest(*sides), 1):
        if None in row:
            ended = (premises, hypotheses, labels)[row.index(None)]
            problem = "the file ends where the other two of a pair go on"
            raise InputError.at(str(ended), number, problem)
        yield _pair(row, None, labels, number)


def _labelled(
    lines: Iterable[SentencePair | None], path: files.Location
) -> SentencePairs:
    everything = list(lines)
    pairs = tuple(pair for pair in everything if pair is not None)
    if not pairs:
        raise InputError(f"{path}: no labelled pair; expected some")
    return SentencePairs(pairs, len(everything) - len(pairs))


def _json_lines(path: files.Location) -> Iterator[SentencePair | None]:
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError.at(str(path), number, "expected a JSON object")
        needed = [_field(row, names, path, number) for names in _NEEDED]
        genre = row.get("genre")
        kind = genre if isinstance(genre, str) else None
        yield _pair(needed, kind, path, number)


_NEEDED = _PREMISE, _HYPOTHESIS, _LABEL


def _field(
    row: dict[str, Any], names: Sequence[str], path: files.Location, number: int
) -> str:
    for name in names:
        if isinstance(row.get(name), str):
            return row[name]
    raise InputError.at(str(path), number, f"expected a string under {names[0]!r}")


def _columns(path: files.Location) -> Iterator[SentencePair | None]:
    lines = files.read_lines(path)
    header = next(lines, "").split("\t")
    needed = [_column(header, names, path) for names in _NEEDED]
    genre = header.index("genre") if "genre" in header else None
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        fields = line.split("\t")
        # Releases leave columns out at the end of a line, never in its midst.
        if not max(needed) < len(fields) <= len(header):
            problem = f"expected {len(header)} columns, found {len(fields)}"
            raise InputError.at(str(path), number, problem)
        kind = fields[genre] if genre is not None and genre < len(fields) else None
        yield _pair([fields[i] for i in needed], kind, path, number)


def _column(header: Sequence[str], names: Sequence[str], path: files.Location) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    raise InputError.at(str(path), 1, f"expected a column {' or '.join(names)}")


def _pair(
    fields: Sequence[str], genre: str | None, path: files.Location, number: int
) -> SentencePair | None:
    """The pair of a premise, a hypothesis and a label as the file writes them."""
    premise, hypothesis, label = fields
    label = label.strip().lower()
    if label in _UNLABELLED:
        return None
    if label not in LABELS:
        problem = f"expected one of {', '.join(LABELS)} or -, found {label!r}"
        raise InputError.at(str(path), number, problem)
    return SentencePair(premise.strip(), hypothesis.strip(), LABELS.index(label), genre)
