"""n-grams of blocks, against fastText's own definition in gensim."""

import numpy as np
import pytest

from jaxemb.static.subwords import NGrams

WORDS = ("a", "the", "naïve", "ox")


def test_rows_are_the_hashes_that_gensim_finds():
    fasttext = pytest.importorskip("gensim.models.fasttext")
    ngrams = NGrams(WORDS, 3, 5, 40)
    words = np.array([[0, 1], [2, 2], [3, 0]])
    rows, owners = ngrams.lay_out(words, ngrams.most(words))
    wanted = [fasttext.ft_ngram_hashes(word, 3, 5, 40) for word in WORDS]
    for group, members in enumerate(words.tolist()):
        for place, word in enumerate(members):
            mine = rows[group][owners[group] == place]
            assert ngrams._used[mine].tolist() == list(wanted[word])
        filled = sum(len(wanted[w]) for w in members)
        filling = owners[group] == 2
        assert filling.sum() == rows.shape[1] - filled
        assert (rows[group][filling] == len(ngrams)).all()
    assert len(ngrams) == len({h for hashes in wanted for h in hashes})


def test_a_word_that_fills_up_has_no_ngrams():
    ngrams = NGrams(WORDS, 3, 5, 40)
    words = np.array([[1, len(WORDS)]])
    rows, owners = ngrams.lay_out(words, 8)
    assert not (owners == 1).any()
    assert ((owners == 0) == (rows < len(ngrams))).all()


def test_buckets_go_back_to_their_hashes():
    ngrams = NGrams(WORDS, 3, 5, 40)
    trained = np.arange(2.0 * len(ngrams), dtype=np.float32).reshape(-1, 2)
    table = ngrams.table(np.zeros((4, 2), np.float32), trained)
    assert table.buckets.shape == (40, 2)
    np.testing.assert_array_equal(table.buckets[ngrams._used], trained)
    assert not np.any(np.delete(table.buckets, ngrams._used, axis=0))
