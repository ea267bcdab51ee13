"""What is minimised under changed embeddings: FGM, PGD, VAT, FreeLB, SMART, ALICE."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from jaxemb import losses
from jaxemb.errors import InputError
from jaxemb.perturb.ascent import (
    Ascent,
    Embeddings,
    Mask,
    ascend,
    ascending,
    first_change,
)

Logits = Float[Array, "... classes"]
LogitsOf = Callable[[Embeddings, jax.Array], Logits]
"""Embeddings and a key, for dropout, in; logits out."""
LossOf = Callable[[Logits], Float[Array, "..."]]
"""Logits in, a value an example (or a token) out."""
Divergence = Literal["symmetric", "kl"]
"""`KL(p|q) + KL(q|p)`; or `KL(p|q)` with p, of the clean embeddings, held fixed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Objective:
    """The loss of a model f under changes of its embeddings x (Pereira et al., Eq. 2).

        clean l(f(x), y) + labelled max_d1 l(f(x + d1), y)
            + virtual max_d2 D(f(x + d2), f(x)) + proximal D(f(x), f_average(x))

    A term with weight 0 is not computed. The functions below name those in use.
    """

    clean: Any = 1.0
    labelled: Any = 0.0
    virtual: Any = 0.0
    proximal: Any = 0.0
    """Of SMART's Bregman term, to the model with averaged parameters."""
    labelled_ascent: Ascent = Ascent()
    virtual_ascent: Ascent = Ascent()
    divergence: str = "symmetric"
    """One of `Divergence`."""
    detach: bool = False
    """Whether f(x) is held fixed in the virtual term, too, if "symmetric"."""
    average: bool = False
    """Whether the labelled term is the mean over all points of the ascent (FreeLB)."""
    same_dropout: bool = True
    """Whether clean and changed embeddings lose the same entries to dropout."""

    def __post_init__(self) -> None:
        """Names a divergence that there is not."""
        if self.divergence not in get_args(Divergence):
            raise InputError(
                f"Objective.divergence is {self.divergence!r}; expected one of "
                f"{', '.join(get_args(Divergence))}."
            )


def plain() -> Objective:
    """The loss as it is."""
    return Objective()


def fgm(epsilon: Any = 1.0, weight: Any = 1.0) -> Objective:
    """The fast gradient method (Miyato et al. 2017): `d = epsilon g / |g|_2`, per text.

    The loss is that of clean embeddings and `weight` times that of changed ones.
    """
    ascent = Ascent(
        epsilon=epsilon,
        eta=epsilon,
        sigma=0.0,
        norm="l2",
        projection="step_only",
        over="text",
        guard=0.0,
    )
    return Objective(labelled=weight, labelled_ascent=ascent)


def pgd(steps: int = 3, epsilon: Any = 1e-2, eta: Any = 4e-3) -> Objective:
    """Projected gradient descent (Madry et al. 2018): signs, from inside the ball."""
    ascent = Ascent(
        steps=steps,
        epsilon=epsilon,
        eta=eta,
        sigma=epsilon,
        norm="sign",
        start="uniform",
    )
    return adv(ascent)


def vat(
    epsilon: Any = 1.0, xi: Any = 1e-1, steps: int = 1, weight: Any = 1.0
) -> Objective:
    """Virtual adversarial training (Miyato et al. 2019), over whole texts.

    `steps` iterations of the power method at the distance `xi` find the direction in
    which `KL(f(x) | f(x + d))` bends most; d has the length `epsilon`.
    """
    ascent = Ascent(
        steps=steps,
        eta=xi,
        sigma=xi,
        norm="l2",
        projection="step_only",
        over="text",
        start="unit",
        last=epsilon,
        guard=0.0,
    )
    return Objective(virtual=weight, virtual_ascent=ascent, divergence="kl")


def freelb(
    steps: int = 3, epsilon: Any = 0.3, eta: Any = 0.1, sigma: Any = 0.1
) -> Objective:
    """FreeLB (Zhu et al. 2020): the mean loss over the K points of the ascent.

    The first is uniform in a ball of `sigma`; norms are Euclidean, of whole texts. A
    forward pass serves both the step and the loss.
    """
    ascent = Ascent(
        steps=steps,
        epsilon=epsilon,
        eta=eta,
        sigma=sigma,
        norm="l2",
        over="text",
        start="uniform",
        guard=0.0,
    )
    return Objective(clean=0.0, labelled=1.0, labelled_ascent=ascent, average=True)


def adv(ascent: Ascent = Ascent(), *, clean: Any = 0.0) -> Objective:  # noqa: B008
    """Against the gold label alone."""
    return Objective(clean=clean, labelled=1.0, labelled_ascent=ascent)


def smart(
    ascent: Ascent = Ascent(),  # noqa: B008
    *,
    alpha: Any = 1.0,
    proximal: Any = 0.0,
) -> Objective:
    """SMART (Jiang et al. 2020): the clean loss and `alpha` times the virtual term."""
    return Objective(virtual=alpha, virtual_ascent=ascent, proximal=proximal)


