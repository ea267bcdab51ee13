"""BiDAF: finds the answer to a question as a span of its paragraph."""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics
from jaxemb.nn.attention import Trilinear, attend
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.highway import Highway
from jaxemb.nn.recurrent import BiLSTM


class SpanLogits(NamedTuple):
    """Unnormalised scores of every word as the first and as the last of the answer."""

    start: Any  # batch length, float32; the lowest number at padding
    end: Any  # batch length, float32


class BiDAF(nn.Module):
    """Bidirectional attention flow (Seo et al. 2017) over given word vectors.

    With one highway network and one contextual BiLSTM for both texts, h_t are the
    states of the context's words and u_j those of the question's:

        S_tj = w . [h_t; u_j; h_t * u_j]
        c_t  = sum_j softmax_j(S_tj) u_j            context to query
        q    = sum_t softmax_t(max_j S_tj) h_t      query to context
        g_t  = [h_t; c_t; h_t * c_t; h_t * q]
        m    = BiLSTM(BiLSTM(g))
        start_t = w1 . [g_t; m_t]    end_t = w2 . [g_t; BiLSTM(m)_t]

    Softmax and maximum are over real words. Dropout is before each LSTM and before the
    two outputs, as in the authors' program. `eval.squad.best_span` decodes.
    """

    hidden: int = 100  # of each direction of every LSTM
    highway_layers: int = 2
    dropout_rate: float = 0.2
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls; softmax and logits float32

    @nn.compact
    def __call__(
        self,
        context: Float[Array, "batch length dim"],
        context_mask: Bool[Array, "batch length"],
        question: Float[Array, "batch words dim"],
        question_mask: Bool[Array, "batch words"],
        *,
        deterministic: bool,
    ) -> SpanLogits:
        """The logits of both ends of the answer."""
        drop = Dropout(self.dropout_rate, deterministic=deterministic, name="dropout")

        def lstm(name: str) -> BiLSTM:
            return BiLSTM(self.hidden, dtype=self.dtype, name=name)

        highway = Highway(self.highway_layers, dtype=self.dtype, name="highway")
        contextual = lstm("contextual")
        # Zeros at padding: the weights' gradient multiplies them, and 0 * NaN is NaN.
        h, u = (
            contextual(drop(highway(jnp.where(mask[..., None], x, 0))), mask)[0]
            for x, mask in ((context, context_mask), (question, question_mask))
        )
        scores = Trilinear(name="similarity")(h, u)  # batch length words
        to_query, weights = attend(scores, question_mask, u)
        self.sow("intermediates", "attention", weights)
        highest = numerics.masked_max(scores, question_mask[:, None, :])
        to_context, _ = attend(highest[:, None, :], context_mask, h)  # batch 1 dim
        g = jnp.concatenate([h, to_query, h * to_query, h * to_context], axis=-1)
        m, _ = lstm("modeling_0")(drop(g), context_mask)
        m, _ = lstm("modeling_1")(drop(m), context_mask)
        m_end, _ = lstm("end_encoder")(drop(m), context_mask)
        lowest = jnp.finfo(jnp.float32).min

        def logits(states: Array, name: str) -> Array:
            features = drop(jnp.concatenate([g, states], axis=-1))
            dense = nn.Dense(1, use_bias=False, dtype=self.dtype, name=name)
            scores = dense(features)[..., 0].astype(jnp.float32)
            return jnp.where(context_mask, scores, lowest)

        return SpanLogits(logits(m, "start"), logits(m_end, "end"))
