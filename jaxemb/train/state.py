"""What a training run carries from one step to the next."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct


@struct.dataclass
class State:
    """Everything that a step reads and replaces; a pytree.

    Seeds that are trained together are a leading axis of every field but `frozen`.
    """

    step: Any  # int32 scalar: steps taken so far
    key: Any  # uint32 key data, the root of the run's randomness; raw, to be saved
    params: Any  # the collection "params"
    opt_state: Any  # of the optax transformation
    frozen: Any  # the other collections, read and never written

    @classmethod
    def create(
        cls,
        variables: Mapping[str, Any],
        tx: optax.GradientTransformation,
        key: jax.Array,
    ) -> "State":
        """The state at step 0 of a module's `init` result."""
        frozen = {name: tree for name, tree in variables.items() if name != "params"}
        return cls(
            step=jnp.zeros([], jnp.int32),
            key=jax.random.key_data(key),
            params=variables["params"],
            opt_state=tx.init(variables["params"]),
            frozen=frozen,
        )

    @property
    def variables(self) -> dict[str, Any]:
        """The argument of a module's `apply`."""
        return {"params": self.params, **self.frozen}

    @property
    def step_key(self) -> jax.Array:
        """The key of the step that comes next."""
        return jax.random.fold_in(jax.random.wrap_key_data(self.key), self.step)
