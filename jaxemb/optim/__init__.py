"""Gradient transformations that optax lacks, and the choice of parameters by path."""

from jaxemb.optim.averaging import (
    ParameterEmaState,
    all_ema_params,
    ema_params,
    parameter_ema,
)
from jaxemb.optim.fine_tuning import (
    NO_DECAY,
    bert_adam,
    scale_by_uncorrected_adam,
    warmup_linear,
)
from jaxemb.optim.groups import by_path, label_by_path
from jaxemb.optim.projections import group_lasso_prox, max_norm

__all__ = [
    "NO_DECAY",
    "ParameterEmaState",
    "all_ema_params",
    "bert_adam",
    "by_path",
    "ema_params",
    "group_lasso_prox",
    "label_by_path",
    "max_norm",
    "parameter_ema",
    "scale_by_uncorrected_adam",
    "warmup_linear",
]
