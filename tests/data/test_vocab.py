import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import vocab
from jaxemb.data.vocab import PAD, UNK, Vocab
from jaxemb.errors import InputError

TEXTS = st.lists(st.lists(st.sampled_from("a b c d e f".split())))


@given(TEXTS, st.integers(1, 4))
def test_words_come_by_count_then_alphabet(texts, min_count):
    counts = collections.Counter(word for text in texts for word in text)
    vocab = Vocab.build(texts, min_count=min_count)
    assert vocab.words[:2] == (PAD, UNK)
    kept = vocab.words[2:]
    assert set(kept) == {word for word, n in counts.items() if n >= min_count}
    assert list(kept) == sorted(
        sorted(kept), key=lambda word: counts[word], reverse=True
    )


@given(TEXTS, st.lists(st.sampled_from("a b z".split())))
def test_encode_and_decode(texts, tokens):
    vocab = Vocab.build(texts)
    ids = vocab.encode(tokens)
    assert ids.dtype == np.int32 and ids.shape == (len(tokens),)
    expected = tuple(token if token in vocab else UNK for token in tokens)
    assert vocab.decode(ids) == expected
    assert vocab.decode(np.concatenate([ids, np.zeros(3, np.int32)])) == expected


def test_special_words_in_a_text_are_not_counted():
    vocab = Vocab.build([[PAD, UNK, "a", PAD]])
    assert vocab.words == (PAD, UNK, "a")
    assert list(vocab.encode([PAD, UNK, "a"])) == [0, 1, 2]


def test_max_size_counts_the_special_words():
    vocab = Vocab.build([["a", "b", "b", "c"]], max_size=3)
    assert vocab.words == (PAD, UNK, "b") and len(vocab) == 3
    with pytest.raises(InputError, match="max_size is 1"):
        Vocab.build([], max_size=1)


def test_write_and_read(tmp_path):
    vocab = Vocab.build([["naïve", "a b", "x\x85y", "\u2028"]])
    vocab.write(tmp_path / "words.txt")
    assert Vocab.read(tmp_path / "words.txt") == vocab


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("a", "b"), "begins with"), ((PAD, UNK, "a", "a"), "'a' is in the vocabulary")],
)
def test_bad_words(words, problem):
    with pytest.raises(InputError, match=problem):
        Vocab(words)


def test_a_bad_file_is_named(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("a\nb\n")
    with pytest.raises(InputError, match=r"words\.txt: a vocabulary begins with"):
        Vocab.read(path)


def test_a_vocabulary_is_a_collection_of_its_words():
    vocab = Vocab((PAD, UNK, "a"))
    assert list(vocab) == [PAD, UNK, "a"] and "a" in vocab


@pytest.mark.parametrize("wrong", [-1, 3])
def test_ids_that_no_word_has(wrong):
    with pytest.raises(InputError, match=f"expected ids of 0 to 2, found {wrong}"):
        Vocab((PAD, UNK, "a")).decode([2, wrong])


@pytest.mark.parametrize("word", ["a\nb", "a\r"])
def test_words_that_do_not_fit_on_a_line(tmp_path, word):
    with pytest.raises(InputError, match="does not fit"):
        Vocab((PAD, UNK, word)).write(tmp_path / "words.txt")
    assert not list(tmp_path.iterdir())


def test_counts_as_gloves_program_writes_them(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("the 7\n\nof\t3\n")
    assert vocab.read_counts(path) == {"the": 7, "of": 3}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("the 7\nof\n", "counts:2: expected a word and how often it occurs"),
        ("the 7 8\n", "counts:1: expected a word and how often"),
        ("the ²\n", "counts:1: expected a word and how often"),
        ("the -1\n", "counts:1: expected a word and how often"),
        ("a 1\na 2\n", "counts:2: 'a' comes twice"),
        ("\n", "counts: expected words and their counts, found none"),
    ],
)
def test_bad_counts(tmp_path, content, problem):
    path = tmp_path / "counts"
    path.write_text(content)
    with pytest.raises(InputError, match=problem):
        vocab.read_counts(path)
