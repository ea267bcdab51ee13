"""From scores to rows, verdicts and figures of the intrinsic tasks."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.alpha_embeddings import data, model
from experiments.alpha_embeddings.chosen import Chooser, share
from experiments.alpha_embeddings.config import SIMILARITY, Config
from experiments.alpha_embeddings.intrinsic import (
    ALL,
    KINDS,
    PURITY,
    TIED,
    TOTAL,
    Part,
    tested_rows,
)
from experiments.alpha_embeddings.model import PUBLISHED, Name, names_of
from experiments.common.rows import summary_row
from jaxemb.analysis import alpha as analysis
from jaxemb.analysis import figures
from jaxemb.eval import analogy, correlation, intervals
from jaxemb.eval.intervals import Interval
from jaxemb.train import results

BASELINES = "U", "U+V"  # columns centred and normalised
LIMIT = "t1"  # the paper's limit where it does not say otherwise
_TUNED = "E-U+V-0-I"  # the system that the paper tunes by cross-validation
_PLAIN = str(Name("U+V", "0", "I", "1"))
_TITLES = {
    ALL: "all, ρ × 100",
    PURITY: "purity (%)",
    TOTAL: "Google, accuracy (%)",
    "semantic": "Google semantic, accuracy (%)",
    "syntactic": "Google syntactic, accuracy (%)",
    TIED: "questions with several answers (%)",
}


class Outcome:
    """Rows, claims and figures of what was measured."""

    def __init__(
        self,
        config: Config,
        source: data.Source,
        tests: data.Tests,
        parts: Mapping[str, Sequence[Part]],
    ):
        self._config, self._source, self._tests = config, source, tests
        self._parts = parts
        self._people = np.array([pair.score for pair in tests.pooled])
        self._questions = _kinds_of_questions(tests)
        self._choosers = {
            tables: Chooser(config, tests, of) for tables, of in parts.items()
        }
        self.chosen: dict[str, list] = {}

    def _values(self, tables: str, name: str, measure: str) -> list[float]:
        """One a seed; of what was published one or none."""
        known = [
            part.scores[name] for part in self._parts[tables] if name in part.scores
        ]
        return [scores[measure] for scores in known]

    def _measures(self) -> list[str]:
        first = next(iter(self._parts.values()))[0]
        known = next(iter(first.scores.values()))
        return [m for m in (ALL, TOTAL, PURITY) if m in known]

    def _systems(self) -> list[str]:
        """Those with several alphas to choose from."""
        if len(self._config.alphas) < 2:
            return []
        names = [n.system for n in names_of(self._config) if not n.is_limit]
        return list(dict.fromkeys(names))

    def _members(self, system: str, limit: bool = False) -> list[str]:
        """All alphas of a system; with its limit, which the paper lets compete too."""
        wanted = {system, system.replace("E-", "LE-", 1)} if limit else {system}
        return [
            str(name)
            for name in names_of(self._config)
            if name.system in wanted and (not name.is_limit or name.member == LIMIT)
        ]

    def _tunable(self) -> bool:
        return _TUNED in self._systems() and 1.0 in self._config.alphas

    def _tuned(self, tables: str, system: str, measure: str) -> list[float] | None:
        """The score of each seed, with alpha chosen where it is not tested."""
        chooser = self._choosers[tables]
        if measure == PURITY:
            return chooser.purity(self._members(system))
        if measure == ALL:
            picks = chooser.by_pairs(self._members(system))
            values = [
                float(np.mean([chooser.rho(part, *pick) for pick in of_seed]))
                for part, of_seed in zip(self._parts[tables], picks, strict=True)
            ]
        else:
            names = self._members(system, limit=True)
            picks = chooser.by_questions(names, self._questions[measure])
            values = [100 * share(x) for x in chooser.items(picks)]
        told = [[pick.name for pick in of_seed] for of_seed in picks]
        self.chosen[f"{tables}/{system}, {_TITLES[measure]}"] = told
        return values

    # Rows.

    def rows(self) -> list[results.Row]:
        """The paper's tables first, then every member of the family."""
        rows = [self._table(m, _TITLES[m], tuned=True) for m in self._measures()]
        rows += [self._table(n, self._list_title(n)) for n in self._tests.similarity]
        if self._tests.analogies:
            rows += [self._table(k, _TITLES[k], tuned=True) for k in KINDS[:2]]
            rows += [self._table(TIED, _TITLES[TIED]), self._spreads()]
        for measure, tables in itertools.product(self._measures(), self._parts):
            for name in map(str, names_of(self._config)):
                values = self._values(tables, name, measure)
                title = f"{_TITLES[measure]}, sweep"
                rows.append(row_of(f"{tables}/{name}", title, values))
        return list(itertools.chain(*rows))

    def _table(
        self, measure: str, title: str, tuned: bool = False
    ) -> list[results.Row]:
        """Baselines, plain embeddings, limits, and with `tuned` what was chosen."""
        rows = []
        shown = [n for n in names_of(self._config) if n.member in ("1", LIMIT)]
        for tables in self._parts:
            for name in (*BASELINES, PUBLISHED, *map(str, shown)):
                values = self._values(tables, name, measure)
                rows += row_of(f"{tables}/{name}", title, values)
            for system in self._systems() if tuned else ():
                values = self._tuned(tables, system, measure)
                if values is not None:
                    rows += row_of(f"{tables}/{system}, α chosen", title, values)
        return rows

    def _spreads(self) -> list[results.Row]:
        rows = []
        for tables, chooser in self._choosers.items():
            for system in self._systems():
                values = chooser.spread(self._members(system), self._questions[TOTAL])
                title = "± of the three best alphas on test (points)"
                rows += row_of(f"{tables}/{system}, α chosen", title, values)
        return rows

    def _list_title(self, name: str) -> str:
        pairs, words = self._tests.similarity[name], set(self._source.words)
        covered = sum(a.lower() in words and b.lower() in words for a, b, _ in pairs)
        column = SIMILARITY.get(name, name)
        return f"{column}, ρ × 100 ({covered} of {len(pairs)} pairs)"

    # Claims.

    def claims(self) -> list[results.Claim]:
        """The paper's, for each width of the tables, then across widths."""
        claims = []
        for tables in self._parts:
            if self._tests.similarity:
                claims += self._similarity_claims(tables)
            if self._tests.analogies:
                claims += self._analogy_claims(tables)
            if self._tests.classes is not None:
                claims += self._purity_claims(tables)
        if len(self._parts) > 1:
            claims += self._width_claims()
        return claims

    def _similarity_claims(self, tables: str) -> list[results.Claim]:
        claims = []
        limits = [n for n in names_of(self._config) if n.member == LIMIT]
        wanted = ("ud", "F"), ("0", "I"), ("u", "I")
        for name in limits:
            if name.variant != "U+V" or (name.reference, name.metric) not in wanted:
                continue
            for worse in BASELINES:
                sides = [
                    (p.cosines[str(name)], p.cosines[worse])
                    for p in self._parts[tables]
                ]
                known = ~np.isnan(sides[0][0]) & ~np.isnan(sides[0][1])
                claim = f"{name} beats {worse} in similarity ({tables})"
                how = f"bootstrap over {known.sum():,} pairs"
                claims.append(claim_of(claim, self._rho_gap(sides, known), how))
        if self._tunable():
            claims.append(self._tuning_claim(tables))
        return claims

    def _tuning_claim(self, tables: str) -> results.Claim:
        """The chosen alphas over alpha = 1, fold by fold."""
        picks = self._choosers[tables].by_pairs(self._members(_TUNED))
        gaps = []
        for of_fold in zip(*picks, strict=True):
            sides = [
                (part.cosines[pick.name], part.cosines[_PLAIN])
                for part, pick in zip(self._parts[tables], of_fold, strict=True)
            ]
            gaps.append(self._rho_gap(sides, of_fold[0].items & ~np.isnan(sides[0][0])))
        claim = f"α chosen on other pairs beats α = 1 in similarity: {_TUNED}"
        how = f"bootstrap over the pairs of each of {len(gaps)} folds"
        return claim_of(f"{claim} ({tables})", intervals.mean_of(gaps), how)

    def _rho_gap(
        self, sides: Sequence[tuple[np.ndarray, np.ndarray]], known: np.ndarray
    ) -> Interval:
        """Difference of Spearman's rho × 100 over pairs, the mean over seeds."""
        people = self._people[known]
        statistics = [
            [correlation.spearman_statistic(side[known], people) for side in both]
            for both in sides
        ]

        def gap(rows: np.ndarray) -> np.ndarray:
            return 100 * np.mean([a(rows) - b(rows) for a, b in statistics], axis=0)

        resamples = self._config.resamples
        return intervals.bootstrap(gap, len(people), resamples=resamples)

    def _analogy_claims(self, tables: str) -> list[results.Claim]:
        chooser, parts = self._choosers[tables], self._parts[tables]
        limit = Name("U+V", "0", "I", LIMIT)
        claims = []
        for kind in KINDS:
            own = self._questions[kind]
            systems = {}
            if self._tunable():
                picks = chooser.by_questions(self._members(_TUNED, limit=True), own)
                name = f"{_TUNED} with α by cross-validation"
                systems[name] = chooser.items(picks)
            if limit in names_of(self._config):
                systems[str(limit)] = [part.items[str(limit)] for part in parts]
            for (name, items), worse in itertools.product(systems.items(), BASELINES):
                others = [part.items[worse] for part in parts]
                gaps = 100 * np.mean(np.subtract(items, others), axis=0)[own]
                gaps = gaps[~np.isnan(gaps)]
                gap = intervals.bootstrap(
                    lambda rows, gaps=gaps: gaps[rows].mean(axis=-1),
                    len(gaps),
                    resamples=self._config.resamples,
                )
                claim = f"{name} beats {worse} on {kind} analogies ({tables})"
                how = f"bootstrap over {len(gaps):,} questions"
                claims.append(claim_of(claim, gap, how))
        return claims

    def _purity_claims(self, tables: str) -> list[results.Claim]:
        claims = []
        for system in self._systems():
            tuned = self._choosers[tables].purity(self._members(system))
            plain = Name.of(system, "1")
            known = 1.0 in self._config.alphas and plain.variant == "U+V"
            if tuned is None or not known:
                continue
            gap = intervals.paired_t(tuned, self._values(tables, str(plain), PURITY))
            claim = f"α chosen on other seeds beats α = 1 in purity: {system}"
            how = f"paired t over {len(tuned)} seeds"
            claims.append(claim_of(f"{claim} ({tables})", gap, how))
        return claims

    def _width_claims(self) -> list[results.Claim]:
        """The paper: alpha matters more where tables are narrow, the limit less."""
        narrow, *_, wide = self._parts
        claims = []
        how = f"paired t over {self._source.seeds} seeds"
        for measure in self._measures() if self._tunable() else ():
            gains = []
            for tables in (narrow, wide):
                tuned = self._tuned(tables, _TUNED, measure)
                plain = self._values(tables, _PLAIN, measure)
                if measure == ALL:
                    plain = self._choosers[tables].rho_by_fold(_PLAIN)
                gains.append(None if tuned is None else np.subtract(tuned, plain))
            if gains[0] is not None and gains[1] is not None:
                claim = (
                    f"the gain of choosing α over α = 1 is larger at {narrow} than at "
                    f"{wide}: {_TITLES[measure]}, {_TUNED}"
                )
                claims.append(claim_of(claim, intervals.paired_t(*gains), how))
        limit = Name("U+V", "0", "F", LIMIT)
        pair = limit, limit._replace(member="1")
        if PURITY in self._measures() and set(pair) <= set(names_of(self._config)):
            gains = [
                np.subtract(*(self._values(tables, str(n), PURITY) for n in pair))
                for tables in (wide, narrow)
            ]
            claim = (
                f"the limit's purity, over that at α = 1, is higher at {wide} than at "
                f"{narrow}: {limit}"
            )
            claims.append(claim_of(claim, intervals.paired_t(*gains), how))
        return claims

    # Figures.

    def write_figures(self, folder: Path) -> None:
        """Scores against alpha, limits and a baseline as dotted lines."""
        for tables, measure in itertools.product(self._parts, self._measures()):
            lines, levels = {}, {}
            for system in self._systems():
                limit = Name.of(system, LIMIT)
                if limit.variant != "U+V":
                    continue
                lines[system] = self._curve(tables, system, measure)
                if limit in names_of(self._config):
                    found = self._values(tables, str(limit), measure)
                    levels[system] = float(np.mean(found))
            if lines:
                base = self._values(tables, "U+V", measure)
                levels["U+V"] = float(np.mean(base))
                title = f"{_TITLES[measure]}, {tables}"
                figures.save(
                    analysis.sweep_figure(lines, title, limits=levels),
                    folder / f"{tables}-{measure}.svg",
                    f"{title} against α, mean and 95 % band over {len(base)} seeds; "
                    f"dotted: the limits {LIMIT} in the colour of their system, and "
                    "U+V with columns centred and normalised.",
                )

    def _curve(self, tables: str, system: str, measure: str) -> figures.Curve:
        alphas = sorted(self._config.alphas)
        names = [str(Name.of(system, f"{a:g}")) for a in alphas]
        found = [intervals.t_interval(self._values(tables, n, measure)) for n in names]
        mean = [i.mean for i in found]
        if not found[0].known:
            return figures.Curve(alphas, mean)
        return figures.Curve(
            alphas, mean, [i.low for i in found], [i.high for i in found]
        )


