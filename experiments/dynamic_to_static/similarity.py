"""Table 2: every system on every test; neighbours, offsets and what is attended to."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from etils import epath

from experiments.common.findings import Findings
from experiments.dynamic_to_static import data
from experiments.dynamic_to_static.config import (
    ANALOGY,
    OURS,
    PAIRS,
    SENTENCE,
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
_ATTENDED = 1000  # sentences whose attention is averaged

Scores = dict[str, float]
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


def study(
    config: Config, text: data.Text, tables: Tables, workdir: Path, findings: Findings
) -> None:
    """Scores every system with every seed; compares, shows, draws."""
    tests = data.load_tests(config)
    values: dict[str, dict[str, list[float]]] = {}
    coverage: dict[str, str] = {}
    near: dict[str, list[str]] = {}
    for system in config.systems:
        seeds = 1 if system in UNTRAINED else config.seeds
        values[system] = {}
        for seed in range(seeds):
            if system not in UNTRAINED:
                tables.folder(system, seed)
            kept = workdir / "scores" / f"{system}-{seed}.json"
            if not kept.exists():
                with results.recorded(workdir):
                    table = tables.table(system, seed)
                    own, covered = score(tests, table)
                    told = {
                        "scores": {**own, **_offsets(config, text, table)},
                        "covered": covered,
                        "near": _near(config, text, table),
                    }
                    storage.write_text(epath.Path(kept), json.dumps(told))
            told = json.loads(kept.read_text())
            for metric, value in told["scores"].items():
                values[system].setdefault(metric, []).append(value)
            coverage |= told["covered"]
            near.setdefault(system, told["near"])
        _say(system, values[system])
    metrics = list(dict.fromkeys(m for own in values.values() for m in own))
    metrics.sort(key=lambda m: not m.startswith("mean"))  # these first
    for metric in metrics:
        named = f"{metric} ({coverage[metric]})" if metric in coverage else metric
        findings.shown.append(named)
        for system, own in values.items():
            if metric in own:
                findings.add(system, named, own[metric])
    findings.notes |= {f"neighbours of {_shown(text)}": near, "covered": coverage}
    _claims(config, values, findings)
    with results.recorded(workdir):
        _analyse(config, text, tables, workdir, findings)


def _say(system: str, values: Mapping[str, Sequence[float]]) -> None:
    means = {m: v for m, v in values.items() if m.startswith("mean")}
    told = ", ".join(f"{m} {np.mean(v):.2f}" for m, v in means.items())
    terminal.say(f"{system}: {told}")


def _shown(text: data.Text) -> str:
    return SHOWN if SHOWN in text.corpus.index else text.corpus.words[0]


def _near(config: Config, text: data.Text, table: WordVectors) -> list[str]:
    """Table 4."""
    found = neighbours.nearest_neighbours(table, [_shown(text)], _NEIGHBOURS)
    return [word for word, _ in found[0]]


def _pairs(config: Config, text: data.Text) -> list[tuple[str, str]]:
    if config.text == "planted":
        words = text.corpus.words
        return list(zip(words[:4], words[4:8], strict=True))
    return [(a, b) for a, b in PAIRS]


def _offsets(config: Config, text: data.Text, table: WordVectors) -> Scores:
    return {OFFSETS: contexts.offset_parallelism(table, _pairs(config, text))}


def _claims(config: Config, values: Values, findings: Findings) -> None:
    """The paper's claims, with the centre among its own contexts and without."""
    there = list(values)
    means = [m for m in ("mean similarity", "mean analogy") if m in values[there[0]]]
    primary = ["SimLex", "WS353S"]
    wanted = []
    for ours in ("ours", "ours, itself", "code", "code, itself"):
        wanted += [(m, ours, b) for b in (*TRAINED, *UNTRAINED) for m in means]
        wanted += [(m, ours, "SG") for m in primary]
    wanted += [(m, "ours", "ours, uniform") for m in means]
    wanted += [(m, "ours, itself", "ours") for m in means]
    wanted += [(m, "code, itself", "code") for m in means]
    wanted += [(m, "ours", "code") for m in means]
    wanted += [(OFFSETS, "ours", "SG"), (OFFSETS, "ours, itself", "SG")]
    for metric, better, worse in wanted:
        if better not in there or worse not in there or metric not in values[better]:
            continue
        one, other = values[better][metric], values[worse][metric]
        most = max(len(one), len(other))  # what is not trained has no seeds
        findings.beats(
            f"{better} beats {worse}: {metric}",
            [*one] * (most // len(one)),
            [*other] * (most // len(other)),
            printed=(metric, better, worse),
        )


def _analyse(
    config: Config, text: data.Text, tables: Tables, workdir: Path, findings: Findings
) -> None:
    """Figures 6 and 7, and what is attended to by frequency."""
    folder = workdir / "figures"
    for system in ("ours", "SG"):
        if system in config.systems:
            title = f"male and female words, {system}"
            pairs = _pairs(config, text)
            table = tables.table(system, 0)
            figures.save(
                contexts.pairs_figure(table, pairs, title),
                folder / f"pairs-{system}.svg",
                "By t-SNE, which keeps neighbours and not directions: the rows tell "
                "how parallel offsets are.",
            )
    for system in [s for s in config.systems if s in OURS and s != "ours, uniform"]:
        own = tables.contextual(system, 0)
        words, vectors, ids = _sentence(config, text, workdir)
        figures.save(
            figures.heat_map(
                _without_zeros(100 * own.attention(vectors, ids)),
                words,
                words,
                f"what the row's word attends to (%), {system}",
            ),
            folder / f"attention-{system}.svg",
            "Weights of the words in the window of each row's word, first seed.",
        )
        counts = np.asarray(text.corpus.counts)
        bins = contexts.attention_by_frequency(_attended(text, own), counts)
        for one in bins:
            metric = f"attention over uniform, words that occur {one.low}-{one.high}"
            findings.add(system, metric, [one.relative])


def _sentence(
    config: Config, text: data.Text, workdir: Path
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """A sentence's known words, the encoder's vectors of them, and their numbers."""
    index = text.corpus.index
    if config.text == "planted":
        ids = np.asarray(text.corpus.tokens[: text.corpus.starts[1]])
        places = np.arange(len(ids))
        return [text.corpus.words[i] for i in ids], text.vectors(places), ids
    words = SENTENCE.split()
    encoded = text.encoder.features([words], workdir / "sentence", False)[0]
    known = [i for i, word in enumerate(words) if word in index]
    ids = np.array([index[words[i]] for i in known])
    return [words[i] for i in known], encoded[known], ids


def _attended(text: data.Text, own) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    starts = np.asarray(text.corpus.starts[: _ATTENDED + 1])
    for start, end in zip(starts, starts[1:], strict=False):
        if end - start > 1:
            places = np.arange(start, end)
            ids = np.asarray(text.corpus.tokens[start:end])
            yield own.attention(text.vectors(places), ids), ids


def _without_zeros(weights: np.ndarray) -> np.ndarray:
    return np.where(weights > 0, weights, np.nan)
