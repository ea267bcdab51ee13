"""Students that imitate a word table, and the tagger that they are put into."""

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from experiments.subword_reconstruction.config import Config, Head
from jaxemb import losses
from jaxemb import nn as jnn
from jaxemb.data import vocab
from jaxemb.eval import classification
from jaxemb.losses import distances
from jaxemb.nn.characters import uniform_rows

DISTANCES: Mapping[str, distances.Distance] = {
    "D1": distances.d1,
    "D2": distances.d2,
    "Dsqrt2": distances.d_sqrt2,
    "Dinf": distances.d_inf,
    "Dcos": distances.d_cos,
}


def student(config: Config, head: Head, characters: int, dim: int) -> jnn.CharBiLSTM:
    """The character model, as wide as the teacher."""
    return jnn.CharBiLSTM(characters, dim, config.hidden, head)


def initial(module: nn.Module, seed: int, inputs: int = 1) -> dict:
    """The parameters of a module that has learnt nothing.

    Args:
      module: a student or a tagger.
      seed: of the draw.
      inputs: how many matrices of numbers the module takes.
    """
    numbers = inputs * [jax.ShapeDtypeStruct((1, 4), jnp.int32)]
    # Lazy, since compiling the initialisers of LSTMs as one program takes seconds.
    variables = module.lazy_init(jax.random.key(seed), *numbers, deterministic=True)
    return variables["params"]


def reconstruction(module: jnn.CharBiLSTM, distance: str):
    """The mean over the batch's words of their distance to the teacher (eq. 1)."""

    def loss(variables, batch, key):
        del key
        vectors = module.apply(variables, batch["characters"], deterministic=True)
        return jnp.mean(DISTANCES[distance](batch["teacher"], vectors)), {}

    return loss


def states(module: jnn.CharBiLSTM) -> Callable[[Any, Array], Float[Array, "words _"]]:
    """The last states of both LSTMs, which the head projects."""

    def of(variables, characters):
        _, sown = module.apply(
            variables, characters, deterministic=True, mutable="intermediates"
        )
        return sown["intermediates"]["states"][0]

    return of


class WordTagger(nn.Module):
    """A tagger whose words are spelled, and looked up too where it is FULL.

    `short` and `long` hold the spelling of each type of the batch once; `place` says
    which of them, end to end, a word is.
    """

    words: int | None  # rows of the word table; None: characters only
    characters: int
    dim: int
    hidden: int  # of the LSTMs over characters
    dropout: float
    tagger: jnn.Tagger

    @nn.compact
    def __call__(
        self,
        short: Int[Array, "types letters"],
        long: Int[Array, "others more"],
        place: Int[Array, "batch length"],
        ids: Int[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, "batch length classes"]:
        char = jnn.CharBiLSTM(
            self.characters,
            self.dim,
            self.hidden,
            dropout_rate=self.dropout,
            name="char",
        )
        spelled = [char(x, deterministic=deterministic) for x in (short, long)]
        vectors = jnp.concatenate(spelled)[place]  # batch length dim
        if self.words is not None:
            table = jnn.DeltaEmbedding(
                self.words,
                self.dim,
                "finetune",
                base_init=uniform_rows,
                padding_id=vocab.PAD_ID,
                name="words",
            )
            vectors = jnp.concatenate([table(ids), vectors], axis=-1)
        mask = ids != vocab.PAD_ID
        return self.tagger(vectors, mask, deterministic=deterministic)


def _emissions(module: WordTagger, variables, batch, **kwargs):
    inputs = (batch[name] for name in ("short", "long", "place", "ids"))
    return module.apply(variables, *inputs, **kwargs)


def tagging_loss(module: WordTagger):
    """Mean negative log-likelihood of a word's tag."""

    def loss(variables, batch, key):
        emissions = _emissions(
            module, variables, batch, deterministic=False, rngs={"dropout": key}
        )
        mask = batch["ids"] != vocab.PAD_ID
        each = losses.softmax_cross_entropy(emissions, batch["tags"], mask=mask)
        return jnp.sum(each) / jnp.sum(mask), {}

    return loss


def tagging_hits(module: WordTagger):
    """Counts the words whose best tag is right."""

    def count(variables, batch) -> classification.Ratio:
        emissions = _emissions(module, variables, batch, deterministic=True)
        real = (batch["ids"] != vocab.PAD_ID) & (batch["weight"] > 0)[:, None]
        return classification.accuracy(emissions, batch["tags"], real)

    return count
