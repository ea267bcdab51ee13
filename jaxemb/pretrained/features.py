"""Frozen features of a corpus on disk: an encoder's vectors of every word, made once.

A cache is a folder of `jaxemb.data.rows`, and in it `offsets.npy`: where each sentence
starts among the rows.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from flax import traverse_util

from jaxemb.data import rows as rows_lib
from jaxemb.data.batching import Ragged
from jaxemb.data.corpus.files import Meter
from jaxemb.nn.pieces import Pooling, align_wordpieces
from jaxemb.pretrained.huggingface import Pretrained
from jaxemb.pretrained.tokens import (
    Cutter,
    LikeLengths,
    by_length,
    padded,
    windows,
)

_DTYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureCache:
    """The vectors of every word of every sentence, read as they are asked for."""

    folder: Path
    described: dict[str, Any]
    """What the cache is of."""
    offsets: np.ndarray
    """Where each sentence starts among the rows; one more than there are sentences."""
    rows: np.ndarray
    """Of all words, mapped into memory: (words, dim)."""

    @classmethod
    def open(cls, folder: str | Path) -> "FeatureCache":
        """A cache that is complete.

        Raises:
          InputError: where there is none, or it was not finished.
        """
        folder = Path(folder)
        cache = _opened(folder, "r")
        rows_lib.check_finished(folder)
        return cache

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, sentence: int) -> np.ndarray:
        """The vectors of a sentence's words in float32: (words, dim)."""
        if not 0 <= sentence < len(self):
            raise IndexError(f"sentence {sentence} of {len(self)}")
        own = self.rows[self.offsets[sentence] : self.offsets[sentence + 1]]
        return own.astype(np.float32)


def cache_features(
    folder: str | Path,
    pretrained: Pretrained,
    sentences: Sequence[Sequence[str]],
    *,
    layer: int = -1,
    pooling: Pooling = "mean",
    dtype: Literal["float16", "bfloat16"] = "float16",
    batch_size: int = 32,
    buckets: int = 4,
    progress: bool = True,
) -> FeatureCache:
    """Makes the features of sentences, or goes on making them, or finds them made.

    A sentence that is longer than the encoder takes is encoded in windows that share a
    quarter; each word is taken from the one in which it has more context.

    Args:
      folder: of the cache.
      pretrained: the encoder, as it is.
      sentences: lists of words.
      layer: whose states: 0 is what goes into the first block, -1 the last.
      pooling: what becomes of the pieces of a word.
      dtype: of the file.
      batch_size: texts encoded together.
      buckets: padded lengths, of each of which a program is compiled.
      progress: say how far it is.

    Raises:
      InputError: where `folder` holds other features.
    """
    folder = Path(folder)
    described = {
        "weights": digest_of_weights(pretrained),
        "text": _digest_of_text(sentences),
        "layer": layer,
        "pooling": pooling,
        "dtype": dtype,
        "dim": pretrained.config.dim,
        "batch_size": batch_size,
        "buckets": buckets,
    }
    cutter = Cutter.of(pretrained)
    stretches = _stretches(cutter, sentences)
    batches = by_length(stretches.ids.lengths, batch_size, buckets, cutter.longest)
    _begin(folder, described, sentences, len(batches))
    cache = _opened(folder, "r+")
    rows_lib.check_same(folder, cache.described, described)
    encode = _encoder(pretrained, layer, pooling)
    with Meter("encoding", "texts", len(stretches.ids), show=progress) as meter:

        def make(batch: LikeLengths) -> None:
            _fill(cache, stretches, batch, encode)
            meter.advance(len(batch.rows))

        rows_lib.fill(folder, cache.rows, batches, make)
    return FeatureCache.open(folder)


class _Stretches(NamedTuple):
    """Texts, or windows of texts, as pieces, and the words that each is to give."""

    ids: Ragged
    words: Ragged
    """Of each piece the word, from 0 in each stretch; -1 for none."""
    first: np.ndarray
    """The row of the cache of the stretch's first word."""
    count: np.ndarray
    """How many words it gives."""


def _stretches(cutter: Cutter, sentences: Sequence[Sequence[str]]) -> _Stretches:
    before, after = cutter.around
    room = cutter.longest - len(before) - len(after)
    bare = cutter.bare(sentences)
    ids, words, first, count = [], [], [], []
    row = 0
    for sentence, (pieces, owners) in zip(sentences, bare, strict=True):
        taken = 0
        for start, end, _, last in windows(len(pieces), room, room // 4):
            whole = last == len(pieces)
            while not whole and owners[last] == owners[last - 1]:  # keep words whole
                last -= 1
            until = len(sentence) if whole else owners[last]
            own = [o - taken if taken <= o < until else -1 for o in owners[start:end]]
            ids.append([*before, *pieces[start:end], *after])
            words.append([-1] * len(before) + own + [-1] * len(after))
            first.append(row + taken)
            count.append(until - taken)
            taken = until
        row += len(sentence)
    return _Stretches(
        Ragged.of(ids), Ragged.of(words), np.array(first), np.array(count)
    )


def _fill(cache, stretches: _Stretches, batch: LikeLengths, encode) -> None:
    ids, mask = padded(stretches.ids, batch.filled, batch.length)
    words = stretches.words.padded(batch.filled, batch.length, fill=-1)
    found = np.asarray(encode(ids, mask, words))
    for vectors, stretch in zip(found, batch.rows, strict=False):
        first, count = stretches.first[stretch], stretches.count[stretch]
        cache.rows[first : first + count] = vectors[:count].astype(cache.rows.dtype)


def _encoder(pretrained: Pretrained, layer: int, pooling: Pooling):
    module = pretrained.module()

    @jax.jit
    def encode(params, ids, mask, words):
        encoded: Any = module.apply({"params": params}, ids, mask, deterministic=True)
        # A word has a piece at least: there are no more words than pieces.
        return align_wordpieces(encoded.states[layer], words, ids.shape[1], pooling)

    return functools.partial(encode, jax.tree.map(jnp.asarray, pretrained.params))


def _begin(folder: Path, described: dict, sentences, batches: int) -> None:
    if (folder / rows_lib.ABOUT).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    lengths = [len(sentence) for sentence in sentences]
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    np.save(folder / "offsets.npy", offsets)
    shape = int(offsets[-1]), described["dim"]
    rows_lib.begin(folder, described, shape, _DTYPES[described["dtype"]], batches)


def _opened(folder: Path, mode: Literal["r", "r+"]) -> FeatureCache:
    described = rows_lib.about(folder)
    offsets = np.load(folder / "offsets.npy")
    shape = int(offsets[-1]), described["dim"]
    rows = rows_lib.mapped(folder, shape, _DTYPES[described["dtype"]], mode)
    return FeatureCache(folder, described, offsets, rows)


def digest_of_weights(pretrained: Pretrained) -> str:
    """Tells an encoder's weights and tokenizer from all others."""
    digest = hashlib.sha256(pretrained.tokenizer or b"")
    for path, value in sorted(traverse_util.flatten_dict(pretrained.params).items()):
        digest.update("/".join(path).encode())
        digest.update(np.ascontiguousarray(value).data)
    return digest.hexdigest()


def _digest_of_text(sentences: Sequence[Sequence[str]]) -> str:
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update("\x1f".join(sentence).encode("utf-8", "surrogatepass"))
        digest.update(b"\x1e")
    return digest.hexdigest()