def inspect(
    config: Config, source: data.Source, tests: data.Tests, folder: Path
) -> list[results.Row]:
    """The Fisher matrix, the drift of directions and the limits' clusters, of seed 0.

    Clusters are of all words; directions, which cost a pass over all contexts for each
    alpha, of those in the tests.
    """
    rows = []
    alphas = sorted({*config.alphas[::2], 1.0})
    for tables in source.names:
        one = source.get(tables, 0)
        some = tested_rows(one, tests)
        spectra, drifts, clusters = {}, {}, {}
        for reference in config.references:
            of = model.geometry(config, one, "U+V", reference)
            tested = dataclasses.replace(of, words=of.words[some])
            spectra[reference] = analysis.fisher_spectrum(of)
            clusters[reference] = found = analysis.limit_clusters(of)
            drifts[reference] = analysis.alpha_direction_drift(tested, alphas)
            told = {
                "isotropy of the Fisher matrix": spectra[reference].isotropy,
                "clusters of the limit": len(found.sizes),
                "words that are their own context (%)": 100 * found.own,
                "words alone with their limit (%)": 100 * found.alone,
                "cosine of limit and α = 1": drifts[reference].limit,
            }
            name = f"{tables}/U+V-{reference}"
            rows += [summary_row(name, m, [value]) for m, value in told.items()]
        drawn: list[tuple[str, Mapping, Callable, str]] = [
            ("fisher", spectra, analysis.spectrum_figure, "Eigenvalues of I(p0)"),
            ("drift", drifts, analysis.drift_figure, "Turning from α = 1, metric F"),
            ("clusters", clusters, analysis.clusters_figure, "Clusters of the limits"),
        ]
        for name, found, draw, caption in drawn:
            figures.save(
                draw(found),
                folder / f"{tables}-{name}.svg",
                f"{caption}, {tables}, seed 0, U+V, by reference.",
            )
    return rows


def claim_of(claim: str, gap: Interval, how: str) -> results.Claim:
    """A claim that a difference, in points, is positive."""
    return results.Claim(
        claim=claim,
        verdict=intervals.verdict(gap.low, gap.high),
        evidence=f"difference {gap.mean:+.2f} points [{gap.low:.2f}, {gap.high:.2f}], "
        f"{how}",
    )


def row_of(name: str, metric: str, values: Sequence[float] | None) -> list[results.Row]:
    """One row, or none where a score does not exist."""
    if not values or not np.all(np.isfinite(values)):
        return []
    return [summary_row(name, metric, values)]


def _kinds_of_questions(tests: data.Tests) -> dict[str, np.ndarray]:
    names = [name for name, rows in tests.analogies.items() for _ in rows]
    syntactic = np.array([n.startswith(analogy.SYNTACTIC) for n in names], bool)
    whole = np.ones(len(names), bool)
    return {"semantic": ~syntactic, "syntactic": syntactic, TOTAL: whole}
