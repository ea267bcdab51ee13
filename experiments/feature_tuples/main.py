"""Reads or trains tables, takes every test, compares, shows, draws."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from etils import epath

from experiments.common.rows import print_claims, print_side_by_side, summary_row
from experiments.feature_tuples import analyse, compare, data, model, printed
from experiments.feature_tuples.config import FITTED, SLUG, Config
from experiments.feature_tuples.model import EVERY_LIST, MAIN, Measured
from jaxemb import storage, terminal
from jaxemb.errors import InputError
from jaxemb.eval import analogy
from jaxemb.eval.intervals import Interval
from jaxemb.eval.pair_scores import PairScores
from jaxemb.spaces import fuzzy
from jaxemb.train import loop, results

_FEWEST = 30  # compounds below which a percentile bootstrap says too little for a claim


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    if not storage.is_local(config.workdir):
        raise InputError(f"--workdir {config.workdir}: expected a local folder")
    workdir = Path(config.workdir)
    if not config.vectors:
        loop.claim(epath.Path(workdir), _deciding(config))
    tests = data.load_tests(config)
    spaces, used = data.load_spaces(config, tests, workdir)
    with results.recorded(workdir / "tests"):
        measured = []
        for space in spaces:
            measured.append(model.measure_space(config, space, tests))
            _check_coverage(measured[-1])
            terminal.say(_told(measured[-1]))
        chosen = analyse.main_space(config, measured)
        hubs = analyse.hubs(config, chosen.space)
        told = analyse.examples(config, chosen, tests)
        rows = [row for m in measured for row in _similarity_rows(config, m)]
        for m in measured:
            rows += _reading_rows(config, m)
            rows += _list_rows(config, m, each=m is chosen)
            rows += _analogy_rows(m)
            rows += _function_word_rows(config, m, every=m is chosen)
            rows += _compound_rows(config, m)
        rows += _entropy_rows(chosen)
        rows += analyse.hub_rows(chosen.space, hubs)
        claims = _claims(config, measured, chosen)
        more_rows, more_claims = analyse.inclusion(config, chosen.space, tests)
        rows, claims = rows + more_rows, claims + more_claims
        analyse.draw(config, measured, hubs, workdir)
    folders = [*data.part_folders(config, workdir), workdir / "tests"]
    written = results.write(
        workdir,
        slug=SLUG,
        preset=config.preset,
        config=_described(config, measured, told),
        origins=[results.origin(folder) for folder in folders],
        data=[*used, *tests.data],
        rows=rows,
        claims=claims,
    )
    analyse.write_examples(workdir, told)
    shown = list(dict.fromkeys(row.metric for row in rows))[:1]
    print_side_by_side([row for row in rows if row.metric in shown])
    print_claims(claims)
    return written


def _deciding(config: Config) -> dict:
    """The settings that decide what a trained table holds."""
    names = ("corpus", "objective", "epochs", "window", "negatives", "sample")
    names += ("min_count", "update")
    return {name: getattr(config, name) for name in names}


def _check_coverage(measured: Measured) -> None:
    name, by_system = next(iter(measured.similarity.items()))
    if by_system["cosine"][0].covered < 2:
        raise InputError(
            f"{measured.space.name}: holds next to none of the pairs of {name}; "
            "expected English words"
        )


def _told(measured: Measured) -> str:
    """A space in a line, while the run goes on."""
    first = next(iter(measured.similarity))
    scores = [
        f"{name} {np.mean(_correlations(measured.similarity[first][name])):.4f}"
        for name in MAIN
    ]
    for name in ("3CosAdd", "sets") if measured.analogies else ():
        found = [100 * one.at().whole.accuracy for one in measured.analogies[name]]
        scores.append(f"{name} {np.mean(found):.2f} %")
    return f"{measured.space.name}: {first} {', '.join(scores)}"


def _correlations(many: Sequence[PairScores], metric: Any = "spearman") -> list[float]:
    return [one.correlation(metric, resamples=0).mean for one in many]


def _correlation_row(
    config: Config,
    name: str,
    metric: str,
    many: Sequence[PairScores],
    which: Any = "spearman",
) -> results.Row | None:
    """Over seeds where there are several; else over pairs. None without coverage."""
    values = _correlations(many, which)
    if not np.all(np.isfinite(values)):
        return None
    row = summary_row(name, metric, values)
    if len(many) > 1:
        return row
    interval = many[0].correlation(which, resamples=config.resamples)
    return _bounded(row, interval)


def _bounded(row: results.Row, interval: Interval) -> results.Row:
    if not interval.known:
        return row
    bounds = (round(interval.low, 4), round(interval.high, 4))
    return dataclasses.replace(row, interval=bounds)


def _similarity_rows(config: Config, measured: Measured) -> list[results.Row]:
    """Table 8."""
    return _list_of(config, measured, next(iter(measured.similarity)), MAIN, "")


def _reading_rows(config: Config, measured: Measured) -> list[results.Row]:
    """The same by every other reading of the measures."""
    first = next(iter(measured.similarity))
    names = [n for n in measured.similarity[first] if n not in MAIN]
    return _list_of(config, measured, first, names, ", other readings")


def _list_of(
    config: Config, measured: Measured, name: str, systems: Sequence[str], note: str
) -> list[results.Row]:
    by_system = measured.similarity[name]
    covered = next(iter(by_system.values()))[0]
    metric = f"{name}, Spearman ({covered.covered} of {len(covered.human)}){note}"
    rows = [
        _correlation_row(
            config, f"{measured.space.name}, {system}", metric, by_system[system]
        )
        for system in systems
    ]
    return [row for row in rows if row is not None]


def _list_rows(config: Config, measured: Measured, each: bool) -> list[results.Row]:
    """The mean over the other lists, and for one space every list."""
    _, *others = measured.similarity
    rows = []
    if others:
        for system in _known(measured, others[0]):
            by_list = [_correlations(measured.similarity[n][system]) for n in others]
            scored = [values for values in by_list if np.all(np.isfinite(values))]
            if scored:
                name = f"{measured.space.name}, {system}"
                metric = f"mean of {len(scored)} other lists, Spearman"
                rows.append(summary_row(name, metric, np.mean(scored, axis=0)))
    for name in others if each else ():
        rows += _list_of(config, measured, name, _known(measured, name), "")
    return rows


def _known(measured: Measured, name: str) -> list[str]:
    """The systems that score every list, as far as the run has them."""
    return [system for system in EVERY_LIST if system in measured.similarity[name]]


def _analogy_rows(measured: Measured) -> list[results.Row]:
    """Table 9: totals by all systems, sections by 3CosAdd and the paper's sets."""
    rows = []
    groups = (
        ("", measured.analogies, (1, 5)),
        (", most frequent words only", measured.restricted, (1, 5)),
    )
    for note, systems, depths in groups:
        for name, many in systems.items():
            for k in depths:
                found = [one.at(k) for one in many]
                totals = [found[0].whole, found[0].semantic, found[0].syntactic]
                for place, group in enumerate(totals):
                    if group is None or not group.scored:
                        continue
                    same = [
                        (one.whole, one.semantic, one.syntactic)[place] for one in found
                    ]
                    rows.append(
                        _accuracy_row(
                            f"{measured.space.name}, {name}",
                            f"analogies{note}, {group.name}, top {k} (%)",
                            same,
                        )
                    )
    for name in ("3CosAdd", "sets") if measured.analogies else ():
        found = [one.at(1) for one in measured.analogies[name]]
        for sections in zip(*(one.sections for one in found), strict=True):
            if sections[0].scored:
                metric = f"analogies, {sections[0].name}, top 1 (%)"
                label = f"{measured.space.name}, {name}"
                rows.append(_accuracy_row(label, metric, sections))
    return rows


