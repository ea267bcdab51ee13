"""Figures 4 and 5: windows of other widths, with attention and without."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from etils import epath

from experiments.common.findings import Findings
from experiments.dynamic_to_static import data
from experiments.dynamic_to_static.config import Config
from experiments.dynamic_to_static.model import Tables
from experiments.dynamic_to_static.similarity import means_first, named, score
from jaxemb import storage, terminal
from jaxemb.analysis import figures
from jaxemb.train import results

ARMS = {"attention": "ours", "uniform": "ours, uniform"}
SECONDS = "seconds of training"
_COSTS = (8, 5, 2.0)  # the paper: so wide a window takes so many times that one's time

Arm = tuple[str, int]  # a name and a window
Values = Mapping[Arm, Mapping[str, Sequence[float]]]  # metric to seeds


def study(
    config: Config, text: data.Text, tables: Tables, workdir: Path, findings: Findings
) -> None:
    """Trains and scores every width, arm and seed."""
    tests = data.load_tests(config)
    tests = {"mean similarity": tests["mean similarity"]}
    arms = {(arm, width): ARMS[arm] for arm in ARMS for width in config.widths}
    arms |= {
        (kind.removeprefix("ours, "), config.window): kind for kind in config.kinds
    }
    values: dict[Arm, dict[str, list[float]]] = {}
    coverage: dict[str, str] = {}
    for (arm, width), system in arms.items():
        own = values[arm, width] = {}
        for seed in range(config.seeds):
            folder = tables.folder(system, seed, width)
            kept = workdir / "scores" / f"{arm}-{width}-{seed}.json"
            if not kept.exists():
                trained = tables.contextual(system, seed, width)
                with results.recorded(workdir):
                    found, covered = score(tests, trained.vectors())
                    told = {"scores": found, "covered": covered}
                    storage.write_text(epath.Path(kept), json.dumps(told))
            told = json.loads(kept.read_text())
            scores = {**told["scores"], SECONDS: results.origin(folder)["seconds"]}
            for metric, value in scores.items():
                own.setdefault(metric, []).append(value)
            coverage = told["covered"]  # the same words everywhere
        told = ", ".join(f"{m} {np.mean(v):.2f}" for m, v in own.items())
        terminal.say(f"{arm}, window {width}: {told}")
    metrics = means_first([m for own in values.values() for m in own])
    for metric in metrics:
        for (arm, width), own in values.items():
            row = f"{arm}, window {width}"
            findings.add(row, named(metric, coverage), own[metric])
        findings.shown.append(named(metric, coverage))
    for metric in metrics:
        if metric in ("WS353", "mean similarity"):
            _claims(config, values, metric, findings)
        if metric in ("WS353", "mean similarity", SECONDS):
            _draw(config, values, metric, workdir)
    _costs(values, findings)


def _claims(config: Config, values: Values, metric: str, findings: Findings) -> None:
    def beats(claim: str, better: Arm, worse: Arm) -> None:
        if better in values and worse in values:
            findings.beats(
                f"{claim}: {metric}", values[better][metric], values[worse][metric]
            )

    widths = config.widths
    for wider, narrower in zip(widths[1:], widths[:-1], strict=True):
        claim = f"a window of {wider} beats one of {narrower}"
        beats(claim, ("attention", wider), ("attention", narrower))
    for width in widths:
        claim = f"attention beats equal weights in a window of {width}"
        beats(claim, ("attention", width), ("uniform", width))
    for kind in config.kinds:
        arm = kind.removeprefix("ours, ")
        claim = f"attention beats it with {arm}"
        beats(claim, ("attention", config.window), (arm, config.window))


def _costs(values: Values, findings: Findings) -> None:
    wide, narrow, times = _COSTS
    long, short = (
        values.get(("attention", width), {}).get(SECONDS, [])
        for width in (wide, narrow)
    )
    if long and short and all(short):
        ratios = np.divide(long, short)
        findings.beats(
            f"a window of {wide} takes {times:g} times the time of one of {narrow}, or "
            "more: the ratio less that",
            ratios.tolist(),
            [times] * len(ratios),
        )


def _draw(config: Config, values: Values, metric: str, workdir: Path) -> None:
    widths = list(config.widths)
    curves = {
        arm: figures.banded(widths, [values[arm, width][metric] for width in widths])
        for arm in ARMS
    }
    label = metric if metric == SECONDS else f"{metric} × 100"
    figures.save(
        figures.curves(curves, label, x_label="window"),
        workdir / "figures" / f"windows-{metric.replace(' ', '-')}.svg",
        f"By the width of the window, 95 % bands over {config.seeds} seeds "
        "(Figures 4 and 5).",
    )
