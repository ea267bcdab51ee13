"""Ingredient phrases, each word tagged by the field of the recipe that it went to.

The files have a phrase and, beside it, what people made of it: its name, quantity,
unit, preparation and comment. They do not say which word went where. `align` finds that
out: a phrase is aligned where every word of every field has its place in it.
"""

import csv
import io
import re
from collections.abc import Sequence
from typing import NamedTuple, cast

from jaxemb.data import files, tokenize
from jaxemb.errors import InputError

OTHER = "OTHER"
TAGS = (OTHER, "NAME", "QUANTITY", "UNIT", "PREPARATION", "COMMENT")
"""`OTHER` is what no field has; sizes and purposes, which few files tell apart, are
comments."""

# The fields as files name them, in the order in which they are given places: what is
# long and in one piece first, so that numbers and units take what is left.
_FIELDS = {
    "name": "NAME",
    "preparation": "PREPARATION",
    "comment": "COMMENT",
    "size": "COMMENT",
    "purpose": "COMMENT",
    "quantity": "QUANTITY",
    "unit": "UNIT",
}
_VULGAR = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅛": "1/8"}
_VULGAR |= {"⅜": "3/8", "⅝": "5/8", "⅞": "7/8", "⅕": "1/5", "⅖": "2/5", "⅙": "1/6"}
_NUMBER = re.compile(r"(\d+)\s+(\d+)/(\d+)|(\d+)/(\d+)|(\d+(?:\.\d+)?)")
_CLOSE = 0.006  # files round 1/3 to 0.333


class RecipePhrase(NamedTuple):
    """The words of a phrase and the tag of each."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]


class Recipes(NamedTuple):
    """What a file holds."""

    phrases: list[RecipePhrase]  # those aligned
    total: int  # with those that were not

    @property
    def rate(self) -> float:
        """The share of the phrases that were aligned."""
        return len(self.phrases) / self.total


class _Item(NamedTuple):
    """A word, or a number however it is written, and the tokens that it is made of."""

    key: str | float
    start: int
    end: int


def read_recipes(path: files.Location) -> Recipes:
    """Reads a CSV with a header: `input` and the fields that it has.

    Phrases without any field, which nobody has looked at, count for nothing.

    Raises:
      InputError: with file and line, also where there is no phrase.
    """
    phrases, total = [], 0
    with files.open_bytes(path) as stream:
        lines = io.TextIOWrapper(cast(io.BytesIO, stream), "utf-8-sig", newline="")
        rows = csv.DictReader(lines, strict=True)
        try:
            names = rows.fieldnames or []
            if "input" not in names or "name" not in names:
                problem = f"expected columns input and name, found {', '.join(names)}"
                raise InputError.at(str(path), 1, problem)
            for row in rows:
                if None in row or None in row.values():
                    problem = f"expected {len(names)} columns"
                    raise InputError.at(str(path), rows.line_num, problem)
                fields = {n: row[n] for n in _FIELDS if n in row}
                if not any(fields.values()):
                    continue
                total += 1
                if (found := align(row["input"], fields)) is not None:
                    phrases.append(found)
        except (csv.Error, UnicodeDecodeError) as error:
            problem = f"not valid CSV in UTF-8 ({error})"
            raise InputError.at(str(path), rows.line_num + 1, problem) from error
        finally:
            lines.detach()
    if not total:
        raise InputError(f"{path}: expected ingredient phrases, found none")
    return Recipes(phrases, total)


def align(phrase: str, fields: dict[str, str]) -> RecipePhrase | None:
    """Gives every word of every field its place in a phrase.

    A field takes the first run of free words that is the same as its own, else its
    words one by one from left to right. Case counts for nothing, `cups` is `cup`, and
    `1 1/4` is `1.25`. Punctuation of a field that the phrase lacks is passed over.

    Args:
      phrase: as written.
      fields: by the names that files give them, of which those known here count.

    Returns:
      The tagged words; None where a word of a field has no place, or there is none.
    """
    tokens, items = _items(phrase)
    tags = [OTHER] * len(tokens)
    free = [True] * len(items)
    for field, tag in _FIELDS.items():
        _, wanted = _items(fields.get(field) or "")
        places = _run(wanted, items, free) or _one_by_one(wanted, items, free)
        if places is None:
            return None
        for place in places:
            free[place] = False
            item = items[place]
            tags[item.start : item.end] = [tag] * (item.end - item.start)
    return RecipePhrase(tokens, tuple(tags)) if tokens else None


def _items(text: str) -> tuple[tuple[str, ...], list[_Item]]:
    for sign, fraction in _VULGAR.items():
        text = text.replace(sign, f" {fraction}")
    pieces = tokenize.english_spans(text)
    numbers = {m.start(): m for m in _NUMBER.finditer(text)}
    items: list[_Item] = []
    place = 0
    while place < len(pieces):
        match = numbers.get(pieces[place].start)
        end = place + 1
        value = None if match is None else _value(match)
        if match is not None and value is not None:
            while end < len(pieces) and pieces[end].end <= match.end():
                end += 1
            items.append(_Item(value, place, end))
        else:
            items.append(_Item(_stem(pieces[place].text), place, end))
        place = end
    return tuple(piece.text for piece in pieces), items


def _value(match: re.Match[str]) -> float | None:
    whole, top, bottom, only_top, only_bottom, plain = match.groups()
    if plain is not None:
        return float(plain)
    above, below = int(top or only_top), int(bottom or only_bottom)
    return int(whole or 0) + above / below if below else None


def _stem(word: str) -> str:
    """Lower-cased and, as files write units, in the singular."""
    word = word.lower().replace("’", "'")
    if len(word) > 3 and word.endswith("es") and word[-3] in "hsxz":
        return word[:-2]
    return word[:-1] if len(word) > 2 and word.endswith("s") else word


def _same(a: _Item, b: _Item) -> bool:
    if isinstance(a.key, float) and isinstance(b.key, float):
        return abs(a.key - b.key) < _CLOSE
    return a.key == b.key


def _run(
    wanted: Sequence[_Item], items: Sequence[_Item], free: Sequence[bool]
) -> list[int] | None:
    """Places of the first free run that equals a field; none for an empty field."""
    for start in range(len(items) - len(wanted) + 1):
        places = list(range(start, start + len(wanted)))
        if all(
            free[p] and _same(items[p], w) for p, w in zip(places, wanted, strict=True)
        ):
            return places
    return None


def _one_by_one(
    wanted: Sequence[_Item], items: Sequence[_Item], free: Sequence[bool]
) -> list[int] | None:
    """Places from left to right, each the first that is left; marks may be missing."""
    places: list[int] = []
    for word in wanted:
        after = places[-1] + 1 if places else 0
        later = [p for p in range(after, len(items)) if free[p]]
        place = next((p for p in later if _same(items[p], word)), None)
        if place is not None:
            places.append(place)
        elif not isinstance(word.key, str) or any(map(str.isalnum, word.key)):
            return None
    return places
