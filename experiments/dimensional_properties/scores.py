"""Outcomes of spaces on the tests, each computed once and kept in the run's folder."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence

import numpy as np
from etils import epath

from experiments.dimensional_properties.config import Config
from experiments.dimensional_properties.data import Table, Tests
from jaxemb import storage
from jaxemb.analysis import dimensions
from jaxemb.analysis.dimensions import SinglePC
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import intervals, kinds
from jaxemb.eval.intervals import Interval
from jaxemb.eval.kinds import Outcome, SimilarityTest
from jaxemb.eval.sentences import SentenceTest
from jaxemb.eval.settings import Settings
from jaxemb.train import results

Test = SimilarityTest | SentenceTest
Scores = dict[str, Outcome]  # by test

_METRIC = {"similarity": "spearman", "sentences": "accuracy"}
_SIGNS = {"0": 0.0, "1": 1.0, "-": np.nan}  # of a row: wrong, right, not tested


class Scorer:
    """Scores spaces whose rows are the words of the table."""

    def __init__(self, config: Config, table: Table, tests: Tests, workdir: epath.Path):
        self._settings = Settings(resamples=config.resamples)
        self._words = table.vectors.words
        self._bags = {
            test.name: test.bags(table.vectors)
            for test in (*tests.sentences, *tests.probes)
        }
        self._folder = workdir / "scores"
        inputs = [results.as_json(dataclasses.replace(config, run=type(config.run)()))]
        inputs += [dataclasses.asdict(d) for d in (*table.data, *tests.data)]
        self._digest = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()

    def score(self, name: str, matrix: np.ndarray, tests: Sequence[Test]) -> Scores:
        """The outcomes of a space, found in the folder if a run left them there."""
        path = self._folder / f"{name.replace(' ', '-')}.json"
        kept = _read(path, self._digest)
        missing = [test for test in tests if test.name not in kept]
        if missing:
            kept |= self.outcomes(matrix, missing)
            storage.write_text(path, _text(kept, self._digest))
        return {test.name: kept[test.name] for test in tests}

    def probe(self, name: str, matrix: np.ndarray, test: SentenceTest) -> SinglePC:
        """Each column of a space alone, kept in the folder likewise."""
        path = self._folder / f"{name.replace(' ', '-')}-{test.name}.json"
        accuracies = _read_accuracies(path, self._digest)
        if accuracies is None:
            features = self.features(test, matrix)
            accuracies = dimensions.accuracies_of_each(
                features, test.labels, test.classes, test.plan
            )
            kept = {"of": self._digest, "accuracies": accuracies.tolist()}
            storage.write_text(path, json.dumps(kept) + "\n")
        return SinglePC.of(
            accuracies, test.majority, resamples=self._settings.resamples
        )

    def outcomes(self, matrix: np.ndarray, tests: Sequence[Test]) -> Scores:
        """The same, computed and not kept."""
        return {test.name: self._outcome(test, matrix) for test in tests}

    def vectors(self, matrix: np.ndarray) -> WordVectors:
        """A space as a table."""
        return WordVectors(self._words, matrix.astype(np.float32), unique=True)

    def features(self, test: SentenceTest, matrix: np.ndarray) -> np.ndarray:
        """What a classifier sees of the sentences in a space."""
        return test.features(self._bags[test.name], matrix)

    def covered(self, test: SentenceTest) -> float:
        """Share of the running words that the table has."""
        found = self._bags[test.name]
        return sum(b.covered for b in found) / sum(b.total for b in found)

    def difference(
        self,
        test: Test,
        matrices: tuple[np.ndarray, np.ndarray],
        outcomes: tuple[Outcome, Outcome],
    ) -> Interval:
        """A first space less a second, paired, in points."""
        tables: kinds.Tables = (self.vectors(matrices[0]), self.vectors(matrices[1]))
        (found,) = test.compare(self._settings, tables, outcomes)
        return Interval(100 * found.difference, 100 * found.low, 100 * found.high)

    def _outcome(self, test: Test, matrix: np.ndarray) -> Outcome:
        if isinstance(test, SimilarityTest):
            return test.score(self.vectors(matrix), self._settings, ())
        return test.outcome(self._bags[test.name], matrix)


def value(test: Test, outcome: Outcome) -> Interval:
    """A test's score and its interval, in per cent."""
    keys = _METRIC[test.kind], "low", "high"
    return Interval(*(100 * outcome.fields[key] for key in keys))


def mean(tests: Sequence[Test], scores: Scores) -> Interval:
    """The mean over tests."""
    return intervals.mean_of([value(test, scores[test.name]) for test in tests])


def _text(scores: Scores, digest: str) -> str:
    signs = {item: sign for sign, item in _SIGNS.items() if sign != "-"}
    tests = {
        name: {
            "fields": outcome.fields,
            "items": None
            if outcome.items is None
            else "".join(signs.get(item, "-") for item in outcome.items.tolist()),
        }
        for name, outcome in scores.items()
    }
    return json.dumps({"of": digest, "tests": tests}) + "\n"


def _read(path: epath.Path, digest: str) -> Scores:
    """The outcomes in a file, none where it is of another run."""
    if not path.exists():
        return {}
    kept = json.loads(path.read_text())
    if kept["of"] != digest:
        return {}
    return {
        name: Outcome(
            one["fields"],
            [],
            None
            if one["items"] is None
            else np.array([_SIGNS[sign] for sign in one["items"]]),
        )
        for name, one in kept["tests"].items()
    }


def _read_accuracies(path: epath.Path, digest: str) -> np.ndarray | None:
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    return np.array(kept["accuracies"]) if kept["of"] == digest else None
