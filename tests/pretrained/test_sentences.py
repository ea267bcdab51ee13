"""Vectors of texts beside an encoder that is given one at a time."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import nn
from jaxemb.pretrained import Cutter, encode_texts, windows

TEXTS = ["A dog runs .", "", "a fine film is a dull film", "hound"]


def states(bert, ids):
    ids = jnp.array([ids])
    encoded = bert.module().apply(
        {"params": bert.params}, ids, ids > 0, deterministic=True
    )
    return np.asarray(encoded.last[0])


def unit(x):
    return x / np.linalg.norm(x)


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_vectors_are_those_of_each_text_alone(bert, pooling):
    found = encode_texts(bert, TEXTS, pooling=pooling, batch_size=2, buckets=2)
    for text, row in zip(TEXTS, found, strict=True):
        own = states(bert, Cutter.of(bert).tokenizer.encode(text).ids)
        wanted = own.mean(axis=0) if pooling == "mean" else own[0]
        np.testing.assert_allclose(row, unit(wanted), atol=1e-5)


def test_a_long_text_is_read_in_windows(bert):
    text = TEXTS[2]
    [found] = encode_texts(bert, [text], longest=6)
    pieces = Cutter.of(bert).bare([text])[0][0]
    kept = []
    read = windows(len(pieces), 4, 1)
    assert len(read) == 2
    for window in read:
        own = states(bert, [2, *pieces[window.start : window.end], 3])
        inside = own[1:-1][window.first - window.start : window.last - window.start]
        kept += [*own[:1]] if window is read[0] else []
        kept += [*inside]
        kept += [*own[-1:]] if window is read[-1] else []
    assert len(kept) == len(pieces) + 2
    np.testing.assert_allclose(found, unit(np.mean(kept, axis=0)), atol=1e-5)


def test_no_texts_are_no_vectors(bert):
    assert encode_texts(bert, []).shape == (0, 8)


def test_programs_are_bounded_by_buckets(bert, monkeypatch):
    shapes = set()
    real = nn.Bert.__call__

    def traced(self, ids, *args, **more):
        shapes.add(ids.shape)
        return real(self, ids, *args, **more)

    monkeypatch.setattr(nn.Bert, "__call__", traced)
    texts = [" ".join(["dog"] * n) for n in range(1, 10)]
    encode_texts(bert, texts, batch_size=2, buckets=2)
    assert len(shapes) == 2
