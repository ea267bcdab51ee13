"""How often words stand near each other: counted in blocks, merged on disk.

Every pair becomes one integer, so that counting is sorting. Sums are integers as well
(the weight 1/d is a multiple of a fixed unit), hence exact: they depend neither on the
memory that is given nor on the order of blocks, and Beam's are the same.
"""

import contextlib
import dataclasses
import itertools
import json
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32

from jaxemb.data.corpus import Corpus
from jaxemb.data.corpus.files import (
    ArrayWriter,
    Meter,
    digest,
    new_folder,
    read_array,
)
from jaxemb.errors import InputError

Weighting = Literal["harmonic", "flat"]

_INFO = "cooccurrences.json"
_ARRAYS = {"rows": np.int32, "columns": np.int32, "values": np.float32}
_FAN_IN = 16  # runs merged at once
# Bytes at the height of work: a pair in a block, an entry of a run while merged.
_BYTES_A_PAIR, _BYTES_AN_ENTRY = 48, 80
_BLOCK_BYTES = 1 << 27  # larger blocks are slower: they fit no cache


@dataclasses.dataclass(frozen=True, eq=False)
class Cooccurrences:
    """The entries of a co-occurrence matrix that are not 0, by row, then by column.

    Attributes:
      rows: ids of words, memory-mapped.
      columns: ids of the words near them.
      values: the sum of their weights.
      vocab: the number of words.
      window: the greatest distance.
      weighting: 1/distance ("harmonic") or 1 ("flat").
      symmetric: whether a row has the words on both sides or those after it only.
      folder: where it is.
      sha256: of rows, columns and values, as they were counted.
    """

    rows: Int32[np.ndarray, " pairs"]
    columns: Int32[np.ndarray, " pairs"]
    values: Float32[np.ndarray, " pairs"]
    vocab: int
    window: int
    weighting: Weighting
    symmetric: bool
    folder: Path
    sha256: str

    def __len__(self) -> int:
        """The number of entries."""
        return len(self.rows)


class Run(NamedTuple):
    """Pairs in rising order, each once, and the sum of their weights in units."""

    keys: np.ndarray  # int64: the row, shifted, and the column
    sums: np.ndarray  # int64


