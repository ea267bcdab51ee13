"""Word-similarity lists: two words and what people scored them."""

import math
import re
from typing import NamedTuple

from jaxemb.data import files
from jaxemb.errors import InputError


class WordPair(NamedTuple):
    """Two words and their similarity as people gave it."""

    first: str
    second: str
    score: float


def read_pairs(
    path: files.Location, *, columns: tuple[int, int, int] = (0, 1, 2)
) -> list[WordPair]:
    """Reads a list of scored word pairs.

    Columns are parted by one or more tabs where a line has any, by commas in a
    `.csv`, else by spaces. Blank lines and lines that begin with `#` are left out, and
    so is a first line whose score is no number: a header. Words keep their case.

    Args:
      path: the file.
      columns: where the two words and the score are, counted from 0.

    Raises:
      InputError: with file and line, also where no pair is found.
    """
    by_comma = files.resolve(path).name.endswith(".csv")
    rows: list[WordPair] = []
    may_be_header = True
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = _split(line, by_comma)
        if len(fields) <= max(columns):
            expected = "two words and a score"
            if columns != (0, 1, 2):
                expected = f"columns {', '.join(map(str, columns))}"
            problem = f"expected {expected}, found {len(fields)} columns"
            raise InputError.at(str(path), number, problem)
        first, second, score = (fields[column].strip() for column in columns)
        value = _number(score)
        if value is not None and math.isfinite(value) and first and second:
            rows.append(WordPair(first, second, value))
        elif value is not None or not may_be_header:
            problem = f"expected two words and a finite score, found {line[:60]!r}"
            raise InputError.at(str(path), number, problem)
        may_be_header = False
    if not rows:
        raise InputError(f"{path}: expected scored word pairs, found none")
    return rows


def _split(line: str, by_comma: bool) -> list[str]:
    if "\t" in line:
        return re.split("\t+", line)
    return line.split(",") if by_comma else re.split(" +", line.strip(" "))


def _number(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None
