import collections
import fractions
import itertools
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import cooccurrence, corpus, sources
from jaxemb.data.corpus import readers
from jaxemb.errors import InputError

TEXTS = st.lists(
    st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=12),
    min_size=1,
    max_size=12,
)


def built(text, folder):
    return corpus.build(text, folder, min_count=1, progress=False)


def by_loops(corpus_, window, weighting, symmetric):
    """Every pair of places in a sentence, in exact fractions."""
    sums = collections.defaultdict(fractions.Fraction)
    for number in range(len(corpus_)):
        ids = corpus_.tokens[corpus_.starts[number] : corpus_.starts[number + 1]]
        for i, left in enumerate(ids.tolist()):
            for j in range(i + 1, min(i + window, len(ids) - 1) + 1):
                share = fractions.Fraction(1, j - i) if weighting == "harmonic" else 1
                right = int(ids[j])
                sums[left, right] += share
                if symmetric:
                    sums[right, left] += share
    return sums


@given(
    TEXTS,
    st.integers(1, 6) | st.integers(20, 30),
    st.sampled_from(["harmonic", "flat"]),
    st.booleans(),
    st.sampled_from([1 << 16, 1 << 30]),
    st.integers(1, 50),
)
def test_equals_loops(
    tmp_path_factory, text, window, weighting, symmetric, memory, pairs
):
    folder = tmp_path_factory.mktemp("cooccurrence")
    text.append(["a", "b"])
    words = built(text, folder / "corpus")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            cooccurrence, "_BLOCK_BYTES", pairs * cooccurrence._BYTES_A_PAIR * window
        )
        counted = cooccurrence.count(
            words,
            folder / "pairs",
            window=window,
            weighting=weighting,
            symmetric=symmetric,
            memory=memory,
            progress=False,
        )
    expected = by_loops(words, window, weighting, symmetric)
    places = list(zip(counted.rows.tolist(), counted.columns.tolist(), strict=True))
    assert places == sorted(expected) and len(counted) == len(expected)
    values = np.array([float(expected[place]) for place in places], np.float32)
    # Windows over 22 round each weight to a unit of 2**-32.
    exact = weighting == "flat" or window <= 22
    tolerance = {"rtol": 0} if exact else {"rtol": 1e-7}
    np.testing.assert_allclose(counted.values, values, atol=0, **tolerance)


