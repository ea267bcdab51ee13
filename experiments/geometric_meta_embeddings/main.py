"""Learns the geometry, scores every system on every test, compares, draws."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.common.rows import interval_row, print_claims, print_side_by_side
from experiments.geometric_meta_embeddings import data, model
from experiments.geometric_meta_embeddings.config import (
    ANALOGY,
    SIMILARITY,
    SLUG,
    Config,
)
from jaxemb import terminal
from jaxemb.analysis import figures, geometry
from jaxemb.data.vectors import WordVectors, write_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval import intervals, kinds
from jaxemb.eval.intervals import Interval
from jaxemb.eval.settings import Settings
from jaxemb.spaces import combine
from jaxemb.train import results

# Which fields of an outcome are a test's score, in per cent as the paper has it.
_SCORE = {"similarity": "spearman", "analogy": "accuracy", "relational": "spearman"}
_GROUPS = {"similarity": "mean similarity", "analogy": "mean analogy"}


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    workdir = Path(config.workdir)
    with results.recorded(workdir):
        outcome = _run(config, workdir)
    written = results.write(
        workdir, origins=[results.origin(workdir)], **outcome.pop("written")
    )
    print_side_by_side(outcome["rows"])
    print_claims(outcome["claims"])
    return written


def _run(config: Config, workdir: Path) -> dict:
    sources = data.load_sources(config)
    tests = data.load_tests(config)
    equal = model.equal_width(config, sources)
    learned = model.learn(config, equal, config.c)
    terminal.say(
        f"{len(sources.words):,} words; objective {learned.objective:.6g} at "
        f"c = {config.c:g}"
    )
    tables = {
        name: WordVectors(sources.words, matrix.astype(np.float32), unique=True)
        for name, matrix in model.systems(config, sources, equal, learned).items()
    }
    for name in ("Geo-AVG", "Geo-CONC"):
        write_word_vectors(workdir / f"{name.lower()}.txt", tables[name])
    settings = Settings(resamples=config.resamples)
    board = Board(tests, settings, show=config.run.progress)
    left_out = board.leave_out_uncovered(tables["AVG"])
    rows = [row for name, table in tables.items() for row in board.rows(name, table)]
    swept = {}
    for c in sorted({*config.sweep, config.c}):
        latents = model.learn(config, equal, c).geometry.latents(equal)
        matrix = combine.average(latents).astype(np.float32)
        swept[c] = board.means(WordVectors(sources.words, matrix, unique=True))
        for group, mean in swept[c].items():
            rows.append(interval_row(f"Geo-AVG at c = {c:g}", f"{group}, sweep", mean))
    claims = _claims(config, sources, tables, board)
    report = geometry.alignment(*learned.geometry.latents(equal)[:2])
    rows += [
        interval_row(
            "same word in two sources", metric, Interval(value, np.nan, np.nan)
        )
        for metric, value in (
            ("mean cosine of latents", report.cosine),
            ("found as nearest (%)", 100 * report.found),
        )
    ]
    _draw(config, workdir, learned, swept, tables, board)
    written = {
        "slug": SLUG,
        "preset": config.preset,
        "config": {
            **_described(config, sources, learned, equal),
            "tests without a covered item": left_out,
        },
        "data": [*sources.data, *board.data()],
        "rows": rows,
        "claims": claims,
    }
    return {"written": written, "rows": rows, "claims": claims}


class Board:
    """Scores of tables on all tests, kept so that each is computed once."""

    def __init__(self, tests: data.Tests, settings: Settings, show: bool):
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
                metric = f"{_column(test.name)} ({covered})"
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


def _claims(
    config: Config,
    sources: data.Sources,
    tables: Mapping[str, WordVectors],
    board: Board,
) -> list[results.Claim]:
    """The paper's claims: the geometry beats plain combination and the sources."""
    wanted = [("Geo-AVG", "AVG"), ("Geo-CONC", "CONC")]
    wanted += [(geo, name) for geo in ("Geo-AVG", "Geo-CONC") for name in sources.names]
    claims = []
    for better, worse in wanted:
        for group, of in board.differences(tables[better], tables[worse]).items():
            gap = intervals.mean_of(list(of.values()))
            claims.append(
                results.Claim(
                    claim=f"{better} beats {worse}: {group}",
                    verdict=intervals.verdict(gap.low, gap.high),
                    evidence=f"mean difference {gap.mean:+.2f} points [{gap.low:.2f}, "
                    f"{gap.high:.2f}] over {len(of)} tests, paired bootstrap over "
                    f"their items, {config.resamples} resamples",
                )
            )
    return claims


def _draw(
    config: Config,
    workdir: Path,
    learned: model.Learned,
    swept: Mapping[float, Mapping[str, Interval]],
    tables: Mapping[str, WordVectors],
    board: Board,
) -> None:
    folder = workdir / "figures"
    figures.save(
        geometry.metric_spectrum(learned.geometry.metric),
        folder / "metric-spectrum.svg",
        f"Eigenvalues of the shared metric at c = {config.c:g}.",
    )
    figures.save(
        geometry.regularisation_path(swept),
        folder / "regularisation-path.svg",
        "Geo-AVG's mean scores against c; nothing was chosen from this.",
    )
    gaps = {
        _column(name): gap
        for of in board.differences(tables["Geo-AVG"], tables["AVG"]).values()
        for name, gap in of.items()
    }
    figures.save(
        geometry.benchmark_differences(gaps),
        folder / "benchmark-differences.svg",
        "Geo-AVG less AVG, in points, with paired 95 % intervals.",
    )


def _described(
    config: Config,
    sources: data.Sources,
    learned: model.Learned,
    equal: Sequence[np.ndarray],
) -> dict:
    described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
    return {
        **described,
        "vocabulary": len(sources.words),
        "widths": [matrix.shape[1] for matrix in sources.matrices],
        "latent_width": equal[0].shape[1],
        "objective": learned.objective,
        "iterations": learned.iterations,
        "interval": "95 %: bootstrap over pairs (similarity) or relations (SemEval), "
        "Wilson over questions (analogies); of a mean over tests, from theirs as of "
        "independent figures. The method has no seed: nothing is random but that",
        "latents": "rows of length 1 before they are combined, as the authors' program",
    }


def _score(test: kinds.Test, fields: Mapping) -> Interval:
    values = (fields[key] for key in (_SCORE[test.kind], "low", "high"))
    return Interval(*(100 * value for value in values))


def _column(test: str) -> str:
    return {**SIMILARITY, **ANALOGY}.get(test.removeprefix("EN-"), test)
