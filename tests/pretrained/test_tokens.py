"""Pieces of texts and of words, windows, and a real encoder of sentences."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from jaxemb import nn
from jaxemb.data import files, relatedness, sources
from jaxemb.errors import InputError
from jaxemb.pretrained import (
    Cutter,
    Pretrained,
    encode_texts,
    load_hf,
    padded,
    save_hf,
    windows,
)
from tests import encoders


@pytest.fixture
def cutter():
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##do", "##ing", "it", "is"]
    return Cutter.of(encoders.tiny(vocab, dim=4, layers=1, inner=4, positions=9))


def rows(ragged):
    return [
        ragged.values[a:b].tolist()
        for a, b in zip(ragged.offsets, ragged.offsets[1:], strict=False)
    ]


def test_words_know_their_pieces(cutter):
    pieces = cutter.sentences([["it", "undoing"], ["undo", "xyz", "is"]])
    assert rows(pieces.ids) == [[2, 7, 4, 5, 6, 3], [2, 4, 5, 1, 8, 3]]
    assert rows(pieces.words) == [[-1, 0, 1, 1, 1, -1], [-1, 0, 0, 1, 2, -1]]
    ids, mask = padded(pieces.ids, np.array([1, 0]), 7)
    assert ids.tolist() == [[2, 4, 5, 1, 8, 3, 0], [2, 7, 4, 5, 6, 3, 0]]
    assert mask.sum(axis=1).tolist() == [6, 6]


def test_pairs_have_segments(cutter):
    pieces = cutter.texts([("it is", "undo")])
    assert rows(pieces.ids) == [[2, 7, 8, 3, 4, 5, 3]]
    assert rows(pieces.segments) == [[0, 0, 0, 0, 1, 1, 1]]


def test_texts_that_are_too_long(cutter):
    long = "it is it is it is it is"
    [ids] = rows(cutter.texts([long]).ids)
    assert len(ids) == 9 and ids[-1] == 3
    with pytest.raises(InputError, match="text 1 has 10 pieces; the encoder takes 9"):
        cutter.texts(["it", long], cut=False)
    # Cutting one call leaves the next as it was.
    assert len(rows(cutter.texts(["it is"]).ids)[0]) == 4


def test_weights_without_a_tokenizer_are_named():
    config = nn.TextConfig(vocab=5)
    with pytest.raises(InputError, match="no tokenizer.json"):
        Cutter.of(Pretrained(config, "bert", {}))
    with pytest.raises(InputError, match="not a tokeniser"):
        Cutter.of(Pretrained(config, "bert", {}, b"{}"))


@given(st.integers(1, 200), st.integers(1, 40), st.integers(0, 39))
def test_windows_cover_every_place_once(length, size, overlap):
    if overlap >= size:
        with pytest.raises(InputError, match="overlap"):
            windows(length, size, overlap)
        return
    found = windows(length, size, overlap)
    counted = [p for w in found for p in range(w.first, w.last)]
    assert counted == list(range(length))
    for window in found:
        assert window.start <= window.first < window.last <= window.end
        assert window.end - window.start == min(size, length)
    # No window has a place for which a neighbour has more context on its worse side.
    for a, b in zip(found, found[1:], strict=False):
        margin = lambda w, p: min(p - w.start, w.end - 1 - p)
        for p in range(max(a.start, b.start), min(a.end, b.end)):
            taken, other = (a, b) if a.first <= p < a.last else (b, a)
            if taken.first <= p < taken.last:
                assert margin(taken, p) >= margin(other, p)


def here(name):
    found = sources.locate(name)
    if found is None:
        pytest.skip(f"needs {name}: jaxemb data get {name}")
    return found


@pytest.mark.data
@pytest.mark.slow
def test_minilm_knows_like_sentences():
    """Mean-pooled states on the STS benchmark; 0.82 is what these weights give."""
    found, rated = here("minilm"), here("sts-benchmark")
    bert = load_hf(files.resolve(found.part("weights")).parent)
    pairs = relatedness.read_sts(rated.part("test"))
    assert len(pairs) == 1379
    texts = [text for pair in pairs for text in (pair.first, pair.second)]
    rows = encode_texts(bert, texts, batch_size=64, buckets=3)
    cosines = np.sum(rows[::2] * rows[1::2], axis=1)
    scores = np.array([pair.score for pair in pairs])
    assert stats.spearmanr(cosines, scores).statistic >= 0.81


@pytest.mark.data
@pytest.mark.slow
def test_minilm_has_the_states_that_transformers_gives(tmp_path):
    torch = pytest.importorskip("torch", reason="the extra oracles holds torch")
    transformers = pytest.importorskip("transformers", reason="the extra oracles")
    weights = files.resolve(here("minilm").part("weights"))
    bert = load_hf(weights.parent)
    save_hf(tmp_path, bert)
    model = transformers.AutoModel.from_pretrained(tmp_path).eval()
    texts = ["A man is playing a guitar.", "Embeddings, unaffordable: 3.14!", "no"]
    pieces = Cutter.of(bert).texts(texts)
    ids, mask = padded(pieces.ids, np.arange(3), 16)
    encoded = bert.module().apply(
        {"params": bert.params}, jnp.asarray(ids), jnp.asarray(mask), deterministic=True
    )
    with torch.no_grad():
        theirs = model(
            input_ids=torch.tensor(ids, dtype=torch.int64),
            attention_mask=torch.tensor(mask.astype(np.int64)),
            output_hidden_states=True,
        )
    for ours, wanted in zip(encoded.states, theirs.hidden_states, strict=True):
        np.testing.assert_allclose(
            np.asarray(ours)[mask], wanted.numpy()[mask], atol=1e-4
        )


@pytest.mark.parametrize("in_a_sequence", [False, True])
def test_words_of_byte_level_pieces_are_not_glued(in_a_sequence):
    """As transformers cuts words that were split before, with a space before each."""
    transformers = pytest.importorskip("transformers", reason="the extra oracles")
    text = ["low lower lowest newer newest wide wider the a", "the low tower, a tow"]
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trained.train_from_iterator(
        text * 5,
        trainers.BpeTrainer(
            vocab_size=300, initial_alphabet=alphabet, show_progress=False
        ),
    )
    plan = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in plan["merges"]]
    theirs = transformers.GPT2TokenizerFast(
        vocab=plan["vocab"], merges=merges, add_prefix_space=True
    )
    if in_a_sequence:
        trained.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(), trained.pre_tokenizer]
        )
    cutter = Cutter(trained, 64)
    sentences = [["the", "lowest", "tower", ","], ["a", "wider", "low"], ["newest"]]
    for sentence, (ids, words) in zip(sentences, cutter.bare(sentences), strict=True):
        wanted = theirs(sentence, is_split_into_words=True)
        assert ids == wanted["input_ids"]
        assert words == wanted.word_ids()
        assert trained.decode(ids) == " " + " ".join(sentence)
    pieces = cutter.sentences(sentences)
    assert rows(pieces.ids) == [ids for ids, _ in cutter.bare(sentences)]
    # Texts as they are written begin without a space.
    assert trained.decode(cutter.bare(["the low"])[0][0]) == "the low"
    assert rows(cutter.texts(["the low"]).ids) == [trained.encode("the low").ids]
