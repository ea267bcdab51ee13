"""All eight mixtures of a teacher, pruning and adversarial training, of one student."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from etils import epath
from flax import traverse_util

from experiments.common.findings import Findings
from experiments.docbert_distillation import scores, students
from experiments.docbert_distillation.config import Config
from experiments.docbert_distillation.data import Inputs, Task
from jaxemb.analysis import figures
from jaxemb.data import sparse
from jaxemb.data.rows import RowsById

FACTORS = ("distilled", "pruned", "adversarial")
_COMPACT = "compact.safetensors"

Cell = tuple[bool, bool, bool]
"""Which of `FACTORS` are on."""
CELLS: tuple[Cell, ...] = tuple(itertools.product((False, True), repeat=3))


class Measured(NamedTuple):
    """Of one student."""

    score: float
    under_attack: tuple[float, ...]
    """By radius."""
    zeros: float
    """Per cent of the parameters."""
    kilobytes: float
    """On disk, in the smallest form."""


Found = Mapping[Cell, Sequence[Measured]]
"""One a seed."""


def named(cell: Cell) -> str:
    """What a row is called."""
    on = [factor for factor, is_on in zip(FACTORS, cell, strict=True) if is_on]
    return " + ".join(on) or "plain"


def train_all(
    config: Config, task: Task, inputs: Inputs, logits: RowsById, workdir: Path
) -> tuple[dict[Cell, list[Measured]], list[epath.Path]]:
    """Trains the student of every cell and seed, and returns where they are, too."""
    found: dict[Cell, list[Measured]] = {cell: [] for cell in CELLS}
    folders = []
    for pruned, adversarial in itertools.product((False, True), repeat=2):
        system = students.System(
            *(config, task, inputs, logits, workdir, config.composed.student),
            pruned=pruned,
            adversarial=adversarial,
        )
        for distilled in (False, True):
            for seed in range(config.seeds):
                run = system.fit("KD" if distilled else "plain", seed)
                folders.append(run.folder)
                one = _measured(config, task, system, run)
                found[distilled, pruned, adversarial].append(one)
    return found, folders


def _measured(
    config: Config, task: Task, system: students.System, run: students.Trained
) -> Measured:
    documents = task.documents["test"]
    params = system.params(run.folder)
    attacked = [system.attacked(run, radius) for radius in config.composed.radii]
    tensors = traverse_util.flatten_dict(jax.device_get(params), sep="/")
    sizes = sparse.write_compact(run.folder / _COMPACT, tensors).values()
    dense = sum(one.dense for one in sizes)
    return Measured(
        score=100 * scores.score(task, run.test, documents),
        under_attack=tuple(100 * scores.score(task, x, documents) for x in attacked),
        zeros=100 * sum(one.zeros * one.dense for one in sizes) / dense,
        kilobytes=sum(one.size for one in sizes) / 1e3,
    )


def effect(
    found: Mapping[Cell, Sequence[float]], factors: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """The two sides whose difference, paired by seed, is an effect or interaction.

    Of one factor: the means of the four cells with and without it. Of several: the
    means of the cells in which an even and an odd number of them is off.
    """
    sides: dict[bool, list[Sequence[float]]] = {False: [], True: []}
    for cell, values in found.items():
        off = sum(not cell[factor] for factor in factors)
        sides[off % 2 == 0].append(values)
    more, less = (np.mean(sides[side], axis=0) for side in (True, False))
    return more, less


def add_findings(config: Config, found: Found, taught: float, findings: Findings):
    """The table, effects of each factor, their interactions."""
    metric = config.metric
    radii = config.composed.radii
    changed = [f"{metric} under changes of length {radius:g}" for radius in radii]
    columns = (metric, *changed, "parameters that are 0 (%)", "kilobytes on disk")
    values: dict[str, dict[Cell, list[float]]] = {name: {} for name in columns}
    for cell, runs in found.items():
        for one in runs:
            numbers = (one.score, *one.under_attack, one.zeros, one.kilobytes)
            for name, value in zip(columns, numbers, strict=True):
                values[name].setdefault(cell, []).append(value)
    findings.add("teacher", metric, [taught])
    for name, table in values.items():
        for cell, of in table.items():
            findings.add(named(cell), name, of)
    findings.shown += columns
    for name in (metric, *changed):
        for number, factor in enumerate(FACTORS):
            more, less = effect(values[name], [number])
            how = factor.replace("adversarial", "adversarially trained")
            findings.beats(
                f"{how} students beat the others, over the four mixtures of the rest: "
                f"{name}",
                more.tolist(),
                less.tolist(),
            )
        for several in ((0, 1), (0, 2), (1, 2), (0, 1, 2)):
            more, less = effect(values[name], several)
            together = " × ".join(FACTORS[i] for i in several)
            findings.beats(
                f"{together}: together more than each by itself adds up to: {name}",
                more.tolist(),
                less.tolist(),
            )


def write_figures(config: Config, found: Found, taught: float, folder: Path) -> None:
    """Scores by the length of the change, a line a cell."""
    radii = [0.0, *config.composed.radii]
    lines = {
        named(cell): figures.banded(
            radii,
            [
                [one.score if n == 0 else one.under_attack[n - 1] for one in runs]
                for n in range(len(radii))
            ],
        )
        for cell, runs in found.items()
    }
    figures.save(
        figures.curves(
            lines,
            config.metric,
            x_label="length of the change of a text's vectors",
            levels={"teacher, unchanged": taught},
        ),
        folder / "composed.svg",
        f"{config.composed.student}, eight mixtures: test scores under changes along "
        f"the gradient; 95 % bands over {config.seeds} seeds.",
    )
