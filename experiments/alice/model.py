"""A head above an encoder, what it is tuned by, and what is measured of it."""

import dataclasses
import json
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from etils import epath

from experiments.alice.config import Config, System
from experiments.alice.data import Loaded, Part
from experiments.common.devices import mesh_for
from jaxemb import losses, nn, optim, perturb, pretrained, storage, terminal, train
from jaxemb.data import batching
from jaxemb.eval import questions
from jaxemb.train import checkpoints, results

DEV = "dev/score"


class Measured(NamedTuple):
    """What a trained model scores, as JSON keeps it."""

    scores: dict[str, float]
    """Metric to value, in per cent."""
    attacked: dict[str, list[float]]
    """`accuracy` (%), `loss`, `divergence` and `ratio` (%), one a radius."""
    line: list[float]
    """The mean loss at the points of a line through the embeddings."""
    ratios: dict[str, float]
    """Size of the changes that were trained against, relative to embeddings (%)."""
    epoch: int


LINE = tuple(float(t) for t in np.linspace(-2, 2, 9))
"""Points of that line, in radii of the largest attack."""


def objective_of(config: Config, system: System) -> perturb.Objective:
    """The objective of a system."""
    own = config.perturbation
    ascent = perturb.Ascent(
        steps=own.steps,
        epsilon=own.epsilon,
        eta=own.eta,
        sigma=own.sigma,
        norm=own.norm,
        projection=own.projection,
    )
    name, _, bregman = system.partition("+")
    proximal = own.proximal if bregman else 0.0
    made = {
        "plain": perturb.plain(),
        "ADV": perturb.adv(ascent),
        "SMART": perturb.smart(ascent, alpha=own.alpha, proximal=proximal),
        "ALICE": perturb.alice(
            ascent, alpha=own.alpha, clean=own.clean, proximal=proximal
        ),
    }[name]
    return dataclasses.replace(made, same_dropout=own.same_dropout)


