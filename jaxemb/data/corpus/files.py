"""Folders that appear whole or not at all, arrays written piece by piece, a meter."""

import contextlib
import hashlib
import io
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from jaxemb.errors import InputError

_QUIET_SECONDS = 30  # between lines where standard error is no terminal
_TERMINAL_SECONDS = 0.2


@contextlib.contextmanager
def new_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a hidden folder beside `folder` that gets its name when the block is done.

    After an error nothing is left. What a killed process left is removed by the next
    one that writes the same folder.

    Raises:
      InputError: where `folder` is there already and not empty, or cannot be made.
    """
    folder = Path(os.path.abspath(folder))
    require_new(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_litter(folder)
        part = Path(
            tempfile.mkdtemp(
                prefix=f".{folder.name}.", suffix=".part", dir=folder.parent
            )
        )
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        with _held(part):
            yield part
            part.chmod(0o755)
            try:
                os.replace(part, folder)  # an empty folder may be in its place
            except OSError as error:
                require_new(folder)  # made by another process meanwhile
                raise _unwritable(folder, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def require_new(folder: Path) -> None:
    """Refuses a folder that has something in it."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists():
        raise InputError(
            f"{folder}: is there already; open it, or remove it to write it anew"
        )


class ArrayWriter:
    """A one-dimensional `.npy` file that grows; its length is written on closing."""

    def __init__(self, path: Path, dtype: np.typing.DTypeLike):
        """Opens the file."""
        self.dtype = np.dtype(dtype)
        self._stream: IO[bytes] = path.open("wb")
        self._length = 0
        self._stream.write(self._header())

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, *_) -> None:
        with self._stream:
            self._stream.seek(0)
            self._stream.write(self._header())

    def __len__(self) -> int:
        return self._length

    def write(self, values: np.ndarray) -> None:
        """Appends `values`."""
        self._length += len(values)
        self._stream.write(np.ascontiguousarray(values, self.dtype).data)

    def _header(self) -> bytes:
        # numpy leaves room for the longest shape, so every header is as long.
        described: dict[str, Any] = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (self._length,),
        }
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, described)
        return header.getvalue()


def read_array(path: Path) -> np.ndarray:
    """A `.npy` file, memory-mapped.

    Raises:
      InputError: where it is missing or damaged.
    """
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{path}: damaged array ({error})") from error


def digest(paths: Iterable[Path]) -> str:
    """One sha256, in hexadecimal, of the bytes of several files in their order."""
    whole = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


class Meter:
    """Tells on standard error how far long work is.

    On a terminal one line is rewritten; elsewhere there is one every half minute.
    """

    def __init__(self, what: str, unit: str, total: int | None = None, *, show: bool):
        """Begins to count; `total` is how many there will be, if that is known."""
        self._what, self._unit, self._total = what, unit, total
        self._show = show
        self._terminal = sys.stderr.isatty()
        self._done = 0
        self._start = self._last = time.monotonic()

    def __enter__(self) -> "Meter":
        return self

    def __exit__(self, *_) -> None:
        if self._show and self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def advance(self, number: int) -> None:
        """Counts `number` more as done."""
        self._done += number
        now = time.monotonic()
        wait = _TERMINAL_SECONDS if self._terminal else _QUIET_SECONDS
        if self._show and now - self._last >= wait:
            self._last = now
            start, end = ("\r\x1b[K", "") if self._terminal else ("", "\n")
            print(f"{start}{self._text(now)}", end=end, file=sys.stderr, flush=True)

    def _text(self, now: float) -> str:
        share = f" ({self._done / self._total:.0%})" if self._total else ""
        rate = self._done / (now - self._start)
        return f"{self._what}: {self._done:,} {self._unit}{share} · {rate:,.0f}/s"


@contextlib.contextmanager
def _held(part: Path) -> Iterator[None]:
    """Locks a folder for as long as this process lives."""
    try:
        import fcntl  # not on Windows, where litter stays
    except ImportError:
        yield
        return
    handle = os.open(part, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _remove_litter(folder: Path) -> None:
    try:
        import fcntl
    except ImportError:
        return
    for part in folder.parent.glob(f".{folder.name}.*.part"):
        with contextlib.suppress(OSError):
            handle = os.open(part, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(part, ignore_errors=True)
            finally:
                os.close(handle)


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(f"{folder}: cannot be written ({error.strerror or error})")
