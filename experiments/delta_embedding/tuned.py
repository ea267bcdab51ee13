"""What is measured of the tables that training leaves, beside the untuned one."""

import collections
import dataclasses
import functools
from collections.abc import Mapping

import numpy as np
from etils import epath

from experiments.delta_embedding.config import PAPER_WORDS, Config
from experiments.delta_embedding.data import Tests
from experiments.delta_embedding.task import Task, ragged
from jaxemb import nn, terminal, train
from jaxemb.analysis import delta
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import correlation, intervals, qvec, similarity
from jaxemb.eval.intervals import Interval
from jaxemb.train import checkpoints, results

MOVED = "rows moved (%)"
QVEC = "QVEC (mean over dimensions)"
QVEC_CCA = "QVEC-CCA"
LISTED = "area under ROC of the paper's words by norm"
ALIKE = "the same, among words of like frequency"
FREQUENCY = "Spearman of norm and frequency"
POSITIVE = "positive among the polar neighbours of not (%)"
# A row counts as moved when its delta is longer than this share of its base vector.
THRESHOLD = 0.01
QUERY = "not"

Metrics = dict[str, float]


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """A pretrained table and its rows for a task."""

    words: WordVectors
    matrix: np.ndarray
    data: results.Data

    @property
    def name(self) -> str:
        return self.data.name


def part_folder(
    config: Config, workdir: epath.Path, table: str, arm: str, part: int
) -> epath.Path:
    """Where one fold or seed of an arm is trained."""
    return workdir / table / arm / f"{config.protocol.removesuffix('s')}-{part}"


