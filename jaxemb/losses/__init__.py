"""Losses and penalties as pure functions; a loss gives one value per example."""

from jaxemb.losses import distances
from jaxemb.losses.classification import (
    one_vs_rest_hinge,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
)
from jaxemb.losses.distill import distill, kd_total, logit_mse
from jaxemb.losses.noise_contrast import aggregated_sgns, context_weights, sgns
from jaxemb.losses.reconstruction import Reconstruction, reconstruction
from jaxemb.losses.recurrence import activation_penalty
from jaxemb.losses.similarity import bce_from_distance, brier, exp_neg_distance
from jaxemb.losses.sparsity import l21

__all__ = [
    "Reconstruction",
    "activation_penalty",
    "aggregated_sgns",
    "bce_from_distance",
    "brier",
    "context_weights",
    "distances",
    "distill",
    "exp_neg_distance",
    "kd_total",
    "l21",
    "logit_mse",
    "one_vs_rest_hinge",
    "reconstruction",
    "sgns",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
]
