"""From scores of tuning to rows and verdicts."""

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from etils import epath

from experiments.common.findings import Findings
from experiments.compressing_bert import data, tuned_figures
from experiments.compressing_bert.config import Config
from experiments.compressing_bert.model import Pretrainer
from experiments.compressing_bert.published import label
from experiments.compressing_bert.tuning import (
    DENSE_RUNS,
    LATER,
    MASKED,
    UNPRUNED,
    Cell,
    Tuner,
    cells,
)
from jaxemb.analysis import pruning
from jaxemb.train import loop, results

MARGIN = 1.0  # points that are let go
LOSS_MARGINS = {"nats": 0.05, "squared error": 0.005}
FREE, HARD = 40, 70  # the first regime's last sparsity, the third one's first
ALIKE = 6.0  # per cent of the places that the paper's masks differ on at most
Scores = Mapping[Cell, Sequence[dict]]
"""What is told of every seed."""


@dataclasses.dataclass(frozen=True, eq=False)
class Done:
    """What a study read and where it worked."""

    data: list[results.Data]
    folders: list[Path]


def study(
    config: Config,
    world: data.World,
    pretrainer: Pretrainer,
    workdir: Path,
    findings: Findings,
) -> Done:
    """Every cell of every task with every seed."""
    used, folders, by_task = [], [], {}
    for name in config.tasks:
        task = data.load_task(config, world, name)
        tuner = Tuner(config, world, task, pretrainer, workdir / "tuning")
        # Scores of other settings are not taken for these.
        loop.claim(
            epath.Path(tuner.folder),
            {
                **results.as_json(config.tuning),
                "pretraining": results.as_json(config.pretraining),
                "encoder": world.digest,
                "text": config.text,
            },
        )
        scores = {cell: best_rate(tuner, cell, config) for cell in cells(config)}
        shutil.rmtree(tuner.folder / DENSE_RUNS, ignore_errors=True)
        folders += [tuner.folder / cell.folder for cell in scores]
        used.append(task.data)
        losses = {c: pretrainer.loss(c.encoder) for c in scores}
        _rows(task, scores, findings)
        _weights(task, scores, findings)
        _claims(task.name, task.loss_unit, scores, findings)
        _line(task, scores, losses, findings)
        tuned_figures.save(task, scores, losses, workdir / "figures")
        by_task[task] = scores
    if len(by_task) > 1 and all(task.classes for task in by_task):
        _average(list(by_task.values()), findings)
    return Done(used, folders)


def best_rate(tuner: Tuner, cell: Cell, config: Config) -> list[dict]:
    """What is told of a cell's seeds, at the rate with the best mean score."""
    by_rate = {
        rate: [tuner.score(cell, seed, rate) for seed in range(config.seeds)]
        for rate in config.tuning.learning_rates
    }
    best = max(by_rate, key=lambda rate: np.mean([s["score"] for s in by_rate[rate]]))
    return [{**one, "learning rate": best} for one in by_rate[best]]


def _rows(task: data.Task, scores: Scores, findings: Findings) -> None:
    train_loss = f"{task.name}: training loss ({task.loss_unit})"
    for cell, seeds in scores.items():
        findings.add(cell.label, task.metric, [one["score"] for one in seeds])
        findings.add(cell.label, train_loss, [one["train loss"] for one in seeds])
        rates = [1e5 * one["learning rate"] for one in seeds]
        findings.add(cell.label, f"{task.name}: learning rate (1e-5)", rates)
        if cell.arm == "matched":
            epochs = [one["epochs"] for one in seeds]
            findings.add(cell.label, f"{task.name}: epochs to match", epochs)
            reached = [100.0 * one["matched"] for one in seeds]
            findings.add(cell.label, f"{task.name}: runs that matched (%)", reached)
    if task.classes:
        findings.add("majority class", task.metric, [task.majority])
    findings.shown += [task.metric, train_loss]


def _weights(task: data.Task, scores: Scores, findings: Findings) -> None:
    """How tuning moved the order of weights, and how masks differ."""
    dense = scores[UNPRUNED]
    for key in ("movement", "movement sd"):
        values = [one[key] for one in dense]
        findings.add("pruned 0 %", f"{task.name}: {key} of weights (%)", values)
    for epoch, values in enumerate(
        zip(*(one["movement by epoch"] for one in dense), strict=True), 1
    ):
        metric = f"{task.name}: movement of weights after epoch {epoch} (%)"
        findings.add("pruned 0 %", metric, values)
    for percent in MASKED:
        values = [one[f"mask difference {percent}"] for one in dense]
        metric = f"{task.name}: masks before and after tuning, {percent} % (%)"
        findings.add("pruned 0 %", metric, values)
        findings.beats(
            f"tuning changes less than {ALIKE:g} % of the mask at {percent} %: "
            f"{task.name}",
            [ALIKE] * len(values),
            values,
        )
    for cell, seeds in scores.items():
        if "masks by matrix" not in seeds[0]:
            continue
        highest = []
        about = f"{task.name}: masks of pretraining and downstream"
        for one in seeds:
            highest.append(max(one["masks by matrix"].values()))
        means = [float(np.mean([*one["masks by matrix"].values()])) for one in seeds]
        findings.add(cell.label, f"{about}, mean of matrices (%)", means)
        findings.add(cell.label, f"{about}, highest matrix (%)", highest)
        findings.beats(
            f"masks of pretraining and downstream differ by less than {ALIKE:g} % in "
            f"every matrix at {cell.percent} % ({_chance(cell.percent):.3g} % by "
            f"chance): {task.name}",
            [ALIKE] * len(highest),
            highest,
        )


