"""From finished parts to rows, verdicts, figures and the printed tables."""

import dataclasses
import functools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from etils import epath

from experiments.common.rows import (
    interval_row,
    print_claims,
    print_side_by_side,
    summary_row,
)
from experiments.delta_embedding import data
from experiments.delta_embedding.config import PAPER, Config, Measure, arm
from experiments.delta_embedding.task import Task
from experiments.delta_embedding.tuned import (
    ALIKE,
    FREQUENCY,
    LISTED,
    MOVED,
    POSITIVE,
    QUERY,
    QVEC_CCA,
    THRESHOLD,
    Table,
    TunedTables,
)
from jaxemb import terminal, train
from jaxemb.analysis import delta, figures, geometry
from jaxemb.data import sources
from jaxemb.data.vectors import write_word_vectors
from jaxemb.eval import intervals
from jaxemb.eval.intervals import Interval
from jaxemb.train import results

OTHERS = "others.json"  # scores of the best epoch on the sets that wait for the end
_TOP = 15
_TOP_ROWS = 20  # words that results keep
_SIMILARITY = "mean similarity"


def best_epoch(folder: epath.Path, score: str) -> dict[str, float]:
    """The evaluation whose dev score is the first highest, with those made later."""
    best = train.best_evaluation(folder, f"dev/{score}")
    others = folder / OTHERS
    return {**best, **(json.loads(others.read_text()) if others.exists() else {})}


def described_config(config: Config, task: Task, tables: Sequence[Table]) -> dict:
    """The config with what a reader must know of the protocol."""
    missing = {t.name: round(task.tokens_without_vector(t.words), 4) for t in tables}
    described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
    caveat = {
        "folds": f"folds share training {config.kind.examples}",
        "seeds": "seeds share one split: its sampling is not in the interval",
    }
    score = {"f1": "F1"}.get(config.kind.selects, config.kind.selects)
    notes = dict(task.notes)
    if config.kind.name != "sentiment":
        notes["trained_on"] = _trained_on(config, task)
    if config.intrinsic == "all":
        notes["intervals_of_changes"] = (
            f"over the items of the test, {config.resamples} resamples of word pairs "
            "or a jackknife over words, on the mean over parts"
        )
    return {
        **described,
        "selection": f"test {score} at the first epoch of highest dev {score}",
        "interval": f"Student t over {config.parts} {config.protocol}, for claims over "
        f"paired differences; {caveat[config.protocol]}",
        "tokens_without_vector": missing,
        "moved_means": "of the words in the training part, those whose delta is "
        f"longer than {THRESHOLD:g} of their base vector",
        **notes,
    }


def _trained_on(config: Config, task: Task) -> str:
    """The size of a training part, which is small beside the paper's."""
    columns = task.split(config, 0).train
    size = len(next(iter(columns.values())))
    return f"{size:,} {config.kind.examples}"


