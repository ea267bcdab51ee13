"""The modules of a run, and how their weights begin."""

from collections.abc import Mapping, Sequence
from typing import Any

import flax.linen as nn

from experiments.multitask_meta_embedding.config import Config, MultiTask
from jaxemb import nn as jnn

CONCATENATED, DECOUPLED = "Concatenated", "Decoupled"


def initializer(init: str) -> nn.initializers.Initializer:
    """N(0, 1) for "paper", with which tanh saturates; else what keeps scales."""
    if init == "paper":
        return nn.initializers.normal(1.0)
    return nn.initializers.glorot_normal()


class SimilarityModel(nn.Module):
    """The shared layer h1 = Z, its decoder, and the siamese layers h2 and h3."""

    widths: Sequence[int]
    settings: MultiTask
    init_name: str

    @nn.compact
    def __call__(self, sources, known, *, deterministic: bool):
        """From pairs of words (batch, 2, dims) to what is coded and compared."""
        start = initializer(self.init_name)
        settings = self.settings
        coded = jnn.AEME(
            self.widths,
            hidden=settings.hidden,
            dropout_rate=settings.dropout,
            kernel_init=start,
            name="meta",
        )(sources, known, deterministic=deterministic)
        head = jnn.SiameseHead(
            settings.head, settings.distance, kernel_init=start, name="head"
        )
        return coded, head(coded.code[:, 0], coded.code[:, 1])


def encoder_of(settings: MultiTask, widths: Sequence[int]) -> nn.Module:
    """The autoencoder alone, for parameters of `SimilarityModel`."""
    return jnn.AEME(widths, hidden=settings.hidden)


def self_supervised(
    config: Config, widths: Sequence[int], words: int, init: str
) -> Mapping[str, Any]:
    """Name to module, of those that Table 1 has and the ones beside them."""
    settings = config.autoencoder
    common = {
        "dropout_rate": settings.dropout,
        "kernel_init": initializer(init),
    }
    modules: dict[str, Any] = {
        CONCATENATED: jnn.AEME(widths, hidden=(settings.hidden,), **common),
        DECOUPLED: jnn.DAEME(widths, hidden=settings.hidden, **common),
    }
    if init == "paper":
        return modules
    return modules | {
        "CAEME": jnn.CAEME(widths, hidden=settings.hidden, **common),
        "AAEME": jnn.AAEME(widths, hidden=settings.hidden, **common),
        "MTE": jnn.MTE(widths, hidden=settings.hidden, **common),
        "MTE, an autoencoder a source": jnn.MTE(
            widths, hidden=settings.hidden, pooled=True, **common
        ),
        "1TON": jnn.OneToN(words, widths, settings.hidden),
        "1TON+": jnn.OneToN(words, widths, settings.hidden, learn_missing=True),
    }
