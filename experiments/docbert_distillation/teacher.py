"""DocBERT: an encoder tuned to classify documents, and its logits of every one."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from experiments.common.datasets import described
from experiments.common.devices import mesh_for
from experiments.docbert_distillation import scores
from experiments.docbert_distillation.config import Config
from experiments.docbert_distillation.data import Document, Task
from jaxemb import losses, nn, optim, pretrained, terminal, train
from jaxemb.data import batching, rows, sources
from jaxemb.pretrained.features import digest_of_weights
from jaxemb.train import checkpoints, results

DEV = "dev/score"


class Loaded(NamedTuple):
    """The encoder before it is tuned."""

    model: pretrained.Pretrained
    data: tuple[results.Data, ...]


def load(config: Config, task: Task) -> Loaded:
    """The weights that the config names."""
    name = config.teacher.weights
    if name == "planted":
        return Loaded(_tiny(task), ())
    if name in sources.DATA_SETS:
        found = sources.get(name)
        model = pretrained.load_hf(str(found.part("config").parent))
        return Loaded(model, (described(found),))
    model = pretrained.load_hf(name)
    used = results.Data(
        name=Path(name).name,
        kind="real",
        source="a folder of weights",
        sha256=digest_of_weights(model),
        size=0,
    )
    return Loaded(model, (used,))


class Teacher:
    """Tuned once; its logits are kept by the documents' names."""

    def __init__(self, config: Config, task: Task, loaded: Loaded, workdir: Path):
        self._config, self._task, self._loaded = config, task, loaded
        self.folder = workdir / "teacher"
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
                config={
                    "data": [d.sha256 for d in self._task.data],
                    "documents": [d.id for d in train_part[:20]],
                    "teacher": _deciding(config),
                },
                name="teacher",
                tensorboard=config.run.tensorboard,
                progress=config.run.progress,
            )

    def logits(self) -> rows.RowsById:
        """Of every document, changed ones too, by the best epoch."""
        documents = [d for own in self._task.documents.values() for d in own]
        return self._cached(documents, self._config.teacher.length, "logits")

    def shorter(self, length: int) -> np.ndarray:
        """Logits of the test part's documents, cut to so many pieces."""
        test = self._task.documents["test"]
        cached = self._cached(test, length, f"logits-{length}")
        return cached[[d.id for d in test]]

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
                of=f"{digest_of_weights(tuned)}, {length} pieces",
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
    del kept["lengths"]
    return kept


def _tiny(task: Task) -> pretrained.Pretrained:
    """A small encoder of random weights, for planted documents."""
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    kinds = sorted({w for own in task.documents.values() for d in own for w in d.words})
    vocab = {piece: i for i, piece in enumerate([*marks, *kinds])}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(mark, vocab[mark]) for mark in ("[CLS]", "[SEP]")],
    )
    shape = nn.TextConfig(
        vocab=len(vocab),
        dim=16,
        layers=1,
        heads=2,
        inner=32,
        positions=32,
        initializer_range=0.3,
    )
    ids = jnp.ones((1, 3), jnp.int32)
    params = nn.Bert(shape).init(jax.random.key(0), ids, ids > 0, deterministic=True)
    params = jax.tree.map(np.asarray, params["params"])
    return pretrained.Pretrained(shape, "bert", params, tokenizer.to_str().encode())
