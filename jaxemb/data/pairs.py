"""Word-similarity lists: two words and what people scored them."""

import csv
import math
import re
from pathlib import Path
from typing import NamedTuple

from jaxemb.data import files
from jaxemb.errors import InputError

_PARTS_OF_SPEECH = "N", "V", "A", "R"


class WordPair(NamedTuple):
    """Two words and their similarity as people gave it."""

    first: str
    second: str
    score: float


def read_pairs(
    path: files.Location, *, columns: tuple[int, int, int] | None = None
) -> list[WordPair]:
    """Reads a list of scored word pairs.

    Columns are parted by one or more tabs where a line has any, by commas in a `.csv`
    (which may quote), else by spaces. Blank lines and lines that begin with `#` are
    left out, and so is a first line whose score is no number: a header. Words keep
    their case.

    Args:
      path: the file.
      columns: where the two words and the score are, counted from 0; by default 0, 1
        and 2, or 3 after a part of speech (N, V, A or R), which SimLex-999 and
        SimVerb-3500 have in column 2.

    Raises:
      InputError: with file and line, also where no pair is found.
    """
    by_comma = ".csv" in Path(files.resolve(path).name).suffixes
    rows: list[WordPair] = []
    may_be_header = True
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            fields = _split(line, by_comma)
        except csv.Error as error:
            problem = f"not valid CSV ({error})"
            raise InputError.at(str(path), number, problem) from error
        tagged = len(fields) > 3 and fields[2] in _PARTS_OF_SPEECH
        places = columns or (0, 1, 3 if tagged else 2)
        if len(fields) <= max(places):
            expected = "two words and a score"
            if columns is not None:
                expected = f"columns {', '.join(map(str, columns))}"
            problem = f"expected {expected}, found {len(fields)} columns"
            raise InputError.at(str(path), number, problem)
        first, second, score = (fields[place].strip() for place in places)
        value = _number(score)
        if value is not None and math.isfinite(value) and first and second:
            rows.append(WordPair(first, second, value))
        elif value is not None or not may_be_header:
            problem = (
                f"expected two words and, in column {places[2]} counted from 0, a "
                f"finite score, found {line[:60]!r}"
            )
            raise InputError.at(str(path), number, problem)
        may_be_header = False
    if not rows:
        raise InputError(f"{path}: expected scored word pairs, found none")
    return rows


def _split(line: str, by_comma: bool) -> list[str]:
    if "\t" in line:
        return re.split("\t+", line)
    if not by_comma:
        return re.split(" +", line.strip(" "))
    return next(csv.reader([line], skipinitialspace=True, strict=True))


def _number(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None
