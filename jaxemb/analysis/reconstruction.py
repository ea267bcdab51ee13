"""What a student of word vectors has learnt: its losses' geometry, a constant's."""

import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxemb.analysis import figures
from jaxemb.losses.distances import Distance


def distance_contours(
    distances: Mapping[str, Distance],
    target: tuple[float, float] = (1.0, 0.6),
    radius: float = 0.5,
) -> Figure:
    """Where in the plane each distance from a target has the same value.

    The value is that of the point `radius` to the right of the target; for a distance
    between directions it is reached on a ray.

    Args:
      distances: name to function.
      target: the point x.
      radius: how far the contours are from it along the first axis.
    """
    figure, axes = figures.plain_figure(4.4, 4.2)
    width = 3 * radius
    x, y = (np.linspace(c - width, c + width, 301) for c in target)
    grid = jnp.stack(jnp.meshgrid(jnp.asarray(x), jnp.asarray(y)), axis=-1)
    centre = jnp.broadcast_to(jnp.asarray(target), grid.shape)
    beside = jnp.asarray([target[0] + radius, target[1]])
    handles = []
    for (name, distance), colour in zip(
        distances.items(), figures.PALETTE, strict=False
    ):
        level = float(distance(jnp.asarray(target), beside))
        values = np.asarray(distance(centre, grid))
        axes.contour(x, y, values, levels=[level], colors=[colour], linewidths=1.8)
        handles.append(Line2D([], [], color=colour, lw=1.8, label=name))
    axes.plot(*[[c] for c in target], "o", color=figures.INK, markersize=5)
    axes.annotate("x", target, (6, 6), textcoords="offset points", color=figures.INK)
    axes.set_aspect("equal")
    axes.legend(handles=handles, frameon=False, fontsize=9, labelcolor=figures.INK)
    figures.put_title(figure, "points at the same distance from x")
    return figure


@functools.partial(
    jax.jit, static_argnames=("distance", "nonnegative", "steps", "rate")
)
def best_constant(
    distance: Distance,
    targets: Float[Array, "words dim"],
    *,
    nonnegative: bool = False,
    steps: int = 400,
    rate: float = 0.05,
) -> tuple[Float[Array, " dim"], Float[Array, ""]]:
    """The one vector that is nearest to all targets, and its mean distance.

    What a student attains that has learnt nothing of single words: for `d1` the median,
    for `d2` the mean. Found by Adam from the mean, its rate falling to 0.

    Args:
      distance: that is minimised.
      targets: a row a word.
      nonnegative: whether the vector is without negative coordinates.
      steps: of Adam.
      rate: its first.
    """

    def vector(free):
        return jnp.maximum(free, 0) if nonnegative else free

    def mean(free):
        rows = jnp.broadcast_to(vector(free), targets.shape)
        return jnp.mean(distance(targets, rows))

    def step(number, carry):
        free, first, second = carry
        gradient = jax.grad(mean)(free)
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * jnp.square(gradient)
        moved = first / (1 - 0.9 ** (number + 1.0))
        moved /= jnp.sqrt(second / (1 - 0.99 ** (number + 1.0))) + 1e-8
        falling = (1 + jnp.cos(jnp.pi * number / steps)) / 2
        return free - rate * falling * moved, first, second

    start = jnp.mean(targets, axis=0)
    if nonnegative:  # at and below 0 there is no gradient
        start = jnp.maximum(start, 1e-2)
    nothing = jnp.zeros_like(start)
    free, _, _ = jax.lax.fori_loop(0, steps, step, (start, nothing, nothing))
    return vector(free), mean(free)
