"""Logistic regression with an L2 penalty, solved to its minimum; many fits at once.

The objective is convex and has one minimum, so that an accuracy depends on nothing but
the features: no seed, no schedule, no stopping. For rows `x_i` of classes `y_i`, of
which the mask m takes some, it is

    sum_i m_i [logsumexp_k z_ik - z_iy_i] + |W|^2 / (2 C),    z_i = W^T x_i + b

with an intercept b that is not penalised, as scikit-learn has it; of two classes only
the second has a column (`z_i0 = 0`). All masks (folds) and all C are one array program:
the products with the features are of one matrix with many columns.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxemb.errors import InputError

TOLERANCE = 1e-6  # of the gradient's norm
_MOST = 2000  # iterations
_MEMORY = 10  # steps that the curvature is told from
_ARMIJO = 1e-4
_HALVINGS = 40
_NOTHING = 1e-13  # a probability
# Features that are 0 fill up the width to a multiple of this, or of twice as much for a
# table that is wider: they change nothing, and one compiled program serves many widths.
_STEP = 50
_SINGLE = 8  # features that are fitted at the same time, each alone

Features = Float[np.ndarray, "rows dim"]


class NotConverged(ArithmeticError):
    """A fit that did not reach its minimum."""


@dataclasses.dataclass(frozen=True, eq=False)
class Fits:
    """Linear models, one for each mask of rows and each C."""

    weights: Float[np.ndarray, "masks strengths dim columns"]
    intercepts: Float[np.ndarray, "masks strengths columns"]
    gradient_norms: Float[np.ndarray, "masks strengths"]
    iterations: int

    def scores(
        self, features: Features
    ) -> Float[np.ndarray, "masks strengths rows columns"]:
        """The logits; of two classes, of the second alone."""
        wide = np.moveaxis(self.weights, 2, 0)  # dim masks strengths columns
        flat = np.asarray(features, np.float64) @ wide.reshape(len(wide), -1)
        logits = flat.reshape(len(features), *wide.shape[1:])
        return np.moveaxis(logits, 0, 2) + self.intercepts[:, :, np.newaxis]

    def predict(self, features: Features) -> Int[np.ndarray, "masks strengths rows"]:
        """The class of the highest logit."""
        scores = self.scores(features)
        if scores.shape[-1] == 1:
            return (scores[..., 0] > 0).astype(np.int64)
        return np.argmax(scores, axis=-1)


@dataclasses.dataclass(frozen=True, eq=False)
class Design:
    """Features in other coordinates, on the device; many calls of `fit` may share it.

    Centred, turned to their principal axes and filled up with zeros: the penalty has no
    preferred basis and the intercept takes up any shift, so that minima are the same.
    """

    rows: Any  # float64 (rows, width + 1), the last column of ones
    mean: Float[np.ndarray, " dim"]
    axes: Float[np.ndarray, "dim dim"]

    @classmethod
    def of(cls, features: Features) -> "Design":
        """Finds the axes."""
        features = np.asarray(features, np.float64)
        dim = features.shape[1]
        mean = features.mean(axis=0)
        centred = features - mean[np.newaxis]
        _, axes = np.linalg.eigh(centred.T @ centred)
        more = -dim % (_STEP if dim <= 2 * _STEP else 2 * _STEP)
        turned = np.pad(centred @ axes, ((0, 0), (0, more + 1)))
        turned[:, -1] = 1
        with jax.enable_x64(True):
            return cls(jnp.asarray(turned), mean, axes)

    def point(self, weights: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
        """Models as the solver holds them: width + 1, columns, masks, strengths."""
        turned = np.einsum("dw,msdk->wkms", self.axes, weights, optimize=True)
        shifted = intercepts + np.einsum("d,msdk->msk", self.mean, weights)
        out = np.zeros((self.rows.shape[1], *turned.shape[1:]))
        out[: len(turned)] = turned
        out[-1] = np.moveaxis(shifted, 2, 0)
        return out

    def models(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts of the features as they were given."""
        turned = point[: len(self.mean)]
        weights = np.einsum("dw,wkms->msdk", self.axes, turned, optimize=True)
        shift = np.einsum("d,msdk->msk", self.mean, weights, optimize=True)
        intercepts = np.moveaxis(point[-1], 0, 2) - shift
        if intercepts.shape[2] > 1:  # only differences of intercepts matter
            intercepts = intercepts - intercepts.mean(axis=2, keepdims=True)
        return weights, intercepts


