"""From finished parts to rows, and what a reader must know beside them."""

import dataclasses
from collections.abc import Mapping

from experiments.common.rows import interval_row, summary_row
from experiments.delta_embedding.config import Measure
from experiments.delta_embedding.finished import Finished
from experiments.delta_embedding.paper import (
    PAPER,
    PAPER_QVEC,
    PAPER_SIMILARITY,
    stands_beside,
)
from experiments.delta_embedding.tuned import (
    ALIKE,
    FREQUENCY,
    LISTED,
    MOVED,
    NORM,
    QUERY,
    QVEC_CCA,
    THRESHOLD,
    ZERO,
    Table,
)
from jaxemb.analysis import delta
from jaxemb.train import results

ROW_NORM = "norm of the row of"
_TOP_ROWS = 20  # words that results keep


def described_config(run: Finished) -> dict:
    """The config with what a reader must know of the protocol."""
    config, task = run.config, run.task
    described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
    caveat = {
        "folds": f"folds share training {config.kind.examples}",
        "seeds": "seeds share one split: its sampling is not in the interval",
    }
    score = {"f1": "F1"}.get(config.kind.selects, config.kind.selects)
    notes = dict(task.notes)
    if config.kind.name != "sentiment":
        notes["trained_on"] = run.trained_on
    if run.measures_all:
        notes["intervals_of_changes"] = (
            f"both over the items of the test ({config.resamples} resamples of word "
            "pairs, a pair of several lists drawn with all of them, or a jackknife "
            f"over words) and over {config.protocol}: half-widths add by squares"
        )
        notes |= _neighbours(run)
    return {
        **described,
        "selection": f"test {score} at the first epoch of highest dev {score}",
        "interval": f"Student t over {config.parts} {config.protocol}, for claims over "
        f"paired differences; {caveat[config.protocol]}",
        "tokens_without_vector": {
            t.name: round(task.tokens_without_vector(t.words), 4) for t in run.tables
        },
        "commonest_without_vector": {
            t.name: ", ".join(
                f"{word} ({100 * share:.2f} %)"
                for word, share in task.commonest_without_vector(t.words).items()
            )
            for t in run.tables
        },
        "moved_means": "of the words in the training part, those whose delta is "
        f"longer than {THRESHOLD:g} of their base vector",
        "zero_means": "of the same words, those whose delta is 0 in every number, in "
        "the parameters themselves where an average is evaluated",
        **notes,
    }


def _neighbours(run: Finished) -> dict:
    """The neighbours of *not* before and after the shown arm, of part 0 (Table 5)."""
    if run.polarity is None:
        return {f"neighbours_of_{QUERY}": "left out: no polarity lexicon was at hand"}
    if run.shown_arm is None:
        return {}
    lists = {}
    for table in run.tables:
        shift = run.tuned.shift(table, run.tuned.rows(table, run.shown_arm, 0))
        if shift is not None:
            lists |= {
                f"{table.name}/untuned": _signed(shift.before),
                f"{table.name}/{run.shown_arm}": _signed(shift.after),
            }
    if not lists:
        return {}
    return {
        f"neighbours_of_{QUERY}": lists,
        "neighbours_are": "part 0, among the words of the task, with their polarity",
    }


def _signed(neighbours: tuple[delta.Neighbour, ...]) -> str:
    signs = {1: "+", -1: "-"}
    return " ".join(signs.get(n.side, "") + n.word for n in neighbours)


def rows(run: Finished) -> list[results.Row]:
    """The task's figures by arm, then how far tables moved, then intrinsic ones."""
    found = []
    for table in run.tables:
        main, *others = run.config.measures
        found += _score_rows(run, table, main)
        if chosen := run.chosen_on_dev(table):
            label = f"{table.name}/delta, c chosen on dev"
            found.append(summary_row(label, main.title, chosen))
        for measure in others:
            found += _score_rows(run, table, measure)
        found += [
            summary_row(
                f"{table.name}/{name}",
                f"epoch chosen, of {run.config.epochs}",
                run.chosen_epochs(table, name),
            )
            for name in run.config.arms
        ]
        found += _table_rows(run, table)
        if run.measures_all:
            found += _change_rows(run, table)
            found += word_rows(run, table)
    if run.task.classes:
        found += [
            summary_row("majority class", measure.title, run.of_majority(measure))
            for measure in run.config.measures
        ]
    return found


def _score_rows(run: Finished, table: Table, measure: Measure) -> list[results.Row]:
    printed = {}
    if stands_beside(run.config, run.task.data, table.data):
        printed = PAPER.get(run.config.task, {}).get(measure.title, {})
    return [
        summary_row(
            f"{table.name}/{name}",
            measure.title,
            run.scores(table, name, measure.score),
            published=printed.get(name),
            source=f"Table 1, {run.config.task}" if name in printed else None,
        )
        for name in run.config.arms
    ]


def _table_rows(run: Finished, table: Table) -> list[results.Row]:
    """What is measured of tables: the untuned one, then each arm's."""
    found = []
    before = run.tuned.untuned(table)
    of_arms = {name: run.tuned.tuned(table, name) for name in run.tuning_arms}
    averaged = run.measures_all and run.config.model.ema is not None
    raw = {
        f"{name}, not averaged": run.tuned.tuned(table, name, raw=True)
        for name in (run.tuning_arms if averaged else ())
    }
    only = (LISTED, ALIKE, FREQUENCY) if run.measures_all else ()
    untuned = {metric: [score] for metric, score in before.items()}
    for metric in (MOVED, ZERO, NORM, *only, *before):
        source, printed = _printed_of_tables(run, table, metric)
        for name, measured in {"untuned": untuned, **of_arms, **raw}.items():
            if metric in measured:
                found.append(
                    summary_row(
                        f"{table.name}/{name}",
                        metric,
                        measured[metric],
                        published=printed.get(name),
                        source=source if name in printed else None,
                    )
                )
    return found


def _printed_of_tables(
    run: Finished, table: Table, metric: str
) -> tuple[str, Mapping[str, float]]:
    """Tables 2 and 3, which are of the paper's BiDAF table only: source and figures."""
    own = run.config.kind.name == "reading" and run.tests.whole
    if own and stands_beside(run.config, run.task.data, table.data):
        if metric == QVEC_CCA:
            return "Table 2", PAPER_QVEC
        for name, printed in PAPER_SIMILARITY.items():
            if metric.startswith(f"Spearman on {name} ("):
                return f"Table 3, {name}", printed
    return "", {}


def _change_rows(run: Finished, table: Table) -> list[results.Row]:
    """Changes of intrinsic scores, with their intervals (Tables 2 and 3)."""
    return [
        interval_row(f"{table.name}/{name}", f"change of {test} (points)", gap)
        for name in run.tuning_arms
        for test, gap in run.tuned.gains(table, name).items()
    ]


def word_rows(run: Finished, table: Table) -> list[results.Row]:
    """The words that the shown arm moved most, and how far (Table 4)."""
    if run.shown_arm is None:
        return []
    norms = run.tuned.norms(table, run.shown_arm)
    words = run.task.vocab.words
    top = delta.norm_ranking(norms.mean(axis=1, keepdims=True), words, _TOP_ROWS)
    index = run.task.vocab.index
    metric = f"{ROW_NORM} {run.shown_arm}, {table.name}"
    return [summary_row(w.word, metric, norms[index[w.word]]) for w in top]
