"""Pruning while training: zeros that a wrapped optimiser cannot fill.

The masks are part of the optimiser's state, a bit a weight, so that they are saved,
restored and spread over devices with it. Any model is pruned without changing it:

    import flax.linen, jax, jax.numpy as jnp, optax
    from jaxemb import optim

    model = flax.linen.Dense(8)  # your own
    x, y = jnp.ones((4, 16)), jnp.zeros((4, 8))
    params = model.init(jax.random.key(0), x)["params"]
    schedule = optim.cubic_sparsity(0.6, steps=100, period=10)
    tx = optim.pruned(optax.adamw(1e-3), schedule)
    state, update = tx.init(params), jax.jit(tx.update)
    loss = lambda params: jnp.mean((model.apply({"params": params}, x) - y) ** 2)
    for _ in range(100):
        updates, state = update(jax.grad(loss)(params), state, params)
        params = optax.apply_updates(params, updates)
    print(jnp.mean(params["kernel"] == 0))
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from jaxemb.errors import InputError
from jaxemb.optim.groups import Where, path_name
from jaxemb.optim.masks import (
    MATRICES,
    Criterion,
    Scope,
    Unit,
    keep_masks,
    pack,
    selected,
    unpack,
)


@dataclasses.dataclass(frozen=True)
class Sparsity:
    """Which share of weights is 0 after so many updates, and when they are chosen."""

    share: Callable[[Array], Any]
    """From the number of updates so far, this one included, to a share in [0, 1]."""
    due: Callable[[Array], Any]
    """Whether masks are chosen anew with this update."""


def cubic_sparsity(
    final: float,
    steps: int,
    *,
    initial: float = 0.0,
    period: int = 10,
    refresh_after: bool = False,
) -> Sparsity:
    """`s_t = s_f + (s_i - s_f) (1 - min(t / steps, 1))^3` (Zhu and Gupta 2017).

    Args:
      final: the share that is reached.
      steps: after how many updates.
      initial: the share to begin with.
      period: updates between choices of masks.
      refresh_after: whether masks are chosen anew after `steps`, too.
    """
    _check_shares(initial, final)
    if steps < 1 or period < 1:
        raise InputError(f"steps {steps}, period {period}; expected 1 or more.")

    def share(count):
        left = 1 - jnp.minimum(count / steps, 1)
        return final + (initial - final) * left**3

    def due(count):
        regular = count % period == 0
        return (regular & (refresh_after | (count < steps))) | (count == steps)

    return Sparsity(share, due)


def one_shot_sparsity(final: float, at: int = 1) -> Sparsity:
    """All at once with update `at`; before any update, see `delete_information`."""
    _check_shares(final)
    if at < 1:
        raise InputError(f"at is {at}; expected an update, counted from 1.")
    return Sparsity(
        lambda count: jnp.where(count >= at, final, 0.0), lambda count: count == at
    )


def periodic_sparsity(
    final: float, period: int, *, rounds: int = 1, refresh_after: bool = False
) -> Sparsity:
    """The same part of what is left in each of some rounds, with updates between.

    `s_r = 1 - (1 - final)^(r / rounds)` from update `r period` on.

    Args:
      final: the share after the last round.
      period: updates of a round.
      rounds: how many there are.
      refresh_after: whether masks are chosen anew every period after that, too.
    """
    _check_shares(final)
    if period < 1 or rounds < 1:
        raise InputError(f"period {period}, rounds {rounds}; expected 1 or more.")

    def share(count):
        done = jnp.minimum(count // period, rounds) / rounds
        return jnp.where(done < 1, 1 - (1 - final) ** done, final)

    def due(count):
        return (count % period == 0) & (refresh_after | (count <= rounds * period))

    return Sparsity(share, due)


class PrunedState(NamedTuple):
    """State of `pruned`."""

    count: jax.typing.ArrayLike  # int32 scalar: updates so far
    masks: Any  # packed, like the parameters; `optax.MaskedNode` where not chosen
    stale: Any  # removed weights' values where they may return, else nothing
    inner: Any  # of the wrapped transformation


def pruned(
    inner: optax.GradientTransformation,
    schedule: Sparsity | None,
    *,
    where: Where = MATRICES,
    unit: Unit = "weights",
    scope: Scope = "matrix",
    criterion: Criterion = "magnitude",
    seed: int = 0,
    regrow: bool = False,
) -> optax.GradientTransformationExtraArgs:
    """Wraps an optimiser so that removed weights are exactly 0 after every update.

    `inner` sees gradients `M g`, and what it makes of removed weights by momentum or
    decay is not applied. When `schedule.due`, masks are chosen anew before the update
    is made, by the weights that it starts from. Whatever changes updates belongs
    inside; several wrappers may be nested, as for single weights of some parameters
    and rows of others.

    Args:
      inner: any transformation.
      schedule: see `cubic_sparsity` and the others; None keeps the weights that are
        0 when the state is made at 0, and no others (`keep_zeros`).
      where: which parameters, as `by_path` takes them. Layers stacked into one
        parameter count as one matrix.
      unit: see `masks.Unit`.
      scope: "matrix" removes the same share of each, "global" compares all.
      criterion: "random" is the control; its masks are nested as the share grows.
      seed: of the control.
      regrow: keep removed weights' values in the state, which costs a copy of the
        parameters chosen and its time. `inner` still moves them with gradients of 0,
        so that they decay and can return. This is what TensorFlow's pruning did:
        `W_eff = M W`.
    """
    inner = optax.with_extra_args_support(inner)

    def choose(params: Any, share: Any) -> dict[str, Array]:
        return keep_masks(
            params,
            share,
            where=where,
            unit=unit,
            scope=scope,
            criterion=criterion,
            seed=seed,
        )

    def init_fn(params):
        chosen = selected(params, where)
        if schedule is None:
            masks = {path: leaf != 0 for path, leaf in chosen.items()}
        else:
            jax.eval_shape(lambda: choose(params, 0.0))  # units that do not fit
            masks = {path: jnp.ones(jnp.shape(w), bool) for path, w in chosen.items()}
        stale = _tree(params, {p: jnp.zeros_like(w) for p, w in chosen.items()})
        return PrunedState(
            jnp.zeros([], jnp.int32),
            _tree(params, {path: pack(mask) for path, mask in masks.items()}),
            stale if regrow else optax.MaskedNode(),
            inner.init(params),
        )

    def update_fn(updates, state, params=None, **extra):
        if params is None:
            raise ValueError(
                "pruned needs the parameters: update(grads, state, params)"
            )
        count = jnp.asarray(optax.safe_increment(state.count))
        stale = _leaves(state.stale) if regrow else []

        # One of the two is 0, so that their sum is the other without rounding.
        def whole():
            """With removed weights' values; made where needed, never kept."""
            return _map(lambda w, p: p + w, stale, params) if regrow else params

        packed = state.masks
        if schedule is not None:
            share = schedule.share(count)

            def anew():
                masks = choose(whole(), share)
                return _tree(params, {path: pack(m) for path, m in masks.items()})

            packed = jax.lax.cond(schedule.due(count), anew, lambda: state.masks)
        kept = _aligned(packed, params)
        grads = _map(lambda m, g: jnp.where(m, g, 0), kept, updates)
        old = whole()
        changes, inner_state = inner.update(grads, state.inner, old, **extra)
        set_to = lambda m, u, p: jnp.where(m, u, -p)  # noqa: E731
        if not regrow:
            result = _map(set_to, kept, changes, params)
            return result, PrunedState(count, packed, state.stale, inner_state)
        moved = _map(lambda w, u: u + w, stale, changes)
        gone = _map(
            lambda m, w, u: jnp.where(m, 0, (w + u).astype(w.dtype)),
            *(kept, old, changes),
        )
        return _map(set_to, kept, moved, params), PrunedState(
            count, packed, _tree(params, selected(gone, where)), inner_state
        )

    return optax.GradientTransformationExtraArgs(init_fn, update_fn)


