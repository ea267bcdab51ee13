"""Sentences in columns, as the shared tasks of CoNLL have them: a word a line."""

import re
from collections.abc import Sequence

from jaxemb.data import files
from jaxemb.errors import InputError

Sentence = dict[str, tuple[str, ...]]  # the name of a column to its entries

# The columns of the shared tasks, in the order of the files.
CONLL2000 = "words", "pos", "chunks"
CONLL2002 = "words", "pos", "entities"
CONLL2003 = "words", "pos", "chunks", "entities"

# Only ASCII white space parts columns: words may be, and hold, other kinds of it.
_BETWEEN = re.compile("[ \t]+")
_DOCUMENT = "-DOCSTART-"


def read_conll(path: files.Location, columns: Sequence[str]) -> list[Sentence]:
    """Reads a file of columns parted by spaces or tabs, an empty line after a sentence.

    Lines that begin a document (`-DOCSTART-`) end a sentence and are left out.

    Args:
      path: the file.
      columns: the name of each, in order and once; every line has as many.

    Raises:
      InputError: with file and line, also where no sentence is found.
    """
    if len(set(columns)) < len(columns):
        named = ", ".join(columns)
        raise InputError(f"{path}: expected each column named once, found {named}")
    sentences: list[Sentence] = []
    rows: list[list[str]] = []

    def end() -> None:
        if rows:
            entries = zip(*rows, strict=True)
            sentences.append(dict(zip(columns, entries, strict=True)))
            rows.clear()

    for number, line in enumerate(files.read_lines(path), 1):
        fields = _BETWEEN.split(line.strip(" \t"))
        if fields == [""] or fields[0] == _DOCUMENT:
            end()
            continue
        if len(fields) != len(columns):
            problem = (
                f"expected {len(columns)} columns ({', '.join(columns)}), found "
                f"{len(fields)}"
            )
            raise InputError.at(str(path), number, problem)
        rows.append(fields)
    end()
    if not sentences:
        raise InputError(f"{path}: expected words in columns, found none")
    return sentences
