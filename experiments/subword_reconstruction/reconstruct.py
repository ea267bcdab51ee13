"""Trains students, makes tables of them, and scores tables."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from etils import epath

from experiments.common.devices import mesh_for
from experiments.subword_reconstruction import data, model
from experiments.subword_reconstruction.config import Config, Head
from jaxemb import nn as jnn
from jaxemb import train
from jaxemb.analysis import reconstruction
from jaxemb.data import batching
from jaxemb.data.analogies import Analogy
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import analogy, similarity
from jaxemb.losses import distances
from jaxemb.train import results

_EVAL_BATCH = 1024
SIMILARITY = "mean similarity"
LOSS = "mean distance"
FLOOR = "mean distance above the floor"
LEAST = "floor of the mean distance"
WAY = "of the way from the best constant to the floor (%)"
COSINE = "mean cosine to the teacher"
ZERO = "words that are all zeros"


@dataclasses.dataclass(frozen=True)
class Taught:
    """One student: what it was drawn to, and how."""

    head: Head
    distance: str
    seed: int
    permuted: bool = False

    @property
    def name(self) -> str:
        """As rows have it."""
        return f"{self.distance}, permuted" if self.permuted else self.distance

    def folder(self, workdir: epath.Path) -> epath.Path:
        """Where it is trained."""
        kind = f"{self.distance}-permuted" if self.permuted else self.distance
        return workdir / "students" / self.head / kind / f"seed-{self.seed}"


class School:
    """Students of one teacher and one head, each kind compiled once."""

    def __init__(
        self,
        config: Config,
        teacher: data.Teacher,
        head: Head,
        tests: data.Tests | None = None,
        *,
        lengths: np.ndarray | None = None,
        described: Mapping[str, Any] | None = None,
    ):
        """Prepares the module and the buckets.

        Args:
          config: of the run.
          teacher: whose words are taught.
          head: of the students.
          tests: what tables are scored on at each evaluation, beside the teacher.
          lengths: of the words that buckets are made for, if not the teacher's.
          described: more that decides what a student becomes.
        """
        self._config = config
        self.teacher = teacher
        self.head: Head = head
        self._tests = tests or data.Tests()
        self._described = dict(described or {})
        self.module = model.student(
            config, head, len(teacher.characters), teacher.vectors.dim
        )
        lengths = teacher.spelled.lengths if lengths is None else lengths
        self._buckets = batching.length_buckets(lengths, config.buckets, multiple=1)

    def embed(
        self, params: Mapping, spelled: batching.Ragged | None = None
    ) -> np.ndarray:
        """What a student makes of the teacher's words, or of others."""
        spelled = self.teacher.spelled if spelled is None else spelled
        table = np.zeros((len(spelled), self.module.features), np.float32)
        columns = {"characters": spelled}
        for batch in batching.in_order(columns, _EVAL_BATCH, self._buckets):
            vectors = _embed(self.module, {"params": params}, batch["characters"])
            real = batch["weight"] > 0
            table[batch["index"][real]] = np.asarray(vectors)[real]
        return table

    def table(self, params: Mapping) -> WordVectors:
        """The same of the teacher's words, as a table."""
        return WordVectors(self.teacher.vectors.words, self.embed(params), unique=True)

    def untaught(self, seed: int) -> dict:
        """The parameters that students of a seed start from."""
        return model.initial(self.module, seed)

    def targets(self, taught: Taught) -> np.ndarray:
        """What a student is drawn to: the teacher's rows, or these in another order."""
        matrix = self.teacher.vectors.matrix
        if not taught.permuted:
            return matrix
        return matrix[np.random.default_rng(taught.seed).permutation(len(matrix))]

    def teach(self, taught: Taught, folder: epath.Path) -> dict:
        """Trains a student, or finds it done; returns its parameters."""
        config = self._config
        targets = self.targets(taught)
        batches = batching.Shuffled(
            {"characters": self.teacher.spelled, "teacher": targets},
            config.batch_size,
            seed=taught.seed,
            buckets=self._buckets,
        )
        tx = optax.adam(config.learning_rate)
        every = config.curve_every * batches.steps_per_epoch
        start = {"params": self.untaught(taught.seed)}
        with results.recorded(folder):
            state = train.fit(
                train.State.create(start, tx, jax.random.key(taught.seed)),
                _step(self.module, taught.distance, config),
                batches,
                config.epochs[-1] * batches.steps_per_epoch,
                folder,
                evaluate=lambda s: self.score(
                    s.params,
                    taught.distance,
                    targets,
                    epoch=int(s.step) // batches.steps_per_epoch,
                ),
                evaluate_every=every,
                save_every=every,
                keep=1,
                config={
                    "student": dataclasses.asdict(taught),
                    "teacher": self.teacher.data.sha256,
                    "words": len(self.teacher.vectors),
                    "characters": len(self.teacher.characters),
                    "hidden": config.hidden,
                    "batch_size": config.batch_size,
                    "learning_rate": config.learning_rate,
                    "epochs": config.epochs[-1],
                    "curve_every": config.curve_every,
                    "buckets": list(self._buckets),
                    "tests": self._tests.covered,
                    "analogies_after": list(self._asked_after),
                    **self._described,
                },
                name=f"{taught.head} {taught.name} {taught.seed}",
                tensorboard=config.run.tensorboard,
                progress=config.run.progress,
            )
        return jax.device_get(state.params)

    @property
    def _asked_after(self) -> tuple[int, ...]:
        """The epochs after which students are asked analogies."""
        return self._config.epochs if "analogies" in self._config.studies else ()

    def score(
        self, params: Mapping, distance: str, targets: np.ndarray, epoch: int
    ) -> dict[str, float]:
        """What the table of a student shows after an epoch."""
        table = self.table(params)
        near = self.nearness(table.matrix, distance, targets)
        asked = self.analogies(table) if epoch in self._asked_after else {}
        return {**self.similarity(table), **near, **asked}

    def analogies(self, table: WordVectors) -> dict[str, float]:
        """Of each kind, as `answered`."""
        asked = self._tests.analogies.items()
        return {f"{kind} analogies (%)": answered(table, of) for kind, of in asked}

    def similarity(self, table: WordVectors) -> dict[str, float]:
        """Spearman × 100 on each list and their mean; a row of zeros has cosine 0."""
        scores = {
            name: 100
            * similarity.word_similarity(table, rows, oov="zero", resamples=0).spearman
            for name, rows in self._tests.similarity.items()
        }
        mean = {SIMILARITY: float(np.mean(list(scores.values())))} if scores else {}
        return {**mean, **scores}

    def nearness(
        self, table: np.ndarray, distance: str, targets: np.ndarray
    ) -> dict[str, float]:
        """How near a table is to what was taught, above what its head can attain."""
        found = _nearness(table, targets, self.teacher.vectors.matrix, distance)
        loss, relu_floor, cosine = map(float, found)
        least = -1.0 if distance == "Dcos" else 0.0
        floor = relu_floor if self.head == "relu" else least
        return {
            LOSS: loss,
            FLOOR: loss - floor,
            COSINE: cosine,
            ZERO: float(np.sum(~table.any(axis=1))),
        }

    def way(self, taught: Taught, losses: Sequence[float]) -> list[float]:
        """How far students have come, in per cent of the way that they can.

        It leads from the mean distance of the best vector for all words, 0, to the
        floor, 100; below 0 is worse than such a constant.

        Args:
          taught: a student of the kind, of any seed.
          losses: mean distances to what was taught.
        """
        measure = model.DISTANCES[taught.distance]
        matrix = self.teacher.vectors.matrix
        _, constant = reconstruction.best_constant(
            measure, jnp.asarray(matrix), nonnegative=self.head == "relu"
        )
        # Of the teacher's own rows: what is left above the floor is nothing.
        near = self.nearness(matrix, taught.distance, matrix)
        least = near[LOSS] - near[FLOOR]
        return [100 * float((constant - x) / (constant - least)) for x in losses]


