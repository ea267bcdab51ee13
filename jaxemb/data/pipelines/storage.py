"""Files of pipelines, wherever Beam's file systems find them."""

# pyright: reportMissingImports=false
# The extra `beam` has an environment of its own.

import bz2
import contextlib
import gzip
import json
import lzma
import os
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from jaxemb.errors import InputError

_DECOMPRESS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def require_new(folder: str) -> None:
    """Refuses an output folder that has something in it, and makes it otherwise."""
    if FileSystems.match([FileSystems.join(folder, "*")])[0].metadata_list:
        raise InputError(f"{folder}: is not empty; name another folder, or empty it")
    if not FileSystems.exists(folder):
        FileSystems.mkdirs(folder)


@contextlib.contextmanager
def open_text(path: str) -> Iterator[Any]:
    """Opens a file for reading, decompressed by its suffix as `files.open_bytes` does.

    Not by Beam, whose streams of packed files read lines whole, however long.
    """
    raw = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    decompress = _DECOMPRESS.get(os.path.splitext(path)[1])
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(raw)
        if decompress is not None:
            stream = stack.enter_context(decompress(stream, "rb"))
        try:
            yield stream
        except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"{path}: damaged or truncated archive ({error})"
            ) from error


def is_packed(path: str) -> bool:
    """Whether a file can only be read from its beginning."""
    return os.path.splitext(path)[1] in _DECOMPRESS


def read_bytes(path: str) -> bytes:
    """The content of a file."""
    try:
        with FileSystems.open(
            path, compression_type=CompressionTypes.UNCOMPRESSED
        ) as stream:
            return stream.read()
    except (OSError, BeamIOError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error


def read_info(folder: str, name: str, command: str) -> Mapping[str, Any]:
    """What a pipeline tells of its output, which it writes last."""
    path = FileSystems.join(folder, name)
    if not FileSystems.exists(path):
        raise InputError(
            f"{path}: missing, so the pipeline `{command}` has not completed here"
        )
    return json.loads(read_bytes(path))


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file, whole or not at all."""
    write_file(path, lambda local: _write(local, content))


def write_file(path: str, write: Callable[[str], None]) -> None:
    """Has `write` fill a local file, which then appears at `path` at once.

    Where a worker is tried twice, both write the same, and either may come last.
    """
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "part")
        write(local)
        hidden = f"{path}.{uuid.uuid4().hex}.part"
        with open(local, "rb") as source:
            with FileSystems.create(
                hidden, compression_type=CompressionTypes.UNCOMPRESSED
            ) as target:
                shutil.copyfileobj(source, target, 1 << 20)
        if FileSystems.exists(path):
            FileSystems.delete([path])
        FileSystems.rename([hidden], [path])


def _write(local: str, content: bytes) -> None:
    with open(local, "wb") as stream:
        stream.write(content)
