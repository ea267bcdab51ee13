"""A small differentiable model over embeddings, in jax and in torch."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxemb import losses

BATCH, LENGTH, DIM, HIDDEN, CLASSES = 3, 4, 5, 6, 3
_rng = np.random.default_rng(0)
E = _rng.normal(size=(BATCH, LENGTH, DIM)).astype(np.float32)
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]], bool)
LABELS = np.array([0, 2, 1])
PARAMS = {
    "inner": _rng.normal(size=(DIM, HIDDEN)).astype(np.float32),
    "outer": _rng.normal(size=(HIDDEN, CLASSES)).astype(np.float32),
}


def logits(params, x, mask=MASK):
    """Two layers over the mean of tanh states."""
    states = jnp.where(jnp.asarray(mask)[..., None], jnp.tanh(x @ params["inner"]), 0)
    count = jnp.sum(jnp.asarray(mask), axis=1, keepdims=True).astype(x.dtype)
    return jnp.sum(states, axis=1) / count @ params["outer"]


def logits_of(params):
    return lambda x, key: logits(params, x)


def loss_of(found):
    return losses.softmax_cross_entropy(found, jnp.asarray(LABELS))


def jax_params():
    return jax.tree.map(jnp.asarray, PARAMS)


def torch_logits(torch, params, x):
    mask = torch.tensor(MASK)[..., None].to(x.dtype)
    states = torch.tanh(x @ params["inner"]) * mask
    return states.sum(1) / mask.sum(1) @ params["outer"]


def torch_params(torch):
    return {k: torch.tensor(v, requires_grad=True) for k, v in PARAMS.items()}
