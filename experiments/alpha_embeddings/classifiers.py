"""The paper's classifiers, on word vectors that stay as they are."""

from collections.abc import Mapping, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse
from etils import epath
from jaxtyping import Array, Float, Int

from experiments.alpha_embeddings import data
from experiments.alpha_embeddings.config import Classifier, Config
from jaxemb import losses, train
from jaxemb import nn as jnn
from jaxemb.data import batching
from jaxemb.eval import classification
from jaxemb.train import checkpoints

_EVAL_BATCH = 1000  # means of texts
_BUCKETS = 8  # padded lengths of texts


class Means:
    """Means of the word vectors of every text of a part, for any table."""

    def __init__(self, texts: batching.Ragged, vocab: int):
        lengths = np.maximum(texts.lengths, 1)
        weights = np.repeat(1 / lengths, texts.lengths).astype(np.float32)
        parts = weights, texts.values, texts.offsets
        self._bags = scipy.sparse.csr_array(parts, shape=(len(texts), vocab))

    def __call__(self, table: np.ndarray) -> np.ndarray:
        """A text without known words has the mean 0."""
        return self._bags @ table


class Linear:
    """Linear classifiers of several systems, trained side by side.

    They share nothing but the order of texts and the first weights: the loss is the sum
    of theirs, and Adam treats every number by itself.
    """

    def __init__(self, config: Config, classes: int):
        self._config = config
        self._settings = config.classifier
        self._module = jnn.BatchNormClassifier(classes)
        self._tx = optax.adam(self._settings.learning_rate)
        self._step = train.data_parallel(
            train.make_step(self._loss, self._tx), mode=config.run.parallel
        )
        self._probabilities = train.everywhere(self._predict)

    def fit(
        self,
        documents: data.Documents,
        features: Mapping[str, np.ndarray],
        names: Sequence[str],
        folder: epath.Path,
        seed: int,
    ) -> None:
        """Trains, or finds it done.

        Args:
          documents: for labels.
          features: of each part: (texts, systems, dim).
          names: of the systems.
          folder: of the run.
          seed: of order and first weights.
        """
        settings = self._settings
        columns = {
            part: {"features": features[part], "labels": documents.part(part)[1]}
            for part in ("train", "dev", "test")
        }
        batches = _batches(columns["train"], settings, seed)
        steps = settings.epochs * batches.steps_per_epoch
        if finished(folder, steps):
            return
        init_key, train_key = jax.random.split(jax.random.key(seed))
        example = jnp.asarray(features["train"][:2, 0])
        one = self._module.init(init_key, example, deterministic=True)
        variables = {
            "params": jax.tree.map(
                lambda x: jnp.broadcast_to(x, (len(names), *x.shape)), one["params"]
            ),
            "batch_stats": jax.vmap(jnn.feature_statistics, in_axes=1)(
                jnp.asarray(features["train"])
            ),
        }
        state = train.State.create(variables, self._tx, train_key)
        held_out = {part: columns[part] for part in ("dev", "test")}
        train.fit(
            state,
            self._step,
            batches,
            steps,
            folder,
            evaluate=lambda state: self._evaluate(state, held_out, names),
            evaluate_every=batches.steps_per_epoch,
            save_every=steps,
            config={"systems": list(names), "seed": seed},
            name="/".join(folder.parts[-4:]),
            progress=self._config.run.progress,
        )

    def _loss(self, variables, batch, key):
        del key

        def logits_of(variables, features):
            logits, _ = self._module.apply(
                variables, features, deterministic=False, mutable="batch_stats"
            )
            return logits

        logits = jax.vmap(logits_of, in_axes=(0, 1))(variables, batch["features"])
        labels = jnp.broadcast_to(batch["labels"][jnp.newaxis], logits.shape[:2])
        each = losses.softmax_cross_entropy(logits, labels)  # systems batch
        return jnp.sum(jnp.mean(each, axis=1)), {}

    def _predict(self, variables, batch):
        apply = lambda v, x: self._module.apply(v, x, deterministic=True)  # noqa: E731
        logits = jax.vmap(apply, in_axes=(0, 1), out_axes=1)(
            variables, batch["features"]
        )
        return jax.nn.softmax(logits)  # batch systems classes

    def _evaluate(self, state, sets, names) -> dict[str, float]:
        scores = {}
        for part, columns in sets.items():
            found = [
                np.asarray(self._probabilities(state.variables, batch))
                for batch in batching.in_order(columns, _EVAL_BATCH)
            ]
            probabilities = np.concatenate(found)[: len(columns["labels"])]
            for place, name in enumerate(names):
                one = _scores(probabilities[:, place], columns["labels"])
                scores |= {f"{part}/{m}/{name}": value for m, value in one.items()}
        return scores


