"""One vector a text: an encoder's states, pooled."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxemb.data.batching import Ragged
from jaxemb.data.corpus.files import Meter
from jaxemb.pretrained.huggingface import Pretrained
from jaxemb.pretrained.tokens import Cutter, by_length, padded, windows


def encode_texts(
    pretrained: Pretrained,
    texts: Sequence[str],
    *,
    pooling: Literal["mean", "first"] = "mean",
    longest: int | None = None,
    batch_size: int = 32,
    buckets: int = 4,
    progress: bool = False,
) -> np.ndarray:
    """The vectors of texts at length 1: (texts, dim), float32.

    The mean of the states of all pieces, [CLS] and [SEP] too, as sentence encoders such
    as MiniLM are trained for; or the first state. A text that is longer than the
    encoder takes is read in windows that share a quarter, and each of its pieces counts
    once, in the window where it has more context.

    Args:
      pretrained: the encoder.
      texts: as they are written.
      pooling: what becomes of the states of a text.
      longest: pieces of a window; as many as the encoder takes unless given.
      batch_size: texts encoded together.
      buckets: padded lengths, of each of which a program is compiled.
      progress: say how far it is.
    """
    cutter = Cutter.of(pretrained)
    longest = min(longest or cutter.longest, cutter.longest)
    stretches = _stretches(cutter, texts, longest, pooling)
    module = pretrained.module()

    @jax.jit
    def sums(params, ids, mask, counted):
        encoded: Any = module.apply({"params": params}, ids, mask, deterministic=True)
        states = encoded.last.astype(jnp.float32)
        return jnp.sum(jnp.where(counted[..., None], states, 0), axis=1)

    params = jax.tree.map(jnp.asarray, pretrained.params)
    vectors = np.zeros((len(texts), pretrained.config.dim), np.float32)
    lengths = stretches.ids.lengths
    with Meter("encoding", "texts", len(lengths), show=progress) as meter:
        for batch in by_length(lengths, batch_size, buckets, longest):
            ids, mask = padded(stretches.ids, batch.filled, batch.length)
            counted = stretches.counted.padded(batch.filled, batch.length)
            found = np.asarray(sums(params, ids, mask, counted))
            np.add.at(vectors, stretches.text[batch.rows], found[: len(batch.rows)])
            meter.advance(len(batch.rows))
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


class _Stretches(NamedTuple):
    """Windows of texts."""

    ids: Ragged
    counted: Ragged
    """Whether the state of a piece counts in the mean of its text."""
    text: np.ndarray
    """Which text a window is of."""


def _stretches(cutter: Cutter, texts, longest: int, pooling: str) -> _Stretches:
    before, after = cutter.around
    room = longest - len(before) - len(after)
    ids, counted, owners = [], [], []
    for number, (pieces, _) in enumerate(cutter.bare(texts)):
        found = windows(len(pieces), room, room // 4)
        for window in found:
            own = [window.first <= p < window.last for p in range(*window[:2])]
            marks = (
                [window is found[0]] * len(before)
                + own
                + [window is found[-1]] * len(after)
            )
            if pooling == "first":
                marks = [window is found[0]] + [False] * (len(marks) - 1)
            ids.append([*before, *pieces[window.start : window.end], *after])
            counted.append(marks[: len(ids[-1])])
            owners.append(number)
    return _Stretches(
        Ragged.of(ids), Ragged.of(counted, bool), np.array(owners, np.int64)
    )
