"""Readers of running text: sentences, each a list of words, as often as asked for.

What they give can be iterated again, from the files. Nothing is held but one line.
"""

import dataclasses
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jaxemb.data import files, sources, stopwords, text
from jaxemb.data.files import Location
from jaxemb.errors import InputError

_LONGEST = 1 << 20  # bytes read at a time: lines may be as long as a corpus
_MAX_SENTENCE = 10_000

_BREAK = "<br />"
_END = re.compile(r"([.!?]+['\")\]”’]*)\s+(?=[\"'(\[“‘]?[A-Z0-9])")
# Before a point that ends no sentence; initials ("J. Depp") but not the word "I".
_NO_END = frozenset("Mr Mrs Ms Dr Prof St Jr Sr vs etc".split())
_NO_END |= frozenset("ABCDEFGHJKLMNOPQRSTUVWXYZ")
_ENDS = frozenset(".!?")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_WORD_OR_MARK = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]|_+")


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Sentences that are read anew each time they are asked for."""

    read: Callable[[], Iterator[list[str]]]

    def __iter__(self) -> Iterator[list[str]]:
        return self.read()


def read_sentences(
    path: Location, *, lower: bool = False, max_sentence: int = _MAX_SENTENCE
) -> Sentences:
    """Reads a UTF-8 file with one sentence a line, plain or packed (.gz, .bz2, .xz).

    Words are parted by white space. A line of more than `max_sentence` words is cut
    into sentences of as many, as gensim does, so that a corpus that is one line, such
    as text8, takes no more memory than others. Blank lines are left out.

    Raises:
      InputError: where there is no such file, or a line is not valid UTF-8.
    """
    with files.open_bytes(path):  # a missing file is told now
        pass
    return Sentences(lambda: _lines(path, lower, max_sentence))


def read_brown(
    found: "sources.Found | str | os.PathLike[str] | None" = None,
    *,
    lower: bool = False,
) -> Sentences:
    """Reads the tagged Brown corpus (`The/at jury/nn …`) as NLTK distributes it.

    A sentence is a line and a word what stands before a token's last slash; tags are
    left out, punctuation marks are words. Files are read in the order of their names.

    Args:
      found: what `sources.get("brown")` found, or a folder with files ca01 to cr09.
      lower: whether to lower-case.
    """
    if found is None:
        found = sources.get("brown")
    if isinstance(found, sources.Found):
        places: Sequence[Location] = list(found.parts.values())
    else:
        places = sorted(Path(found).glob("c[a-r][0-9][0-9]"))
        if not places:
            raise InputError(f"{os.fspath(found)}: expected files ca01 to cr09")
    return Sentences(lambda: _brown(places, lower))


def read_wikitext(
    found: "sources.Found | None" = None,
    *,
    parts: Sequence[str] = ("train",),
    lower: bool = False,
    split: bool = False,
) -> Sentences:
    """Reads WikiText-2 (raw, so without `<unk>`), which is cut into tokens already.

    A sentence is a line: a paragraph, or a heading between equals signs.

    Args:
      found: what `sources.get("wikitext-2")` found.
      parts: which of its files, in this order.
      lower: whether to lower-case.
      split: end a sentence with every `.`, `!` or `?` that is a token, and leave
        headings out.
    """
    found = sources.get("wikitext-2") if found is None else found
    readers = [read_sentences(found.part(part), lower=lower) for part in parts]
    lines = Sentences(lambda: (sentence for reader in readers for sentence in reader))
    if not split:
        return lines
    return Sentences(
        lambda: (s for line in lines if line[0] != "=" for s in _ended(line))
    )


def read_imdb(
    found: "sources.Found | None" = None,
    *,
    parts: Sequence[str] = ("train", "test", "unsup"),
    lower: bool = True,
    punctuation: bool = False,
) -> Sentences:
    """Reads the reviews of IMDB, without their labels, cut as `review_sentences` does.

    Args:
      found: what `sources.get("imdb")` found; what TFDS prepared is read by
        `builders.corpus_sentences`.
      parts: which of its files, in this order.
      lower: whether to lower-case.
      punctuation: whether marks are words too.
    """
    found = sources.get("imdb") if found is None else found
    places = [found.part(part) for part in parts]
    return Sentences(
        lambda: (
            sentence
            for place in places
            for review in _reviews(place)
            for sentence in review_sentences(
                review, lower=lower, punctuation=punctuation
            )
        )
    )


def read_newsgroups(
    found: "sources.Found | None" = None,
    *,
    parts: Sequence[str] = ("train",),
    headers: bool = True,
    lower: bool = True,
) -> Sentences:
    """Reads the messages of 20 Newsgroups without their labels, cut as reviews are.

    Args:
      found: what `sources.get("20newsgroups")` found.
      parts: which of its files, in this order.
      headers: whether to keep the lines before the text.
      lower: whether to lower-case.
    """
    found = sources.get("20newsgroups") if found is None else found
    places = [found.part(part) for part in parts]
    return Sentences(
        lambda: (
            sentence
            for place in places
            for message in text.newsgroups_lines(place, headers=headers)
            for sentence in review_sentences(message.text, lower=lower)
        )
    )


def without_stop_words(
    sentences: Iterable[Sequence[str]],
    stop: Collection[str] = stopwords.ENGLISH,
) -> Sentences:
    """Sentences of content words only; those without any are left out."""

    def read() -> Iterator[list[str]]:
        for sentence in sentences:
            if words := stopwords.content_words(sentence, stop):
                yield list(words)

    return Sentences(read)


def review_sentences(
    review: str, *, lower: bool = True, punctuation: bool = False
) -> Iterator[list[str]]:
    """Cuts raw English text into sentences and words by these rules.

    1. `<br />` ends a sentence.
    2. So does a run of `.`, `!` and `?`, with the quotes and brackets that close after
       it, where white space and a capital or a digit follow (a quote or a bracket may
       open before that), unless it is the point of an initial other than *I* or of
       *Mr Mrs Ms Dr Prof St Jr Sr vs etc*.
    3. A word is a run of letters and digits of any script; apostrophes and hyphens
       inside belong to it: *don't*, *well-made*, *9-11*.
    4. With `punctuation` every other character that is not white space is a word of
       its own; without, it is left out. Sentences without a word are left out.
    """
    find = (_WORD_OR_MARK if punctuation else _WORD).findall
    for piece in review.split(_BREAK):
        for sentence in split_sentences(piece):
            if words := find(sentence.lower() if lower else sentence):
                yield words


def split_sentences(paragraph: str) -> Iterator[str]:
    """Cuts text where rule 2 of `review_sentences` says."""
    start = 0
    for end in _END.finditer(paragraph):
        if end[1] == ".":
            before = paragraph[max(start, end.start() - 6) : end.start()]
            if before.rpartition(" ")[2].lstrip("\"'(“") in _NO_END:
                continue
        yield paragraph[start : end.end(1)]
        start = end.end()
    yield paragraph[start:]


def split_lines(
    stream: Any,  # of bytes, with `readline`
    name: str,
    *,
    lower: bool = False,
    max_sentence: int = _MAX_SENTENCE,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[list[str]]:
    """The sentences of a stream, as `read_sentences` gives those of a file.

    Pieces that follow each other have together the sentences of the whole.

    Args:
      stream: where to read.
      name: what errors call it.
      lower: whether to lower-case.
      max_sentence: longer ones are cut.
      start: only lines that begin at this byte or after it.
      stop: only lines that begin before this byte.
    """
    place = start
    if start:
        # The line that is under way belongs to the piece before, however long it is.
        stream.seek(start - 1)
        place -= 1
        while piece := stream.readline(_LONGEST):
            place += len(piece)
            if piece.endswith(b"\n"):
                break
        name = f"{name} from byte {start}"
    number, first, rest, words = 1, not start, b"", []
    within = False  # a line that has begun is read to its end
    while within or stop is None or place < stop:
        piece = stream.readline(_LONGEST)
        if not piece:
            break
        place += len(piece)
        whole = piece.endswith(b"\n")
        within = not whole
        piece = rest + piece
        # What is cut off in the middle waits for the other half of its word.
        cut = len(piece) if whole else piece.rfind(b" ") + 1
        rest = piece[cut:]
        if len(rest) > _LONGEST:
            problem = "expected words parted by spaces, found one of over 1 MB"
            raise InputError.at(name, number, problem)
        words += _words(piece[:cut], name, number, lower, first)
        while len(words) > max_sentence or (whole and words):
            yield words[:max_sentence]
            words = words[max_sentence:]
        number += whole
    words += _words(rest, name, number, lower, first)
    while words:
        yield words[:max_sentence]
        words = words[max_sentence:]


def _lines(path: Location, lower: bool, max_sentence: int) -> Iterator[list[str]]:
    with files.open_bytes(path) as stream:
        yield from split_lines(
            stream, str(path), lower=lower, max_sentence=max_sentence
        )


def _words(line: bytes, name: str, number: int, lower: bool, first: bool) -> list[str]:
    try:
        decoded = line.decode("utf-8-sig" if first and number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError.at(name, number, "not valid UTF-8") from error
    return (decoded.lower() if lower else decoded).split()


def _brown(places: Iterable[Location], lower: bool) -> Iterator[list[str]]:
    for place in places:
        for number, line in enumerate(files.read_lines(place), 1):
            words = []
            for token in line.split():
                word, slash, _ = token.rpartition("/")
                if not slash:
                    problem = f"expected word/tag, found {token[:40]!r}"
                    raise InputError.at(str(place), number, problem)
                words.append(word.lower() if lower else word)
            if words:
                yield words


def _ended(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Cuts after the tokens that end a sentence."""
    start = 0
    for place, token in enumerate(tokens, 1):
        if token in _ENDS or place == len(tokens):
            yield list(tokens[start:place])
            start = place


def _reviews(place: Location) -> Iterator[str]:
    if {".csv", ".tsv"} & set(Path(str(place)).suffixes):
        return (row.text for row in text.imdb_lines(place))
    return iter(files.read_lines(place))
