"""Rows of results from values over seeds or folds."""

from collections.abc import Sequence

from jaxemb.eval import intervals
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