def _accuracy_row(
    name: str, metric: str, groups: Sequence[analogy.Section]
) -> results.Row:
    """With its coverage; over seeds where there are several, else Wilson's."""
    metric = f"{metric} ({groups[0].scored} of {groups[0].total})"
    row = summary_row(name, metric, [100 * group.accuracy for group in groups])
    if len(groups) > 1:
        return row
    [one] = groups
    return _bounded(row, Interval(one.accuracy, 100 * one.low, 100 * one.high))


def _function_word_rows(
    config: Config, measured: Measured, every: bool
) -> list[results.Row]:
    """Table 10; of one space by everything that words can be ranked by."""
    names = list(measured.rankings) if every else ["entropy", "frequency"]
    return [
        summary_row(
            f"{measured.space.name}, by {name}",
            f"function words in the first {n}",
            [one.found(n) for one in measured.rankings[name]],
        )
        for name in names
        for n in config.tops
    ]


def _compound_rows(config: Config, measured: Measured) -> list[results.Row]:
    """Table 11, by both protocols."""
    rows = []
    for (name, protocol), by_system in measured.compounds.items():
        for system, many in by_system.items():
            covered = f"{many[0].covered} of {len(many[0].human)}"
            for which in ("spearman", "pearson"):
                metric = f"compounds of {name}, {protocol}, {which.title()} ({covered})"
                label = f"{measured.space.name}, {system}"
                row = _correlation_row(config, label, metric, many, which)
                rows += [] if row is None else [row]
    return rows


