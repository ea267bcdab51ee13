"""The reader of pairs of sentences by how alike they are: the STS benchmark."""

from typing import NamedTuple

from jaxemb.data.files import Location, read_lines
from jaxemb.errors import InputError

_SCORE, _FIRST, _SECOND = 4, 5, 6
_LARGEST = 5.0


class RatedPair(NamedTuple):
    """Two sentences, and the mean of people's scores, 0 (other) to 5 (the same)."""

    first: str
    second: str
    score: float


def read_sts(path: Location) -> list[RatedPair]:
    """Reads a file of the STS benchmark as it was released (Cer et al. 2017).

    Seven columns parted by tabs: genre, file, year, number, score and the sentences;
    some lines name their sources after these. Quotes are marks of the text.

    Raises:
      InputError: with file and line, also where there is no pair.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        if not line:
            continue
        fields = line.split("\t")
        if len(fields) <= _SECOND:
            problem = f"expected 7 columns parted by tabs, found {len(fields)}"
            raise InputError.at(str(path), number, problem)
        try:
            score = float(fields[_SCORE])
        except ValueError:
            score = -1.0
        if not 0 <= score <= _LARGEST:
            problem = f"expected a score from 0 to 5, found {fields[_SCORE]!r}"
            raise InputError.at(str(path), number, problem)
        pairs.append(RatedPair(fields[_FIRST], fields[_SECOND], score))
    if not pairs:
        raise InputError(f"{path}: expected pairs of sentences, found none")
    return pairs
