"""Reader of Reuters-21578: news wires and their topics, in 22 SGML files."""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from jaxemb.data import files
from jaxemb.data.sources import Found
from jaxemb.errors import InputError

Split = Literal["train", "test", "unused"]

_WIRE = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.S)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.S)
_TOPIC = re.compile(r"<D>(.*?)</D>", re.S)
_TEXT = re.compile(r"<TEXT\b[^>]*>(.*?)</TEXT>", re.S)
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.S)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.S)
_AROUND = re.compile(r"<(TITLE|AUTHOR|DATELINE)>.*?</\1>", re.S)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Wire(NamedTuple):
    """One document of Reuters-21578."""

    id: int
    """NEWID, from 1 to 21,578."""
    title: str
    body: str
    """Of a brief or an unprocessed wire the text that there is."""
    topics: tuple[str, ...]
    """In alphabetical order, each once; often none."""
    split: Split
    """By the modified Apté split; "unused" belongs to neither part."""


class Reuters90(NamedTuple):
    """The wires of the topics that both parts of the split have, usually 90."""

    topics: tuple[str, ...]
    """In alphabetical order."""
    train: tuple[Wire, ...]
    test: tuple[Wire, ...]


def read_reuters(places: Found | Sequence[files.Location]) -> list[Wire]:
    """Reads all wires of the files, in their order.

    Raises:
      InputError: where a file holds none, or one lacks its number.
    """
    if isinstance(places, Found):
        places = [places.part(name) for name in sorted(places.parts)]
    return [wire for place in places for wire in _wires(place)]


def modapte_90(wires: Iterable[Wire]) -> Reuters90:
    """The "modified Apté" split by those topics that have wires in both parts.

    Wires without any of the topics are left out, and other topics from their wires, as
    most papers have it: 90 topics.
    """
    wires = list(wires)
    counts = {
        split: Counter(t for w in wires if w.split == split for t in w.topics)
        for split in ("train", "test")
    }
    kept = sorted(set(counts["train"]) & set(counts["test"]))
    parts: dict[str, list[Wire]] = {"train": [], "test": []}
    for wire in wires:
        own = tuple(topic for topic in wire.topics if topic in kept)
        if own and wire.split in parts:
            parts[wire.split].append(wire._replace(topics=own))
    return Reuters90(tuple(kept), tuple(parts["train"]), tuple(parts["test"]))


def _wires(place: files.Location) -> Iterator[Wire]:
    with files.open_bytes(place) as stream:
        content = stream.read().decode("latin-1")  # a byte of file 017 is not UTF-8
    found = False
    for match in _WIRE.finditer(content):
        found = True
        yield _wire(match, place, content)
    if not found:
        raise InputError(f"{place}: expected wires of Reuters-21578, found none")


def _wire(match: re.Match[str], place: files.Location, content: str) -> Wire:
    attributes = dict(_ATTRIBUTE.findall(match[1]))
    number = attributes.get("NEWID", "")
    if not number.isdigit():
        line = content.count("\n", 0, match.start()) + 1
        raise InputError.at(str(place), line, "expected a wire with a NEWID")
    inside = match[2]
    topics = _TOPICS.search(inside)
    text = _TEXT.search(inside)
    body = text[1] if text else ""
    title = _TITLE.search(body)
    own = _BODY.search(body)
    return Wire(
        id=int(number),
        title=_plain(title[1]) if title else "",
        body=_plain(own[1] if own else _AROUND.sub(" ", body)),
        topics=tuple(sorted(set(_TOPIC.findall(topics[1])))) if topics else (),
        split=_split(attributes),
    )


def _split(attributes: dict[str, str]) -> Split:
    """The Apté split needs a person's look at the topics: `TOPICS="YES"`."""
    if attributes.get("TOPICS") != "YES":
        return "unused"
    lewis = attributes.get("LEWISSPLIT", "")
    if lewis == "TRAIN":
        return "train"
    return "test" if lewis == "TEST" else "unused"


def _plain(text: str) -> str:
    """Without entities, control characters, and the sign-off of wires."""
    text = _CONTROL.sub(" ", html.unescape(text)).strip()
    return re.sub(r"\s*\bReuter$", "", text, flags=re.I)
