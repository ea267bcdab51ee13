"""What commands print: tables for people, aligned text for pipes, JSON for programs."""

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_NARROW = 140  # columns of a terminal


@contextlib.contextmanager
def until_the_reader_leaves() -> Iterator[None]:
    """Ends the program quietly, as `cat` does, where `head` has read enough of it."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def print_table(
    rows: Sequence[Mapping[str, str]],
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    below: Sequence[str] = (),
) -> None:
    """Prints rows of the same columns: drawn on a terminal, aligned in a pipe.

    Args:
      rows: column to cell; the first row names the columns and their order.
      right: the columns that are aligned right.
      whole: the columns whose cells a narrow terminal does not break into lines.
      below: the columns that a narrow terminal shows under the last of the others.
    """
    if not rows:
        return
    heads = list(rows[0])
    if sys.stdout.isatty():
        return _draw(heads, rows, right, whole, below)
    lines = [heads, *([row[head] for head in heads] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    for line in lines:
        cells = [
            cell.rjust(width) if head in right else cell.ljust(width)
            for cell, width, head in zip(line, widths, heads, strict=True)
        ]
        print("  ".join(cells).rstrip())


def print_json(rows: Iterable[Mapping[str, Any]]) -> None:
    """Prints one object a line; nan and infinity, which JSON lacks, become null."""
    for row in rows:
        print(json.dumps(_finite(row), ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Prints an explanation to standard error, where it does not disturb a pipe."""
    print(text, file=sys.stderr)


def file_size(size: int) -> str:
    """A number of bytes as people read it: `85.3 MB`."""
    value = float(size)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def _draw(
    heads: Sequence[str],
    rows: Sequence[Mapping[str, str]],
    right: Sequence[str],
    whole: Sequence[str],
    below: Sequence[str],
) -> None:
    from rich import box, console, table, text  # only a terminal pays for rich

    screen = console.Console()
    if below and screen.width < _NARROW:
        heads = [head for head in heads if head not in below]
        rows = [
            {**row, heads[-1]: "\n".join([row[heads[-1]], *(row[b] for b in below)])}
            for row in rows
        ]
    drawn = table.Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for head in heads:
        at = "right" if head in right else "left"
        drawn.add_column(
            text.Text(head), justify=at, overflow="fold", no_wrap=head in whole
        )
    for row in rows:
        drawn.add_row(*(text.Text(row[head]) for head in heads))
    screen.print(drawn)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(child) for child in value]
    return value
