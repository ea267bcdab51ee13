"""Meta-embeddings that are parameters themselves (Yin & Schütze 2016)."""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxemb.nn.meta import coded
from jaxemb.nn.meta.coded import Coded


class OneToN(nn.Module):
    """1TON: a free vector m_w a word, projected to each source that has the word.

        sum_i |P_i m_w - x_i(w)|^2  (+ l2, the optimiser's)

    With `learn_missing`, 1TON+: what a source lacks is learned too, and asked for.
    """

    vocab: int
    widths: Sequence[int]
    features: int = 200
    learn_missing: bool = False
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls, code and output

    @property
    def parts(self) -> tuple[int, ...]:
        """Every source is an output of its own."""
        return tuple(self.widths)

    @nn.compact
    def __call__(
        self,
        ids: Int[Array, "*batch"],
        sources: Float[Array, "*batch dims"],
        known: Bool[Array, "*batch source"],
    ) -> Coded:
        """Projects the vectors of words; `sources` and `known` are what they have."""
        target, counted = coded.masked(sources, known, self.widths)
        free = nn.Embed(self.vocab, self.features, dtype=self.dtype, name="free")
        code = free(ids)
        output = nn.Dense(
            sum(self.widths), use_bias=False, dtype=self.dtype, name="project"
        )(code)
        if self.learn_missing:
            rows = nn.Embed(self.vocab, sum(self.widths), name="missing")
            target = jnp.where(counted, target, rows(ids))
            counted = jnp.ones_like(counted)
        return Coded(code, output, target, counted, coded.no_agreement(known))
