"""Scores of tables on the tests of a run."""

from collections.abc import Mapping

from experiments.common.rows import interval_row
from experiments.geometric_meta_embeddings.config import ANALOGY, SIMILARITY
from experiments.geometric_meta_embeddings.data import Tests
from jaxemb import terminal
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import intervals, kinds
from jaxemb.eval.intervals import Interval
from jaxemb.eval.settings import Settings
from jaxemb.train import results

# Which fields of an outcome are a test's score, in per cent as the paper has it.
_SCORE = {"similarity": "spearman", "analogy": "accuracy", "relational": "spearman"}
_GROUPS = {"similarity": "mean similarity", "analogy": "mean analogy"}


class Board:
    """Scores of tables on all tests, kept so that each is computed once."""

    def __init__(self, tests: Tests, settings: Settings, show: bool):
        self._groups: dict[str, tuple[kinds.Test, ...]] = {
            "similarity": tests.similarity,
            "analogy": tests.analogy,
        }
        self._settings = settings
        self._outcomes: dict[tuple[int, str], kinds.Outcome] = {}
        self._kept: list[WordVectors] = []  # an id is a table's while it lives
        self._show = show

    def outcome(self, test: kinds.Test, table: WordVectors) -> kinds.Outcome:
        """A test's outcome for a table."""
        key = id(table), test.name
        if key not in self._outcomes:
            self._kept.append(table)
            self._outcomes[key] = test.score(table, self._settings, (table,))
        return self._outcomes[key]

    def leave_out_uncovered(self, table: WordVectors) -> list[str]:
        """Drops the tests of which a table knows no item, and names them."""
        dropped = []
        for group, tests in self._groups.items():
            known = [t for t in tests if self.outcome(t, table).fields["covered"]]
            dropped += [test.name for test in tests if test not in known]
            self._groups[group] = tuple(known)
        if not any(self._groups.values()):
            raise InputError(
                f"the {len(table):,} words of the sources cover no item of any test; "
                "expected English words, or --words union"
            )
        if dropped:
            terminal.say(f"left out, with no item covered: {', '.join(dropped)}")
        return dropped

    def rows(self, name: str, table: WordVectors) -> list[results.Row]:
        """The two means, then every test's score."""
        means = self.means(table)
        if self._show:
            told = ", ".join(f"{group} {m.mean:.2f}" for group, m in means.items())
            terminal.say(f"{name}: {told}")
        rows = [interval_row(name, group, mean) for group, mean in means.items()]
        for tests in self._groups.values():
            for test in tests:
                fields = self.outcome(test, table).fields
                covered = f"{fields['covered']} of {fields['total']}"
                metric = f"{column(test.name)} ({covered})"
                rows.append(interval_row(name, metric, _score(test, fields)))
        return rows

    def means(self, table: WordVectors) -> dict[str, Interval]:
        """The mean over the tests of each group."""
        return {
            _GROUPS[group]: intervals.mean_of(
                [_score(test, self.outcome(test, table).fields) for test in tests]
            )
            for group, tests in self._groups.items()
            if tests
        }

    def differences(
        self, better: WordVectors, worse: WordVectors
    ) -> dict[str, dict[str, Interval]]:
        """Group to test to the paired difference, in points."""
        return {
            _GROUPS[group]: {
                test.name: self._difference(test, better, worse) for test in tests
            }
            for group, tests in self._groups.items()
            if tests
        }

    def _difference(
        self, test: kinds.Test, better: WordVectors, worse: WordVectors
    ) -> Interval:
        tables = better, worse
        outcomes = tuple(self.outcome(test, table) for table in tables)
        found = test.compare(self._settings, tables, outcomes)
        one = next(d for d in found if d.metric == _SCORE[test.kind])
        return Interval(100 * one.difference, 100 * one.low, 100 * one.high)

    def data(self) -> list[results.Data]:
        """The tests as data sets."""
        return [
            results.Data(
                name=test.name,
                kind="synthetic" if test.name == "planted" else "real",
                source="see jaxemb data list",
                sha256=None,
                size=len(test.words),
            )
            for tests in self._groups.values()
            for test in tests
        ]


def _score(test: kinds.Test, fields: Mapping) -> Interval:
    values = (fields[key] for key in (_SCORE[test.kind], "low", "high"))
    return Interval(*(100 * value for value in values))


def column(test: str) -> str:
    return {**SIMILARITY, **ANALOGY}.get(test.removeprefix("EN-"), test)
