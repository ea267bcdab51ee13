"""Lists of words with a number each."""

import math

from jaxemb.data import files
from jaxemb.errors import InputError


def read_valence(path: files.Location) -> dict[str, float]:
    """Reads VADER's lexicon: a word, a tab, its mean valence; more columns may follow.

    Of a word listed twice the first line counts.

    Raises:
      InputError: with file and line.
    """
    valence: dict[str, float] = {}
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        word, _, rest = line.partition("\t")
        try:
            value = float(rest.split("\t")[0])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            problem = "expected a word, a tab and a number"
            raise InputError.at(str(path), number, problem)
        valence.setdefault(word, value)
    return valence
