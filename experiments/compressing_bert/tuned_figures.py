"""Figures of tuning: scores by sparsity and loss, movement of weights, masks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.compressing_bert import data
from experiments.compressing_bert.tuning import LATER, PARTS, UNPRUNED, Cell
from jaxemb.analysis import figures

# What an arm's line begins with: nothing removed, as many epochs.
_FIRST = {"deletion": "longer", "matched": "longer", "random": "pruned"}
Scores = Mapping[Cell, Sequence[dict]]


def save(
    task: data.Task, scores: Scores, losses: Mapping[Cell, float], folder: Path
) -> None:
    """All figures of a task."""
    _by_sparsity(task, scores, folder)
    _by_loss(task, scores, losses, folder)
    _movement(task, scores, folder)
    _masks(task, scores, folder)
    _when(task, scores, folder)


def lines(scores: Scores) -> dict[str, list[Cell]]:
    """The cells of every arm by sparsity, from nothing removed on."""
    arms: dict[str, list[Cell]] = {}
    for cell in scores:
        if cell.percent and cell.dense_epochs is None:
            arms.setdefault(cell.arm, []).append(cell)
    found = {}
    for arm, own in arms.items():
        first = Cell(_FIRST.get(arm, arm), 0)
        found[arm] = [*([first] if first in scores else []), *own]
    return found


def _by_sparsity(task: data.Task, scores: Scores, folder: Path) -> None:
    for key, about in (("score", task.metric), ("train loss", "training loss")):
        curves = {
            arm: figures.banded(
                [cell.percent for cell in own],
                [[one[key] for one in scores[cell]] for cell in own],
            )
            for arm, own in lines(scores).items()
        }
        if not curves:
            return
        figures.save(
            figures.curves(curves, about, x_label="sparsity (%)"),
            folder / f"{task.name}-{key.replace(' ', '-')}.svg",
            f"{about} by sparsity of the encoder, one line an arm; bands are 95 %.",
        )


def _by_loss(
    task: data.Task, scores: Scores, losses: Mapping[Cell, float], folder: Path
) -> None:
    curves = {
        arm: figures.Curve(
            [losses[cell] for cell in own],
            [float(np.mean([one["score"] for one in scores[cell]])) for cell in own],
        )
        for arm, own in lines(scores).items()
        if arm in ("pruned", "deletion", "random")
    }
    if not curves:
        return
    x_label = "loss of pretraining (nats)"
    figures.save(
        figures.curves(curves, task.metric, x_label=x_label, joined=False),
        folder / f"{task.name}-by-loss.svg",
        "Figure 2, left: the score over the loss of pretraining.",
    )


def _movement(task: data.Task, scores: Scores, folder: Path) -> None:
    dense = scores[UNPRUNED]
    where = (np.arange(PARTS) + 0.5) / PARTS * 100
    moved = {
        f"by rank {name}": figures.banded(
            where.tolist(), np.array([one[f"movement by {by}"] for one in dense]).T
        )
        for by, name in (("start", "before"), ("end", "after"))
    }
    title = f"{task.name}: movement of weights (%)"
    figures.save(
        figures.curves(moved, title, x_label="rank of |w| (%)"),
        folder / f"{task.name}-movement.svg",
        "Figure 6: how far tuning moves weights in the order of their size.",
    )
    epochs = np.array([[0.0, *one["movement by epoch"]] for one in dense]).T
    line = figures.banded(list(range(len(epochs))), epochs)
    figures.save(
        figures.curves({task.name: line}, title, x_label="epochs of tuning"),
        folder / f"{task.name}-movement-by-epoch.svg",
        "Figure 4: how far weights have moved in the order of their size, by epoch.",
    )


def _masks(task: data.Task, scores: Scores, folder: Path) -> None:
    for cell, seeds in scores.items():
        if "masks by matrix" not in seeds[0]:
            continue
        rows: dict[str, dict[str, float]] = {}
        for path in seeds[0]["masks by matrix"]:
            mean = float(np.mean([one["masks by matrix"][path] for one in seeds]))
            inside = path.removeprefix("encoder/").removesuffix("/kernel")
            block, _, kind = inside.removeprefix("blocks/layer_").partition("/")
            layer = block if block.isdigit() else ""
            kind = kind.replace("/", " ") if layer else "table of pieces"
            rows.setdefault(kind, {})[layer or "0"] = mean
        layers = sorted({layer for row in rows.values() for layer in row}, key=int)
        values = [[row.get(layer, np.nan) for layer in layers] for row in rows.values()]
        figures.save(
            figures.heat_map(
                np.array(values),
                list(rows),
                [str(int(layer) + 1) for layer in layers],
                f"{task.name}: places on which masks differ (%), {cell.percent} %",
                x_label="layer",
            ),
            folder / f"{task.name}-masks-{cell.percent}.svg",
            "Figure 3: masks chosen while pretraining beside those chosen at once "
            "after tuning, matrix by matrix.",
        )


def _when(task: data.Task, scores: Scores, folder: Path) -> None:
    own = [cell for cell in scores if cell.dense_epochs is not None]
    if len(own) < 2:
        return
    line = figures.banded(
        [cell.dense_epochs for cell in own],
        [[one["score"] for one in scores[cell]] for cell in own],
    )
    label = f"pruned to {LATER} %"
    figures.save(
        figures.curves(
            {label: line}, task.metric, x_label="epochs of tuning before pruning"
        ),
        folder / f"{task.name}-when.svg",
        "Whether it matters when one prunes: bands are 95 %.",
    )
