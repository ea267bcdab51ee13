"""Word-embedding tables that are kept, tuned, or kept and corrected by a delta."""

from collections.abc import Mapping
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxemb.errors import InputError


class DeltaEmbedding(nn.Module):
    """Looks up `w = w_unsup + w_delta` ("Delta Embedding Learning", eq. 1).

    `mode` says what training may change:

    * "fixed": nothing; the table is the variable `base` of the collection "frozen".
    * "finetune": the table itself, the parameter `table` that starts at `base_init`.
    * "delta": the parameter `delta`, which starts at zero and is added to a frozen
      `base`; regularise it with `losses.l21` or `optim.group_lasso_prox`.

    All three give the same output before training. An id outside `[0, vocab)`, a
    negative one too, gives NaN. The gradient is a scatter-add of the rows looked up.
    """

    vocab: int
    dim: int
    mode: Literal["fixed", "finetune", "delta"] = "delta"
    base_init: nn.initializers.Initializer = nn.initializers.normal(0.1)
    padding_id: int | None = 0  # its vector is 0 and stays 0; None: no such id
    dtype: jax.typing.DTypeLike = jnp.float32  # of the output; the tables are float32

    def setup(self):
        """Makes the variables of the mode."""
        if self.mode not in ("fixed", "finetune", "delta"):
            raise InputError(
                f"DeltaEmbedding.mode is {self.mode!r}; expected 'fixed', 'finetune' "
                "or 'delta'."
            )
        if self.padding_id is not None and not 0 <= self.padding_id < self.vocab:
            raise InputError(
                f"DeltaEmbedding.padding_id is {self.padding_id}; expected None or an "
                f"id in [0, {self.vocab})."
            )
        if self.mode == "finetune":
            self.table = self.param("table", self._initial_table)
        else:
            # Drawn as the first parameter would be: one base for all modes of a seed.
            self.base = self.variable(
                "frozen",
                "base",
                lambda: self._initial_table(self.make_rng("params")),
            )
        if self.mode == "delta":
            self.delta = self.param(
                "delta", nn.initializers.zeros, (self.vocab, self.dim), jnp.float32
            )

    def _initial_table(
        self, key: PRNGKeyArray
    ) -> Float[Array, "{self.vocab} {self.dim}"]:
        table = self.base_init(key, (self.vocab, self.dim), jnp.float32)
        if self.padding_id is None:
            return table
        return table.at[self.padding_id].set(0)

    def __call__(self, ids: Int[Array, "*batch"]) -> Float[Array, "*batch {self.dim}"]:
        """The vectors of `ids`, in `dtype`; exactly 0 at padding."""
        ids = ids.astype(jnp.int32)
        # `take` would count a negative id from the end; past the end it gives NaN.
        rows = jnp.where(ids < 0, self.vocab, ids)
        if self.mode == "finetune":
            vectors = jnp.take(self.table, rows, axis=0)
        else:
            vectors = jnp.take(jax.lax.stop_gradient(self.base.value), rows, axis=0)
        if self.mode == "delta":
            vectors += jnp.take(self.delta, rows, axis=0)
        if self.padding_id is not None:
            vectors = jnp.where((ids == self.padding_id)[..., None], 0, vectors)
        return vectors.astype(self.dtype)

    def export(self) -> Float[Array, "{self.vocab} {self.dim}"]:
        """The whole table that the ids look up, in float32."""
        if self.mode == "finetune":
            return self.table
        if self.mode == "fixed":
            return self.base.value
        return self.base.value + self.delta


def table_init(matrix: Float[np.ndarray, "vocab dim"]) -> nn.initializers.Initializer:
    """An initialiser that gives `matrix`, for `DeltaEmbedding.base_init`."""

    def init(key, shape, dtype=jnp.float32):
        del key
        if tuple(shape) != matrix.shape:
            raise InputError(
                f"The table to start from is {matrix.shape}; expected {tuple(shape)}, "
                "the module's (vocab, dim)."
            )
        return jnp.asarray(matrix, dtype)

    return init


def effective_table(
    params: Mapping[str, Any], frozen: Mapping[str, Any] | None = None
) -> Any:
    """The table of the one `DeltaEmbedding` in a checkpoint, without its module.

    Args:
      params: the collection "params", of the module alone or of a whole model.
      frozen: the collection "frozen" likewise; may be absent after "finetune".

    Returns:
      `base + delta`, `base` or `table`, as numpy or jax, whichever was given.
    """
    trained: dict[str, Any] = traverse_util.flatten_dict(dict(params), sep="/")
    kept: dict[str, Any] = traverse_util.flatten_dict(dict(frozen or {}), sep="/")
    bases = [path for path in kept if path.split("/")[-1] == "base"]
    tables = [path for path in trained if path.split("/")[-1] == "table"]
    if len(bases) + len(tables) != 1:
        found = sorted(bases + tables)
        raise InputError(
            f"Found {len(found)} embedding tables {found}; expected one, so pass the "
            "part of params and frozen that holds it."
        )
    if tables:
        return trained[tables[0]]
    delta = trained.get(bases[0].removesuffix("base") + "delta")
    return kept[bases[0]] if delta is None else kept[bases[0]] + delta
