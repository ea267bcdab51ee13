"""Parameters of any checkpoint as a table, without the code of the model."""

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from etils import epath

from jaxemb import axes, storage
from jaxemb.errors import InputError
from jaxemb.train import checkpoints, metrics

WORDS_FILE = "words.txt"

_WORDS_ABOVE = 8  # folders: root/table/arm/fold/checkpoints/step, and some to spare
_BLOCK = 1 << 20  # entries looked at at once


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One array of a parameter tree."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    count: int
    norm: float  # Euclidean, of all entries
    largest: float  # largest absolute value; nan if any entry is
    sparsity: float  # share of exact zeros
    zero_rows: int | None  # rows along the last axis that are all zero; None below 2-D

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return {**dataclasses.asdict(self), "shape": list(self.shape)}

    def cells(self) -> dict[str, str]:
        """The fields as the columns of a printed table."""
        return {
            "array": self.path,
            "shape": "×".join(map(str, self.shape)) or "scalar",
            "type": self.dtype,
            "entries": f"{self.count:,}",
            "norm": f"{self.norm:.4g}",
            "largest": f"{self.largest:.4g}",
            "zeros": f"{self.sparsity:.1%}",
            "zero rows": "-" if self.zero_rows is None else f"{self.zero_rows:,}",
        }


@dataclasses.dataclass(frozen=True)
class Run:
    """One run below a folder."""

    path: str  # below the folder
    step: int | None  # of its last metrics
    checkpoint: str | None  # name of its newest checkpoint, which is the step
    last: dict[str, Any]  # newest value of every metric; not always a number
    problem: str | None = None  # why its metrics cannot be read

    def cells(self) -> dict[str, str]:
        """The fields as the columns of a printed table."""
        last = "  ".join(f"{k} {_short(v)}" for k, v in self.last.items())
        return {
            "run": self.path,
            "step": "-" if self.step is None else str(self.step),
            "checkpoint": self.checkpoint or "-",
            "last": last if self.problem is None else "damaged",
        }


class NamedTable(NamedTuple):
    """An embedding table with its words."""

    path: str
    matrix: np.ndarray
    words: tuple[str, ...]


