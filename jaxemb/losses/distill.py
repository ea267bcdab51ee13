"""Losses that make a student's logits like a teacher's, whatever either model is.

A user's own student after any teacher, whose logits are made once and found by the
examples' names, so that the two may cut texts as each likes:

    import jax, numpy as np, optax
    from jaxemb import losses
    from jaxemb.data import rows

    names, x = [f"doc-{i}" for i in range(64)], np.random.randn(64, 8)
    labels = np.argmax(x[:, :3], axis=1)
    teacher = lambda places: 3 * x[places, :3]  # any function: torch, an API, a file
    cache = rows.cache_by_id("teacher", names, teacher, dim=3, of="my teacher")

    def loss(params, x, labels, teacher_logits):
        logits = x @ params["w"] + params["b"]
        return losses.kd_total(logits, labels, teacher_logits, weight=4.0).mean()

    params = {"w": np.zeros((8, 3)), "b": np.zeros((1, 3))}
    tx = optax.adam(0.05)
    state = tx.init(params)
    gradient = jax.jit(jax.grad(loss))
    for _ in range(100):
        gradients = gradient(params, x, labels, cache[names])
        updates, state = tx.update(gradients, state)
        params = optax.apply_updates(params, updates)
"""

from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxemb.errors import InputError
from jaxemb.losses import classification, distances

Kind = Literal["softmax", "sigmoid"]
"""One class of several, or each class by itself, of which any number are right."""
Direction = Literal["student_teacher", "teacher_student"]
"""Which distribution is averaged over: KL(student || teacher), which DocBERT's authors
print, or KL(teacher || student), Hinton et al.'s."""

Logits = Float[Array, "*batch classes"]


def distill(
    student_logits: Logits,
    teacher_logits: Logits,
    *,
    kind: Kind = "softmax",
    direction: Direction = "student_teacher",
    temperature: float = 1.0,
    mask: Bool[Array, "*batch"] | None = None,
) -> Float[Array, "*batch"]:
    """The divergence of two classifiers' probabilities, one float32 value an example.

    With p the student's and q the teacher's probabilities at `logits / temperature`,
    "student_teacher" is

        softmax:  sum_k p_k (ln p_k - ln q_k)
        sigmoid:  mean_k [p_k ln(p_k / q_k) + (1 - p_k) ln((1 - p_k) / (1 - q_k))]

    and "teacher_student" has p and q change places. The value is multiplied by the
    square of the temperature, so that gradients keep their size (Hinton et al. 2015).
    The teacher's logits take no gradient.

    Args:
      student_logits: of what is trained.
      teacher_logits: of what it is to imitate.
      kind: see `Kind`; the mean over classes goes with that of `sigmoid_cross_entropy`.
      direction: see `Direction`.
      temperature: above 0; a higher one brings out the less likely classes.
      mask: False for the examples that only fill up a batch: their loss and their
        gradient are 0, whatever their logits.
    """
    _check("kind", kind, Kind)
    _check("direction", direction, Direction)
    if not temperature > 0:
        raise InputError(f"distill: temperature is {temperature}; expected above 0.")
    student, teacher = _pair(student_logits, teacher_logits, mask)
    student, teacher = student / temperature, teacher / temperature
    first, second = (
        (student, teacher) if direction == "student_teacher" else (teacher, student)
    )
    if kind == "softmax":
        divergence = distances.kl_softmax(first, second)
    else:
        divergence = jnp.mean(_bernoulli_kl(first, second), axis=-1)
    return _masked(divergence * temperature**2, mask)


def logit_mse(
    student_logits: Logits,
    teacher_logits: Logits,
    *,
    mask: Bool[Array, "*batch"] | None = None,
) -> Float[Array, "*batch"]:
    """`mean_k (s_k - t_k)^2` of the logits themselves, as Tang et al. (2019) distil.

    Ba and Caruana's (2014) loss but for the mean; one float32 value an example.
    """
    student, teacher = _pair(student_logits, teacher_logits, mask)
    return _masked(jnp.mean(jnp.square(student - teacher), axis=-1), mask)


def kd_total(
    student_logits: Logits,
    labels: Int[Array, "*batch"] | Float[Array, "*batch classes"],
    teacher_logits: Logits,
    *,
    weight: float | Float[Array, "*batch"] = 1.0,
    gold: Bool[Array, "*batch"] | None = None,
    kind: Kind = "softmax",
    direction: Direction = "student_teacher",
    temperature: float = 1.0,
    mask: Bool[Array, "*batch"] | None = None,
) -> Float[Array, "*batch"]:
    """`L_classification + weight * L_distill`, DocBERT's equation 1, an example.

    Args:
      student_logits: of what is trained.
      labels: classes ("softmax"), or 0 and 1 for every class ("sigmoid").
      teacher_logits: of what it is to imitate.
      weight: lambda, for all examples or for each; where it is 0 the teacher, whatever
        its logits, counts nothing.
      gold: False for examples without a label of their own, such as changed texts:
        they count by the teacher alone.
      kind: see `distill`.
      direction: see `distill`.
      temperature: see `distill`.
      mask: see `distill`.
    """
    _check("kind", kind, Kind)
    real = jnp.ones(student_logits.shape[:-1], bool) if mask is None else mask
    labelled = real if gold is None else real & gold
    if kind == "softmax":
        own = classification.softmax_cross_entropy(
            student_logits, jnp.asarray(labels, jnp.int32), mask=labelled
        )
    else:
        own = classification.sigmoid_cross_entropy(
            student_logits, jnp.asarray(labels, jnp.float32), mask=labelled
        )
    weight = jnp.broadcast_to(jnp.asarray(weight, jnp.float32), own.shape)
    taught = distill(
        student_logits,
        teacher_logits,
        kind=kind,
        direction=direction,
        temperature=temperature,
        mask=real & (weight != 0),
    )
    return own + weight * taught


def _pair(student: Array, teacher: Array, mask: Array | None) -> tuple[Array, Array]:
    teacher = jax.lax.stop_gradient(teacher)
    student, teacher = (jnp.asarray(x, jnp.float32) for x in (student, teacher))
    if mask is not None:
        student, teacher = (
            jnp.where(mask[..., None], x, 0) for x in (student, teacher)
        )
    return student, teacher


def _masked(values: Array, mask: Array | None) -> Array:
    return values if mask is None else jnp.where(mask, values, 0)


def _bernoulli_kl(u: Array, v: Array) -> Array:
    """Of the logistic functions of two logits; `ln(p / (1 - p))` is the logit itself.

    `s(u) (u - v) - softplus(u) + softplus(v)` is the same, but the difference of two
    large numbers; by log-sigmoids every term is small where its factor is.
    """
    ones = jax.nn.sigmoid(u) * (jax.nn.log_sigmoid(u) - jax.nn.log_sigmoid(v))
    zeros = jax.nn.sigmoid(-u) * (jax.nn.log_sigmoid(-u) - jax.nn.log_sigmoid(-v))
    return ones + zeros


def _check(name: str, value: str, choices: object) -> None:
    if value not in get_args(choices):
        raise InputError(
            f"distill: {name} is {value!r}; expected {' or '.join(get_args(choices))}."
        )
