"""What is shown of a space rather than scored: neighbours, asymmetry, hubs, figures."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common.rows import summary_row
from experiments.feature_tuples import compare
from experiments.feature_tuples.config import FITTED, Config, Normaliser
from experiments.feature_tuples.data import Space, Tests
from experiments.feature_tuples.model import Measured
from jaxemb import storage, terminal
from jaxemb.analysis import figures
from jaxemb.analysis import fuzzy as shown
from jaxemb.analysis.fuzzy import FuzzySpace, Hubs
from jaxemb.eval import intervals
from jaxemb.spaces import fuzzy
from jaxemb.spaces.fuzzy import Measure
from jaxemb.train import results

_NEIGHBOURS = 6
_ANSWERED = ("3CosAdd", "sets", "sets, Bernoulli", f"{FITTED}: sets, Bernoulli")
_SWEPT = (
    *("cosine", "KL", "CE", "KL, Bernoulli", "CE, Bernoulli"),
    *(f"{FITTED}: {name}, Bernoulli" for name in ("KL", "CE")),
)
_DRAWN = (
    *("entropy", f"entropy, {FITTED}", "entropy, max", "frequency"),
    *("length", "shortness"),
)
_PROPER = Measure(bernoulli=True)


def _readings(config: Config) -> dict[str, tuple[Normaliser, Measure]]:
    """What neighbours are looked at by: as printed, as it should be, as it was."""
    made: dict[str, tuple[Normaliser, Measure]] = {
        "CE": (config.normaliser, fuzzy.PRINTED),
        "CE, Bernoulli": (config.normaliser, _PROPER),
    }
    if config.fitted:
        made[f"{FITTED}: CE, Bernoulli"] = FITTED, _PROPER
    return made


def main_space(config: Config, measured: Sequence[Measured]) -> Measured:
    """The space that is looked at: the main dimension, or else the first table."""
    dims = [m for m in measured if m.space.dim == config.main_dim]
    return (dims or list(measured))[0]


def examples(config: Config, chosen: Measured, tests: Tests) -> dict[str, Any]:
    """Neighbours, divergences, most entropic words and answers, of the first seed."""
    space = chosen.space
    return {
        "space": space.name,
        "neighbours": _neighbours(config, space, tests.expressions),
        "divergences": _divergences(config, space, tests.asymmetric),
        "most entropic words": list(chosen.rankings["entropy"][0].words[:15]),
        "most frequent words": list(chosen.rankings["frequency"][0].words[:15]),
        "analogies": _answers(chosen, tests),
    }


def _neighbours(
    config: Config, space: Space, expressions: Sequence[str]
) -> dict[str, Any]:
    found: dict[str, dict[str, list[str] | None]] = {}
    for name, (normaliser, measure) in _readings(config).items():
        view = FuzzySpace.of(space.tables[0], normaliser)
        for expression in filter(view.knows, expressions):
            near = view.neighbours(expression, _NEIGHBOURS, measure)
            found.setdefault(expression, {})[name] = [word for word, _ in near]
    plain = FuzzySpace.of(space.tables[0], config.normaliser)
    for expression, told in found.items():
        raw = plain.raw_neighbours(expression, _NEIGHBOURS)
        told["vectors"] = None if raw is None else [word for word, _ in raw]
    return found


def _divergences(
    config: Config, space: Space, pairs: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Table 5 under every reading: both forms, both kinds, every normaliser."""
    found = []
    for normaliser in (config.normaliser, *config.variants):
        view = FuzzySpace.of(space.tables[0], normaliser)
        known = [pair for pair in pairs if all(map(view.knows, pair))]
        for kind in ("kl", "cross-entropy"):
            for bernoulli in (False, True):
                measure = Measure(kind, bernoulli)
                for one in shown.asymmetry_report(view, known, measure):
                    found.append(
                        {
                            "normaliser": normaliser,
                            "kind": kind,
                            "form": "Bernoulli" if bernoulli else "printed",
                            "first": one.first,
                            "second": one.second,
                            "forward": float(f"{one.forward:.6g}"),
                            "backward": float(f"{one.backward:.6g}"),
                        }
                    )
    return found


