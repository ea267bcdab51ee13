"""Damaged and random files: a table or an InputError, soon, in little memory."""

import bz2
import gzip
import lzma
import tracemalloc
import zipfile

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from gensim.test.utils import datapath

from jaxemb.data.vectors import WordVectors, read_word_vectors, write_word_vectors
from jaxemb.errors import InputError

FORMATS = "word2vec", "glove", "word2vec-binary", "fasttext", "npz", "safetensors"
STARTS = [b"", b"2 2\n", b"9999999 9999999\n", b"\xba\x16O/\x0c\0\0\0", b"PK\x03\x04"]
MEMORY = 32 << 20


class Contents(dict):
    def __repr__(self):  # not kilobytes in a failure's report
        return "Contents"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def whole(folder):
    """A good file of each format."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(4, 2)).astype(np.float32)
    small = WordVectors(("a", "bé", "c", "dd"), matrix)
    toy = read_word_vectors(datapath("toy-model.bin")).subset(["the", "of", "and"])
    contents = {}
    for format in FORMATS:
        table = small if format in FORMATS[:3] else toy
        write_word_vectors(folder / "good", table, format=format)
        contents[format] = (folder / "good").read_bytes()
    return Contents(contents)


def attempt(path, content, **options):
    path.write_bytes(content)
    tracemalloc.start()
    try:
        table = read_word_vectors(path, **options)
        assert table.matrix.shape == (len(table.words), table.dim)
        assert np.isfinite(table.matrix).all() or options.get("mmap")
    except InputError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MEMORY


@st.composite
def damaged(draw, content):
    """A good file with bytes changed, cut, repeated or put in."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        end = min(len(data), place + draw(st.sampled_from([0, 1, 2, 4, 8, 64])))
        new = draw(
            st.binary(max_size=8)
            | st.sampled_from([b"\xff" * 4, b"\x7f" * 4, b"\0" * 8, b"9" * 9, b"\n"])
        )
        action = draw(st.sampled_from(["overwrite", "insert", "cut", "truncate"]))
        if action == "overwrite":
            data[place : place + len(new)] = new
        elif action == "insert":
            data[place:place] = new
        elif action == "cut":
            del data[place:end]
        else:
            del data[place:]
    return bytes(data)


@pytest.mark.parametrize("format", FORMATS)
@hypothesis.settings(max_examples=100)
@hypothesis.given(data=st.data(), on_bad=st.sampled_from(["error", "skip"]))
def test_a_damaged_file_is_refused_or_read(folder, whole, format, data, on_bad):
    content = data.draw(damaged(whole[format]))
    keep = data.draw(st.sampled_from([None, None, {"a", "the"}]))
    mmap = format in FORMATS[3:] and data.draw(st.booleans())
    options = {"on_bad": on_bad, "keep": keep, "mmap": mmap}
    attempt(folder / "damaged", content, format=format, **options)


@hypothesis.settings(max_examples=200)
@hypothesis.given(
    content=st.tuples(st.sampled_from(STARTS), st.binary(max_size=300)).map(b"".join),
    suffix=st.sampled_from(
        ["", ".txt", ".vec", ".bin", ".ftz", ".npz", ".safetensors"]
    ),
    packing=st.sampled_from(["", "", "", ".gz", ".bz2", ".xz"]),
    format=st.sampled_from([None, None, None, *FORMATS]),
    on_bad=st.sampled_from(["error", "skip"]),
)
def test_random_bytes_are_refused_or_read(
    folder, content, suffix, packing, format, on_bad
):
    path = folder / f"random{suffix}{packing}"
    attempt(path, content, format=format, on_bad=on_bad)


@pytest.mark.parametrize("format", FORMATS)
@hypothesis.settings(max_examples=30)
@hypothesis.given(data=st.data(), pack=st.sampled_from(["gz", "bz2", "xz", "zip"]))
def test_damage_in_and_around_compression(folder, whole, format, data, pack):
    # Without a size to check against, a lying header meets the end of the file.
    content = whole[format]
    inside = data.draw(st.booleans())
    if inside:
        content = data.draw(damaged(content))
    name = f"packed.{pack}"
    if pack == "zip":
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("v", content)
        content = (folder / name).read_bytes()
    else:
        content = {"gz": gzip, "bz2": bz2, "xz": lzma}[pack].compress(content)
    if not inside:
        content = data.draw(damaged(content))
    attempt(folder / name, content, format=format)


@pytest.mark.parametrize("format", FORMATS)
def test_every_truncation(folder, whole, format):
    content = whole[format]
    step = max(1, len(content) // 200)
    for size in range(0, len(content), step):
        attempt(folder / "short", content[:size], format=format)