def answered(table: WordVectors, sections: Mapping[str, Sequence[Analogy]]) -> float:
    """Accuracy by 3CosMul in per cent; a question with a row of zeros is wrong."""
    found = analogy.analogies(table, sections, method="3cosmul", oov="wrong")
    return 100 * found.whole.accuracy


@functools.partial(jax.jit, static_argnames="distance")
def _nearness(table, targets, teacher, distance: str):
    measure = model.DISTANCES[distance]
    return (
        jnp.mean(measure(targets, table)),
        jnp.mean(distances.nonnegative_floor(measure, targets)),
        -jnp.mean(distances.d_cos(teacher, table)),
    )


@functools.partial(jax.jit, static_argnums=0)
def _embed(module: jnn.CharBiLSTM, variables, characters):
    return module.apply(variables, characters, deterministic=True)


def _step(module: jnn.CharBiLSTM, distance: str, config: Config):
    """The compiled step, which schools of the same students share."""
    rate, size = config.learning_rate, config.batch_size
    return _compiled(module, distance, rate, size, config.run.parallel)


@functools.cache
def _compiled(module, distance: str, rate: float, batch_size: int, mode):
    step = train.make_step(model.reconstruction(module, distance), optax.adam(rate))
    return train.data_parallel(step, mesh_for(batch_size), mode=mode)


def history(folder: epath.Path) -> list[dict[str, float]]:
    """The scores of a student, evaluation by evaluation."""
    return train.evaluations(folder, FLOOR)
