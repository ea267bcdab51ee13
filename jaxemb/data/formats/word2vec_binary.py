"""word2vec's binary tables: a text header, then words each followed by raw float32."""

from collections.abc import Sequence
from io import BufferedIOBase

import numpy as np

from jaxemb.data.formats.table import (
    Request,
    Table,
    TableBuilder,
    decode_words,
    parse_header,
)
from jaxemb.errors import InputError

_BLOCK = 1 << 19
_LARGEST_BLOCK = 16 << 20
_LONGEST_WORD = 1 << 16


def read_word2vec_binary(stream: BufferedIOBase, request: Request) -> Table:
    """Reads `count dim`, then `count` times a word, a space and `dim` floats.

    The newline that word2vec's own tool puts between records may be there or not.
    """
    head = stream.readline(64)
    header = parse_header(head.removesuffix(b"\n"))
    if not head:
        raise InputError(f"{request.name}: the file is empty")
    if not header or not header[1]:
        problem = "expected a header: the number of words and the dimension"
        raise InputError.at(request.name, 1, problem)
    promised, dim = header
    fits = request.holds(promised, 4 * dim + 1)
    builder = TableBuilder(
        request, dim, unit="record", expected=promised if fits else 0
    )
    if not fits:
        builder.bad(
            None,
            f"the header promises {promised} vectors of {dim} numbers, more than the "
            f"file's {request.size} bytes can hold",
        )
    count = promised if request.limit is None else min(promised, request.limit)
    done, rest, ended = 0, b"", False
    while done < count and not builder.complete:
        data = stream.read(min(max(_BLOCK, 4 * dim), _LARGEST_BLOCK))
        ended = not data
        buffer = rest + data
        raw, places, position = _split(buffer, dim, count - done)
        numbers = range(done + 1, done + 1 + len(raw))
        _add(builder, request, buffer, raw, places, numbers, dim)
        done += len(raw)
        rest = buffer[position:]
        if done < count and (ended or _stuck(rest, dim)):
            builder.bad(done + 1, "the file ends or is damaged within this record")
            return builder.build()
    if done == promised and not builder.complete:
        extra = (rest + stream.read(_LONGEST_WORD)).strip(b"\r\n")
        if extra:
            problem = f"the header promises {promised} vectors, but more bytes follow"
            builder.bad(None, problem)
    return builder.build()


def write_word2vec_binary(
    stream: BufferedIOBase, words: Sequence[str], matrix: np.ndarray
) -> None:
    """Writes records that end with a newline, as word2vec's own tool does."""
    stream.write(b"%d %d\n" % matrix.shape)
    for word, row in zip(words, matrix, strict=True):
        try:
            encoded = word.encode("utf-8")
        except UnicodeEncodeError:
            encoded = b""
        if not encoded or b" " in encoded or encoded.startswith(b"\n"):
            raise InputError(
                f"the word {word!r} cannot be written to word2vec binary, where a "
                "word ends at its first space"
            )
        stream.write(encoded + b" " + row.astype("<f4").tobytes() + b"\n")


def _split(buffer: bytes, dim: int, most: int) -> tuple[list[bytes], list[int], int]:
    """Words and the offsets of their floats, of all whole records of a buffer."""
    words, places = [], []
    position, size = 0, len(buffer)
    row = 4 * dim
    find = buffer.find
    while len(words) < most:
        space = find(b" ", position, position + _LONGEST_WORD)
        if space < 0 or space + 1 + row > size:
            break
        words.append(buffer[position:space].lstrip(b"\n"))
        places.append(space + 1)
        position = space + 1 + row
    return words, places, position


def _stuck(rest: bytes, dim: int) -> bool:
    return len(rest) >= _LONGEST_WORD and rest.find(b" ", 0, _LONGEST_WORD) < 0


def _add(
    builder: TableBuilder,
    request: Request,
    buffer: bytes,
    raw: list[bytes],
    places: list[int],
    numbers: range,
    dim: int,
) -> None:
    words, positions = decode_words(raw, builder, request.encoding, numbers)
    if request.keep is not None:
        pairs = zip(words, positions, strict=True)
        chosen = [pair for pair in pairs if pair[0] in request.keep]
        words, positions = [w for w, _ in chosen], [p for _, p in chosen]
    view = memoryview(buffer)
    row = 4 * dim
    joined = b"".join([view[places[p] : places[p] + row] for p in positions])
    rows = np.frombuffer(joined, "<f4").reshape(len(words), dim)
    builder.add(words, rows, [numbers[p] for p in positions])
