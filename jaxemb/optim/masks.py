"""Which weights to keep: the largest, or any, singly, by rows, columns or heads.

A mask is True where a weight is kept. Of `n` units `floor(s n)` are removed at the
sparsity `s`, exactly, whatever ties there are: of equal ones the last are removed.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray, UInt32

from jaxemb.errors import InputError
from jaxemb.optim.groups import Where, by_path, path_name

MATRICES = r"(.*/)?(kernel|embedding)"
"""Kernels of dense layers and tables; no biases, no norms."""

Scope = Literal["matrix", "global"]
Criterion = Literal["magnitude", "random"]
_FREE = 1e-3  # s n is a whole number but for rounding: 0.7 of 10 is 7, not 6


@dataclasses.dataclass(frozen=True)
class Heads:
    """Heads of attention, each one unit of the matrices beside each other.

    Of a layer's `query`, `key` and `value` a head has neighbouring outputs (and their
    biases, where they are chosen), of its `output` the inputs.
    """

    heads: int


Unit = Literal["weights", "rows", "columns"] | Heads
"""What is kept or removed as one: a weight, a row (a word of a table), a column."""


def magnitude_mask(
    weights: Float[Array, "..."], sparsity: jax.typing.ArrayLike
) -> Bool[Array, "..."]:
    """`|w| > t`, t the s-quantile of all |w|: keeps the largest weights."""
    return _kept([_magnitude_keys(weights)], sparsity)[0]


def random_mask(
    key: PRNGKeyArray, weights: Float[Array, "..."], sparsity: jax.typing.ArrayLike
) -> Bool[Array, "..."]:
    """Keeps weights drawn without regard to them; one key's masks are nested."""
    return _kept([jax.random.bits(key, weights.shape, jnp.uint32)], sparsity)[0]


def keep_masks(
    params: Any,
    sparsity: jax.typing.ArrayLike,
    *,
    where: Where = MATRICES,
    unit: Unit = "weights",
    scope: Scope = "matrix",
    criterion: Criterion = "magnitude",
    seed: int = 0,
) -> dict[str, Array]:
    """The masks of the chosen parameters, by path.

    Args:
      params: any tree of parameters.
      sparsity: the share to remove, in [0, 1].
      where: which parameters, as `by_path` takes them.
      unit: what is removed as one; it is judged by the mean of its |w|.
      scope: whether every matrix (with `Heads`, every layer) loses the same share, or
        all units are compared with each other.
      criterion: "random" is the control, which does not look at the weights.
      seed: of the control.

    Raises:
      InputError: where nothing is chosen, or units do not fit what is.
    """
    return _masks(
        selected(params, where),
        sparsity,
        unit=unit,
        scope=scope,
        criterion=criterion,
        seed=seed,
    )


def delete_information(params: Any, masks: Mapping[str, jax.typing.ArrayLike]) -> Any:
    """`W <- M W`: zeros where a mask is False.

    An optimiser that goes on from there without masks may fill them again, which
    separates what was lost with the weights from what fewer weights can hold;
    `keep_zeros` does not let it.
    """

    def delete(path, leaf):
        mask = masks.get(path_name(path))
        return leaf if mask is None else jnp.where(mask, leaf, 0)

    return jax.tree_util.tree_map_with_path(delete, params)


def selected(params: Any, where: Where) -> dict[str, Array]:
    """The chosen parameters by path."""
    chosen = jax.tree.leaves(by_path(where)(params))
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return {
        path_name(path): jnp.asarray(leaf)
        for (path, leaf), hit in zip(leaves, chosen, strict=True)
        if hit
    }


def pack(mask: Bool[Array, "..."]) -> Array:
    """Eight places a byte; the first axis stays, so that rows can be spread."""
    if mask.ndim < 2:
        return jnp.packbits(mask.reshape(-1))
    return jnp.packbits(mask.reshape(mask.shape[0], -1), axis=-1)


def unpack(packed: Array, shape: Sequence[int]) -> Bool[Array, "..."]:
    """The mask of this shape that was packed."""
    shape = tuple(shape)
    rows = shape[:1] if len(shape) > 1 else ()
    size = functools.reduce(lambda a, b: a * b, shape[len(rows) :], 1)
    places = jnp.arange(7, -1, -1, dtype=jnp.uint8)
    bits = packed[..., None] & (jnp.uint8(1) << places)[(None,) * packed.ndim]
    return (bits != 0).reshape(*rows, -1)[..., :size].reshape(shape)


@dataclasses.dataclass(frozen=True, eq=False)
class _Family:
    """Units that are compared, and how their fate becomes the masks of parameters."""

    magnitudes: Array
    spread: dict[str, Callable[[Array], Array]]


# One program for all matrices and shares; by itself every loop is compiled anew.
@functools.partial(jax.jit, static_argnames=("unit", "scope", "criterion", "seed"))
def _masks(
    chosen: dict[str, Array],
    sparsity: jax.typing.ArrayLike,
    *,
    unit: Unit,
    scope: Scope,
    criterion: Criterion,
    seed: int,
) -> dict[str, Array]:
    families = _families(chosen, unit)
    if criterion == "magnitude":
        keys = [_magnitude_keys(family.magnitudes) for family in families]
    else:
        root = jax.random.key(seed)
        keys = [
            jax.random.bits(
                jax.random.fold_in(root, i), family.magnitudes.shape, jnp.uint32
            )
            for i, family in enumerate(families)
        ]
    if scope == "global":
        kept = _kept(keys, sparsity)
    else:
        kept = [_kept([one], sparsity)[0] for one in keys]
    return {
        path: spread(mask)
        for family, mask in zip(families, kept, strict=True)
        for path, spread in family.spread.items()
    }


