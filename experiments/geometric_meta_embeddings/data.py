"""The sources of a run as matrices of the same words, and the tests of their unions."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from experiments.common.datasets import planted
from experiments.common.tables import read_several
from experiments.geometric_meta_embeddings.config import ANALOGY, SIMILARITY, Config
from jaxemb.data import synthetic
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import kinds
from jaxemb.eval import sources as tests_lib
from jaxemb.spaces import combine, normalize
from jaxemb.spaces.ensemble import EmbeddingEnsemble
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
        data = tuple(planted(name, len(world.words)) for name in names)
    else:
        if len(config.sources) < 2:
            raise InputError(
                f"--sources: expected two tables or more, found {len(config.sources)}"
            )
        read, data = read_several(config.sources)
        names, tables = tuple(read), list(read.values())
    return combined(config, names, tables, data)


def combined(
    config: Config,
    names: tuple[str, ...],
    tables: Sequence[WordVectors],
    data: tuple[results.Data, ...],
) -> Sources:
    """Tables brought to one vocabulary."""
    if config.words == "common":
        words = combine.common_words(tables)
        matrices = [table.lookup(words) for table in tables]
    else:
        named = dict(zip(names, tables, strict=True))
        union = EmbeddingEnsemble.of(named, normalise=False)
        words = union.words
        matrices = combine.impute(union.matrices, list(union.known.T))
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
