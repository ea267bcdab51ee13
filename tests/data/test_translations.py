"""Dictionaries in the formats of xling-eval, PanLex and MUSE."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import files
from jaxemb.data.translations import Translation, read_translations
from jaxemb.errors import InputError


def test_tabs_and_spaces(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("New York\tnew york\r\nara\tсега\n\nara\tсега\nara\tтози\n")
    pairs = read_translations(path)
    assert pairs == [("New York", "new york"), ("ara", "сега"), ("ara", "този")]
    assert read_translations(path, lower=True)[0] == Translation("new york", "new york")
    path.write_text("dog chien\ncat  chat\n")
    assert read_translations(path) == [("dog", "chien"), ("cat", "chat")]


@pytest.mark.parametrize("line", ["one", "one two three", "a\t", "a\tb\tc"])
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "a.txt"
    path.write_text(f"dog chien\n{line}\n")
    with pytest.raises(InputError, match="a.txt:2: expected a word and its transl"):
        read_translations(path)


def test_an_empty_file_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n")
    with pytest.raises(InputError, match="no pair of words"):
        read_translations(path)


@given(st.binary(max_size=60))
def test_random_bytes_raise_only_the_documented_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "a.txt"
    path.write_bytes(content)
    try:
        assert read_translations(path)
    except InputError:
        pass


@pytest.mark.data
def test_xling_and_panlex_dictionaries_are_whole():
    root = files.cache_dir() / "local"
    xling = root / "bli_xling" / "en-fr" / "yacle.test.freq.2k.en-fr.tsv"
    panlex = root / "bli_panlex" / "ca-bg" / "ca-bg.train.500.cc.trans"
    for path, size in ((xling, 2000), (panlex, 500)):
        if not path.exists():
            pytest.skip(f"needs {path}")
        assert abs(len(read_translations(path)) - size) <= 0.02 * size
