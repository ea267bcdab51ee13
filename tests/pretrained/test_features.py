"""Features on disk beside an encoder that is given one sentence at a time."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import nn
from jaxemb.data import rows
from jaxemb.errors import InputError
from jaxemb.pretrained import Cutter, FeatureCache, cache_features, features
from tests import encoders

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##do", "##ing", "it", "is"]
SENTENCES = [
    ["it", "undoing"],
    [],
    ["undo", "is", "it", "xyz"],
    ["it", "is", "undoing", "undoing", "it", "undo", "is"],  # 12 pieces: three windows
    ["is"],
]


@pytest.fixture(scope="module")
def encoder():
    return encoders.tiny(VOCAB, dim=4, layers=2, inner=6, positions=8)


def one_by_one(encoder, sentence, layer=-1):
    """The mean states of the pieces of each word of a sentence that fits."""
    [(pieces, owners)] = Cutter.of(encoder).bare([sentence])
    ids = jnp.asarray([[2, *pieces, 3]])
    states = (
        encoder.module()
        .apply({"params": encoder.params}, ids, ids > 0, deterministic=True)
        .states[layer][0, 1:-1]
    )
    return np.stack(
        [
            np.mean([s for s, o in zip(states, owners, strict=True) if o == word], 0)
            for word in range(len(sentence))
        ]
    )


@pytest.mark.parametrize(("layer", "dtype"), [(-1, "float16"), (1, "bfloat16")])
def test_features_are_those_of_each_sentence_alone(encoder, layer, dtype, tmp_path):
    options = {"layer": layer, "dtype": dtype, "batch_size": 2, "progress": False}
    cache = cache_features(tmp_path, encoder, SENTENCES, **options)
    assert len(cache) == 5
    assert [len(cache[i]) for i in range(5)] == list(map(len, SENTENCES))
    for i in (0, 2, 4):
        wanted = one_by_one(encoder, SENTENCES[i], layer)
        np.testing.assert_allclose(cache[i], wanted, rtol=0.01, atol=0.01)
    assert cache[0].dtype == np.float32
    assert cache.rows.dtype.itemsize == 2
    again = FeatureCache.open(tmp_path)
    np.testing.assert_array_equal(again.rows, cache.rows)
    with pytest.raises(IndexError):
        cache[5]


@pytest.mark.parametrize("layer", [0, -1])
def test_long_sentences_are_taken_in_windows(encoder, layer, tmp_path):
    """Of the windows that hold a word, the one whose nearer edge is farther from it."""
    cache = cache_features(tmp_path, encoder, SENTENCES, layer=layer, progress=False)
    [(pieces, owners)] = Cutter.of(encoder).bare([SENTENCES[3]])
    assert len(pieces) == 12
    possible = {word: [] for word in range(7)}
    for start in (0, 5, 6):  # of 6 pieces that share one; the last ends the sentence
        ids = jnp.asarray([[2, *pieces[start : start + 6], 3]])
        states = (
            encoder.module()
            .apply({"params": encoder.params}, ids, ids > 0, deterministic=True)
            .states[layer][0, 1:-1]
        )
        inside = owners[start : start + 6]
        for word in set(inside):
            own = [s for s, o in zip(states, inside, strict=True) if o == word]
            if len(own) == owners.count(word):
                first = inside.index(word)
                context = min(first, len(inside) - first - len(own))
                possible[word].append((context, np.mean(own, axis=0)))
    others = []
    for word, vector in enumerate(cache[3]):
        most = max(context for context, _ in possible[word])
        gaps = [(c < most, np.abs(vector - x).max()) for c, x in possible[word]]
        assert min(gap for less, gap in gaps if not less) < 0.01
        others += [gap for less, gap in gaps if less]
    # Another window would be seen by its positions, which the last layer hardly has.
    assert others and (layer or min(others) > 0.05)


def test_programs_are_bounded_by_buckets(tmp_path, monkeypatch):
    encoder = encoders.tiny(VOCAB, dim=4, layers=1, inner=4, positions=24)
    shapes = []
    real = nn.Bert.__call__

    def traced(self, ids, *args, **more):
        shapes.append(ids.shape)
        return real(self, ids, *args, **more)

    monkeypatch.setattr(nn.Bert, "__call__", traced)
    sentences = [["it"] * n for n in range(1, 20)]
    options = {"batch_size": 2, "buckets": 2, "progress": False}
    cache_features(tmp_path, encoder, sentences, **options)
    assert len(shapes) == len(set(shapes)) == 2


def test_a_stop_goes_on_where_it_was(encoder, tmp_path, monkeypatch):
    whole = cache_features(tmp_path / "whole", encoder, SENTENCES, batch_size=1)
    monkeypatch.setattr(rows, "_FLUSH_EVERY", 2)
    fill, calls = features._fill, []

    def breaks(*arguments):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        fill(*arguments)

    monkeypatch.setattr(features, "_fill", breaks)
    with pytest.raises(KeyboardInterrupt):
        cache_features(tmp_path / "broken", encoder, SENTENCES, batch_size=1)
    with pytest.raises(InputError, match="not finished"):
        FeatureCache.open(tmp_path / "broken")
    done = int(np.load(tmp_path / "broken" / "done.npy").sum())
    assert done == 2
    calls[:] = [None] * 10
    mended = cache_features(tmp_path / "broken", encoder, SENTENCES, batch_size=1)
    batches = len(np.load(tmp_path / "broken" / "done.npy"))
    assert len(calls) - 10 == batches - done
    np.testing.assert_array_equal(mended.rows, whole.rows)


def test_other_features_are_named(encoder, tmp_path):
    cache_features(tmp_path, encoder, SENTENCES, progress=False)
    with pytest.raises(InputError, match="another layer"):
        cache_features(tmp_path, encoder, SENTENCES, layer=0, progress=False)
    with pytest.raises(InputError, match="another text"):
        cache_features(tmp_path, encoder, SENTENCES[:2], progress=False)
    moved = jax.tree.map(lambda p: p + 1, encoder.params)
    other = dataclasses.replace(encoder, params=moved)
    with pytest.raises(InputError, match="another weights"):
        cache_features(tmp_path, other, SENTENCES, progress=False)
    with pytest.raises(InputError, match="expected a folder of features"):
        FeatureCache.open(tmp_path / "none")
