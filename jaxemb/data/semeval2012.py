"""SemEval-2012 Task 2: to what degree is a pair of words an example of a relation?"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from jaxemb.data import files
from jaxemb.errors import InputError

TRAINING = ("1a", "2c", "2h", "3a", "3c", "4c", "5d", "5i", "7a", "10a")
"""The ten relations that the task gave for training; the other 69 are its test."""

Pair = tuple[str, str]


class Choice(NamedTuple):
    """One person's answer: of four pairs the least and the most typical.

    None where the person chose nothing.
    """

    pairs: tuple[Pair, Pair, Pair, Pair]
    least: Pair | None
    most: Pair | None


class Relation(NamedTuple):
    """A relation: what it is, its examples, and what people said of other pairs."""

    name: str  # such as "1a"
    category: str
    subcategory: str
    paradigms: tuple[Pair, ...]
    ratings: dict[Pair, float]  # percentage most less percentage least typical
    choices: list[Choice]


def read_semeval2012(parts: Mapping[str, files.Location]) -> list[Relation]:
    """Reads the relations, 79 in all, those of the training set among them.

    Args:
      parts: `paradigms`, and a `ratings-NAME` and `choices-NAME` for each relation that
        it lists, as the data set `semeval-2012` has them.

    Raises:
      InputError: with file and line, and for a relation whose files are not there.
    """
    relations = []
    for name, category, subcategory, paradigms in _paradigms(parts["paradigms"]):
        wanted = f"ratings-{name}", f"choices-{name}"
        for part in wanted:
            if part not in parts:
                raise InputError(
                    f"{parts['paradigms']}: lists the relation {name}, but its file "
                    f"{part} is not there"
                )
        ratings, choices = (
            read_ratings(parts[wanted[0]]),
            read_choices(parts[wanted[1]]),
        )
        for choice in choices:
            for pair in choice.pairs:
                if pair not in ratings:
                    raise InputError(
                        f"{parts[wanted[1]]}: asks about {':'.join(pair)}, which "
                        f"{parts[wanted[0]]} does not rate"
                    )
        found = (name, category, subcategory, paradigms, ratings, choices)
        relations.append(Relation(*found))
    if not relations:
        raise InputError(f"{parts['paradigms']}: expected relations, found none")
    return relations


def read_ratings(path: files.Location) -> dict[Pair, float]:
    """Reads a scale: a number and a quoted pair a line, `#` before comments."""
    ratings: dict[Pair, float] = {}
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        score, *rest = line.split(maxsplit=1)
        value, pair = _number(score), _pair("".join(rest).strip())
        if value is None or pair is None:
            problem = f'expected a number and "word:word", found {line[:60]!r}'
            raise InputError.at(str(path), number, problem)
        ratings[pair] = value
    if not ratings:
        raise InputError(f"{path}: expected rated pairs, found none")
    return ratings


def read_choices(path: files.Location) -> list[Choice]:
    """Reads MaxDiff answers: four pairs, the least and the most typical, by tabs."""
    choices: list[Choice] = []
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) < 6:
            problem = f"expected 6 columns between tabs, found {len(fields)}"
            raise InputError.at(str(path), number, problem)
        pairs = [_pair(field.strip()) for field in fields[:4]]
        if (
            broken := next((i for i, p in enumerate(pairs) if p is None), None)
        ) is not None:
            problem = (
                f'expected "word:word" in column {broken}, found {fields[broken]!r}'
            )
            raise InputError.at(str(path), number, problem)
        chosen = []
        for field in fields[4:6]:
            pair = _pair(field.strip())
            if field.strip() not in ("", '""') and pair not in pairs:
                problem = f"the choice {field} is none of the four pairs"
                raise InputError.at(str(path), number, problem)
            chosen.append(pair)
        first, second, third, fourth = (pair for pair in pairs if pair is not None)
        choices.append(Choice((first, second, third, fourth), *chosen))
    if not choices:
        raise InputError(f"{path}: expected choices among pairs, found none")
    return choices


def _paradigms(path: files.Location):
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split(",")]
        pairs = [_pair(field) for field in fields[4:]]
        if not pairs or None in pairs or not fields[0].isdecimal():
            problem = (
                "expected a number, a letter, two names and word:word pairs between "
                f"commas, found {line[:60]!r}"
            )
            raise InputError.at(str(path), number, problem)
        name = fields[0] + fields[1]
        yield name, fields[2], fields[3], tuple(p for p in pairs if p is not None)


def _pair(field: str) -> Pair | None:
    words = field.strip('"').split(":")
    return (words[0], words[1]) if len(words) == 2 and all(words) else None


def _number(field: str) -> float | None:
    try:
        value = float(field)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
