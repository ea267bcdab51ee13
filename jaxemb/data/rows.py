"""Rows of numbers on disk that are made batch by batch, once, and go on after a stop.

A folder: `cache.json` (what the rows are of), `features.bin` (the rows, mapped into
memory) and `done.npy` (which batches are there). `cache_by_id` keeps a row an example,
found by the example's name, so that who reads them may cut texts otherwise than who
made them: a teacher's logits for its students.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jaxemb.data import files
from jaxemb.data.corpus.files import Meter
from jaxemb.errors import InputError

ABOUT, ROWS, DONE, IDS = "cache.json", "features.bin", "done.npy", "ids.json"
_FLUSH_EVERY = 50  # batches


def begin(
    folder: Path,
    described: Mapping[str, Any],
    shape: tuple[int, int],
    dtype: np.dtype,
    batches: int,
) -> None:
    """Lays out a folder of rows that are all still to be made, unless it is there."""
    if (folder / ABOUT).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / DONE, np.zeros(batches, bool))
    with open(folder / ROWS, "wb") as rows:
        rows.truncate(shape[0] * shape[1] * dtype.itemsize)
    with files.write_atomically(folder / ABOUT) as part:  # last: it is whole
        part.write_text(json.dumps(described, indent=1) + "\n")


def about(folder: Path) -> dict[str, Any]:
    """What the rows of a folder are of.

    Raises:
      InputError: where there is no such folder.
    """
    try:
        return json.loads((folder / ABOUT).read_text())
    except FileNotFoundError as error:
        raise InputError(f"{folder}: expected a folder of features") from error


def mapped(
    folder: Path, shape: tuple[int, int], dtype: np.dtype, mode: Literal["r", "r+"]
) -> np.ndarray:
    """The rows of a folder, read, and written, as they are asked for."""
    if not shape[0]:
        return np.zeros(shape, dtype)
    return np.memmap(folder / ROWS, dtype, mode, shape=shape)


def check_same(
    folder: Path, found: Mapping[str, Any], described: Mapping[str, Any]
) -> None:
    """Raises InputError where a folder's rows are of something else."""
    if found != described:
        other = next(k for k in described if found.get(k) != described[k])
        raise InputError(f"{folder}: features of another {other}; name another folder")


def is_finished(folder: Path) -> bool:
    """Whether a folder of rows is there, and all of them are."""
    return (folder / ABOUT).exists() and bool(np.load(folder / DONE).all())


def check_finished(folder: Path) -> None:
    """Raises InputError where rows are missing."""
    if not is_finished(folder):
        raise InputError(f"{folder}: features that were not finished; make them")


def fill(
    folder: Path, rows: np.ndarray, batches: Iterable[Any], make: Callable[[Any], None]
) -> None:
    """Calls `make`, which writes into `rows`, with every batch that is not done yet."""
    done = np.load(folder / DONE, mmap_mode="r+")
    waiting: list[int] = []  # batches that the disk may not have yet

    def keep() -> None:
        if isinstance(rows, np.memmap):
            rows.flush()
        done[waiting] = True
        done.flush()
        waiting.clear()

    for number, batch in enumerate(batches):
        if not done[number]:
            make(batch)
            waiting.append(number)
            if len(waiting) == _FLUSH_EVERY:
                keep()
    keep()


@dataclasses.dataclass(frozen=True, eq=False)
class RowsById:
    """A row of float32 numbers an example, by its name."""

    folder: Path
    described: dict[str, Any]
    ids: tuple[str, ...]
    rows: np.ndarray
    """Mapped into memory: (examples, dim)."""

    @classmethod
    def open(cls, folder: str | Path) -> "RowsById":
        """A cache that is complete.

        Raises:
          InputError: where there is none, or it was not finished.
        """
        folder = Path(folder)
        found = about(folder)
        check_finished(folder)
        ids = tuple(json.loads((folder / IDS).read_text()))
        shape = len(ids), found["dim"]
        rows = mapped(folder, shape, np.dtype(np.float32), "r")
        return cls(folder, found, ids, rows)

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """The place of each example."""
        return {name: place for place, name in enumerate(self.ids)}

    def __getitem__(self, ids: Sequence[str]) -> np.ndarray:
        """The rows of the examples named, in their order: (ids, dim).

        Raises:
          InputError: naming the first example that has none.
        """
        unknown = next((name for name in ids if name not in self.index), None)
        if unknown is not None:
            raise InputError(f"{self.folder}: no row of example {unknown!r}")
        return np.array(self.rows[[self.index[name] for name in ids]])


def cache_by_id(
    folder: str | Path,
    ids: Sequence[str],
    compute: Callable[[np.ndarray], Any],
    *,
    dim: int,
    of: str,
    batches: Sequence[np.ndarray] | None = None,
    batch_size: int = 32,
    progress: bool = False,
) -> RowsById:
    """Makes a row of every example, or goes on making them, or finds them made.

    Args:
      folder: of the cache.
      ids: names of examples, each once.
      compute: from the places of examples among `ids` to their rows.
      dim: numbers of a row.
      of: what tells these rows from others, such as a digest of a model's weights.
      batches: the places in the order, and in the groups, that `compute` is to be given
        them, each place once; in the order of `ids` unless given.
      batch_size: of the batches, unless they are given.
      progress: say how far it is.

    Raises:
      InputError: where `folder` holds other rows, or an example has a name twice.
    """
    folder, ids = Path(folder), tuple(ids)
    if len(set(ids)) != len(ids):
        twice = next(name for place, name in enumerate(ids) if name in ids[:place])
        raise InputError(f"cache_by_id: two examples are named {twice!r}")
    every = np.arange(len(ids))
    if batches is None:
        batches = [every[i : i + batch_size] for i in range(0, len(ids), batch_size)]
    if sorted(np.concatenate([*batches, every[:0]])) != every.tolist():
        raise InputError("cache_by_id: batches leave an example out, or repeat one")
    plan = hashlib.sha256(json.dumps([b.tolist() for b in batches]).encode())
    digest = hashlib.sha256("\x1f".join(ids).encode("utf-8", "surrogatepass"))
    described = {
        "of": of,
        "ids": digest.hexdigest(),
        "dim": dim,
        "batches": plan.hexdigest(),
    }
    shape, dtype = (len(ids), dim), np.dtype(np.float32)
    if not (folder / ABOUT).exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / IDS).write_text(json.dumps(ids))
        begin(folder, described, shape, dtype, len(batches))
    check_same(folder, about(folder), described)
    rows = mapped(folder, shape, dtype, "r+")

    with Meter("computing", "examples", len(ids), show=progress) as meter:

        def make(places: np.ndarray) -> None:
            rows[places] = np.asarray(compute(places))[: len(places)]
            meter.advance(len(places))

        fill(folder, rows, batches, make)
    return RowsById.open(folder)