def keep_zeros(
    inner: optax.GradientTransformation, *, where: Where = MATRICES
) -> optax.GradientTransformationExtraArgs:
    """Tunes what is left: weights that are 0 when the state is made stay at 0."""
    return pruned(inner, None, where=where)


def masks_of(opt_state: Any, params: Any) -> dict[str, Array]:
    """The masks in the state of any chain that holds a `pruned`, by path.

    Where several hold masks of one parameter, what all of them keep.
    """
    is_pruned = lambda node: isinstance(node, PrunedState)  # noqa: E731
    waiting, masks = [opt_state], {}
    found = False
    paths = [path_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    while waiting:
        nodes = jax.tree.leaves(waiting.pop(), is_leaf=is_pruned)
        for node in filter(is_pruned, nodes):
            found = True
            waiting.append(node.inner)
            for path, mask in zip(paths, _aligned(node.masks, params), strict=True):
                if mask is not None:
                    masks[path] = masks[path] & mask if path in masks else mask
    if not found:
        raise InputError("The optimiser's state holds no masks; expected a `pruned`.")
    return masks


def _check_shares(*shares: float) -> None:
    for share in shares:
        if not 0 <= share <= 1:
            raise InputError(f"a sparsity of {share}; expected one in [0, 1].")


def _tree(params: Any, chosen: dict[str, Array]) -> Any:
    """Values by path, in the place of the parameters."""

    def place(path, _):
        return chosen.get(path_name(path), optax.MaskedNode())

    return jax.tree_util.tree_map_with_path(place, params)


def _leaves(tree: Any) -> list[Any]:
    """A value for every parameter; None where it was not chosen."""
    is_none = lambda node: isinstance(node, optax.MaskedNode)  # noqa: E731
    return [None if is_none(x) else x for x in jax.tree.leaves(tree, is_leaf=is_none)]


def _aligned(packed: Any, params: Any) -> list[Any]:
    masks = [
        None if bits is None else unpack(bits, jnp.shape(leaf))
        for bits, leaf in zip(_leaves(packed), jax.tree.leaves(params), strict=True)
    ]
    # Unpacked once; otherwise the compiler does it again wherever a mask is used.
    return jax.lax.optimization_barrier(masks)


def _map(function: Callable, masks: list[Any], tree: Any, *rest: Any) -> Any:
    """`function(mask, leaf, …)` where there is a mask, else the leaf."""
    leaves, structure = jax.tree.flatten(tree)
    others = [x if isinstance(x, list) else jax.tree.leaves(x) for x in rest]
    return jax.tree.unflatten(
        structure,
        [
            leaf if mask is None else function(mask, leaf, *more)
            for mask, leaf, *more in zip(masks, leaves, *others, strict=True)
        ],
    )
