import numpy as np
import pytest

from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import lookup

WORDS = ("Paris", "paris", "London", "ROME", "zero")


def table():
    rows = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    rows[4] = 0
    return WordVectors(WORDS, rows)


@pytest.mark.parametrize(
    ("case", "rows", "recased"),
    [
        ("exact", {"Paris": 0, "PARIS": -1, "london": -1, "rome": -1}, 0),
        ("lower", {"Paris": 1, "PARIS": 1, "london": -1, "rome": -1}, 2),
        ("fallback", {"Paris": 0, "PARIS": 1, "london": -1, "rome": -1}, 1),
        ("ignore", {"Paris": 0, "PARIS": 0, "london": 2, "rome": 3}, 3),
    ],
)
def test_words_find_their_rows(case, rows, recased):
    found = lookup.look_up(table(), rows, case)
    assert dict(zip(found.words, found.rows.tolist(), strict=True)) == rows
    assert found.recased == recased
    assert all(found.words[place] == word for word, place in found.places.items())


def test_zero_rows_and_rows_that_are_not_finite():
    found = lookup.look_up(table(), ["zero", "Paris", "absent"], "exact")
    assert found.words == ("Paris", "absent", "zero")
    assert found.usable.tolist() == [True, False, False]
    assert found.zero.tolist() == [False, False, True]
    bad = table()
    bad.matrix[0, 1] = np.nan
    with pytest.raises(InputError, match="the vector of 'Paris' is not finite"):
        lookup.look_up(bad, ["Paris"], "exact")
    assert lookup.look_up(bad, ["paris"], "exact").rows.tolist() == [1]


def test_first_rows():
    assert lookup.first_rows(table(), 2).words == ("Paris", "paris")
    assert len(lookup.first_rows(table(), 9)) == len(lookup.first_rows(table(), None))
    with pytest.raises(InputError, match="first_rows is 0; expected 1 or more"):
        lookup.first_rows(table(), 0)
