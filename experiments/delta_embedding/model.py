"""The paper's models over a table that is fixed, tuned, or tuned by a delta.

A module takes a batch by the names of its columns; `objective` turns its output into
the loss of the task.
"""

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from experiments.delta_embedding.config import Arm, Config, Model
from experiments.delta_embedding.task import Task
from jaxemb import losses, optim
from jaxemb import nn as jnn
from jaxemb.data import vocab

# What the authors' programs add under Adadelta's roots: Kim's own, and TensorFlow's
# default, which BiDAF's has.
_ADADELTA = {"sentiment": 1e-6, "inference": 1e-6, "reading": 1e-8}

Batch = Mapping[str, Any]
Objective = tuple[Float[Array, ""], dict[str, Float[Array, ""]]]


class _Host(nn.Module):
    """What the modules share: the table below, and which columns hold words."""

    arm: Arm
    model: Model
    classes: int
    vocab: int
    dim: int

    texts = ("tokens",)

    @property
    def dtype(self) -> Any:
        return jnp.dtype(self.model.dtype)

    def embedding(self) -> jnn.DeltaEmbedding:
        return jnn.DeltaEmbedding(
            self.vocab,
            self.dim,
            mode=self.arm.mode,
            base_init=nn.initializers.zeros,
            padding_id=vocab.PAD_ID,
            dtype=self.dtype,
            name="embed",
        )

    def looked_up(self, batch: Batch) -> list[Array]:
        """Vectors and mask of each text in turn."""
        embed = self.embedding()
        return [
            x
            for name in self.texts
            for x in (embed(batch[name]), batch[name] != vocab.PAD_ID)
        ]

    def objective(self, outputs: Any, batch: Batch) -> Objective:
        """Mean cross-entropy of the classes, and the share that is right."""
        task = jnp.mean(losses.softmax_cross_entropy(outputs, batch["labels"]))
        hits = jnp.argmax(outputs, axis=-1) == batch["labels"]
        return task, {"accuracy": jnp.mean(hits.astype(jnp.float32))}


class Sentiment(_Host):
    """Word vectors, then Kim's CNN or an LSTM."""

    @nn.compact
    def __call__(
        self, batch: Batch, *, deterministic: bool
    ) -> Float[Array, "batch classes"]:
        inputs = self.looked_up(batch)
        if self.model.kind == "cnn":
            classifier = jnn.KimCNN(
                classes=self.classes,
                widths=self.model.widths,
                maps=self.model.maps,
                dropout_rate=self.model.dropout,
                dtype=self.dtype,
                name="classifier",
            )
        else:
            classifier = jnn.LSTMClassifier(
                classes=self.classes,
                hidden=self.model.hidden,
                dropout_rate=self.model.dropout,
                dtype=self.dtype,
                name="classifier",
            )
        return classifier(*inputs, deterministic=deterministic)


class Inference(_Host):
    """Word vectors, then ESIM."""

    texts = ("premise", "hypothesis")

    @nn.compact
    def __call__(
        self, batch: Batch, *, deterministic: bool
    ) -> Float[Array, "batch classes"]:
        esim = jnn.ESIM(
            classes=self.classes,
            hidden=self.model.hidden,
            dropout_rate=self.model.dropout,
            dtype=self.dtype,
            name="esim",
        )
        return esim(*self.looked_up(batch), deterministic=deterministic)


class Reading(_Host):
    """Word vectors, then BiDAF."""

    texts = ("context", "question")

    @nn.compact
    def __call__(self, batch: Batch, *, deterministic: bool) -> jnn.SpanLogits:
        bidaf = jnn.BiDAF(
            hidden=self.model.hidden,
            dropout_rate=self.model.dropout,
            dtype=self.dtype,
            name="bidaf",
        )
        return bidaf(*self.looked_up(batch), deterministic=deterministic)

    def objective(self, outputs: Any, batch: Batch) -> Objective:
        """Sum of both ends' mean cross-entropies, and the share with both right."""
        task, hits = 0.0, True
        for logits, label in ((outputs.start, "start"), (outputs.end, "end")):
            task += jnp.mean(losses.softmax_cross_entropy(logits, batch[label]))
            hits &= jnp.argmax(logits, axis=-1) == batch[label]
        return task, {"accuracy": jnp.mean(hits.astype(jnp.float32))}


def build(config: Config, arm: Arm, task: Task, dim: int) -> _Host:
    """The module of a task."""
    kinds = {"sentiment": Sentiment, "inference": Inference, "reading": Reading}
    made = kinds[config.kind.name]
    return made(arm, config.model, task.classes, len(task.vocab), dim)


def initializer(model: _Host, table: np.ndarray) -> Callable[[jax.Array], dict]:
    """From a key to the module's variables, with the pretrained table in its place."""
    example = {name: jnp.ones([1, 8], jnp.int32) for name in model.texts}
    init = jax.jit(lambda key: model.init(key, example, deterministic=True))
    tuned = model.arm.mode == "finetune"
    collection, name = ("params", "table") if tuned else ("frozen", "base")

    def initial(key: jax.Array) -> dict:
        variables = init(key)
        variables[collection]["embed"][name] = jnp.asarray(table)
        return variables

    return initial


def loss_fn(model: _Host):
    """The task's loss, with `c` times the L2,1 norm of the delta."""

    def loss(variables, batch, key):
        outputs = model.apply(
            variables, batch, deterministic=False, rngs={"dropout": key}
        )
        task, metrics = model.objective(outputs, batch)
        metrics = {"task_loss": task, **metrics}
        if model.arm.mode != "delta":
            return task, metrics
        norm = losses.l21(variables["params"]["embed"]["delta"])
        weight = 0.0 if model.arm.prox else model.arm.c
        return task + weight * norm, {**metrics, "delta_norm": norm}

    return loss


def optimizer(config: Config, arm: Arm, num_steps: int) -> optax.GradientTransformation:
    """The host model's optimiser, then the projections of the paper's systems.

    `num_steps` is where a rate that decays ends.
    """
    rate = config.learning_rate
    if config.decay == "linear":
        rate = optim.warmup_linear(rate, 0, num_steps)
    eps = _ADADELTA[config.kind.name]
    chain = [
        {
            "adadelta": lambda: optax.adadelta(rate, rho=0.95, eps=eps),
            "adam": lambda: optax.adam(rate),
            "sgd": lambda: optax.sgd(rate),
        }[config.optimizer]()
    ]
    if config.model.norm_limit is not None:
        limit = config.model.norm_limit
        chain.append(optim.max_norm(limit, where="classifier/output/kernel"))
    if arm.prox:
        chain.append(optim.group_lasso_prox(rate, arm.c, where="embed/delta"))
    if config.model.ema is not None:
        chain.append(optim.parameter_ema(config.model.ema))
    return optax.chain(*chain)
