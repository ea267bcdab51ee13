"""Training: state, step, loop, devices, checkpoints and results."""

from jaxemb.train.checkpoints import load_config, load_params
from jaxemb.train.loop import Diverged, fit
from jaxemb.train.metrics import (
    Mean,
    best_evaluation,
    evaluations,
    read_metrics,
)
from jaxemb.train.parallel import (
    data_parallel,
    everywhere,
    initialize,
    is_primary,
    make_mesh,
    wait_for_all,
)
from jaxemb.train.preemption import Preempted
from jaxemb.train.runtime import enable_compilation_cache
from jaxemb.train.state import State
from jaxemb.train.step import make_step, over_models, over_seeds

__all__ = [
    "Diverged",
    "Mean",
    "Preempted",
    "State",
    "data_parallel",
    "best_evaluation",
    "enable_compilation_cache",
    "evaluations",
    "everywhere",
    "fit",
    "initialize",
    "is_primary",
    "load_config",
    "load_params",
    "make_mesh",
    "make_step",
    "over_models",
    "over_seeds",
    "read_metrics",
    "wait_for_all",
]