def test_neither_memory_nor_blocks_change_a_bit(tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    text = [[f"w{i}" for i in generator.zipf(1.3, 30) % 300] for _ in range(300)]
    words = built(text, tmp_path / "corpus")
    monkeypatch.setattr(cooccurrence, "_FAN_IN", 3)  # so that runs have levels
    arrays, digests = [], set()
    for number, memory in enumerate([1 << 16, 1 << 18, 1 << 28]):
        counted = cooccurrence.count(
            words, tmp_path / f"{number}", memory=memory, progress=False
        )
        arrays.append([counted.rows, counted.columns, counted.values])
        assert counted.values.dtype == np.float32
        names = ["columns.npy", "cooccurrences.json", "rows.npy", "values.npy"]
        assert sorted(os.listdir(counted.folder)) == names
        digests.add(counted.sha256)
    assert len(digests) == 1
    wider = cooccurrence.count(words, tmp_path / "w", window=11, progress=False)
    assert wider.sha256 not in digests
    for other in arrays[1:]:
        for one, two in zip(arrays[0], other, strict=True):
            assert np.array_equal(one, two)


def test_symmetric_is_symmetric_and_one_side_is_half(tmp_path):
    text = [list("abcabcaab"), list("ddadc")]
    words = built(text, tmp_path / "corpus")
    both = cooccurrence.count(words, tmp_path / "both", window=4, progress=False)
    one = cooccurrence.count(
        words, tmp_path / "one", window=4, symmetric=False, progress=False
    )

    def dense(counted):
        matrix = np.zeros((counted.vocab, counted.vocab))
        matrix[counted.rows, counted.columns] = counted.values
        return matrix

    np.testing.assert_allclose(dense(both), dense(both).T)
    np.testing.assert_allclose(dense(one) + dense(one).T, dense(both), rtol=1e-6)
    first = cooccurrence.count(
        built([["x", "y"]], tmp_path / "xy"),
        tmp_path / "xy_pairs",
        symmetric=False,
        progress=False,
    )
    ids = corpus.open_corpus(tmp_path / "xy").index
    assert (first.rows.tolist(), first.columns.tolist()) == ([ids["x"]], [ids["y"]])


def test_held_out_sentences_do_not_count(tmp_path):
    text = [["a", "b"], ["a", "c"], ["b", "a"], ["c", "a"]]
    words = corpus.build(text, tmp_path / "c", min_count=1, held_out=2, progress=False)
    assert words.words == ("a", "b")
    counted = cooccurrence.count(words, tmp_path / "p", progress=False)
    assert counted.values.tolist() == [2, 2]


def test_opened_again(tmp_path):
    words = built([["a", "b", "a"]], tmp_path / "c")
    made = cooccurrence.count(
        words, tmp_path / "p", window=3, weighting="flat", progress=False
    )
    again = cooccurrence.open_cooccurrences(tmp_path / "p")
    settings = (again.vocab, again.window, again.weighting, again.symmetric)
    assert settings == (2, 3, "flat", True)
    assert isinstance(again.rows, np.memmap)
    assert again.values.tolist() == made.values.tolist() == [2, 2, 2]
    (tmp_path / "p" / "rows.npy").unlink()
    with pytest.raises(InputError, match=r"rows\.npy: no such file"):
        cooccurrence.open_cooccurrences(tmp_path / "p")
    np.save(tmp_path / "p" / "rows.npy", np.zeros(1, np.int32))
    with pytest.raises(InputError, match="are not of one length"):
        cooccurrence.open_cooccurrences(tmp_path / "p")
    with pytest.raises(InputError, match="no co-occurrences here"):
        cooccurrence.open_cooccurrences(tmp_path)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"window": 0}, "window is 0; expected 1 or more"),
        ({"memory": 10}, "memory is 10; expected 65536 bytes or more"),
        ({"window": 1 << 62}, "more pairs than 64 bits tell apart"),
    ],
)
def test_what_bad_settings_get(tmp_path, settings, problem):
    words = built([["a", "b"]], tmp_path / "c")
    with pytest.raises(InputError, match=problem):
        cooccurrence.count(words, tmp_path / "p", progress=False, **settings)
    assert os.listdir(tmp_path) == ["c"]


def test_nothing_to_count_and_no_new_folder(tmp_path):
    lonely = built([["a"], ["b"]], tmp_path / "c")
    with pytest.raises(InputError, match="no sentence has two known words"):
        cooccurrence.count(lonely, tmp_path / "p", progress=False)
    assert os.listdir(tmp_path) == ["c"]
    with pytest.raises(InputError, match="c: is there already"):
        cooccurrence.count(lonely, tmp_path / "c", progress=False)


def test_units_are_exact_up_to_22():
    for window in range(1, 23):
        scheme = cooccurrence.Scheme(10, window)
        shares = [fractions.Fraction(int(w), scheme.unit) for w in scheme.weights]
        assert shares == [fractions.Fraction(1, d) for d in range(1, window + 1)]
    wide = cooccurrence.Scheme(10, 40)
    np.testing.assert_allclose(
        wide.weights / wide.unit, 1 / np.arange(1, 41), rtol=1e-8
    )


@pytest.mark.data
def test_memory_is_bounded_on_brown(tmp_path):
    """What is allocated, as the files are mapped and their pages can go at any time."""
    found = sources.locate("brown")
    if found is None:
        pytest.skip(sources.missing("brown"))
    text = itertools.islice(readers.read_brown(found, lower=True), 10_000)
    words = corpus.build(text, tmp_path / "c", progress=False)
    peaks = []
    for name, memory in (("small", 1 << 22), ("large", 1 << 26)):
        tracemalloc.start()
        cooccurrence.count(words, tmp_path / name, memory=memory, progress=False)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert peaks[-1] < memory
    assert peaks[1] > 3 * peaks[0]  # what is given is used
    for name in ("rows", "columns", "values"):
        files = [tmp_path / size / f"{name}.npy" for size in ("small", "large")]
        assert files[0].read_bytes() == files[1].read_bytes()