class Tuner:
    """Tunes and measures the systems of one task."""

    def __init__(self, config: Config, loaded: Loaded, workdir: epath.Path):
        self._config, self._loaded, self._workdir = config, loaded, workdir
        shape, dropout = loaded.encoder.config, config.head_dropout
        self.module = (
            nn.MultipleChoice(shape, dropout)
            if loaded.options
            else nn.SequenceClassifier(2, shape, dropout)
        )
        self._steps: dict[tuple[str, int], Any] = {}
        self._logits = train.everywhere(self._clean)
        self._attack = jax.jit(self._attacked, static_argnums=0)
        self._line = jax.jit(self._on_a_line)

    @property
    def chosen_by(self) -> str:
        """The score of what is held out that chooses the epoch.

        Of pairs F1: exact match is high where everything is denied.
        """
        return "accuracy (%)" if self._loaded.options else "F1 (%)"

    def folder(self, system: System, seed: int) -> epath.Path:
        """Where a system is trained."""
        return self._workdir / self._loaded.task / system / f"seed-{seed}"

    def batch(self, batch: batching.Batch) -> batching.Batch:
        """Options side by side, (batch, options, length); pairs are (batch, length)."""
        names = ("ids", "mask", "segments")
        if not self._loaded.options:
            made = {name: batch[f"{name}_0"] for name in names}
        else:
            places = range(self._loaded.options)
            made = {n: np.stack([batch[f"{n}_{i}"] for i in places], 1) for n in names}
        if not self._loaded.encoder.config.segments:
            del made["segments"]
        return {**made, "labels": batch["labels"]}

    def embed(self, variables: Any, batch: Any) -> jax.Array:
        """The pieces' embeddings."""
        return self.module.apply(_of(variables), batch["ids"], method="embed")

    def logits_of(self, variables: Any, batch: Any, deterministic: bool = True):
        """The model from its embeddings on."""

        def logits(embeddings, key):
            return self.module.apply(
                _of(variables),
                embeddings,
                batch["mask"],
                batch.get("segments"),
                deterministic=deterministic,
                rngs={"dropout": key},
                method="logits",
            )

        return logits

    def loss(self, objective: perturb.Objective):
        """The loss of a step, as `train.make_step` takes it."""

        def loss(variables, batch, key):
            def loss_of(logits):
                return losses.softmax_cross_entropy(logits, batch["labels"])

            def reference(key):
                averaged = {"params": variables["averaged"]}
                embeddings = self.embed(averaged, batch)
                return self.logits_of(averaged, batch, False)(embeddings, key)

            return perturb.perturbed_loss(
                objective,
                self.logits_of(variables, batch, False),
                loss_of,
                self.embed(variables, batch),
                batch["mask"],
                key,
                reference=reference if "averaged" in variables else None,
            )

        return loss

    def step(self, system: System, num_steps: int):
        """The optimiser of a system and its step."""
        config = self._config
        objective = objective_of(config, system)
        warm_up = min(math.ceil(config.warm_up * num_steps), num_steps - 1)
        parts = [
            optax.clip_by_global_norm(config.clip_norm),
            optax.adam(optim.warmup_linear(config.learning_rate, warm_up, num_steps)),
        ]
        if objective.proximal:
            decay = config.perturbation.decay
            parts.append(optim.parameter_ema(decay, debias=False))
        tx = optax.chain(*parts)
        plain = train.make_step(self.loss(objective), tx)
        if not objective.proximal:
            return tx, plain

        def step(state, batch):
            averaged = {"averaged": optim.ema_params(state.opt_state)}
            seen = dataclasses.replace(state, frozen={**state.frozen, **averaged})
            new, metrics = plain(seen, batch)
            return dataclasses.replace(new, frozen=state.frozen), metrics

        return tx, step

    def _compiled(self, system: System, num_steps: int):
        """The same, compiled once for all seeds."""
        if (system, num_steps) not in self._steps:
            tx, step = self.step(system, num_steps)
            mesh = mesh_for(self._config.batch_size)
            self._steps[system, num_steps] = tx, train.data_parallel(step, mesh)
        return self._steps[system, num_steps]

    def variables(self, seed: int) -> dict[str, Any]:
        """The pretrained weights below a head drawn from N(0, 0.02)."""
        shape = (1, 2, 2) if self._loaded.options else (1, 2)
        key, head_key = jax.random.split(jax.random.key(seed))
        made = pretrained.variables_above(self._loaded.encoder, self.module, key, shape)
        head = made["params"]["text"] if self._loaded.options else made["params"]
        kernel = head["output"]["kernel"]
        head["output"]["kernel"] = 0.02 * jax.random.normal(head_key, kernel.shape)
        return made

    def measured(self, system: System, seed: int) -> Measured:
        """Trains a system, or finds it measured."""
        folder = self.folder(system, seed)
        kept = folder / "measured.json"
        if not kept.exists():
            with results.recorded(folder):
                found = self._fit(system, seed, folder)
            storage.write_text(kept, json.dumps(found._asdict()) + "\n")
            for name in (checkpoints.FOLDER, checkpoints.BEST):
                (folder / name).rmtree(missing_ok=True)  # hundreds of megabytes a run
        found = Measured(**json.loads(kept.read_text()))
        told = ", ".join(f"{n} {v:.2f}" for n, v in list(found.scores.items())[:2])
        terminal.say(f"{self._loaded.task} · {system} · seed {seed}: {told}")
        return found

    def _fit(self, system: System, seed: int, folder: epath.Path) -> Measured:
        config = self._config
        training, dev = self._loaded.split(config, seed)
        plan = batching.Shuffled(
            training.columns, config.batch_size, seed=seed, buckets=self._loaded.buckets
        )
        num_steps = config.epochs * plan.steps_per_epoch
        tx, step = self._compiled(system, num_steps)

        def evaluate(state: train.State) -> dict[str, float]:
            return {DEV: self.scores(state.variables, dev)[self.chosen_by]}

        key = jax.random.key(seed + 1000)
        train.fit(
            train.State.create(self.variables(seed), tx, key),
            step,
            lambda number: self.batch(plan(number)),
            num_steps,
            folder,
            evaluate=evaluate,
            evaluate_every=plan.steps_per_epoch,
            keep_best=DEV,
            keep=1,
            log_every=10,
            config={"system": system, "seed": seed, **_deciding(config)},
            name=f"{self._loaded.task} {system} {seed}",
            tensorboard=config.run.tensorboard,
            progress=config.run.progress,
        )
        best = train.best_evaluation(folder, DEV)
        saved = train.load_params(folder / checkpoints.BEST)
        variables = {"params": jax.tree.map(jnp.asarray, saved["params"])}
        attacked, line = self.robustness(variables)
        lines = train.read_metrics(folder)
        return Measured(
            scores=self.scores(variables, self._loaded.test),
            attacked=attacked,
            line=line,
            ratios={
                name: 100 * float(np.mean(values))
                for name in ("labelled_ratio", "virtual_ratio")
                if (
                    values := [
                        x[f"train/{name}"] for x in lines if f"train/{name}" in x
                    ]
                )
            },
            epoch=best["step"] // plan.steps_per_epoch,
        )

    def predictions(self, variables: Any, part: Part) -> np.ndarray:
        """The class of the highest logit, example by example."""
        found = np.zeros(len(part.examples), np.int64)
        size = 2 * self._config.batch_size
        for batch in batching.in_order(part.columns, size, self._loaded.buckets):
            logits = np.asarray(self._logits(variables, self.batch(batch)))
            found[batch["index"]] = logits.argmax(-1)  # those that fill up come again
        return found

    def scores(self, variables: Any, part: Part) -> dict[str, float]:
        """Exact match and F1 of pairs, accuracy of choices, and of every kind; in %."""
        found = self.predictions(variables, part)
        labels = np.asarray(part.columns["labels"])
        if self._loaded.options:
            kinds = [example.kind for example in part.examples]
            return _percent(_named(questions.grouped_accuracy(found == labels, kinds)))
        groups = [example.group for example in part.examples]
        whole = questions.mctaco_em_f1(found, labels, groups)
        kind_of = dict(zip(groups, (e.kind for e in part.examples), strict=True))
        by_kind = questions.grouped_accuracy(
            whole.values["exact"] > 0, [kind_of[group] for group in whole.questions]
        )
        accuracy = float(np.mean(found == labels))
        scores = {"exact match (%)": whole.exact, "F1 (%)": whole.f1}
        kinds = {k: v for k, v in by_kind.items() if k not in ("all", "planted")}
        kinds = {f"exact match, {k.lower()} (%)": v for k, v in kinds.items()}
        return _percent({**scores, "candidates right (%)": accuracy, **kinds})

    def robustness(self, variables: Any) -> tuple[dict[str, list[float]], list[float]]:
        """Test examples under attack at every radius, and on a line."""
        settings = self._config.robustness
        count = min(settings.examples, len(self._loaded.test.examples))
        part = self._loaded.test.take(np.arange(count))
        size = min(2 * self._config.batch_size, count)
        names = "accuracy", "loss", "divergence", "ratio"
        totals = np.zeros((len(names), len(settings.radii)))
        line = np.zeros(len(LINE))
        for batch in batching.in_order(part.columns, size, self._loaded.buckets):
            fed, real = self.batch(batch), batch["weight"]
            for place, radius in enumerate(settings.radii):
                found = self._attack(settings.steps, variables, fed, radius)
                each = found.right, found.loss, found.divergence, found.ratio
                totals[:, place] += [float(np.sum(np.asarray(x) * real)) for x in each]
            line += np.asarray(self._line(variables, fed, max(settings.radii))) @ real
        means = totals / count
        means[[0, 3]] *= 100
        attacked = {
            n: [float(x) for x in row] for n, row in zip(names, means, strict=True)
        }
        return attacked, [float(x) for x in line / count]

    def _clean(self, variables, batch):
        embeddings = self.embed(variables, batch)
        return self.logits_of(variables, batch)(embeddings, jax.random.key(0))

    def _attacked(self, steps, variables, batch, radius):
        # Steps that together cross the ball, from a random point near its centre.
        ascent = perturb.Ascent(steps=steps, epsilon=1.0, eta=1.5 / steps, sigma=0.1)
        return perturb.attack(
            self.logits_of(variables, batch),
            batch["labels"],
            self.embed(variables, batch),
            batch["mask"],
            jax.random.key(0),
            radius,
            ascent,
        )

    def _on_a_line(self, variables, batch, radius):
        """The loss of every example at the points of a line up its slope."""
        logits_of, key = self.logits_of(variables, batch), jax.random.key(0)
        embeddings = self.embed(variables, batch)

        def loss(x):
            return losses.softmax_cross_entropy(logits_of(x, key), batch["labels"])

        ascent = perturb.Ascent(epsilon=radius, eta=radius, sigma=0.0)
        direction = perturb.ascend(loss, embeddings, batch["mask"], key, ascent)
        points = jnp.array(LINE)
        logits = perturb.along(logits_of, embeddings, direction, points, key)
        labels = jnp.broadcast_to(batch["labels"], logits.shape[:2])
        return losses.softmax_cross_entropy(logits, labels)


def _of(variables: Any) -> dict[str, Any]:
    return {"params": variables["params"]}


def _named(scores: dict[str, float]) -> dict[str, float]:
    return {
        "accuracy (%)" if kind == "all" else f"accuracy, {kind} (%)": value
        for kind, value in scores.items()
    }


def _percent(scores: dict[str, float]) -> dict[str, float]:
    return {name: 100 * value for name, value in scores.items()}


def _deciding(config: Config) -> dict[str, Any]:
    """The settings that a run depends on; more systems and seeds leave it as it is."""
    kept = results.as_json(config)
    for name in ("run", "preset", "tasks", "systems", "seeds"):
        kept.pop(name)
    return kept
