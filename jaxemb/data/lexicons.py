"""Lists of words, with a number each or without."""

import math
from pathlib import Path

from jaxemb.data import files
from jaxemb.errors import InputError


def read_valence(path: files.Location) -> dict[str, float]:
    """Reads VADER's lexicon: a word, a tab, its mean valence; more columns may follow.

    Of a word listed twice the first line counts.

    Raises:
      InputError: with file and line.
    """
    valence: dict[str, float] = {}
    for number, line in enumerate(files.read_lines(path), 1):
        if not line.strip():
            continue
        word, _, rest = line.partition("\t")
        try:
            value = float(rest.split("\t")[0])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            problem = "expected a word, a tab and a number"
            raise InputError.at(str(path), number, problem)
        valence.setdefault(word, value)
    return valence


def read_word_list(path: files.Location) -> tuple[str, ...]:
    """Reads words parted by white space; lines that begin with `#` are left out.

    Raises:
      InputError: where there is no word, or one stands twice.
    """
    words: dict[str, int] = {}
    for number, line in enumerate(files.read_lines(path), 1):
        for word in () if line.startswith("#") else line.split():
            if word in words:
                problem = f"{word!r} already stood in line {words[word]}"
                raise InputError.at(str(path), number, problem)
            words[word] = number
    if not words:
        raise InputError(f"{path}: expected words, found none")
    return tuple(words)


def english_function_words() -> tuple[str, ...]:
    """Articles, pronouns, auxiliaries, prepositions and the like, listed by hand.

    The list is jaxemb's own, `function_words.txt` beside this file: it stands in for
    the 176 words of Nation (2016), which is a book, and has more of them, since it
    lists every form.
    """
    return read_word_list(Path(__file__).parent / "function_words.txt")
