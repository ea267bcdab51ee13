"""DocBERT: an encoder tuned to classify documents, and its logits of every one."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from experiments.common import encoders
from experiments.common.devices import mesh_for
from experiments.docbert_distillation import scores
from experiments.docbert_distillation.config import Config
from experiments.docbert_distillation.data import Document, Task
from jaxemb import losses, nn, optim, pretrained, terminal, train
from jaxemb.data import batching, rows
from jaxemb.pretrained.features import digest_of_weights
from jaxemb.train import checkpoints, loop, results

DEV = "dev/score"


class Loaded(NamedTuple):
    """The encoder before it is tuned."""

    model: pretrained.Pretrained
    data: tuple[results.Data, ...]


def load(config: Config, task: Task) -> Loaded:
    """The weights that the config names."""
    name = config.teacher.weights
    if name == "planted":
        texts = [" ".join(d.words) for own in task.documents.values() for d in own]
        return Loaded(encoders.planted(texts, scale=0.3), ())
    model, used = encoders.load(name)
    return Loaded(model, (used,))


class Teacher:
    """Tuned once; its logits are kept by the documents' names."""

    def __init__(self, config: Config, task: Task, loaded: Loaded, workdir: Path):
        self._config, self._task, self._loaded = config, task, loaded
        self.folder = workdir / f"teacher-{config.teacher.epochs}"
        self._workdir = workdir
        self.module = nn.SequenceClassifier(task.classes, loaded.model.config)
        self._forward = train.everywhere(
            lambda variables, batch: self.module.apply(
                variables, batch["ids"], batch["mask"], deterministic=True
            )
        )

    def tune(self) -> None:
        """Tunes the encoder, or finds it tuned."""
        config, settings = self._config, self._config.teacher
        train_part, dev = (self._task.documents[part] for part in ("train", "dev"))
        pieces = self._pieces(train_part, settings.length)
        columns = pieces.columns()
        del columns["segments"]
        plan = batching.Shuffled(
            {**columns, "labels": self._task.labels(train_part)},
            settings.batch_size,
            seed=0,
            buckets=batching.length_buckets(pieces.ids.lengths, settings.buckets),
        )
        num_steps = settings.epochs * plan.steps_per_epoch
        deciding = {
            "encoder": [d.sha256 for d in self._loaded.data],
            "documents": self._task.digest("train", "dev"),
            "teacher": _deciding(config),
        }
        loop.claim(epath.Path(self.folder), deciding)
        if (self.folder / checkpoints.FOLDER / str(num_steps)).is_dir():
            return
        tx = optim.bert_adam(
            optim.warmup_linear(
                settings.learning_rate, int(settings.warmup * num_steps), num_steps
            )
        )

        def loss(variables, batch, key):
            found = self.module.apply(
                variables,
                batch["ids"],
                batch["mask"],
                deterministic=False,
                rngs={"dropout": key},
            )
            if config.multi_label:
                each = losses.sigmoid_cross_entropy(found, batch["labels"])
            else:
                each = losses.softmax_cross_entropy(found, batch["labels"])
            return each.mean(), {}

        def evaluate(state: train.State) -> dict[str, float]:
            found = self._logits(state.variables, dev, settings.length)
            return {DEV: scores.score(self._task, found, dev)}

        variables = pretrained.variables_above(
            self._loaded.model, self.module, jax.random.key(0)
        )
        if settings.prior:
            output = variables["params"]["output"]
            output["bias"] = self._prior(train_part)
        with results.recorded(self.folder):
            train.fit(
                train.State.create(variables, tx, jax.random.key(1)),
                train.data_parallel(
                    train.make_step(loss, tx), mesh_for(settings.batch_size)
                ),
                plan,
                num_steps,
                self.folder,
                evaluate=evaluate,
                evaluate_every=plan.steps_per_epoch,
                keep_best=DEV,
                keep=1,
                config=deciding,
                name="teacher",
                tensorboard=config.run.tensorboard,
                progress=config.run.progress,
            )

    def _prior(self, documents: list[Document]) -> jax.Array:
        """Log odds of the classes, or their log shares where documents have one."""
        counts = self._task.right(documents).sum(axis=0) + 1.0
        if self._task.multi_label:
            found = np.log(counts / (len(documents) + 2 - counts))
        else:
            found = np.log(counts / counts.sum())
        return jnp.asarray(found, jnp.float32)

    def logits(self) -> rows.RowsById:
        """Of every document, changed ones too, by the best epoch."""
        documents = [d for own in self._task.documents.values() for d in own]
        return self._cached(documents, self._config.teacher.length, "logits")

    def shorter(self, length: int) -> np.ndarray:
        """Logits of the test part's documents, cut to so many pieces."""
        test = self._task.documents["test"]
        cached = self._cached(test, length, f"logits-{length}")
        return cached[[d.id for d in test]]

    def mean_pieces(self) -> float:
        """Of the test part's documents, as they are cut."""
        pieces = self._pieces(self._task.documents["test"], self._config.teacher.length)
        return float(np.mean(pieces.ids.lengths))

    def fewer(self, epochs: int) -> tuple[np.ndarray, Path]:
        """Test logits of one that is tuned anew for so many epochs, and where it is."""
        settings = dataclasses.replace(self._config.teacher, epochs=epochs)
        config = dataclasses.replace(self._config, teacher=settings)
        other = Teacher(config, self._task, self._loaded, self._workdir)
        other.tune()
        test = self._task.documents["test"]
        cached = other._cached(test, settings.length, f"logits-epochs-{epochs}")
        return cached[[d.id for d in test]], other.folder

    def epochs(self) -> list[float]:
        """Development scores, epoch by epoch."""
        return [line[DEV] for line in train.evaluations(self.folder, DEV)]

    def variables(self) -> Any:
        """Of the best epoch."""
        saved = train.load_params(self.folder / checkpoints.BEST)
        return jax.tree.map(jnp.asarray, saved)

    def _cached(self, documents: list[Document], length: int, name: str):
        variables = self.variables()
        tuned = dataclasses.replace(self._loaded.model, params=variables["params"])
        compute, batches = self._plan(variables, documents, length)
        with results.recorded(self._workdir / name):
            return rows.cache_by_id(
                self._workdir / name,
                [d.id for d in documents],
                compute,
                dim=self._task.classes,
                of=f"{digest_of_weights(tuned)}, {length} pieces, documents "
                f"{self._task.digest()}",
                batches=batches,
                progress=self._config.run.progress,
            )

    def _logits(self, variables, documents: list[Document], length: int) -> np.ndarray:
        compute, batches = self._plan(variables, documents, length)
        found = np.zeros((len(documents), self._task.classes), np.float32)
        for places in batches:
            found[places] = np.asarray(compute(places))[: len(places)]
        return found

    def _plan(self, variables, documents: list[Document], length: int):
        settings = self._config.teacher
        ids = self._pieces(documents, length).ids
        batches = pretrained.by_length(
            ids.lengths, settings.batch_size, settings.buckets, length
        )
        padded_to = {batch.rows.tobytes(): batch.length for batch in batches}

        def compute(places: np.ndarray) -> Any:
            filled = np.resize(places, settings.batch_size)
            size = padded_to[places.tobytes()]
            given, mask = pretrained.padded(ids, filled, size)
            return self._forward(variables, {"ids": given, "mask": mask})

        return compute, [batch.rows for batch in batches]

    def _pieces(self, documents: list[Document], length: int) -> pretrained.Pieces:
        cutter = pretrained.Cutter.of(self._loaded.model)
        cutter = dataclasses.replace(cutter, longest=min(length, cutter.longest))
        return cutter.texts([" ".join(d.words) for d in documents])


def tune(config: Config, task: Task, workdir: Path) -> tuple[Teacher, Loaded]:
    """A teacher that is ready to teach."""
    loaded = load(config, task)
    teacher = Teacher(config, task, loaded, workdir)
    teacher.tune()
    best = train.best_evaluation(teacher.folder, DEV)
    terminal.say(f"teacher: dev {100 * best[DEV]:.2f} at step {best['step']}")
    return teacher, loaded


def _deciding(config: Config) -> dict:
    kept = results.as_json(config.teacher)
    for name in ("lengths", "epoch_sweep"):
        del kept[name]
    return kept
