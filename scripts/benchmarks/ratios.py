"""What every comparison measures: seconds of both sides by turns, and their ratio."""

import statistics
import time
from collections.abc import Callable, Sequence


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def by_turns(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int
) -> list[tuple[float, float]]:
    """Seconds of both, again and again, so that both meet the same machine."""
    return [(seconds(ours), seconds(theirs)) for _ in range(repeats)]


def comparison(
    work: str,
    peer: str,
    pairs: Sequence[tuple[float, float]],
    target: float,
    note: str,
    *,
    rates: bool = False,
) -> dict:
    """A line of the table, from seconds of both sides; or from what each did in one."""
    ratios = [a / b if rates else b / a for a, b in pairs]
    return {
        "work": work,
        "peer": peer,
        "ratio": statistics.median(ratios),
        "low": min(ratios),
        "high": max(ratios),
        "target": target,
        "note": note,
    }
