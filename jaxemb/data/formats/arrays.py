"""npz and safetensors: the same named arrays, mappable into memory.

`matrix` holds the rows, `words` all words in UTF-8 one after the other, `word_lengths`
their bytes; with subwords also `buckets`, `word_rows` and `ngrams` (shortest, longest).
An npz may hold `words` as an array of strings instead.
"""

import itertools
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from io import BufferedIOBase
from typing import IO, cast

import numpy as np

from jaxemb.data.formats.subwords import Subwords
from jaxemb.data.formats.table import (
    ReadReport,
    Request,
    Table,
    TableBuilder,
    decode_words,
)
from jaxemb.errors import InputError

_NAMES = "matrix", "words", "word_lengths", "buckets", "word_rows", "ngrams"
_CHUNK = 8 << 20
_LARGEST_HEADER = 100 << 20
_ALIGNMENT = 64  # of each array in the file, so that a mapped one is aligned
_DTYPES = {
    "F16": "<f2",
    "BF16": "<u2",  # which numpy lacks: the upper half of a float32
    "F32": "<f4",
    "F64": "<f8",
    "U8": "|u1",
    "I32": "<i4",
}
_CODES = {np.dtype(dtype): code for code, dtype in _DTYPES.items()}
_NPY = re.compile(
    rb"\{'descr': '([<>|][fiuU]\d{1,6})', 'fortran_order': (False|True), "
    rb"'shape': \(([\d, ]*)\), \} *\n"
)

_MapPath = str | os.PathLike[str] | None


def read_safetensors(
    stream: BufferedIOBase, request: Request, *, mmap_path: _MapPath = None
) -> Table:
    """Reads the arrays named above; with `mmap_path`, maps them from that file."""
    head = stream.read(8)
    start = 8 + int.from_bytes(head, "little")
    if len(head) < 8 or start > _LARGEST_HEADER or not request.holds(1, start):
        raise InputError(f"{request.name}: expected a safetensors file")
    arrays: dict[str, np.ndarray] = {}
    place = start
    try:
        header = json.loads(stream.read(start - 8))
        header.pop("__metadata__", None)
        entries = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
        for name, entry in entries:
            begin, end = entry["data_offsets"]
            if start + begin != place or not request.holds(1, start + end):
                raise ValueError(f"the place of {name}")
            if name in _NAMES:
                shape, code = tuple(entry["shape"]), entry["dtype"]
                if code not in _DTYPES or (mmap_path and code == "BF16"):
                    raise InputError(
                        f"{request.name}: {name} is {code}, expected one of "
                        f"{', '.join(_DTYPES)}, or of F32 alone to be memory-mapped"
                    )
                dtype = np.dtype(_DTYPES[code])
                if min(shape) < 0 or math.prod(shape) * dtype.itemsize != end - begin:
                    raise ValueError(f"the shape of {name}")
                if mmap_path is None:
                    sure = request.size is not None
                    array = _read_array(stream, shape, dtype, sure)
                    arrays[name] = widened(array) if code == "BF16" else array
                else:
                    arrays[name] = _map_array(mmap_path, shape, dtype, place)
            elif mmap_path is None:
                for skipped in range(begin, end, _CHUNK):
                    stream.read(min(_CHUNK, end - skipped))
            place = start + end
    except InputError:
        raise
    except _DAMAGE as error:
        raise _damaged(request, "safetensors", error) from error
    return _table(arrays, request, mapped=mmap_path is not None)


def write_safetensors(
    stream: BufferedIOBase,
    words: Sequence[str],
    matrix: np.ndarray,
    subwords: Subwords | None,
) -> None:
    """Writes float arrays first: each then lies at a multiple of its item's size."""
    arrays = _arrays(words, matrix, subwords)
    header, place = {}, 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _CODES[array.dtype],
            "shape": array.shape,
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    stream.write(struct.pack("<Q", len(text)) + text)
    for array in arrays.values():
        _write_array(stream, array)


def read_npz(
    stream: BufferedIOBase, request: Request, *, mmap_path: _MapPath = None
) -> Table:
    """Reads the arrays named above; with `mmap_path`, maps them from that file.

    Pickled arrays are refused.
    """
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(cast(IO[bytes], stream)) as archive:
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                if name not in _NAMES:
                    continue
                stored = info.compress_type == zipfile.ZIP_STORED
                with archive.open(info) as opened:
                    member = cast(BufferedIOBase, opened)
                    shape, dtype, begin, transposed = _npy_header(member)
                    if math.prod(shape) * dtype.itemsize != info.file_size - begin:
                        raise ValueError(f"the size of {name}")
                    if mmap_path is None:
                        sure = stored and request.holds(1, info.file_size)
                        array = _read_array(member, shape, dtype, sure)
                    elif stored:
                        place = _data_start(mmap_path, info) + begin
                        array = _map_array(mmap_path, shape, dtype, place)
                    else:
                        raise InputError(
                            f"{request.name}: {name} is compressed and cannot be "
                            "memory-mapped; expected what numpy.savez writes"
                        )
                    arrays[name] = array.T if transposed else array
    except InputError:
        raise
    except _DAMAGE as error:
        raise _damaged(request, "npz", error) from error
    return _table(arrays, request, mapped=mmap_path is not None)