def leaves(tree: Any, prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yields `path/of/keys` and array of every leaf of nested dicts and lists."""
    if isinstance(tree, Mapping):
        children = [(str(key), child) for key, child in tree.items()]
    elif isinstance(tree, list | tuple):
        children = [(str(i), child) for i, child in enumerate(tree)]
    elif tree is None:
        return
    else:
        yield prefix, np.asarray(tree)
        return
    for key, child in children:
        yield from leaves(child, f"{prefix}/{key}" if prefix else key)


def parameters(tree: Any) -> list[Parameter]:
    """Describes every array of a parameter tree, in the order of the tree."""
    return [_describe(path, leaf) for path, leaf in leaves(tree)]


def embedding_table(
    tree: Any, words: Sequence[str], path: str | None = None
) -> NamedTable:
    """The table of a tree that belongs to `words`.

    Args:
      tree: parameters, as `train.checkpoints.load_params` gives them.
      words: one a row.
      path: of the table in the tree; paths joined by `+` are added, which is how a
        tuned table is got from a frozen one and its delta. Where not given, the only
        table with a row a word, or the sum of the only two if they are a base and its
        delta. Of seeds trained together the first is taken. Where no table has just a
        row a word, those are cut whose other rows only fill up for devices to share
        them (`axes.filled_rows`).
    """
    arrays = {
        p: x[0] if x.ndim == 3 and x.shape[1] == len(words) else x
        for p, x in leaves(tree)
    }
    fitting = [p for p, x in arrays.items() if x.ndim == 2 and len(x) == len(words)]
    if not fitting:
        arrays = {p: _without_filling(x, len(words)) for p, x in arrays.items()}
        fitting = [p for p, x in arrays.items() if x.ndim == 2 and len(x) == len(words)]
    if path is None:
        if _is_base_and_delta(fitting):
            path = "+".join(sorted(fitting))
        elif len(fitting) != 1:
            what = f"choose one of {', '.join(fitting)}" if fitting else "name one"
            raise InputError(
                f"--table: {len(fitting)} arrays have a row for each of the "
                f"{len(words)} words; {what} (A+B adds two)"
            )
        else:
            path = fitting[0]
    parts = path.split("+")
    for part in parts:
        if part not in arrays:
            raise InputError(
                f"--table: there is no {part}; expected one of {', '.join(arrays)}"
            )
        if part not in fitting:
            shape = "x".join(map(str, arrays[part].shape))
            raise InputError(
                f"--table: {part} is {shape}, which is not a row for each of the "
                f"{len(words)} words"
            )
    shapes = {arrays[part].shape for part in parts}
    if len(shapes) > 1:
        raise InputError(f"--table: {path} adds arrays of unequal shape")
    matrix = sum(arrays[part].astype(np.float32) for part in parts)
    return NamedTable(path, np.asarray(matrix), tuple(words))


def delta_table(tree: Any, words: Sequence[str], path: str | None = None) -> NamedTable:
    """The correction of a table that belongs to `words`.

    Args:
      tree: parameters, as `train.checkpoints.load_params` gives them.
      words: one a row.
      path: of the array in the tree; where not given, the only one named `delta`.
    """
    if path is None:
        deltas = [p for p, _ in leaves(tree) if p.split("/")[-1] == "delta"]
        if len(deltas) != 1:
            what = f"choose one of {', '.join(deltas)}" if deltas else "name one"
            raise InputError(
                f"--table: {len(deltas)} arrays are named delta, which a delta "
                f"embedding has; {what}"
            )
        path = deltas[0]
    return embedding_table(tree, words, path)


def find_words(path: epath.PathLike) -> tuple[str, ...] | None:
    """The words of a run's tables: the first `words.txt` at or above a path.

    So a checkpoint finds the list of its run, and a fold that of the whole experiment.
    """
    folder = epath.Path(os.path.abspath(path) if storage.is_local(path) else path)
    for place in [folder, *list(folder.parents)[:_WORDS_ABOVE]]:
        file = place / WORDS_FILE
        if file.exists():
            return tuple(read_text(file).removesuffix("\n").split("\n"))
    return None


def read_text(path: epath.Path) -> str:
    """The text of a file in a run's folder."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not valid UTF-8") from error


def newest_checkpoint(path: epath.PathLike) -> epath.Path | None:
    """The newest checkpoint of a run, or the path itself if it is one."""
    try:
        return checkpoints.find(path)
    except InputError:
        return None


def history(run: epath.PathLike) -> list[dict[str, Any]]:
    """The metric lines of a run; an InputError names a file that is not JSON lines."""
    try:
        return metrics.read_metrics(run)
    except InputError:
        raise
    except ValueError as error:
        place = epath.Path(run) / metrics.FILE
        raise InputError(f"{place}: not JSON lines: {error}") from error


def runs(root: epath.PathLike) -> list[Run]:
    """Every run at or below a folder, with its last metrics or what is wrong."""
    root = epath.Path(root)
    found = []
    for run in checkpoints.runs_below(root):
        last: dict[str, Any] = {}
        problem = None
        try:
            for line in history(run):
                last.update(line)
        except InputError as error:
            problem = str(error)
        step = last.pop("step", None)
        place = newest_checkpoint(run)
        found.append(
            Run(
                path=run.relative_to(root).as_posix(),
                step=None if step is None else int(step),
                checkpoint=place.name if place else None,
                last=last,
                problem=problem,
            )
        )
    return found


def newest(root: epath.PathLike) -> epath.Path | None:
    """The run at or below `root` whose newest checkpoint was written last."""
    found = []
    for run in checkpoints.runs_below(root):
        if place := newest_checkpoint(run):
            found.append((place.stat().mtime or 0, str(run), run))
    return max(found)[2] if found else None


def _without_filling(array: np.ndarray, rows: int) -> np.ndarray:
    """The first rows, if all others are there to fill up; else the array as it is."""
    filled = array.ndim == 2 and len(array) == axes.filled_rows(rows) > rows
    return array[:rows] if filled and not array[rows:].any() else array


def _is_base_and_delta(paths: Sequence[str]) -> bool:
    """Whether these are `base` and `delta` of one module, in any two collections."""
    names = sorted(path.split("/")[1:] for path in paths)
    if len(names) != 2 or not all(names):
        return False
    (*owner, first), (*other, second) = names
    return owner == other and (first, second) == ("base", "delta")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _describe(path: str, leaf: np.ndarray) -> Parameter:
    width = max(1, leaf.shape[-1]) if leaf.ndim >= 2 else 1
    rows = leaf.reshape(-1, width) if leaf.size else np.zeros((0, 1))
    squares, largest, zeros, zero_rows = 0.0, 0.0, 0, 0
    block = max(1, _BLOCK // width)
    for start in range(0, len(rows), block):  # a large table is never copied whole
        part = rows[start : start + block].astype(np.float64)
        squares += float(np.sum(part * part))
        largest = float(np.maximum(largest, np.max(np.abs(part))))  # keeps a nan
        zeros += int(np.sum(part == 0))
        zero_rows += int(np.sum(~np.any(part, axis=1)))
    return Parameter(
        path=path,
        shape=tuple(leaf.shape),
        dtype=str(leaf.dtype),
        count=leaf.size,
        norm=math.sqrt(squares),
        largest=largest,
        sparsity=zeros / max(1, leaf.size),
        zero_rows=zero_rows if leaf.ndim >= 2 else None,
    )