def alice(
    ascent: Ascent = Ascent(),  # noqa: B008
    *,
    alpha: Any = 1.0,
    clean: Any = 0.0,
    proximal: Any = 0.0,
) -> Objective:
    """ALICE (Pereira et al. 2020): against the gold label and the model's own."""
    return Objective(
        clean=clean,
        labelled=1.0,
        virtual=alpha,
        proximal=proximal,
        labelled_ascent=ascent,
        virtual_ascent=ascent,
    )


def perturbed_loss(
    objective: Objective,
    logits_of: LogitsOf,
    loss_of: LossOf,
    embeddings: Embeddings,
    mask: Mask,
    key: Key[Array, ""],
    *,
    reference: Callable[[jax.Array], Logits] | None = None,
    reduce: Callable[[Array], Array] = jnp.mean,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The objective, and its terms by name; pure, for `jit` and `train.make_step`.

    Args:
      objective: which.
      logits_of: the model from its embeddings on.
      loss_of: the loss of logits; it knows the labels.
      embeddings: what the model looked up.
      mask: False at padding, which is not changed.
      key: of dropout and of the ascents' starts.
      reference: for the proximal term, from a key for dropout to the logits of the
        same texts under averaged parameters.
      reduce: from values of examples or tokens to one; those of padding are 0 where
        the model's logits there are.

    Returns:
      The loss, and of the terms that it has `clean`, `labelled`, `virtual` and
      `proximal`, each without its weight; of the changes their Euclidean length over
      that of the embeddings, `labelled_ratio` and `virtual_ratio`.
    """
    o = objective
    drop_key, labelled_key, virtual_key, other_key = jax.random.split(key, 4)
    # With its own entries dropped, each pass has a key; else all have one.
    keys = [drop_key] * 3 if o.same_dropout else list(jax.random.split(other_key, 3))
    total, terms = jnp.zeros([], jnp.float32), {}

    def add(name: str, weight: Any, value: Array) -> None:
        nonlocal total
        terms[name] = value
        total = total + weight * value

    clean: Any = None
    if _used(o.clean) or _used(o.virtual) or _used(o.proximal):
        clean = logits_of(embeddings, keys[0])
    if _used(o.clean):
        add("clean", o.clean, reduce(loss_of(clean)))
    if _used(o.labelled):

        def labelled(changed):
            return loss_of(logits_of(changed, keys[1]))

        value, change = _labelled(o, labelled, embeddings, mask, labelled_key, reduce)
        add("labelled", o.labelled, value)
        terms["labelled_ratio"] = _ratio(change, embeddings, mask)
    if _used(o.virtual):
        fixed = jax.lax.stop_gradient(clean)

        def inner(changed):
            return losses.distances.kl_softmax(fixed, logits_of(changed, keys[2]))

        change = ascend(inner, embeddings, mask, virtual_key, o.virtual_ascent)
        changed = logits_of(embeddings + change, keys[2])
        if o.divergence == "kl":
            apart = losses.distances.kl_softmax(fixed, changed)
        else:
            target = fixed if o.detach else clean
            apart = losses.distances.symmetric_kl_softmax(target, changed)
        add("virtual", o.virtual, reduce(apart))
        terms["virtual_ratio"] = _ratio(change, embeddings, mask)
    if _used(o.proximal):
        if reference is None:
            raise InputError(
                "an objective with a proximal term needs the logits of averaged "
                "parameters: expected `reference`."
            )
        apart = losses.distances.symmetric_kl_softmax(
            clean, jax.lax.stop_gradient(reference(keys[0]))
        )
        add("proximal", o.proximal, reduce(apart))
    return total, terms


def _labelled(o, loss, embeddings, mask, key, reduce):
    """The labelled term and the last change that it is of."""
    ascent = o.labelled_ascent
    if not o.average:
        change = ascend(loss, embeddings, mask, key, ascent)
        return reduce(loss(embeddings + change)), change
    if ascent.steps < 1:
        raise InputError("an average over an ascent without steps; expected 1 or more.")
    change = first_change(embeddings, mask, key, ascent)
    step = ascending(loss, embeddings, mask, ascent)
    total = jnp.zeros([], jnp.float32)
    for number in range(ascent.steps):
        # Unrolled: the compiler finds the forward pass of the step in that of the loss.
        total = total + reduce(loss(embeddings + change)) / ascent.steps
        if number + 1 < ascent.steps:
            change = jax.lax.stop_gradient(step(change))
    return total, change


def _used(weight: Any) -> bool:
    """Whether a term is computed: a traced weight cannot be seen to be 0."""
    return not isinstance(weight, int | float) or weight != 0


def _ratio(change: Embeddings, embeddings: Embeddings, mask: Mask) -> Array:
    real = jnp.where(mask[..., None], jax.lax.stop_gradient(embeddings), 0)
    squares = [jnp.sum(jnp.square(x.astype(jnp.float32))) for x in (change, real)]
    none = squares[1] == 0
    return jnp.where(none, 0, jnp.sqrt(squares[0] / jnp.where(none, 1, squares[1])))
