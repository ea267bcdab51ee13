import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import lexicons
from jaxemb.errors import InputError


def test_reads_words_and_valence(tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text(":)\t2.0\t1.1\t[2, 2]\nbad\t-2.5\t0.6\t[-2]\n\nbad\t9\n")
    assert lexicons.read_valence(path) == {":)": 2.0, "bad": -2.5}


@pytest.mark.parametrize("line", ["word", "word\tx", "word\tnan", "word\t"])
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "lexicon.txt"
    path.write_text(f"good\t1\n{line}\n")
    with pytest.raises(InputError, match=r"lexicon.txt:2: expected a word, a tab"):
        lexicons.read_valence(path)


@given(st.binary(max_size=200))
def test_random_bytes_raise_only_the_documented_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "lexicon.txt"
    path.write_bytes(content)
    try:
        assert isinstance(lexicons.read_valence(path), dict)
    except InputError:
        pass


def test_word_lists_have_comments_and_no_word_twice(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("# a list\nthe a\n\nof\n")
    assert lexicons.read_word_list(path) == ("the", "a", "of")
    path.write_text("the a\nof the\n")
    with pytest.raises(InputError, match=r"words.txt:2: 'the' already stood in line 1"):
        lexicons.read_word_list(path)
    path.write_text("# nothing\n")
    with pytest.raises(InputError, match="expected words, found none"):
        lexicons.read_word_list(path)


def test_function_words_are_of_closed_classes():
    words = set(lexicons.english_function_words())
    # The fifteen most entropic words of the paper's Table 4 but for numerals and "s".
    assert words >= set(
        "and the in which to however for this of is a as only it".split()
    )
    assert not words & {"zero", "nine", "eight", "two", "s", "movie", "film", "good"}
    assert all(word == word.lower() for word in words)
