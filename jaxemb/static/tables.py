"""What training leaves: both tables, and the vectors that are made of them."""

import dataclasses

import numpy as np
from etils import epath
from jaxtyping import Float, Int

from jaxemb import storage
from jaxemb.data.formats.subwords import Subwords
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.train import parallel

KINDS = "input", "output", "sum", "concatenation"


def write_words(workdir: epath.Path, words: tuple[str, ...]) -> None:
    """Names the rows of a run's tables, for whoever inspects its checkpoints.

    A list that is there stays: where it is another run's, that run is not to go on.
    """
    path = workdir / "words.txt"
    if parallel.is_primary() and not path.exists():
        storage.write_text(path, "".join(f"{word}\n" for word in words))


@dataclasses.dataclass(frozen=True, eq=False)
class WordTables:
    """A trained model of words: an input and an output vector for each.

    Attributes:
      words: the vocabulary.
      counts: how often each word occurs in the training text; the unigram distribution.
      input: vectors of words that predict (GloVe: of rows).
      output: vectors of words that are predicted (GloVe: of columns).
      input_bias: GloVe's, of rows; None for the others.
      output_bias: GloVe's, of columns.
      subwords: the rows that inputs are composed of, where they are.
    """

    words: tuple[str, ...]
    counts: Int[np.ndarray, " vocab"]
    input: Float[np.ndarray, "vocab dim"]
    output: Float[np.ndarray, "vocab dim"]
    input_bias: Float[np.ndarray, " vocab"] | None = None
    output_bias: Float[np.ndarray, " vocab"] | None = None
    subwords: Subwords | None = None

    def vectors(self, kind: str = "input") -> WordVectors:
        """A table of word vectors to query, evaluate and write.

        Args:
          kind: "input", the usual product of word2vec and fastText (with subwords, the
            composed vectors); "output"; their "sum", the usual product of GloVe; or
            their "concatenation".
        """
        if kind not in KINDS:
            raise InputError(f"kind={kind!r}: expected one of {', '.join(KINDS)}")
        inputs = self.input
        if self.subwords is not None:
            inputs = self.subwords.compose(self.words)
        if kind == "input":
            return self._table(inputs, self.subwords)
        if kind == "output":
            return self._table(self.output)
        if kind == "sum":
            return self._table(inputs + self.output)
        return self._table(np.concatenate([inputs, self.output], axis=1))

    def _table(
        self, matrix: np.ndarray, subwords: Subwords | None = None
    ) -> WordVectors:
        matrix = np.ascontiguousarray(matrix, np.float32)
        return WordVectors(self.words, matrix, subwords, unique=True)
