"""Rows on disk by the names of examples."""

import numpy as np
import pytest

from jaxemb.data import rows
from jaxemb.errors import InputError

NAMES = [f"n{i}" for i in range(7)]
WANTED = np.arange(21, dtype=np.float32).reshape(7, 3)


def cache(folder, compute=lambda places: WANTED[places], **changed):
    settings = {"dim": 3, "of": "a", "batch_size": 2, **changed}
    return rows.cache_by_id(folder, NAMES, compute, **settings)


def test_rows_are_found_by_name_in_any_order(tmp_path):
    found = cache(tmp_path)
    np.testing.assert_array_equal(found[["n5", "n0", "n5"]], WANTED[[5, 0, 5]])
    again = rows.RowsById.open(tmp_path)
    np.testing.assert_array_equal(again[NAMES], WANTED)
    with pytest.raises(InputError, match="no row of example 'n9'"):
        found[["n0", "n9"]]


def test_they_are_made_once_and_go_on_after_a_stop(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "_FLUSH_EVERY", 1)
    calls = []

    def stops(places):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(places.tolist())
        return WANTED[places]

    with pytest.raises(KeyboardInterrupt):
        cache(tmp_path, stops)
    with pytest.raises(InputError, match="not finished"):
        rows.RowsById.open(tmp_path)
    rest = []
    found = cache(tmp_path, lambda p: rest.extend(p.tolist()) or WANTED[p])
    assert sum(calls, []) + rest == list(range(7))
    np.testing.assert_array_equal(found[NAMES], WANTED)
    cache(tmp_path, lambda places: 1 / 0)  # nothing is left to do


def test_batches_may_have_an_order_of_their_own(tmp_path):
    batches = [np.array([6, 0]), np.array([1, 2, 3, 4, 5])]
    seen = []

    def compute(places):
        seen.append(places.tolist())
        return np.concatenate([WANTED[places], WANTED[:2]])  # what fills a batch up

    found = cache(tmp_path, compute, batches=batches)
    assert seen == [b.tolist() for b in batches]
    np.testing.assert_array_equal(found[NAMES], WANTED)
    with pytest.raises(InputError, match="leave an example out"):
        cache(tmp_path / "other", batches=batches[:1])


def test_other_rows_and_double_names_are_refused(tmp_path):
    cache(tmp_path)
    with pytest.raises(InputError, match="another of"):
        cache(tmp_path, of="b")
    with pytest.raises(InputError, match="named 'a'"):
        rows.cache_by_id(tmp_path / "x", ["a", "a"], lambda p: p, dim=1, of="")
    with pytest.raises(InputError, match="expected a folder"):
        rows.RowsById.open(tmp_path / "nowhere")
