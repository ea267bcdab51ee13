"""The inner maximisation: small changes of embeddings that raise a loss."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from jaxemb import axes, numerics
from jaxemb.errors import InputError

Embeddings = Float[Array, "*batch length dim"]
Mask = Bool[Array, "*batch length"]
Norm = Literal["inf", "l2", "sign"]
Projection = Literal["clip", "step_only", "renorm"]
Over = Literal["token", "text"]
Start = Literal["normal", "uniform", "unit"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ascent:
    """How a change d of embeddings is found.

        d ~ start                                          (0 at padding)
        K times:  g = grad_d loss(E + d)                   (0 at padding)
            clip:       d <- project(d + eta g / |g|)      (into the ball of epsilon)
            step_only:  d <- eta g / |g|                   (no ball; d is forgotten)
            renorm:     d <- epsilon (d + eta g) / |d + eta g|

    |g| is the largest entry for "inf", the Euclidean length for "l2"; for "sign" it is
    the sign of g that is taken, and the ball is that of "inf". The numbers `epsilon`,
    `eta` and `sigma` may be traced.
    """

    steps: int = 1
    """K; with 0 the start itself is the change."""
    epsilon: Any = 1e-3
    """Radius of the ball."""
    eta: Any = 1e-3
    """Size of a step."""
    sigma: Any = 1e-5
    """Scale of the start: 0 starts at 0, where the slope of a divergence is 0 too."""
    norm: str = "inf"
    """One of `Norm`."""
    projection: str = "clip"
    """One of `Projection`."""
    over: str = "token"
    """What is normalised and projected by itself: each token, or each text whole."""
    start: str = "normal"
    """Normal numbers; uniform ones, up to sigma for "inf" and "sign", up to sigma over
    the root of their number for "l2"; or a normal direction of length sigma."""
    last: Any = None
    """The size that d is brought to after the steps; None leaves it."""
    guard: Any = 1e-6
    """Added to |g|; where |g| is 0 there is no step, whatever it is."""

    def __post_init__(self) -> None:
        """Names the first setting that there is not."""
        for name, kinds in (
            ("norm", Norm),
            ("projection", Projection),
            ("over", Over),
            ("start", Start),
        ):
            if getattr(self, name) not in get_args(kinds):
                raise InputError(
                    f"Ascent.{name} is {getattr(self, name)!r}; expected one of "
                    f"{', '.join(get_args(kinds))}."
                )
        if self.steps < 0:
            raise InputError(f"Ascent.steps is {self.steps}; expected 0 or more.")


def ascend(
    loss: Callable[[Embeddings], Float[Array, "..."]],
    embeddings: Embeddings,
    mask: Mask,
    key: Key[Array, ""],
    ascent: Ascent,
) -> Embeddings:
    """A change of the embeddings that raises their loss; no gradient flows through it.

    Args:
      loss: of embeddings, a value an example or any other number of them: their sum is
        what is raised, so that an example's change does not depend on its batch.
      embeddings: of tokens.
      mask: False at padding, which is not changed.
      key: of the start; that of an example of the global batch does not depend on the
        devices it is spread over.
      ascent: how.

    Returns:
      The change, in float32 at least.
    """
    change = first_change(embeddings, mask, key, ascent)
    if ascent.steps > 0:
        step = ascending(loss, embeddings, mask, ascent)
        if ascent.steps == 1:
            change = step(change)
        else:
            change = jax.lax.fori_loop(0, ascent.steps, lambda _, d: step(d), change)
    if ascent.last is not None:
        change = ascent.last * _unit(change, ascent)
    return jax.lax.stop_gradient(change)


def first_change(
    embeddings: Embeddings, mask: Mask, key: Key[Array, ""], ascent: Ascent
) -> Embeddings:
    """Where an ascent begins; inside the ball if it projects into one."""
    shape = embeddings.shape
    index = axes.example_offset(shape[0]) + jnp.arange(shape[0])
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, index)
    dtype = jnp.promote_types(embeddings.dtype, jnp.float32)
    if ascent.start == "uniform":
        draw = lambda key: jax.random.uniform(key, shape[1:], dtype, -1, 1)  # noqa: E731
    else:
        draw = lambda key: jax.random.normal(key, shape[1:], dtype)  # noqa: E731
    change = jnp.where(mask[..., None], jax.vmap(draw)(keys), 0)
    if ascent.start == "unit":
        change = _unit(change, dataclasses.replace(ascent, guard=0.0))
    elif ascent.start == "uniform" and ascent.norm == "l2":
        change = change / jnp.sqrt(_entries(mask, shape[-1], ascent))
    return _projected(ascent.sigma * change, ascent)


def ascending(
    loss: Callable[[Embeddings], Float[Array, "..."]],
    embeddings: Embeddings,
    mask: Mask,
    ascent: Ascent,
) -> Callable[[Embeddings], Embeddings]:
    """One step of an ascent, from change to change."""
    embeddings = jax.lax.stop_gradient(embeddings)

    def total(change):
        return jnp.sum(loss(embeddings + change))

    # What `loss` closes over, a model's parameters, is made constant: otherwise a
    # gradient outside would differentiate this one a second time.
    dtype = jnp.promote_types(embeddings.dtype, jnp.float32)
    pure, constants = jax.closure_convert(total, jnp.zeros(embeddings.shape, dtype))
    slope = jax.grad(pure)
    constants = jax.lax.stop_gradient(constants)

    def step(change: Embeddings) -> Embeddings:
        gradient = jnp.where(mask[..., None], slope(change, *constants), 0)
        if ascent.projection == "renorm":
            return ascent.epsilon * _unit(change + ascent.eta * gradient, ascent)
        moved = ascent.eta * _unit(gradient, ascent)
        if ascent.projection == "step_only":
            return moved
        return _projected(change + moved, ascent)

    return step


def _axis(ascent: Ascent) -> tuple[int, ...]:
    return (-1,) if ascent.over == "token" else (-2, -1)


def _size(x: Array, ascent: Ascent) -> Array:
    """The norm over a token or a text, its axes kept."""
    if ascent.norm != "l2":
        return jnp.max(jnp.abs(x), axis=_axis(ascent), keepdims=True)
    if ascent.over == "token":
        return numerics.safe_norm(x, keepdims=True)
    flat = x.reshape(*x.shape[:-2], -1)
    return numerics.safe_norm(flat, keepdims=True)[..., None]


def _unit(x: Array, ascent: Ascent) -> Array:
    """`x / |x|`, 0 where x is 0."""
    if ascent.norm == "sign":
        return jnp.sign(x)
    size = _size(x, ascent)
    none = size == 0
    return jnp.where(none, 0, x / jnp.where(none, 1, size + ascent.guard))


def _projected(change: Array, ascent: Ascent) -> Array:
    """The nearest change in the ball, if there is one."""
    if ascent.projection != "clip":
        return change
    if ascent.norm != "l2":
        return jnp.clip(change, -ascent.epsilon, ascent.epsilon)
    size = _size(change, ascent)
    inside = size <= ascent.epsilon
    return jnp.where(
        inside, change, change * (ascent.epsilon / jnp.where(inside, 1, size))
    )


def _entries(mask: Mask, dim: int, ascent: Ascent) -> Array:
    """How many numbers are normalised together, one at least."""
    if ascent.over == "token":
        return jnp.full((*mask.shape, 1), dim, jnp.float32)
    tokens = jnp.sum(mask, axis=-1, dtype=jnp.float32)[..., None, None]
    return jnp.maximum(tokens, 1) * dim
