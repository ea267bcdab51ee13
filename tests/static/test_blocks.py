"""Chunks, windows and the words left out, against enumeration."""

import numpy as np
import pytest
from scipy import stats

from jaxemb.errors import InputError
from jaxemb.static.blocks import Blocks, Layout, keep_probability, reach
from jaxemb.static.subwords import NGrams
from tests.static import corpora

LAYOUT = Layout(chunk=100, groups=4, group=8)


def centres(batch, window):
    return batch["words"][..., window:-window]


def pairs(batch, window):
    """What a batch trains: (centre, context), from its own arrays by loops."""
    out = []
    for group, block, place in np.ndindex(batch["before"].shape):
        row = batch["words"][group, block]
        here = window + place
        low = here - batch["before"][group, block, place]
        high = here + batch["after"][group, block, place]
        out += [
            (int(row[here]), int(row[j])) for j in range(low, high + 1) if j != here
        ]
    return out


@pytest.mark.parametrize("window", [1, 3, 5])
def test_windows_are_those_of_enumeration(tmp_path, window):
    text = corpora.build(tmp_path / "c")
    blocks = Blocks(text, LAYOUT, window=window, dynamic=False, sample=0.0)
    assert blocks.num_chunks > 3
    for epoch in range(2):
        steps = range(epoch * blocks.num_chunks, (epoch + 1) * blocks.num_chunks)
        found = sorted(p for step in steps for p in pairs(blocks(step), window))
        assert found == corpora.pairs_by_enumeration(text, window)


def test_epochs_hold_the_same_text_in_another_order(tmp_path):
    text = corpora.build(tmp_path / "c")
    blocks = Blocks(text, LAYOUT, sample=0.0)
    number = blocks.num_chunks
    firsts = [blocks(step)["words"][0, 0].tolist() for step in range(2 * number)]
    assert firsts[:number] != firsts[number:]
    raw = [int(blocks(step)["raw"][0]) for step in range(2 * number)]
    assert sum(raw[:number]) == sum(raw[number:]) == text.raw[-1]
    assert max(raw) < 2 * LAYOUT.chunk  # equal shares, cut at sentences


def test_a_batch_is_a_function_of_seed_and_step(tmp_path):
    text = corpora.build(tmp_path / "c")
    first, again, other = (Blocks(text, LAYOUT, seed=s) for s in (0, 0, 1))
    for name, leaf in first(5).items():
        np.testing.assert_array_equal(leaf, again(5)[name])
    assert not np.array_equal(first(5)["words"], other(5)["words"])


def test_processes_share_the_groups(tmp_path):
    text = corpora.build(tmp_path / "c")
    whole = Blocks(text, LAYOUT)(3)
    parts = [Blocks(text, LAYOUT, process=(i, 2))(3) for i in range(2)]
    for name, leaf in whole.items():
        np.testing.assert_array_equal(np.concatenate([p[name] for p in parts]), leaf)
    with pytest.raises(InputError, match="3 processes"):
        Blocks(text, LAYOUT, process=(0, 3))


def test_processes_lay_n_grams_out_alike(tmp_path):
    """The longest words may all be another process's; the shapes are everyone's."""
    short, long = ["ab"] * 100, ["abcdefghijklmnopqrstuvwxyz" * 3] * 28
    text = corpora.build(tmp_path / "c", [short + long])
    layout = Layout(chunk=1000, groups=4, group=32)
    ngrams = NGrams(text.words, 3, 6, 500)
    options = {"sample": 0.0, "ngrams": ngrams}
    whole = Blocks(text, layout, **options)(0)
    parts = [Blocks(text, layout, process=(i, 2), **options)(0) for i in range(2)]
    assert ngrams.most(centres(parts[0], 5)) < whole["ngrams"].shape[-1]
    for name, leaf in whole.items():
        np.testing.assert_array_equal(np.concatenate([p[name] for p in parts]), leaf)


