"""`metrics.jsonl`: a step and floats a line, every step once, resumed or not."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from etils import epath

from jaxemb import storage
from jaxemb.errors import InputError

FILE = "metrics.jsonl"


class Mean(NamedTuple):
    """A metric of a step as sum and count: steps of unequal size add up exactly.

    A step that counts nothing has no such metric, and a line of steps that all count
    nothing has none either.
    """

    total: Any  # float scalar
    count: Any  # float scalar


def read_metrics(workdir: epath.PathLike) -> list[dict[str, Any]]:
    """The lines of a run's metrics file, in order; a torn last line is left out."""
    path = epath.Path(workdir) / FILE
    if not path.exists():
        return []
    lines = []
    for number, line in enumerate(path.read_text().splitlines(keepends=True), 1):
        if not line.endswith("\n"):
            break
        try:
            lines.append(json.loads(line))
            whole = isinstance(lines[-1]["step"], int)
        except (ValueError, TypeError, KeyError):
            whole = False
        if not whole:
            raise InputError.at(path, number, "expected a JSON object with a step")
    return lines


def evaluations(workdir: epath.PathLike, score: str) -> list[dict[str, Any]]:
    """The lines that tell a score, in order."""
    return [line for line in read_metrics(workdir) if score in line]


def best_evaluation(workdir: epath.PathLike, score: str) -> dict[str, Any]:
    """The first line of the highest score, as `fit(keep_best=score)` keeps it."""
    return max(evaluations(workdir, score), key=lambda line: line[score])


class MetricsLog:
    """Appends lines; forgets, at the start, those that will be written again."""

    def __init__(self, workdir: epath.PathLike, lines: int, *, write: bool = True):
        """Opens the file.

        Args:
          workdir: the run's folder.
          lines: how many the checkpoint that the run goes on from knows; those after
            them are dropped.
          write: False in the processes that leave writing to the primary one.
        """
        self._path = epath.Path(workdir) / FILE
        self.lines = read_metrics(workdir)[:lines]
        # Object stores have no append, so there `flush` writes the whole file again.
        self._append = write and storage.is_local(workdir)
        self._rewrite = write and not self._append
        if write:
            self._write_all()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Adds a line."""
        self.lines.append({"step": step, **values})
        if self._append:
            with self._path.open("a") as file:
                file.write(_text(self.lines[-1]))

    def flush(self) -> None:
        """Returns when every line is where a restart will find it."""
        if self._rewrite:
            self._write_all()

    def _write_all(self) -> None:
        storage.write_text(self._path, "".join(map(_text, self.lines)))


def _text(line: Mapping[str, Any]) -> str:
    return json.dumps(line) + "\n"