def write_npz(
    stream: BufferedIOBase,
    words: Sequence[str],
    matrix: np.ndarray,
    subwords: Subwords | None,
) -> None:
    """Writes uncompressed, each array aligned, as mapping into memory needs."""
    with zipfile.ZipFile(cast(IO[bytes], _Forward(stream)), "w") as archive:
        for name, array in _arrays(words, matrix, subwords).items():
            info = zipfile.ZipInfo(f"{name}.npy")
            large = array.nbytes > 1 << 30
            # A zip's extra field of an unassigned kind serves as padding.
            before = archive.start_dir + 30 + len(info.filename) + 4 + 20 * large
            padding = -before % _ALIGNMENT
            info.extra = struct.pack("<HH", 0xFFFF, padding) + bytes(padding)
            with archive.open(info, "w", force_zip64=large) as member:
                fields = np.lib.format.header_data_from_array_1_0(array)
                np.lib.format.write_array_header_1_0(member, fields)
                _write_array(cast(BufferedIOBase, member), array)


class _Forward:
    """Only writes: a compressed stream says it can seek back, then cannot."""

    def __init__(self, stream: BufferedIOBase):
        self.write, self.flush = stream.write, stream.flush


_DAMAGE = (
    *(ValueError, TypeError, KeyError, AttributeError, EOFError, OSError),
    *(OverflowError, RuntimeError, MemoryError, struct.error),
    *(zipfile.BadZipFile, zlib.error),
)


def _damaged(request: Request, kind: str, error: BaseException) -> InputError:
    problem = str(error) or type(error).__name__
    return InputError(f"{request.name}: not a {kind} file, or damaged ({problem})")


def _npy_header(member: BufferedIOBase) -> tuple[tuple[int, ...], np.dtype, int, bool]:
    """Shape, dtype, bytes before the data, and whether the order is Fortran's."""
    head = member.read(8)
    width = 2 if head[6:7] == b"\x01" else 4
    size = int.from_bytes(member.read(width), "little")
    found = _NPY.fullmatch(member.read(min(size, 1 << 16)))
    if head[:6] != b"\x93NUMPY" or found is None:
        raise ValueError("expected arrays of numbers or strings")
    shape = tuple(int(part) for part in found[3].split(b",") if part.strip())
    transposed = found[2] == b"True"
    shape = shape[::-1] if transposed else shape
    return shape, np.dtype(found[1].decode()), 8 + width + size, transposed


def _data_start(path: str | os.PathLike[str], info: zipfile.ZipInfo) -> int:
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        name_size, extra_size = struct.unpack("<26x2H", file.read(30))
    return info.header_offset + 30 + name_size + extra_size


def _map_array(path, shape: tuple[int, ...], dtype: np.dtype, place: int) -> np.ndarray:
    if not math.prod(shape):
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", place, shape)