def _answers(chosen: Measured, tests: Tests, most: int = 8) -> list[dict[str, str]]:
    """Questions that the sets answer and 3CosAdd does not, and the reverse."""
    if not chosen.analogies:
        return []
    raw, sets = chosen.analogies["3CosAdd"][0], chosen.analogies["sets"][0]
    questions = [q for rows in tests.analogies.values() for q in rows]
    words = chosen.space.tables[0].words
    found = []
    for better, worse in ((sets, raw), (raw, sets)):
        differ = np.flatnonzero((better.ranks == 1) & (worse.ranks > 1))
        for i in differ[:: max(1, len(differ) // (most // 2))][: most // 2].tolist():
            answers = [one.answers[i, 0] for one in (raw, sets)]
            named = [words[row] if row >= 0 else "–" for row in answers]
            found.append(
                {
                    "question": " ".join(questions[i]),
                    "3CosAdd": named[0],
                    "sets": named[1],
                }
            )
    return found


def hubs(config: Config, space: Space) -> dict[str, Hubs]:
    """How often words are neighbours, by cosine and by the forms of cross-entropy."""
    queries = config.hub_queries
    plain = FuzzySpace.of(space.tables[0], config.normaliser)
    found = {"cosine": shown.hub_report(plain, None, queries=queries)}
    for name, (normaliser, measure) in _readings(config).items():
        view = FuzzySpace.of(space.tables[0], normaliser)
        found[name] = shown.hub_report(view, measure, queries=queries)
    return found


def hub_rows(space: Space, found: Mapping[str, Hubs]) -> list[results.Row]:
    rows = []
    for name, one in found.items():
        system = f"{space.name}, {name}"
        rows += [
            summary_row(system, f"skewness of {one.k}-occurrence", [one.skewness]),
            summary_row(system, "words in nobody's neighbours (%)", [100 * one.never]),
        ]
    return rows


def inclusion(
    config: Config, space: Space, tests: Tests
) -> tuple[list[results.Row], list[results.Claim]]:
    """Whether hyponyms lie in their hypernyms rather than the reverse.

    Beside it how often the hypernym is the more frequent word, which needs no sets.
    """
    scores, pairs = [], tests.hyponyms
    for table in space.tables:
        view = FuzzySpace.of(table, config.normaliser)
        known = [pair for pair in pairs if all(map(view.knows, pair))]
        if not known:
            return [], []
        scores.append(shown.inclusion_scores(view, known))
    inside = [np.where(s == 0.5, 0.5, s > 0.5) for s in scores]
    index = space.tables[0].index  # words by falling frequency
    rarer = [index[hyponym] > index[hypernym] for hyponym, hypernym in known]
    gap = compare.shares(config, inside, "pairs listed by hand")
    name = f"{space.name}, sets"
    metric = f"hyponyms that lie in hypernyms ({len(known)} of {len(pairs)} pairs, %)"
    rows = [
        summary_row(name, metric, [100 * float(np.mean(s)) for s in inside]),
        summary_row(f"{space.name}, frequency", metric, [100 * float(np.mean(rarer))]),
        summary_row(
            name,
            "features of a hyponym that the hypernym has as much of (%)",
            [100 * float(np.mean(s)) for s in scores],
        ),
    ]
    text = (
        "more than half of hyponyms lie in their hypernyms "
        f"({space.name}; beyond the paper)"
    )
    return rows, [gap.claim(text, " points")]


def write_examples(workdir: Path, told: Mapping[str, Any]) -> None:
    """Keeps the examples and prints the neighbours."""
    text = json.dumps(told, indent=1, ensure_ascii=False)
    storage.write_text(workdir / "examples.json", text + "\n")
    rows = [
        {
            "expression": expression,
            **{
                how: ", ".join(words) if words is not None else "–"
                for how, words in found.items()
            },
        }
        for expression, found in told["neighbours"].items()
    ]
    terminal.print_table(rows)
    print()


def draw(
    config: Config,
    measured: Sequence[Measured],
    hubs_found: Mapping[str, Hubs],
    workdir: Path,
) -> None:
    """All figures of a run."""
    folder = workdir / "figures"
    first = next(iter(measured[0].similarity))
    if len(measured) > 1 and not config.vectors:
        sweep = {
            name: {
                m.space.dim: intervals.t_interval(
                    [
                        one.correlation(resamples=0).mean
                        for one in m.similarity[first][name]
                    ]
                )
                for m in measured
            }
            for name in _SWEPT
            if name in measured[0].similarity[first]
        }
        figures.save(
            shown.dimension_sweep(sweep, f"{first}, Spearman"),
            folder / "dimension-sweep.svg",
            f"{first}: cosine of raw vectors, and sets by the printed and the proper "
            f"measures, and as the paper's figures are ({FITTED}); bands are 95 % "
            "intervals over seeds.",
        )
    chosen = main_space(config, measured)
    name = chosen.space.name
    figures.save(
        shown.hub_histogram(hubs_found),
        folder / "hubs.svg",
        f"Hubs of {name}: a line that runs far to the right has words that are "
        "everybody's neighbours.",
    )
    rankings = {
        how: chosen.rankings[how][0] for how in _DRAWN if how in chosen.rankings
    }
    figures.save(
        shown.function_word_curves(rankings),
        folder / "function-words.svg",
        f"{name}, first seed: function words among the first n, by what words are "
        "ranked by.",
    )
    for m in measured:
        if m.analogies and m.analogies["sets"][0].at(1).whole.scored:
            by_system = {
                how: m.analogies[how][0].at(1)
                for how in _ANSWERED
                if how in m.analogies
            }
            figures.save(
                shown.section_accuracies(by_system),
                folder / f"analogies-{m.space.name}.svg",
                f"{m.space.name}, first seed: accuracy by section.",
            )