class TunedTables:
    """The tables of finished parts and their figures, each computed once."""

    def __init__(
        self,
        config: Config,
        task: Task,
        tests: Tests,
        polarity: Mapping[str, float] | None,
        workdir: epath.Path,
    ):
        self._config = config
        self._task = task
        self._tests = tests
        self._polarity = polarity
        self._workdir = workdir
        self._all = config.intrinsic == "all"

    def folder(self, table: Table, arm: str, part: int) -> epath.Path:
        """Where a part was trained."""
        return part_folder(self._config, self._workdir, table.name, arm, part)

    def rows(
        self, table: Table, arm: str, part: int, *, raw: bool = False
    ) -> np.ndarray:
        """The vocabulary's rows at the best epoch, averaged if that was evaluated."""
        folder = self.folder(table, arm, part) / checkpoints.BEST
        variables = train.load_params(folder)
        params = (
            variables["params"] if raw else variables.get("ema", variables["params"])
        )
        return nn.effective_table(params, variables.get("frozen"))

    def whole(self, table: Table, rows: np.ndarray) -> WordVectors:
        """The whole table, with the rows that training has tuned in their place."""
        matrix = np.array(table.words.matrix)
        for row, word in enumerate(self._task.vocab.words):
            if word in table.words:
                matrix[table.words.index[word]] = rows[row]
        return WordVectors(table.words.words, matrix)

    @functools.cache  # noqa: B019 (it lives as long as its run)
    def trained(self, part: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the words in a training part, and how often each is there.

        No other row can move.
        """
        texts = ragged(self._task.split(self._config, part).train).values()
        running = np.concatenate([text.values for text in texts])
        return np.unique(running, return_counts=True)

    @functools.cache  # noqa: B019
    def untuned(self, table: Table) -> Metrics:
        """The intrinsic scores of the table itself."""
        scores = self._intrinsic(table.words)
        share = self._positive(table, table.matrix) if self._all else None
        return scores if share is None else {**scores, POSITIVE: share}

    @functools.cache  # noqa: B019
    def tuned(
        self, table: Table, arm: str, raw: bool = False
    ) -> dict[str, list[float]]:
        """Metric to one value a part."""
        measured = collections.defaultdict(list)
        for part in range(self._config.parts):
            rows = self.rows(table, arm, part, raw=raw)
            scores = {
                **self._movement(table, rows, part),
                **self._intrinsic(self.whole(table, rows)),
            }
            share = self._positive(table, rows) if self._all else None
            if share is not None:
                scores[POSITIVE] = share
            for metric, score in scores.items():
                measured[metric].append(score)
        return dict(measured)

    def _movement(self, table: Table, rows: np.ndarray, part: int) -> Metrics:
        trained, counts = self.trained(part)
        norms = np.linalg.norm(rows[trained] - table.matrix[trained], axis=1)
        limit = THRESHOLD * np.linalg.norm(table.matrix[trained], axis=1)
        scores = {MOVED: 100 * float(np.mean(norms > limit))}
        if self._all:
            words = [self._task.vocab.words[i] for i in trained]
            listed = PAPER_WORDS[self._config.kind.name]
            scores[LISTED] = delta.listed_above_others(norms, words, listed)
            alike = delta.listed_among_alike(norms, counts, words, listed)
            scores[ALIKE] = float(np.mean([*alike.values()])) if alike else np.nan
            spearman = correlation.spearman_statistic(
                norms.astype(np.float64), counts.astype(np.float64)
            )
            scores[FREQUENCY] = float(spearman(np.arange(len(norms))[None])[0])
        return {m: score for m, score in scores.items() if not np.isnan(score)}

    def among_alike(self, table: Table, arm: str) -> Interval:
        """`ALIKE` with an interval over the paper's words; their mean over parts."""
        by_word = collections.defaultdict(list)
        listed = PAPER_WORDS[self._config.kind.name]
        for part in range(self._config.parts):
            trained, counts = self.trained(part)
            change = self.rows(table, arm, part)[trained] - table.matrix[trained]
            words = [self._task.vocab.words[i] for i in trained]
            norms = np.linalg.norm(change, axis=1)
            for word, share in delta.listed_among_alike(
                norms, counts, words, listed
            ).items():
                by_word[word].append(share)
        shares = np.array([np.mean(of) for of in by_word.values()])
        return intervals.bootstrap(
            lambda rows: shares[rows].mean(axis=-1),
            len(shares),
            resamples=self._config.resamples,
        )

    def _intrinsic(self, words: WordVectors) -> Metrics:
        scores = {}
        for name, pairs in self._tests.similarity.items():
            score = similarity.word_similarity(words, pairs, resamples=0)
            if score.covered:
                metric = f"Spearman on {name} ({score.covered} of {score.total} pairs)"
                scores[metric] = score.spearman
        if self._all and self._tests.features is not None:
            found = qvec.qvec(words, self._tests.features, groups=0)
            scores |= {QVEC: found.mean, QVEC_CCA: found.cca}
        return scores

    def _positive(self, table: Table, rows: np.ndarray) -> float | None:
        """Of the ten nearest polar words of *not*, how many per cent are positive."""
        shift = self.shift(table, rows)
        if shift is None or not shift.after or not self._polarity:
            return None
        return 100 * delta.positive_share(shift.after)

    def shift(self, table: Table, rows: np.ndarray) -> delta.NeighbourShift | None:
        """The neighbours of *not*; polar ones only where there is a lexicon."""
        words = self._task.vocab.words
        if QUERY not in self._task.vocab:
            return None
        polarity = self._polarity or None
        return delta.neighbour_shift(
            table.matrix, rows, words, QUERY, polarity=polarity
        )

    def norms(self, table: Table, arm: str) -> np.ndarray:
        """How far each row of the vocabulary moved, one column a part."""
        changes = (
            self.rows(table, arm, part) - table.matrix
            for part in range(self._config.parts)
        )
        return np.stack([delta.row_norms(change) for change in changes], axis=1)

    @functools.cache  # noqa: B019
    def gains(
        self, table: Table, arm: str, over: str | None = None
    ) -> dict[str, Interval]:
        """Test to the change of its score, in points, from the items of the test.

        Over the untuned table, or over another arm's of the same part; the mean over
        parts. Similarity has a bootstrap over word pairs, QVEC-CCA a jackknife.
        """
        found = collections.defaultdict(list)
        against = "the untuned table" if over is None else over
        for part in range(self._config.parts):
            if self._config.run.progress:
                terminal.say(
                    f"{table.name}/{arm} against {against}: intrinsic tests of part "
                    f"{part + 1} of {self._config.parts}"
                )
            ours = self.whole(table, self.rows(table, arm, part))
            theirs = table.words
            if over is not None:
                theirs = self.whole(table, self.rows(table, over, part))
            for name, pairs in self._tests.similarity.items():
                gap = similarity.compare_similarity(
                    ours, theirs, pairs, resamples=self._config.resamples
                )
                if gap.common:
                    found[name].append(Interval(gap.difference, gap.low, gap.high))
            if self._tests.features is not None:
                gap = qvec.compare_qvec(ours, theirs, self._tests.features)
                found[QVEC_CCA].append(gap.cca)
        means = {name: intervals.mean_together(of) for name, of in found.items()}
        return {
            name: Interval(100 * m.mean, 100 * m.low, 100 * m.high)
            for name, m in means.items()
            if not np.isnan(m.mean)
        }