class Outcome:
    """What the finished parts of a run say."""

    def __init__(
        self,
        config: Config,
        task: Task,
        tables: Sequence[Table],
        tests: data.Tests,
        workdir: epath.Path,
    ):
        self._config = config
        self._task = task
        self._tables = tables
        self._workdir = workdir
        self._parts = range(config.parts)
        self._tuning_arms = [n for n in config.arms if arm(n).mode != "fixed"]
        self._tuned = TunedTables(config, task, tests, _polarity(config), workdir)
        self._all = config.intrinsic == "all"

    def origins(self) -> list[dict]:
        """By which commits, and how long, every part was trained."""
        return [
            results.origin(self._tuned.folder(table, name, part))
            for table in self._tables
            for name in self._config.arms
            for part in self._parts
        ]

    @functools.cache  # noqa: B019 (an outcome lives as long as its run)
    def _scores(self, table: Table, name: str, score: str) -> list[float]:
        """One score at the best epoch in per cent, one a part."""
        chosen = self._config.kind.selects
        folders = [self._tuned.folder(table, name, part) for part in self._parts]
        return [100 * best_epoch(folder, chosen)[score] for folder in folders]

    def _chosen_on_dev(self, table: Table) -> list[float] | None:
        """The main figure when each part takes the delta arm of best dev score."""
        names = [n for n in self._config.arms if n.startswith("delta-")]
        if len(names) < 2:
            return None
        on_dev = f"dev/{self._config.kind.selects}"
        on_test = self._config.measures[0].score
        dev = np.array([self._scores(table, n, on_dev) for n in names])
        test = np.array([self._scores(table, n, on_test) for n in names])
        return np.take_along_axis(test, dev.argmax(0)[None], axis=0)[0].tolist()

    def rows(self) -> list[results.Row]:
        """The task's figures by arm, then how far tables moved, then intrinsic ones."""
        rows = []
        for table in self._tables:
            main, *others = self._config.measures
            rows += [self._score_row(table, name, main) for name in self._config.arms]
            if chosen := self._chosen_on_dev(table):
                label = f"{table.name}/delta, c chosen on dev"
                rows.append(summary_row(label, main.title, chosen))
            for measure in others:
                rows += [self._score_row(table, n, measure) for n in self._config.arms]
            rows += [self._epoch_row(table, name) for name in self._config.arms]
            rows += self._table_rows(table)
            if self._all:
                rows += self._change_rows(table)
                rows += self._word_rows(table)
        return rows

    def _epoch_row(self, table: Table, name: str) -> results.Row:
        """The epoch that was chosen: a last one says that more might have helped."""
        chosen = self._config.kind.selects
        values = []
        for part in self._parts:
            columns = self._task.split(self._config, part).train
            examples = len(next(iter(columns.values())))
            steps = -(-examples // self._config.batch_size)
            best = best_epoch(self._tuned.folder(table, name, part), chosen)
            values.append(best["step"] / steps)
        metric = f"epoch chosen, of {self._config.epochs}"
        return summary_row(f"{table.name}/{name}", metric, values)

    def _score_row(self, table: Table, name: str, measure: Measure) -> results.Row:
        of_task = PAPER.get(self._config.task, {})
        printed = of_task.get(measure.title, {}).get(name)
        if "100d" not in table.name:
            printed = None
        whole = all(d.kind == "real" for d in (*self._task.data, table.data))
        return summary_row(
            f"{table.name}/{name}",
            measure.title,
            self._scores(table, name, measure.score),
            published=printed if whole else None,
            source=None if printed is None else f"Table 1, {self._config.task}",
        )

    def _table_rows(self, table: Table) -> list[results.Row]:
        """What is measured of tables: the untuned one, then each arm's."""
        rows = []
        before = self._tuned.untuned(table)
        of_arms = {name: self._tuned.tuned(table, name) for name in self._tuning_arms}
        averaged = self._all and self._config.model.ema is not None
        raw = {
            f"{name}, not averaged": self._tuned.tuned(table, name, raw=True)
            for name in (self._tuning_arms if averaged else ())
        }
        only = (LISTED, ALIKE, FREQUENCY) if self._all else ()
        for metric in (MOVED, *only, *before):
            if metric in before:
                rows.append(
                    summary_row(f"{table.name}/untuned", metric, [before[metric]])
                )
            for name, measured in {**of_arms, **raw}.items():
                if metric in measured:
                    rows.append(
                        summary_row(f"{table.name}/{name}", metric, measured[metric])
                    )
        return rows

    def _change_rows(self, table: Table) -> list[results.Row]:
        """Changes of intrinsic scores, with intervals over items (Tables 2 and 3)."""
        rows = []
        for name in self._compared():
            gains = self._tuned.gains(table, name)
            mean = {_SIMILARITY: _similarity(gains)}
            rows += [
                interval_row(f"{table.name}/{name}", f"change of {test} (points)", gap)
                for test, gap in {**mean, **gains}.items()
            ]
        return rows

    def _compared(self) -> list[str]:
        """The arms whose tables are compared with the untuned one."""
        wanted = dict.fromkeys(["finetune", self._best(), self._shown_arm()])
        return [name for name in wanted if name in self._tuning_arms]

    def _word_rows(self, table: Table) -> list[results.Row]:
        """The words that the shown arm moved most, and how far (Table 4)."""
        shown = self._shown_arm()
        if shown is None:
            return []
        norms = self._tuned.norms(table, shown)
        words = self._task.vocab.words
        top = delta.norm_ranking(norms.mean(axis=1, keepdims=True), words, _TOP_ROWS)
        index = self._task.vocab.index
        metric = f"norm of the row of {shown}, {table.name}"
        return [summary_row(w.word, metric, norms[index[w.word]]) for w in top]

    def _best(self) -> str:
        """The paper's best arm on the task."""
        return {"kmr": "delta-1e-5"}.get(self._config.task, "delta-1e-4")

    def claims(self) -> list[results.Claim]:
        """The paper's claims on this task, from paired differences over parts."""
        best = self._best()
        wanted = [(best, "fixed"), (best, "finetune")]
        reads = self._config.kind.name != "sentiment"
        # In Table 1 tuning helps sentiment, and harms reading and inference.
        wanted.append(("fixed", "finetune") if reads else ("finetune", "fixed"))
        claims = []
        for table in self._tables:
            for measure in self._config.measures:
                for better, worse in wanted:
                    if {better, worse} <= set(self._config.arms):
                        claims.append(self._beats(table, better, worse, measure))
            chosen = self._chosen_on_dev(table)
            for worse in ("fixed", "finetune"):
                if chosen and worse in self._config.arms:
                    label = "delta with c chosen on dev"
                    main = self._config.measures[0]
                    claims.append(self._beats(table, label, worse, main, chosen))
            if best in self._config.arms:
                claims.append(self._is_sparse(table, best))
            if self._all:
                claims += self._intrinsic_claims(table, best)
        return claims

    @functools.cached_property
    def _evidence(self) -> str:
        """How many values a claim rests on; of small sets also what trained them."""
        counted = f"{self._config.parts} {self._config.protocol}"
        if self._config.kind.name == "sentiment":
            return counted
        return f"{counted}, trained on {_trained_on(self._config, self._task)}"

    def _beats(
        self,
        table: Table,
        better: str,
        worse: str,
        measure: Measure,
        scores: Sequence[float] | None = None,
    ) -> results.Claim:
        if scores is None:
            scores = self._scores(table, better, measure.score)
        gap = intervals.paired_t(scores, self._scores(table, worse, measure.score))
        several = len(self._config.measures) > 1
        what = f", {measure.title.removesuffix(' (%)')}" if several else ""
        return results.Claim(
            claim=f"{better} beats {worse} on {self._config.task}{what} ({table.name})",
            verdict=intervals.verdict(gap.low, gap.high),
            evidence=f"paired difference {gap.mean:+.2f} points [{gap.low:.2f}, "
            f"{gap.high:.2f}], {self._evidence}",
        )

    def _is_sparse(self, table: Table, name: str) -> results.Claim:
        share = intervals.t_interval(self._tuned.tuned(table, name)[MOVED])
        return results.Claim(
            claim=f"{name} leaves the majority of words intact ({table.name})",
            verdict=intervals.verdict(50 - share.high, 50 - share.low),
            evidence=f"{share.mean:.1f} % [{share.low:.1f}, {share.high:.1f}] of the "
            f"words trained on moved, {self._evidence}",
        )

    def _intrinsic_claims(self, table: Table, best: str) -> list[results.Claim]:
        """Of Tables 2 to 5: the tuned table itself, the words, the neighbours."""
        claims = []
        if best in self._config.arms:
            gains = self._tuned.gains(table, best)
            claims.append(
                self._changes(f"{best} raises {_SIMILARITY}", table, _similarity(gains))
            )
            if QVEC_CCA in gains:
                claims.append(
                    self._changes(f"{best} raises QVEC-CCA", table, gains[QVEC_CCA])
                )
            claims += self._word_claims(table, best)
        if "finetune" in self._config.arms:
            gains = self._tuned.gains(table, "finetune")
            if QVEC_CCA in gains:
                claim = "finetune lowers QVEC-CCA"
                gap = gains[QVEC_CCA]
                claims.append(self._changes(claim, table, gap, lowers=True))
            if best in self._config.arms:
                gap = _similarity(self._tuned.gains(table, best, "finetune"))
                claim = f"{best} beats finetune: {_SIMILARITY}"
                claims.append(self._changes(claim, table, gap))
        return claims

    def _changes(
        self, claim: str, table: Table, gap: Interval, *, lowers: bool = False
    ) -> results.Claim:
        claimed = (-gap.high, -gap.low) if lowers else (gap.low, gap.high)
        return results.Claim(
            claim=f"{claim} ({table.name})",
            verdict=intervals.verdict(*claimed),
            evidence=f"change of {gap.mean:+.3f} points [{gap.low:.3f}, "
            f"{gap.high:.3f}] over the items of the tests, mean over {self._evidence}",
        )

    def _word_claims(self, table: Table, best: str) -> list[results.Claim]:
        measured = self._tuned.tuned(table, best)
        claims = []
        if LISTED in measured:
            area = self._tuned.among_alike(table, best)
            plain = float(np.mean(measured[LISTED]))
            claims.append(
                results.Claim(
                    claim=f"the words of the paper's Table 4 move farther than others "
                    f"of like frequency under {best} ({table.name})",
                    verdict=intervals.verdict(area.low - 0.5, area.high - 0.5),
                    evidence=f"farther than {area.mean:.3f} [{area.low:.3f}, "
                    f"{area.high:.3f}] of the 20 words of nearest frequency, bootstrap "
                    f"over the words, mean over {self._evidence}; area under ROC among "
                    f"all words {plain:.3f}",
                )
            )
        before = self._tuned.untuned(table).get(POSITIVE)
        if before is not None and POSITIVE in measured:
            fewer = intervals.t_interval([before - x for x in measured[POSITIVE]])
            claims.append(
                results.Claim(
                    claim=f"{best} leaves fewer positive words around “{QUERY}” "
                    f"({table.name})",
                    verdict=intervals.verdict(fewer.low, fewer.high),
                    evidence=f"{fewer.mean:+.1f} points fewer [{fewer.low:.1f}, "
                    f"{fewer.high:.1f}] of the ten nearest polar words, "
                    f"{self._evidence}",
                )
            )
        return claims

    def _shown_arm(self) -> str | None:
        """The arm whose delta is shown: the paper's favourite if it was run."""
        names = [n for n in self._config.arms if arm(n).mode == "delta"]
        return "delta-1e-4" if "delta-1e-4" in names else next(iter(names), None)

    def write_figures(self) -> None:
        """Delta norms and the neighbours of *not*, for part 0, beside the curves."""
        shown = self._shown_arm()
        if shown is None:
            return
        for table in self._tables:
            folder = self._workdir / "figures"
            tuned = self._tuned.rows(table, shown, 0)
            histogram = delta.norm_histogram(tuned - table.matrix)
            figures.save(
                figures.norm_histogram(histogram),
                folder / f"{table.name}-delta-norms.svg",
                f"How far {shown} moved each word of {table.name}, part 0.",
            )
            if self._all:
                self._write_more_figures(table, shown, folder)
            shift = self._tuned.shift(table, tuned)
            if shift is None:
                continue
            polar = any(n.side for n in (*shift.before, *shift.after))
            kind = "Polar neighbours, by a lexicon," if polar else "Neighbours"
            figures.save(
                figures.neighbour_shift(shift),
                folder / f"{table.name}-neighbours.svg",
                f"{kind} of “{QUERY}” before and after {shown}, part 0.",
            )

    def _write_more_figures(self, table: Table, shown: str, folder: epath.Path) -> None:
        words = [dataclasses.asdict(row) for row in self._word_rows(table)]
        figures.save(
            figures.intervals(words, f"words that {shown} moved most"),
            folder / f"{table.name}-moved-words.svg",
            f"Norms of the rows of {shown}, mean over {self._evidence}, with 95 % "
            "intervals.",
        )
        for name in self._compared():
            figures.save(
                geometry.benchmark_differences(self._tuned.gains(table, name)),
                folder / f"{table.name}-{name}-intrinsic.svg",
                f"Intrinsic scores of {name} less those of the untuned {table.name}, "
                "with 95 % intervals over the tests' items.",
            )

    def export(self) -> list[Path]:
        """Writes the tuned tables of part 0; where averaged, those not averaged too."""
        folder = Path(self._workdir) / "tables"
        written = []
        kinds = {"": False}
        if self._config.model.ema is not None:
            kinds["-raw"] = True
        for table in self._tables:
            for name in self._tuning_arms:
                for suffix, raw in kinds.items():
                    rows = self._tuned.rows(table, name, 0, raw=raw)
                    path = folder / f"{table.name}-{name}{suffix}.safetensors"
                    write_word_vectors(path, self._tuned.whole(table, rows))
                    written.append(path)
        return written

    def print_moved_words(self) -> None:
        """The words that the shown arm moved most."""
        shown = self._shown_arm()
        for table in self._tables if shown else ():
            change = self._tuned.rows(table, shown, 0) - table.matrix
            top = delta.norm_ranking(change, self._task.vocab.words, _TOP)
            moved = " ".join(ranked.word for ranked in top)
            print(f"words with the largest {shown} of {table.name}: {moved}")


def _polarity(config: Config):
    try:
        return data.load_polarity(config)
    except sources.FetchError:
        return None


def _similarity(gains: dict[str, Interval]) -> Interval:
    """The mean change over the similarity lists, as of independent tests."""
    return intervals.mean_of([gap for name, gap in gains.items() if name != QVEC_CCA])


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
        row for row in rows if row.metric not in alone and "norm of" not in row.metric
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
