"""fastText's own binary models (`.bin`): dictionary, word rows and n-gram buckets."""

import os
import struct
from collections.abc import Sequence
from io import BufferedIOBase
from typing import NamedTuple

import numpy as np

from jaxemb.data.formats.subwords import Subwords
from jaxemb.data.formats.table import Request, Table, TableBuilder, decode_words
from jaxemb.errors import InputError

MAGIC = struct.pack("<i", 793712314)
_VERSION = 12
_ARGS = struct.Struct("<12id")  # dim ws epoch minCount neg wordNgrams loss model ...
_DICTIONARY = struct.Struct("<3iq")  # entries words labels tokens
_ENTRY_END = struct.Struct("<qb")  # count, 0 for a word or 1 for a label
_CHUNK = 8 << 20
_LONGEST_WORD = 1 << 12
_LONGEST_NGRAM = 64
_NEGATIVE_SAMPLING, _SKIP_GRAM, _SUPERVISED = 2, 2, 3


class _Header(NamedTuple):
    dim: int
    bucket: int
    minn: int
    maxn: int
    words: int
    labels: int
    pruned: int
    new: bool  # written by a version that signs its files


def read_fasttext(
    stream: BufferedIOBase,
    request: Request,
    *,
    mmap_path: str | os.PathLike | None = None,
) -> Table:
    """Reads a model's words, their composed vectors and, where it has them, subwords.

    Args:
      stream: the file, decompressed.
      request: the caller's wishes.
      mmap_path: the same file, to map the buckets from instead of reading them.
    """
    source = _Source(stream, request)
    header = _read_header(source, request)
    raw = _read_dictionary(source, header, request)
    for _ in range(max(header.pruned, 0)):
        source.take(8)
    if header.new and source.take(1) != b"\0":
        raise InputError(
            f"{request.name}: the model is quantised (.ftz), expected a .bin"
        )
    rows, dim = struct.unpack("<2q", source.take(16))
    if dim != header.dim or rows != header.words + header.bucket:
        raise InputError(
            f"{request.name}: byte {source.position}: expected {header.words} + "
            f"{header.bucket} rows of {header.dim} numbers, found {rows} of {dim}"
        )
    source.require(4 * rows * dim)

    builder = TableBuilder(request, dim, unit="record", expected=header.words)
    limit = header.words if request.limit is None else request.limit
    step = max(1, _CHUNK // (4 * dim))
    for start in range(0, header.words, step):
        stop = min(start + step, header.words)
        block = np.frombuffer(source.take(4 * dim * (stop - start)), "<f4")
        stop = max(start, min(stop, limit))
        numbers = range(start + 1, stop + 1)
        words, positions = decode_words(
            raw[start:stop], builder, request.encoding, numbers
        )
        chosen = block.reshape(-1, dim)[positions]
        builder.add(words, chosen, [numbers[p] for p in positions])
    table = builder.build()
    if not header.bucket or header.maxn <= 0:
        return table

    if mmap_path is None:
        buckets = source.array(header.bucket, dim)
        if not np.isfinite(buckets).all():
            raise InputError(f"{request.name}: an n-gram row holds NaN or infinity")
    else:
        shape = header.bucket, dim
        buckets = np.memmap(mmap_path, "<f4", "r", source.position, shape)
    subwords = Subwords(buckets, table.matrix, header.minn, header.maxn)
    matrix = subwords.compose(table.words)
    if not np.isfinite(matrix).all():
        raise InputError(f"{request.name}: a sum of n-gram rows is not finite")
    return table._replace(matrix=matrix, subwords=subwords)


def write_fasttext(
    stream: BufferedIOBase,
    words: Sequence[str],
    matrix: np.ndarray,
    subwords: Subwords | None,
) -> None:
    """Writes a skip-gram model whose output layer, unknown here, is zero."""
    count, dim = matrix.shape
    bucket, minn, maxn, own = 0, 0, 0, matrix
    if subwords is not None:
        bucket, minn, maxn = len(subwords.buckets), subwords.minn, subwords.maxn
        own = subwords.words
    stream.write(MAGIC + struct.pack("<i", _VERSION))
    head = dim, 5, 5, 1, 5, 1, _NEGATIVE_SAMPLING, _SKIP_GRAM, bucket, minn, maxn, 100
    stream.write(_ARGS.pack(*head, 1e-4))
    tokens = count * (count + 1) // 2
    stream.write(_DICTIONARY.pack(count, count, 0, tokens) + struct.pack("<q", -1))
    for place, word in enumerate(words):
        try:
            encoded = word.encode("utf-8")
        except UnicodeEncodeError:
            encoded = b"\0"
        if b"\0" in encoded or not encoded:
            raise InputError(f"the word {word!r} cannot be written to a fastText file")
        # Frequencies are not kept; falling ones hold readers to the words' order.
        stream.write(encoded + b"\0" + _ENTRY_END.pack(count - place, 0))
    stream.write(struct.pack("<?2q", False, count + bucket, dim))
    for part in [own] if subwords is None else [own, subwords.buckets]:
        for start in range(0, len(part), max(1, _CHUNK // (4 * dim))):
            rows = part[start : start + max(1, _CHUNK // (4 * dim))]
            stream.write(np.ascontiguousarray(rows, "<f4").data)
    stream.write(struct.pack("<?2q", False, count, dim))
    for _ in range(count):
        stream.write(bytes(4 * dim))


class _Source:
    """Takes bytes in order; a file too short for what it promises is an InputError."""

    def __init__(self, stream: BufferedIOBase, request: Request):
        self._stream, self._request = stream, request
        self._buffer, self._start = b"", 0
        self._read = 0  # bytes taken from the stream

    @property
    def position(self) -> int:
        return self._read - len(self._buffer) + self._start

    def require(self, count: int) -> None:
        size = self._request.size
        if size is not None and self.position + count > size:
            self._short()

    def take(self, count: int) -> bytes:
        while len(self._buffer) - self._start < count:
            if not self._more(count):
                self._short()
        start, self._start = self._start, self._start + count
        return self._buffer[start : start + count]

    def until_zero(self) -> bytes:
        while (end := self._buffer.find(b"\0", self._start)) < 0:
            if len(self._buffer) - self._start > _LONGEST_WORD or not self._more(1):
                self._short()
        start, self._start = self._start, end + 1
        return self._buffer[start:end]

    def array(self, count: int, dim: int) -> np.ndarray:
        """The next rows, in chunks: a lying size meets the end of the file first."""
        builder = np.empty((0, dim), np.float32)
        step = max(1, _CHUNK // (4 * dim))
        if self._request.size is not None:
            builder = np.empty((count, dim), np.float32)
        for start in range(0, count, step):
            stop = min(start + step, count)
            if len(builder) < stop:
                builder.resize((min(count, stop + stop // 8), dim), refcheck=False)
            block = np.frombuffer(self.take(4 * dim * (stop - start)), "<f4")
            builder[start:stop] = block.reshape(-1, dim)
        return builder

    def _more(self, count: int) -> bool:
        data = self._stream.read(max(1 << 16, min(count, _CHUNK)))
        self._read += len(data)
        self._buffer = self._buffer[self._start :] + data
        self._start = 0
        return bool(data)

    def _short(self):
        name, position = self._request.name, self.position
        raise InputError(
            f"{name}: byte {position}: the file ends before what its header promises, "
            "or is no fastText model"
        )


def _read_header(source: _Source, request: Request) -> _Header:
    start = source.take(8)
    new = start[:4] == MAGIC
    if new:
        version = struct.unpack("<i", start[4:])[0]
        if version > _VERSION:
            raise InputError(
                f"{request.name}: fastText file version {version}, expected at most "
                f"{_VERSION}"
            )
        args = _ARGS.unpack(source.take(_ARGS.size))
    else:  # the first versions began with dim and ws
        version = 0
        args = _ARGS.unpack(start + source.take(_ARGS.size - 8))
    dim, model, bucket, minn, maxn = args[0], args[7], *args[8:11]
    if version == 11 and model == _SUPERVISED:
        maxn = 0  # these did not use character n-grams
    entries, words, labels, _ = _DICTIONARY.unpack(source.take(_DICTIONARY.size))
    pruned = struct.unpack("<q", source.take(8))[0] if new else -1
    if (
        dim < 1
        or bucket < 0
        or words < 0
        or labels < 0
        or entries != words + labels
        or pruned > bucket
        or maxn > _LONGEST_NGRAM
    ):
        raise InputError(
            f"{request.name}: expected a fastText model, found impossible sizes "
            f"(dim {dim}, words {words}, labels {labels}, buckets {bucket}, longest "
            f"n-gram {maxn})"
        )
    source.require(10 * entries + 4 * dim * (words + (0 if pruned > 0 else bucket)))
    return _Header(dim, bucket, minn, maxn, words, labels, pruned, new)


def _read_dictionary(source: _Source, header: _Header, request: Request) -> list[bytes]:
    """The words; labels, which follow them, have no row here."""
    words = []
    for entry in range(header.words + header.labels):
        word = source.until_zero()
        _, kind = _ENTRY_END.unpack(source.take(_ENTRY_END.size))
        if kind != int(entry >= header.words):
            raise InputError(
                f"{request.name}: record {entry + 1}: expected "
                f"{header.words} words, then {header.labels} labels"
            )
        if not kind:
            words.append(word)
    return words
