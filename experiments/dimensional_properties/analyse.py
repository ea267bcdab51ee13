"""From outcomes to rows, verdicts and figures."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from etils import epath

from experiments.dimensional_properties import data, model
from experiments.dimensional_properties.config import Config
from experiments.dimensional_properties.scores import Scorer, Scores, Test, mean, value
from jaxemb.analysis import dimensions, figures, geometry
from jaxemb.analysis.dimensions import SinglePC
from jaxemb.eval import intervals, kinds
from jaxemb.eval.intervals import Interval
from jaxemb.spaces import components as components_lib
from jaxemb.train import results

_BLOCKS = ("T", "M", "B")
_COMMONEST = "commonest class"


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What was computed of a table."""

    config: Config
    table: data.Table
    tests: data.Tests
    scorer: Scorer
    matrices: Mapping[str, np.ndarray]
    scores: Mapping[str, Scores]
    """By system."""
    curve: Mapping[int, Scores]
    """By the number of first components."""
    swept: Mapping[int, Scores]
    """Similarity by the number of components removed."""
    probes: Mapping[str, Mapping[str, SinglePC]]
    """Components one by one, as they are and standardised: by probe."""
    gaps: dict[tuple[str, str, str], Interval] = dataclasses.field(default_factory=dict)
    """Differences found so far, by test and systems."""

    @property
    def groups(self) -> dict[str, tuple[Test, ...]]:
        """Tests of which a mean is told, by what it is called."""
        groups: dict[str, tuple[Test, ...]] = {
            "accuracy": self.tests.sentences,
            "similarity": self.tests.similarity,
        }
        words = {"accuracy": "tasks", "similarity": "lists"}
        return {
            f"mean {kind} ({len(tests)} {words[kind]})": tests
            for kind, tests in groups.items()
            if tests
        }

    @property
    def called(self) -> dict[str, str]:
        """Systems' names."""
        return model.names(self.config, self.table.vectors.dim)

    def metric(self, test: Test) -> str:
        """A test, and what of it the table covers."""
        if isinstance(test, kinds.SimilarityTest):
            fields = next(iter(self.scores.values()))[test.name].fields
            return f"{test.name} ({fields['covered']} of {fields['total']} pairs)"
        return f"{test.name} ({100 * self.scorer.covered(test):.1f} % of words)"

    def gap(self, test: Test, better: str, worse: str) -> Interval:
        """The paired difference of two systems, in points."""
        key = test.name, better, worse
        if key not in self.gaps:
            self.gaps[key] = self.scorer.difference(
                test,
                (self.matrices[better], self.matrices[worse]),
                (self.scores[better][test.name], self.scores[worse][test.name]),
            )
        return self.gaps[key]

    def mean_gap(self, tests: Sequence[Test], better: str, worse: str) -> Interval:
        """Its mean over tests."""
        return intervals.mean_of([self.gap(test, better, worse) for test in tests])


def described_config(outcome: Outcome) -> dict:
    """The config as results have it, and what it left open."""
    config, tests = outcome.config, outcome.tests
    every = (*tests.sentences, *tests.probes)
    norms = [
        s[t.name].fields["gradient_norm"]
        for s in outcome.scores.values()
        for t in every
    ]
    return {
        **results.as_json(dataclasses.replace(config, run=type(config.run)())),
        "dimensions": outcome.table.vectors.dim,
        "rows_of_the_table": outcome.table.data[0].size,
        "tasks": [test.name for test in every],
        "lists": [test.name for test in tests.similarity],
        "tested": {test.name: _tested(test) for test in every},
        "longest_gradient": max(norms, default=None),
        "interval": "95 %: bootstrap over pairs (similarity) and over components (rank "
        "correlation), Wilson over tested rows (accuracy), paired bootstrap over pairs "
        "or rows for differences; of a mean over tests, from theirs as of independent "
        "figures, which lists and tasks that share items are not quite",
        "values": "of a mean over tests: one a test, in the order of tasks or lists",
        "shown": [*outcome.groups, *(outcome.metric(test) for test in every)],
    }


def rows(outcome: Outcome) -> list[results.Row]:
    """Every figure of the run; the means come first."""
    return [
        *_system_rows(outcome),
        *_space_rows(outcome),
        *_dominance_rows(outcome),
        *_curve_rows(outcome),
        *_probe_rows(outcome),
    ]


