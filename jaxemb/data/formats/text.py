"""Text tables: word2vec and fastText `.vec` (a header), GloVe (none)."""

import collections
import concurrent.futures
import io
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedIOBase
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from jaxemb.data.formats.table import Request, Table, TableBuilder, parse_header
from jaxemb.errors import InputError

_BLOCK = 1 << 18  # bytes parsed at once; larger ones take memory, smaller ones time
_LONGEST_LINE = 64 << 20
_BLANK = b" \t\r\n\v\f"
_ODD_BLANKS = b"\t", b"\v", b"\f"
_BOM = b"\xef\xbb\xbf"
_SPACE_TO_NEWLINE = bytes.maketrans(b" ", b"\n")
_POOL = pa.system_memory_pool()  # pyarrow's own keeps what it had once
_PARSE = pyarrow.csv.ParseOptions(
    quote_char=False, escape_char=False, ignore_empty_lines=False
)
_CONVERT = pyarrow.csv.ConvertOptions(null_values=[], column_types={"0": pa.float64()})


class _Parsed(NamedTuple):
    words: list[str]
    rows: np.ndarray  # (words, dim) float32
    numbers: Sequence[int]  # the line of each
    problems: list[tuple[int, str]]
    lines: int  # read, wanted or not


def read_text(
    stream: BufferedIOBase, request: Request, *, header: bool | None = None
) -> Table:
    """Reads a word and its numbers a line; the last fields are the numbers.

    With a `keep` set, the numbers of other lines are not looked at, save for the first:
    a file that holds no vectors shall not pass for one that holds none of the words.

    Args:
      stream: the file, decompressed.
      request: the caller's wishes.
      header: whether line 1 holds the number of words and the dimension; None finds
        out: two integers are a header.
    """
    blocks = _blocks(stream, request.name)
    number, block = next(blocks, (1, b""))
    block = _without_bom(block)
    first, _, body = block.partition(b"\n")
    found = parse_header(first) if header is not False else None
    promised = None
    if found:
        promised, dim = found
        number, block = 2, body
        if dim == 0:
            raise InputError.at(request.name, 1, "expected a dimension above 0")
    elif header:
        problem = "expected a header: the number of words and the dimension"
        raise InputError.at(request.name, 1, problem)
    elif not block:
        raise InputError(f"{request.name}: the file is empty")
    else:
        dim = _usual_fields(block) - 1
        if dim < 1:
            raise InputError.at(request.name, 1, "expected a word and its numbers")

    builder = TableBuilder(
        request, dim, expected=_expected_rows(request, block, promised, dim)
    )
    parser = _BlockParser(dim, request.encoding, request.keep, always=number)
    lines = 0
    source = _limited(itertools.chain([(number, block)], blocks), request.limit)
    for parsed in _in_order(parser.parse, source):
        for line, problem in parsed.problems:
            builder.bad(line, problem)
        builder.add(parsed.words, parsed.rows, parsed.numbers)
        lines += parsed.lines
        if builder.complete:
            break
    else:
        limit = request.limit
        if promised is not None and lines != (
            promised if limit is None else min(promised, limit)
        ):
            builder.bad(1, f"the header promises {promised} words, found {lines}")
    return builder.build()