def _entropy_rows(measured: Measured) -> list[results.Row]:
    """Entropies under every normaliser, beside the bound of the paper's own."""
    rows = []
    for normaliser, by_word in measured.entropies.items():
        for word, values in by_word.items():
            name = f"{measured.space.name}, {normaliser}"
            rows.append(_exact_row(name, f"entropy, {word}", values))
    words = len(measured.space.tables[0])
    dim, name = measured.space.dim, measured.space.name
    for how, parts in (("softmax", words), ("rows that sum to 1", dim)):
        bound = fuzzy.entropy_bound(parts, dim)
        label = f"{name}, bound under {how}"
        rows.append(_exact_row(label, "entropy, mean of words", [bound]))
    return rows


def _exact_row(name: str, metric: str, values: Sequence[float]) -> results.Row:
    """With six digits that count, since entropies under softmax are tiny."""
    row = summary_row(name, metric, values)
    kept = tuple(float(f"{v:.6g}") for v in values)
    measured = float(f"{np.mean(values):.6g}")
    return dataclasses.replace(row, measured=measured, values=kept, interval=None)


def _claims(
    config: Config, measured: Sequence[Measured], chosen: Measured
) -> list[results.Claim]:
    claims = []
    for m in measured:
        claims += _similarity_claims(config, m)
    claims += _fading_claims(config, measured)
    for m in measured:
        claims += _analogy_claims(config, m)
    claims += _fading_analogy_claims(config, measured)
    claims += _function_word_claims(config, chosen)
    for m in measured:
        claims += _compound_claims(config, m)
    return claims


def _similarity_claims(config: Config, measured: Measured) -> list[results.Claim]:
    first, by_system = next(iter(measured.similarity.items()))
    claims = []
    for better, worse in (
        ("KL", "cosine"),
        ("CE", "cosine"),
        ("CE", "KL"),
        ("KL, Bernoulli", "cosine"),
        ("CE, Bernoulli", "cosine"),
        (f"{FITTED}: KL, Bernoulli", "cosine"),
        (f"{FITTED}: CE, Bernoulli", "cosine"),
    ):
        if better not in by_system:
            continue
        terms = [(1.0, by_system[better]), (-1.0, by_system[worse])]
        gap = compare.correlations(config, terms)
        text = f"{better} beats {worse} on {first} ({measured.space.name})"
        claims.append(gap.claim(text))
    return claims


def _fading_claims(config: Config, measured: Sequence[Measured]) -> list[results.Claim]:
    """Whether the advantage at the fewest dimensions is the larger one."""
    if config.vectors or len(measured) < 2:
        return []
    low, high = measured[0], measured[-1]
    first = next(iter(low.similarity))
    claims = []
    for name in ("CE", "KL, Bernoulli", f"{FITTED}: CE, Bernoulli"):
        if name not in low.similarity[first]:
            continue
        terms = [
            (sign, m.similarity[first][system])
            for m, system, sign in (
                (low, name, 1.0),
                (low, "cosine", -1.0),
                (high, name, -1.0),
                (high, "cosine", 1.0),
            )
        ]
        gap = compare.correlations(config, terms)
        text = (
            f"what {name} gains over cosine on {first} is more at {low.space.name} "
            f"than at {high.space.name}"
        )
        claims.append(gap.claim(text))
    return claims


def _analogy_claims(config: Config, measured: Measured) -> list[results.Claim]:
    found = measured.analogies
    if not found or not found["sets"][0].at(1).whole.scored:
        return []
    claims = []
    for name in _answering(config):
        gap = compare.analogies(config, [(1.0, found[name]), (-1.0, found["3CosAdd"])])
        text = f"{name}: more analogies than by 3CosAdd ({measured.space.name})"
        claims.append(gap.claim(text, " points"))
    return claims