def fit(
    features: Features | Design,
    labels: Int[np.ndarray, " rows"],
    classes: int,
    masks: Bool[np.ndarray, "masks rows"] | None = None,
    strengths: Sequence[float] = (1.0,),
    *,
    start: Fits | None = None,
    tolerance: float = TOLERANCE,
) -> Fits:
    """Fits a model for each mask and each C, in float64.

    By L-BFGS in the basis of the features' principal axes, where a diagonal is a good
    guess of the curvature, with Armijo's rule. Ends when the norm of every gradient is
    below `tolerance`.

    Args:
      features: a row an example.
      labels: classes, counted from 0.
      classes: how many there are.
      masks: the rows of each fit; all rows if None.
      strengths: C, the inverse weights of the penalty.
      start: models to start from, of the same shape; the minimum is the same.
      tolerance: of the gradient's norm.

    Raises:
      NotConverged: where some gradient stays longer than that.
    """
    masks = np.ones((1, len(labels)), bool) if masks is None else masks
    _check(labels, classes, masks, strengths)
    design = features if isinstance(features, Design) else Design.of(features)
    if start is None:
        prior = _priors(labels, classes, masks, strengths)
        point = np.pad(prior, ((design.rows.shape[1] - 1, 0), *[(0, 0)] * 3))
    else:
        point = design.point(start.weights, start.intercepts)
    with jax.enable_x64(True):
        end = _minimise(
            design.rows,
            jnp.asarray(_targets(labels, classes)),
            jnp.asarray(masks),
            jnp.asarray(strengths, jnp.float64),
            jnp.asarray(point),
            tolerance,
        )
        end = jax.tree.map(np.asarray, end)
    _check_end(end, tolerance)
    models = design.models(end.point)
    return Fits(*models, end.norm, int(end.iterations))


def fit_each(
    features: Features,
    labels: Int[np.ndarray, " rows"],
    classes: int,
    masks: Bool[np.ndarray, "masks rows"] | None = None,
    strengths: Sequence[float] = (1.0,),
    *,
    tolerance: float = TOLERANCE,
) -> list[Fits]:
    """Fits models of one feature alone, for every feature; several under `vmap`."""
    masks = np.ones((1, len(labels)), bool) if masks is None else masks
    _check(labels, classes, masks, strengths)
    columns = np.asarray(features, np.float64)
    mean = columns.mean(axis=0)
    prior = _priors(labels, classes, masks, strengths)
    with jax.enable_x64(True):
        ends = _minimise_each(
            jnp.asarray(columns - mean[np.newaxis]),
            jnp.asarray(_targets(labels, classes)),
            jnp.asarray(masks),
            jnp.asarray(strengths, jnp.float64),
            jnp.asarray(np.concatenate([np.zeros_like(prior), prior])),
            tolerance,
        )
        ends = jax.tree.map(np.asarray, ends)
    _check_end(ends, tolerance)
    fits = []
    for number, point in enumerate(ends.point):
        design = Design(None, mean[number : number + 1], np.eye(1))
        norm, iterations = ends.norm[number], int(ends.iterations[number])
        fits.append(Fits(*design.models(point), norm, iterations))
    return fits


class _State(NamedTuple):
    """Of all fits; the last two axes of everything are masks and strengths.

    One number for each fit has four axes too, of which the first two are 1.
    """

    number: Any  # int32 scalar
    point: Any  # dim columns masks strengths; the intercept is the last of dim
    logits: Any  # rows columns masks strengths
    cost: Any  # one a fit
    gradient: Any  # as point
    norm: Any  # of the gradient
    moves: Any  # memory of differences of points
    turns: Any  # memory of differences of gradients
    inverses: Any  # of their products; 0 where the memory is empty
    scale: Any  # of the first guess of the inverse curvature
    stalled: Any  # bool; no step lowers the cost any more


class _End(NamedTuple):
    point: Any  # as of the state
    norm: Any  # masks strengths
    iterations: Any


@functools.partial(jax.jit, static_argnames="tolerance")
def _minimise_each(features, targets, masks, strengths, start, tolerance) -> _End:
    def one(feature):
        x = jnp.stack([feature, jnp.ones_like(feature)], axis=1)
        return _minimise(x, targets, masks, strengths, start, tolerance)

    return jax.lax.map(one, features.T, batch_size=_SINGLE)


