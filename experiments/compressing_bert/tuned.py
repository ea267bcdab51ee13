"""From scores of tuning to rows, verdicts and figures."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from etils import epath

from experiments.common.findings import Findings
from experiments.compressing_bert import data
from experiments.compressing_bert.config import Config
from experiments.compressing_bert.model import Pretrainer
from experiments.compressing_bert.tuning import PARTS, Cell, Tuner, cells
from jaxemb.analysis import figures, pruning
from jaxemb.train import loop, results

FREE, MARGIN = (30, 40), 1.0  # sparsities said to be free; points that are let go
Scores = Mapping[Cell, Sequence[dict]]


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
    used, folders = [], []
    for name in config.tasks:
        tuner = Tuner(config, world, data.load_task(config, world, name))
        folder = workdir / "tuning"
        # Scores of other settings are not taken for these.
        loop.claim(
            epath.Path(folder / name),
            {
                "tuning": results.as_json(config.tuning),
                "pretraining": results.as_json(config.pretraining),
                "encoder": config.encoder,
            },
        )
        scores: dict[Cell, list[dict]] = {}
        for cell in cells(config):
            for seed in range(config.seeds):
                found = tuner.score(cell, seed, pretrainer, folder)
                scores.setdefault(cell, []).append(found)
            folders.append(folder / name / cell.label.replace(" ", ""))
        used.append(tuner.task.data)
        losses = {c: pretrainer.trained(c.encoder).loss for c in scores}
        _rows(tuner.task, scores, findings)
        _claims(tuner.task, scores, losses, findings)
        _figures(tuner.task, scores, losses, workdir / "figures")
    return Done(used, folders)


def _rows(task: data.Task, scores: Scores, findings: Findings) -> None:
    train_loss = f"{task.name}: training loss"
    for cell, seeds in scores.items():
        findings.add(cell.label, task.metric, [one["score"] for one in seeds])
        findings.add(cell.label, train_loss, [one["train loss"] for one in seeds])
    findings.shown += [task.metric, train_loss]
    dense = scores[Cell("pruned", 0)]
    for key in ("movement", "movement sd"):
        values = [one[key] for one in dense]
        findings.add("pruned 0 %", f"{task.name}: {key} of weights (%)", values)
    for percent in (30, 60, 90):
        values = [one[f"mask difference {percent}"] for one in dense]
        metric = f"{task.name}: mask difference at {percent} % (%)"
        findings.add("pruned 0 %", metric, values)


def _claims(
    task: data.Task,
    scores: Scores,
    losses: Mapping[Cell, float],
    findings: Findings,
) -> None:
    def of(arm: str, percent: int, key: str = "score") -> list[float] | None:
        found = scores.get(Cell(arm, percent))
        return None if found is None else [one[key] for one in found]

    def compare(claim, better, worse, *, margin=0.0, sign=1.0, names=None):
        first, second = of(*better), of(*worse)
        if first is None or second is None:
            return
        printed = ("average accuracy", *names) if names else None
        findings.beats(
            f"{claim}: {task.name}",
            [sign * x for x in first],
            [sign * x for x in second],
            margin=margin,
            printed=printed,
        )

    for percent in FREE:
        compare(
            f"{percent} % of the weights cost less than {MARGIN:g} point",
            ("pruned", percent),
            ("pruned", 0),
            margin=MARGIN,
            names=(f"pruned {percent} %", "pruned 0 %"),
        )
    for percent in (60, 90):
        compare(
            f"information deletion at {percent} % costs accuracy",
            ("pruned", 0),
            ("deletion", percent),
            names=("pruned 0 %", f"deletion {percent} %"),
        )
        compare(
            f"at {percent} % deletion alone is better than fewer weights",
            ("deletion", percent),
            ("pruned", percent),
            names=(f"deletion {percent} %", f"pruned {percent} %"),
        )
        compare(
            f"at {percent} %, epochs alike, fewer weights fit the training set worse",
            ("deletion", percent, "train loss"),
            ("longer", percent, "train loss"),
            sign=-1.0,
        )
        compare(
            f"pruning downstream at {percent} % is no better by {MARGIN:g} point",
            ("pruned", percent),
            ("downstream", percent),
            margin=MARGIN,
            names=(f"pruned {percent} %", f"downstream {percent} %"),
        )
    for percent in (30, 60, 90):
        compare(
            f"magnitude beats random pruning at {percent} %",
            ("pruned", percent),
            ("random", percent),
            names=(f"pruned {percent} %", f"random {percent} %"),
        )
    for percent in (30, 60, 90):
        chance = 200 * percent / 100 * (1 - percent / 100)
        limit = min(6.0, chance)
        found = of("pruned", 0, f"mask difference {percent}")
        if found is not None:
            findings.beats(
                f"tuning changes less than {limit:g} % of the mask at {percent} %: "
                f"{task.name}",
                [limit] * len(found),
                found,
            )
    lines = [cell for cell in scores if cell.arm in ("deletion", "pruned")]
    xs = [losses[cell] for cell in lines]
    ys = [float(np.mean([one["score"] for one in scores[cell]])) for cell in lines]
    if np.ptp(xs) == 0 or np.ptp(ys) == 0:
        return  # no line goes through scores that are all alike
    line = pruning.accuracy_vs_pretrain_loss(xs, ys)
    findings.add(
        "pruned and deletion", f"{task.name}: points a nat of loss", [line.slope]
    )
    findings.add(
        "pruned and deletion",
        f"{task.name}: correlation with pretraining loss",
        [line.correlation],
    )


def _figures(
    task: data.Task, scores: Scores, losses: Mapping[Cell, float], folder: Path
) -> None:
    dense = Cell("pruned", 0)
    arms: dict[str, list[Cell]] = {}
    for cell in scores:
        arms.setdefault(cell.arm, [dense] if cell.arm != "pruned" else []).append(cell)
    for key, about in (("score", task.metric), ("train loss", "training loss")):
        lines = {
            arm: figures.banded(
                [cell.percent for cell in own],
                [[one[key] for one in scores[cell]] for cell in own],
            )
            for arm, own in arms.items()
        }
        figures.save(
            figures.curves(lines, about, x_label="sparsity (%)"),
            folder / f"{task.name}-{key.replace(' ', '-')}.svg",
            f"{about} by sparsity of the encoder, one line an arm; bands are 95 %.",
        )
    lines = {
        arm: figures.Curve(
            [losses[cell] for cell in own],
            [float(np.mean([one["score"] for one in scores[cell]])) for cell in own],
        )
        for arm, own in arms.items()
        if arm in ("pruned", "deletion", "random")
    }
    figures.save(
        figures.curves(
            lines, task.metric, x_label="loss of pretraining (nats)", joined=False
        ),
        folder / f"{task.name}-by-loss.svg",
        "Figure 2, left: the score over the loss of pretraining.",
    )
    where = (np.arange(PARTS) + 0.5) / PARTS * 100
    moved = {
        f"by rank {name}": figures.banded(
            where.tolist(),
            np.array([one[f"movement by {by}"] for one in scores[dense]]).T,
        )
        for by, name in (("start", "before"), ("end", "after"))
    }
    figures.save(
        figures.curves(
            moved, f"{task.name}: movement of weights (%)", x_label="rank of |w| (%)"
        ),
        folder / f"{task.name}-movement.svg",
        "Figure 6: how far tuning moves weights in the order of their size.",
    )