def _fading_analogy_claims(
    config: Config, measured: Sequence[Measured]
) -> list[results.Claim]:
    """Sec. 5.4: sets fall behind vectors as dimensions grow."""
    answered = [m for m in measured if m.analogies]
    if config.vectors or len(answered) < 2:
        return []
    low, high = answered[0], answered[-1]
    claims = []
    for name in _answering(config):
        terms = [
            (1.0, low.analogies[name]),
            (-1.0, low.analogies["3CosAdd"]),
            (-1.0, high.analogies[name]),
            (1.0, high.analogies["3CosAdd"]),
        ]
        gap = compare.analogies(config, terms)
        text = (
            f"what {name} gains over 3CosAdd on analogies is more at {low.space.name} "
            f"than at {high.space.name}"
        )
        claims.append(gap.claim(text, " points"))
    return claims


def _answering(config: Config) -> list[str]:
    """The systems whose answers are claimed to be better than those of 3CosAdd."""
    fitted = [f"{FITTED}: sets, Bernoulli"] if config.fitted else []
    return ["sets", "sets, Bernoulli", *fitted]


def _function_word_claims(config: Config, measured: Measured) -> list[results.Claim]:
    claims = []
    for name in ("entropy", f"entropy, {FITTED}"):
        for n in config.tops if name in measured.rankings else ():
            ours, theirs = measured.rankings[name], measured.rankings["frequency"]
            gap = compare.rankings(config, ours, theirs, n)
            text = (
                f"{name}: more function words than by frequency in the first {n} "
                f"({measured.space.name})"
            )
            claims.append(gap.claim(text, " words"))
    return claims


def _compound_claims(config: Config, measured: Measured) -> list[results.Claim]:
    claims = []
    for (name, protocol), by_system in measured.compounds.items():
        for better, which in (
            ("CE", "spearman"),
            ("CE", "pearson"),
            ("KL, Bernoulli", "spearman"),
            (f"{FITTED}: CE, Bernoulli", "spearman"),
            (f"{FITTED}: CE, Bernoulli", "pearson"),
        ):
            covered = by_system["cosine"][0].covered
            if better not in by_system or covered < _FEWEST:
                continue
            terms = [(1.0, by_system[better]), (-1.0, by_system["cosine"])]
            gap = compare.correlations(config, terms, which)
            if not gap.known:  # all rated alike
                continue
            text = (
                f"{better} beats cosine on compounds of {name}, {protocol}, "
                f"{which.title()} ({measured.space.name})"
            )
            claims.append(gap.claim(text))
    return claims


def _described(
    config: Config, measured: Sequence[Measured], told: dict[str, Any]
) -> dict:
    described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
    cumulative = {
        f"{m.space.name}, {name}": [
            [
                row["after"],
                *(_per_cent(row[k]) for k in ("total", "semantic", "syntactic")),
            ]
            for row in analogy.cumulative(many[0].at(1))
        ]
        for m in measured
        for name, many in m.analogies.items()
        if name in ("3CosAdd", "sets")
    }
    return {
        **described,
        "vocabulary": {m.space.name: len(m.space.tables[0]) for m in measured},
        "printed": printed.notes(),
        "running totals": {
            "columns": ["after", "total", "semantic", "syntactic"],
            "of": "the first seed, top 1, per cent, as word2vec's compute-accuracy",
            **cumulative,
        },
        "examples": told,
        "function words": "listed by hand in jaxemb/data/function_words.txt; not the "
        "list of the paper, which is in a book",
        "interval": "95 %. Rows: Student t over seeds; of a table that is only read, "
        "bootstrap over pairs or Wilson over questions. Claims: bootstrap over items "
        "of the mean over seeds, and Student t over seeds; a verdict is what both say. "
        "Items are pairs of a list, compounds, the word pairs that questions are made "
        "of, the frequent words that are ranked. No claim is made of fewer than "
        f"{_FEWEST} compounds",
        "rows of length 1": [m.space.name for m in measured if m.space.unit_rows],
        "case": "trained on lower-cased text and tested lower-cased; tables that are "
        "read, as written or else lower-cased",
    }


def _per_cent(value: Any) -> float | None:
    return None if np.isnan(value) else round(100 * float(value), 2)