class Reader(nn.Module):
    """Word vectors that stay as they are, then the paper's BiLSTM."""

    classes: int
    settings: Classifier
    vocab: int
    dim: int

    @nn.compact
    def __call__(
        self, tokens: Int[Array, "batch length"], *, deterministic: bool
    ) -> Float[Array, "batch classes"]:
        embed = jnn.DeltaEmbedding(
            self.vocab,
            self.dim,
            mode="fixed",
            base_init=nn.initializers.zeros,
            name="embed",
        )
        classifier = jnn.BiLSTMPoolClassifier(
            classes=self.classes,
            hidden=self.settings.hidden,
            features=self.settings.features,
            dropout_rate=self.settings.dropout,
            name="classifier",
        )
        return classifier(embed(tokens), tokens > 0, deterministic=deterministic)


class Recurrent:
    """The BiLSTM, compiled once for all tables of one shape."""

    def __init__(self, config: Config, classes: int, vocab: int, dim: int):
        self._config = config
        self._settings = config.classifier
        self._module = Reader(classes, self._settings, vocab + 1, dim)
        self._tx = optax.adam(self._settings.learning_rate)
        self._step = train.data_parallel(
            train.make_step(self._loss, self._tx), mode=config.run.parallel
        )
        self._probabilities = train.everywhere(self._predict)
        self._columns: dict[str, batching.Columns] = {}
        self._buckets: tuple[int, ...] = ()

    def read(self, documents: data.Documents) -> None:
        """Takes the texts, cut; 0 stands for padding, so that rows begin at 1."""
        longest = self._settings.longest
        for part in ("train", "dev", "test"):
            texts, labels = documents.part(part)
            cut = [
                texts.values[start : min(start + longest, stop)] + 1
                for start, stop in zip(texts.offsets, texts.offsets[1:], strict=False)
            ]
            self._columns[part] = {"tokens": batching.Ragged.of(cut), "labels": labels}
        lengths = [c["tokens"].lengths for c in self._columns.values()]
        self._buckets = batching.length_buckets(np.concatenate(lengths), _BUCKETS)

    def fit(self, table: np.ndarray, name: str, folder: epath.Path, seed: int) -> None:
        """Trains on one table, or finds it done."""
        settings = self._settings
        batches = _batches(self._columns["train"], settings, seed, self._buckets)
        steps = settings.epochs * batches.steps_per_epoch
        if finished(folder, steps):
            return
        init_key, train_key = jax.random.split(jax.random.key(seed))
        example = jnp.ones([1, 8], jnp.int32)
        variables = self._module.init(init_key, example, deterministic=True)
        padded = np.concatenate([np.zeros_like(table[:1]), table])
        variables["frozen"]["embed"]["base"] = jnp.asarray(padded)
        state = train.State.create(variables, self._tx, train_key)
        train.fit(
            state,
            self._step,
            batches,
            steps,
            folder,
            evaluate=lambda state: self._evaluate(state, name),
            evaluate_every=batches.steps_per_epoch,
            config={"system": name, "seed": seed},
            name="/".join(folder.parts[-4:]),
            progress=self._config.run.progress,
        )

    def _loss(self, variables, batch, key):
        logits = self._module.apply(
            variables, batch["tokens"], deterministic=False, rngs={"dropout": key}
        )
        loss = jnp.mean(losses.softmax_cross_entropy(logits, batch["labels"]))
        return loss, {}

    def _predict(self, variables, batch):
        logits = self._module.apply(variables, batch["tokens"], deterministic=True)
        return jax.nn.softmax(logits)

    def _evaluate(self, state, name) -> dict[str, float]:
        scores = {}
        for part in ("dev", "test"):
            columns = self._columns[part]
            found = np.empty((len(columns["labels"]), self._module.classes))
            size = self._settings.batch_size
            for batch in batching.in_order(columns, size, self._buckets):
                real = batch["weight"] > 0
                predicted = np.asarray(self._probabilities(state.variables, batch))
                found[batch["index"][real]] = predicted[real]
            one = _scores(found, columns["labels"])
            scores |= {f"{part}/{m}/{name}": value for m, value in one.items()}
        return scores


def finished(folder: epath.Path, steps: int) -> bool:
    """Whether a run of so many steps has come to its end."""
    return (folder / checkpoints.FOLDER / str(steps)).is_dir()


def _batches(
    columns: batching.Columns,
    settings: Classifier,
    seed: int,
    buckets: tuple[int, ...] = (),
) -> batching.Shuffled:
    return batching.Shuffled(
        columns,
        settings.batch_size,
        seed=seed,
        buckets=buckets,
        process_index=jax.process_index(),
        process_count=jax.process_count(),
    )


def _scores(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy and macro one-vs-rest AUC, in per cent."""
    hits = probabilities.argmax(axis=1) == labels
    area = classification.auc_ovr(probabilities, labels)
    return {"accuracy": 100 * float(np.mean(hits)), "AUC": 100 * area}
