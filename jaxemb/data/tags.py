"""Spans of words written as a tag at each word: IOB1, IOB2 and BIOES.

A tag is `O`, or a letter and the type of the span: `B-PER` begins one, `I-PER` goes on,
`E-PER` ends it, `S-PER` is one of a single word.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from jaxemb.errors import InputError

Scheme = Literal["IOB1", "IOB2", "BIOES"]
_LETTERS = "O", "B", "I", "E", "S"


class Span(NamedTuple):
    """The words from `start` up to, and without, `end`."""

    start: int
    end: int
    type: str


class Allowed(NamedTuple):
    """Which of some tags may follow which."""

    transitions: tuple[tuple[bool, ...], ...]  # from, to
    start: tuple[bool, ...]
    end: tuple[bool, ...]


class _Tag(NamedTuple):
    letter: str
    type: str


_OUTSIDE = _Tag("O", "")


def spans(tags: Sequence[str], scheme: Scheme | None = None) -> list[Span]:
    """The spans that tags stand for, from left to right.

    Without a scheme in conlleval mode, by the rules of that program. It reads all three
    alike and makes the best of tags that do not fit together: an I after O, or of
    another type than the tag before it, begins a span. It has no rules for S and
    odd ones for E (a B right after an E begins none), so that both are read as its
    ports do: they end a span, S begins one.

    Args:
      tags: one a word.
      scheme: strict mode, as seqeval has it: count only what is well-formed in it. In
        IOB2 a span begins with B; in BIOES it is S, or B, any number of I, and E; in
        IOB1 B stands right after a tag of its type.

    Raises:
      InputError: naming a tag that is none.
    """
    if scheme is None:
        return _lenient([_split(tag) for tag in tags])
    return _strict(_split_in(tags, scheme), _RULES[scheme])


def tags_of(
    spans: Iterable[Span], length: int, scheme: Scheme = "IOB2"
) -> tuple[str, ...]:
    """The tags that stand for spans in a sentence of so many words.

    Raises:
      InputError: for spans that overlap or reach beyond the sentence.
    """
    _check_scheme(scheme)
    tags = ["O"] * length
    before: Span | None = None
    for span in sorted(spans):
        if not (before.end if before else 0) <= span.start < span.end <= length:
            raise InputError(
                f"the span {span.start} to {span.end} is not inside {length} words, or "
                "it overlaps another"
            )
        name = f"-{span.type}" if span.type else ""
        tags[span.start : span.end] = [f"I{name}"] * (span.end - span.start)
        touches = before and (before.end, before.type) == (span.start, span.type)
        if scheme != "IOB1" or touches:
            tags[span.start] = f"B{name}"
        if scheme == "BIOES":
            tags[span.end - 1] = f"{'ES'[span.end - span.start == 1]}{name}"
        before = span
    return tuple(tags)


def convert(tags: Sequence[str], scheme: Scheme) -> tuple[str, ...]:
    """The same spans in another scheme; broken ones are mended as conlleval reads."""
    return tags_of(spans(tags), len(tags), scheme)


def allowed(tags: Sequence[str], scheme: Scheme = "IOB2") -> Allowed:
    """What may stand first, next to each other, and last in well-formed sentences.

    `nn.crf.Constraints(*allowed(labels))` is a chain that writes no others.

    Args:
      tags: each once.
      scheme: that sentences are well-formed in; see `spans`.

    Raises:
      InputError: naming a tag that is none of the scheme.
    """
    split = _split_in(tags, scheme)
    rules = _RULES[scheme]

    def follows(before: _Tag, tag: _Tag) -> bool:
        if rules.goes_on(before, tag):
            return True
        may_end = before.letter == "O" or rules.ends(before, tag)
        return may_end and (tag.letter == "O" or rules.starts(before, tag))

    return Allowed(
        transitions=tuple(tuple(follows(a, b) for b in split) for a in split),
        start=tuple(follows(_OUTSIDE, tag) for tag in split),
        end=tuple(follows(tag, _OUTSIDE) for tag in split),
    )


def _check_scheme(scheme: str) -> None:
    if scheme not in get_args(Scheme):
        raise InputError(
            f"scheme is {scheme!r}; expected one of {', '.join(get_args(Scheme))}"
        )


def _split(tag: str) -> _Tag:
    letter, _, kind = tag.partition("-")
    if letter not in _LETTERS or (letter == "O" and kind):
        raise InputError(
            f"the tag {tag[:40]!r} is none; expected O, or B, I, E or S, a hyphen and "
            "a type"
        )
    return _Tag(letter, kind)


def _split_in(tags: Sequence[str], scheme: Scheme) -> list[_Tag]:
    _check_scheme(scheme)
    split = [_split(tag) for tag in tags]
    for tag, text in zip(split, tags, strict=True):
        if scheme != "BIOES" and tag.letter in ("E", "S"):
            raise InputError(f"the tag {text!r} is none of {scheme}")
    return split


def _lenient(tags: Sequence[_Tag]) -> list[Span]:
    found, start, before = [], -1, _OUTSIDE
    for place, tag in enumerate([*tags, _OUTSIDE]):
        changes = before.type != tag.type
        ends = before.letter in ("E", "S") or tag.letter in ("O", "B", "S") or changes
        if before.letter != "O" and ends:
            found.append(Span(start, place, before.type))
        goes_on = before.letter in ("B", "I") and not changes
        if tag.letter in ("B", "S") or (tag.letter != "O" and not goes_on):
            start = place
        before = tag
    return found


class _Rules(NamedTuple):
    """Of a tag and the one before it."""

    starts: Callable[[_Tag, _Tag], bool]
    goes_on: Callable[[_Tag, _Tag], bool]
    ends: Callable[[_Tag, _Tag], bool]  # whether a span may end between them


def _inside(before: _Tag, tag: _Tag, letters: tuple[str, ...] = ("I",)) -> bool:
    same = before.type == tag.type
    return before.letter in ("B", "I") and tag.letter in letters and same


def _starts_iob1(before: _Tag, tag: _Tag) -> bool:
    same = before.type == tag.type
    if tag.letter == "B":
        return before.letter in ("B", "I") and same
    return tag.letter == "I" and not (before.letter == "I" and same)


def _ends_iob1(before: _Tag, tag: _Tag) -> bool:
    return not (before.letter == tag.letter == "B" and before.type != tag.type)


_RULES = {
    "IOB1": _Rules(_starts_iob1, _inside, _ends_iob1),
    "IOB2": _Rules(
        lambda before, tag: tag.letter == "B", _inside, lambda before, tag: True
    ),
    "BIOES": _Rules(
        lambda before, tag: tag.letter in ("B", "S"),
        lambda before, tag: _inside(before, tag, ("I", "E")),
        lambda before, tag: before.letter in ("E", "S"),
    ),
}


def _strict(tags: Sequence[_Tag], rules: _Rules) -> list[Span]:
    tags = [*tags, _OUTSIDE]
    found, place = [], 0
    while place < len(tags):
        before = tags[place - 1] if place else _OUTSIDE
        end = place + 1
        if rules.starts(before, tags[place]):
            while end < len(tags) and rules.goes_on(tags[end - 1], tags[end]):
                end += 1
            if rules.ends(tags[end - 1], tags[end]):
                found.append(Span(place, end, tags[place].type))
        place = end
    return found
