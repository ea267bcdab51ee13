"""Tables of words that an encoder has without further training."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from jaxemb.data.vectors import WordVectors
from jaxemb.pretrained.huggingface import Pretrained
from jaxemb.pretrained.tokens import Cutter

_AT_ONCE = 1 << 16  # words of a text


def token_table(pretrained: Pretrained, words: Sequence[str]) -> WordVectors:
    """The encoder's input vectors of words: the mean of those of a word's pieces.

    Neither positions nor segments are added. A word without pieces is 0.
    """
    table = np.asarray(pretrained.params["pieces"]["embedding"], np.float32)
    bare = Cutter.of(pretrained).bare([[word] for word in words])
    ids = [np.asarray(pieces, np.int64) for pieces, _ in bare]
    counts = np.array([len(pieces) for pieces in ids])
    ends = np.concatenate([[0], np.cumsum(counts)])
    shares = np.repeat(1 / np.maximum(counts, 1), counts)
    means = sparse.csr_array(
        (shares, np.concatenate([*ids, np.zeros(0, np.int64)]), ends),
        shape=(len(words), len(table)),
    )
    return WordVectors(tuple(words), (means @ table).astype(np.float32))


def type_averages(
    vectors: Callable[[np.ndarray], np.ndarray],
    tokens: Int[np.ndarray, " tokens"],
    words: int,
) -> Float[np.ndarray, "{words} dim"]:
    """The mean of an encoder's vectors of each word over a text; 0 of one that lacks.

    Args:
      vectors: from places in the text to the vectors of the words there.
      tokens: the number of each word of the text.
      words: how many different ones there are.
    """
    total: np.ndarray | None = None
    for start in range(0, len(tokens), _AT_ONCE):
        part = np.asarray(tokens[start : start + _AT_ONCE])
        own = np.asarray(vectors(start + np.arange(len(part))), np.float32)
        shape = words, len(part)
        ones = np.ones(len(part), np.float32)
        sums = sparse.csr_array((ones, (part, np.arange(len(part)))), shape) @ own
        total = sums.astype(np.float64) if total is None else total + sums
    assert total is not None, "a text has words"
    counts = np.bincount(tokens, minlength=words)
    return (total / np.maximum(counts, 1)[:, np.newaxis]).astype(np.float32)
