"""Geometric meta-embeddings: a rotation for each source and one metric for all.

With X and Z the rows of the same words in two sources (Jawanpuria et al. 2020, eq. 1):

    J(U, V, B) = |X U^T B V Z^T - I|^2 + C |B|^2,   U, V orthogonal, B positive definite

Only the d × d matrices `X^T X`, `Z^T Z` and `X^T Z` enter, never a words × words one.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from jaxemb.errors import InputError
from jaxemb.spaces import manifolds, spectrum
from jaxemb.spaces.normalize import unit

Space = Float[np.ndarray, "words dim"]


@dataclasses.dataclass(frozen=True, eq=False)
class Grams:
    """What the objective needs of the sources: `X_s^T X_t` for all s and t."""

    products: tuple[tuple[np.ndarray, ...], ...]  # [s][t] is (dim, dim)
    words: int

    @classmethod
    def of(cls, sources: Sequence[Space]) -> "Grams":
        """The products of sources whose rows are the same words, all of one width."""
        widths = {source.shape[1] for source in sources}
        if len(sources) < 2 or len(widths) > 1:
            raise InputError(
                f"{len(sources)} sources of widths {sorted(widths)}; expected at least "
                "two of one width: see spaces.combine.same_width"
            )
        count = len(sources)
        upper = {
            (s, t): spectrum.gram(sources[s], sources[t])
            for s in range(count)
            for t in range(s, count)
        }
        rows = tuple(
            tuple(upper[s, t] if s <= t else upper[t, s].T for t in range(count))
            for s in range(count)
        )
        return cls(rows, len(sources[0]))


@dataclasses.dataclass(frozen=True, eq=False)
class Geometry:
    """A rotation for each source and the metric that they share."""

    rotations: tuple[np.ndarray, ...]  # (dim, dim) each: U of x -> U x
    metric: np.ndarray  # (dim, dim), positive definite

    @classmethod
    def identity(cls, sources: int, dim: int) -> "Geometry":
        """The geometry of plain averaging and concatenation."""
        return cls(tuple(np.eye(dim) for _ in range(sources)), np.eye(dim))

    def maps(self) -> tuple[np.ndarray, ...]:
        """For each source the matrix from rows to latent rows, `U^T B^(1/2)`."""
        if np.array_equal(self.metric, np.eye(len(self.metric))):
            return tuple(rotation.T for rotation in self.rotations)
        root = spectrum.power(self.metric, 0.5)
        return tuple(rotation.T @ root for rotation in self.rotations)

    def latents(
        self, sources: Sequence[Space], *, normalize: bool = True
    ) -> list[np.ndarray]:
        """Every source in the shared space, `B^(1/2) U x` for each row x.

        Args:
          sources: as many as rotations; of any words.
          normalize: give each row length 1, as the authors' program does before it
            combines them; the paper is silent.
        """
        mapped = [
            np.asarray(source, np.float64) @ matrix
            for source, matrix in zip(sources, self.maps(), strict=True)
        ]
        return [unit(latent) for latent in mapped] if normalize else mapped


def objective(geometry: Geometry, grams: Grams, c: float) -> float:
    """J, summed over all pairs of sources where there are more than two."""
    with jax.enable_x64(True):
        point = (*geometry.rotations, geometry.metric)
        cost = _cost(grams, c)
        return float(cost(tuple(jnp.asarray(part, jnp.float64) for part in point)))


def closed_form(grams: Grams, c: float) -> Geometry:
    """The minimum of J for two sources.

    `|B| = |W|` for `W = U^T B V`, and every W of full rank is such a product, so J is a
    ridge regression in W: `Gx W Gz + C W = Gxz`. With `Gx = Qx diag(a) Qx^T` and
    `Gz = Qz diag(b) Qz^T` its solution is

        W = Qx [(Qx^T Gxz Qz)_ij / (a_i b_j + C)] Qz^T

    and the singular value decomposition `W = P S R^T` gives `U = P^T`, `B = S`,
    `V = R^T`; a common rotation of the latent space is left free and changes nothing.
    """
    _check(grams, c)
    if len(grams.products) != 2:
        raise InputError(
            f"{len(grams.products)} sources: the closed form is for two; use riemannian"
        )
    left, values, right = np.linalg.svd(_ridge(grams, 0, 1, c))
    values = np.maximum(values, spectrum.FLOOR * values[0])
    return Geometry((left.T, right), np.diag(values))


def start_for(grams: Grams, c: float) -> Geometry:
    """Where to start from: the closed forms of the first source with each other one.

    Of two sources it is the minimum. With the first source's rotation as the identity,
    the rest have `P R^T`, and the metric is the mean of the `P S P^T`.
    """
    _check(grams, c)
    rotations, metrics = [np.eye(len(grams.products[0][0]))], []
    for other in range(1, len(grams.products)):
        left, values, right = np.linalg.svd(_ridge(grams, 0, other, c))
        values = np.maximum(values, spectrum.FLOOR * values[0])
        rotations.append(left @ right)
        metrics.append((left * values) @ left.T)
    return Geometry(tuple(rotations), np.mean(metrics, axis=0))


def random_start(
    grams: Grams, key: PRNGKeyArray, *, like: Geometry | None = None
) -> Geometry:
    """A random geometry, as the paper starts from.

    A descent does not change the sign of a determinant, so that from a start of the
    other sign the minimum is out of reach. From one of the right sign it is in reach,
    but an eigenvalue of the metric that falls near 0 on the way grows again only
    slowly, and many starts end a little above the minimum for that reason.

    Args:
      grams: of the sources.
      key: of the draw.
      like: a geometry whose signs of determinants the rotations shall have.
    """
    dim, count = len(grams.products[0][0]), len(grams.products)
    with jax.enable_x64(True):
        manifold = _manifold(count, dim)
        *rotations, metric = map(np.array, manifold.random(key))
    if like is not None:
        wanted = [np.linalg.slogdet(rotation)[0] for rotation in like.rotations]
        for rotation, sign in zip(rotations, wanted, strict=True):
            if np.linalg.slogdet(rotation)[0] != sign:
                rotation[0] *= -1
    return Geometry(tuple(rotations), metric)


def disturbed(geometry: Geometry, key: PRNGKeyArray, size: float) -> Geometry:
    """A random geometry near another: `size` is the length of the step to it."""
    with jax.enable_x64(True):
        manifold = _manifold(len(geometry.rotations), len(geometry.metric))
        point = tuple(map(jnp.asarray, (*geometry.rotations, geometry.metric)))
        keys = jax.random.split(key, len(point))
        noise = tuple(
            jax.random.normal(k, part.shape, part.dtype)
            for k, part in zip(keys, point, strict=True)
        )
        # A gradient is a tangent that fits the metric, which plain noise does not.
        tangent = manifold.gradient(point, noise)
        length = jnp.sqrt(manifold.inner(point, tangent, tangent))
        step = jax.tree.map(lambda part: size / length * part, tangent)
        *rotations, metric = map(np.asarray, manifold.retract(point, step))
    return Geometry(tuple(rotations), metric)


def riemannian(
    grams: Grams,
    c: float,
    start: Geometry,
    *,
    metric: bool = True,
    rotate: bool = True,
    most: int = 1000,
    tolerance: float = 1e-6,
) -> tuple[Geometry, manifolds.Minimum]:
    """The minimum of J by conjugate gradient on O(d) × … × O(d) × SPD(d), the paper's.

    Args:
      grams: of two sources or more; J is summed over all pairs.
      c: weight of the metric's norm.
      start: see `start_for` and `random_start`.
      metric: whether B is learned; else it stays as `start` has it.
      rotate: whether the rotations are.
      most: iterations.
      tolerance: of the gradient's norm.

    Returns:
      The geometry, and how the descent went.
    """
    _check(grams, c)
    if not metric and not rotate:
        raise InputError("riemannian: nothing to learn without metric and rotations")
    dim, count = len(start.metric), len(grams.products)
    with jax.enable_x64(True):
        cost = _cost(grams, c)
        fixed = [jnp.asarray(x, jnp.float64) for x in (*start.rotations, start.metric)]
        free = [rotate] * count + [metric]
        kinds = [manifolds.Orthogonal(dim)] * count + [manifolds.Definite(dim)]
        chosen = [i for i, is_free in enumerate(free) if is_free]

        def whole(part):
            learned = iter(part)
            return tuple(
                next(learned) if is_free else value
                for is_free, value in zip(free, fixed, strict=True)
            )

        descend = jax.jit(
            lambda begin: manifolds.conjugate_gradient(
                lambda part: cost(whole(part)),
                manifolds.Product(tuple(kinds[i] for i in chosen)),
                begin,
                most=most,
                tolerance=tolerance,
            )
        )
        end = descend(tuple(fixed[i] for i in chosen))
        *rotations, learned_metric = map(np.asarray, whole(end.point))
        end = jax.tree.map(np.asarray, end)
    return Geometry(tuple(rotations), learned_metric), end


def _manifold(sources: int, dim: int) -> manifolds.Product:
    kinds = [manifolds.Orthogonal(dim)] * sources
    return manifolds.Product((*kinds, manifolds.Definite(dim)))


def _cost(grams: Grams, c: float):
    """J as a function of the rotations and, last, the metric."""
    count = len(grams.products)
    products = [[jnp.asarray(g, jnp.float64) for g in row] for row in grams.products]

    def cost(point: tuple[Array, ...]) -> Float[Array, ""]:
        *rotations, metric = point
        total = c * jnp.sum(metric**2)
        for s in range(count):
            for t in range(s + 1, count):
                w = rotations[s].T @ metric @ rotations[t]
                quadratic = jnp.sum((products[s][s] @ w @ products[t][t]) * w)
                cross = jnp.sum(w * products[s][t])
                total += quadratic - 2 * cross + grams.words
        return total

    return cost


def _ridge(grams: Grams, s: int, t: int, c: float) -> Float[np.ndarray, "dim dim"]:
    """The W of two sources."""
    a, first = np.linalg.eigh(grams.products[s][s])
    b, second = np.linalg.eigh(grams.products[t][t])
    inside = first.T @ grams.products[s][t] @ second
    inside /= np.maximum(a, 0)[:, np.newaxis] * np.maximum(b, 0)[np.newaxis] + c
    return first @ inside @ second.T


def _check(grams: Grams, c: float) -> None:
    if not c > 0:
        raise InputError(f"c = {c}: expected a number above 0")
    if not all(np.all(np.isfinite(g)) for row in grams.products for g in row):
        raise InputError("a source has numbers that are not finite; expected numbers")
