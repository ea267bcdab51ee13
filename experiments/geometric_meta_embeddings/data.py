"""The sources of a run as matrices of the same words, and the tests of their unions."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.common.tables import at_hand
from experiments.geometric_meta_embeddings.config import ANALOGY, SIMILARITY, Config
from jaxemb.data import packed, sources, synthetic, wheels
from jaxemb.data.vectors import WordVectors, read_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval import kinds
from jaxemb.eval import sources as tests_lib
from jaxemb.spaces import combine, normalize
from jaxemb.train import results


@dataclasses.dataclass(frozen=True, eq=False)
class Sources:
    """Rows of the same words in every source, normalised, each of its own width."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    matrices: tuple[np.ndarray, ...]
    data: tuple[results.Data, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Tests:
    """Tests by the two groups that the paper averages."""

    similarity: tuple[kinds.Test, ...]
    analogy: tuple[kinds.Test, ...]


def load_sources(config: Config) -> Sources:
    """Reads the tables and brings them to one vocabulary."""
    if config.preset == "smoke":
        world = synthetic.planted_sources()
        names, tables = tuple(world.tables), list(world.tables.values())
        data = tuple(_planted(name, len(world.words)) for name in names)
    else:
        if len(config.sources) < 2:
            raise InputError(
                f"--sources: expected two tables or more, found {len(config.sources)}"
            )
        names, tables, data = _read(config.sources)
    if config.words == "common":
        words = combine.common_words(tables)
        matrices = [table.lookup(words) for table in tables]
    else:
        words = combine.all_words(tables)
        known = [np.array([word in table for word in words]) for table in tables]
        holes = [table.lookup(words, oov="zero") for table in tables]
        matrices = combine.impute(holes, known)
    matrices = [_normalised(m, config, place) for place, m in enumerate(matrices)]
    return Sources(names, tuple(words), tuple(matrices), data)


def load_tests(config: Config) -> Tests:
    """The paper's six similarity lists and three analogy sets."""
    if config.preset == "smoke":
        world = synthetic.planted_sources()
        return Tests((kinds.SimilarityTest("planted", world.pairs),), ())
    return Tests(
        tuple(tests_lib.find_tests(list(SIMILARITY)).tests),
        tuple(tests_lib.find_tests(list(ANALOGY)).tests),
    )


def _normalised(matrix: np.ndarray, config: Config, place: int) -> np.ndarray:
    if config.inputs == "unit":
        return normalize.unit(matrix)
    return normalize.unitdim(matrix) if place == 0 else np.asarray(matrix, np.float64)


def _read(
    named: Sequence[str],
) -> tuple[tuple[str, ...], list[WordVectors], tuple[results.Data, ...]]:
    """Tables by name; a table of word pieces takes the words of the others."""
    tables: dict[str, WordVectors | packed.TokenTable] = {}
    data = []
    for name in map(at_hand, named):
        if name in sources.DATA_SETS:
            found = sources.get(name)
            if "tokenizer" in found.parts:
                table = packed.read_token_table(
                    found.parts["weights"], found.parts["tokenizer"]
                )
            else:
                table = read_word_vectors(found.parts["vectors"])
            described = results.Data(
                name=name,
                kind=found.kind,
                source=found.source,
                sha256=found.sha256,
                size=found.data_set.rows or 0,
            )
        else:
            table = read_word_vectors(name)
            described = results.Data(
                name=Path(name).name,
                kind="real",
                source="a file",
                sha256=wheels.sha256_of(Path(name)),
                size=len(table),
            )
        if described.name in tables:
            raise InputError(f"--sources: {described.name} is named twice")
        tables[described.name] = table
        data.append(described)
    plain = [table for table in tables.values() if isinstance(table, WordVectors)]
    if not plain:
        raise InputError("--sources: expected at least one table of words")
    words = combine.all_words(plain)
    return (
        tuple(tables),
        [
            t if isinstance(t, WordVectors) else t.vectors(words)
            for t in tables.values()
        ],
        tuple(data),
    )


def _planted(name: str, size: int) -> results.Data:
    return results.Data(
        name=name,
        kind="synthetic",
        source="jaxemb.data.synthetic",
        sha256=None,
        size=size,
    )
