"""Every system over sources trained with several seeds: figures over seeds."""

import dataclasses
import json
from pathlib import Path

import numpy as np
from etils import epath

from experiments.common.rows import summary_row
from experiments.common.trained import NAMES, Trainer
from experiments.geometric_meta_embeddings import data, model
from experiments.geometric_meta_embeddings.board import Board
from experiments.geometric_meta_embeddings.config import Config
from jaxemb import storage, terminal
from jaxemb.analysis import figures, geometry
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import intervals
from jaxemb.eval.settings import Settings
from jaxemb.train import loop, results

# The mean that a first small confirmation asks for, beside those of the paper.
CONFIRMED = "mean of RG, WS and SL"
_CONFIRMS = "RG", "WS", "SL"

Scores = dict[str, dict[str, float]]  # system to metric to score, in per cent


def run(config: Config, workdir: Path) -> dict:
    """Trains and scores what is not there yet; returns what results are made of."""
    loop.claim(epath.Path(workdir), results.as_json(_deciding(config)))
    trainer, tests = (
        Trainer(config.training, config.run, workdir),
        data.load_tests(config),
    )
    parts = [workdir / f"seed-{seed}" for seed in range(config.training.seeds)]
    scores = []
    for seed, folder in enumerate(parts):
        kept = folder / "scores.json"
        if not kept.exists():
            with results.recorded(folder):
                found = _scores(config, trainer.tables(seed), trainer.data, tests)
                storage.write_text(epath.Path(kept), json.dumps(found))
        scores.append(json.loads(kept.read_text()))
        first = next(iter(scores[-1]["AVG"]))
        told = ", ".join(f"{name} {of[first]:.2f}" for name, of in scores[-1].items())
        terminal.say(f"seed {seed}: {first}: {told}")
    values = {
        name: {m: [one[name][m] for one in scores] for m in scores[0][name]}
        for name in scores[0]
    }
    rows = [
        summary_row(name, metric, of)
        for name, by_metric in values.items()
        for metric, of in by_metric.items()
    ]
    means = [m for m in values["AVG"] if m.startswith("mean")]
    claims = [
        _claim(better, worse, metric, values)
        for better, worse in model.claimed(NAMES)
        for metric in means
    ]
    gaps = {
        metric: intervals.paired_t(values["Geo-AVG"][metric], values["AVG"][metric])
        for metric in values["AVG"]
        if metric not in means
    }
    figures.save(
        geometry.benchmark_differences(gaps),
        workdir / "figures" / "benchmark-differences.svg",
        f"Geo-AVG less AVG, in points, 95 % intervals over {len(parts)} seeds.",
    )
    described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
    return {
        "config": {
            **described,
            "vocabulary": len(trainer.text.words),
            "words": int(trainer.text.raw[-1]),
            "interval": "95 %: Student t over seeds, of differences paired by seed; "
            "the tests' items are the same for all",
        },
        "origins": [results.origin(folder) for folder in parts],
        "data": [*trainer.data, *Board(tests, Settings(), show=False).data()],
        "rows": rows,
        "claims": claims,
    }


def _deciding(config: Config) -> Config:
    """The settings that decide a seed's scores: more seeds leave those there are."""
    training = dataclasses.replace(config.training, seeds=0)
    run = type(config.run)()
    return dataclasses.replace(config, training=training, run=run, preset="")


def _scores(
    config: Config,
    tables: list[WordVectors],
    used: tuple[results.Data, ...],
    tests: data.Tests,
) -> Scores:
    board = Board(tests, Settings(resamples=0), show=False)
    sources = data.combined(config, NAMES, tables, used)
    equal = model.equal_width(config, sources)
    learned = model.learn(config, equal, config.c)
    systems = model.systems(config, sources, equal, learned)
    found = {}
    for name, matrix in systems.items():
        table = WordVectors(sources.words, matrix.astype(np.float32), unique=True)
        if not found:
            board.leave_out_uncovered(table)
        scores = {row.metric: row.measured for row in board.rows(name, table)}
        of = [v for m, v in scores.items() if m.split(" ")[0] in _CONFIRMS]
        found[name] = {**scores, CONFIRMED: float(np.mean(of))} if of else scores
    return found


def _claim(
    better: str, worse: str, metric: str, values: dict[str, dict[str, list[float]]]
) -> results.Claim:
    gap = intervals.paired_t(values[better][metric], values[worse][metric])
    return results.Claim(
        claim=f"{better} beats {worse}: {metric}",
        verdict=intervals.verdict(gap.low, gap.high),
        evidence=f"difference {gap.mean:+.2f} points [{gap.low:.2f}, {gap.high:.2f}], "
        f"paired t over {len(values[better][metric])} seeds",
    )
