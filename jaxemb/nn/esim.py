"""ESIM: whether one sentence follows from another."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics
from jaxemb.nn.attention import attend
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.recurrent import BiLSTM


class ESIM(nn.Module):
    """Enhanced sequential inference (Chen et al. 2017) as MultiNLI's authors have it.

    With a_i and b_j the states of two BiLSTMs, one for each sentence:

        e_ij = a_i . b_j
        c_i  = sum_j softmax_j(e_ij) b_j      d_j = sum_i softmax_i(e_ij) a_i
        v_i  = BiLSTM([a; c; a - c; a * c])   w_j = BiLSTM([b; d; b - d; b * d])
        logits = Dense(dropout(tanh(Dense([mean v; mean w; max v; max w]))))

    Nothing is shared between the sentences and nothing is projected before the second
    BiLSTMs (Williams et al. 2018). Softmax, mean and maximum are over real words;
    dropout is on the word vectors and before the last layer.
    """

    classes: int = 3
    hidden: int = 300  # of each direction of every LSTM, and of the tanh layer
    dropout_rate: float = 0.5
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls; softmax and logits float32

    @nn.compact
    def __call__(
        self,
        premise: Float[Array, "batch length dim"],
        premise_mask: Bool[Array, "batch length"],
        hypothesis: Float[Array, "batch words dim"],
        hypothesis_mask: Bool[Array, "batch words"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch {self.classes}"]:
        """The logits, in float32."""
        drop = Dropout(self.dropout_rate, deterministic=deterministic, name="dropout")

        def encode(inputs: Array, mask: Array, name: str) -> Array:
            return BiLSTM(self.hidden, dtype=self.dtype, name=name)(inputs, mask)[0]

        a = encode(drop(premise), premise_mask, "premise")
        b = encode(drop(hypothesis), hypothesis_mask, "hypothesis")
        scores = jnp.einsum("bid,bjd->bij", a, b, preferred_element_type=jnp.float32)
        from_b, weights = attend(scores, hypothesis_mask, b)
        from_a, back = attend(jnp.swapaxes(scores, 1, 2), premise_mask, a)
        self.sow("intermediates", "premise_attention", weights)
        self.sow("intermediates", "hypothesis_attention", back)
        means, highest = [], []
        for own, other, mask, name in (
            (a, from_b, premise_mask, "compose_premise"),
            (b, from_a, hypothesis_mask, "compose_hypothesis"),
        ):
            enhanced = jnp.concatenate([own, other, own - other, own * other], axis=-1)
            states = encode(enhanced, mask, name)
            means.append(numerics.masked_mean(states, mask[..., None], axis=1))
            highest.append(numerics.masked_max(states, mask[..., None], axis=1))
        pooled = jnp.concatenate([*means, *highest], axis=-1).astype(self.dtype)
        features = nn.tanh(nn.Dense(self.hidden, dtype=self.dtype, name="mix")(pooled))
        self.sow("intermediates", "features", features)
        return nn.Dense(self.classes, name="output")(drop(features).astype(jnp.float32))
