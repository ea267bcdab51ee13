"""A model, data and step that compile in a second, shared by the training tests."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxemb import train
from jaxemb.data import batching
from jaxemb.nn.dropout import Dropout


class Tiny(nn.Module):
    """Mean of embeddings, dropout, one Dense."""

    @nn.compact
    def __call__(self, tokens, *, deterministic):
        x = nn.Embed(20, 8, name="embed")(tokens).mean(axis=1)
        x = Dropout(0.3, name="dropout")(x, deterministic=deterministic)
        return nn.Dense(2, name="classify")(x)


def batches(batch_size=16, seed=0, examples=100, **split):
    rng = np.random.default_rng(7)
    tokens = rng.integers(0, 20, (examples, 6)).astype(np.int32)
    labels = (tokens.sum(axis=1) % 2).astype(np.int32)
    columns = {"tokens": tokens, "labels": labels}
    return batching.Shuffled(columns, batch_size, seed, **split)


def loss_fn(variables, batch, key):
    logits = Tiny().apply(
        variables, batch["tokens"], deterministic=False, rngs={"dropout": key}
    )
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"])
    hits = jnp.argmax(logits, axis=-1) == batch["labels"]
    return jnp.mean(loss), {"accuracy": jnp.mean(hits.astype(jnp.float32))}


TX = optax.adam(1e-2)


def state(seed=0):
    init_key, train_key = jax.random.split(jax.random.key(seed))
    variables = Tiny().init(init_key, np.zeros((1, 6), np.int32), deterministic=True)
    return train.State.create(variables, TX, train_key)


def step(**options):
    return train.make_step(loss_fn, TX, **options)


def hits(variables, batch):
    logits = Tiny().apply(variables, batch["tokens"], deterministic=True)
    return jnp.sum(jnp.argmax(logits, axis=-1) == batch["labels"])


def evaluate(state):
    whole = train.everywhere(hits)(state.variables, batches(96)(0))
    return {"dev/accuracy": float(whole) / 96}
