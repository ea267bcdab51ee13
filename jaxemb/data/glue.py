"""The reader of GLUE's official files (Wang et al. 2019), and of RTE as a CSV."""

import csv
import dataclasses
import io
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from jaxemb.data import files
from jaxemb.data.files import Location
from jaxemb.data.text import parse_label, tsv_rows
from jaxemb.errors import InputError

_BINARY = {"0": 0, "1": 1}
_ENTAILED = {"entailment": 0, "not_entailment": 1}
_LARGEST = 5.0  # score of STS-B


class GlueExample(NamedTuple):
    """A sentence or two, and the class or the score."""

    first: str
    second: str | None
    """None in the tasks of single sentences."""
    label: float
    """A class, counted from 0; in STS-B a score from 0 to 5."""


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """Where the files of a task have what."""

    columns: tuple[str | int, ...]
    """Of the sentences, then of the label."""
    classes: Mapping[str, int] | None
    """None: the label is a score."""
    header: bool = True

    @property
    def pairs(self) -> bool:
        """Whether an example has two sentences."""
        return len(self.columns) == 3


GLUE_TASKS: Mapping[str, GlueTask] = {
    "cola": GlueTask((3, 1), _BINARY, header=False),
    "sst-2": GlueTask(("sentence", "label"), _BINARY),
    "mrpc": GlueTask(("#1 String", "#2 String", "Quality"), _BINARY),
    "sts-b": GlueTask(("sentence1", "sentence2", "score"), None),
    "qqp": GlueTask(("question1", "question2", "is_duplicate"), _BINARY),
    "mnli": GlueTask(
        ("sentence1", "sentence2", "gold_label"),
        {"entailment": 0, "neutral": 1, "contradiction": 2},
    ),
    "qnli": GlueTask(("question", "sentence", "label"), _ENTAILED),
    "rte": GlueTask(("sentence1", "sentence2", "label"), _ENTAILED),
}


def read_glue(task: str, path: Location) -> list[GlueExample]:
    """Reads the training or development file of a task; test files have no labels.

    Tab-separated without quoting, as GLUE has them; a `.csv` with the columns premise,
    hypothesis and label is read as pairs of RTE.

    Raises:
      InputError: with file and line, also where there is no example.
    """
    examples = list(glue_lines(task, path))
    if not examples:
        raise InputError(f"{path}: expected examples of {task}, found none")
    return examples


def glue_lines(task: str, path: Location) -> Iterator[GlueExample]:
    """The examples of a file, one after the other."""
    if task not in GLUE_TASKS:
        raise InputError(f"no task {task!r} of GLUE; there are {', '.join(GLUE_TASKS)}")
    shape = GLUE_TASKS[task]
    if ".csv" in files.resolve(path).name:
        rows = _csv_rows(path)
    else:
        rows = tsv_rows(path, shape.columns, header=shape.header)
    for number, (*texts, label) in rows:
        value = _label(shape, label, path, number)
        yield GlueExample(texts[0], texts[1] if len(texts) > 1 else None, value)


def _label(shape: GlueTask, field: str, path: Location, number: int) -> float:
    if shape.classes is not None:
        return float(parse_label(field, path, number, shape.classes))
    try:
        score = float(field)
    except ValueError:
        score = -1.0
    if not 0 <= score <= _LARGEST:
        problem = f"expected a score from 0 to 5, found {field[:40]!r}"
        raise InputError.at(str(path), number, problem)
    return score


def _csv_rows(path: Location) -> Iterator[tuple[int, list[str]]]:
    with files.open_bytes(path) as stream:
        lines = io.TextIOWrapper(cast(io.BytesIO, stream), "utf-8-sig", newline="")
        try:
            rows = csv.reader(lines, strict=True)
            header = ["premise", "hypothesis", "label"]
            if next(rows, None) != header:
                problem = f"expected a header {','.join(header)}"
                raise InputError.at(str(path), 1, problem)
            for row in rows:
                if len(row) != len(header):
                    problem = f"expected 3 columns, found {len(row)}"
                    raise InputError.at(str(path), rows.line_num, problem)
                yield rows.line_num, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not valid CSV in UTF-8 ({error})") from error
        finally:
            lines.detach()
