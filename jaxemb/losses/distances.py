"""Distances between vectors, one value per example, whose gradients are finite at 0.

Those of "Reconstruction of Word Embeddings from Sub-Word Parameters", sec. 3, with u a
target and v what imitates it, and those that other papers train with. All in float32 at
least, over the last axis.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb import numerics

Vectors = Float[Array, "*batch dim"]
Distance = Callable[[Vectors, Vectors], Float[Array, "*batch"]]


def d1(u: Vectors, v: Vectors) -> Float[Array, "*batch"]:
    """`sum_i |u_i - v_i|`; its gradient is 0 in the coordinates that agree."""
    return jnp.sum(_size(_difference(u, v)), axis=-1)


def d2(u: Vectors, v: Vectors) -> Float[Array, "*batch"]:
    """`sum_i (u_i - v_i)^2`."""
    return jnp.sum(jnp.square(_difference(u, v)), axis=-1)


def d_sqrt2(u: Vectors, v: Vectors) -> Float[Array, "*batch"]:
    """`sqrt(sum_i (u_i - v_i)^2)`; its gradient is 0 where u and v are the same."""
    return numerics.safe_norm(_difference(u, v), axis=-1)


def d_inf(u: Vectors, v: Vectors) -> Float[Array, "*batch"]:
    """`max_i |u_i - v_i|`; coordinates that share the maximum share its gradient.

    The gradient is 0 where u and v are the same.
    """
    return jnp.max(_size(_difference(u, v)), axis=-1)


def d_cos(u: Vectors, v: Vectors) -> Float[Array, "*batch"]:
    """`-u.v / (|u| |v|)`: 0, with gradient 0, where a vector is 0."""
    return -jnp.sum(numerics.safe_unit(u) * numerics.safe_unit(v), axis=-1)


def squared_cosine(u: Vectors, v: Vectors) -> Float[Array, "*batch"]:
    """`(1 - u.v / (|u| |v|))^2`, the cosine being 0 where a vector is 0.

    No metric: it breaks the triangle inequality.
    """
    return jnp.square(1 + d_cos(u, v))


def kl(u: Vectors, v: Vectors) -> Float[Array, "*batch"]:
    """`sum_i u_i log(u_i / v_i)` of two distributions, a term with u_i = 0 being 0.

    inf where v_i is 0 and u_i is not. Neither is normalised here. The gradient is 0 in
    coordinates in which u is 0.
    """
    u, v = _float32(u), _float32(v)
    counts = u > 0
    known = counts & (v > 0)
    ratio = jnp.log(jnp.where(counts, u, 1)) - jnp.log(jnp.where(known, v, 1))
    terms = jnp.where(counts, u * ratio, 0)
    return jnp.sum(jnp.where(counts & ~known, jnp.inf, terms), axis=-1)


def kl_softmax(
    u: Vectors, v: Vectors, mask: Bool[Array, "*batch dim"] | None = None
) -> Float[Array, "*batch"]:
    """`sum_i p_i (log p_i - log q_i)` with `p = softmax(u)`, `q = softmax(v)`.

    At least 0, and 0 where u and v differ by a constant.

    Args:
      u: the logits of what is right.
      v: those of what imitates it.
      mask: the coordinates that the softmaxes are over; 0 for a vector without any.
    """
    u, v = _float32(u), _float32(v)
    counted = jnp.ones(u.shape, bool) if mask is None else mask
    out = jnp.finfo(jnp.float32).min
    log_p, log_q = (jax.nn.log_softmax(jnp.where(counted, x, out)) for x in (u, v))
    return jnp.sum(jnp.where(counted, jnp.exp(log_p) * (log_p - log_q), 0), axis=-1)


def symmetric_kl_softmax(
    u: Vectors, v: Vectors, mask: Bool[Array, "*batch dim"] | None = None
) -> Float[Array, "*batch"]:
    """`KL(p | q) + KL(q | p)` with `p = softmax(u)`, `q = softmax(v)`.

    0 where u and v differ by a constant, and only there; see `kl_softmax`.
    """
    return kl_softmax(u, v, mask) + kl_softmax(v, u, mask)


def cosine_dissimilarity(u: Vectors, v: Vectors) -> Float[Array, "*batch"]:
    """`1 - u.v / (|u| |v|)`, from 0 to 2; 1 where a vector is 0."""
    return 1 + d_cos(u, v)


def asymmetric_cosine(u: Vectors, v: Vectors) -> Float[Array, "*batch"]:
    """`1 - u.v / |u|^2`: how v relates to u, and not u to v; 1 where u is 0.

    The cosine dissimilarity where both are of one length. No distance: below 0 where v
    reaches beyond u.
    """
    norm = numerics.safe_norm(u, axis=-1)
    zero = norm == 0
    square = jnp.square(jnp.where(zero, 1, norm))
    product = jnp.sum(_float32(u) * _float32(v), axis=-1)
    return 1 - jnp.where(zero, 0, product / square)


def nonnegative_floor(distance: Distance, u: Vectors) -> Float[Array, "*batch"]:
    """The least distance from u that a v without negative coordinates can have.

    `max(u, 0)` attains it for `d1`, `d2`, `d_sqrt2` and `d_inf`, as no coordinate of v
    can be nearer to a negative one of u, and for `d_cos`, `squared_cosine` and
    `cosine_dissimilarity`, as no direction can. So for `d2` the floor is
    `sum_i min(u_i, 0)^2`, for `d1` `sum_i max(-u_i, 0)`, for `d_cos` minus the length
    of the positive part over that of u. For the others here this is no floor.
    """
    return distance(u, jnp.maximum(u, 0))


def _float32(x: Array) -> Array:
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def _difference(u: Array, v: Array) -> Array:
    return _float32(u) - _float32(v)


def _size(x: Array) -> Array:
    """The absolute value; the derivative of `jnp.abs` at 0 is 1, here it is 0."""
    return x * jax.lax.stop_gradient(jnp.sign(x))
