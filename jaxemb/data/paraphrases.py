"""The reader of pairs of sentences that say the same, or not: MRPC."""

from typing import NamedTuple

from jaxemb.data.files import Location
from jaxemb.data.text import parse_label, tsv_rows
from jaxemb.errors import InputError

_COLUMNS = "Quality", "#1 String", "#2 String"


class Paraphrase(NamedTuple):
    """Two sentences as they were written; label 1 if they say the same, else 0."""

    first: str
    second: str
    label: int


def read_mrpc(path: Location) -> list[Paraphrase]:
    """Reads the MSR paraphrase corpus (Dolan et al. 2004).

    Quotes in it are marks of the text and not of the format.

    Raises:
      InputError: with file and line, also where there is no pair.
    """
    pairs = [
        Paraphrase(first, second, parse_label(label, path, number, {"0": 0, "1": 1}))
        for number, (label, first, second) in tsv_rows(path, _COLUMNS)
    ]
    if not pairs:
        raise InputError(f"{path}: expected pairs of sentences, found none")
    return pairs