@functools.partial(jax.jit, static_argnames="tolerance")
def _minimise(x, targets, masks, strengths, start, tolerance) -> _End:
    """L-BFGS of all fits at once; each is still once its gradient is short enough."""
    dim = x.shape[1]
    taken = masks.T.astype(x.dtype)[:, jnp.newaxis, :, jnp.newaxis]
    wanted = targets[:, :, jnp.newaxis, jnp.newaxis]
    penalised = (jnp.arange(dim) < dim - 1)[:, jnp.newaxis, jnp.newaxis, jnp.newaxis]
    penalty = penalised / strengths[jnp.newaxis, jnp.newaxis, jnp.newaxis]
    slack = 10 * jnp.finfo(x.dtype).eps

    def assess(point, logits):
        losses, shares = _losses(logits, wanted)
        return _sum(taken * losses) + _sum(penalty * point**2) / 2, shares

    def gradient_of(point, shares):
        return _times(x.T, taken * (shares - wanted)) + penalty * point

    logits = _times(x, start)
    cost, shares = assess(start, logits)
    gradient = gradient_of(start, shares)
    curvature = _times((x * x).T, taken * shares * (1 - shares))
    guess = _inverse_curvature(curvature, penalty)

    def iterate(state: _State) -> _State:
        direction = -_two_loops(state, guess)
        slope = _dot(state.gradient, direction)
        along = _times(x, direction)
        going = (state.norm > tolerance) & ~state.stalled

        def at(factor):
            moved = state.logits + factor * along
            cost, shares = assess(state.point + factor * direction, moved)
            enough = state.cost + _ARMIJO * factor * slope + slack * jnp.abs(state.cost)
            return _Tried(factor, moved, cost, shares, (cost <= enough) | ~going)

        def halve(carry):
            tried, halvings = carry
            return at(jnp.where(tried.good, tried.factor, tried.factor / 2)), (
                halvings + 1
            )

        def too_long(carry):
            tried, halvings = carry
            return ~jnp.all(tried.good) & (halvings < _HALVINGS)

        whole = at(going.astype(x.dtype))  # those at their end stand still
        tried, _ = jax.lax.while_loop(too_long, halve, (whole, 0))
        step = tried.factor * direction
        point = state.point + step
        gradient = gradient_of(point, tried.shares)
        turn = gradient - state.gradient
        product = _dot(step, turn)
        known = product > 0
        safe = jnp.where(known, product, 1)
        slot = state.number % _MEMORY
        weighted = _dot(turn, guess(turn))
        return _State(
            number=state.number + 1,
            point=point,
            logits=tried.logits,
            cost=tried.cost,
            gradient=gradient,
            norm=jnp.sqrt(_dot(gradient, gradient)),
            moves=state.moves.at[slot].set(step),
            turns=state.turns.at[slot].set(turn),
            inverses=state.inverses.at[slot].set(jnp.where(known, 1 / safe, 0)),
            scale=jnp.where(
                known, product / jnp.where(known, weighted, 1), state.scale
            ),
            stalled=state.stalled | ~tried.good,
        )

    def goes_on(state: _State):
        going = (state.norm > tolerance) & ~state.stalled
        return jnp.any(going) & (state.number < _MOST)

    memory = jnp.zeros((_MEMORY, *start.shape), x.dtype)
    fits = 1, 1, *start.shape[2:]
    state = _State(
        number=jnp.zeros((), jnp.int32),
        point=start,
        logits=logits,
        cost=cost,
        gradient=gradient,
        norm=jnp.sqrt(_dot(gradient, gradient)),
        moves=memory,
        turns=memory,
        inverses=jnp.zeros((_MEMORY, *fits), x.dtype),
        scale=jnp.ones(fits, x.dtype),
        stalled=jnp.zeros(fits, bool),
    )
    end = jax.lax.while_loop(goes_on, iterate, state)
    return _End(end.point, end.norm[0, 0], end.number)


class _Tried(NamedTuple):
    """A step of the line search."""

    factor: Any  # one a fit
    logits: Any
    cost: Any
    shares: Any
    good: Any  # bool; low enough, or not wanted


def _two_loops(state: _State, guess):
    """The inverse of the curvature, as the memory tells it, times the gradient."""

    def forth(age, carry):  # the newest step first
        vector, weights = carry
        slot = (state.number - 1 - age) % _MEMORY
        weight = state.inverses[slot] * _dot(state.moves[slot], vector)
        return vector - weight * state.turns[slot], weights.at[age].set(weight)

    def back(count, vector):
        age = _MEMORY - 1 - count
        slot = (state.number - 1 - age) % _MEMORY
        weight = state.inverses[slot] * _dot(state.turns[slot], vector)
        return vector + (weights[age] - weight) * state.moves[slot]

    weights = jnp.zeros_like(state.inverses)
    vector, weights = jax.lax.fori_loop(0, _MEMORY, forth, (state.gradient, weights))
    return jax.lax.fori_loop(0, _MEMORY, back, state.scale * guess(vector))


