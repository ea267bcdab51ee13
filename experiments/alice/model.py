"""A head above an encoder: what it computes, is tuned by, and is attacked by."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import special

from experiments.alice.config import Config, System
from experiments.alice.data import Loaded, Part
from jaxemb import losses, nn, optim, perturb, pretrained, train
from jaxemb.data import batching
from jaxemb.eval import questions
from jaxemb.train.step import Step

LINE = tuple(float(t) for t in np.linspace(-2, 2, 9))
"""Points of a line through the embeddings, in radii of the largest attack."""
BALL = "ball"
"""The collection that holds the radius trained in: one program serves all of them."""


class Attacked(NamedTuple):
    """What attacks do, as JSON keeps it."""

    scores: dict[str, list[float]]
    """`accuracy` (%), `loss`, `divergence` and `ratio` (%): clean, then by radius."""
    line: list[float]
    """The mean loss at the points of `LINE`."""


class RatesState(NamedTuple):
    """State of `scale_by_rates`."""

    count: Any  # int32 scalar: updates so far
    rates: Any  # one an update; 0 after the last


def scale_by_rates(
    schedule: optax.Schedule, num_steps: int, room: int
) -> optax.GradientTransformation:
    """Times minus the rates of a schedule, which are part of the state.

    So one compiled step serves every schedule with at most `room` updates.
    """

    def init_fn(params):
        del params
        steps = jnp.arange(room)
        rates = jnp.where(steps < num_steps, jax.vmap(schedule)(steps), 0)
        return RatesState(jnp.zeros([], jnp.int32), rates.astype(jnp.float32))

    def update_fn(updates, state, params=None):
        del params
        rate = state.rates[state.count]
        scaled = jax.tree.map(lambda u: -rate.astype(u.dtype) * u, updates)
        return scaled, RatesState(state.count + 1, state.rates)

    return optax.GradientTransformation(init_fn, update_fn)


def objective_of(
    config: Config, system: System, epsilon: Any = None
) -> perturb.Objective:
    """The objective of a system, in a ball of the config unless `epsilon` is told."""
    own = config.perturbation
    if epsilon is not None:
        own = own.at(epsilon)
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


class Classifier:
    """The model of a task, and the programs that are compiled of it."""

    def __init__(self, config: Config, loaded: Loaded):
        self._config, self._loaded = config, loaded
        shape, dropout = loaded.encoder.config, config.head_dropout
        self.module = (
            nn.MultipleChoice(shape, dropout)
            if loaded.options
            else nn.SequenceClassifier(2, shape, dropout)
        )
        self._logits = train.everywhere(self._clean)
        self._attack = jax.jit(self._attacked)
        self._line = jax.jit(self._on_a_line)

    @property
    def chosen_by(self) -> str:
        """The score of what is held out that chooses the epoch.

        Of pairs F1: exact match is high where everything is denied.
        """
        return "accuracy (%)" if self._loaded.options else "F1 (%)"

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

    def loss(self, system: System):
        """The loss of a step, as `train.make_step` takes it."""

        def loss(variables, batch, key):
            ball = variables.get(BALL, {"epsilon": None})
            objective = objective_of(self._config, system, ball["epsilon"])

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

    def optimizer(
        self, system: System, rate: float, num_steps: int, room: int
    ) -> optax.GradientTransformation:
        """Adam, clipped, its rate up over the warm-up and down to 0.

        Args:
          system: the Bregman term needs averaged parameters.
          rate: the highest.
          num_steps: of the run.
          room: of the longest run.
        """
        config = self._config
        warm_up = min(math.ceil(config.warm_up * num_steps), num_steps - 1)
        parts = [
            optax.clip_by_global_norm(config.clip_norm),
            optax.scale_by_adam(),
            scale_by_rates(
                optim.warmup_linear(rate, warm_up, num_steps), num_steps, room
            ),
        ]
        if objective_of(config, system).proximal:
            decay = config.perturbation.decay
            parts.append(optim.parameter_ema(decay, debias=False))
        return optax.chain(*parts)

    def step(self, system: System, tx: optax.GradientTransformation) -> Step:
        """The step of a system."""
        plain = train.make_step(self.loss(system), tx)
        if not objective_of(self._config, system).proximal:
            return plain

        def step(state, batch):
            averaged = {"averaged": optim.ema_params(state.opt_state)}
            seen = dataclasses.replace(state, frozen={**state.frozen, **averaged})
            new, metrics = plain(seen, batch)
            return dataclasses.replace(new, frozen=state.frozen), metrics

        return step

    def variables(self, seed: int) -> dict[str, Any]:
        """The pretrained weights below a head drawn from N(0, 0.02)."""
        shape = (1, 2, 2) if self._loaded.options else (1, 2)
        key, head_key = jax.random.split(jax.random.key(seed))
        made = pretrained.variables_above(self._loaded.encoder, self.module, key, shape)
        head = made["params"]["text"] if self._loaded.options else made["params"]
        kernel = head["output"]["kernel"]
        head["output"]["kernel"] = 0.02 * jax.random.normal(head_key, kernel.shape)
        return made

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

    def robustness(self, variables: Any, epsilon: float) -> Attacked:
        """Test examples clean, under attack in balls of radii, and on a line."""
        settings = self._config.robustness
        part = self._loaded.test.some(settings.examples)
        size = min(2 * self._config.batch_size, len(part.examples))
        names = "accuracy", "loss", "divergence", "ratio"
        totals = np.zeros((len(names), 1 + len(settings.radii)))
        for batch in batching.in_order(part.columns, size, self._loaded.buckets):
            fed, real = self.batch(batch), batch["weight"]
            logits = np.asarray(self._logits(variables, fed), np.float64)
            own = np.take_along_axis(logits, batch["labels"][:, None], 1)[:, 0]
            right = logits.argmax(-1) == batch["labels"]
            totals[0, 0] += right @ real
            totals[1, 0] += (special.logsumexp(logits, axis=-1) - own) @ real
            for place, radius in enumerate(settings.radii, 1):
                found = self._attack(variables, fed, radius * epsilon)
                each = found.right, found.loss, found.divergence, found.ratio
                totals[:, place] += [float(np.asarray(x) @ real) for x in each]
        means = totals / len(part.examples)
        means[[0, 3]] *= 100
        scores = dict(zip(names, means.tolist(), strict=True))
        return Attacked(scores, self._line_of(variables, part, size, epsilon))

    def _line_of(self, variables: Any, part: Part, size: int, epsilon: float):
        some = part.some(self._config.robustness.line_examples)
        reach = max(self._config.robustness.radii) * epsilon
        line = np.zeros(len(LINE))
        for batch in batching.in_order(some.columns, size, self._loaded.buckets):
            values = self._line(variables, self.batch(batch), reach)
            line += np.asarray(values) @ batch["weight"]
        return (line / len(some.examples)).tolist()

    def _clean(self, variables, batch):
        embeddings = self.embed(variables, batch)
        return self.logits_of(variables, batch)(embeddings, jax.random.key(0))

    def _attacked(self, variables, batch, radius):
        # Steps that together cross the ball, from a random point near its centre.
        steps = self._config.robustness.steps
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
