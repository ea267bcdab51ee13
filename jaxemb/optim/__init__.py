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
    falling_adam,
    scale_by_uncorrected_adam,
    warmup_linear,
)
from jaxemb.optim.groups import by_path, label_by_path, path_name
from jaxemb.optim.masks import (
    MATRICES,
    Heads,
    delete_information,
    keep_masks,
    magnitude_mask,
    random_mask,
)
from jaxemb.optim.projections import group_lasso_prox, max_norm
from jaxemb.optim.prune import (
    PrunedState,
    Sparsity,
    cubic_sparsity,
    keep_zeros,
    masks_of,
    one_shot_sparsity,
    periodic_sparsity,
    pruned,
)

__all__ = [
    "Heads",
    "MATRICES",
    "NO_DECAY",
    "ParameterEmaState",
    "PrunedState",
    "Sparsity",
    "all_ema_params",
    "bert_adam",
    "by_path",
    "cubic_sparsity",
    "delete_information",
    "ema_params",
    "falling_adam",
    "group_lasso_prox",
    "keep_masks",
    "keep_zeros",
    "label_by_path",
    "magnitude_mask",
    "masks_of",
    "max_norm",
    "one_shot_sparsity",
    "parameter_ema",
    "path_name",
    "periodic_sparsity",
    "pruned",
    "random_mask",
    "scale_by_uncorrected_adam",
    "warmup_linear",
]
