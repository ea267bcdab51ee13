"""What a run shows and exports: figures, printed tables, tuned tables."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from etils import epath

from experiments.common.rows import print_claims, print_side_by_side
from experiments.delta_embedding.analyse import ROW_NORM, word_rows
from experiments.delta_embedding.config import Config
from experiments.delta_embedding.finished import Finished
from experiments.delta_embedding.tuned import MOVED, QUERY, Table
from jaxemb import terminal
from jaxemb.analysis import delta, figures, geometry
from jaxemb.data.vectors import write_word_vectors
from jaxemb.train import results

_TOP = 15


def write_figures(run: Finished) -> None:
    """Delta norms and the neighbours of *not*, for part 0, beside the curves."""
    shown = run.shown_arm
    if shown is None:
        return
    for table in run.tables:
        folder = run.workdir / "figures"
        histogram = delta.norm_histogram(run.tuned.change(table, shown, 0))
        figures.save(
            figures.norm_histogram(histogram),
            folder / f"{table.name}-delta-norms.svg",
            f"How far {shown} moved each word of {table.name}, part 0.",
        )
        if run.measures_all:
            _write_more_figures(run, table, shown, folder)
        shift = run.tuned.shift(table, run.tuned.rows(table, shown, 0))
        if shift is None:
            continue
        polar = any(n.side for n in (*shift.before, *shift.after))
        kind = "Polar neighbours, by a lexicon," if polar else "Neighbours"
        figures.save(
            figures.neighbour_shift(shift),
            folder / f"{table.name}-neighbours.svg",
            f"{kind} of “{QUERY}” among the task's words before and after {shown}, "
            "part 0.",
        )


def _write_more_figures(
    run: Finished, table: Table, shown: str, folder: epath.Path
) -> None:
    words = [dataclasses.asdict(row) for row in word_rows(run, table)]
    figures.save(
        figures.intervals(words, f"words that {shown} moved most"),
        folder / f"{table.name}-moved-words.svg",
        f"Norms of the rows of {shown}, mean over {run.evidence}, with 95 % intervals.",
    )
    for name in run.tuning_arms:
        figures.save(
            geometry.benchmark_differences(run.tuned.gains(table, name)),
            folder / f"{table.name}-{name}-intrinsic.svg",
            f"Intrinsic scores of {name} less those of the untuned {table.name}, with "
            f"95 % intervals over the tests' items and {run.config.protocol}.",
        )


def export(run: Finished) -> list[Path]:
    """Writes the tuned tables of part 0; where averaged, those not averaged too."""
    folder = Path(run.workdir) / "tables"
    written = []
    kinds = {"": False}
    if run.config.model.ema is not None:
        kinds["-raw"] = True
    for table in run.tables:
        for name in run.tuning_arms:
            for suffix, raw in kinds.items():
                rows = run.tuned.rows(table, name, 0, raw=raw)
                path = folder / f"{table.name}-{name}{suffix}.safetensors"
                write_word_vectors(path, run.tuned.whole(table, rows))
                written.append(path)
    return written


def print_moved_words(run: Finished) -> None:
    """The words that the shown arm moved most."""
    shown = run.shown_arm
    for table in run.tables if shown else ():
        change = run.tuned.change(table, shown, 0)
        top = delta.norm_ranking(change, run.task.vocab.words, _TOP)
        moved = " ".join(ranked.word for ranked in top)
        print(f"words with the largest {shown} of {table.name}: {moved}")


def print_tables(
    config: Config, rows: Sequence[results.Row], claims: Sequence[results.Claim]
) -> None:
    """The task's figures and moved rows a line each, then intrinsic ones together."""
    alone = [*(measure.title for measure in config.measures), MOVED]
    for metric in alone:
        shown = [_cells(row) for row in rows if row.metric == metric]
        terminal.print_table(shown, right=(metric, "95 % interval", "published"))
        print()
    tables = [
        row
        for row in rows
        if row.metric not in alone and not row.metric.startswith(ROW_NORM)
    ]
    print_side_by_side(tables)
    print_claims(claims)


def _cells(row: results.Row) -> dict[str, str]:
    low_high = "–" if row.interval is None else "{:.2f} … {:.2f}".format(*row.interval)
    return {
        "": row.name,
        row.metric: f"{row.measured:.2f}",
        "95 % interval": low_high,
        "published": "–" if row.published is None else f"{row.published:.2f}",
    }
