"""Table 2: every system on every test; neighbours and offsets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from etils import epath

from experiments.common.findings import Findings
from experiments.dynamic_to_static import attended, data
from experiments.dynamic_to_static.config import (
    ANALOGY,
    LOADED,
    OURS,
    PAIRS,
    SHOWN,
    SIMILARITY,
    TRAINED,
    UNTRAINED,
    Config,
)
from experiments.dynamic_to_static.model import Tables
from jaxemb import storage, terminal
from jaxemb.analysis import contexts, figures
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import kinds, neighbours
from jaxemb.eval.settings import Settings
from jaxemb.train import results

OFFSETS = "parallelism of male-female offsets"
_FIELD = {"similarity": "spearman", "analogy": "accuracy", "relational": "spearman"}
_NEIGHBOURS = 6
_PRIMARY = ("SimLex", "WS353S")  # the lists that the paper did not choose by

Scores = dict[str, float]
Coverage = Mapping[str, str]  # test to "covered of total"
Values = Mapping[str, Mapping[str, Sequence[float]]]  # system to metric to seeds


def column(test: kinds.Test) -> str:
    """What the paper calls a test."""
    return {**SIMILARITY, **ANALOGY}.get(test.name.removeprefix("EN-"), test.name)


def score(
    tests: Mapping[str, Sequence[kinds.Test]], table: WordVectors
) -> tuple[Scores, dict[str, str]]:
    """Every test's score and each group's mean × 100; how much each test covers."""
    found: Scores = {}
    covered = {}
    for group, own in tests.items():
        for test in own:
            fields = test.score(table, Settings(resamples=0), (table,)).fields
            if fields["covered"]:
                found[column(test)] = 100 * float(fields[_FIELD[test.kind]])
            covered[column(test)] = f"{fields['covered']} of {fields['total']}"
        known = [found[column(test)] for test in own if column(test) in found]
        if known:
            found[group] = float(np.mean(known))
    return found, covered


def named(metric: str, coverage: Coverage) -> str:
    """A metric with how much of its test is covered, as rows have it."""
    return f"{metric} ({coverage[metric]})" if metric in coverage else metric


def means_first(metrics: Sequence[str]) -> list[str]:
    """Metrics without repetition, means of several tests before the others."""
    return sorted(dict.fromkeys(metrics), key=lambda m: not m.startswith("mean"))


def study(
    config: Config, text: data.Text, tables: Tables, workdir: Path, findings: Findings
) -> None:
    """Scores every system with every seed; compares, shows, draws."""
    tests = data.load_tests(config)
    values: dict[str, dict[str, list[float]]] = {}
    covered: dict[str, Coverage] = {}
    near: dict[str, list[str]] = {}
    for system in config.systems:
        trained = system in OURS or system in TRAINED
        values[system] = {}
        for seed in range(config.seeds if trained else 1):
            if trained:
                tables.folder(system, seed)
            kept = workdir / "scores" / f"{system}-{seed}.json"
            if not kept.exists():
                # The time of training is kept beside the table, and counted there.
                table = tables.table(system, seed) if trained else None
                with results.recorded(workdir):
                    table = tables.table(system, seed) if table is None else table
                    told = _told(config, text, tests, table)
                    storage.write_text(epath.Path(kept), json.dumps(told))
            told = json.loads(kept.read_text())
            for metric, value in told["scores"].items():
                values[system].setdefault(metric, []).append(value)
            covered[system] = told["covered"]
            near.setdefault(system, told["near"])
        _say(system, values[system])
    # All have the words of the text, but for vectors that others trained.
    coverage = covered[config.systems[0]]
    for metric in means_first([m for own in values.values() for m in own]):
        findings.shown.append(named(metric, coverage))
        for system, own in values.items():
            if metric in own:
                findings.add(system, named(metric, coverage), own[metric])
    other = {s: own for s, own in covered.items() if own != coverage}
    findings.notes |= {
        f"neighbours of {_shown(text)}": near,
        "covered": coverage,
        "covered otherwise": other,
    }
    _claims(values, findings)
    with results.recorded(workdir):
        _draw_pairs(config, text, tables, workdir)
        attended.study(config, text, tables, workdir, findings)


def _say(system: str, values: Mapping[str, Sequence[float]]) -> None:
    means = {m: v for m, v in values.items() if m.startswith("mean")}
    told = ", ".join(f"{m} {np.mean(v):.2f}" for m, v in means.items())
    terminal.say(f"{system}: {told}")


def _told(
    config: Config,
    text: data.Text,
    tests: Mapping[str, Sequence[kinds.Test]],
    table: WordVectors,
) -> dict:
    """All that is kept of a table."""
    scores, covered = score(tests, table)
    pairs = _pairs(config, text)
    known = contexts.known_pairs(table, pairs)
    scores[OFFSETS] = contexts.offset_parallelism(table, pairs)
    covered[OFFSETS] = f"{len(known)} of {len(pairs)}"
    return {"scores": scores, "covered": covered, "near": _near(text, table)}


def _shown(text: data.Text) -> str:
    return SHOWN if SHOWN in text.corpus.index else text.corpus.words[0]


def _near(text: data.Text, table: WordVectors) -> list[str]:
    """Table 4; none of a word that the table lacks."""
    word = _shown(text)
    if word not in table:
        return []
    [found] = neighbours.nearest_neighbours(table, [word], _NEIGHBOURS)
    return [word for word, _ in found]


def _pairs(config: Config, text: data.Text) -> list[tuple[str, str]]:
    if config.text == "planted":
        words = text.corpus.words
        return list(zip(words[:4], words[4:8], strict=True))
    return [(a, b) for a, b in PAIRS]


def claimed() -> Iterator[tuple[str, str, str]]:
    """Metric, what is said to be better, and than what.

    The paper's claims: V′ beats all others on every list of similarity and on Google's
    analogies, and the average beats it on MSR; attention helps. Each with the centre
    among its own contexts and without, and what that alone does.
    """
    means = ("mean similarity", "mean analogy")
    others = (*TRAINED, *UNTRAINED, *LOADED)
    for ours in ("ours", "ours, itself"):
        columns = (*means, *SIMILARITY.values(), ANALOGY["google"])
        yield from ((m, ours, other) for m in columns for other in others)
        yield ANALOGY["msr"], "average", ours
        yield OFFSETS, ours, "SG"
    for ours in ("code", "code, itself"):
        yield from ((m, ours, other) for m in means for other in others)
        yield from ((m, ours, "SG") for m in _PRIMARY)
    for metric in means:
        yield metric, "ours", "ours, uniform"
        yield metric, "ours, itself", "ours, uniform, itself"
        yield metric, "ours", "code"
    for metric in (*means, *_PRIMARY):
        yield metric, "ours, itself", "ours"
        yield metric, "code, itself", "code"


def _claims(values: Values, findings: Findings) -> None:
    """Whatever of `claimed` was measured."""
    for metric, better, worse in claimed():
        one, other = (values.get(s, {}).get(metric) for s in (better, worse))
        if one and other:
            most = max(len(one), len(other))  # what is not trained has no seeds
            findings.beats(
                f"{better} beats {worse}: {metric}",
                [*one] * (most // len(one)),
                [*other] * (most // len(other)),
                printed=(metric, better, worse),
            )


def _draw_pairs(config: Config, text: data.Text, tables: Tables, workdir: Path) -> None:
    """Figure 6."""
    for system in ("ours", "SG"):
        if system in config.systems:
            title = f"male and female words, {system}"
            table = tables.table(system, 0)
            figures.save(
                contexts.pairs_figure(table, _pairs(config, text), title),
                workdir / "figures" / f"pairs-{system}.svg",
                "By t-SNE, which keeps neighbours and not directions: the rows tell "
                "how parallel offsets are.",
            )
