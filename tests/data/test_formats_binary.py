import json
import struct

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from gensim.models.fasttext_inner import compute_ngrams_bytes, ft_hash_bytes
from gensim.test.utils import datapath
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data.formats import word2vec_binary
from jaxemb.data.formats.subwords import ngram_hashes
from jaxemb.data.vectors import WordVectors, read_word_vectors, write_word_vectors
from jaxemb.errors import InputError


def record(word, *values, end=b""):
    return word + b" " + np.array(values, "<f4").tobytes() + end


A, B = record(b"a", 1, 2), record(b"b", 3, 4)


def read(tmp_path, content, name="v.bin", **options):
    path = tmp_path / name
    path.write_bytes(content)
    return read_word_vectors(path, **options)


@pytest.mark.parametrize("size", [1, 10, 1 << 20])
@pytest.mark.parametrize(
    "content",
    [
        b"2 2\n" + A + B,
        b"2 2\n" + A + b"\n" + B + b"\n",
        b"2 2\r\n" + A + B + b"\n",
        b"3 2\n" + A + B + A,
    ],
)
def test_layouts_of_word2vec_binary(tmp_path, monkeypatch, content, size):
    monkeypatch.setattr(word2vec_binary, "_BLOCK", size)
    table = read(tmp_path, content, format="word2vec-binary")
    assert table.words == ("a", "b")
    np.testing.assert_array_equal(table.matrix, [[1, 2], [3, 4]])
    assert table.report.duplicates == content.startswith(b"3")


@pytest.mark.parametrize(
    ("content", "problem", "kept"),
    [
        (b"", "the file is empty", None),
        (b"hello\n", "v.bin:1: expected a header", None),
        (b"2 0\n" + A, "v.bin:1: expected a header", None),
        (b"2 2\n" + A + B[:-1], "the header promises 2 vectors|record 2", ["a"]),
        (b"3 2\n" + A + B, "promises 3 vectors of 2 numbers, more than", ["a", "b"]),
        (b"9999999999 300\n" + A, "promises 9999999999 vectors", []),
        (b"1 999999999\n" + A, "promises 1 vectors of 999999999 numbers", []),
        (b"1 2\n" + A + B, "promises 1 vectors, but more bytes follow", ["a"]),
        (b"2 2\n" + record(b"\xff", 1, 2) + B, "record 1: .*not valid utf-8", ["b"]),
        (b"2 2\n" + A + record(b"b", 1, np.nan), "record 2: .*NaN", ["a"]),
        (b"2 2\n" + record(b"a", np.inf, 1) + B, "record 1: .*NaN", ["b"]),
        (b"1 2\n" + b"x" * 70_000 + A, "record 1: .*damaged", []),
    ],
)
def test_bad_word2vec_binary(tmp_path, content, problem, kept):
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, content, format="word2vec-binary")
    assert "v.bin" in str(caught.value)
    if kept is not None:
        table = read(tmp_path, content, format="word2vec-binary", on_bad="skip")
        assert list(table.words) == kept
        assert table.report.skipped >= 1
        assert problem.startswith("the") or str(caught.value) in table.report.problems


@pytest.mark.parametrize("word", ["", "a b", "\na", "\ud800"])
def test_words_that_word2vec_binary_cannot_hold(tmp_path, word):
    table = WordVectors((word,), np.ones((1, 2), np.float32))
    with pytest.raises(InputError, match="cannot be written to word2vec binary"):
        write_word_vectors(tmp_path / "v.bin", table)


def toy():
    with open(datapath("toy-model.bin"), "rb") as file:
        return bytearray(file.read())


def test_bad_fasttext_models(tmp_path):
    good = toy()
    names = len(good) - good[::-1].index(b"\0what"[::-1])  # the last words
    assert len(read(tmp_path, good)) == 22
    bad = {
        "version 13": (4, struct.pack("<i", 13)),
        "impossible sizes": (8, struct.pack("<i", -1)),
        "byte .* ends before": (8, struct.pack("<i", 1 << 28)),
        "longest n-gram 1000": (8 + 40, struct.pack("<i", 1000)),
    }
    for problem, (place, value) in bad.items():
        content = good.copy()
        content[place : place + len(value)] = value
        with pytest.raises(InputError, match=f"v.bin: .*{problem}"):
            read(tmp_path, content)
    for size in range(names):
        with pytest.raises(InputError):
            read(tmp_path, good[:size])


