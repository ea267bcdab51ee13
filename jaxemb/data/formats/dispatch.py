"""Which format a file has, and the streams to read and write it through."""

import bz2
import contextlib
import gzip
import lzma
import re
import shutil
import zipfile
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import BinaryIO, cast

from jaxemb.data import files
from jaxemb.data.formats import arrays, fasttext, word2vec_binary
from jaxemb.data.formats.table import Request, Table, parse_header
from jaxemb.errors import InputError

FORMATS = "word2vec", "word2vec-binary", "glove", "fasttext", "npz", "safetensors"
MAPPABLE = "fasttext", "npz", "safetensors"
COMPRESSED = ".gz", ".bz2", ".xz"

_NUMBER = re.compile(rb"[+-]?[\d.]+(e[+-]?\d+)?", re.IGNORECASE)


def read(
    kind: str, stream: BufferedIOBase, request: Request, mmap_path: Path | None
) -> Table:
    """Reads a file of one of `FORMATS`, or "text" with a header or without."""
    match kind:
        case "word2vec-binary":
            return word2vec_binary.read_word2vec_binary(stream, request)
        case "fasttext":
            return fasttext.read_fasttext(stream, request, mmap_path=mmap_path)
        case "npz":
            return arrays.read_npz(stream, request, mmap_path=mmap_path)
        case "safetensors":
            return arrays.read_safetensors(stream, request, mmap_path=mmap_path)
    from jaxemb.data.formats import text  # pyarrow takes a moment to import

    header = {"word2vec": True, "glove": False}.get(kind)
    return text.read_text(stream, request, header=header)


def write(kind: str, stream: BufferedIOBase, table: Table) -> None:
    """Writes a file of one of `FORMATS`."""
    words, matrix, subwords = table.words, table.matrix, table.subwords
    match kind:
        case "word2vec-binary":
            word2vec_binary.write_word2vec_binary(stream, words, matrix)
        case "fasttext":
            fasttext.write_fasttext(stream, words, matrix, subwords)
        case "npz":
            arrays.write_npz(stream, words, matrix, subwords)
        case "safetensors":
            arrays.write_safetensors(stream, words, matrix, subwords)
        case _:
            from jaxemb.data.formats import text

            text.write_text(stream, words, matrix, header=kind == "word2vec")


def format_to_write(path: Path, has_subwords: bool) -> str:
    """The format that a name asks for."""
    _, inner = _split_zip(path)
    match _suffix(inner):
        case ".txt" | ".vec":
            return "word2vec"
        case ".bin":
            return "fasttext" if has_subwords else "word2vec-binary"
        case ".npz":
            return "npz"
        case ".safetensors":
            return "safetensors"
    raise InputError(
        f"{path}: name a format, or end the name in .txt, .vec, .bin, .npz or "
        ".safetensors"
    )


def format_to_read(place: Path | zipfile.Path) -> str:
    """The format of a file; "text" where line 1 must tell whether it is a header."""
    suffix = _suffix(Path(place.name))
    match suffix:
        case ".npz":
            return "npz"
        case ".safetensors":
            return "safetensors"
        case ".txt" | ".vec":
            return "text"
        case ".ftz":
            return "fasttext"
    with files.open_bytes(place) as stream:
        start = stream.read(1 << 16)
    if start.startswith(fasttext.MAGIC):
        return "fasttext"
    line, _, body = start.partition(b"\n")
    header = parse_header(line)
    if header is None:
        return "fasttext" if suffix == ".bin" else "text"
    numbers = body.partition(b"\n")[0].split()[-header[1] :]
    textual = bool(numbers) and all(_NUMBER.fullmatch(field) for field in numbers)
    return "text" if textual else "word2vec-binary"


def plain_size(place: Path | zipfile.Path) -> int | None:
    """Bytes that reading will yield, where that is known beforehand."""
    if _is_compressed(Path(place.name)) or not place.is_file():
        return None
    if isinstance(place, zipfile.Path):
        info = place.root.getinfo(place.at)
        stored = info.compress_type == zipfile.ZIP_STORED
        honest = info.file_size <= Path(str(place.root.filename)).stat().st_size
        return info.file_size if stored and honest else None
    return place.stat().st_size


@contextlib.contextmanager
def open_for_writing(path: Path) -> Iterator[BufferedIOBase]:
    """A stream, compressed by its suffix, perhaps into a zip; whole or not at all."""
    archive, inner = _split_zip(path)
    with contextlib.ExitStack() as stack:
        part = stack.enter_context(files.write_atomically(archive or path))
        if archive is None:
            stream = stack.enter_context(open(part, "wb"))
        else:
            name = inner.as_posix()
            new = stack.enter_context(zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED))
            _copy_members(archive, new, without=name)
            stream = stack.enter_context(new.open(name, "w", force_zip64=True))
        stream = cast(BufferedIOBase, stream)
        match inner.suffix:
            case ".gz":
                packer = gzip.GzipFile("", "wb", 6, stream, mtime=0)
                yield cast(BufferedIOBase, stack.enter_context(packer))
            case ".bz2":
                yield cast(
                    BufferedIOBase,
                    stack.enter_context(bz2.open(cast(BinaryIO, stream), "wb")),
                )
            case ".xz":
                packer = lzma.open(cast(BinaryIO, stream), "wb", preset=1)
                yield cast(BufferedIOBase, stack.enter_context(packer))
            case _:
                yield stream


def _is_compressed(path: Path) -> bool:
    return path.suffix in COMPRESSED


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix if _is_compressed(path) else path.suffix


def _split_zip(path: Path) -> tuple[Path | None, Path]:
    """`a.zip/b/c.txt` as `a.zip` and `b/c.txt`; `c.txt.zip` holds `c.txt`."""
    if path.suffix == ".zip":
        return path, Path(path.stem)
    archive = next((p for p in path.parents if p.suffix == ".zip"), None)
    if archive is None or archive.is_dir():
        return None, path
    return archive, path.relative_to(archive)


def _copy_members(archive: Path, new: zipfile.ZipFile, without: str) -> None:
    if archive.exists():
        with zipfile.ZipFile(archive) as old:
            for info in old.infolist():
                if info.filename != without:
                    with old.open(info) as source, new.open(info, "w") as target:
                        shutil.copyfileobj(source, target)
