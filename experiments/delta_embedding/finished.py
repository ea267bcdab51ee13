"""The finished parts of a run: what rows, verdicts and figures are made of."""

import functools
import json
from collections.abc import Mapping, Sequence

import numpy as np
from etils import epath

from experiments.delta_embedding import data
from experiments.delta_embedding.config import Config, Measure, arm
from experiments.delta_embedding.task import Task
from experiments.delta_embedding.tuned import Table, TunedTables
from jaxemb import terminal, train
from jaxemb.data import sources
from jaxemb.train import results

OTHERS = "others.json"  # scores of the best epoch on the sets that wait for the end
# The weight that is fixed beforehand, and the paper's best where that is another.
_BEFOREHAND = "delta-1e-4"
_PAPERS_BEST = {"kmr": "delta-1e-5"}


def best_epoch(folder: epath.Path, score: str) -> dict[str, float]:
    """The evaluation whose dev score is the first highest, with those made later."""
    best = train.best_evaluation(folder, f"dev/{score}")
    others = folder / OTHERS
    return {**best, **(json.loads(others.read_text()) if others.exists() else {})}


class Finished:
    """All parts of all arms, and the tables that they leave."""

    def __init__(
        self,
        config: Config,
        task: Task,
        tables: Sequence[Table],
        tests: data.Tests,
        workdir: epath.Path,
    ):
        self.config = config
        self.task = task
        self.tables = tables
        self.tests = tests
        self.workdir = workdir
        self.parts = range(config.parts)
        self.polarity = _polarity(config)
        self.tuned = TunedTables(config, task, tests, self.polarity, workdir)
        self.measures_all = config.intrinsic == "all"
        """Whether all is measured of tables, and not similarity alone."""

    def origins(self) -> list[dict]:
        """By which commits, and how long, every part was trained."""
        return [
            results.origin(self.tuned.folder(table, name, part))
            for table in self.tables
            for name in self.config.arms
            for part in self.parts
        ]

    @property
    def tuning_arms(self) -> list[str]:
        """The arms that move the table."""
        return [n for n in self.config.arms if arm(n).mode != "fixed"]

    @property
    def prox_arms(self) -> list[str]:
        """The arms whose rows can be exactly where they were."""
        return [n for n in self.config.arms if arm(n).prox]

    @property
    def claimed_arms(self) -> list[str]:
        """The weight fixed beforehand, then the paper's best; those that were run."""
        best = _PAPERS_BEST.get(self.config.task, _BEFOREHAND)
        wanted = dict.fromkeys([_BEFOREHAND, best])
        return [name for name in wanted if name in self.config.arms]

    @property
    def shown_arm(self) -> str | None:
        """The arm whose delta is shown: the weight fixed beforehand if it was run."""
        names = [n for n in self.config.arms if arm(n).mode == "delta"]
        return _BEFOREHAND if _BEFOREHAND in names else next(iter(names), None)

    @functools.cached_property
    def trained_on(self) -> str:
        """The size of a training part, which is small beside the paper's."""
        columns = self.task.split(self.config, 0).train
        size = len(next(iter(columns.values())))
        return f"{size:,} {self.config.kind.examples}"

    @property
    def evidence(self) -> str:
        """How many values a claim rests on; of small sets also what trained them."""
        counted = f"{self.config.parts} {self.config.protocol}"
        if self.config.kind.name == "sentiment":
            return counted
        return f"{counted}, trained on {self.trained_on}"

    @functools.cache  # noqa: B019 (it lives as long as its run)
    def scores(self, table: Table, name: str, score: str) -> list[float]:
        """One score at the best epoch in per cent, one a part."""
        return [100 * best[score] for best in self._best_epochs(table, name)]

    def chosen_epochs(self, table: Table, name: str) -> list[float]:
        """The epoch of highest dev score: a last one says more might have helped."""
        return [
            best["step"] / self.task.steps_per_epoch(self.config, part)
            for part, best in enumerate(self._best_epochs(table, name))
        ]

    @functools.cache  # noqa: B019
    def _best_epochs(self, table: Table, name: str) -> list[dict[str, float]]:
        folders = [self.tuned.folder(table, name, part) for part in self.parts]
        return [best_epoch(folder, self.config.kind.selects) for folder in folders]

    def chosen_on_dev(self, table: Table) -> list[float] | None:
        """The main figure when each part takes the delta arm of best dev score."""
        names = [n for n in self.config.arms if n.startswith("delta-")]
        if len(names) < 2:
            return None
        on_dev = f"dev/{self.config.kind.selects}"
        on_test = self.config.measures[0].score
        dev = np.array([self.scores(table, n, on_dev) for n in names])
        test = np.array([self.scores(table, n, on_test) for n in names])
        return np.take_along_axis(test, dev.argmax(0)[None], axis=0)[0].tolist()

    def of_majority(self, measure: Measure) -> list[float]:
        """Accuracy of the class that is commonest in training, one value a part."""
        values = []
        for part in self.parts:
            split = self.task.split(self.config, part)
            commonest = np.bincount(np.asarray(split.train["labels"])).argmax()
            tested = {"test": split.test, **self.task.others}
            labels = tested[measure.score.split("/")[0]]["labels"]
            values.append(100 * float(np.mean(np.asarray(labels) == commonest)))
        return values


def _polarity(config: Config) -> Mapping[str, float] | None:
    try:
        return data.load_polarity(config)
    except sources.FetchError as error:
        terminal.say(f"no polarity lexicon, so no Table 5: {error}")
        return None
