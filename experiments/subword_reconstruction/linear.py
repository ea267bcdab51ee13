"""Section 3.1: the top layer alone, above characters that have learnt nothing."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from experiments.subword_reconstruction import data, model
from experiments.subword_reconstruction.config import Config
from experiments.subword_reconstruction.reconstruct import School
from jaxemb.analysis import linear

FITS = {
    "OLS (D2)": linear.least_squares,
    "LAD (D1)": linear.least_absolute_deviations,
}
_SHOWN = 10


def study(config: Config, teacher: data.Teacher, school: School) -> dict[str, list]:
    """Metric and system to one value a seed.

    Features are the last states of both LSTMs of an untaught student, and a constant.
    Half of the words are fitted, the others held out; then the same with some of the
    fitted words' teachers made noise.
    """
    measured: dict[str, list] = {}
    for seed in range(config.seeds):
        rng = np.random.default_rng(seed)
        count = min(config.linear_words, len(teacher.vectors))
        rows = rng.permutation(count)
        features = features_of(school, seed, np.arange(count))
        targets = teacher.vectors.matrix[:count].astype(np.float64)
        fitted, held_out = rows[: count // 2], rows[count // 2 :]
        noisy = targets.copy()
        broken = rng.choice(fitted, int(config.outliers * len(fitted)), replace=False)
        noise = rng.normal(size=(len(broken), targets.shape[1]))
        noisy[broken] += 10 * targets.std() * noise
        for label, drawn in (("", targets), (", outliers", noisy)):
            for name, fit in FITS.items():
                weights = fit(features[fitted], drawn[fitted])
                errors = np.abs(features[held_out] @ weights - targets[held_out])
                measured.setdefault(f"{name}{label}", []).append(
                    {
                        "held-out D1": errors.sum(axis=1).mean(),
                        "held-out D2": (errors**2).sum(axis=1).mean(),
                    }
                )
        change = linear.leave_one_out(features[fitted], targets[fitted])
        refitted = _refitted(features[fitted], targets[fitted])
        gap = np.abs(change[: len(refitted)] - refitted).max()
        measured.setdefault("leave-one-out", []).append(
            {"largest gap between formula and refitting": gap}
        )
        if seed == 0:
            norms = np.linalg.norm(change, axis=1)
            order = np.argsort(-norms)[:_SHOWN]
            words = [teacher.vectors.words[fitted[i]] for i in order]
            measured["most influential"] = words
    return measured


def features_of(school: School, seed: int, rows: np.ndarray) -> np.ndarray:
    """States of an untaught student for the teacher's words, and a constant."""
    variables: Mapping = {"params": school.untaught(seed)}
    states = jax.jit(model.states(school.module))
    lengths = school.teacher.spelled.lengths[rows]
    letters = school.teacher.spelled.padded(rows, max(1, int(lengths.max())))
    found = np.asarray(states(variables, jnp.asarray(letters)), np.float64)
    return np.concatenate([found, np.ones((len(rows), 1))], axis=1)


def _refitted(features: np.ndarray, targets: np.ndarray, most: int = 20) -> np.ndarray:
    """How the fits of some words change when each is really left out."""
    whole = features @ linear.least_squares(features, targets)
    found = []
    for row in range(min(most, len(features))):
        others = np.arange(len(features)) != row
        again = linear.least_squares(features[others], targets[others])
        found.append(features[row] @ again - whole[row])
    return np.array(found)