def claims(outcome: Outcome) -> list[results.Claim]:
    """The paper's claims (a) to (d), each with its verdict."""
    return [
        *_saturation(outcome),
        *_variance(outcome),
        *_syntax(outcome),
        *_processing(outcome),
    ]


def write_figures(outcome: Outcome, folder: epath.Path) -> None:
    """The paper's three figures, the tables as heat maps, and the differences."""
    dim = outcome.table.vectors.dim
    wide, _ = model.widths(dim)
    name = outcome.table.name
    for kind, tests in outcome.groups.items():
        if not outcome.curve:
            break
        curves = {
            test.name: {
                width: value(test, scores[test.name]).mean
                for width, scores in outcome.curve.items()
            }
            for test in tests
        }
        figures.save(
            dimensions.curve_figure(
                curves, f"{name}: {kind.split(' (')[0]}", mark=wide
            ),
            folder / f"cumulative-{kind.split()[1]}.svg",
            f"Scores of the first components; upright: {wide} of {dim}.",
        )
    for place, probes in enumerate(
        outcome.probes.values() if outcome.tests.probes else ()
    ):
        suffix, how = (("", ""), ("-standardised", ", at variance 1"))[place]
        figures.save(
            dimensions.probe_figure(probes),
            folder / f"single-components{suffix}.svg",
            f"Each point is a classifier that sees one component{how}.",
        )
    figures.save(
        dimensions.variance_figure(outcome.table.components),
        folder / "variance.svg",
        f"Share of the variance of {name} in its first components.",
    )
    tests = (*outcome.tests.sentences, *outcome.tests.probes)
    systems = ("full", *_BLOCKS, *(f"{block}, standardised" for block in _BLOCKS))
    if tests:
        cells = [
            [value(t, outcome.scores[system][t.name]).mean for system in systems]
            for t in tests
        ]
        columns = [system.replace(", standardised", "*") for system in systems]
        figures.save(
            figures.heat_map(
                *(np.array(cells), [t.name for t in tests], columns),
                "accuracy of blocks of components; *: at variance 1",
            ),
            folder / "blocks.svg",
            "Top, middle and bottom third of the components by variance.",
        )
    full, ppa = outcome.called["full"], outcome.called["ppa"]
    gaps = {
        test.name: outcome.gap(test, ppa, full)
        for test in (*outcome.tests.similarity, *outcome.tests.sentences)
    }
    figures.save(
        geometry.benchmark_differences(gaps),
        folder / "post-processing.svg",
        f"{ppa} less {full} on every test, in points, with paired 95 % intervals.",
    )


def _system_rows(outcome: Outcome) -> Iterator[results.Row]:
    tests = outcome.tests
    for kind, of in outcome.groups.items():
        for name, scores in outcome.scores.items():
            yield _row(name, kind, mean(of, scores), _values(of, scores))
        if of == tests.sentences:
            majority = [100 * test.majority for test in tests.sentences]
            yield _row(_COMMONEST, kind, _alone(float(np.mean(majority))), majority)
    for test in (*tests.sentences, *tests.probes, *tests.similarity):
        for name, scores in outcome.scores.items():
            found = scores[test.name]
            folds = [100 * v for v in found.fields.get("rounds", ())]
            yield _row(name, outcome.metric(test), value(test, found), folds)
        if isinstance(test, kinds.SimilarityTest):
            continue
        majority = 100 * test.majority
        yield _row(_COMMONEST, outcome.metric(test), _alone(majority))


def _space_rows(outcome: Outcome) -> Iterator[results.Row]:
    for block, share in dimensions.variance_shares(outcome.table.components).items():
        yield _row(block, "share of the variance", _alone(share))
    first, components = outcome.table.first, outcome.table.components
    called = outcome.called
    spaces = {"full": first}
    for name, count in (("centred", 0), ("ppa", outcome.config.removed)):
        spaces[name] = components_lib.remove_top(first, count, components=components)
    for name, space in spaces.items():
        metric = f"isotropy ({len(first):,} rows)"
        yield _row(called[name], metric, _alone(components_lib.isotropy(space)))
    tests = outcome.tests.similarity
    for count, scores in outcome.swept.items() if tests else ():
        metric = "mean similarity, by components removed"
        name = f"PPA-{count}" if count else called["centred"]
        yield _row(name, metric, mean(tests, scores), _values(tests, scores))


