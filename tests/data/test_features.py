import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import features, sources
from jaxemb.errors import InputError


def test_a_row_a_word_and_zeros_elsewhere(tmp_path):
    path = tmp_path / "oracle"
    path.write_text('head\t{"body": 0.5, "state": 1}\n\ndog\t{"animal": 0.25}\nx\t{}\n')
    read = features.read_features(path)
    assert read.words == ("head", "dog", "x")
    assert read.names == ("body", "state", "animal")
    np.testing.assert_array_equal(read.matrix, [[0.5, 1, 0], [0, 0, 0.25], [0, 0, 0]])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "expected words with features, found none"),
        ("a\t{}\n", "expected words with features, found none"),
        ("a\n", ":1: expected a word, a tab and a JSON object"),
        ("a\t[1]\n", ":1: expected a word, a tab and a JSON object"),
        ('a\t{"x": 1\n', ":1: expected a word, a tab and a JSON object"),
        ('\t{"x": 1}\n', ":1: expected a word"),
        ('a\t{"x": "1"}\n', ":1: expected a number for 'x', found '1'"),
        ('a\t{"x": true}\n', ":1: expected a number for 'x', found True"),
        ('a\t{"x": 1}\nb\t{"x": NaN}\n', ":2: expected a number for 'x'"),
        ('a\t{"x": 1}\na\t{"x": 2}\n', ":2: the word 'a' occurs twice"),
    ],
)
def test_bad_files(tmp_path, content, problem):
    path = tmp_path / "bad"
    path.write_text(content)
    with pytest.raises(InputError, match=problem):
        features.read_features(path)


@given(st.binary() | st.text('a\t{}":1,\n').map(str.encode))
def test_random_bytes_raise_only_input_errors(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("features") / "random"
    path.write_bytes(content)
    try:
        assert features.read_features(path).matrix.size
    except InputError as error:
        assert str(path) in str(error)


@pytest.mark.data
def test_the_supersenses():
    found = sources.locate("qvec")
    if found is None:
        pytest.skip("needs qvec/semcor_noun_verb.supersenses.en")
    read = features.read_features(found.part("supersenses-en"))
    assert read.matrix.shape == (4199, 41)  # as published
    np.testing.assert_allclose(read.matrix.sum(axis=1), 1, atol=1e-9)
