"""Losses and penalties as pure functions; a loss gives one value per example."""

from jaxemb.losses.classification import softmax_cross_entropy
from jaxemb.losses.sparsity import l21

__all__ = ["l21", "softmax_cross_entropy"]
