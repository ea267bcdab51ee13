"""Figures 4 and 5: windows of other widths, with attention and without."""

import json
from pathlib import Path

import numpy as np
from etils import epath

from experiments.common.findings import Findings
from experiments.dynamic_to_static import data
from experiments.dynamic_to_static.config import Config
from experiments.dynamic_to_static.model import Tables
from experiments.dynamic_to_static.similarity import score
from jaxemb import storage, terminal
from jaxemb.analysis import figures
from jaxemb.train import results

ARMS = {"attention": "ours", "uniform": "ours, uniform"}


def study(
    config: Config, text: data.Text, tables: Tables, workdir: Path, findings: Findings
) -> None:
    """Trains and scores every width, arm and seed."""
    tests = data.load_tests(config)
    tests = {"mean similarity": tests["mean similarity"]}
    values: dict[str, dict[int, dict[str, list[float]]]] = {}
    for arm, system in ARMS.items():
        for width in config.widths:
            own = values.setdefault(arm, {}).setdefault(width, {})
            for seed in range(config.seeds):
                tables.folder(system, seed, window=width)
                kept = workdir / "scores" / f"{arm}-{width}-{seed}.json"
                if not kept.exists():
                    trained = tables.contextual(system, seed, window=width)
                    with results.recorded(workdir):
                        found, _ = score(tests, trained.vectors())
                        storage.write_text(epath.Path(kept), json.dumps(found))
                for metric, value in json.loads(kept.read_text()).items():
                    own.setdefault(metric, []).append(value)
            told = ", ".join(f"{m} {np.mean(v):.2f}" for m, v in own.items())
            terminal.say(f"{arm}, window {width}: {told}")
    metrics = list(values["attention"][config.widths[0]])
    metrics.sort(key=lambda m: not m.startswith("mean"))  # these first
    for metric in metrics:
        for arm, by_width in values.items():
            for width, own in by_width.items():
                findings.add(f"{arm}, window {width}", metric, own[metric])
        findings.shown.append(metric)
    shown = [m for m in ("WS353", "mean similarity") if m in metrics]
    for metric in shown:
        _claims(config, values, metric, findings)
        figures.save(
            figures.curves(
                {
                    arm: figures.banded(
                        list(by_width), [own[metric] for own in by_width.values()]
                    )
                    for arm, by_width in values.items()
                },
                f"{metric} × 100",
                x_label="window",
            ),
            workdir / "figures" / f"windows-{metric.replace(' ', '-')}.svg",
            f"By the width of the window, 95 % bands over {config.seeds} seeds "
            "(Figures 4 and 5).",
        )


def _claims(config: Config, values: dict, metric: str, findings: Findings) -> None:
    widths = config.widths
    attention, uniform = values["attention"], values["uniform"]
    for wider, narrower in zip(widths[1:], widths[:-1], strict=True):
        findings.beats(
            f"a window of {wider} beats one of {narrower}: {metric}",
            attention[wider][metric],
            attention[narrower][metric],
        )
    for width in widths:
        findings.beats(
            f"attention beats equal weights in a window of {width}: {metric}",
            attention[width][metric],
            uniform[width][metric],
        )
