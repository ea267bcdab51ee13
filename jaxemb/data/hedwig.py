"""Reader of Hedwig's files: documents whose classes are a string of bits.

A line is `bits TAB text`, one bit a class, in the order of the classes. Reuters, AAPD,
IMDB by ten ratings and Yelp 2014 come so, each cut into train, dev and test by the
authors of DocBERT (Adhikari et al. 2019, 2020).
"""

from typing import NamedTuple

from jaxemb.data import files
from jaxemb.errors import InputError


class BitLabelled(NamedTuple):
    """One document of a file."""

    classes: tuple[int, ...]
    """Places of the bits that are 1, ascending; of some files there may be none."""
    text: str
    bits: int
    """How many classes there are."""


def read_hedwig(path: files.Location, *, single: bool = False) -> list[BitLabelled]:
    """Reads all documents of a file, in its order.

    Args:
      path: the file.
      single: whether every document must have one class.

    Raises:
      InputError: naming the line that is not bits, a tab and a text, that has another
        number of bits than the first, or, where `single`, not one class.
    """
    found: list[BitLabelled] = []
    for number, line in enumerate(files.read_lines(path), 1):
        bits, tab, text = line.partition("\t")
        if not tab or not bits or set(bits) - {"0", "1"}:
            problem = f"expected bits, a tab and a text, found {line[:40]!r}"
            raise InputError.at(str(path), number, problem)
        if found and len(bits) != found[0].bits:
            problem = f"{len(bits)} bits; the first line has {found[0].bits}"
            raise InputError.at(str(path), number, problem)
        classes = tuple(place for place, bit in enumerate(bits) if bit == "1")
        if single and len(classes) != 1:
            problem = f"{len(classes)} classes; expected one"
            raise InputError.at(str(path), number, problem)
        found.append(BitLabelled(classes, text, len(bits)))
    if not found:
        raise InputError(f"{path}: no documents; expected lines of bits, a tab, a text")
    return found
