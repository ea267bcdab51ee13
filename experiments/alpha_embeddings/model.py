"""Every embedding of a trained model, by the names that the paper gives them."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from experiments.alpha_embeddings import data
from experiments.alpha_embeddings.config import (
    Config,
    Metric,
    Reference,
    Variant,
    limit_of,
)
from jaxemb import static
from jaxemb.data.vectors import WordVectors
from jaxemb.spaces import alpha, normalize
from jaxemb.spaces.alpha import Limit

PUBLISHED = "WG5"  # what the paper calls GloVe's own vectors, of 6 billion words
_LENGTH_AND_PRODUCT: dict[Metric, tuple[alpha.Metric, alpha.Metric]] = {
    "I": ("I", "I"),
    "F": ("F", "F"),
    "nF-pI": ("F", "I"),
    "nI-pF": ("I", "F"),
}


class Name(NamedTuple):
    """One embedding of a model, as the paper names them."""

    variant: str
    reference: str
    metric: str
    member: str
    """An alpha, or a limit as `t3-w`."""

    @property
    def is_limit(self) -> bool:
        return self.member.startswith("t")

    @property
    def system(self) -> str:
        """Without the member: `E-U+V-0-I`, or `LE-U+V-0-I`."""
        kind = "LE" if self.is_limit else "E"
        return f"{kind}-{self.variant}-{self.reference}-{self.metric}"

    def __str__(self) -> str:
        if self.is_limit:
            return f"{self.system}-{self.member}"
        return f"{self.system} (α = {self.member})"

    @classmethod
    def of(cls, system: str, member: str) -> "Name":
        """A member of a system that is named without one."""
        _, variant, reference, metric = system.split("-", 3)
        return cls(variant, reference, metric, member)


def names_of(config: Config) -> list[Name]:
    """Every embedding that is asked for."""
    members = [f"{a:g}" for a in config.alphas] + list(config.limits)
    fields = config.variants, config.references, config.metrics, members
    return list(itertools.starmap(Name, itertools.product(*fields)))


def geometry(
    config: Config,
    model: data.Model,
    variant: Variant,
    reference: Reference,
    rows: np.ndarray | None = None,
) -> alpha.Model:
    """The distributions of a model's words, or of some of them, and the reference."""
    tables = model.tables
    words = tables.input + tables.output if variant == "U+V" else tables.input
    if reference == "0":
        log_reference = alpha.uniform(len(words))
    elif reference == "ud":
        log_reference = alpha.unigram(tables.counts)
    else:
        log_reference = alpha.model_unigram(
            tables.input if config.joint == "learned" else words,
            tables.output,
            word_bias=tables.input_bias,
            context_bias=tables.output_bias,
            counts=tables.counts,
        )
    words = words if rows is None else words[rows]
    return alpha.Model(words, tables.output, log_reference)


def members(
    config: Config, of: alpha.Model
) -> Iterator[tuple[str, Float[np.ndarray, "words dim"]]]:
    """Every member of the family, rows of any length, one at a time."""
    limits = [Limit(*limit_of(name)) for name in config.limits]
    for member, rows in alpha.family(of, config.alphas, limits):
        yield str(member) if isinstance(member, Limit) else f"{member:g}", rows


def normalised(rows: np.ndarray, of: alpha.Model, metric: Metric) -> np.ndarray:
    """Rows of length 1 in a metric, as classifiers read them."""
    length, _ = _LENGTH_AND_PRODUCT[metric]
    return alpha.normalised(rows, of, length).astype(np.float32)


def in_metric(rows: np.ndarray, of: alpha.Model, metric: Metric) -> np.ndarray:
    """Rows of length 1 in a metric, whose plain products are those of a metric."""
    length, product = _LENGTH_AND_PRODUCT[metric]
    rows = alpha.in_metric(alpha.normalised(rows, of, length), of, product)
    return rows.astype(np.float32)


def baselines(
    tables: static.WordTables,
    published: WordVectors | None = None,
    rows: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """U, U+V and WG5, every column centred and normalised, then rows of length 1.

    Args:
      tables: U and V.
      published: WG5, the sums of GloVe's own tables; a word that it lacks gets zeros.
      rows: the words that are wanted, of all of which columns are normalised.
    """
    found = {
        "U": _standardized(tables.input),
        "U+V": _standardized(tables.input + tables.output),
    }
    if published is not None:
        known = np.array([word in published for word in tables.words])
        matrix = np.zeros((len(known), published.dim))
        own = [word for word in tables.words if word in published]
        matrix[known] = _standardized(published.lookup(own))
        found[PUBLISHED] = matrix
    rows = np.arange(len(tables.words)) if rows is None else rows
    return {name: matrix[rows].astype(np.float32) for name, matrix in found.items()}


def _standardized(matrix: np.ndarray) -> np.ndarray:
    return normalize.unit(normalize.standardize(matrix))