def _read_array(
    stream: BufferedIOBase, shape: tuple[int, ...], dtype: np.dtype, sure: bool
) -> np.ndarray:
    """Reads in chunks; unless the size is sure, allocates only what has come."""
    total = math.prod(shape) * dtype.itemsize
    flat = np.empty(total if sure else 0, np.uint8)
    done = 0
    while done < total:
        data = stream.read(min(_CHUNK, total - done))
        if not data:
            raise EOFError("the file ends too early")
        stop = done + len(data)
        if stop > len(flat):
            flat.resize(min(total, stop + stop // 8), refcheck=False)
        flat[done:stop] = np.frombuffer(data, np.uint8)
        done = stop
    return flat.view(dtype).reshape(shape)


def _write_array(stream: BufferedIOBase, array: np.ndarray) -> None:
    step = max(1, _CHUNK * len(array) // max(1, array.nbytes))
    for start in range(0, len(array), step):
        stream.write(np.ascontiguousarray(array[start : start + step]).tobytes())


def _arrays(
    words: Sequence[str], matrix: np.ndarray, subwords: Subwords | None
) -> dict[str, np.ndarray]:
    try:
        encoded = [word.encode("utf-8") for word in words]
    except UnicodeEncodeError as error:
        raise InputError(
            f"the word {error.object!r} holds a lone surrogate, which UTF-8 lacks"
        ) from error
    arrays = {"matrix": matrix}
    if subwords is not None:
        arrays |= {"buckets": subwords.buckets, "word_rows": subwords.words}
    arrays = {name: array.astype("<f4", copy=False) for name, array in arrays.items()}
    if subwords is not None:
        arrays["ngrams"] = np.array([subwords.minn, subwords.maxn], "<i4")
    lengths = np.fromiter(map(len, encoded), "<i4", len(encoded))
    letters = np.frombuffer(b"".join(encoded), np.uint8)
    return arrays | {"word_lengths": lengths, "words": letters}


def _table(
    arrays: Mapping[str, np.ndarray], request: Request, *, mapped: bool
) -> Table:
    name = request.name
    missing = [key for key in ("matrix", "words") if key not in arrays]
    if missing:
        raise InputError(f"{name}: expected an array named {missing[0]!r}")
    matrix = arrays["matrix"]
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or not matrix.shape[1]:
        raise InputError(
            f"{name}: expected 'matrix' to be floats of two axes, found "
            f"{matrix.dtype} {matrix.shape}"
        )
    if mapped and matrix.dtype != np.float32:
        raise InputError(
            f"{name}: 'matrix' is {matrix.dtype}; only float32 can be memory-mapped"
        )
    limit = len(matrix) if request.limit is None else request.limit
    raw = _raw_words(arrays, name)
    if len(raw) != len(matrix):
        raise InputError(f"{name}: {len(raw)} words for {len(matrix)} rows")
    raw, matrix = raw[:limit], matrix[:limit]
    own = _subword_arrays(arrays, name)

    builder = TableBuilder(request, matrix.shape[1], unit="row", expected=len(raw))
    numbers = range(1, len(raw) + 1)
    words, positions = decode_words(raw, builder, "utf-8", numbers)
    whole = len(words) == len(raw) == len(set(words)) and request.keep is None
    if whole and matrix.dtype == np.float32 and (mapped or _finite(matrix)):
        table = Table(tuple(words), matrix, ReadReport())
    else:
        step = max(1, _CHUNK // (4 * matrix.shape[1]))
        for start in range(0, len(words), step):
            chosen = positions[start : start + step]
            with np.errstate(over="ignore"):
                rows = matrix[chosen].astype(np.float32)
            builder.add(words[start : start + step], rows, [p + 1 for p in chosen])
        table = builder.build()
    if own is None:
        return table
    buckets, word_rows, minn, maxn = own
    if len(table.words) != len(word_rows):
        first = dict(zip(words[::-1], positions[::-1], strict=True))
        word_rows = word_rows[[first[word] for word in table.words]]
    return table._replace(subwords=Subwords(buckets, word_rows, minn, maxn))


def widened(halves: np.ndarray) -> np.ndarray:
    """bfloat16, given as its bits, in float32."""
    bits = halves.astype("<u4")
    bits <<= 16
    return bits.view("<f4")


def _finite(matrix: np.ndarray) -> bool:
    step = max(1, _CHUNK // (4 * matrix.shape[1]))
    starts = range(0, len(matrix), step)
    return all(bool(np.isfinite(matrix[i : i + step]).all()) for i in starts)


def _raw_words(arrays: Mapping[str, np.ndarray], name: str) -> list[bytes]:
    words = arrays["words"]
    if words.ndim == 1 and words.dtype.kind == "U":
        try:
            return [word.encode("utf-8") for word in words.tolist()]
        except (UnicodeEncodeError, ValueError) as error:
            raise InputError(f"{name}: 'words' holds no valid text") from error
    lengths = arrays.get("word_lengths")
    if (
        lengths is None
        or words.dtype != np.uint8
        or words.ndim != 1
        or lengths.ndim != 1
        or lengths.dtype.kind != "i"
        or (lengths < 0).any()
        or int(lengths.sum(dtype=np.int64)) != len(words)
    ):
        raise InputError(f"{name}: 'words' and 'word_lengths' do not fit together")
    data, ends = words.tobytes(), np.cumsum(lengths, dtype=np.int64).tolist()
    return [data[start:end] for start, end in itertools.pairwise([0, *ends])]


def _subword_arrays(arrays: Mapping[str, np.ndarray], name: str):
    if "buckets" not in arrays:
        return None
    matrix, buckets = arrays["matrix"], arrays["buckets"]
    word_rows, ngrams = arrays.get("word_rows"), arrays.get("ngrams")
    if (
        word_rows is None
        or ngrams is None
        or word_rows.shape != matrix.shape
        or buckets.shape != (len(buckets), matrix.shape[1])
        or not len(buckets)
        or buckets.dtype != np.float32
        or word_rows.dtype != np.float32
        or ngrams.shape != (2,)
        or ngrams.dtype.kind != "i"
    ):
        raise InputError(
            f"{name}: 'buckets', 'word_rows' and 'ngrams' do not fit 'matrix'"
        )
    return buckets, word_rows, int(ngrams[0]), int(ngrams[1])