def _families(chosen: Mapping[str, Array], unit: Unit) -> list[_Family]:
    if isinstance(unit, Heads):
        return _head_families(chosen, unit.heads)
    if unit == "weights":
        return [_Family(w, {path: lambda mask: mask}) for path, w in chosen.items()]
    return [_line_family(path, w, unit) for path, w in chosen.items()]


def _line_family(path: str, weights: Array, unit: str) -> _Family:
    if weights.ndim < 2:
        raise InputError(f"{path} has no {unit}; expected a matrix.")
    axis = 0 if unit == "rows" else weights.ndim - 1
    others = tuple(i for i in range(weights.ndim) if i != axis)
    sizes = jnp.mean(jnp.abs(weights.astype(jnp.float32)), axis=others)

    def spread(mask: Array) -> Array:
        return jnp.broadcast_to(jnp.expand_dims(mask, others), weights.shape)

    return _Family(sizes, {path: spread})


def _head_families(chosen: Mapping[str, Array], heads: int) -> list[_Family]:
    layers: dict[str, dict[str, Array]] = {}
    for path, weights in chosen.items():
        layers.setdefault(path.rpartition("/")[0].rpartition("/")[0], {})[path] = (
            weights
        )
    families = []
    for members in layers.values():
        totals, count, spread = jnp.zeros(heads), 0, {}
        for path, weights in members.items():
            axis = _head_axis(path, weights, heads)
            shape = weights.shape[:axis] + (heads, -1) + weights.shape[axis + 1 :]
            apart = jnp.abs(weights.astype(jnp.float32)).reshape(shape)
            others = tuple(i for i in range(apart.ndim) if i != axis)
            totals = totals + jnp.sum(apart, axis=others)
            count += weights.size // heads
            spread[path] = functools.partial(_over_heads, apart.shape, axis, weights)
        families.append(_Family(totals / count, spread))
    return families


def _head_axis(path: str, weights: Array, heads: int) -> int:
    owner, _, name = path.rpartition("/")
    role = owner.rpartition("/")[2]
    known = role in ("query", "key", "value") or (role == "output" and name == "kernel")
    if not known or weights.ndim > 2:
        raise InputError(
            f"{path} has no heads; expected kernels of two axes, or biases, under "
            "query, key and value, and kernels under output."
        )
    axis = 0 if role == "output" else weights.ndim - 1
    if weights.shape[axis] % heads:
        raise InputError(f"{path}: {weights.shape} cannot be split into {heads} heads.")
    return axis


def _over_heads(apart: tuple[int, ...], axis: int, weights: Array, mask: Array):
    others = tuple(i for i in range(len(apart)) if i != axis)
    return jnp.broadcast_to(jnp.expand_dims(mask, others), apart).reshape(weights.shape)


def _magnitude_keys(weights: Array) -> UInt32[Array, "..."]:
    """Whole numbers in the order of |w|: the bits of a float that is not negative."""
    magnitudes = jnp.abs(weights.astype(jnp.float32))
    return jax.lax.bitcast_convert_type(magnitudes, jnp.uint32)


def _kept(keys: Sequence[Array], sparsity: jax.typing.ArrayLike) -> list[Array]:
    """All but the `floor(s n)` smallest keys.

    The limit is found bit by bit from counts of smaller keys, 32 of them: no sorting,
    and where keys are spread over devices only counts travel.
    """
    size = sum(one.size for one in keys)
    if size >= 1 << 31:
        raise InputError(f"{size} weights are compared at once; expected below 2^31.")
    share = jnp.asarray(sparsity, jnp.float32)
    removed = jnp.clip(jnp.floor(share * size + _FREE), 0, size).astype(jnp.int32)
    limit = _largest(lambda x: _count(one < x for one in keys) < removed)
    equal = [_count([one == limit]) for one in keys]
    spared = sum(equal) + _count(one < limit for one in keys) - removed

    def by_place() -> list[Array]:
        left, masks = spared, []
        for one, ties in zip(keys, equal, strict=True):
            own = jnp.minimum(left, ties)
            masks.append((one > limit) | _first(one == limit, own))
            left = left - own
        return masks

    # Without ties there is none to spare: all that equal the limit are removed.
    return jax.lax.cond(spared == 0, lambda: [one > limit for one in keys], by_place)


def _first(places: Array, count: Array) -> Array:
    """True at the first `count` places that hold."""
    index = jax.lax.iota(jnp.uint32, places.size).reshape(places.shape)
    last = _largest(lambda x: _count([places & (index < x)]) < count)
    return places & (index <= last) & (count > 0)


def _largest(holds: Callable[[Array], Array]) -> UInt32[Array, ""]:
    """The largest number for which a condition, true up to some number, holds."""

    def step(i, found):
        more = found | (jnp.uint32(1) << (31 - i).astype(jnp.uint32))
        return jnp.where(holds(more), more, found)

    return jax.lax.fori_loop(0, 32, step, jnp.uint32(0))


def _count(masks: Any) -> Array:
    total = jnp.zeros([], jnp.int32)
    for mask in masks:
        total = total + jnp.sum(mask, dtype=jnp.int32)
    return total
