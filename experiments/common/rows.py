"""Rows of results from values over seeds or folds, and how they are printed."""

from collections.abc import Sequence

from jaxemb import terminal
from jaxemb.eval import intervals
from jaxemb.eval.intervals import Interval
from jaxemb.train import results


def summary_row(
    name: str,
    metric: str,
    values: Sequence[float],
    *,
    published: float | None = None,
    source: str | None = None,
) -> results.Row:
    """One figure: the mean of its values, with its interval, rounded to be read."""
    values = tuple(round(float(v), 4) for v in values)
    interval = intervals.t_interval(values)
    bounds = (round(interval.low, 4), round(interval.high, 4))
    return results.Row(
        name=name,
        metric=metric,
        measured=round(interval.mean, 4),
        values=values,
        interval=bounds if interval.known else None,
        published=published,
        source=source,
    )


def interval_row(name: str, metric: str, value: Interval) -> results.Row:
    """One figure with an interval of its own, as over the items of a test."""
    measured = round(value.mean, 4)
    bounds = (round(value.low, 4), round(value.high, 4)) if value.known else None
    return results.Row(
        name=name, metric=metric, measured=measured, values=(measured,), interval=bounds
    )


def print_side_by_side(rows: Sequence[results.Row]) -> None:
    """A line a metric, a column a system."""
    names = list(dict.fromkeys(row.name for row in rows))
    cells = {(row.metric, row.name): f"{row.measured:,.4g}" for row in rows}
    metrics = dict.fromkeys(row.metric for row in rows)
    terminal.print_table(
        [{"": m, **{n: cells.get((m, n), "–") for n in names}} for m in metrics],
        right=names,
    )
    print()


def print_by_system(rows: Sequence[results.Row], metrics: Sequence[str]) -> None:
    """A line a system, a column for each of some metrics."""
    names = dict.fromkeys(row.name for row in rows if row.metric in metrics)
    cells = {(row.name, row.metric): f"{row.measured:.2f}" for row in rows}
    terminal.print_table(
        [{"": n, **{m: cells.get((n, m), "–") for m in metrics}} for n in names],
        right=list(metrics),
    )
    print()


def print_claims(claims: Sequence[results.Claim]) -> None:
    """A line a claim: the verdict, the claim, the evidence."""
    for claim in claims:
        print(f"{claim.verdict}: {claim.claim}; {claim.evidence}")
