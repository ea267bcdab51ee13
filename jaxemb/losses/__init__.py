"""Losses and penalties as pure functions; a loss gives one value per example."""

from jaxemb.losses import distances
from jaxemb.losses.classification import softmax_cross_entropy
from jaxemb.losses.noise_contrast import sgns
from jaxemb.losses.reconstruction import Reconstruction, reconstruction
from jaxemb.losses.similarity import bce_from_distance, brier, exp_neg_distance
from jaxemb.losses.sparsity import l21

__all__ = [
    "Reconstruction",
    "bce_from_distance",
    "brier",
    "distances",
    "exp_neg_distance",
    "l21",
    "reconstruction",
    "sgns",
    "softmax_cross_entropy",
]
