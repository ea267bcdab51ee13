"""From finished parts to rows, verdicts, figures and the printed tables."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from etils import epath

from experiments.delta_embedding import data
from experiments.delta_embedding.config import PAPER, Config, arm
from jaxemb import nn, terminal, train
from jaxemb.analysis import delta, figures
from jaxemb.data import sources
from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import intervals, similarity
from jaxemb.train import checkpoints, results

# A row counts as moved when its delta is longer than this share of its base vector.
_MOVED = 0.01
_QUERY = "not"
_TOP = 15


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """A pretrained table and its rows for a task."""

    name: str
    words: WordVectors
    matrix: np.ndarray
    data: results.Data


def words_of(lists: Mapping[str, Sequence[WordPair]]) -> set[str]:
    """Every word that the similarity lists may look up."""
    return {w for rows in lists.values() for w in similarity.words_looked_up(rows)}


def part_folder(
    config: Config, workdir: epath.Path, table: str, arm: str, part: int
) -> epath.Path:
    """Where one fold or seed of an arm is trained."""
    return workdir / table / arm / f"{config.protocol.removesuffix('s')}-{part}"


def best_epoch(folder: epath.Path) -> dict[str, float]:
    """The evaluation with the first highest dev accuracy."""
    lines = [x for x in train.read_metrics(folder) if "dev/accuracy" in x]
    return max(lines, key=lambda line: line["dev/accuracy"])


def described_config(config: Config, task: data.Task, tables: Sequence[Table]) -> dict:
    """The config with what a reader must know of the protocol."""
    missing = {t.name: round(task.tokens_without_vector(t.words), 4) for t in tables}
    described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
    return {
        **described,
        "selection": "test accuracy at the first epoch of highest dev accuracy",
        "interval": f"Student t over {config.parts} {config.protocol}; claims: paired",
        "tokens_without_vector": missing,
        "moved_means": f"|delta| above {_MOVED:g} of the base vector's length",
    }


class Outcome:
    """What the finished parts of a run say."""

    def __init__(
        self,
        config: Config,
        task: data.Task,
        tables: Sequence[Table],
        lists: Mapping[str, Sequence[WordPair]],
        workdir: epath.Path,
    ):
        self._config = config
        self._task = task
        self._tables = tables
        self._lists = lists
        self._workdir = workdir
        self._whole = all(d.kind == "real" for d in task.data)

    def _folder(self, table: Table, name: str, part: int) -> epath.Path:
        return part_folder(self._config, self._workdir, table.name, name, part)

    @functools.cache  # noqa: B019 (an outcome lives as long as its run)
    def _scores(
        self, table: Table, name: str, split: str = "test"
    ) -> tuple[float, ...]:
        """Accuracy in per cent, one a part."""
        parts = range(self._config.parts)
        best = [best_epoch(self._folder(table, name, part)) for part in parts]
        return tuple(100 * line[f"{split}/accuracy"] for line in best)

    @functools.cache  # noqa: B019
    def _tuned(self, table: Table, name: str, part: int) -> np.ndarray:
        """The vocabulary's rows at the best epoch."""
        folder = self._folder(table, name, part) / checkpoints.BEST
        variables = train.load_params(folder)
        return nn.effective_table(variables["params"], variables.get("frozen"))

    def _chosen_on_dev(self, table: Table) -> tuple[float, ...] | None:
        """Test accuracy when each part takes the delta arm of best dev accuracy."""
        names = [n for n in self._config.arms if n.startswith("delta-")]
        if len(names) < 2:
            return None
        dev = np.array([self._scores(table, n, "dev") for n in names])
        test = np.array([self._scores(table, n) for n in names])
        return tuple(np.take_along_axis(test, dev.argmax(0)[None], axis=0)[0].tolist())

    def rows(self) -> list[results.Row]:
        """Accuracy of each arm, then how far tables moved, then intrinsic scores."""
        rows = []
        for table in self._tables:
            for name in self._config.arms:
                rows.append(self._accuracy_row(table, name))
            if chosen := self._chosen_on_dev(table):
                label = f"{table.name}/delta, c chosen on dev"
                rows.append(_row(label, "test accuracy (%)", chosen))
            for name in self._tuning_arms:
                moved = [100 * self._moved(table, name, p) for p in self._parts]
                rows.append(_row(f"{table.name}/{name}", "rows moved (%)", moved))
            rows += self._similarity_rows(table)
        return rows

    def _accuracy_row(self, table: Table, name: str) -> results.Row:
        whole = self._whole and table.data.kind == "real" and "100d" in table.name
        printed = PAPER.get(self._config.task, {}).get(name) if whole else None
        column = {"rt-polarity": "rt-polarity", "kmr": "KMR"}.get(self._config.task)
        return _row(
            f"{table.name}/{name}",
            "test accuracy (%)",
            self._scores(table, name),
            published=printed,
            source=f"Table 1, {column}" if column else None,
        )

    @property
    def _parts(self) -> range:
        return range(self._config.parts)

    @property
    def _tuning_arms(self) -> list[str]:
        return [n for n in self._config.arms if arm(n).mode != "fixed"]

    def _moved(self, table: Table, name: str, part: int) -> float:
        change = self._tuned(table, name, part) - table.matrix
        length = np.linalg.norm(table.matrix, axis=1)
        return float(np.mean(np.linalg.norm(change, axis=1)[1:] > _MOVED * length[1:]))

    def _similarity_rows(self, table: Table) -> Iterator[results.Row]:
        score = functools.partial(similarity.word_similarity, resamples=0)
        for name, rows in self._lists.items():
            before = score(table.words, rows)
            if not before.covered:
                continue
            metric = f"Spearman on {name} ({before.covered} of {before.total} pairs)"
            yield _row(f"{table.name}/untuned", metric, [before.spearman])
            for tuning in self._tuning_arms:
                after = [
                    score(self._tuned_words(table, tuning, part), rows).spearman
                    for part in self._parts
                ]
                yield _row(f"{table.name}/{tuning}", metric, after)

    def _tuned_words(self, table: Table, name: str, part: int) -> WordVectors:
        """The whole table, with the rows that training has tuned in their place."""
        matrix = np.array(table.words.matrix)
        known = [
            (i, w) for i, w in enumerate(self._task.vocab.words) if w in table.words
        ]
        rows = [table.words.index[word] for _, word in known]
        matrix[rows] = self._tuned(table, name, part)[[i for i, _ in known]]
        return WordVectors(table.words.words, matrix)

    def claims(self) -> list[results.Claim]:
        """The paper's claims on this task, from paired differences over parts."""
        best = {"kmr": "delta-1e-5"}.get(self._config.task, "delta-1e-4")
        wanted = [(best, "fixed"), (best, "finetune"), ("finetune", "fixed")]
        claims = []
        for table in self._tables:
            for better, worse in wanted:
                if {better, worse} <= set(self._config.arms):
                    claims.append(self._beats(table, better, worse))
            chosen = self._chosen_on_dev(table)
            for worse in ("fixed", "finetune"):
                if chosen and worse in self._config.arms:
                    label = "delta with c chosen on dev"
                    claims.append(self._beats(table, label, worse, chosen))
            if best in self._config.arms:
                claims.append(self._is_sparse(table, best))
        return claims

    def _beats(
        self,
        table: Table,
        better: str,
        worse: str,
        scores: Sequence[float] | None = None,
    ) -> results.Claim:
        scores = self._scores(table, better) if scores is None else scores
        gap = intervals.paired_t(scores, self._scores(table, worse))
        return results.Claim(
            claim=f"{better} beats {worse} on {self._config.task} ({table.name})",
            verdict=intervals.verdict(gap.low, gap.high),
            evidence=f"paired difference {gap.mean:+.2f} points [{gap.low:.2f}, "
            f"{gap.high:.2f}], {self._config.parts} {self._config.protocol}",
        )

    def _is_sparse(self, table: Table, name: str) -> results.Claim:
        moved = [100 * self._moved(table, name, part) for part in self._parts]
        share = intervals.t_interval(moved)
        return results.Claim(
            claim=f"{name} leaves the majority of words intact ({table.name})",
            verdict=intervals.verdict(50 - share.high, 50 - share.low),
            evidence=f"{share.mean:.1f} % [{share.low:.1f}, {share.high:.1f}] of the "
            f"vocabulary's rows moved, {self._config.parts} {self._config.protocol}",
        )

    def _shown_arm(self) -> str:
        """The arm whose delta is shown: the paper's favourite if it was run."""
        names = [n for n in self._config.arms if arm(n).mode == "delta"]
        favourite = [n for n in names if n == "delta-1e-4"]
        return (favourite or names or [""])[0]

    def write_figures(self) -> None:
        """Delta norms and the neighbours of *not*, for part 0, beside the curves."""
        shown = self._shown_arm()
        for table in self._tables if shown else ():
            folder = self._workdir / "figures"
            tuned = self._tuned(table, shown, 0)
            histogram = delta.norm_histogram(tuned - table.matrix)
            figures.save(
                figures.norm_histogram(histogram),
                folder / f"{table.name}-delta-norms.svg",
                f"How far {shown} moved each word of {table.name}, part 0.",
            )
            if _QUERY in self._task.vocab:
                words = self._task.vocab.words
                shift = delta.neighbour_shift(
                    table.matrix, tuned, words, _QUERY, polarity=self._polarity()
                )
                figures.save(
                    figures.neighbour_shift(shift),
                    folder / f"{table.name}-neighbours.svg",
                    f"Polar neighbours of “{_QUERY}” before and after {shown}, part 0; "
                    "polarity by a lexicon, where the paper's choice was by hand.",
                )

    def _polarity(self) -> Mapping[str, float] | None:
        try:
            return data.load_polarity(self._config)
        except sources.FetchError:
            return None

    def print(self) -> None:
        """The accuracy table, intrinsic scores and the words that moved most."""
        rows = self.rows()
        spearman = [row for row in rows if row.metric.startswith("Spearman")]
        for metric in dict.fromkeys(r.metric for r in rows if r not in spearman):
            shown = [_cells(row) for row in rows if row.metric == metric]
            terminal.print_table(shown, right=(metric, "95 % interval", "published"))
            print()
        columns = list(dict.fromkeys(row.name for row in spearman))
        scores = {(row.metric, row.name): f"{row.measured:.4f}" for row in spearman}
        lists = dict.fromkeys(row.metric for row in spearman)
        terminal.print_table(
            [{"": m, **{c: scores.get((m, c), "") for c in columns}} for m in lists],
            right=columns,
        )
        print()
        for claim in self.claims():
            print(f"{claim.verdict}: {claim.claim}; {claim.evidence}")
        arm_shown = self._shown_arm()
        for table in self._tables if arm_shown else ():
            change = self._tuned(table, arm_shown, 0) - table.matrix
            top = delta.norm_ranking(change, self._task.vocab.words, _TOP)
            moved = " ".join(ranked.word for ranked in top)
            print(f"words with the largest {arm_shown} of {table.name}: {moved}")


def _cells(row: results.Row) -> dict[str, str]:
    low_high = "–" if row.interval is None else "{:.2f} … {:.2f}".format(*row.interval)
    return {
        "": row.name,
        row.metric: f"{row.measured:.2f}",
        "95 % interval": low_high,
        "published": "–" if row.published is None else f"{row.published:.2f}",
    }


def _row(
    name: str,
    metric: str,
    values: Sequence[float],
    *,
    published: float | None = None,
    source: str | None = None,
) -> results.Row:
    values = tuple(round(float(v), 4) for v in values)
    interval = intervals.t_interval(values)
    return results.Row(
        name=name,
        metric=metric,
        measured=round(interval.mean, 4),
        values=values,
        interval=(round(interval.low, 4), round(interval.high, 4))
        if interval.known
        else None,
        published=published,
        source=source,
    )
