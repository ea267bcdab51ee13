"""Linguistic features of words: what QVEC compares dimensions with."""

import json
import math
from typing import NamedTuple

import numpy as np

from jaxemb.data import files
from jaxemb.errors import InputError


class WordFeatures(NamedTuple):
    """Words, and how much of each feature a word has."""

    words: tuple[str, ...]
    names: tuple[str, ...]
    matrix: np.ndarray  # (words, features) float64


def read_features(path: files.Location) -> WordFeatures:
    """Reads QVEC's matrices: a word, a tab, and a JSON object of features a line.

    A feature that a line does not name is 0. Columns are in the order of their first
    occurrence.

    Raises:
      InputError: with file and line, also where no word is found.
    """
    rows: dict[str, dict[int, float]] = {}
    columns: dict[str, int] = {}
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        word, tab, text = line.partition("\t")
        try:
            features = json.loads(text) if tab and word else None
        except (ValueError, RecursionError):  # no JSON, or too large a one
            features = None
        if not isinstance(features, dict):
            problem = "expected a word, a tab and a JSON object of features"
            raise InputError.at(str(path), number, problem)
        if word in rows:
            raise InputError.at(str(path), number, f"the word {word!r} occurs twice")
        for name, value in features.items():
            if type(value) not in (int, float) or not abs(value) < math.inf:
                problem = f"expected a number for {name!r}, found {value!r}"
                raise InputError.at(str(path), number, problem)
        rows[word] = {
            columns.setdefault(name, len(columns)): value
            for name, value in features.items()
        }
    if not columns:
        raise InputError(f"{path}: expected words with features, found none")
    matrix = np.zeros((len(rows), len(columns)))
    for row, values in zip(matrix, rows.values(), strict=True):
        row[list(values)] = list(values.values())
    return WordFeatures(tuple(rows), tuple(columns), matrix)
