"""Several tables of the same words, and which of them has which word."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float

from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.spaces import combine, normalize


@dataclasses.dataclass(frozen=True, eq=False)
class EmbeddingEnsemble:
    """Rows of the same words in every source, each of its own width.

    What a source lacks is a row of zeros, and `known` is False there.
    """

    names: tuple[str, ...]
    words: tuple[str, ...]
    matrices: tuple[np.ndarray, ...]  # one a source: (words, its width), float64
    known: Bool[np.ndarray, "words source"]

    @classmethod
    def of(
        cls,
        tables: Mapping[str, WordVectors],
        words: Sequence[str] | None = None,
        *,
        normalise: bool = True,
        recase: bool = False,
    ) -> "EmbeddingEnsemble":
        """Looks words up in every table.

        Args:
          tables: by name.
          words: those of any table, in the order of the first, unless given. A word of
            no table is kept, without a row.
          normalise: rows of length 1.
          recase: where a table lacks a word, take it lower-cased.
        """
        if not tables:
            raise InputError("an ensemble of no tables; expected one or more")
        if words is None:
            words = combine.all_words(list(tables.values()))
        matrices, known = [], []
        for table in tables.values():
            forms = [w if w in table or not recase else w.lower() for w in words]
            rows = table.lookup(forms, oov="zero").astype(np.float64)
            matrices.append(normalize.unit(rows) if normalise else rows)
            # A row of zeros has no direction: as good as missing.
            known.append(np.array([f in table for f in forms]) & rows.any(axis=1))
        columns = np.stack(known, axis=1)
        return cls(tuple(tables), tuple(words), tuple(matrices), columns)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the sources."""
        return tuple(matrix.shape[1] for matrix in self.matrices)

    @property
    def anywhere(self) -> Bool[np.ndarray, " words"]:
        """Whether any source has the word."""
        return np.asarray(self.known.any(axis=1))

    def take(self, rows: np.ndarray) -> "EmbeddingEnsemble":
        """The words of some rows, or of a mask of rows."""
        chosen = np.arange(len(self))[rows]
        return EmbeddingEnsemble(
            self.names,
            tuple(self.words[row] for row in chosen),
            tuple(matrix[chosen] for matrix in self.matrices),
            self.known[chosen],
        )

    def concatenate(self) -> Float[np.ndarray, "words dims"]:
        """CONC: the sources side by side."""
        return combine.concatenate(self.matrices)

    def average(self) -> Float[np.ndarray, "words dim"]:
        """AV: the mean over the sources that have the word, narrow ones padded by 0."""
        total = combine.average(combine.same_width(self.matrices, "pad"))
        count = np.maximum(self.known.sum(axis=1, keepdims=True), 1)
        return total * (len(self.names) / count)

    def svd(self, dim: int) -> Float[np.ndarray, "words {dim}"]:
        """SVD of CONC."""
        return combine.svd(self.matrices, dim)

    def table(self, matrix: Float[np.ndarray, "words dim"]) -> WordVectors:
        """A matrix of these words as a table of those that any source has."""
        kept = self.anywhere
        words = tuple(w for w, has in zip(self.words, kept, strict=True) if has)
        return WordVectors(words, np.asarray(matrix[kept], np.float32))