def test_a_quantised_model_says_so(tmp_path):
    good = toy()
    flag = good.index(struct.pack("<?2q", False, 22 + 100, 5))
    good[flag] = 1
    with pytest.raises(InputError, match="quantised"):
        read(tmp_path, good, "v.ftz")


def test_nan_in_a_fasttext_model(tmp_path):
    good = toy()
    start = good.index(struct.pack("<?2q", False, 22 + 100, 5)) + 17
    nan = np.float32("nan").tobytes()
    good[start + 20 : start + 24] = nan
    with pytest.raises(InputError, match="record 2: a number is NaN"):
        read(tmp_path, good)
    assert len(read(tmp_path, good, on_bad="skip")) == 21
    bucket = toy()
    bucket[start + 20 * 22 : start + 20 * 22 + 4] = nan
    with pytest.raises(InputError, match="n-gram row"):
        read(tmp_path, bucket)


@given(st.lists(st.text(max_size=12), max_size=6), st.integers(0, 4), st.integers(0, 7))
def test_ngram_hashes_are_fasttexts(words, minn, maxn):
    words = [word.encode("utf-8", "ignore").decode() for word in words]
    hashes, counts = ngram_hashes(words, minn, maxn)
    expected = [
        [ft_hash_bytes(ngram) for ngram in compute_ngrams_bytes(word, minn, maxn)]
        for word in words
    ]
    assert counts.tolist() == [len(part) for part in expected]
    assert hashes.tolist() == sum(expected, [])


def test_long_words_hash_in_little_memory():
    table = read_word_vectors(datapath("toy-model.bin"))
    assert np.isfinite(table.lookup(["é" * 50_000], oov="subword")).all()


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_other_libraries_read_what_is_written(tmp_path, suffix):
    table = read_word_vectors(datapath("toy-model.bin"))
    path = tmp_path / f"v.{suffix}"
    write_word_vectors(path, table)
    if suffix == "npz":
        with np.load(path) as loaded:
            arrays = dict(loaded)
    else:
        arrays = safetensors.numpy.load_file(path)
    np.testing.assert_array_equal(arrays["matrix"], table.matrix)
    np.testing.assert_array_equal(arrays["buckets"], table.subwords.buckets)
    assert arrays["words"].tobytes().decode() == "".join(table.words)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npz_of_other_makers(tmp_path, dtype, order):
    matrix = np.array([[1, 2, 3], [4, 5, 6]], dtype, order=order)
    extra = np.array(["not", "read"], object)
    np.savez(tmp_path / "v.npz", words=["a", "bé"], matrix=matrix, other=extra)
    table = read_word_vectors(tmp_path / "v.npz")
    assert table.words == ("a", "bé")
    np.testing.assert_array_equal(table.matrix, [[1, 2, 3], [4, 5, 6]])
    assert table.matrix.dtype == np.float32


def test_safetensors_of_other_makers(tmp_path):
    words = ["a", "bé", "c"]
    arrays = {
        "matrix": np.arange(6, dtype=np.float16).reshape(3, 2),
        "words": np.frombuffer("".join(words).encode(), np.uint8),
        "word_lengths": np.array([1, 3, 1], np.int32),
        "other": np.ones((2, 2), np.int64),
    }
    path = tmp_path / "v.safetensors"
    safetensors.numpy.save_file(arrays, path, metadata={"by": "hand"})
    table = read_word_vectors(path)
    assert table.words == tuple(words)
    np.testing.assert_array_equal(table.matrix, arrays["matrix"])