def test_a_long_sentence_is_one_chunk_and_no_chunk_is_empty(tmp_path):
    text = corpora.build(tmp_path / "c", [["a", "b"], ["c"] * 950, ["d", "e"]])
    blocks = Blocks(text, LAYOUT, sample=0.0)
    raw = [int(blocks(step)["raw"][0]) for step in range(blocks.num_chunks)]
    assert sum(raw) == 954 and min(raw) > 0
    assert blocks.num_chunks <= 3


def test_a_step_may_be_empty_an_epoch_may_not(tmp_path):
    lonely = [["a"]] * 300
    text = corpora.build(tmp_path / "c", [*lonely, ["b", "c"]])
    blocks = Blocks(text, LAYOUT, sample=0.0)
    batches = [blocks(step) for step in range(blocks.num_chunks)]
    assert sorted(b["before"].sum() for b in batches)[-2:] == [0, 1]
    text = corpora.build(tmp_path / "d", lonely)
    blocks = Blocks(text, LAYOUT, sample=0.0)
    with pytest.raises(InputError, match="nothing to learn in epoch 2, since no sente"):
        blocks(blocks.num_chunks)


def test_radii_are_uniform(tmp_path):
    sentences = [["a"] * 1000 for _ in range(20)]
    text = corpora.build(tmp_path / "c", sentences)
    layout = Layout(chunk=30_000, groups=32, group=32)
    batch = Blocks(text, layout, window=4, sample=0.0)(0)
    both = np.stack([batch["before"], batch["after"]]).max(axis=0)
    observed = np.bincount(both.ravel(), minlength=5)[1:]
    assert stats.chisquare(observed).pvalue > 0.01


def test_frequent_words_are_left_out(tmp_path):
    sentences = [["often"] * 9 + [f"rare{i}"] for i in range(2000)]
    text = corpora.build(tmp_path / "c", sentences)
    layout = Layout(chunk=40_000, groups=32, group=32)
    batch = Blocks(text, layout, sample=1e-2, window=2)(0)
    kept = batch["before"] + batch["after"] > 0
    often = centres(batch, 2)[kept] == text.index["often"]
    ratio = 1e-2 / 0.9
    expected = np.sqrt(ratio) + ratio
    # Sentences that keep one word alone have no pair, hence the tolerance.
    assert abs(often.sum() / 18_000 - expected) < 0.02
    assert (~often).sum() > 1200  # of 2000: the others have lost their neighbours


def test_keeping_words_as_gensim_does():
    """The threshold that gensim derives, from its own code, on the same counts."""
    word2vec = pytest.importorskip("gensim.models.word2vec")
    words = {"a": 500, "b": 300, "c": 15, "d": 5}
    model = word2vec.Word2Vec(sample=1e-2, min_count=1)
    model.build_vocab_from_freq(words)
    ours = keep_probability(np.array(list(words.values())), 1e-2)
    for word, probability in zip(words, ours, strict=True):
        theirs = model.wv.get_vecattr(word, "sample_int") / 2**32
        assert probability == pytest.approx(min(theirs, 1.0), rel=1e-4)
    np.testing.assert_array_equal(keep_probability(np.array([5, 1]), 0.0), 1)


def test_reach_ends_with_the_sentence():
    sentence = np.array([0, 0, 0, 2, 3, 3])
    before, after = reach(sentence, np.array([5, 5, 1, 5, 5, 5]))
    assert before.tolist() == [0, 1, 1, 0, 0, 1]
    assert after.tolist() == [2, 1, 0, 0, 1, 0]


def test_sizes_that_do_not_fit(tmp_path):
    for field in ("chunk", "groups", "group"):
        with pytest.raises(InputError, match=f"Layout: {field} is 0; expected 1"):
            Layout(**{field: 0})
    with pytest.raises(InputError, match="window is 128; expected 1 to 127"):
        Blocks(corpora.build(tmp_path / "d"), LAYOUT, window=128)
    with pytest.raises(InputError, match="window is 0"):
        Blocks(corpora.build(tmp_path / "c"), LAYOUT, window=0)