def _chance(percent: int) -> float:
    """On how much two masks differ that know nothing of each other."""
    return 200 * percent / 100 * (1 - percent / 100)


def _claims(name: str, unit: str, scores: Scores, findings: Findings) -> None:
    """The three regimes, arm by arm; what is compared had as many epochs."""

    def compare(claim, better, worse, *, key="score", margin=0.0, printed=None):
        if better not in scores or worse not in scores:
            return
        sign = -1 if key == "train loss" else 1
        sides = [[sign * one[key] for one in scores[c]] for c in (better, worse)]
        labels = printed or (better.label, worse.label)
        findings.beats(
            f"{claim}: {name}",
            *sides,
            margin=margin,
            printed=(name, *labels) if key == "score" else None,
        )

    longest = Cell("longer", 0)
    point, little = f"{MARGIN:g} point", LOSS_MARGINS[unit]
    for cell in scores:
        percent = cell.percent
        if cell == Cell("pruned", percent) and percent:
            if percent <= FREE:
                claim = f"{percent} % of the weights cost less than {point}"
                compare(claim, cell, UNPRUNED, margin=MARGIN)
            else:
                compare(f"{percent} % of the weights cost accuracy", UNPRUNED, cell)
        if cell.arm == "deletion":
            printed = label("deletion", 0), label("deletion", percent)
            if percent <= FREE:
                compare(
                    f"deleting {percent} % costs less than {point}",
                    cell,
                    longest,
                    margin=MARGIN,
                    printed=printed[::-1],
                )
            else:
                compare(
                    f"deleting {percent} % costs accuracy",
                    longest,
                    cell,
                    printed=printed,
                )
            compare(
                f"after deleting {percent} % the training set is fitted as by the "
                f"dense model, within {little:g} ({unit})",
                cell,
                longest,
                key="train loss",
                margin=little,
            )
        if cell.arm == "longer" and percent >= HARD:
            compare(
                f"at {percent} % deletion alone is better than fewer weights",
                Cell("deletion", percent),
                cell,
                printed=(label("deletion", percent), label("pruned", percent)),
            )
            compare(
                f"with {percent} % fewer weights the training set is fitted worse",
                longest,
                cell,
                key="train loss",
            )
        elif cell.arm == "longer" and percent:
            compare(
                f"at {percent} % fewer weights are no worse than deletion alone by "
                f"{point}",
                cell,
                Cell("deletion", percent),
                margin=MARGIN,
                printed=(label("pruned", percent), label("deletion", percent)),
            )
            compare(
                f"with {percent} % fewer weights the training set is fitted as well, "
                f"within {little:g} ({unit})",
                cell,
                longest,
                key="train loss",
                margin=little,
            )
        if cell == Cell("downstream", percent) and percent:
            compare(
                f"pruning downstream at {percent} % is no better by {point}",
                Cell("pruned", percent),
                cell,
                margin=MARGIN,
            )
        if cell.arm == "random":
            claim = f"magnitude beats random pruning at {percent} %"
            compare(claim, Cell("pruned", percent), cell)
        if cell.dense_epochs:
            compare(
                f"pruning {LATER} % after {cell.dense_epochs} epochs of tuning is no "
                f"better than before it by {point}",
                Cell("downstream", LATER, 0),
                cell,
                margin=MARGIN,
            )


def _line(
    task: data.Task, scores: Scores, losses: Mapping[Cell, float], findings: Findings
) -> None:
    """Figure 2, left: the score over the loss of pretraining, of deletion alone."""
    own = [c for c in scores if c == Cell("longer", 0) or c.arm == "deletion"]
    xs = [losses[cell] for cell in own]
    ys = [float(np.mean([one["score"] for one in scores[cell]])) for cell in own]
    # Two points have a line whatever they are, and scores all alike have none.
    if len(own) < 3 or np.ptp(xs) == 0 or np.ptp(ys) == 0:
        return
    line = pruning.accuracy_vs_pretrain_loss(xs, ys)
    findings.add("deletion", f"{task.name}: points a nat of loss", [line.slope])
    correlation = f"{task.name}: correlation with pretraining loss"
    findings.add("deletion", correlation, [line.correlation])


def _average(by_task: Sequence[Scores], findings: Findings) -> None:
    """The paper's AVG, unweighted, where one run has several tasks."""
    metric = "average: accuracy (%)"
    scores = {
        cell: [
            {
                key: float(np.mean([one[key] for one in seeds]))
                for key in ("score", "train loss")
            }
            for seeds in zip(*(of[cell] for of in by_task), strict=True)
        ]
        for cell in by_task[0]
    }
    for cell, seeds in scores.items():
        findings.add(cell.label, metric, [one["score"] for one in seeds])
    findings.shown.append(metric)
    _claims("average", "nats", scores, findings)