def _inverse_curvature(curvature, penalty):
    """What divides by the Hessian's guess: each feature by itself.

    For feature j and classes k it is `diag(h_j) - h_j h_j^T / sum(h_j)` plus the
    penalty, with h the diagonal of the Hessian: as in the Hessian, raising all classes
    alike costs the penalty alone. Its inverse is by Sherman and Morrison.
    """
    # Intercepts have no penalty; a little of their own curvature makes theirs regular.
    floor = jnp.where(penalty > 0, 0, 1e-6)
    total = jnp.sum(curvature, axis=1, keepdims=True)
    diagonal = curvature + penalty + floor * (total + 1)
    if curvature.shape[1] == 1:
        return lambda vector: vector / diagonal
    share = curvature / diagonal
    rest = total - jnp.sum(curvature * share, axis=1, keepdims=True)
    rest = jnp.where(rest > 0, rest, 1)  # 0 for a feature that is 0 everywhere

    def divide(vector):
        along = jnp.sum(share * vector, axis=1, keepdims=True)
        return vector / diagonal + share * along / rest

    return divide


def _losses(logits, wanted):
    """The cost of each row, (rows, 1, …), and the classes' probabilities."""
    if logits.shape[1] == 1:
        small = jnp.exp(-jnp.abs(logits))
        losses = jnp.maximum(logits, 0) + jnp.log1p(small) - wanted * logits
        return losses, jnp.where(logits >= 0, 1, small) / (1 + small)
    highest = jnp.max(logits, axis=1, keepdims=True)
    powers = jnp.exp(logits - highest)
    total = jnp.sum(powers, axis=1, keepdims=True)
    right = jnp.sum(wanted * logits, axis=1, keepdims=True)
    return highest + jnp.log(total) - right, powers / total


def _times(
    matrix: Float[Array, "a b"], stack: Float[Array, "b columns masks strengths"]
) -> Float[Array, "a columns masks strengths"]:
    """One product with all columns of all fits."""
    flat = matrix @ stack.reshape(stack.shape[0], -1)
    return flat.reshape(matrix.shape[0], *stack.shape[1:])


def _dot(first, second):
    return _sum(first * second)


def _sum(values):
    return jnp.sum(values, axis=(0, 1), keepdims=True)


def _targets(labels, classes: int) -> np.ndarray:
    """1 in the column of a row's class; of two classes only the second has one."""
    columns = np.arange(1, 2) if classes == 2 else np.arange(classes)
    return (labels[:, np.newaxis] == columns[np.newaxis]).astype(np.float64)


def _priors(labels, classes: int, masks, strengths: Sequence[float]) -> np.ndarray:
    """Intercepts to start from, (1, columns, masks, strengths): the classes' shares.

    A class that a mask has no row of would end at minus infinity; it starts, and stays,
    where its probability is nothing beside the tolerance.
    """
    of_class = labels[:, np.newaxis] == np.arange(classes)[np.newaxis]
    share = masks.astype(np.float64) @ of_class / masks.sum(axis=1, keepdims=True)
    logits = np.log(np.clip(share, _NOTHING, 1)).T
    if classes == 2:
        logits = logits[1:] - logits[:1]
    return np.repeat(logits[np.newaxis, :, :, np.newaxis], len(strengths), axis=3)


def _check_end(end: _End, tolerance: float) -> None:
    worst = float(np.max(end.norm))
    if not worst <= tolerance:
        raise NotConverged(
            f"logistic regression stopped after {int(np.max(end.iterations))} "
            f"iterations at a gradient of norm {worst:.1e}; expected {tolerance:.0e}"
        )


def _check(labels, classes: int, masks, strengths: Sequence[float]) -> None:
    if classes < 2:
        raise InputError(f"{classes} classes; expected two or more")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise InputError(
            f"labels from {labels.min()} to {labels.max()}; expected 0 to {classes - 1}"
        )
    if not all(c > 0 for c in strengths):
        raise InputError(f"C is {min(strengths)}; expected numbers above 0")
    for number, mask in enumerate(masks):
        if not np.any(mask):
            raise InputError(f"fit {number} has no rows; expected some")