def write_text(
    stream: BufferedIOBase, words: Sequence[str], matrix: np.ndarray, *, header: bool
) -> None:
    """Writes a word and its numbers a line, each as short as float32 allows."""
    if header:
        stream.write(b"%d %d\n" % matrix.shape)
    elif not words:
        raise InputError("a GloVe file cannot hold a table without words")
    step = max(1, (1 << 19) // matrix.shape[1])
    for start in range(0, len(words), step):
        rows = np.ascontiguousarray(matrix[start : start + step], np.float32)
        lines = zip(words[start : start + step], _row_texts(rows), strict=True)
        text = "".join([_line(word, row) for word, row in lines])
        try:
            encoded = text.encode("utf-8")
        except UnicodeEncodeError as error:
            word = text[: error.start].rsplit("\n", 1)[-1]
            raise InputError(
                f"the word after {word!r} holds a lone surrogate, which UTF-8 lacks"
            ) from error
        if not header and start == 0:
            _check_start(encoded, words[0], matrix.shape[1])
        stream.write(encoded)


def _check_start(data: bytes, word: str, dim: int) -> None:
    """Refuses a beginning from which a reader would guess something else."""
    _, block = next(_blocks(io.BytesIO(data), ""))
    if _without_bom(block) != block:
        raise InputError(
            f"the word {word!r} begins with a byte order mark, so it cannot come first "
            "in a GloVe file"
        )
    if parse_header(block.partition(b"\n")[0]):
        raise InputError(f"the row of {word!r} reads as a header; write one")
    if _usual_fields(block) != dim + 1:
        raise InputError(
            "too many of the first words hold spaces for the dimension to be told in a "
            "GloVe file; write word2vec, which names it"
        )


def _line(word: str, row: str) -> str:
    parts = word.encode("utf-8", "surrogatepass").split()
    if (
        not parts
        or word != word.strip(" \t\r\n\v\f")
        or "\n" in word
        or (len(parts) > 1 and _is_component(parts[-1], "." in row))
    ):
        raise InputError(f"the word {word!r} cannot be told from its numbers in text")
    return f"{word} {row}\n"


def _row_texts(rows: np.ndarray) -> list[str]:
    flat = rows.ravel()
    texts = pa.array(flat).cast(pa.string())
    # Readers go through float64, whose rounding may spoil a shortest float32.
    back = texts.cast(pa.float64()).to_numpy().astype(np.float32)
    spoilt = (back != flat) & ~np.isnan(flat)
    if spoilt.any():
        exact = pa.array(flat.astype(np.float64)).cast(pa.string())
        choice = [pa.array(spoilt), exact, texts]
        texts = pyarrow.compute.call_function("if_else", choice)
    width = rows.shape[1]
    offsets = pa.array(np.arange(0, flat.size + 1, width, dtype=np.int32))
    listed = pa.ListArray.from_arrays(offsets, texts)
    joined = pyarrow.compute.call_function("binary_join", [listed, " "])
    return joined.to_pylist()


def _blocks(stream: BufferedIOBase, name: str) -> Iterator[tuple[int, bytes]]:
    """Whole lines, a block at once, and the number of the first.

    Blank lines at the end of the file are left out.
    """
    number, rest = 1, b""
    while data := stream.read(_BLOCK):
        end = data.rfind(b"\n") + 1
        block = rest + data[:end]
        written = len(block.rstrip(_BLANK))
        cut = block.find(b"\n", written) + 1 if end and written else 0
        if cut:
            yield number, block[:cut]
            number += block.count(b"\n", 0, cut)
        rest = block[cut:] + data[end:]
        if len(rest) > _LONGEST_LINE:
            raise InputError.at(name, number, "expected a line of less than 64 MB")
    if rest.strip(_BLANK):
        yield number, rest


def _limited(
    blocks: Iterable[tuple[int, bytes]], limit: int | None
) -> Iterator[tuple[int, bytes]]:
    for number, block in blocks:
        if limit is not None:
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            if limit <= len(ends):
                if limit:
                    yield number, block[: ends[limit - 1] + 1]
                return
            limit -= len(ends)
        if block:
            yield number, block


def _without_bom(block: bytes) -> bytes:
    """Without the mark, unless it is a word of its own."""
    rest = block.removeprefix(_BOM)
    return block if rest[:1] in (b" ", b"\t") else rest


def _usual_fields(block: bytes) -> int:
    lines = block.split(b"\n", 100)[:100]
    counts = collections.Counter(len(line.split()) for line in lines if line.strip())
    return counts.most_common(1)[0][0]  # of equals, the one that came first


def _expected_rows(
    request: Request, block: bytes, promised: int | None, dim: int
) -> int:
    lines = block.count(b"\n")
    estimate = promised or 0
    if request.size is not None and lines:
        by_size = int(request.size / len(block) * lines * 1.05) + 1
        most = request.size // (2 * dim + 1)
        estimate = min(by_size if promised is None else promised, most)
    return estimate


def _in_order(
    function: Callable[[int, bytes], _Parsed], items: Iterable[tuple[int, bytes]]
) -> Iterator[_Parsed]:
    """Maps in threads, a few items ahead; pyarrow and numpy release the lock."""
    threads = min(4, os.cpu_count() or 1)
    waiting = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for item in items:
            waiting.append(pool.submit(function, *item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class _BlockParser:
    def __init__(
        self, dim: int, encoding: str, keep: frozenset[str] | None, always: int
    ):
        self._dim, self._encoding = dim, encoding
        self._always = always  # the line that is looked at whatever its word
        self._heads = None
        if keep is not None:  # what a wanted line may begin with; b"": look closer
            encoded = [word.encode(encoding, "replace") for word in keep]
            self._heads = {b"", *(word.split()[0] for word in encoded if word.split())}

    def parse(self, number: int, block: bytes) -> _Parsed:
        spans, position = [], 0
        while (end := block.find(b"\n", position)) >= 0:
            spans.append((position, end))
            position = end + 1
        if position < len(block):
            spans.append((position, len(block)))
        count = len(spans)
        numbers: Sequence[int] = range(number, number + count)
        if self._heads is not None:
            chosen = self._wanted(block, spans, self._always - number)
            numbers, spans = [numbers[i] for i in chosen], [spans[i] for i in chosen]
        words, rows = self._regular(block, spans)
        if rows is not None:
            return _Parsed(words, rows, numbers, [], count)
        lines = [block[start:end] for start, end in spans]
        return self._irregular(lines, numbers, count)

    def _wanted(
        self, block: bytes, spans: list[tuple[int, int]], always: int
    ) -> list[int]:
        assert self._heads is not None
        scan, chosen = block.replace(b"\t", b" "), []
        for line, (start, end) in enumerate(spans):
            space = scan.find(b" ", start, end)
            head = scan[start : space if space >= 0 else end]
            if head in self._heads or line == always:
                chosen.append(line)
        return chosen

    def _regular(
        self, block: bytes, spans: list[tuple[int, int]]
    ) -> tuple[list[str], np.ndarray | None]:
        """Parses lines of one word and `dim` numbers, or gives up with None."""
        raw, texts, view = [], [], memoryview(block)
        for start, end in spans:
            space = block.find(b" ", start, end)
            if space <= start:
                return [], None
            while block[end - 1] in b" \r":
                end -= 1
            raw.append(block[start:space])
            texts.append(view[space + 1 : max(end, space + 1)])
        if any(blank in b"".join(raw) for blank in _ODD_BLANKS):
            return [], None
        try:
            words = [word.decode(self._encoding) for word in raw]
        except UnicodeDecodeError:
            return [], None
        return words, _floats(texts, self._dim)

    def _irregular(
        self, lines: list[bytes], numbers: Sequence[int], count: int
    ) -> _Parsed:
        """Splits from the right; only here are words with spaces and bad lines seen."""
        words, fields, places, problems = [], [], [], []
        for number, line in zip(numbers, lines, strict=True):
            parts = line.rsplit(None, self._dim)
            problem = _misfit(parts, self._dim)
            word = parts[0].strip() if parts else b""
            try:
                decoded = word.decode(self._encoding)
            except UnicodeDecodeError:
                problem = f"the word {word!r} is not valid {self._encoding}"
            if problem:
                problems.append((number, problem))
            else:
                words.append(decoded)
                fields.append(parts[1:])
                places.append(number)
        rows = _floats([b" ".join(parts) for parts in fields], self._dim)
        if rows is not None:
            return _Parsed(words, rows, places, problems, count)
        chosen, kept = [], []
        for position, parts in enumerate(fields):
            values = [_number(part) for part in parts]
            row = _to_float32(np.array([v or 0.0 for v in values]))
            if None in values:
                text = parts[values.index(None)].decode("utf-8", "replace")
                problems.append((places[position], f"{text!r} is not a number"))
            elif not np.isfinite(row).all():
                problem = "a number is NaN or too large for float32"
                problems.append((places[position], problem))
            else:
                chosen.append(position)
                kept.append(row)
        rows = np.array(kept, np.float32).reshape(len(kept), self._dim)
        words = [words[i] for i in chosen]
        places = [places[i] for i in chosen]
        return _Parsed(words, rows, places, sorted(problems), count)


def _misfit(parts: list[bytes], dim: int) -> str | None:
    if len(parts) <= dim:
        found = f"found {len(parts)} fields" if parts else "found a blank line"
        return f"expected a word and {dim} numbers, {found}"
    before = parts[0].split()
    pointed = any(b"." in part for part in parts[1:])
    if len(before) > 1 and _is_component(before[-1], pointed):
        return f"expected a word and {dim} numbers, found more numbers"
    return None


def _floats(texts: Sequence[bytes | memoryview], dim: int) -> np.ndarray | None:
    """Parses `dim` numbers a text, or None where any has another count or is bad."""
    # One number a line, and a NaN before each row: a row too short or too long moves
    # the NaN after it.
    data = b"nan\n" + b"\nnan\n".join(texts).translate(_SPACE_TO_NEWLINE)
    read = pyarrow.csv.ReadOptions(
        column_names=["0"], use_threads=False, block_size=len(data) + 1
    )
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(data), read, _PARSE, _CONVERT, _POOL
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(texts) * (dim + 1):
        return None
    values = table.column(0).to_numpy().reshape(len(texts), dim + 1)
    # Through float64, as strtod and gensim go, so that every value rounds as theirs.
    rows = _to_float32(values[:, 1:])
    regular = np.isnan(values[:, 0]).all() and np.isfinite(rows).all()
    return rows if regular else None


def _to_float32(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _number(field: bytes) -> float | None:
    try:
        return None if b"_" in field else float(field)
    except ValueError:
        return None


def _is_component(field: bytes, pointed: bool) -> bool:
    """Whether a field before the numbers is one more of them, not a part of a word.

    `route 66 0.1 0.2` holds a word of two parts; in `route 0.3 0.1 0.2` and in
    `route 66 1 2` the row has a number too many.
    """
    return _number(field) is not None and (b"." in field or not pointed)
