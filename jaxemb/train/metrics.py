"""`metrics.jsonl`: a step and floats a line, every step once, resumed or not."""

import json
from collections.abc import Mapping
from typing import Any

from etils import epath

from jaxemb.errors import InputError

FILE = "metrics.jsonl"


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


class MetricsLog:
    """Appends lines; forgets, at the start, those of steps that will be taken again."""

    def __init__(
        self, workdir: epath.PathLike, resume_step: int, *, write: bool = True
    ):
        """Opens the file.

        Args:
          workdir: the run's folder.
          resume_step: lines of later steps are dropped.
          write: False in the processes that leave writing to the primary one.
        """
        self._path = epath.Path(workdir) / FILE
        self._write = write
        self.lines = [x for x in read_metrics(workdir) if x["step"] <= resume_step]
        self._pending = "".join(json.dumps(line) + "\n" for line in self.lines)
        self._started = False

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Adds a line; `flush` brings it to the file."""
        line = {"step": step, **values}
        self.lines.append(line)
        self._pending += json.dumps(line) + "\n"

    def flush(self) -> None:
        """Writes the lines that are not in the file yet."""
        if not self._write or (self._started and not self._pending):
            return
        # Object stores have no append, so there the whole file is written each time.
        local = "://" not in str(self._path)
        if self._started and local:
            with self._path.open("a") as file:
                file.write(self._pending)
        else:
            whole = "".join(json.dumps(line) + "\n" for line in self.lines)
            part = self._path.with_name(f".{FILE}.part")
            part.write_text(whole)
            part.replace(self._path)
        self._started = True
        self._pending = ""