def _dominance_rows(outcome: Outcome) -> Iterator[results.Row]:
    """How often a block wins over one of more variance, on tasks and on probes."""
    for kind, tests in _classified(outcome).items():
        for suffix in ("", ", standardised"):
            for found in dimensions.dominance_counts(_gaps(outcome, tests, suffix)):
                name = f"{found.lower} over {found.higher}{suffix}"
                of = f"of {found.tests} {kind}"
                yield _row(name, f"won {of}", _alone(found.wins))
                yield _row(name, f"clearly won {of}", _alone(found.clear))


def _curve_rows(outcome: Outcome) -> Iterator[results.Row]:
    for kind, of in outcome.groups.items():
        for width, scores in outcome.curve.items():
            name = f"first {width}"
            yield _row(
                name, f"{kind}, cumulative", mean(of, scores), _values(of, scores)
            )


def _probe_rows(outcome: Outcome) -> Iterator[results.Row]:
    for name, probes in outcome.probes.items():
        for test in outcome.tests.probes:
            probe = probes[test.name]
            accuracies = (100 * probe.accuracies).tolist()
            average = _alone(float(np.mean(accuracies)))
            yield _row(name, outcome.metric(test), average, accuracies)
            spread = _alone(float(np.std(accuracies)))
            yield _row(name, f"{test.name}, deviation of components", spread)
            metric = f"{test.name}, rho of accuracy and place by variance"
            yield _row(name, metric, probe.rank_correlation)
            metric = f"{test.name}, best component"
            yield _row(name, metric, _alone(probe.peak))


def _saturation(outcome: Outcome) -> Iterator[results.Claim]:
    """(a) Two thirds of the components do what all of them do.

    And, where there is one, what a table does that was trained at a smaller width.
    """
    called, native = outcome.called, outcome.table.native
    compared = [(called["pca"], called["all"])]
    if native is not None:
        width = native.shape[1]
        compared.append((model.pca_name(width), model.native_name(width)))
    margin = outcome.config.margin
    lost = f"{margin:g} point{'s' * (margin != 1)}"
    for less, reference in compared:
        for kind, tests in outcome.groups.items():
            gap = outcome.mean_gap(tests, less, reference)
            yield results.Claim(
                claim=f"(a) {less} is less than {lost} below {reference}: {kind}",
                verdict=intervals.verdict(gap.low + margin, gap.high + margin),
                evidence=_evidence(outcome, gap, tests),
            )


def _variance(outcome: Outcome) -> Iterator[results.Claim]:
    """(b) Variance is a poor guide to a block's worth."""
    for kind, tests in _classified(outcome).items():
        for suffix in ("", ", standardised"):
            yield _some_block_wins(outcome, tests, kind, suffix)
    if "glove" in outcome.table.name:  # the paper's are all of GloVe
        for test in outcome.tests.sentences:
            if test.name in ("MR", "SST2"):
                gap = outcome.gap(test, "M", "T")
                yield _claim(outcome, f"(b) M beats T: {test.name}", gap, (test,))


def _some_block_wins(
    outcome: Outcome, tests: Sequence[Test], kind: str, suffix: str
) -> results.Claim:
    """One win is enough, so that intervals are as wide as so many chances ask for."""
    pairs = dimensions.block_pairs()
    level = 1 - 0.05 / (len(tests) * len(pairs))
    won, lost = [], 0
    for test in tests:
        hits = {b: outcome.scores[b + suffix][test.name].items for b in _BLOCKS}
        for lower, higher in pairs:
            differences = 100 * (hits[lower] - hits[higher])
            tested = differences[~np.isnan(differences)]
            gap = intervals.t_interval(tested, level)
            lost += gap.high < 0
            if gap.low > 0:
                won.append(f"{lower} over {higher} on {test.name} {gap.mean:+.2f}")
    counts = dimensions.dominance_counts(_gaps(outcome, tests, suffix))
    chances = len(tests) * len(pairs)
    verdict = "supported" if won else "contradicted" if lost == chances else None
    told = ", ".join(f"{c.lower} over {c.higher} {c.wins}" for c in counts)
    clear = f"; clear of chance among {chances}: {', '.join(won) or 'none'}"
    block = "a block of less variance" + (", at variance 1," if suffix else "")
    return results.Claim(
        claim=f"(b) {block} beats one of more on some of the {kind}",
        verdict=verdict or "inconclusive",
        evidence=f"wins of {len(tests)}: {told}{clear}, {lost} clear losses; t "
        "intervals over rows, Bonferroni",
    )