def test_a_large_tensor_of_another_name_is_skipped(tmp_path):
    path = tmp_path / "v.safetensors"
    # By hand, as save_file would put the matrix first.
    parts = {"first": np.ones(10_000_001, np.uint8), **good_arrays()}
    entries, place = {}, 0
    for name, array in parts.items():
        dtype = {"u": "U8", "f": "F32", "i": "I32"}[array.dtype.kind]
        offsets = [place, place + array.nbytes]
        entries[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": offsets}
        place += array.nbytes
    text = json.dumps(entries).encode()
    body = b"".join(array.tobytes() for array in parts.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    assert set(safetensors.numpy.load_file(path)) == set(parts)
    table = read_word_vectors(path)
    assert table.words == ("a", "b") and (table.matrix == 1).all()


def test_bfloat16_is_widened_and_other_kinds_are_named(tmp_path):
    path = tmp_path / "v.safetensors"
    values = np.array([[1, -2.5, 3e38], [0, 1e-3, 7]], np.float32)
    matrix = values.astype(ml_dtypes.bfloat16)
    safetensors.numpy.save_file(good_arrays() | {"matrix": matrix}, path)
    assert b'"BF16"' in path.read_bytes()
    table = read_word_vectors(path)
    assert table.matrix.dtype == np.float32
    np.testing.assert_array_equal(table.matrix, matrix.astype(np.float32))
    with pytest.raises(InputError, match="matrix is BF16, expected .* memory-mapped"):
        read_word_vectors(path, mmap=True)
    lengths = good_arrays()["word_lengths"].astype(np.int64)
    safetensors.numpy.save_file(good_arrays() | {"word_lengths": lengths}, path)
    with pytest.raises(InputError, match="word_lengths is I64, expected one of F16"):
        read_word_vectors(path)


def good_arrays():
    return {
        "matrix": np.ones((2, 3), np.float32),
        "words": np.frombuffer(b"ab", np.uint8),
        "word_lengths": np.array([1, 1], np.int32),
    }


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"matrix": None}, "array named 'matrix'"),
        ({"words": None}, "array named 'words'"),
        ({"word_lengths": None}, "do not fit together"),
        ({"word_lengths": np.array([2, 1], np.int32)}, "do not fit together"),
        ({"word_lengths": np.array([3, -1], np.int32)}, "do not fit together"),
        ({"word_lengths": np.array([2], np.int32)}, "1 words for 2 rows"),
        ({"matrix": np.ones(3, np.float32)}, "floats of two axes"),
        ({"matrix": np.ones((2, 3), np.int32)}, "floats of two axes"),
        ({"matrix": np.ones((2, 0), np.float32)}, "floats of two axes"),
        ({"matrix": np.array([[1], [np.nan]], np.float32)}, "row 2: .*NaN"),
        ({"words": np.frombuffer(b"\xffb", np.uint8)}, "row 1: .*not valid utf-8"),
        ({"buckets": np.ones((1, 2), np.float32)}, "do not fit 'matrix'"),
    ],
)
@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_arrays_that_make_no_table(tmp_path, change, problem, suffix):
    arrays = good_arrays() | change
    arrays = {name: array for name, array in arrays.items() if array is not None}
    path = tmp_path / f"v.{suffix}"
    if suffix == "npz":
        np.savez(path, **arrays)
    else:
        safetensors.numpy.save_file(arrays, path)
    with pytest.raises(InputError, match=problem):
        read_word_vectors(path)
    if "row" in problem and "words for" not in problem:
        table = read_word_vectors(path, on_bad="skip")
        assert (len(table), table.report.skipped) == (1, 1)


def test_pickles_are_refused(tmp_path):
    words = np.array(["a"], object)
    np.savez(tmp_path / "v.npz", words=words, matrix=np.ones((1, 2), np.float32))
    with pytest.raises(InputError, match="expected arrays of numbers or strings"):
        read_word_vectors(tmp_path / "v.npz")


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_duplicate_words_in_arrays(tmp_path, suffix):
    arrays = good_arrays() | {"words": np.frombuffer(b"aa", np.uint8)}
    path = tmp_path / f"v.{suffix}"
    if suffix == "npz":
        np.savez(path, **arrays)
    else:
        safetensors.numpy.save_file(arrays, path)
    table = read_word_vectors(path)
    assert (table.words, table.report.duplicates) == (("a",), 1)
