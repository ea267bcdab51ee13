"""Trains students, makes tables of them, and scores tables."""

import dataclasses
import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
import optax
from etils import epath

from experiments.common.devices import mesh_for
from experiments.subword_reconstruction import data, model
from experiments.subword_reconstruction.config import Config, Head
from jaxemb import terminal, train
from jaxemb.data import batching
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import similarity
from jaxemb.losses import distances
from jaxemb.train import results

_EVAL_BATCH = 1024
SIMILARITY = "mean similarity"
FLOOR = "loss above the floor"
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
        return f"{self.distance}, permuted" if self.permuted else self.distance


class School:
    """Students of one teacher and one head, each kind compiled once."""

    def __init__(
        self, config: Config, teacher: data.Teacher, tests: data.Tests, head: Head
    ):
        self._config = config
        self.teacher = teacher
        self._tests = tests
        self.head: Head = head
        dim = teacher.vectors.dim
        self.module = model.student(config, head, len(teacher.characters), dim)
        self._buckets = batching.length_buckets(
            teacher.spelled.lengths, config.buckets, multiple=1
        )
        self._embed = jax.jit(
            lambda variables, words: self.module.apply(
                variables, words, deterministic=True
            )
        )

    def embed(self, params: Mapping) -> WordVectors:
        """The table that a student makes of the teacher's words."""
        columns = {"characters": self.teacher.spelled}
        table = np.zeros_like(self.teacher.vectors.matrix)
        for batch in batching.in_order(columns, _EVAL_BATCH, self._buckets):
            vectors = self._embed({"params": params}, batch["characters"])
            real = batch["weight"] > 0
            table[batch["index"][real]] = np.asarray(vectors)[real]
        return WordVectors(self.teacher.vectors.words, table, unique=True)

    def untaught(self, seed: int) -> dict:
        """The parameters that students of a seed start from."""
        return model.initial(self.module, seed)["params"]

    def teach(self, taught: Taught, folder: epath.Path) -> dict:
        """Trains a student, or finds it done; returns its parameters."""
        config = self._config
        order = None
        if taught.permuted:
            words = len(self.teacher.vectors)
            order = np.random.default_rng(taught.seed).permutation(words)
        batches = batching.Shuffled(
            self.teacher.columns(order),
            config.batch_size,
            seed=taught.seed,
            buckets=self._buckets,
        )
        tx, step = self._step(taught.distance)
        epoch = batches.steps_per_epoch
        every = int(np.gcd.reduce(config.epochs))
        with results.recorded(folder):
            state = train.fit(
                lambda: train.State.create(
                    {"params": self.untaught(taught.seed)},
                    tx,
                    jax.random.key(taught.seed),
                ),
                step,
                batches,
                config.epochs[-1] * epoch,
                folder,
                evaluate=lambda state: self.score(state.params, taught.distance),
                evaluate_every=every * epoch,
                save_every=every * epoch,
                keep=1,
                config={
                    "student": dataclasses.asdict(taught),
                    "teacher": self.teacher.data.sha256,
                    "words": len(self.teacher.vectors),
                    "characters": len(self.teacher.characters),
                    "hidden": config.hidden,
                    "batch_size": config.batch_size,
                    "learning_rate": config.learning_rate,
                    "epochs": list(config.epochs),
                    "buckets": config.buckets,
                },
                name=f"{taught.head} {taught.name} {taught.seed}",
                tensorboard=config.run.tensorboard,
                progress=config.run.progress,
            )
        return jax.device_get(state.params)

    @functools.cache  # noqa: B019 (a school lives as long as its run)
    def _step(self, distance: str):
        tx = optax.adam(self._config.learning_rate)
        loss = model.reconstruction(self.module, distance)
        mesh = mesh_for(self._config.batch_size)
        step = train.make_step(loss, tx)
        return tx, train.data_parallel(step, mesh, mode=self._config.run.parallel)

    def score(self, params: Mapping, distance: str) -> dict[str, float]:
        """What a table of a student shows, against the true teacher."""
        table = self.embed(params)
        return {
            **self.similarity(table),
            **self.nearness(table, distance),
        }

    def similarity(self, table: WordVectors) -> dict[str, float]:
        """Spearman × 100 on each list and their mean; a row of zeros has cosine 0."""
        scores = {
            name: 100
            * similarity.word_similarity(table, rows, oov="zero", resamples=0).spearman
            for name, rows in self._tests.similarity.items()
        }
        mean = {SIMILARITY: float(np.mean(list(scores.values())))} if scores else {}
        return {**mean, **scores}

    def nearness(self, table: WordVectors, distance: str) -> dict[str, float]:
        """How near a table is to the teacher, above what its head can attain."""
        x, h = jnp.asarray(self.teacher.vectors.matrix), jnp.asarray(table.matrix)
        measure = model.DISTANCES[distance]
        loss = measure(x, h)
        floor = distances.nonnegative_floor(measure, x)
        if self.head != "relu":
            floor = jnp.full_like(loss, -1.0 if distance == "Dcos" else 0.0)
        return {
            FLOOR: float(jnp.mean(loss - floor)),
            "floor": float(jnp.mean(floor)),
            COSINE: float(-jnp.mean(distances.d_cos(x, h))),
            ZERO: float(np.sum(~table.matrix.any(axis=1))),
        }


def teach_all(
    config: Config, schools: Mapping[Head, School], workdir: epath.Path
) -> dict[Taught, dict]:
    """Every student of the config, head by head and seed by seed."""
    taught = {}
    for head, school in schools.items():
        for seed in range(config.seeds):
            wanted = [Taught(head, d, seed) for d in config.distances]
            wanted += [Taught(head, d, seed, True) for d in config.permuted]
            for one in wanted:
                taught[one] = school.teach(one, folder_of(workdir, one))
                scores = last_scores(workdir, one)
                told = ", ".join(f"{n} {scores[n]:.3g}" for n in (FLOOR, COSINE))
                terminal.say(f"{head} · {one.name} · seed {seed}: {told}")
    return taught


def folder_of(workdir: epath.Path, one: Taught) -> epath.Path:
    """Where a student is trained."""
    kind = f"{one.distance}-permuted" if one.permuted else one.distance
    return workdir / "students" / one.head / kind / f"seed-{one.seed}"


def history(workdir: epath.Path, one: Taught) -> list[dict[str, float]]:
    """The scores of a student, evaluation by evaluation."""
    lines = train.read_metrics(folder_of(workdir, one))
    return [line for line in lines if FLOOR in line]


def last_scores(workdir: epath.Path, one: Taught) -> dict[str, float]:
    """The scores of a student at its end."""
    return history(workdir, one)[-1]
