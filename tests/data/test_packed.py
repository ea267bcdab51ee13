"""Tables packed by other libraries, from small files made here and from real wheels."""

import gzip
import io
import json
import struct
import tarfile

import msgpack
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from jaxemb.data import packed
from jaxemb.errors import InputError

WORDS = ["", "a", "le", "été", "longueur", "longueurs", "Saint-Étienne", "🧡"]


def murmur_by_the_book(data: bytes, seed: int = 1) -> int:
    """Appleby's MurmurHash64A, in Python's integers."""
    m, r, mask = 0xC6A4A7935BD1E995, 47, (1 << 64) - 1
    h = seed ^ (len(data) * m & mask)
    for start in range(0, len(data) // 8 * 8, 8):
        k = int.from_bytes(data[start : start + 8], "little") * m & mask
        k ^= k >> r
        h = (h ^ (k * m & mask)) * m & mask
    rest = data[len(data) // 8 * 8 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h ^= h >> r
    h = h * m & mask
    return h ^ (h >> r)


@given(st.lists(st.text(max_size=40), min_size=1))
def test_hashes_are_those_of_the_book(strings):
    expected = [murmur_by_the_book(s.encode()) for s in strings]
    assert packed.hash_strings(strings).tolist() == expected


def spacy_files(folder, rows=None):
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = rows or {murmur_by_the_book(w.encode()): i % 4 for i, w in enumerate(WORDS)}
    np.save(folder / "vectors.npy", matrix)
    (folder / "key2row").write_bytes(msgpack.packb(rows))
    (folder / "strings.json").write_text(json.dumps([*WORDS, "unlisted"]))
    return folder / "vectors.npy", folder / "key2row", folder / "strings.json"


def test_spacy_words_share_rows(tmp_path):
    shared = packed.read_spacy(*spacy_files(tmp_path))
    assert shared.index == {word: i % 4 for i, word in enumerate(WORDS)}
    table = shared.vectors(["été", "absent", "longueur", "été", "🧡"])
    assert table.words == ("été", "longueur", "🧡")
    np.testing.assert_array_equal(table["🧡"], table["été"])


def test_damaged_spacy_files_are_named(tmp_path):
    places = spacy_files(tmp_path)
    for place, problem in zip(
        places, ("not a numpy array", "not msgpack", "not JSON"), strict=True
    ):
        whole = place.read_bytes()
        place.write_bytes(b"\xc1\xff{")
        with pytest.raises(InputError, match=f"{place.name}: {problem}"):
            packed.read_spacy(*places)
        place.write_bytes(whole)
    spacy_files(tmp_path, {murmur_by_the_book(b"a"): 9})
    with pytest.raises(InputError, match="row 9 of 'a' is not in"):
        packed.read_spacy(*places)
    spacy_files(tmp_path, {1: 1})
    with pytest.raises(InputError, match="holds no string of"):
        packed.read_spacy(*places)


def navec_file(path, words, frequency, places, book):
    parts, codes, width = book.shape
    vocab = struct.pack("<I", len(words)) + np.array(frequency, "<u4").tobytes()
    vocab = gzip.compress(vocab + "\n".join(words).encode())
    rows = struct.pack("<4I", len(places), parts * width, parts, codes)
    rows += places.astype(np.uint8).tobytes() + book.astype("<f4").tobytes()
    with tarfile.open(path, "w") as archive:
        for name, content in (("vocab.bin", vocab), ("pq.bin", rows)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def test_navec_rows_are_their_codes_joined(tmp_path):
    rng = np.random.default_rng(0)
    words = ["а", "бы", "и", "<unk>", "<pad>"]
    places = rng.integers(0, 6, size=(5, 4))
    book = rng.normal(size=(4, 6, 3)).astype(np.float32)
    path = tmp_path / "navec.tar"
    navec_file(path, words, [5, 2, 90, 0, 0], places, book)
    table = packed.read_navec(path)
    assert table.words == ("и", "а", "бы")
    for word in table.words:
        row = places[words.index(word)]
        expected = np.concatenate([book[part, code] for part, code in enumerate(row)])
        np.testing.assert_array_equal(table[word], expected)


def test_a_damaged_navec_table_is_named(tmp_path):
    path = tmp_path / "navec.tar"
    path.write_bytes(b"no tar")
    with pytest.raises(InputError, match="navec.tar: not a Navec table"):
        packed.read_navec(path)
    book = np.zeros((2, 3, 2), np.float32)
    navec_file(path, ["a", "b"], [1, 2], np.zeros((5, 2)), book)
    with pytest.raises(InputError, match="2 words for 5 rows"):
        packed.read_navec(path)


def test_frequency_order(tmp_path):
    path = tmp_path / "large_xx.msgpack.gz"
    listed = [{"format": "cB", "version": 1}, [], ["the"], [], ["of", "and"], ["cat"]]
    path.write_bytes(gzip.compress(msgpack.packb(listed)))
    assert packed.read_frequency_order(path) == ["the", "of", "and", "cat"]
    path.write_bytes(gzip.compress(msgpack.packb([1, 2])))
    with pytest.raises(InputError, match="not a wordfreq list"):
        packed.read_frequency_order(path)


def test_words_are_means_of_their_pieces(tmp_path):
    pieces = {"[UNK]": 0, "cat": 1, "##s": 2, "dog": 3}
    tokenizer = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=9)
    matrix = np.arange(8, dtype=np.float16).reshape(4, 2)
    weights, rules = tmp_path / "w.safetensors", tmp_path / "t.json"
    safetensors.numpy.save_file({"embedding.weight": matrix}, weights)
    rules.write_text(tokenizer.to_str())
    table = packed.read_token_table(weights, rules)
    found = table.vectors(["cats", "dog", "", "cats"])
    assert found.words == ("cats", "dog")
    np.testing.assert_array_equal(found["cats"], (matrix[1] + matrix[2]) / 2)
    with pytest.raises(InputError, match="no tensor 'x' in"):
        packed.read_token_table(weights, rules, "x")
    rules.write_text("{}")
    with pytest.raises(InputError, match="t.json: not a tokeniser"):
        packed.read_token_table(weights, rules)
    weights.write_bytes(b"none")
    with pytest.raises(InputError, match="w.safetensors: not a safetensors file"):
        packed.read_token_table(weights, rules)
