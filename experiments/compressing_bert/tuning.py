"""Classifiers tuned above pruned encoders, a file of scores for each."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import stats

from experiments.common.devices import mesh_for
from experiments.compressing_bert import data
from experiments.compressing_bert.config import PRUNED, Config, Tuning
from experiments.compressing_bert.model import (
    DENSE,
    Pretrainer,
    Removal,
    read_params,
    write_params,
)
from experiments.compressing_bert.published import label
from jaxemb import losses, nn, optim, pretrained, terminal, train
from jaxemb.analysis import pruning
from jaxemb.data import batching, files
from jaxemb.optim import masks as masks_lib
from jaxemb.train import results

PARTS = 20  # of the order of weights, of which movement is told
MASKED = (30, 60, 90)  # per cent, of which masks before and after tuning are compared
LATER = 60  # per cent removed after several numbers of dense epochs
DENSE_RUNS = "dense"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One way to tune one encoder."""

    arm: str
    """pruned, deletion, longer, matched, downstream or random."""
    percent: int
    dense_epochs: int | None = None
    """Before pruning downstream, where it is not what the settings say."""

    @property
    def label(self) -> str:
        """As rows call it."""
        later = self.dense_epochs
        after = "" if later is None else f", after {later} epochs"
        return label(self.arm, self.percent) + after

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return self.label.replace(" ", "").replace(",", "-")

    @property
    def encoder(self) -> Removal:
        """Of which pretrained encoder."""
        if self.arm == "downstream":
            return DENSE
        return Removal("random" if self.arm == "random" else "magnitude", self.percent)

    def epochs(self, settings: Tuning) -> int:
        """How long it is tuned; downstream, after it was pruned."""
        if self.arm == "downstream":
            return settings.after_sparse if self.percent >= 80 else settings.after
        if self.arm in ("deletion", "longer", "matched"):
            sparse = self.percent >= 70
            return settings.more_epochs_sparse if sparse else settings.more_epochs
        return settings.epochs


UNPRUNED = Cell("pruned", 0)


def cells(config: Config) -> list[Cell]:
    """All that a task is tuned for; the dense one first, baselines before the rest."""
    found = [Cell("pruned", percent) for percent in sorted(config.sparsities)]
    # With as many epochs as those that are compared with it, and nothing removed.
    if {"deletion", "longer"} & {*config.arms}:
        found.append(Cell("longer", 0))
    if "downstream" in config.arms:
        found.append(Cell("downstream", 0))
    for arm in config.arms:
        random = arm == "random"
        percents = config.random_sparsities if random else config.side_sparsities
        found += [Cell(arm, percent) for percent in sorted(percents)]
    return found + [Cell("downstream", LATER, e) for e in sorted(config.dense_epochs)]


class LineState(NamedTuple):
    """State of `scaled_by_line`."""

    count: Any  # int32 scalar: updates so far
    peak: Any  # float32 scalar
    warmup: Any  # int32 scalar: updates
    steps: Any  # likewise


