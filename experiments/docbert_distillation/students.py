"""Trains students, with a teacher and without, on documents and on changed ones."""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from experiments.common.devices import mesh_for
from experiments.docbert_distillation import model, scores
from experiments.docbert_distillation.config import ARMS, OTHER_WAY, Config
from experiments.docbert_distillation.data import Inputs, Task
from jaxemb import optim, perturb, terminal, train
from jaxemb.data import batching
from jaxemb.data.rows import RowsById
from jaxemb.train import checkpoints, loop, results

DEV = "dev/score"
TEST = "test.npy"


class Trained:
    """What a student left: its scores and its logits of the test part."""

    def __init__(self, folder: epath.Path):
        self.folder = folder
        self.dev = float(train.best_evaluation(folder, DEV)[DEV])
        with (folder / TEST).open("rb") as stream:
            self.test: np.ndarray = np.load(stream)


class System:
    """A student or baseline, compiled once for all arms and seeds."""

    def __init__(
        self,
        config: Config,
        task: Task,
        inputs: Inputs,
        teacher: RowsById,
        workdir: Path,
        system: str,
        *,
        hidden: int | None = None,
        other_way: bool = False,
        pruned: bool = False,
        adversarial: bool = False,
    ):
        self._config, self._task, self._inputs = config, task, inputs
        self._system, self._hidden = system, hidden
        self._other_way = other_way
        self._added = [
            name
            for name, on in (("pruned", pruned), ("adversarial", adversarial))
            if on
        ]
        self._workdir, self._teacher = workdir, teacher
        self._digest = task.digest()
        words = len(inputs.tfidf.words)
        self.module = model.build(config, system, task.classes, words, hidden=hidden)
        whole = len(task.documents["train"]) + len(task.documents["copies"])
        batches = config.students.passes * whole / config.students.batch_size
        self.steps = max(config.students.evaluations, math.ceil(batches))
        self._tx = model.optimizer(
            config, system, pruned_over=self.steps if pruned else 0
        )
        objective = perturb.fgm(config.composed.epsilon) if adversarial else None
        direction = config.direction
        if other_way:
            both = ("student_teacher", "teacher_student")
            direction = both[1 - both.index(direction)]
        step = train.make_step(
            model.loss_fn(config, system, self.module, direction, objective), self._tx
        )
        mesh = mesh_for(config.students.batch_size)
        self._step = train.data_parallel(step, mesh, mode=config.run.parallel)
        self._forward = train.everywhere(
            lambda variables, given: model.logits(self.module, variables, given)
        )
        self._under_attack = train.everywhere(self._attack)

    @property
    def name(self) -> str:
        """Of the student, its width where that is not the usual one, and more."""
        name = self._system if self._hidden is None else f"LSTM-{self._hidden}"
        return ", ".join([name, *self._added])

    def fit(self, arm: str, seed: int) -> Trained:
        """Trains one arm with one seed, or finds it done."""
        config, settings = self._config, self._config.students
        label = OTHER_WAY if self._other_way else arm
        folder = epath.Path(self._workdir) / "students" / self.name / label / f"{seed}"
        deciding = self._deciding(label, seed)
        loop.claim(folder, deciding)
        if (folder / TEST).exists():
            return Trained(folder)
        columns = self._training(*ARMS[arm])
        plan = batching.Shuffled(
            columns, settings.batch_size, seed=seed, buckets=self._buckets()
        )
        init_key, train_key = jax.random.split(jax.random.key(seed))
        example = model.example_of(config, self._system, self._inputs.table.shape[1])
        more = {"deterministic": True} if self._system not in model.LINEAR else {}
        variables = self.module.lazy_init(init_key, **example, **more)
        state = train.State.create({"params": variables["params"]}, self._tx, train_key)
        with results.recorded(folder):
            train.fit(
                state,
                self._step,
                lambda number: self._batch(plan(number)),
                self.steps,
                folder,
                evaluate=self._evaluate,
                evaluate_every=-(-self.steps // settings.evaluations),
                keep_best=DEV,
                keep=1,
                config=deciding,
                name=f"{self.name} · {label} · {seed}",
                tensorboard=config.run.tensorboard,
                progress=config.run.progress,
            )
            found = self._logits(self.params(folder), "test")
            with (folder / TEST).open("wb") as stream:
                np.save(stream, found)
        done = Trained(folder)
        reached = scores.score(self._task, done.test, self._task.documents["test"])
        terminal.say(
            f"{self.name} · {label} · seed {seed}: dev {100 * done.dev:.2f}, test "
            f"{100 * reached:.2f}"
        )
        return done

    def params(self, folder: epath.Path) -> dict:
        """Those of the best development score."""
        saved = jax.tree.map(jnp.asarray, train.load_params(folder / checkpoints.BEST))
        return model.params_of(saved["params"], saved.get("ema"))

    def attacked(self, run: Trained, radius: float) -> np.ndarray:
        """Logits of the test part's vectors, changed to raise the loss; made once.

        The change, of Euclidean length `radius` a text, is along the gradient.
        """
        file = run.folder / f"attacked-{radius:g}.npy"
        if not file.exists():
            found = self._logits(self.params(run.folder), "test", radius)
            with file.open("wb") as stream:
                np.save(stream, found)
        with file.open("rb") as stream:
            return np.load(stream)

    def _training(self, augmented: bool, taught: bool) -> dict:
        """Columns of the training set, or of the transfer set."""
        parts = ("train", "copies") if augmented else ("train",)
        documents = [d for part in parts for d in self._task.documents[part]]
        columns = _joined(
            [model.columns_of(self._system, self._inputs.columns[p]) for p in parts]
        )
        count = len(documents)
        weight = self._config.weight if taught else 0.0
        original = np.arange(count) < len(self._task.documents["train"])
        return {
            **columns,
            "teacher": self._teacher[[d.id for d in documents]],
            "weight": np.full(count, weight, np.float32),
            # Without a teacher a changed text has nothing but its label.
            "gold": original | (self._config.gold_for_copies or not taught),
        }

    def _batch(self, batch: batching.Batch) -> dict:
        kept = {k: batch[k] for k in ("labels", "teacher", "weight", "gold")}
        return {**kept, "inputs": model.inputs_of(self._system, batch, self._inputs)}

    def _buckets(self) -> tuple[int, ...]:
        """The same for all parts of a system, so that programs are few."""
        if self._system in model.LINEAR:
            every = self._inputs.columns.values()
            lengths = np.concatenate([own["features"].lengths for own in every])
            return batching.length_buckets(lengths, self._config.students.buckets)
        return () if self._system == "HAN" else self._inputs.buckets

    def _evaluate(self, state: train.State) -> dict[str, float]:
        averages = optim.all_ema_params(state.opt_state)
        average = averages[0] if averages else None
        found = self._logits(model.params_of(state.params, average), "dev")
        return {DEV: scores.score(self._task, found, self._task.documents["dev"])}

    def _logits(self, params, part: str, radius: float | None = None) -> np.ndarray:
        columns = model.columns_of(self._system, self._inputs.columns[part])
        found = np.zeros((len(columns["labels"]), self._task.classes), np.float32)
        size = self._config.students.batch_size
        for batch in batching.in_order(columns, size, self._buckets()):
            given = model.inputs_of(self._system, batch, self._inputs)
            if radius is None:
                one = self._forward({"params": params}, given)
            else:
                more = {"labels": batch["labels"], "radius": np.full(size, radius)}
                one = self._under_attack({"params": params}, {**given, **more})
            found[batch["index"]] = np.asarray(one)
        return found

    def _attack(self, variables, given: dict) -> jax.Array:
        given = dict(given)
        vectors, labels, radius = (
            given.pop(n) for n in ("vectors", "labels", "radius")
        )
        return perturb.attack(
            lambda x, key: model.logits(
                self.module, variables, {**given, "vectors": x}
            ),
            labels,
            vectors,
            given["mask"],
            jax.random.key(0),
            radius[0],
            perturb.fgm().labelled_ascent,
        ).logits

    def _deciding(self, label: str, seed: int) -> dict:
        """What a run depends on: another one is not taken for it."""
        config = results.as_json(self._config)
        names = ("students", "weight", "temperature", "gold_for_copies", "direction")
        settings = {name: config[name] for name in names}
        if self._added:
            settings["composed"] = config["composed"]
            del settings["composed"]["radii"]  # each of which has a file of its own
        return {
            "system": self.name,
            "arm": label,
            "seed": seed,
            "teacher": self._teacher.described,
            "vectors": [d.sha256 for d in self._inputs.data],
            "documents": self._digest,
            "settings": settings,
        }


def _joined(parts: list[dict]) -> dict:
    """Columns of several parts, one after the other."""
    joined = {}
    for name, first in parts[0].items():
        columns = [part[name] for part in parts]
        if isinstance(first, batching.Ragged):
            lengths = np.concatenate([c.lengths for c in columns])
            offsets = np.concatenate([[0], np.cumsum(lengths)])
            values = np.concatenate([c.values for c in columns])
            joined[name] = batching.Ragged(values, offsets)
        else:
            joined[name] = np.concatenate(columns)
    return joined
