"""An encoder's own tables of words, against loops."""

import numpy as np

from jaxemb.pretrained import Cutter, tables, token_table, type_averages
from tests.pretrained.test_features import encoder  # noqa: F401 (a fixture)


def test_a_words_input_is_the_mean_of_its_pieces(encoder):  # noqa: F811
    words = ("undoing", "it", "xyz", "undo")
    table = token_table(encoder, words)
    rows = np.asarray(encoder.params["pieces"]["embedding"])
    for word in words:
        [(pieces, _)] = Cutter.of(encoder).bare([[word]])
        wanted = np.mean([rows[p] for p in pieces], axis=0)
        np.testing.assert_allclose(table[word], wanted, rtol=1e-6)
    assert len(Cutter.of(encoder).bare([["undoing"]])[0][0]) == 3


def test_averages_are_over_all_places_of_a_word(monkeypatch):
    monkeypatch.setattr(tables, "_AT_ONCE", 7)
    rng = np.random.default_rng(0)
    tokens, rows = rng.integers(0, 4, 30), rng.normal(size=(30, 3)).astype(np.float16)
    found = type_averages(lambda places: rows[places], tokens, 5)
    for word in range(4):
        wanted = rows[tokens == word].astype(np.float64).mean(axis=0)
        np.testing.assert_allclose(found[word], wanted, rtol=1e-5)
    np.testing.assert_array_equal(found[4], 0)
