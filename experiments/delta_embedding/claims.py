"""The paper's claims on a task, and what the finished parts say of each."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from experiments.delta_embedding.config import Measure, arm
from experiments.delta_embedding.finished import Finished
from experiments.delta_embedding.tuned import (
    LISTED,
    MOVED,
    POSITIVE,
    QUERY,
    QVEC_CCA,
    SIMILARITY,
    ZERO,
    Table,
)
from jaxemb.eval import intervals
from jaxemb.eval.intervals import Interval
from jaxemb.train.results import Claim


def judged(run: Finished) -> list[Claim]:
    """Every claim on every table."""
    found = []
    for table in run.tables:
        found += _on_the_task(run, table)
        found += _on_forms(run, table)
        found += _on_sparsity(run, table)
        if run.measures_all:
            found += _on_tables(run, table)
            for name in run.claimed_arms[:1]:
                found += _on_words(run, table, name)
    return found


def _on_the_task(run: Finished, table: Table) -> Iterator[Claim]:
    """Table 1, from paired differences over parts."""
    wanted = [(d, other) for d in run.claimed_arms for other in ("fixed", "finetune")]
    # In Table 1 tuning helps sentiment, and harms reading and inference.
    reads = run.config.kind.name != "sentiment"
    wanted.append(("fixed", "finetune") if reads else ("finetune", "fixed"))
    for measure in run.config.measures:
        for better, worse in wanted:
            if {better, worse} <= set(run.config.arms):
                yield _beats(run, table, better, worse, measure)
    if {"fixed", "finetune"} <= set(run.config.arms):
        for name in run.claimed_arms[:1]:
            yield _beats_both(run, table, name)
    chosen = run.chosen_on_dev(table)
    for worse in ("fixed", "finetune"):
        if chosen and worse in run.config.arms:
            label = "delta with c chosen on dev"
            yield _beats(run, table, label, worse, run.config.measures[0], chosen)


def _beats_both(run: Finished, table: Table, name: str) -> Claim:
    """Against the one of higher mean, in favour of which chance has chosen."""
    main = run.config.measures[0]
    other = max(
        ("fixed", "finetune"),
        key=lambda n: float(np.mean(run.scores(table, n, main.score))),
    )
    gap = _beats(run, table, name, other, main)
    about = gap.claim.removeprefix(f"{name} beats {other}")
    return dataclasses.replace(
        gap,
        claim=f"{name} is at least the better of fixed and finetune{about}",
        evidence=f"which is {other}: {gap.evidence}",
    )


def _on_forms(run: Finished, table: Table) -> Iterator[Claim]:
    """The proximal step against the penalty in the loss; the paper has the latter."""
    for name in run.prox_arms:
        if arm(name).other_form in run.config.arms:
            main = run.config.measures[0]
            yield _beats(run, table, name, arm(name).other_form, main)


def _beats(
    run: Finished,
    table: Table,
    better: str,
    worse: str,
    measure: Measure,
    scores: Sequence[float] | None = None,
) -> Claim:
    if scores is None:
        scores = run.scores(table, better, measure.score)
    gap = intervals.paired_t(scores, run.scores(table, worse, measure.score))
    several = len(run.config.measures) > 1
    what = f", {measure.title.removesuffix(' (%)')}" if several else ""
    return Claim(
        claim=f"{better} beats {worse} on {run.config.task}{what} ({table.name})",
        verdict=intervals.verdict(gap.low, gap.high),
        evidence=f"paired difference {gap.mean:+.2f} points [{gap.low:.2f}, "
        f"{gap.high:.2f}], {run.evidence}",
    )


def _on_sparsity(run: Finished, table: Table) -> Iterator[Claim]:
    """Judged on the proximal form where it was run: the penalty leaves no zeros."""
    for name in run.prox_arms or run.claimed_arms:
        moved = intervals.t_interval(run.tuned.tuned(table, name)[MOVED])
        yield Claim(
            claim=f"{name} leaves the majority of words intact ({table.name})",
            verdict=intervals.verdict(50 - moved.high, 50 - moved.low),
            evidence=f"{moved.mean:.1f} % [{moved.low:.1f}, {moved.high:.1f}] of the "
            f"words trained on moved, {run.evidence}",
        )
    for name in run.prox_arms:
        zero = intervals.t_interval(run.tuned.tuned(table, name)[ZERO])
        yield Claim(
            claim=f"{name} leaves most rows exactly at zero ({table.name})",
            verdict=intervals.verdict(zero.low - 50, zero.high - 50),
            evidence=f"{zero.mean:.1f} % [{zero.low:.1f}, {zero.high:.1f}] of the rows "
            f"of words trained on, {run.evidence}",
        )


def _on_tables(run: Finished, table: Table) -> Iterator[Claim]:
    """Tables 2 and 3: what tuning does to the table itself."""
    for name in run.claimed_arms[:1]:
        gains = run.tuned.gains(table, name)
        for test in (SIMILARITY, QVEC_CCA):
            if test in gains:
                yield _changes(run, f"{name} raises {test}", table, gains[test])
    if "finetune" not in run.config.arms:
        return
    lowered = run.tuned.gains(table, "finetune").get(QVEC_CCA)
    if lowered is not None:
        claim = f"finetune lowers {QVEC_CCA}"
        yield _changes(run, claim, table, lowered, lowers=True)
    for name in run.claimed_arms[:1]:
        over = run.tuned.gains(table, name, "finetune")
        if SIMILARITY in over:
            claim = f"{name} beats finetune: {SIMILARITY}"
            yield _changes(run, claim, table, over[SIMILARITY])


def _changes(
    run: Finished, claim: str, table: Table, gap: Interval, *, lowers: bool = False
) -> Claim:
    where = table.name
    if run.config.kind.name != "reading":
        where += "; the paper's Tables 2 and 3 are of its BiDAF table only"
    return Claim(
        claim=f"{claim} ({where})",
        verdict=intervals.verdict(
            *((-gap.high, -gap.low) if lowers else (gap.low, gap.high))
        ),
        evidence=f"change of {gap.mean:+.3f} points [{gap.low:.3f}, {gap.high:.3f}] "
        f"over the items of the tests and {run.evidence}",
    )


def _on_words(run: Finished, table: Table, name: str) -> Iterator[Claim]:
    """Tables 4 and 5: which words moved, and away from what."""
    measured = run.tuned.tuned(table, name)
    if LISTED in measured:
        area = run.tuned.among_alike(table, name)
        plain = float(np.mean(measured[LISTED]))
        yield Claim(
            claim=f"the words of the paper's Table 4 move farther than others of like "
            f"frequency under {name} ({table.name})",
            verdict=intervals.verdict(area.low - 0.5, area.high - 0.5),
            evidence=f"farther than {area.mean:.3f} [{area.low:.3f}, {area.high:.3f}] "
            f"of the 20 words of nearest frequency, over the words and "
            f"{run.evidence}; area under ROC among all words {plain:.3f}",
        )
    before = run.tuned.untuned(table).get(POSITIVE)
    if before is not None and POSITIVE in measured:
        fewer = intervals.t_interval([before - x for x in measured[POSITIVE]])
        yield Claim(
            claim=f"{name} leaves fewer positive words around “{QUERY}” ({table.name})",
            verdict=intervals.verdict(fewer.low, fewer.high),
            evidence=f"{fewer.mean:+.1f} points fewer [{fewer.low:.1f}, "
            f"{fewer.high:.1f}] of the ten nearest polar words, {run.evidence}",
        )
