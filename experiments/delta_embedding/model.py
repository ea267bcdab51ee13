"""The paper's classifiers over a table that is fixed, tuned, or tuned by a delta."""

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from experiments.delta_embedding.config import Arm, Config, Model
from jaxemb import losses, optim
from jaxemb import nn as jnn
from jaxemb.data import vocab
from jaxemb.eval import classification


class Sentiment(nn.Module):
    """Word vectors, then Kim's CNN or an LSTM."""

    arm: Arm
    model: Model
    classes: int
    vocab: int
    dim: int

    @nn.compact
    def __call__(
        self, tokens: Int[Array, "batch length"], *, deterministic: bool
    ) -> Float[Array, "batch classes"]:
        dtype = jnp.dtype(self.model.dtype)
        embed = jnn.DeltaEmbedding(
            self.vocab,
            self.dim,
            mode=self.arm.mode,
            base_init=nn.initializers.zeros,
            padding_id=vocab.PAD_ID,
            dtype=dtype,
            name="embed",
        )
        if self.model.kind == "cnn":
            classifier = jnn.KimCNN(
                classes=self.classes,
                widths=self.model.widths,
                maps=self.model.maps,
                dropout_rate=self.model.dropout,
                dtype=dtype,
                name="classifier",
            )
        else:
            classifier = jnn.LSTMClassifier(
                classes=self.classes,
                hidden=self.model.hidden,
                dropout_rate=self.model.dropout,
                dtype=dtype,
                name="classifier",
            )
        mask = tokens != vocab.PAD_ID
        return classifier(embed(tokens), mask, deterministic=deterministic)


def initializer(model: Sentiment, table: np.ndarray) -> Callable[[jax.Array], dict]:
    """From a key to the module's variables, with the pretrained table in its place."""
    example = jnp.ones([1, 8], jnp.int32)
    init = jax.jit(lambda key: model.init(key, example, deterministic=True))
    tuned = model.arm.mode == "finetune"
    collection, name = ("params", "table") if tuned else ("frozen", "base")

    def initial(key: jax.Array) -> dict:
        variables = init(key)
        variables[collection]["embed"][name] = jnp.asarray(table)
        return variables

    return initial


def loss_fn(model: Sentiment):
    """Mean cross-entropy, with `c` times the L2,1 norm of the delta."""

    def loss(variables, batch, key):
        logits = model.apply(
            variables, batch["tokens"], deterministic=False, rngs={"dropout": key}
        )
        task = jnp.mean(losses.softmax_cross_entropy(logits, batch["labels"]))
        hits = jnp.argmax(logits, axis=-1) == batch["labels"]
        metrics = {"task_loss": task, "accuracy": jnp.mean(hits.astype(jnp.float32))}
        if model.arm.mode != "delta":
            return task, metrics
        norm = losses.l21(variables["params"]["embed"]["delta"])
        weight = 0.0 if model.arm.prox else model.arm.c
        return task + weight * norm, {**metrics, "delta_norm": norm}

    return loss


def hits(model: Sentiment):
    """Counts the right answers of a batch, as a `Ratio` that adds up over batches."""

    def count(variables, batch) -> classification.Ratio:
        logits = model.apply(variables, batch["tokens"], deterministic=True)
        return classification.accuracy(logits, batch["labels"], batch["weight"] > 0)

    return count


def optimizer(config: Config, arm: Arm) -> optax.GradientTransformation:
    """The host model's optimiser, then the projections of the paper's systems."""
    rate = config.learning_rate
    chain = [
        {
            "adadelta": lambda: optax.adadelta(rate, rho=0.95, eps=1e-6),
            "adam": lambda: optax.adam(rate),
            "sgd": lambda: optax.sgd(rate),
        }[config.optimizer]()
    ]
    if config.model.norm_limit is not None:
        limit = config.model.norm_limit
        chain.append(optim.max_norm(limit, where="classifier/output/kernel"))
    if arm.prox:
        chain.append(optim.group_lasso_prox(rate, arm.c, where="embed/delta"))
    return optax.chain(*chain)
