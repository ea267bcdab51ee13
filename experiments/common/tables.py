"""Word tables that an experiment names: data sets, or a user's files."""

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from experiments.common.datasets import described
from experiments.common.names import at_hand
from jaxemb.data import packed, sources
from jaxemb.data.vectors import WordVectors, read_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval import lookup
from jaxemb.spaces import combine
from jaxemb.train import results


def digested(
    name: str, table: WordVectors, source: str = "trained by the run"
) -> results.Data:
    """What results say of a table that has no pinned digest of its own."""
    return results.Data(
        name=name,
        kind="real",
        source=f"{source}, of which the digest is of the numbers read",
        sha256=hashlib.sha256(np.ascontiguousarray(table.matrix).data).hexdigest(),
        size=len(table),
    )


def read(
    name: str, keep: Collection[str] | None = None
) -> tuple[WordVectors | packed.TokenTable, results.Data]:
    """A data set's table or a file's, and what results call it.

    A table of word pieces is returned as such: it makes vectors of any words.
    """
    name = at_hand(name)
    if name not in sources.DATA_SETS:
        table = read_word_vectors(name, keep=keep)
        return table, digested(Path(name).name, table, "a file")
    found = sources.get(name)
    if "tokenizer" in found.parts:
        pieces = packed.read_token_table(found.part("weights"), found.part("tokenizer"))
        return pieces, described(found)
    return read_word_vectors(found.part("vectors"), keep=keep), described(found)


def read_several(
    named: Sequence[str], words: Sequence[str] | None = None
) -> tuple[dict[str, WordVectors], tuple[results.Data, ...]]:
    """Tables by name; one of word pieces makes vectors of the words of the others.

    Args:
      named: data sets or files, each once.
      words: read only these, and their lower-cased forms; a table of word pieces makes
        vectors of all of them.
    """
    keep = None if words is None else lookup.forms_looked_up(set(words))
    tables: dict[str, WordVectors | packed.TokenTable] = {}
    data = []
    for name in named:
        table, used = read(name, keep)
        if used.name in tables:
            raise InputError(f"--sources: {used.name} is named twice")
        tables[used.name] = table
        data.append(used)
    plain = [table for table in tables.values() if isinstance(table, WordVectors)]
    if not plain:
        raise InputError("--sources: expected at least one table of words")
    if words is None:
        words = combine.all_words(plain)
    return {
        name: table if isinstance(table, WordVectors) else table.vectors(words)
        for name, table in tables.items()
    }, tuple(data)
