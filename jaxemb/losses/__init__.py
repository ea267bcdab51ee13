"""Losses and penalties as pure functions; a loss gives one value per example."""

from jaxemb.losses import distances
from jaxemb.losses.classification import softmax_cross_entropy
from jaxemb.losses.noise_contrast import sgns
from jaxemb.losses.sparsity import l21

__all__ = ["distances", "l21", "sgns", "softmax_cross_entropy"]