def scaled_by_line(peak: float, steps: int) -> optax.GradientTransformation:
    """Scales updates by `optim.warmup_linear`, whose numbers are in the state.

    So that one compiled step serves runs of any length and rate.
    """

    def init_fn(params):
        del params
        whole = [jnp.asarray(n, jnp.int32) for n in (0, steps // 10, steps)]
        return LineState(whole[0], jnp.asarray(peak, jnp.float32), *whole[1:])

    def update_fn(updates, state, params=None):
        del params
        rising = state.count / jnp.maximum(state.warmup, 1)
        falling = (state.steps - state.count) / (state.steps - state.warmup)
        share = jnp.where(state.count < state.warmup, rising, falling)
        rate = state.peak * jnp.clip(share, 0.0, 1.0)
        scaled = jax.tree.map(lambda update: rate * update, updates)
        return scaled, state._replace(count=state.count + 1)

    return optax.GradientTransformation(init_fn, update_fn)


class Tuner:
    """Tunes the cells of one task."""

    def __init__(
        self,
        config: Config,
        world: data.World,
        task: data.Task,
        pretrainer: Pretrainer,
        folder: Path,
    ):
        self._config, self._world, self.task = config, world, task
        self._pretrainer, self.folder = pretrainer, folder / task.name
        self._module = nn.SequenceClassifier(max(1, task.classes), world.encoder.config)
        self._predict = train.everywhere(self._outputs)
        lengths = np.concatenate(
            [np.diff(part["ids"].offsets) for part in task.parts.values()]
        )
        self._buckets = batching.length_buckets(lengths, config.tuning.buckets)
        self._steps: dict[bool, Any] = {}

    def score(self, cell: Cell, seed: int, rate: float) -> dict:
        """What a cell's file says, which is written unless it is there."""
        told = self.folder / cell.folder / f"{seed}-{rate:g}.json"
        if told.exists():
            return json.loads(told.read_text())
        with results.recorded(told.parent):
            found = self.tuned(cell, seed, rate)[1]
        with files.write_atomically(told) as part:
            part.write_text(json.dumps(found))
        terminal.say(
            f"{self.task.name} · {cell.label} · seed {seed}: {found['score']:.2f}, "
            f"training loss {found['train loss']:.3f}"
        )
        return found

    def tuned(self, cell: Cell, seed: int, rate: float) -> tuple[Any, dict]:
        """Tunes a cell: its parameters, and what is told of them."""
        if cell == UNPRUNED:
            return self._unpruned(seed, rate)
        if cell.arm == "downstream":
            return self._downstream(cell, seed, rate)
        start = self.start(cell, seed)
        free = cell.arm in ("deletion", "matched") or not cell.percent
        most, stop = cell.epochs(self._config.tuning), None
        if cell.arm == "matched":
            wanted = self.score(UNPRUNED, seed, rate)["train loss"]
            stop = lambda params: self._train_loss(params) <= wanted  # noqa: E731
        params, epochs = self._run(start, seed, rate, most, free=free, each_epoch=stop)
        found = self._told(params)
        if cell.arm == "matched":
            found |= {"epochs": epochs, "matched": found["train loss"] <= wanted}
        return params, found

    def start(self, cell: Cell, seed: int) -> Any:
        """The parameters that a cell begins with; the head is new."""
        encoder = self._pretrainer.trained(cell.encoder).params["encoder"]
        with_weights = dataclasses.replace(self._world.encoder, params=encoder)
        key = jax.random.key(seed)
        return pretrained.variables_above(with_weights, self._module, key)["params"]

    def _unpruned(self, seed: int, rate: float) -> tuple[Any, dict]:
        start, by_epoch = self.start(UNPRUNED, seed), []

        def moved(params: Any) -> None:
            by_epoch.append(_movement(start["encoder"], params["encoder"]))

        epochs = self._config.tuning.epochs
        params, _ = self._run(start, seed, rate, epochs, free=True, each_epoch=moved)
        if "downstream" in self._config.arms:
            write_params(self._dense_file(seed, rate), params)
        found = self._told(params) | {"movement by epoch": by_epoch}
        return params, found | _moved(start["encoder"], params["encoder"])

    def _downstream(self, cell: Cell, seed: int, rate: float) -> tuple[Any, dict]:
        settings = self._config.tuning
        before = settings.epochs if cell.dense_epochs is None else cell.dense_epochs
        kept = self._dense_file(seed, rate)
        if before == settings.epochs and kept.exists():
            params = jax.tree.map(jnp.asarray, read_params(kept))
        else:
            params = self.start(cell, seed)
            if before:
                params, _ = self._run(params, seed, rate, before, free=True)
            if before == settings.epochs:
                write_params(kept, params)
        masks = {}
        if cell.percent:
            masks = optim.keep_masks(params, cell.percent / 100, where=PRUNED)
            params = optim.delete_information(params, masks)
        params, _ = self._run(
            params, seed + 1000, rate, cell.epochs(settings), free=not cell.percent
        )
        found = self._told(params)
        if cell.percent and cell.dense_epochs is None:
            other = self._pretrainer.trained(Removal("magnitude", cell.percent)).masks
            found["masks by matrix"] = {
                path: 100 * pruning.mask_difference(np.asarray(mask), other[path])
                for path, mask in masks.items()
            }
        return params, found

    def _dense_file(self, seed: int, rate: float) -> Path:
        """Of the parameters tuned dense, from which all pruned downstream go on."""
        return self.folder / DENSE_RUNS / f"{seed}-{rate:g}.safetensors"

    def _run(
        self,
        params: Any,
        seed: int,
        rate: float,
        epochs: int,
        *,
        free: bool,
        each_epoch: Callable[[Any], bool | None] | None = None,
    ) -> tuple[Any, int]:
        """Trains until `each_epoch` says that it is enough, and counts the epochs."""
        settings = self._config.tuning
        plan = batching.Shuffled(
            self.task.parts["train"],
            settings.batch_size,
            seed=seed,
            buckets=self._buckets,
        )
        whole = plan.steps_per_epoch
        tx, step = _optimiser(rate, epochs * whole, free), self._step(free)
        state = step.place(
            train.State.create({"params": params}, tx, jax.random.key(seed))
        )
        for epoch in range(1, epochs + 1):
            for number in range((epoch - 1) * whole, epoch * whole):
                state, metrics = step(state, plan(number))
            if not np.isfinite(float(metrics["loss"])):
                raise train.Diverged(f"{self.task.name}: the loss is no number")
            if each_epoch is not None and each_epoch(state.params):
                break
        return state.params, epoch

    def _step(self, free: bool):
        """Compiled once for all cells: masks, rate and length are in the state."""
        if free not in self._steps:
            self._steps[free] = train.data_parallel(
                train.make_step(self._loss, _optimiser(0.0, 1, free)),
                mesh_for(self._config.tuning.batch_size),
                mode=self._config.run.parallel,
            )
        return self._steps[free]

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
        logits, _, labels = self._passed(params, "held out")
        if self.task.classes:
            score = float(np.mean(logits.argmax(axis=1) == labels))
        else:
            score = float(stats.spearmanr(logits[:, 0], labels).statistic)
        # A constant answer has no rank correlation; it orders nothing.
        score = 0.0 if np.isnan(score) else score
        return {"score": 100 * score, "train loss": self._train_loss(params)}

    def _train_loss(self, params: Any) -> float:
        """Of all examples trained on, without dropout."""
        return float(self._passed(params, "train")[1].mean())

    def _passed(self, params: Any, part: str) -> tuple[np.ndarray, ...]:
        """Logits, losses and labels of all examples."""
        batches = zip(*self._batches(params, part), strict=True)
        logits, each, labels = (np.concatenate(values) for values in batches)
        return logits, each, labels

    def _batches(self, params: Any, part: str) -> Iterator[tuple[np.ndarray, ...]]:
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


def _optimiser(rate: float, steps: int, free: bool) -> optax.GradientTransformation:
    """Free, or with zeros kept at 0."""
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optim.bert_adam(1.0),
        scaled_by_line(rate, steps),
    )
    return tx if free else optim.keep_zeros(tx, where=PRUNED)


def _inner(params: Any) -> dict[str, np.ndarray]:
    """The matrices whose order is looked at.

    As the authors do, without the table of pieces: most of its rows never move.
    """
    return {
        path: np.asarray(value)
        for path, value in masks_lib.selected(params, PRUNED).items()
        if "pieces" not in path
    }


def _movement(before: Any, after: Any) -> float:
    """How far tuning moved weights in the order of |w|, per cent of all places."""
    first, second = _inner(before), _inner(after)
    moved = [pruning.sort_order_movement(first[p], second[p]) for p in first]
    return 100 * float(np.concatenate(moved).mean())


def _moved(before: Any, after: Any) -> dict:
    """How tuning moved the order of weights, and masks with it."""
    first, second = _inner(before), _inner(after)
    every = np.concatenate(
        [pruning.sort_order_movement(first[p], second[p]) for p in first]
    )
    found = {
        "movement": 100 * float(every.mean()),
        "movement sd": 100 * float(every.std()),
    }
    for by in ("start", "end"):
        parts = [
            pruning.movement_by_rank(first[p], second[p], PARTS, by) for p in first
        ]
        found[f"movement by {by}"] = (100 * np.mean(parts, axis=0)).tolist()
    sizes = np.array([value.size for value in first.values()])
    for percent in MASKED:
        masks = [
            optim.keep_masks(tree, percent / 100, where=PRUNED)
            for tree in (before, after)
        ]
        shares = [
            pruning.mask_difference(*(np.asarray(m[p]) for m in masks)) for p in first
        ]
        found[f"mask difference {percent}"] = 100 * float(
            np.average(shares, weights=sizes)
        )
    return found
