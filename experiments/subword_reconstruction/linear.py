"""Section 3.1: the top layer alone, and what outliers do to it and to students."""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from experiments.common.findings import Findings
from experiments.subword_reconstruction import data, model
from experiments.subword_reconstruction.config import Config
from experiments.subword_reconstruction.reconstruct import School, Taught
from jaxemb import terminal
from jaxemb.analysis import linear
from jaxemb.data import batching
from jaxemb.train import results

FITS = {
    "OLS (D2)": linear.least_squares,
    "LAD (D1)": linear.least_absolute_deviations,
}
# The same where the only feature is a constant.
_MIDDLES = {"OLS (D2)": np.mean, "LAD (D1)": np.median}
_SHOWN = 10
_REFITTED = 20  # words that are really left out
_EXACT = 1e-8  # a gap that rounding explains
_OF_STUDENTS = ", half of all words taught"  # not of `linear_words`
_NOISE = 10.0  # of an outlier, in standard deviations of the teacher's numbers


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """Words to fit and words held out; some of the fitted have noise for a teacher."""

    fitted: np.ndarray
    held_out: np.ndarray
    clean: np.ndarray
    """Vectors of all words, by row of the teacher."""
    noisy: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray, count: int, share: float, seed: int) -> "Sample":
        """Half of the first `count` words is fitted, a share of that made noise."""
        rng = np.random.default_rng(seed)
        rows = rng.permutation(min(count, len(vectors)))
        fitted, held_out = np.split(rows, [len(rows) // 2])
        clean = vectors.astype(np.float64)
        noisy = clean.copy()
        broken = rng.choice(fitted, int(share * len(fitted)), replace=False)
        noise = rng.normal(size=(len(broken), clean.shape[1]))
        noisy[broken] += _NOISE * clean.std() * noise
        return cls(fitted, held_out, clean, noisy)

    def versions(self) -> tuple[tuple[str, np.ndarray], ...]:
        """What rows are called, and the vectors that are taught."""
        return ("", self.clean), (", outliers", self.noisy)


def study(config: Config, teacher: data.Teacher, findings: Findings) -> None:
    """The linear model on top of characters that have learnt nothing.

    Features are the last states of both LSTMs of an untaught student, and a constant;
    beside it the constant alone, whose fits are the median and the mean.
    """
    school = School(config, teacher, "linear")
    measured: dict[str, list[dict[str, float]]] = {}
    gaps = []
    for seed in range(config.seeds):
        sample = Sample.of(
            teacher.vectors.matrix, config.linear_words, config.outliers, seed
        )
        states = features_of(school, seed, config.linear_words)
        for kind, features in (("", states), ("constant, ", states[:, -1:])):
            for label, drawn in sample.versions():
                for name, fit in FITS.items():
                    weights = fit(features[sample.fitted], drawn[sample.fitted])
                    fits = features[sample.held_out] @ weights
                    errors = np.abs(fits - sample.clean[sample.held_out])
                    measured.setdefault(f"{kind}{name}{label}", []).append(
                        {
                            "held-out D1": errors.sum(axis=1).mean(),
                            "held-out D2": (errors**2).sum(axis=1).mean(),
                        }
                    )
        fitted = states[sample.fitted], sample.clean[sample.fitted]
        change = linear.leave_one_out(*fitted)
        gaps.append(_largest_gap(*fitted, change))
        terminal.say(f"linear model · seed {seed}")
        if seed == 0:
            order = np.argsort(-np.linalg.norm(change, axis=1))[:_SHOWN]
            findings.notes["most influential words"] = [
                teacher.vectors.words[sample.fitted[i]] for i in order
            ]
    for name, seeds in measured.items():
        for metric in seeds[0]:
            findings.add(name, metric, [seed[metric] for seed in seeds])
    findings.shown += ["held-out D1", "held-out D2"]
    largest = max(gaps)
    findings.claims.append(
        results.Claim(
            claim="leaving a word out moves its fit by its residual, times "
            "-H/(1 - H): OLS (D2)",
            verdict="supported" if largest < _EXACT else "contradicted",
            evidence=f"largest gap between formula and refitting {largest:.1g}, "
            f"{_REFITTED} words of each of {config.seeds} seeds",
        )
    )
    for kind in ("", "constant, "):
        _claim(config, findings, measured, [f"{kind}{name}" for name in FITS])
    for name in FITS:
        _claim_beyond_a_constant(findings, measured, name, "held-out D1")


def _claim(
    config: Config,
    findings: Findings,
    measured: Mapping[str, list[dict[str, float]]],
    names: list[str],
    metric: str = "held-out D1",
) -> None:
    """That what D2 fits is hurt more by outliers than what D1 fits."""
    squares, deviations = names
    what = f"with {100 * config.outliers:g} % outliers {squares}"
    errors = {
        f"{name}{label}": np.array([s[metric] for s in measured[name + label]])
        for name in names
        for label in ("", ", outliers")
    }
    findings.beats(
        f"{what} has a higher {metric} than {deviations}",
        errors[f"{squares}, outliers"],
        errors[f"{deviations}, outliers"],
    )
    findings.beats(
        f"{what} loses more {metric} than {deviations}",
        errors[f"{squares}, outliers"] - errors[squares],
        errors[f"{deviations}, outliers"] - errors[deviations],
    )


def _claim_beyond_a_constant(
    findings: Findings,
    measured: Mapping[str, list[dict[str, float]]],
    name: str,
    metric: str,
) -> None:
    """That a system without outliers has learnt something of single words."""
    findings.beats(
        f"a constant has a higher {metric} than {name}",
        [one[metric] for one in measured["constant, LAD (D1)"]],
        [one[metric] for one in measured[name]],
    )


def students_with_outliers(
    config: Config, teacher: data.Teacher, workdir: epath.Path, findings: Findings
) -> None:
    """Whole students of half of the words, some of which have noise for a teacher."""
    head = config.heads[0]
    words = len(teacher.vectors)
    measured: dict[str, list[dict[str, float]]] = {}
    for seed in range(config.seeds):
        sample = Sample.of(teacher.vectors.matrix, words, config.outliers, seed)
        others = teacher.spelled.take(sample.held_out)
        truth = jnp.asarray(sample.clean[sample.held_out], jnp.float32)

        def score(name: str, vectors: np.ndarray, truth=truth, seed=seed) -> None:
            scores = {
                f"held-out {d}{_OF_STUDENTS}": float(
                    jnp.mean(model.DISTANCES[d](truth, jnp.asarray(vectors)))
                )
                for d in ("D1", "D2")
            }
            measured.setdefault(name, []).append(scores)
            told = ", ".join(f"{n} {v:.3g}" for n, v in scores.items())
            terminal.say(f"{name} · seed {seed}: {told}")

        for label, drawn in sample.versions():
            for name, middle in _MIDDLES.items():
                constant = middle(drawn[sample.fitted], axis=0).astype(np.float32)
                score(f"constant, {name}{label}", np.tile(constant, (len(truth), 1)))
            taught = teacher.taught(sample.fitted, drawn[sample.fitted])
            share = config.outliers if label else 0.0
            school = School(
                *(config, taught, head),
                lengths=teacher.spelled.lengths,
                described={"outliers": share},
            )
            for distance in config.distances:
                one = Taught(head, distance, seed)
                place = workdir / "outliers" / f"{share:g}"
                params = school.teach(one, one.folder(place))
                score(f"student ({distance}){label}", school.embed(params, others))
    for name, seeds in measured.items():
        for metric in seeds[0]:
            findings.add(name, metric, [seed[metric] for seed in seeds])
    metrics = [f"held-out {d}{_OF_STUDENTS}" for d in ("D1", "D2")]
    findings.shown += metrics
    if {"D1", "D2"} <= set(config.distances):
        names = ["student (D2)", "student (D1)"]
        _claim(config, findings, measured, names, metrics[0])
    for distance in config.distances:
        name = f"student ({distance})"
        _claim_beyond_a_constant(findings, measured, name, metrics[0])


def features_of(school: School, seed: int, count: int) -> np.ndarray:
    """States of an untaught student for the teacher's first words, and a constant."""
    rows = np.arange(min(count, len(school.teacher.vectors)))
    spelled: batching.Ragged = school.teacher.spelled
    letters = spelled.padded(rows, max(1, int(spelled.lengths[rows].max())))
    states = jax.jit(model.states(school.module))
    variables = {"params": school.untaught(seed)}
    found = np.asarray(states(variables, jnp.asarray(letters)), np.float64)
    return np.concatenate([found, np.ones((len(rows), 1))], axis=1)


def _largest_gap(
    features: np.ndarray, targets: np.ndarray, change: np.ndarray
) -> float:
    """Between the formula and fits from which a word is really left out."""
    whole = features @ linear.least_squares(features, targets)
    gaps = []
    for row in range(min(_REFITTED, len(features))):
        others = np.arange(len(features)) != row
        again = linear.least_squares(features[others], targets[others])
        gaps.append(np.abs(features[row] @ again - whole[row] - change[row]).max())
    return float(np.max(gaps))
