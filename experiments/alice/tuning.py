"""Tunes the systems of a task, chooses what the paper does not tell, measures."""

import dataclasses
import json
import statistics
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from experiments.alice.config import Config, System
from experiments.alice.data import Loaded
from experiments.alice.model import BALL, Classifier
from experiments.common.devices import mesh_for
from jaxemb import storage, terminal, train
from jaxemb.data import batching
from jaxemb.train import checkpoints, loop, parallel, results

DEV = "dev/score"
_TIMED = 5  # steps whose median is a system's time


class Setting(NamedTuple):
    """What is chosen by the examples that the first seed holds out."""

    batch_size: int
    learning_rate: float
    epsilon: float


class Measured(NamedTuple):
    """What a trained model scores, as JSON keeps it."""

    scores: dict[str, float]
    """Metric to value on the test part, in per cent."""
    dev: dict[str, float]
    """Likewise on what was held out, which chose the epoch."""
    attacked: dict[str, list[float]]
    """See `model.Attacked`."""
    line: list[float]
    ratios: dict[str, float]
    """Size of the changes that were trained against, relative to embeddings (%)."""
    epoch: float
    """At which the held-out score was best."""


class Tuner:
    """Tunes and measures the systems of one task with batches of one size."""

    def __init__(self, config: Config, loaded: Loaded, workdir: epath.Path):
        self._config, self._loaded = config, loaded
        self._workdir = workdir / loaded.task
        self.model = Classifier(config, loaded)
        self._steps: dict[str, parallel.DataParallel] = {}

    def folder(self, system: System, seed: int, of: str = "") -> epath.Path:
        """Where a system is trained."""
        return self._workdir / f"{system}{of}" / f"seed-{seed}"

    def measured(
        self, system: System, seed: int, setting: Setting, of: str = ""
    ) -> Measured:
        """Trains a system, or finds it measured.

        Args:
          system: which.
          seed: of its examples, their order, its head and dropout.
          setting: what was chosen.
          of: what sets its folder apart from that of the same system.
        """
        folder = self.folder(system, seed, of)
        kept = folder / "measured.json"
        loop.claim(folder, self._deciding(system, seed, setting))
        if not kept.exists():
            with results.recorded(folder):
                found = self._measure(system, seed, setting, folder)
            storage.write_text(kept, json.dumps(found._asdict()) + "\n")
            _forget_weights(folder)
        found = Measured(**json.loads(kept.read_text()))
        told = ", ".join(f"{n} {v:.2f}" for n, v in list(found.scores.items())[:2])
        terminal.say(f"{self._loaded.task} · {system}{of} · seed {seed}: {told}")
        return found

    def choice_folder(self, system: System, setting: Setting) -> epath.Path:
        """Where a run is that only helps to choose."""
        name = "-".join(f"{value:g}" for value in setting)
        return self._workdir / "choice" / f"{system}-{name}"

    def dev_score(self, system: System, setting: Setting) -> float:
        """The best score of what the first seed holds out; nothing is tested."""
        folder = self.choice_folder(system, setting)
        kept = folder / "score.json"
        examples = self._config.grid.examples
        deciding = {
            **self._deciding(system, 0, setting),
            "examples chosen by": examples,
        }
        loop.claim(folder, deciding)
        if not kept.exists():
            with results.recorded(folder):
                self._fit(system, 0, setting, folder, deciding, examples)
            score = float(train.best_evaluation(folder, DEV)[DEV])
            storage.write_text(kept, json.dumps(score) + "\n")
            _forget_weights(folder)
        return float(json.loads(kept.read_text()))

    def step_seconds(self, system: System, setting: Setting) -> float:
        """The median time of a training step on the task's longest texts."""
        folder = self._workdir / "step-time" / system
        kept = folder / "seconds.json"
        loop.claim(folder, self._deciding(system, 0, setting))
        if not kept.exists():
            plan, num_steps = self._plan(0, None)
            lengths = [
                c.lengths for n, c in plan.columns.items() if n.startswith("ids")
            ]
            longest = np.argsort(-np.max(lengths, axis=0), kind="stable")
            rows = np.resize(longest, self._config.batch_size)
            columns = batching.take(plan.columns, rows)
            size = self._config.batch_size
            fed = next(batching.in_order(columns, size, self._loaded.buckets))
            state, step = self._start(system, 0, setting, num_steps)
            state, times = step.place(state), []
            for _ in range(_TIMED + 1):
                started = time.perf_counter()
                state, metrics = step(state, self.model.batch(fed))
                jax.block_until_ready(metrics)
                times.append(time.perf_counter() - started)
            storage.write_text(kept, json.dumps(statistics.median(times[1:])) + "\n")
        return float(json.loads(kept.read_text()))

    def _plan(self, seed: int, examples: int | None):
        """The batches of a seed, and how many of them: as many for every seed."""
        config = self._config
        fewer = config if examples is None else _with_examples(config, examples)
        training, _ = self._loaded.split(fewer, seed)
        plan = batching.Shuffled(
            training.columns, config.batch_size, seed=seed, buckets=self._loaded.buckets
        )
        # Whole questions are drawn, so that seeds differ by a few candidates.
        asked = fewer.examples or plan.num_examples
        in_epoch = -(-min(asked, len(self._loaded.pool.examples)) // config.batch_size)
        return plan, config.epochs * in_epoch

    def _start(self, system: System, seed: int, setting: Setting, num_steps: int):
        """The first state, and the step, compiled once for all runs of a system."""
        config, pool = self._config, len(self._loaded.pool.examples)
        room = config.epochs * -(
            -min(config.examples or pool, pool) // config.batch_size
        )
        tx = self.model.optimizer(system, setting.learning_rate, num_steps, room)
        if system not in self._steps:
            mesh = mesh_for(config.batch_size)
            step = self.model.step(system, tx)
            self._steps[system] = train.data_parallel(
                step, mesh, mode=config.run.parallel
            )
        variables = self.model.variables(seed)
        variables[BALL] = {"epsilon": jnp.asarray(setting.epsilon, jnp.float32)}
        state = train.State.create(variables, tx, jax.random.key(seed + 1000))
        return state, self._steps[system]

    def _fit(
        self,
        system: System,
        seed: int,
        setting: Setting,
        folder: epath.Path,
        deciding: dict[str, Any],
        examples: int | None = None,
    ) -> int:
        """Trains, and returns the steps of an epoch."""
        config = self._config
        plan, num_steps = self._plan(seed, examples)
        _, dev = self._loaded.split(config, seed)
        state, step = self._start(system, seed, setting, num_steps)

        def evaluate(state: train.State) -> dict[str, float]:
            scores = self.model.scores({"params": state.params}, dev)
            return {DEV: scores[self.model.chosen_by]}

        in_epoch = num_steps // config.epochs
        train.fit(
            state,
            step,
            lambda number: self.model.batch(plan(number)),
            num_steps,
            folder,
            evaluate=evaluate,
            evaluate_every=-(-in_epoch // config.evaluations),
            keep_best=DEV,
            keep=1,
            log_every=10,
            config=deciding,
            name=f"{self._loaded.task} {system} {seed}",
            tensorboard=config.run.tensorboard,
            progress=config.run.progress,
        )
        return in_epoch

    def _measure(
        self, system: System, seed: int, setting: Setting, folder: epath.Path
    ) -> Measured:
        deciding = self._deciding(system, seed, setting)
        in_epoch = self._fit(system, seed, setting, folder, deciding)
        best = train.best_evaluation(folder, DEV)
        saved = train.load_params(folder / checkpoints.BEST)
        variables = {"params": jax.tree.map(jnp.asarray, saved["params"])}
        attacked = self.model.robustness(variables, setting.epsilon)
        _, dev = self._loaded.split(self._config, seed)
        lines = train.read_metrics(folder)
        ratios = {}
        for name in ("labelled_ratio", "virtual_ratio"):
            seen = [x[f"train/{name}"] for x in lines if f"train/{name}" in x]
            if seen:
                ratios[name] = 100 * float(np.mean(seen))
        return Measured(
            scores=self.model.scores(variables, self._loaded.test),
            dev=self.model.scores(variables, dev),
            attacked=attacked.scores,
            line=attacked.line,
            ratios=ratios,
            epoch=best["step"] / in_epoch,
        )

    def _deciding(self, system: System, seed: int, setting: Setting) -> dict[str, Any]:
        """What a run depends on; more systems and seeds leave it as it is."""
        kept = results.as_json(self._config)
        for name in ("run", "preset", "tasks", "systems", "seeds", "grid", "sweep"):
            kept.pop(name)
        kept["data"] = [one.sha256 for one in self._loaded.data]
        return {"system": system, "seed": seed, **kept, **setting._asdict()}


class Chosen(NamedTuple):
    """What the grid has led to."""

    tuner: Tuner
    setting: Setting
    scores: dict[str, float]
    """What was tried, and its held-out score, in the order of trial."""
    folders: list[epath.Path]


def choose(config: Config, loaded: Loaded, workdir: epath.Path) -> Chosen:
    """Batch and rate by the plain system, then the radius by ALICE; see `Grid`."""
    grid, own = config.grid, config.perturbation.epsilon
    tried: dict[str, float] = {}
    folders: list[epath.Path] = []
    tuners = {
        size: Tuner(dataclasses.replace(config, batch_size=size), loaded, workdir)
        for size in grid.batch_sizes or (config.batch_size,)
    }
    settings = [
        Setting(size, rate, own)
        for size in tuners
        for rate in grid.learning_rates or (config.learning_rate,)
    ]

    def best(system: System, settings: list[Setting]) -> Setting:
        if len(settings) == 1:
            return settings[0]
        scores = []
        for one in settings:
            scores.append(tuners[one.batch_size].dev_score(system, one))
            folders.append(tuners[one.batch_size].choice_folder(system, one))
            name = f"{system}, {one.batch_size} at {one.learning_rate:g}"
            name += f", ε = {one.epsilon:g}" if system != "plain" else ""
            tried[name] = scores[-1]
            terminal.say(f"{loaded.task} · choosing · {name}: {scores[-1]:.2f}")
        return settings[int(np.argmax(scores))]

    found = best("plain", settings)
    radii = grid.epsilons or (own,)
    found = best("ALICE", [found._replace(epsilon=radius) for radius in radii])
    return Chosen(tuners[found.batch_size], found, tried, folders)


def _with_examples(config: Config, examples: int) -> Config:
    most = config.examples
    return dataclasses.replace(
        config, examples=examples if most is None else min(examples, most)
    )


def _forget_weights(folder: epath.Path) -> None:
    """Leaves scores and metrics: the rest is hundreds of megabytes a run."""
    for name in (checkpoints.FOLDER, checkpoints.BEST):
        (folder / name).rmtree(missing_ok=True)
