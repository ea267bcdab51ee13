"""Files as readers see them: plain, compressed or zipped, and never half-written."""

import bz2
import contextlib
import gzip
import lzma
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from jaxemb.errors import InputError

# A path, or a member of a zip; both have `name`, `suffix` and `open`.
Location = str | os.PathLike[str] | zipfile.Path

_DECOMPRESS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# Damaged bz2 and gzip data raise OSError too, which then has no number.
_DAMAGED = (EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)
# What a damaged directory of a zip, an encrypted member or an unknown method raise.
_UNREADABLE_ZIP = (
    *(zipfile.BadZipFile, RuntimeError, NotImplementedError, LookupError),
    *(struct.error, UnicodeDecodeError),
)


def cache_dir() -> Path:
    """Where fetched data and compiled programs are kept between runs."""
    if own := os.environ.get("JAXEMB_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "jaxemb"


def resolve(path: Location) -> Path | zipfile.Path:
    """Turns `folder/archive.zip/member.txt` into that member, other paths into a Path.

    A zip or wheel that holds a single file stands for that file.
    """
    if isinstance(path, zipfile.Path):
        return path
    path = Path(path)
    for parent in [path, *path.parents]:
        if parent.is_file():
            if not zipfile.is_zipfile(parent) or parent.suffix == ".npz":
                break
            inner = path.relative_to(parent).as_posix()
            try:
                archive = zipfile.ZipFile(parent)
            except _UNREADABLE_ZIP as error:
                raise InputError(f"{parent}: damaged zip ({error})") from error
            if inner != ".":
                return zipfile.Path(archive, inner)
            names = [n for n in archive.namelist() if n and not n.endswith("/")]
            if len(names) != 1:
                raise InputError(
                    f"{path}: holds {len(names)} files; name one as {path}/MEMBER"
                )
            return zipfile.Path(archive, names[0])
    return path


@contextlib.contextmanager
def open_bytes(path: Location) -> Iterator[BinaryIO]:
    """Opens a file for reading, decompressed by its suffix (.gz, .bz2, .xz).

    Raises:
      InputError: where there is no such file, or its compressed data are damaged.
    """
    place = resolve(path)
    decompress = _DECOMPRESS.get(Path(place.name).suffix)
    with contextlib.ExitStack() as stack:
        try:
            stream = cast(BinaryIO, stack.enter_context(place.open("rb")))
            if decompress is not None:
                stream = stack.enter_context(cast(BinaryIO, decompress(stream, "rb")))
        except FileNotFoundError as error:
            raise InputError(f"{place}: no such file") from error
        except IsADirectoryError as error:
            raise InputError(f"{place}: expected a file, found a folder") from error
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{place}: cannot be read ({reason})") from error
        except _UNREADABLE_ZIP as error:
            raise InputError(f"{place}: cannot be read ({error})") from error
        try:
            yield stream
        except _DAMAGED as error:
            raise InputError(
                f"{place}: damaged or truncated archive ({error})"
            ) from error
        except OSError as error:
            if error.errno is not None:  # not of the archive
                raise
            raise InputError(
                f"{place}: damaged or truncated archive ({error})"
            ) from error


def read_lines(path: Location):
    r"""Yields the lines of a UTF-8 file, without their `\n` or `\r\n`.

    Only these end a line: the other Unicode separators occur inside real words. A byte
    order mark before the first line is left out.
    """
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield text.removesuffix("\n").removesuffix("\r")
            except UnicodeDecodeError as error:
                raise InputError.at(str(path), number, "not valid UTF-8") from error


@contextlib.contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary path beside `path` that replaces it once the block is done.

    After an error nothing is left, and an older file at `path` is as it was. A `.gz`,
    `.bz2` or `.xz` suffix stays the suffix of the temporary name.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(
        prefix=f".{path.name.split('.')[0]}.",
        suffix=f".part{path.suffix}",
        dir=path.parent,
    )
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o644)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
