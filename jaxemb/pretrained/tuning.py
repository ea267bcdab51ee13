"""Where tuning a pretrained encoder begins."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import traverse_util

from jaxemb.errors import InputError
from jaxemb.pretrained.huggingface import Pretrained

_NAME = "encoder"


def variables_above(
    pretrained: Pretrained,
    module: nn.Module,
    key: jax.Array,
    shape: tuple[int, ...] = (1, 2),
) -> dict[str, Any]:
    """The variables of a module above an encoder, with its weights in their place.

    Args:
      pretrained: the encoder's weights.
      module: a head of `jaxemb.nn`, or any module with a submodule `encoder` that is
        called with ids and mask; what else it has is initialised.
      key: for that.
      shape: of ids; `MultipleChoice` takes three axes.

    Raises:
      InputError: where the module has no encoder, or one of another shape.
    """
    ids = jnp.ones(shape, jnp.int32)

    def initial(key):
        return module.init(key, ids, ids > 0, deterministic=True)

    wanted = _flat(jax.eval_shape(initial, key))
    given = {p: jnp.asarray(v) for p, v in _flat(pretrained.params).items()}
    own = {path: path[path.index(_NAME) + 1 :] for path in wanted if _NAME in path}
    other = [
        "/".join(path)
        for path, inner in own.items()
        if inner not in given or given[inner].shape != wanted[path].shape
    ]
    if other or not own:
        found = f"{', '.join(other[:3])} of another shape" if other else "it has none"
        raise InputError(f"the module's encoder is not that of the weights: {found}")

    # Of what is replaced nothing is drawn: the compiler leaves it out.
    @jax.jit
    def rest(key):
        return {p: v for p, v in _flat(initial(key)).items() if p not in own}

    placed = {path: given[inner] for path, inner in own.items()}
    return traverse_util.unflatten_dict(rest(key) | placed)


def _flat(tree: Any) -> dict[tuple[str, ...], Any]:
    return traverse_util.flatten_dict(tree)