def _syntax(outcome: Outcome) -> Iterator[results.Claim]:
    """(c) What a component knows of syntax does not go with its variance."""
    for name, probes in outcome.probes.items():
        for task, probe in probes.items():
            claim = f"(c) accuracy of {name} is unrelated to its variance: {task}"
            yield _unrelated(outcome.config.rank_margin, claim, probe)


def _unrelated(margin: float, claim: str, probe: SinglePC) -> results.Claim:
    rho = probe.rank_correlation
    verdict = "inconclusive"
    if max(abs(rho.low), abs(rho.high)) < margin:
        verdict = "supported"
    elif rho.low > 0 or rho.high < 0:
        verdict = "contradicted"
    means = ", ".join(f"{block} {100 * v:.2f}" for block, v in probe.by_third.items())
    return results.Claim(
        claim=claim,
        verdict=verdict,
        evidence=f"rho of accuracy and place {rho.mean:+.3f} [{rho.low:.3f}, "
        f"{rho.high:.3f}], ±{margin:g} passing for none; best is component "
        f"{probe.peak} of {len(probe.accuracies)}; means {means}, commonest class "
        f"{100 * probe.majority:.2f}",
    )


def _processing(outcome: Outcome) -> Iterator[results.Claim]:
    """(d) Post-processing by variance helps similarity and hurts classification."""
    called = outcome.called
    full, ppa, reduced = called["full"], called["ppa"], called["reduced"]
    for kind, tests in outcome.groups.items():
        if tests == outcome.tests.similarity:
            for worse in (full, called["centred"]):
                gap = outcome.mean_gap(tests, ppa, worse)
                yield _claim(outcome, f"(d) {ppa} beats {worse}: {kind}", gap, tests)
        else:
            for worse in (ppa, reduced):
                gap = outcome.mean_gap(tests, full, worse)
                yield _claim(outcome, f"(d) {full} beats {worse}: {kind}", gap, tests)


def _claim(
    outcome: Outcome, claim: str, gap: Interval, tests: Sequence[Test]
) -> results.Claim:
    return results.Claim(
        claim=claim,
        verdict=intervals.verdict(gap.low, gap.high),
        evidence=_evidence(outcome, gap, tests),
    )


def _evidence(outcome: Outcome, gap: Interval, tests: Sequence[Test]) -> str:
    over = f"{len(tests)} tests" if len(tests) > 1 else tests[0].name
    return (
        f"difference {gap.mean:+.2f} points [{gap.low:.2f}, {gap.high:.2f}] over "
        f"{over}, paired bootstrap, {outcome.config.resamples} resamples"
    )


def _classified(outcome: Outcome) -> dict[str, Sequence[Test]]:
    groups = {"tasks": outcome.tests.sentences, "probes": outcome.tests.probes}
    return {kind: tests for kind, tests in groups.items() if tests}


def _gaps(
    outcome: Outcome, tests: Sequence[Test], suffix: str
) -> dict[tuple[str, str], list[Interval]]:
    return {
        (lower, higher): [
            outcome.gap(test, lower + suffix, higher + suffix) for test in tests
        ]
        for lower, higher in dimensions.block_pairs()
    }


def _tested(test: Test) -> int:
    return int(np.any([one.test for one in test.plan.rounds], axis=0).sum())


def _values(tests: Sequence[Test], scores: Scores) -> list[float]:
    return [value(test, scores[test.name]).mean for test in tests]


def _alone(number: float) -> Interval:
    return Interval(float(number), np.nan, np.nan)


def _row(
    name: str, metric: str, found: Interval, values: Sequence[float] = ()
) -> results.Row:
    bounds = (round(found.low, 4), round(found.high, 4)) if found.known else None
    return results.Row(
        name=name,
        metric=metric,
        measured=round(found.mean, 4),
        values=tuple(round(v, 4) for v in values) or (round(found.mean, 4),),
        interval=bounds,
    )
