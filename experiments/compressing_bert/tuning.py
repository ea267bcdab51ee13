"""Classifiers tuned above pruned encoders, a file of scores for each."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import stats

from experiments.common.devices import mesh_for
from experiments.compressing_bert import data
from experiments.compressing_bert.config import PRUNED, Config
from experiments.compressing_bert.model import Arm, Pretrainer, flattened
from jaxemb import losses, nn, optim, pretrained, terminal, train
from jaxemb.analysis import pruning
from jaxemb.data import batching
from jaxemb.train import results

PARTS = 20  # of the order of weights, of which movement is told


@dataclasses.dataclass(frozen=True)
class Cell:
    """One way to tune one encoder."""

    arm: str
    """pruned, deletion, longer, downstream or random."""
    percent: int

    @property
    def label(self) -> str:
        """As rows call it."""
        return f"{self.arm} {self.percent} %"

    @property
    def encoder(self) -> Arm:
        """Of which pretrained encoder."""
        if self.arm == "downstream":
            return Arm("magnitude", 0)
        name = "random" if self.arm == "random" else "magnitude"
        return Arm(name, self.percent)


def cells(config: Config) -> list[Cell]:
    """All that a task is tuned for; the dense one first."""
    found = [Cell("pruned", percent) for percent in sorted(config.sparsities)]
    return found + [Cell(a, p) for a in config.arms for p in config.side_sparsities]


class Tuner:
    """Tunes the cells of one task."""

    def __init__(self, config: Config, world: data.World, task: data.Task):
        self._config, self._world, self.task = config, world, task
        self._module = nn.SequenceClassifier(max(1, task.classes), world.encoder.config)
        self._predict = train.everywhere(self._outputs)
        lengths = np.concatenate(
            [np.diff(part["ids"].offsets) for part in task.parts.values()]
        )
        self._buckets = batching.length_buckets(lengths, config.tuning.buckets)
        self._steps: dict[Any, Any] = {}

    def score(self, cell: Cell, seed: int, pretrainer: Pretrainer, folder: Path):
        """What a cell's file says, which is written unless it is there."""
        told = folder / self.task.name / cell.label.replace(" ", "") / f"{seed}.json"
        if told.exists():
            return json.loads(told.read_text())
        with results.recorded(told.parent):
            found = self._tuned(cell, seed, pretrainer)
        part = told.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.rename(told)
        terminal.say(
            f"{self.task.name} · {cell.label} · seed {seed}: {found['score']:.2f}, "
            f"training loss {found['train loss']:.3f}"
        )
        return found

    def _tuned(self, cell: Cell, seed: int, pretrainer: Pretrainer) -> dict:
        settings = self._config.tuning
        encoder = pretrainer.trained(cell.encoder).params["encoder"]
        start = self._start(encoder, seed)
        frees = cell.arm == "deletion" or (not cell.percent)
        more = cell.arm in ("deletion", "longer")
        if cell.arm == "downstream":
            dense = self._run(start, seed, settings.epochs, free=True)
            masks = optim.keep_masks(dense, cell.percent / 100, where=PRUNED)
            pruned = optim.delete_information(dense, masks)
            params = self._run(pruned, seed + 1000, settings.after, free=False)
            return self._told(params)
        epochs = settings.more_epochs if more else settings.epochs
        params = self._run(start, seed, epochs, free=frees)
        found = self._told(params)
        if not cell.percent:
            found |= self._moved(encoder, params["encoder"])
        return found

    def _start(self, encoder: Any, seed: int) -> Any:
        with_weights = dataclasses.replace(self._world.encoder, params=encoder)
        key = jax.random.key(seed)
        return pretrained.variables_above(with_weights, self._module, key)["params"]

    def _run(self, params: Any, seed: int, epochs: int, *, free: bool) -> Any:
        settings = self._config.tuning
        plan = batching.Shuffled(
            self.task.parts["train"],
            settings.batch_size,
            seed=seed,
            buckets=self._buckets,
        )
        steps = epochs * plan.steps_per_epoch
        tx, step = self._step(steps, free)
        state = step.place(
            train.State.create({"params": params}, tx, jax.random.key(seed))
        )
        for number in range(steps):
            state, metrics = step(state, plan(number))
        if not np.isfinite(float(metrics["loss"])):
            raise train.Diverged(f"{self.task.name}: the loss is no number")
        return state.params

    def _step(self, steps: int, free: bool):
        """Compiled once for all cells that differ in their masks only."""
        if (steps, free) not in self._steps:
            settings = self._config.tuning
            rate = optim.warmup_linear(settings.learning_rate, steps // 10, steps)
            tx = optax.chain(optax.clip_by_global_norm(1.0), optim.bert_adam(rate))
            tx = tx if free else optim.keep_zeros(tx, where=PRUNED)
            step = train.data_parallel(
                train.make_step(self._loss, tx),
                mesh_for(settings.batch_size),
                mode=self._config.run.parallel,
            )
            self._steps[steps, free] = tx, step
        return self._steps[steps, free]

    def _each(self, logits, labels):
        if self.task.classes:
            return losses.softmax_cross_entropy(logits, labels)
        return jnp.square(logits[:, 0] - labels)

    def _loss(self, variables, batch, key):
        inputs = batch["ids"], batch["mask"], batch["segments"]
        more = {"deterministic": False, "rngs": {"dropout": key}}
        logits = self._module.apply(variables, *inputs, **more)
        return self._each(logits, batch["labels"]).mean(), {}

    def _outputs(self, variables, batch):
        inputs = batch["ids"], batch["mask"], batch["segments"]
        logits = self._module.apply(variables, *inputs, deterministic=True)
        return logits, self._each(logits, batch["labels"])

    def _told(self, params: Any) -> dict:
        """The score of what was held out, and the loss of all training examples."""
        outputs = {}
        for part in ("train", "held out"):
            logits, each, labels = (
                np.concatenate(x) for x in zip(*self._passed(params, part), strict=True)
            )
            outputs[part] = logits, each, labels
        logits, _, labels = outputs["held out"]
        if self.task.classes:
            score = float(np.mean(logits.argmax(axis=1) == labels))
        else:
            score = float(stats.spearmanr(logits[:, 0], labels).statistic)
        # A constant answer has no rank correlation; it orders nothing.
        score = 0.0 if np.isnan(score) else score
        return {"score": 100 * score, "train loss": float(outputs["train"][1].mean())}

    def _passed(self, params: Any, part: str) -> Iterator[tuple[np.ndarray, ...]]:
        columns = self.task.parts[part]
        size = self._config.tuning.batch_size
        for batch in batching.in_order(columns, size, self._buckets):
            real = batch.pop("weight") > 0
            del batch["index"]
            logits, each = self._predict({"params": params}, batch)
            yield (
                np.asarray(logits)[real],
                np.asarray(each)[real],
                batch["labels"][real],
            )

    def _moved(self, before: Any, after: Any) -> dict:
        """How tuning moved the order of weights, and masks with it."""
        first, second = flattened(before), flattened(after)
        paths = optim.keep_masks(before, 0.0, where=PRUNED)
        # As the authors do, without the table of pieces: most of its rows never move.
        inner = [path for path in paths if "pieces" not in path]
        moved = [pruning.sort_order_movement(first[p], second[p]) for p in inner]
        every = np.concatenate(moved)
        found = {
            "movement": 100 * float(every.mean()),
            "movement sd": 100 * float(every.std()),
        }
        for by in ("start", "end"):
            parts = [
                pruning.movement_by_rank(first[p], second[p], PARTS, by) for p in inner
            ]
            found[f"movement by {by}"] = (100 * np.mean(parts, axis=0)).tolist()
        sizes = np.array([first[p].size for p in inner])
        for percent in (30, 60, 90):
            masks = [
                optim.keep_masks(tree, percent / 100, where=PRUNED)
                for tree in (before, after)
            ]
            shares = [
                pruning.mask_difference(*(np.asarray(m[p]) for m in masks))
                for p in inner
            ]
            found[f"mask difference {percent}"] = 100 * float(
                np.average(shares, weights=sizes)
            )
        return found
