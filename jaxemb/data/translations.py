"""Bilingual dictionaries: a word and its translation a line."""

from typing import NamedTuple

from jaxemb.data import files
from jaxemb.errors import InputError


class Translation(NamedTuple):
    """A word and one of its translations."""

    source: str
    target: str


def read_translations(
    path: files.Location, *, lower: bool = False
) -> list[Translation]:
    """Reads a dictionary: xling-eval's and PanLex' tabs, or MUSE's spaces.

    A line is parted by its tabs where it has any, else by its spaces. Blank lines are
    left out, and so is a pair that has stood before; a word may have several
    translations.

    Args:
      path: the file.
      lower: whether words are lower-cased, as xling-eval's own scorer does.

    Raises:
      InputError: with file and line, also where no pair is found.
    """
    pairs: dict[Translation, None] = {}
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        fields = line.strip("\n").split("\t") if "\t" in line else line.split()
        fields = [field.strip() for field in fields]
        if len(fields) != 2 or not all(fields):
            problem = f"expected a word and its translation, found {line.strip()!r}"
            raise InputError.at(str(path), number, problem)
        if lower:
            fields = [field.lower() for field in fields]
        pairs[Translation(*fields)] = None
    if not pairs:
        raise InputError(f"{path}: no pair of words; expected a dictionary")
    return list(pairs)
