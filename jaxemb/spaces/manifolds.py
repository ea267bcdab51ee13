"""Optimisation over rotations and metrics: manifolds, and conjugate gradient on them.

Points are matrices, or tuples of them for a `Product`. All of it is pure and works
under `jit`; for exact answers run it under `jax.enable_x64(True)`.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Point = Any  # an array, or a tuple of points
Tangent = Any  # of the point's structure

_EPSILON = 1e-30


@runtime_checkable
class Manifold(Protocol):
    """A set of points with an inner product in each tangent space."""

    def gradient(self, point: Point, euclidean: Tangent) -> Tangent:
        """The Riemannian gradient, from that of the surrounding space."""
        ...

    def inner(self, point: Point, a: Tangent, b: Tangent) -> Float[Array, ""]:
        """The inner product of two tangents."""
        ...

    def retract(self, point: Point, step: Tangent) -> Point:
        """The point that a step leads to."""
        ...

    def transport(self, point: Point, tangent: Tangent) -> Tangent:
        """A tangent of a nearby point as one of this point."""
        ...

    def random(self, key: PRNGKeyArray) -> Point:
        """Some point."""
        ...

    @property
    def reach(self) -> float:
        """The longest step that is sensible from anywhere."""
        ...


@dataclasses.dataclass(frozen=True)
class Orthogonal:
    """Matrices with `U^T U = I`; no step changes the sign of the determinant.

    gradient `G - U sym(U^T G)`; retraction by the QR decomposition with a positive
    diagonal; transport by projection.
    """

    dim: int

    def gradient(self, point, euclidean):
        """The part of the Euclidean gradient along the manifold."""
        return self.transport(point, euclidean)

    def inner(self, point, a, b):
        """The Euclidean product."""
        del point
        return jnp.sum(a * b)

    def retract(self, point, step):
        """The orthogonal factor of `point + step`."""
        factor, upper = jnp.linalg.qr(point + step)
        signs = jnp.where(jnp.diagonal(upper) < 0, -1.0, 1.0).astype(factor.dtype)
        return factor * signs[jnp.newaxis]

    def transport(self, point, tangent):
        """The projection on the tangent space."""
        return tangent - point @ _symmetric(point.T @ tangent)

    def random(self, key):
        """Uniform over the group."""
        normal = jax.random.normal(key, (self.dim, self.dim))
        return self.retract(normal, jnp.zeros_like(normal))

    @property
    def reach(self):
        """A radian for each row."""
        return self.dim**0.5


@dataclasses.dataclass(frozen=True)
class Definite:
    """Symmetric positive definite matrices with the affine-invariant metric.

    inner `tr(B^-1 a B^-1 b)`; gradient `B sym(G) B`; retraction along the geodesic
    `B^(1/2) expm(B^(-1/2) xi B^(-1/2)) B^(1/2)`; transport by symmetrising.
    """

    dim: int

    def gradient(self, point, euclidean):
        """`B sym(G) B`."""
        return point @ _symmetric(euclidean) @ point

    def inner(self, point, a, b):
        """`tr(B^-1 a B^-1 b)`."""
        left = jnp.linalg.solve(point, a)
        right = left if b is a else jnp.linalg.solve(point, b)
        return jnp.sum(left * right.T)

    def retract(self, point, step):
        """The end of the geodesic."""
        values, vectors = jnp.linalg.eigh(point)
        root = (vectors * jnp.sqrt(values)[jnp.newaxis]) @ vectors.T
        inverse = (vectors / jnp.sqrt(values)[jnp.newaxis]) @ vectors.T
        logs, vectors = jnp.linalg.eigh(_symmetric(inverse @ step @ inverse))
        grown = (vectors * jnp.exp(logs)[jnp.newaxis]) @ vectors.T
        return _symmetric(root @ grown @ root)

    def transport(self, point, tangent):
        """The tangent as it is, made symmetric."""
        del point
        return _symmetric(tangent)

    def random(self, key):
        """A random rotation of eigenvalues between 1 and 2."""
        first, second = jax.random.split(key)
        rotation = Orthogonal(self.dim).random(first)
        values = 1 + jax.random.uniform(second, (self.dim,))
        return (rotation * values[jnp.newaxis]) @ rotation.T

    @property
    def reach(self):
        """A factor of e for each eigenvalue: longer steps end at singular matrices."""
        return self.dim**0.5


@dataclasses.dataclass(frozen=True)
class Product:
    """Tuples of points, one of each manifold."""

    manifolds: tuple[Any, ...]

    def gradient(self, point, euclidean):
        """One for each part."""
        return tuple(
            m.gradient(*each)
            for m, *each in zip(self.manifolds, point, euclidean, strict=True)
        )

    def inner(self, point, a, b):
        """The sum over the parts."""
        parts = zip(self.manifolds, point, a, b, strict=True)
        return sum((m.inner(*each) for m, *each in parts), start=jnp.zeros(()))

    def retract(self, point, step):
        """One for each part."""
        return tuple(
            m.retract(*each)
            for m, *each in zip(self.manifolds, point, step, strict=True)
        )

    def transport(self, point, tangent):
        """One for each part."""
        return tuple(
            m.transport(*each)
            for m, *each in zip(self.manifolds, point, tangent, strict=True)
        )

    def random(self, key):
        """One for each part."""
        keys = jax.random.split(key, len(self.manifolds))
        return tuple(m.random(k) for m, k in zip(self.manifolds, keys, strict=True))

    @property
    def reach(self):
        """Of all parts together."""
        return sum(m.reach**2 for m in self.manifolds) ** 0.5


class Minimum(NamedTuple):
    """Where conjugate gradient ended."""

    point: Point
    cost: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    iterations: Any  # int32
    costs: Float[Array, " most"]  # a value an iteration; NaN after the last


class _State(NamedTuple):
    point: Point
    cost: Any
    gradient: Tangent
    norm: Any
    direction: Tangent
    step: Any  # length of the last step's direction times its factor
    number: Any
    stalled: Any
    costs: Any


def conjugate_gradient(
    cost: Callable[[Point], Float[Array, ""]],
    manifold: Manifold,
    start: Point,
    *,
    most: int = 1000,
    tolerance: float = 1e-6,
) -> Minimum:
    """Riemannian conjugate gradient with Hestenes-Stiefel's beta and Armijo's rule.

    A direction that does not descend is replaced by the gradient's. Ends when the
    gradient's norm is below `tolerance`, when no step lowers the cost any more, or
    after `most` iterations.

    Args:
      cost: of a point; differentiable.
      manifold: of the points.
      start: a point.
      most: iterations.
      tolerance: of the gradient's norm.
    """
    value_and_gradient = jax.value_and_grad(cost)

    def assess(point):
        value, euclidean = value_and_gradient(point)
        gradient = manifold.gradient(point, euclidean)
        norm = jnp.sqrt(jnp.maximum(manifold.inner(point, gradient, gradient), 0))
        return value, gradient, norm

    def search(state, slope, length):
        """Halves a step until it lowers the cost by enough of what its slope says."""

        def step_of(factor):
            return jax.tree.map(lambda d: factor * d, state.direction)

        def too_long(carry):
            factor, value, tries = carry
            enough = value <= state.cost + _ARMIJO * factor * slope
            return ~enough & (tries < _HALVINGS)

        def halve(carry):
            factor, _, tries = carry
            factor = factor / 2
            point = manifold.retract(state.point, step_of(factor))
            return factor, cost(point), tries + 1

        longest = jnp.minimum(state.step, manifold.reach)
        first = longest / jnp.maximum(length, _EPSILON)
        value = cost(manifold.retract(state.point, step_of(first)))
        factor, value, tries = jax.lax.while_loop(too_long, halve, (first, value, 0))
        moved = value < state.cost
        return factor, tries, moved

    def iterate(state):
        slope = manifold.inner(state.point, state.gradient, state.direction)
        downhill = slope < 0
        direction = jax.tree.map(
            lambda d, g: jnp.where(downhill, d, -g), state.direction, state.gradient
        )
        slope = jnp.where(downhill, slope, -(state.norm**2))
        state = state._replace(direction=direction)
        squared = manifold.inner(state.point, direction, direction)
        length = jnp.sqrt(jnp.maximum(squared, 0))
        factor, tries, moved = search(state, slope, length)
        factor = jnp.where(moved, factor, 0)
        step = jax.tree.map(lambda d: factor * d, direction)
        point = manifold.retract(state.point, step)
        point = jax.tree.map(
            lambda new, old: jnp.where(moved, new, old), point, state.point
        )
        value, gradient, norm = assess(point)
        old_gradient = manifold.transport(point, state.gradient)
        old_direction = manifold.transport(point, direction)
        change = jax.tree.map(jnp.subtract, gradient, old_gradient)
        along = manifold.inner(point, change, old_direction)
        beta = manifold.inner(point, change, gradient) / jnp.where(along == 0, 1, along)
        # A step that led nowhere is followed by one along the gradient, once.
        beta = jnp.where(moved, jnp.maximum(beta, 0), 0)
        new_direction = jax.tree.map(lambda g, d: beta * d - g, gradient, old_direction)
        # The search began well if one halving was enough: it may begin there again.
        grown = jnp.where(tries == 0, 4.0, jnp.where(tries == 1, 2.0, 1.0))
        step_length = jnp.where(moved, grown * factor * length, norm)
        return _State(
            point=point,
            cost=value,
            gradient=gradient,
            norm=norm,
            direction=new_direction,
            step=step_length.astype(state.step.dtype),
            number=state.number + 1,
            stalled=jnp.where(moved, 0, state.stalled + 1),
            costs=state.costs.at[state.number].set(value),
        )

    def goes_on(state):
        return (state.number < most) & (state.norm > tolerance) & (state.stalled < 2)

    value, gradient, norm = assess(start)
    state = _State(
        point=start,
        cost=value,
        gradient=gradient,
        norm=norm,
        direction=jax.tree.map(jnp.negative, gradient),
        step=jnp.ones_like(norm),
        number=jnp.zeros((), jnp.int32),
        stalled=jnp.zeros((), jnp.int32),
        costs=jnp.full(most, jnp.nan, value.dtype),
    )
    end = jax.lax.while_loop(goes_on, iterate, state)
    return Minimum(end.point, end.cost, end.norm, end.number, end.costs)


_ARMIJO = 1e-4
_HALVINGS = 25


def _symmetric(matrix: Float[Array, "dim dim"]) -> Float[Array, "dim dim"]:
    return (matrix + matrix.T) / 2


def determinant_sign(matrices: Sequence[Float[Array, "dim dim"]]) -> Float[Array, ""]:
    """The sign of the product of determinants."""
    signs = [jnp.linalg.slogdet(matrix)[0] for matrix in matrices]
    return jnp.prod(jnp.stack(signs))
