"""Autoencoded meta-embeddings (Bao & Bollegala 2018; O'Neill & Bollegala 2020)."""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.meta import coded
from jaxemb.nn.meta.coded import Coded

_LECUN = nn.initializers.lecun_normal()


class AEME(nn.Module):
    """One autoencoder of all sources side by side.

        Z = tanh(W_e X + b_e)      X' = W_d Z + b_d

    ("Meta-embedding as auxiliary task", sec. 3.1, which calls it concatenated.) With
    several hidden layers the decoder has the same ones in reverse. Dropout is on the
    code, on its way to the decoder and to whoever reads it.
    """

    widths: Sequence[int]
    hidden: Sequence[int] = (200,)  # the last is the width of the code
    dropout_rate: float = 0.0
    linear: bool = False  # no tanh: then the best output is that of an SVD
    kernel_init: nn.initializers.Initializer = _LECUN
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls, code and output

    @property
    def parts(self) -> tuple[int, ...]:
        """The output is one vector."""
        return (sum(self.widths),)

    @nn.compact
    def __call__(
        self,
        sources: Float[Array, "*batch dims"],
        known: Bool[Array, "*batch source"],
        *,
        deterministic: bool,
    ) -> Coded:
        """Encodes and decodes every word."""
        target, counted = coded.masked(sources, known, self.widths)
        states = target.astype(self.dtype)
        for i, width in enumerate(self.hidden):
            states = self._activated(coded.dense(self, width, f"encode_{i}")(states))
        states = Dropout(self.dropout_rate, name="dropout")(
            states, deterministic=deterministic
        )
        code = states
        for i, width in enumerate(reversed(self.hidden[:-1])):
            states = self._activated(coded.dense(self, width, f"inner_{i}")(states))
        output = coded.dense(self, sum(self.widths), "decode")(states)
        return Coded(code, output, target, counted, coded.no_agreement(known))

    def _activated(self, x: Array) -> Array:
        return x if self.linear else nn.tanh(x)


class _PerSource(nn.Module):
    """An encoder and a decoder a source."""

    widths: Sequence[int]
    hidden: int = 200  # of each encoder
    dropout_rate: float = 0.0
    kernel_init: nn.initializers.Initializer = _LECUN
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls, code and output

    @property
    def parts(self) -> tuple[int, ...]:
        """Every source is an output of its own."""
        return tuple(self.widths)

    def _encoded(self, target: Array, known: Array) -> list[Array]:
        """`E_i(x_i) = tanh(W_i x_i + b_i)`, 0 where source i lacks the word."""
        codes = []
        for i, x in enumerate(coded.split(target.astype(self.dtype), self.widths)):
            code = nn.tanh(coded.dense(self, self.hidden, f"encode_{i}")(x))
            codes.append(jnp.where(known[..., i, None], code, 0))
        return codes

    def _decoded(self, codes: Sequence[Array], deterministic: bool) -> Array:
        """All `D_i(c_i)` side by side; the decoders are linear."""
        outputs = []
        for i, (width, code) in enumerate(zip(self.widths, codes, strict=True)):
            dropout = Dropout(self.dropout_rate, name=f"dropout_{i}")
            code = dropout(code, deterministic=deterministic)
            outputs.append(coded.dense(self, width, f"decode_{i}")(code))
        return jnp.concatenate(outputs, axis=-1)


class DAEME(_PerSource):
    """Decoupled: an autoencoder a source, whose codes are drawn together.

        sum_i loss(D_i(E_i(x_i)), x_i) + sum_{i<j} |E_i(x_i) - E_j(x_j)|^2

    The second sum, over the sources that have the word, is `agreement`. The code is
    `E_1(x_1) ; ... ; E_N(x_N)`.
    """

    @nn.compact
    def __call__(
        self,
        sources: Float[Array, "*batch dims"],
        known: Bool[Array, "*batch source"],
        *,
        deterministic: bool,
    ) -> Coded:
        """Encodes and decodes every word."""
        target, counted = coded.masked(sources, known, self.widths)
        codes = self._encoded(target, known)
        output = self._decoded(codes, deterministic)
        agreement = coded.no_agreement(known)
        for i, one in enumerate(codes):
            for j, other in enumerate(codes[:i]):
                gap = jnp.square((one - other).astype(jnp.float32)).sum(axis=-1)
                agreement += jnp.where(known[..., i] & known[..., j], gap, 0)
        code = jnp.concatenate(codes, axis=-1)
        return Coded(code, output, target, counted, agreement)


class CAEME(_PerSource):
    """Concatenated: `m = normalise(E_1(x_1) ; ... ; E_N(x_N))`, decoded by every D_i.

    The loss is `sum_i loss(D_i(m), x_i)`.
    """

    @nn.compact
    def __call__(
        self,
        sources: Float[Array, "*batch dims"],
        known: Bool[Array, "*batch source"],
        *,
        deterministic: bool,
    ) -> Coded:
        """Encodes and decodes every word."""
        target, counted = coded.masked(sources, known, self.widths)
        codes = self._encoded(target, known)
        code = numerics.safe_unit(jnp.concatenate(codes, axis=-1)).astype(self.dtype)
        output = self._decoded([code] * len(self.widths), deterministic)
        return Coded(code, output, target, counted, coded.no_agreement(known))


class AAEME(_PerSource):
    """Averaged: `m = normalise(sum_i E_i(x_i))`, decoded by every D_i."""

    @nn.compact
    def __call__(
        self,
        sources: Float[Array, "*batch dims"],
        known: Bool[Array, "*batch source"],
        *,
        deterministic: bool,
    ) -> Coded:
        """Encodes and decodes every word."""
        target, counted = coded.masked(sources, known, self.widths)
        codes = self._encoded(target, known)
        code = numerics.safe_unit(jnp.sum(jnp.stack(codes), axis=0)).astype(self.dtype)
        output = self._decoded([code] * len(self.widths), deterministic)
        return Coded(code, output, target, counted, coded.no_agreement(known))
