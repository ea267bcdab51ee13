"""Table 3: the grid, every system of every seed, and what each stores."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from etils import epath

from experiments.common.findings import Findings
from experiments.subword_reconstruction import data, tagging
from experiments.subword_reconstruction.config import Config
from experiments.subword_reconstruction.tagging import DEV, TEST, Cell, System, Taggers
from jaxemb import terminal, train
from jaxemb.analysis import figures

ACCURACY = "test accuracy (%)"
GRID = "dev accuracy of FULL (%), grid"


def systems(config: Config) -> list[System]:
    """The rows of the table."""
    rows = {
        "FULL": tagging.FULL,
        "FULL+EMB": System("FULL+EMB", full=True, pretrained=True),
        "CHAR": System("CHAR"),
    }
    found = [rows[name] for name in config.tagging.rows]
    found += [System(f"CHAR({d})", student=d) for d in config.distances]
    return found + [
        System(f"CHAR({d}, permuted)", student=d, permuted=True)
        for d in config.permuted
    ]


def study(
    config: Config, world: data.World, workdir: epath.Path, findings: Findings
) -> None:
    """Chooses the cell on FULL, trains every system with it, and compares them."""
    taggers = Taggers(config, world, workdir)
    grid = _grid(config, taggers)
    cell = max(grid, key=lambda one: grid[one])
    scores: dict[str, list[float]] = {}
    stored, histories = {}, {}
    for system in systems(config):
        best = [taggers.fit(system, cell, seed) for seed in range(config.seeds)]
        scores[system.name] = [100 * one[TEST] for one in best]
        stored[system.name] = taggers.stored(system)
        folders = [taggers.folder(system, cell, s) for s in range(config.seeds)]
        histories[system.name] = [train.evaluations(f, DEV) for f in folders]
        findings.add(system.name, ACCURACY, scores[system.name])
    for metric in ("lookup entries", "parameters"):
        for name, counts in stored.items():
            findings.add(name, metric, [counts[metric]])
    findings.shown += [ACCURACY, "lookup entries", "parameters"]
    for one, value in grid.items():
        findings.add(str(one), GRID, [value])
    findings.notes |= {
        "cell": dataclasses.asdict(cell),
        "tags": len(taggers.treebank.tags),
        "words of the training part without a teacher's vector (%)": round(
            100 * taggers.treebank.share_without_vector, 2
        ),
        "selection": "test accuracy at the first epoch of best dev accuracy",
    }
    _claims(config, scores, findings)
    _draw_grid(config, grid, workdir)
    _by_epoch(histories, workdir, findings)


def _by_epoch(
    histories: Mapping[str, Sequence[Sequence[Mapping]]],
    workdir: epath.Path,
    findings: Findings,
) -> None:
    """How long a head start lasts."""
    for name, seeds in histories.items():
        for number, lines in enumerate(zip(*seeds, strict=True), 1):
            values = [100 * line[DEV] for line in lines]
            findings.add(name, f"dev accuracy after epoch {number} (%)", values)
    figures.save(
        figures.learning_curves(histories, DEV),
        workdir / "figures" / "tagging.svg",
        "Accuracy on dev after every epoch: how long a head start lasts.",
    )


def _grid(config: Config, taggers: Taggers) -> dict[Cell, float]:
    """Dev accuracy of FULL, with the first seed, for every cell."""
    found = {}
    for dropout in config.tagging.dropouts:
        for rate in config.tagging.learning_rates:
            cell = Cell(rate, dropout)
            found[cell] = 100 * taggers.fit(tagging.FULL, cell, 0)[DEV]
            terminal.say(f"grid · {cell}: dev accuracy {found[cell]:.2f}")
    return found


def _claims(
    config: Config, scores: Mapping[str, Sequence[float]], findings: Findings
) -> None:
    wanted = [("FULL+EMB", "FULL"), ("FULL", "CHAR")]
    wanted += [(f"CHAR({d})", "CHAR") for d in config.distances]
    wanted += [("CHAR(D1)", f"CHAR({d})") for d in config.distances if d != "D1"]
    wanted += [(f"CHAR({d})", f"CHAR({d}, permuted)") for d in config.permuted]
    wanted += [(f"CHAR({d}, permuted)", "CHAR") for d in config.permuted]
    for better, worse in wanted:
        if better in scores and worse in scores:
            findings.beats(
                f"{better} beats {worse}: {ACCURACY}",
                scores[better],
                scores[worse],
                printed=(ACCURACY, better, worse),
            )
    if {"CHAR(D1)", "FULL"} <= set(scores):
        margin = config.tagging.margin
        findings.beats(
            f"CHAR(D1) is less than {margin:g} points below FULL: {ACCURACY}",
            scores["CHAR(D1)"],
            scores["FULL"],
            printed=(ACCURACY, "CHAR(D1)", "FULL"),
            margin=margin,
        )


def _draw_grid(config: Config, grid: Mapping[Cell, float], workdir: epath.Path) -> None:
    rates, dropouts = config.tagging.learning_rates, config.tagging.dropouts
    cells = [[grid[Cell(rate, dropout)] for rate in rates] for dropout in dropouts]
    figures.save(
        figures.heat_map(
            np.array(cells),
            [f"{dropout:g}" for dropout in dropouts],
            [f"{rate:g}" for rate in rates],
            "dev accuracy of FULL (%)",
            x_label="learning rate",
            y_label="dropout",
        ),
        workdir / "figures" / "grid.svg",
        "The grid that chooses the cell for all systems; the first seed.",
    )
