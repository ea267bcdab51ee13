"""Word tables as other libraries pack them: shared rows, quantised rows, token rows."""

import dataclasses
import gzip
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Sequence

import msgpack
import numpy as np
from tokenizers import Tokenizer

from jaxemb.data import files
from jaxemb.data.tensors import read_tensors
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class SharedRows:
    """A table in which many words share a row."""

    index: dict[str, int]
    """The row of each word."""
    matrix: np.ndarray
    """(rows, dim) float32."""

    def vectors(self, words: Sequence[str]) -> WordVectors:
        """An ordinary table of those of `words` that are known, a row each."""
        chosen = [word for word in dict.fromkeys(words) if word in self.index]
        rows = [self.index[word] for word in chosen]
        return WordVectors(tuple(chosen), self.matrix[rows], unique=True)


def read_spacy(
    vectors: files.Location, key2row: files.Location, strings: files.Location
) -> SharedRows:
    """Reads a spaCy pipeline's vectors: an array, rows by hash, and all its strings.

    A word's key is the 64-bit MurmurHash2 (variant A) of its UTF-8 bytes with seed 1.

    Args:
      vectors: `vocab/vectors`, a numpy file of float32.
      key2row: `vocab/key2row`, a msgpack map from hash to row.
      strings: `vocab/strings.json`.

    Raises:
      InputError: naming the file that is not what it should be.
    """
    with files.open_bytes(vectors) as stream:
        try:
            matrix = np.load(io.BytesIO(stream.read()), allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise InputError(f"{vectors}: not a numpy array ({error})") from error
    if matrix.ndim != 2 or matrix.dtype != np.float32:
        raise InputError(
            f"{vectors}: expected a float32 matrix, found {matrix.dtype} of shape "
            f"{matrix.shape}"
        )
    rows = _unpacked(key2row)
    if not isinstance(rows, dict) or not rows:
        raise InputError(f"{key2row}: expected a map from hashes to rows")
    with files.open_bytes(strings) as stream:
        try:
            words = json.loads(stream.read())
        except ValueError as error:
            raise InputError(f"{strings}: not JSON ({error})") from error
    if not isinstance(words, list) or not all(isinstance(w, str) for w in words):
        raise InputError(f"{strings}: expected a list of strings")
    keys = hash_strings(words).tolist()
    index = {w: rows[k] for w, k in zip(words, keys, strict=True) if k in rows}
    if not index:
        raise InputError(f"{strings}: holds no string of {key2row}")
    for word, row in index.items():
        if not isinstance(row, int) or not 0 <= row < len(matrix):
            raise InputError(f"{key2row}: row {row!r} of {word!r} is not in {vectors}")
    return SharedRows(index, matrix)


def hash_strings(strings: Sequence[str], seed: int = 1) -> np.ndarray:
    """The 64-bit MurmurHash2 (variant A) of UTF-8 strings, as uint64."""
    encoded = [string.encode() for string in strings]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    hashes = np.empty(len(encoded), np.uint64)
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        joined = b"".join(encoded[i] for i in chosen.tolist())
        block = np.frombuffer(joined, np.uint8).reshape(len(chosen), length)
        hashes[chosen] = _murmur(block, seed)
    return hashes


_MIX = np.uint64(0xC6A4A7935BD1E995)
_SHIFT = np.uint64(47)


def _murmur(block: np.ndarray, seed: int) -> np.ndarray:
    """Hashes of byte strings of one length, a row each; arithmetic is modulo 2^64."""
    count, length = block.shape
    with np.errstate(over="ignore"):
        hashes = np.full(count, np.uint64(seed) ^ (np.uint64(length) * _MIX))
        whole = length // 8 * 8
        words = np.ascontiguousarray(block[:, :whole]).view("<u8")
        for column in words.T:
            mixed = column * _MIX
            mixed ^= mixed >> _SHIFT
            hashes = (hashes ^ (mixed * _MIX)) * _MIX
        if whole < length:
            tail = np.zeros((count, 8), np.uint8)
            tail[:, : length - whole] = block[:, whole:]
            hashes = (hashes ^ tail.view("<u8")[:, 0]) * _MIX
        hashes ^= hashes >> _SHIFT
        hashes *= _MIX
        return hashes ^ (hashes >> _SHIFT)


def read_navec(path: files.Location) -> WordVectors:
    """Reads a Navec table, most frequent words first.

    A tar of `vocab.bin` (gzip: a count, the words' frequencies, the words a line each)
    and `pq.bin`: a row is stored as one of 256 codes for each of its parts (product
    quantisation) and comes out as the codes' vectors, joined. Navec's own order is
    alphabetical; its entries `<unk>` and `<pad>` are left out.

    Raises:
      InputError: where the archive is not such a table.
    """
    with files.open_bytes(path) as stream:
        content = stream.read()
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            vocab, rows = (
                archive.extractfile(name).read()  # type: ignore[union-attr]
                for name in ("vocab.bin", "pq.bin")
            )
        vocab = gzip.decompress(vocab)
        (count,) = struct.unpack_from("<I", vocab)
        frequency = np.frombuffer(vocab, "<u4", count, 4)
        words = vocab[4 + 4 * count :].decode().split("\n")[:count]
        total, dim, parts, codes = struct.unpack_from("<4I", rows)
        places = np.frombuffer(rows, np.uint8, total * parts, 16)
        book = np.frombuffer(rows, "<f4", dim * codes, 16 + total * parts)
        places = places.reshape(total, parts)
        book = book.reshape(parts, codes, dim // parts)
    except (
        *(tarfile.TarError, KeyError, OSError, EOFError, zlib.error),
        *(struct.error, ValueError, AttributeError),
    ) as error:
        raise InputError(f"{path}: not a Navec table ({error})") from error
    if total != count or len(words) != count:
        raise InputError(f"{path}: {len(words)} words for {total} rows")
    order = np.argsort(-frequency.astype(np.int64), kind="stable")
    order = [i for i in order.tolist() if words[i] not in ("<unk>", "<pad>")]
    matrix = book[np.arange(parts)[np.newaxis], places[order]].reshape(-1, dim)
    chosen = tuple(words[i] for i in order)
    return WordVectors(chosen, np.ascontiguousarray(matrix, np.float32))


def read_frequency_order(path: files.Location) -> list[str]:
    """Reads a wordfreq list: words, most frequent first.

    The file is a msgpack list: a header, then for each hundredth of a decade, falling,
    the words of that frequency.

    Raises:
      InputError: where it is not such a list.
    """
    listed = _unpacked(path)
    if (
        not isinstance(listed, list)
        or not listed
        or not isinstance(listed[0], dict)
        or listed[0].get("format") != "cB"
    ):
        raise InputError(f"{path}: not a wordfreq list")
    return [word for words in listed[1:] for word in words]


@dataclasses.dataclass(frozen=True, eq=False)
class TokenTable:
    """Rows of a tokeniser's pieces; a word is the mean of its pieces' rows."""

    matrix: np.ndarray  # (pieces, dim) float32
    tokenizer: Tokenizer

    def vectors(self, words: Sequence[str]) -> WordVectors:
        """A table of `words`; those without any piece are left out."""
        unique = tuple(dict.fromkeys(words))
        encoded = self.tokenizer.encode_batch(list(unique), add_special_tokens=False)
        known = [i for i, one in enumerate(encoded) if one.ids]
        rows = [self.matrix[encoded[i].ids].mean(axis=0) for i in known]
        matrix = np.array(rows, np.float32).reshape(-1, self.matrix.shape[1])
        return WordVectors(tuple(unique[i] for i in known), matrix, unique=True)


def read_token_table(
    weights: files.Location, tokenizer: files.Location, name: str = "embedding.weight"
) -> TokenTable:
    """Reads the embedding matrix of a model and its tokeniser.

    Args:
      weights: safetensors.
      tokenizer: the JSON of the `tokenizers` library.
      name: of the matrix.

    Raises:
      InputError: naming the file that is not what it should be.
    """
    tensors = read_tensors(weights)
    if name not in tensors:
        raise InputError(f"{weights}: no tensor {name!r} in {sorted(tensors)}")
    with files.open_bytes(tokenizer) as stream:
        text = stream.read()
    try:
        loaded = Tokenizer.from_str(text.decode())
    except Exception as error:  # the library raises a bare Exception
        raise InputError(f"{tokenizer}: not a tokeniser ({error})") from error
    loaded.no_padding()
    loaded.no_truncation()
    matrix = tensors[name].astype(np.float32)
    if matrix.ndim != 2 or len(matrix) < loaded.get_vocab_size():
        raise InputError(
            f"{weights}: {name} of shape {matrix.shape} for "
            f"{loaded.get_vocab_size()} pieces"
        )
    return TokenTable(matrix, loaded)


def _unpacked(path: files.Location):
    with files.open_bytes(path) as stream:
        content = stream.read()
    try:
        return msgpack.unpackb(content, strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise InputError(f"{path}: not msgpack ({error})") from error
