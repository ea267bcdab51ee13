"""Changed texts: what stays, how often words change, and that seeds decide."""

import collections
import inspect
import re
import textwrap

import numpy as np
import pytest

from jaxemb.data import augment, tfidf
from jaxemb.data.lexical_tags import LexicalTagger
from jaxemb.errors import InputError

WORDS = {"N": ["dog", "cat", "bird"], "V": ["runs", "sleeps"], "D": ["the"]}
TAGS = {word: tag for tag, words in WORDS.items() for word in words}


def tag(words):
    return [TAGS[word] for word in words]


def text(length, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.choice(list(TAGS), size=length).tolist())


def vocabulary():
    return augment.WordsByTag.count([text(300, seed=5)], tag)


def test_the_example_of_the_docstring_runs():
    doc = inspect.getdoc(augment) or ""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", doc + "\n", re.M)
    names: dict = {}
    code = "\n".join(textwrap.dedent(block) for block in blocks)
    exec(compile(code, "docstring", "exec"), names)
    assert 2 < len(names["larger"]) == len(names["labels"]) <= 8
    for document, label in zip(names["larger"], names["labels"], strict=True):
        whole = sorted(len(s) for s in names["documents"][label])
        assert sorted(map(len, document)) == whole
    assert len(set(names["larger"])) == len(names["larger"])


def test_rates_and_tags_are_as_asked():
    words = text(20_000)
    found = augment.mask_or_swap(
        words, tag(words), vocabulary(), np.random.default_rng(1)
    )
    assert len(found) == len(words)
    hidden = np.array([w == augment.MASK for w in found])
    limit = 3 * np.sqrt(0.1 * 0.9 / len(words))
    assert abs(hidden.mean() - 0.1) < limit
    kept = [(a, b) for a, b in zip(words, found, strict=True) if b != augment.MASK]
    assert all(TAGS[a] == TAGS[b] for a, b in kept)
    # A word is drawn for itself as often as the corpus has it among its tag.
    corpus = collections.Counter(text(300, seed=5))
    of_tag = collections.Counter()
    for word, count in corpus.items():
        of_tag[TAGS[word]] += count
    other = [1 - corpus[w] / of_tag[TAGS[w]] for w in words]
    wanted, share = 0.1 * np.mean(other), np.mean([a != b for a, b in kept])
    assert abs(share * len(kept) / len(words) - wanted) < limit


def test_swapped_words_are_as_common_as_in_the_corpus():
    drawn = vocabulary()
    rng = np.random.default_rng(2)
    found = collections.Counter(drawn.draw("N", rng) for _ in range(6000))
    corpus = collections.Counter(w for w in text(300, seed=5) if TAGS[w] == "N")
    for word, count in corpus.items():
        wanted = count / corpus.total()
        limit = 4 * np.sqrt(wanted * (1 - wanted) / 6000)
        assert abs(found[word] / 6000 - wanted) < limit
    with pytest.raises(InputError, match="no word of tag 'X'"):
        drawn.draw("X", rng)


def test_masks_and_swaps_alone():
    words = text(50)
    hidden = augment.mask(words, np.random.default_rng(0), 0.5)
    assert {b for a, b in zip(words, hidden, strict=True) if a != b} == {augment.MASK}
    swapped = augment.pos_swap(
        words, tag(words), vocabulary(), np.random.default_rng(0), 1.0
    )
    assert tag(swapped) == tag(words)
    assert swapped != words
    with pytest.raises(InputError, match="1 or less"):
        augment.mask_or_swap(
            words, tag(words), vocabulary(), np.random.default_rng(0), mask_rate=1.1
        )


def test_shuffled_sentences_have_identical_tf_idf_features():
    sentences = tuple(text(6, seed) for seed in range(8))
    found = augment.shuffle_sentences(sentences, np.random.default_rng(3))
    assert found != sentences
    assert sorted(found) == sorted(sentences)
    flat = [[w for s in document for w in s] for document in (sentences, found)]
    weights = tfidf.Tfidf.learn(flat)
    (ids, values), (others, same) = (weights.transform([words]) for words in flat)
    np.testing.assert_array_equal(ids.values, others.values)
    np.testing.assert_array_equal(values.values, same.values)


def test_ngrams_are_stretches_of_every_length():
    words = tuple(map(str, range(9)))
    rng = np.random.default_rng(0)
    found = [augment.sample_ngram(words, rng) for _ in range(500)]
    assert {len(f) for f in found} == {1, 2, 3, 4, 5}
    assert all(f == words[int(f[0]) : int(f[0]) + len(f)] for f in found)
    assert {f[-1] for f in found} >= {"8"}
    assert augment.sample_ngram((), rng) == ()


def test_a_transfer_set_is_a_function_of_its_seed():
    documents = [tuple(text(8, 10 * d + s) for s in range(3)) for d in range(4)]
    first, again, other = (
        augment.transfer_set(documents, tag, factor=3, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again != other
    assert [(c.source, c.number) for c in first] == [
        (d, n) for d in range(4) for n in (1, 2)
    ]
    for copy in first:
        assert sorted(map(len, copy.sentences)) == [8, 8, 8]
        assert copy.sentences != documents[copy.source]
    assert augment.transfer_set(documents, tag, factor=1, seed=0) == []
    with pytest.raises(InputError, match="factor is 0"):
        augment.transfer_set(documents, tag, factor=0, seed=0)


def test_copies_that_say_nothing_new_are_dropped():
    single = [(("the",),)]  # of its tag there is no other word
    copies = augment.transfer_set(single, tag, factor=200, seed=0)
    assert copies == []  # either as it was, or hidden, of which nothing is left
    short = [(("dog", "runs"),), (("cat", "sleeps"),)]
    copies = augment.transfer_set(short, tag, factor=200, seed=0)
    each = [(c.source, c.sentences) for c in copies]
    assert len(set(each)) == len(each) < 2 * 20


def test_a_lexical_tagger_knows_words_endings_and_digits():
    sentences = [
        [("The", "D"), ("dogs", "N"), ("walk", "V")],
        [("a", "D"), ("walk", "N"), ("in", "P"), ("1987", "C")],
        [("the", "D"), ("walk", "N"), ("quickly", "A")],
    ]
    tagger = LexicalTagger.learn(sentences)
    assert tagger.tag(["WALK", "the", "slowly", "cats", "23rd"]) == list("NDANC")
    with pytest.raises(InputError, match="found none"):
        LexicalTagger.learn([])
