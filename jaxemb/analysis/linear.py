"""Linear fits of vectors to fixed features: by squares, by absolute deviations.

With `h = Z T`, Z the features of words (rows) and T to be learnt, the squared error to
the targets parts into least squares for each coordinate, the sum of absolute errors
into least absolute deviations ("Reconstruction of Word Embeddings from Sub-Word
Parameters", sec. 3.1). In float64.
"""

import numpy as np
import scipy.optimize
from jaxtyping import Float

from jaxemb.errors import InputError

Features = Float[np.ndarray, "words features"]
Targets = Float[np.ndarray, "words dim"]
Weights = Float[np.ndarray, "features dim"]


def least_squares(features: Features, targets: Targets) -> Weights:
    """`(Z'Z)^-1 Z'X`, which minimises the sum of squared errors (D2).

    Raises:
      InputError: where the features depend on each other: the solution is not unique.
    """
    features, targets = _checked(features, targets)
    weights, _, rank, _ = np.linalg.lstsq(features, targets, rcond=None)
    if rank < features.shape[1]:
        raise InputError(
            f"expected features of rank {features.shape[1]}, found rank {rank}"
        )
    return weights


def least_absolute_deviations(features: Features, targets: Targets) -> Weights:
    """What minimises the sum of absolute errors (D1), one coordinate at a time.

    With constant features the fit is a median of the coordinate. Solved exactly, as
    the dual of the linear program: maximise `x'y` with `Z'y = 0` and `|y| <= 1`, whose
    multipliers are the weights.
    """
    features, targets = _checked(features, targets)
    columns = []
    for column in targets.T:
        found = scipy.optimize.linprog(
            -column,
            A_eq=features.T,
            b_eq=np.zeros(features.shape[1]),
            bounds=(-1, 1),
            method="highs",
        )
        columns.append(-found.eqlin.marginals)
    return np.stack(columns, axis=1)


def leave_one_out(features: Features, targets: Targets) -> Targets:
    """How the least-squares fit of each word changes when it is left out.

        -(H_ww / (1 - H_ww)) (x_w - h_w),   H = Z (Z'Z)^-1 Z'

    so a word pulls its own fit in proportion to its residual. nan where the word alone
    decides a weight (H_ww = 1).
    """
    features, targets = _checked(features, targets)
    residuals = targets - features @ least_squares(features, targets)
    orthogonal, _ = np.linalg.qr(features)
    leverage = np.sum(orthogonal**2, axis=1, keepdims=True)
    alone = leverage > 1 - 1e-12
    return np.where(alone, np.nan, -leverage / np.where(alone, 1, 1 - leverage)) * (
        residuals
    )


def _checked(
    features: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if len(features) != len(targets):
        raise InputError(
            f"expected targets for {len(features)} words, found {len(targets)}"
        )
    return np.asarray(features, np.float64), np.asarray(targets, np.float64)
