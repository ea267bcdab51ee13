import pytest
from sklearn.feature_extraction import text as sklearn_text

from jaxemb.data import stopwords
from jaxemb.data.corpus import readers


def test_the_list_is_of_function_words():
    """No outside list is the truth; most of ours is in one, and no content word is."""
    plain = {word for word in stopwords.ENGLISH if word.isalpha()}
    theirs = sklearn_text.ENGLISH_STOP_WORDS
    assert len(plain & theirs) / len(plain) > 0.9
    assert not plain & {"good", "bad", "film", "king", "france", "run", "new"}
    assert {"the", "not", "don't", "don’t", "it's", "'s", "n't"} <= stopwords.ENGLISH


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        ("The film is n't good , is it ?", "film good"),
        ("He 's seen it – twice ( 2 ) … don't", "seen twice 2"),
        ("@-@ _ ' ’ø well-made 9-11", "well-made 9-11"),
        ("THE END", "END"),
        ("", ""),
    ],
)
def test_content_words(tokens, kept):
    assert stopwords.content_words(tokens.split()) == tuple(kept.split())


def test_another_list_and_sentences_that_are_left_empty():
    assert stopwords.content_words(["the", "film"], {"film"}) == ("the",)
    sentences = readers.without_stop_words([["of", "it"], ("a", "b"), []])
    assert list(sentences) == list(sentences) == [["b"]]