@dataclasses.dataclass(frozen=True)
class Scheme:
    """What is counted, and how pairs and weights are written as integers."""

    vocab: int
    window: int = 10
    weighting: Weighting = "harmonic"
    symmetric: bool = True

    def __post_init__(self):
        if self.window < 1:
            raise InputError(f"window is {self.window}; expected 1 or more")
        if self.weighting not in ("harmonic", "flat"):
            raise InputError(
                f"weighting is {self.weighting!r}; expected 'harmonic' or 'flat'"
            )
        if 2 * self.bits + self.distance_bits > 63:
            raise InputError(
                f"{self.vocab} words with a window of {self.window} are more pairs "
                "than 64 bits tell apart; a smaller window or max_words helps"
            )

    @property
    def bits(self) -> int:
        """Of a word's id in a key."""
        return max(1, (self.vocab - 1).bit_length())

    @property
    def distance_bits(self) -> int:
        """Of a distance less 1 below a key, while a block is sorted."""
        return 0 if self.weighting == "flat" else (self.window - 1).bit_length()

    @property
    def unit(self) -> int:
        """How many units a weight of 1 is.

        Of a window up to 22 every 1/d is a whole number of units; beyond, it is
        rounded to one, by less than a part in 100 million for windows up to 40.
        """
        if self.weighting == "flat":
            return 1
        return min(math.lcm(*range(1, self.window + 1)), 1 << 32)

    @property
    def weights(self) -> np.ndarray:
        """The weight of each distance from 1, in units; one for all if flat."""
        if self.weighting == "flat":
            return np.ones(1, np.int64)
        return np.round(self.unit / np.arange(1, self.window + 1)).astype(np.int64)

    def split(self, run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns and values of a run."""
        rows = (run.keys >> self.bits).astype(np.int32)
        columns = (run.keys & ((1 << self.bits) - 1)).astype(np.int32)
        return rows, columns, (run.sums / self.unit).astype(np.float32)


def count(
    corpus: Corpus,
    folder: str | os.PathLike[str],
    *,
    window: int = 10,
    weighting: Weighting = "harmonic",
    symmetric: bool = True,
    memory: int = 2**30,
    progress: bool = True,
) -> Cooccurrences:
    """Counts pairs of words at most `window` apart in a sentence, into a new folder.

    As GloVe's own tool does, unknown words do not count as distance, and a pair of
    equal words counts twice with `symmetric`. Without, only the later word of a pair
    counts for the earlier one: row is the earlier, column the later.

    Args:
      corpus: whose sentences; those held out are not counted.
      folder: where to write it.
      window: the greatest distance.
      weighting: what a pair at distance d adds: 1/d ("harmonic") or 1 ("flat").
      symmetric: whether pairs count in both directions.
      memory: bytes to work in, about; what does not fit goes to disk.
      progress: whether to tell on standard error how far it is.

    Raises:
      InputError: where the folder is not new, or a setting cannot be used.
    """
    scheme = Scheme(len(corpus.words), window, weighting, symmetric)
    if memory < 1 << 16:
        raise InputError(f"memory is {memory}; expected {1 << 16} bytes or more")
    with new_folder(folder) as part:
        scratch = part / "scratch"
        scratch.mkdir()
        runs = _Runs(scratch, memory)
        with Meter("counting", "tokens", len(corpus.tokens), show=progress) as meter:
            for tokens, ends, size in _blocks(corpus, scheme, memory):
                runs.add(count_block(tokens, ends, size, scheme))
                meter.advance(size)
        with Meter("merging", "entries", show=progress) as meter:
            write(runs.merged(), part, scheme, meter)
        shutil.rmtree(scratch)
    return open_cooccurrences(folder)


def open_cooccurrences(folder: str | os.PathLike[str]) -> Cooccurrences:
    """Opens what `count` wrote.

    Raises:
      InputError: where there is nothing of the kind, or its files do not belong
        together.
    """
    folder = Path(folder)
    if not (folder / _INFO).is_file():
        raise InputError(f"{folder}: no co-occurrences here ({_INFO} is missing)")
    info = json.loads((folder / _INFO).read_text())
    rows, columns, values = (read_array(folder / f"{name}.npy") for name in _ARRAYS)
    if not len(rows) == len(columns) == len(values):
        raise InputError(f"{folder}: rows, columns and values are not of one length")
    kept = {key: info[key] for key in ("vocab", "window", "weighting", "symmetric")}
    sha256 = info.get("sha256") or _digest(folder)  # not told by earlier versions
    return Cooccurrences(rows, columns, values, **kept, folder=folder, sha256=sha256)


def count_block(
    tokens: Int32[np.ndarray, " read"],
    ends: np.ndarray,
    size: int,
    scheme: Scheme,
) -> Run:
    """Counts the pairs whose earlier word is among the first `size` of `tokens`.

    Args:
      tokens: a block of ids and the `window` ids after it, or what there is of them.
      ends: where the sentence of each of the first `size` ends, counted from the
        block's beginning.
      size: of the block.
      scheme: what to count.
    """
    room = np.minimum(ends - np.arange(size), len(tokens) - np.arange(size))
    words = tokens.astype(np.int64)
    sides = 2 if scheme.symmetric else 1
    pairs = np.minimum(room - 1, scheme.window).clip(0).sum()
    keys = np.empty(sides * int(pairs), np.int64)
    done = 0
    for distance in range(1, scheme.window + 1):
        here = np.flatnonzero(room > distance)
        if not len(here):
            break
        first, second = words[here], words[here + distance]
        below = distance - 1 if scheme.distance_bits else 0
        for row, column in ((first, second), (second, first))[:sides]:
            out = keys[done : done + len(here)]
            np.left_shift(row, scheme.bits, out=out)
            out |= column
            out <<= scheme.distance_bits
            out |= below
            done += len(here)
    keys.sort()
    starts = _starts(keys)
    times = np.diff(starts, append=len(keys))
    keys = keys[starts]
    if not scheme.distance_bits:
        return Run(keys, times * scheme.weights[0])
    sums = times * scheme.weights[keys & ((1 << scheme.distance_bits) - 1)]
    return _summed(keys >> scheme.distance_bits, sums)


def merge(runs: Sequence[Run], memory: int) -> Iterator[Run]:
    """One run made of several, in pieces that fit into `memory`."""
    runs = [run for run in runs if len(run.keys)]
    places = [0] * len(runs)
    while runs:
        piece = max(1, memory // (_BYTES_AN_ENTRY * len(runs)))
        heads = [
            run.keys[place : place + piece]
            for run, place in zip(runs, places, strict=True)
        ]
        # Up to here nothing is missing: runs that go on go on beyond it.
        going_on = [
            head[-1]
            for head, run, place in zip(heads, runs, places, strict=True)
            if place + len(head) < len(run.keys)
        ]
        limit = min(going_on, default=max(head[-1] for head in heads))
        taken = [int(np.searchsorted(head, limit, "right")) for head in heads]
        keys = np.concatenate([h[:n] for h, n in zip(heads, taken, strict=True)])
        sums = np.concatenate(
            [
                run.sums[place : place + n]
                for run, place, n in zip(runs, places, taken, strict=True)
            ]
        )
        yield _summed(*_sorted(keys, sums)) if len(runs) > 1 else Run(keys, sums)
        places = [place + n for place, n in zip(places, taken, strict=True)]
        left = [place < len(run.keys) for run, place in zip(runs, places, strict=True)]
        runs = [run for run, more in zip(runs, left, strict=True) if more]
        places = [place for place, more in zip(places, left, strict=True) if more]


def write(
    pieces: Iterable[Run], folder: Path, scheme: Scheme, meter: Meter | None = None
) -> None:
    """Writes one run, given in pieces, as the arrays of `Cooccurrences`."""
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(ArrayWriter(folder / f"{name}.npy", dtype))
            for name, dtype in _ARRAYS.items()
        ]
        for piece in pieces:
            for writer, values in zip(writers, scheme.split(piece), strict=True):
                writer.write(values)
            if meter is not None:
                meter.advance(len(piece.keys))
        entries = len(writers[0])
    if not entries:
        raise InputError("no sentence has two known words, so nothing co-occurs")
    info = {
        "format": 1,
        **dataclasses.asdict(scheme),
        "entries": entries,
        "sha256": _digest(folder),
    }
    (folder / _INFO).write_text(json.dumps(info, indent=1) + "\n")


def _digest(folder: Path) -> str:
    return digest(folder / f"{name}.npy" for name in _ARRAYS)


def _blocks(
    corpus: Corpus, scheme: Scheme, memory: int
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    sides = 2 if scheme.symmetric else 1
    pairs = min(memory // 4, _BLOCK_BYTES) // _BYTES_A_PAIR
    size = max(1, pairs // (scheme.window * sides))
    for start in range(0, len(corpus.tokens), size):
        stop = min(start + size, len(corpus.tokens))
        tokens = np.asarray(corpus.tokens[start : stop + scheme.window])
        # The sentences that begin before or in this block and end in it or after.
        first = int(np.searchsorted(corpus.starts, start, "right"))
        last = int(np.searchsorted(corpus.starts, stop, "left"))
        boundaries = np.asarray(corpus.starts[first : last + 1]) - start
        within = np.clip(np.diff(boundaries, prepend=0), 0, None)
        lengths = np.diff(np.minimum(np.cumsum(within), stop - start), prepend=0)
        yield tokens, np.repeat(boundaries, lengths), stop - start


class _Runs:
    """Runs in memory and, when they become many, merged ones on disk."""

    def __init__(self, scratch: Path, memory: int):
        self._scratch, self._memory = scratch, memory
        self._pending: list[Run] = []
        self._levels: list[list[Path]] = [[]]
        self._names = itertools.count()

    def add(self, run: Run) -> None:
        self._pending.append(run)
        if 16 * sum(len(run.keys) for run in self._pending) < self._memory // 4:
            return
        self._levels[0].append(self._written(self._pending))
        self._pending = []
        # Merged in levels, so that few files are ever open and disk use stays near
        # that of the result.
        for level, paths in enumerate(self._levels):
            if len(paths) < _FAN_IN:
                return
            if level + 1 == len(self._levels):
                self._levels.append([])
            merged = self._written([_open_run(path) for path in paths])
            self._levels[level + 1].append(merged)
            for file in (file for path in paths for file in _run_files(path)):
                file.unlink()
            paths.clear()

    def merged(self) -> Iterator[Run]:
        on_disk = [_open_run(path) for level in self._levels for path in level]
        return merge([*on_disk, *self._pending], self._memory // 2)

    def _written(self, runs: Sequence[Run]) -> Path:
        path = self._scratch / f"run-{next(self._names)}"
        keys, sums = _run_files(path)
        with (
            ArrayWriter(keys, np.int64) as to_keys,
            ArrayWriter(sums, np.int64) as to_sums,
        ):
            for piece in merge(runs, self._memory // 2):
                to_keys.write(piece.keys)
                to_sums.write(piece.sums)
        return path


def _open_run(path: Path) -> Run:
    return Run(*(read_array(file) for file in _run_files(path)))


def _run_files(path: Path) -> tuple[Path, Path]:
    return path.with_suffix(".keys.npy"), path.with_suffix(".sums.npy")


def _starts(keys: np.ndarray) -> np.ndarray:
    """Where a value differs from the one before."""
    differs = np.empty(len(keys), bool)
    differs[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=differs[1:])
    return np.flatnonzero(differs)


def _sorted(keys: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(keys, kind="stable")  # merges what is sorted in parts
    return keys[order], sums[order]


def _summed(keys: np.ndarray, sums: np.ndarray) -> Run:
    """One entry for every key of sorted ones."""
    starts = _starts(keys)
    total = np.add.reduceat(sums, starts) if len(starts) else sums
    return Run(keys[starts], total)
