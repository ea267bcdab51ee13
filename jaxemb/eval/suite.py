"""`jaxemb eval`: every intrinsic test whose data are here, on one table or several."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from jaxemb import terminal
from jaxemb.data.vectors import WordVectors
from jaxemb.eval.kinds import Test
from jaxemb.eval.settings import Settings

_SAMPLE = 1000  # words whose neighbours are compared


def run(
    names: Sequence[str],
    tables: Sequence[WordVectors],
    tests: Sequence[Test],
    settings: Settings,
    *,
    neighbours: bool = False,
    json: bool = False,
) -> None:
    """Scores every table on every test and prints scores, then differences.

    Args:
      names: what the tables are called.
      tables: the tables; differences are to the first.
      tests: in the order in which they are printed.
      settings: of the run.
      neighbours: whether to compare the neighbours that words have in the tables.
      json: print one object a line instead of tables.
    """
    several = len(tables) > 1
    how = settings.bootstrap
    lines: dict[str, list[dict[str, str]]] = {}  # kind to the rows of its table
    zero_rows = tied = 0
    for test in tests:
        outcomes = [test.score(table, settings, tables) for table in tables]
        for name, outcome in zip(names, outcomes, strict=True):
            zero_rows = max(zero_rows, outcome.fields.get("zero_rows", 0))
            tied = max(tied, outcome.fields.get("tied", 0))
            head = {"test": test.kind, "vectors": name, "set": test.name}
            _put(lines, head, outcome.fields | how, outcome.cells, several, json)
            running = outcome.fields.get("cumulative", ())
            cells = [{k: _text(v) for k, v in row.items()} for row in running]
            _put(lines, head | {"test": "cumulative"}, None, cells, several, json)
        pairs = list(zip(names, tables, outcomes, strict=True))
        for name, table, outcome in pairs[1:]:
            both = (table, tables[0]), (outcome, outcomes[0])
            for found in test.compare(settings, *both):
                head = {"test": "difference", "vectors": name, "less": names[0]}
                head |= {"of": test.kind, "set": test.name}
                fields = {**dataclasses.asdict(found), **settings.look_up}
                _put(lines, head, fields | how, [found.cells()], several, json)
    if neighbours:
        _compare_neighbours(names, tables, settings, lines, json)
    kinds = sorted(lines, key=("difference", "neighbours").__contains__)  # these last
    for place, kind in enumerate(kinds):
        if place:
            print()
        terminal.print_table(lines[kind], right=_NUMBERS)
    if zero_rows and not json:
        terminal.say(
            f"Up to {zero_rows} words of a set have a zero row; they count as missing, "
            "but for QVEC, where they are rows like any other."
        )
    if tied and not json:
        terminal.say(
            f"Up to {tied} questions of a set have several best words; they count as "
            "wrong."
        )


_NUMBERS = (
    *("spearman", "95 % interval", "pearson", "covered", "accuracy", "maxdiff", "cca"),
    *("its interval", "qvec", "mean", "first", "purity", "best", "difference"),
    *("one cluster", "jaccard", "overlap@10", "common", "total", "words", "seeds"),
    *("clusters", "relations", "semantic", "syntactic"),
)


def _put(
    lines: dict[str, list[dict[str, str]]],
    head: dict[str, str],
    fields: dict[str, Any] | None,
    cells: Iterable[dict[str, str]],
    several: bool,
    json: bool,
) -> None:
    if json:
        return terminal.print_json([] if fields is None else [head | fields])
    shown = {k: v for k, v in head.items() if k not in ("test", "vectors")}
    shown |= {"vectors": head["vectors"]} if several else {}
    for row in cells:
        lines.setdefault(head["test"], []).append(shown | row)


def _compare_neighbours(names, tables, settings: Settings, lines, json: bool) -> None:
    from jaxemb.eval import neighbours  # jax

    how = settings.bootstrap
    for name, table in list(zip(names, tables, strict=True))[1:]:
        found = neighbours.neighbour_overlap(
            table, tables[0], sample=_SAMPLE, first_rows=settings.first_rows, **how
        )
        head = {"test": "neighbours", "vectors": name, "with": names[0]}
        fields = dataclasses.asdict(found) | {"interval": "bootstrap over words"} | how
        _put(lines, head, fields, [found.cells()], True, json)


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3f}"
