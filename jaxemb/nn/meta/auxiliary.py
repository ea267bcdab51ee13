"""Reconstruction as an auxiliary task of any tagger or classifier."""

from typing import Any, Literal

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxemb import losses, numerics
from jaxemb.nn.meta.coded import coordinates, reconstruction_loss
from jaxemb.nn.words import check_choice

Level = Literal["word", "text"]


class AuxReconstruction(nn.Module):
    """A meta-embedding whose code is what another module reads.

        L = L_task + λ L_r

    ("Meta-embedding as auxiliary task", sec. 3.3.2.) `main` is called as
    `main(code, mask, deterministic=…)`: a `Tagger`, `TextClassifier`, `KimCNN` or any
    module like them. `meta` is one of the autoencoders here. L_r is of every word, or,
    at the level "text", of the mean of the words' sources, through the same layers.
    """

    meta: Any  # AEME, DAEME, CAEME, AAEME, TAE or MTE
    main: nn.Module
    loss: losses.Reconstruction = "l2"
    level: Level = "word"

    @nn.compact
    def __call__(
        self,
        sources: Float[Array, "batch length dims"] | Float[Array, "rows dims"],
        known: Bool[Array, "batch length source"] | Bool[Array, "rows source"],
        mask: Bool[Array, "batch length"],
        ids: Int[Array, "batch length"] | None = None,
        *,
        deterministic: bool,
    ) -> tuple[Float[Array, "batch ..."], Float[Array, " batch"]]:
        """What `main` gives, and L_r: the mean over the words of each example.

        With `ids`, `sources` and `known` are tables, and word t has their rows
        `ids[:, t]`: what occurs often is encoded once, and dropped out alike.
        """
        check_choice(self, "level", Level)
        take = lambda x: x if ids is None else x[ids]  # noqa: E731
        if ids is None:
            known = known & mask[..., None]
        coded = self.meta(sources, known, deterministic=deterministic)
        logits = self.main(take(coded.code), mask, deterministic=deterministic)
        if self.level == "word":
            words = reconstruction_loss(coded, self.loss, self.meta.parts)
            return logits, numerics.masked_mean(take(words), mask, axis=1)
        here = take(known) & mask[..., None]
        counted = coordinates(here, self.meta.widths)
        mean = numerics.masked_mean(take(sources), counted, axis=1)
        coded = self.meta(mean, jnp.any(here, axis=1), deterministic=deterministic)
        return logits, reconstruction_loss(coded, self.loss, self.meta.parts)
