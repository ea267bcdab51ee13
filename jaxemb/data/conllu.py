"""CoNLL-U: the sentences of Universal Dependencies treebanks.

Ten columns parted by tabs. Beside words (`3`) there are tokens that stand for several
words (`3-4`: *don't*) and empty nodes (`3.1`), which only enhanced dependencies use.
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from jaxemb.data import files
from jaxemb.errors import InputError

_COLUMNS = 10
_NUMBER = "(0|[1-9][0-9]{0,8})"
_WORD = re.compile("[1-9][0-9]{0,8}")
_RANGE = re.compile("([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY = re.compile(rf"{_NUMBER}\.([1-9][0-9]{{0,8}})")
_HEAD = re.compile(_NUMBER)


class Word(NamedTuple):
    """One line; `_` in a column, which leaves it open, is None except in `form`."""

    form: str
    lemma: str | None
    upos: str | None
    xpos: str | None
    feats: str | None
    head: int | None
    """The number of the word it depends on, from 1; 0 at the root."""
    deprel: str | None
    deps: str | None
    misc: str | None

    @property
    def features(self) -> dict[str, str]:
        """`feats` by name."""
        pairs = (one.partition("=") for one in (self.feats or "").split("|") if one)
        return {name: value for name, _, value in pairs}


class Token(NamedTuple):
    """A stretch of text that several words share."""

    first: int
    """The number of its first word, from 1."""
    last: int
    form: str
    misc: str | None


class EmptyNode(NamedTuple):
    """A word that the text does not have."""

    after: int
    """The number of the word before it; 0 at the beginning."""
    place: int
    """From 1, among the empty nodes there."""
    word: Word


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence; word i has the number i + 1."""

    words: tuple[Word, ...]
    tokens: tuple[Token, ...] = ()
    empty: tuple[EmptyNode, ...] = ()
    comments: tuple[str, ...] = ()
    """The lines before the words, without their `#`."""

    @property
    def forms(self) -> tuple[str, ...]:
        """The words as written."""
        return tuple(word.form for word in self.words)

    @functools.cached_property
    def metadata(self) -> dict[str, str]:
        """The comments of the form `name = value`."""
        pairs = (c.partition("=") for c in self.comments if "=" in c)
        return {name.strip(): value.strip() for name, _, value in pairs}


def read_conllu(path: files.Location) -> list[Sentence]:
    """Reads a treebank.

    Raises:
      InputError: with file and line, where a line is not as the format has it or where
        there is no sentence.
    """
    sentences = list(_sentences(path))
    if not sentences:
        raise InputError(f"{path}: expected sentences in CoNLL-U, found none")
    return sentences


def _sentences(path: files.Location) -> Iterator[Sentence]:
    builder = _Builder()
    lines = itertools.chain(files.read_lines(path), [""])
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                builder.add(line)
            elif builder.begun:
                yield builder.sentence()
                builder = _Builder()
        except _Problem as problem:
            raise InputError.at(str(path), number, str(problem)) from None


class _Problem(Exception):
    """What is wrong with the line at hand."""


class _Builder:
    """A sentence as far as it has been read."""

    def __init__(self) -> None:
        self._words: list[Word] = []
        self._tokens: list[Token] = []
        self._empty: list[EmptyNode] = []
        self._comments: list[str] = []

    @property
    def begun(self) -> bool:
        return bool(self._words or self._empty or self._tokens or self._comments)

    def add(self, line: str) -> None:
        if line.startswith("#"):
            if self._words or self._tokens or self._empty:
                raise _Problem("expected a word, found a comment")
            self._comments.append(line[1:].strip())
            return
        fields = line.split("\t")
        if len(fields) != _COLUMNS:
            raise _Problem(
                f"expected {_COLUMNS} columns parted by tabs, found {len(fields)}"
            )
        if "" in fields:
            raise _Problem(f"column {fields.index('') + 1} is empty; expected _")
        name = fields[0]
        if _WORD.fullmatch(name):
            if int(name) != len(self._words) + 1:
                raise _Problem(f"expected word {len(self._words) + 1}, found {name}")
            self._words.append(_word(fields))
        elif match := _RANGE.fullmatch(name):
            self._add_token(int(match[1]), int(match[2]), fields)
        elif match := _EMPTY.fullmatch(name):
            self._add_empty(int(match[1]), int(match[2]), fields)
        else:
            raise _Problem(f"expected a number of a word, found {name[:40]!r}")

    def _add_token(self, first: int, last: int, fields: list[str]) -> None:
        taken = self._tokens[-1].last if self._tokens else 0
        if first != len(self._words) + 1 or last < first or first <= taken:
            raise _Problem(
                f"expected words from {max(len(self._words), taken) + 1} on, found "
                f"{first}-{last}"
            )
        self._tokens.append(Token(first, last, fields[1], _open(fields[9])))

    def _add_empty(self, after: int, place: int, fields: list[str]) -> None:
        here = sum(node.after == after for node in self._empty)
        if (after, place) != (len(self._words), here + 1):
            raise _Problem(
                f"expected empty node {len(self._words)}.{here + 1}, found "
                f"{after}.{place}"
            )
        if fields[6] != "_" or fields[7] != "_":
            raise _Problem("an empty node has no head and no relation; expected _")
        self._empty.append(EmptyNode(after, place, _word(fields)))

    def sentence(self) -> Sentence:
        count = len(self._words)
        if not count:
            raise _Problem("the sentence ends without a word")
        if self._tokens and self._tokens[-1].last > count:
            token = self._tokens[-1]
            raise _Problem(
                f"the token {token.first}-{token.last} needs more than {count} words"
            )
        for place, word in enumerate(self._words, 1):
            if word.head is not None and (word.head > count or word.head == place):
                raise _Problem(f"word {place} cannot depend on {word.head}")
        return Sentence(
            tuple(self._words),
            tuple(self._tokens),
            tuple(self._empty),
            tuple(self._comments),
        )


def _open(field: str) -> str | None:
    return None if field == "_" else field


def _word(fields: list[str]) -> Word:
    _, form, lemma, *rest = fields
    upos, xpos, feats, head, deprel, deps, misc = map(_open, rest)
    if head is not None and not _HEAD.fullmatch(head):
        raise _Problem(f"expected the number of a head or _, found {head[:40]!r}")
    return Word(
        form,
        # The lemma of a word written _ is _ itself.
        lemma if lemma == form else _open(lemma),
        upos,
        xpos,
        feats,
        None if head is None else int(head),
        deprel,
        deps,
        misc,
    )
