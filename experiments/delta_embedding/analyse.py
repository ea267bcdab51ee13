"""From finished parts to rows, verdicts, figures and the printed tables."""

import collections
import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np
from etils import epath

from experiments.common.rows import print_claims, print_side_by_side, summary_row
from experiments.delta_embedding import data
from experiments.delta_embedding.config import PAPER, Config, arm
from jaxemb import nn, terminal, train
from jaxemb.analysis import delta, figures
from jaxemb.data import sources
from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import intervals, similarity
from jaxemb.train import checkpoints, results

ACCURACY = "test accuracy (%)"
MOVED = "rows moved (%)"
# A row counts as moved when its delta is longer than this share of its base vector.
_THRESHOLD = 0.01
_QUERY = "not"
_TOP = 15


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """A pretrained table and its rows for a task."""

    words: WordVectors
    matrix: np.ndarray
    data: results.Data

    @property
    def name(self) -> str:
        return self.data.name


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
    caveat = {
        "folds": "folds share training sentences",
        "seeds": "seeds share one split: its sampling is not in the interval",
    }
    return {
        **described,
        "selection": "test accuracy at the first epoch of highest dev accuracy",
        "interval": f"Student t over {config.parts} {config.protocol}, for claims over "
        f"paired differences; {caveat[config.protocol]}",
        "tokens_without_vector": missing,
        "moved_means": "of the words in the training part, those whose delta is "
        f"longer than {_THRESHOLD:g} of their base vector",
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
        self._parts = range(config.parts)
        self._tuning_arms = [n for n in config.arms if arm(n).mode != "fixed"]

    def _folder(self, table: Table, name: str, part: int) -> epath.Path:
        return part_folder(self._config, self._workdir, table.name, name, part)

    def origins(self) -> list[dict]:
        """By which commits, and how long, every part was trained."""
        return [
            results.origin(self._folder(table, name, part))
            for table in self._tables
            for name in self._config.arms
            for part in self._parts
        ]

    @functools.cache  # noqa: B019 (an outcome lives as long as its run)
    def _scores(self, table: Table, name: str, split: str = "test") -> list[float]:
        """Accuracy in per cent, one a part."""
        best = [best_epoch(self._folder(table, name, part)) for part in self._parts]
        return [100 * line[f"{split}/accuracy"] for line in best]

    def _tuned(self, table: Table, name: str, part: int) -> np.ndarray:
        """The vocabulary's rows at the best epoch."""
        folder = self._folder(table, name, part) / checkpoints.BEST
        variables = train.load_params(folder)
        return nn.effective_table(variables["params"], variables.get("frozen"))

    @functools.cache  # noqa: B019
    def _trained_rows(self, part: int) -> np.ndarray:
        """The rows of the words in a training part; no other row can move."""
        tokens = self._task.split(self._config, part).train["tokens"]
        return np.unique(tokens.values)

    @functools.cache  # noqa: B019
    def _of_tables(self, table: Table, name: str) -> dict[str, list[float]]:
        """What is measured of an arm's tables: metric to one value a part."""
        measured = collections.defaultdict(list)
        for part in self._parts:
            tuned = self._tuned(table, name, part)
            rows = self._trained_rows(part)
            change = np.linalg.norm(tuned[rows] - table.matrix[rows], axis=1)
            limit = _THRESHOLD * np.linalg.norm(table.matrix[rows], axis=1)
            measured[MOVED].append(100 * float(np.mean(change > limit)))
            words = self._with_tuned_rows(table, tuned)
            for metric, score in self._similarity(words).items():
                measured[metric].append(score)
        return dict(measured)

    def _with_tuned_rows(self, table: Table, tuned: np.ndarray) -> WordVectors:
        """The whole table, with the rows that training has tuned in their place."""
        matrix = np.array(table.words.matrix)
        for row, word in enumerate(self._task.vocab.words):
            if word in table.words:
                matrix[table.words.index[word]] = tuned[row]
        return WordVectors(table.words.words, matrix)

    def _similarity(self, words: WordVectors) -> dict[str, float]:
        scores = {}
        for name, pairs in self._lists.items():
            score = similarity.word_similarity(words, pairs, resamples=0)
            if score.covered:
                metric = f"Spearman on {name} ({score.covered} of {score.total} pairs)"
                scores[metric] = score.spearman
        return scores

    def _chosen_on_dev(self, table: Table) -> list[float] | None:
        """Test accuracy when each part takes the delta arm of best dev accuracy."""
        names = [n for n in self._config.arms if n.startswith("delta-")]
        if len(names) < 2:
            return None
        dev = np.array([self._scores(table, n, "dev") for n in names])
        test = np.array([self._scores(table, n) for n in names])
        return np.take_along_axis(test, dev.argmax(0)[None], axis=0)[0].tolist()

    def rows(self) -> list[results.Row]:
        """Accuracy of each arm, then how far tables moved, then intrinsic scores."""
        rows = []
        for table in self._tables:
            rows += [self._accuracy_row(table, name) for name in self._config.arms]
            if chosen := self._chosen_on_dev(table):
                rows.append(
                    summary_row(
                        f"{table.name}/delta, c chosen on dev", ACCURACY, chosen
                    )
                )
            before = self._similarity(table.words)
            for metric in (MOVED, *before):
                if metric in before:
                    rows.append(
                        summary_row(f"{table.name}/untuned", metric, [before[metric]])
                    )
                for name in self._tuning_arms:
                    values = self._of_tables(table, name)[metric]
                    rows.append(summary_row(f"{table.name}/{name}", metric, values))
        return rows

    def _accuracy_row(self, table: Table, name: str) -> results.Row:
        printed = PAPER.get(self._config.task, {}).get(name)
        if "100d" not in table.name:
            printed = None
        whole = all(d.kind == "real" for d in (*self._task.data, table.data))
        return summary_row(
            f"{table.name}/{name}",
            ACCURACY,
            self._scores(table, name),
            published=printed if whole else None,
            source=None if printed is None else f"Table 1, {self._config.task}",
        )

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
        share = intervals.t_interval(self._of_tables(table, name)[MOVED])
        return results.Claim(
            claim=f"{name} leaves the majority of words intact ({table.name})",
            verdict=intervals.verdict(50 - share.high, 50 - share.low),
            evidence=f"{share.mean:.1f} % [{share.low:.1f}, {share.high:.1f}] of the "
            f"words trained on moved, {self._config.parts} {self._config.protocol}",
        )

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
            tuned = self._tuned(table, shown, 0)
            histogram = delta.norm_histogram(tuned - table.matrix)
            figures.save(
                figures.norm_histogram(histogram),
                folder / f"{table.name}-delta-norms.svg",
                f"How far {shown} moved each word of {table.name}, part 0.",
            )
            if _QUERY not in self._task.vocab:
                continue
            polarity = self._polarity()
            shift = delta.neighbour_shift(
                table.matrix, tuned, self._task.vocab.words, _QUERY, polarity=polarity
            )
            kind = (
                "Neighbours" if polarity is None else "Polar neighbours, by a lexicon,"
            )
            figures.save(
                figures.neighbour_shift(shift),
                folder / f"{table.name}-neighbours.svg",
                f"{kind} of “{_QUERY}” before and after {shown}, part 0.",
            )

    def _polarity(self) -> Mapping[str, float] | None:
        try:
            return data.load_polarity(self._config)
        except sources.FetchError:
            return None

    def print_moved_words(self) -> None:
        """The words that the shown arm moved most."""
        shown = self._shown_arm()
        for table in self._tables if shown else ():
            change = self._tuned(table, shown, 0) - table.matrix
            top = delta.norm_ranking(change, self._task.vocab.words, _TOP)
            moved = " ".join(ranked.word for ranked in top)
            print(f"words with the largest {shown} of {table.name}: {moved}")


def print_tables(rows: Sequence[results.Row], claims: Sequence[results.Claim]) -> None:
    """Accuracy and moved rows a line each, then intrinsic scores side by side."""
    for metric in (ACCURACY, MOVED):
        shown = [_cells(row) for row in rows if row.metric == metric]
        terminal.print_table(shown, right=(metric, "95 % interval", "published"))
        print()
    print_side_by_side([row for row in rows if row.metric.startswith("Spearman")])
    print_claims(claims)


def _cells(row: results.Row) -> dict[str, str]:
    low_high = "–" if row.interval is None else "{:.2f} … {:.2f}".format(*row.interval)
    return {
        "": row.name,
        row.metric: f"{row.measured:.2f}",
        "95 % interval": low_high,
        "published": "–" if row.published is None else f"{row.published:.2f}",
    }
