"""Target autoencoders: a source is predicted from the others."""

import functools
from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb.nn.dropout import Dropout
from jaxemb.nn.meta import coded
from jaxemb.nn.meta.coded import Coded


class TAE(nn.Module):
    """Predicts source t from the others ("Meta-embedding as auxiliary task", sec. 3.2).

        h = tanh(W_e [x_i, i != t] + b_e)      x_t' = W_d h + b_d

    The code is `h ; x_t`. With `pooled`, as the paper's sec. 2.1 has it, each input
    source has an autoencoder of its own that predicts x_t, and h is the mean of their
    hidden layers over the sources that have the word; its output is the mean of theirs.
    """

    widths: Sequence[int]
    target: int
    hidden: int = 200
    dropout_rate: float = 0.0
    pooled: bool = False
    kernel_init: nn.initializers.Initializer = nn.initializers.lecun_normal()
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls, code and output

    @property
    def parts(self) -> tuple[int, ...]:
        """The output is source t."""
        return (self.widths[self.target],)

    @nn.compact
    def __call__(
        self,
        sources: Float[Array, "*batch dims"],
        known: Bool[Array, "*batch source"],
        *,
        deterministic: bool,
    ) -> Coded:
        """Predicts the target of every word."""
        whole, everywhere = coded.masked(sources, known, self.widths)
        inputs = coded.split(whole.astype(self.dtype), self.widths)
        target = coded.split(whole, self.widths)[self.target]
        counted = coded.split(everywhere, self.widths)[self.target]
        others = [i for i in range(len(self.widths)) if i != self.target]
        if self.pooled:
            groups = [[i] for i in others]
        else:
            groups = [others]
        hidden, outputs, has = [], [], []
        for number, group in enumerate(groups):
            joined = jnp.concatenate([inputs[i] for i in group], axis=-1)
            states = nn.tanh(coded.dense(self, self.hidden, f"encode_{number}")(joined))
            states = Dropout(self.dropout_rate, name=f"dropout_{number}")(
                states, deterministic=deterministic
            )
            hidden.append(states)
            outputs.append(
                coded.dense(self, target.shape[-1], f"decode_{number}")(states)
            )
            has.append(jnp.any(known[..., jnp.array(group)], axis=-1))
        h, output = _mean(hidden, has), _mean(outputs, has)
        code = jnp.concatenate([h, inputs[self.target]], axis=-1)
        return Coded(code, output, target, counted, coded.no_agreement(known))


class MTE(nn.Module):
    """The mean of the hidden layers of N target autoencoders, one a target.

    They share nothing, so that `target_t` of the parameters is a trained `TAE` of
    target t.
    """

    widths: Sequence[int]
    hidden: int = 200
    dropout_rate: float = 0.0
    pooled: bool = False
    kernel_init: nn.initializers.Initializer = nn.initializers.lecun_normal()
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls, code and output

    @property
    def parts(self) -> tuple[int, ...]:
        """Every source is an output of its own."""
        return tuple(self.widths)

    @nn.compact
    def __call__(
        self,
        sources: Float[Array, "*batch dims"],
        known: Bool[Array, "*batch source"],
        *,
        deterministic: bool,
    ) -> Coded:
        """Predicts every source of every word from the others."""
        found = []
        for target in range(len(self.widths)):
            module = TAE(
                self.widths,
                target,
                self.hidden,
                self.dropout_rate,
                self.pooled,
                self.kernel_init,
                self.dtype,
                name=f"target_{target}",
            )
            found.append(module(sources, known, deterministic=deterministic))
        hidden = [one.code[..., : self.hidden] for one in found]
        output, target, counted = (
            jnp.concatenate([getattr(one, name) for one in found], axis=-1)
            for name in ("output", "target", "counted")
        )
        code = jnp.mean(jnp.stack(hidden), axis=0)
        return Coded(code, output, target, counted, found[0].agreement)


def _mean(arrays: Sequence[Array], has: Sequence[Array]) -> Array:
    """Over the groups that have anything of the word; of all where none has."""
    if len(arrays) == 1:
        return arrays[0]
    none = ~functools.reduce(jnp.logical_or, has)
    weights = [(one | none)[..., None].astype(arrays[0].dtype) for one in has]
    # A sum of products, not the sum over an axis of a stack: under vmap XLA's CPU
    # compiler (jaxlib 0.10.2) gives the latter the values of the first model for all.
    products = [w * x for w, x in zip(weights, arrays, strict=True)]
    return functools.reduce(jnp.add, products) / functools.reduce(jnp.add, weights)
