"""What is measured of the tables that training leaves, beside the untuned one."""

import collections
import dataclasses
import functools
from collections.abc import Iterator, Mapping

import numpy as np
from etils import epath

from experiments.delta_embedding.config import Config
from experiments.delta_embedding.data import Tests
from experiments.delta_embedding.paper import PAPER_WORDS
from experiments.delta_embedding.task import Task, ragged
from jaxemb import nn, terminal, train
from jaxemb.analysis import delta
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import correlation, intervals, qvec, similarity
from jaxemb.eval.intervals import Interval
from jaxemb.train import checkpoints, results

MOVED = "rows moved (%)"
ZERO = "rows exactly at zero (%)"
NORM = "L2,1 norm of the delta"
SIMILARITY = "mean similarity"
QVEC_SUM = "QVEC (sum over dimensions)"
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

    @functools.lru_cache(maxsize=2)  # noqa: B019 (it lives as long as its run)
    def _saved(self, table: Table, arm: str, part: int) -> dict:
        return train.load_params(self.folder(table, arm, part) / checkpoints.BEST)

    def _params(self, table: Table, arm: str, part: int, raw: bool) -> dict:
        """Parameters at the best epoch, averaged if that was evaluated."""
        saved = self._saved(table, arm, part)
        return saved["params"] if raw else saved.get("ema", saved["params"])

    def rows(
        self, table: Table, arm: str, part: int, *, raw: bool = False
    ) -> np.ndarray:
        """The vocabulary's rows at the best epoch, averaged if that was evaluated."""
        params = self._params(table, arm, part, raw)
        return nn.effective_table(params, self._saved(table, arm, part).get("frozen"))

    def change(
        self, table: Table, arm: str, part: int, *, raw: bool = False
    ) -> np.ndarray:
        """What training added to those rows: the delta itself where there is one."""
        found = self._params(table, arm, part, raw)["embed"].get("delta")
        if found is None:
            return self.rows(table, arm, part, raw=raw) - table.matrix
        return found

    def whole(self, table: Table, rows: np.ndarray) -> WordVectors:
        """The whole table, with the rows that training has tuned in their place."""
        matrix = np.array(table.words.matrix)
        for row, word in enumerate(self._task.vocab.words):
            if word in table.words:
                matrix[table.words.index[word]] = rows[row]
        return WordVectors(table.words.words, matrix)

    @functools.cache  # noqa: B019
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
                **self._movement(table, arm, part, raw),
                **self._intrinsic(self.whole(table, rows)),
            }
            share = self._positive(table, rows) if self._all else None
            if share is not None:
                scores[POSITIVE] = share
            for metric, score in scores.items():
                measured[metric].append(score)
        return dict(measured)

    def _movement(self, table: Table, arm: str, part: int, raw: bool) -> Metrics:
        trained, counts = self.trained(part)
        norms = delta.row_norms(self.change(table, arm, part, raw=raw))
        limit = THRESHOLD * delta.row_norms(table.matrix)
        scores = {
            MOVED: 100 * float(np.mean((norms > limit)[trained])),
            NORM: float(np.sum(norms)),
        }
        if not raw:  # an average is never back at 0: these are the parameters' own
            own = delta.row_norms(self.change(table, arm, part, raw=True))[trained]
            scores[ZERO] = 100 * float(np.mean(own == 0))
        if self._all:
            words = [self._task.vocab.words[i] for i in trained]
            listed = PAPER_WORDS[self._config.kind.name]
            scores[LISTED] = delta.listed_above_others(norms[trained], words, listed)
            alike = self._among_alike(table, arm, part, raw)
            scores[ALIKE] = float(np.mean([*alike.values()])) if alike else np.nan
            spearman = correlation.spearman_statistic(
                norms[trained], counts.astype(np.float64)
            )
            scores[FREQUENCY] = float(spearman(np.arange(len(trained))[None])[0])
        return {m: score for m, score in scores.items() if not np.isnan(score)}

    @functools.cache  # noqa: B019
    def _among_alike(
        self, table: Table, arm: str, part: int, raw: bool
    ) -> dict[str, float]:
        """Of each of the paper's words, how many of like frequency moved less."""
        trained, counts = self.trained(part)
        norms = delta.row_norms(self.change(table, arm, part, raw=raw))[trained]
        words = [self._task.vocab.words[i] for i in trained]
        listed = PAPER_WORDS[self._config.kind.name]
        return delta.listed_among_alike(norms, counts, words, listed)

    def among_alike(self, table: Table, arm: str) -> Interval:
        """`ALIKE`, uncertain by the paper's words and by the parts."""
        by_word, by_part = collections.defaultdict(list), []
        for part in range(self._config.parts):
            shares = self._among_alike(table, arm, part, False)
            by_part.append(np.mean([*shares.values()]))
            for word, share in shares.items():
                by_word[word].append(share)
        means = np.array([np.mean(of) for of in by_word.values()])
        over_words = intervals.bootstrap(
            lambda rows: means[rows].mean(axis=-1),
            len(means),
            resamples=self._config.resamples,
        )
        return intervals.with_spread(over_words, intervals.t_interval(by_part))

    def _intrinsic(self, words: WordVectors) -> Metrics:
        scores = {}
        for name, pairs in self._tests.similarity.items():
            score = similarity.word_similarity(words, pairs, resamples=0)
            if score.covered:
                metric = f"Spearman on {name} ({score.covered} of {score.total} pairs)"
                scores[metric] = score.spearman
        if self._all and self._tests.features is not None:
            found = qvec.qvec(words, self._tests.features, groups=0)
            scores |= {QVEC_SUM: found.sum, QVEC: found.mean, QVEC_CCA: found.cca}
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
        parts = range(self._config.parts)
        changes = (self.change(table, arm, part) for part in parts)
        return np.stack([delta.row_norms(change) for change in changes], axis=1)

    @functools.cache  # noqa: B019
    def gains(
        self, table: Table, arm: str, over: str | None = None
    ) -> dict[str, Interval]:
        """Test to the change of its score, in points, the mean over parts.

        Over the untuned table, or over another arm's of the same part. Intervals hold
        both what the items of a test leave uncertain (a bootstrap over word pairs; for
        QVEC-CCA a jackknife over words) and the spread over parts.
        """
        features = self._tests.features
        of_qvec: list[Interval] = []

        def couples() -> Iterator[tuple[WordVectors, WordVectors]]:
            for part in range(self._config.parts):
                self._tell(table, arm, over, part)
                ours = self.whole(table, self.rows(table, arm, part))
                theirs = table.words
                if over is not None:
                    theirs = self.whole(table, self.rows(table, over, part))
                if features is not None:
                    of_qvec.append(qvec.compare_qvec(ours, theirs, features).cca)
                yield ours, theirs

        found = similarity.compare_lists(
            couples(), self._tests.similarity, resamples=self._config.resamples
        )
        over_lists = [*zip(*found.values.values(), strict=True)]
        by_part = {
            SIMILARITY: [float(np.mean(of)) for of in over_lists],
            **found.values,
            QVEC_CCA: [gap.mean for gap in of_qvec],
        }
        over_items = {
            SIMILARITY: found.mean,
            **found.by_list,
            QVEC_CCA: intervals.mean_together(of_qvec),
        }
        both = {
            name: intervals.with_spread(items, intervals.t_interval(by_part[name]))
            for name, items in over_items.items()
        }
        return {
            name: Interval(100 * m.mean, 100 * m.low, 100 * m.high)
            for name, m in both.items()
            if not np.isnan(m.mean)
        }

    def _tell(self, table: Table, arm: str, over: str | None, part: int) -> None:
        if self._config.run.progress:
            against = "the untuned table" if over is None else over
            terminal.say(
                f"{table.name}/{arm} against {against}: intrinsic tests of part "
                f"{part + 1} of {self._config.parts}"
            )
