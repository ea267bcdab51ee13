"""Linear-chain conditional random fields (Lafferty et al. 2001).

The score of the tags y of a sentence with emissions e, n words long, is

    s(y) = start[y_1] + sum_t e[t, y_t] + sum_t transitions[y_{t-1}, y_t] + end[y_n]

and `p(y) = exp(s(y) - log Z)`. A score of -inf forbids: such a path has probability 0,
is never decoded, and takes no gradient. All is computed in float32.

The sum over a word's predecessors is one matmul of probabilities, `exp(transitions)`
being taken once a call. Numbers too small for that are noticed, and the call is then
done again with logarithms, slower and exact.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxemb.errors import InputError

Emissions = Float[Array, "batch length classes"]
Mask = Bool[Array, "batch length"]

# Below it a sum of probabilities may have lost parts that float32 cannot hold.
_SMALLEST = 1e-30


class Chain(NamedTuple):
    """The scores of a chain that no word decides; -inf forbids."""

    transitions: Any  # classes classes: from, to
    start: Any  # classes
    end: Any  # classes


class Constraints(NamedTuple):
    """What may follow what; hashable, so that a module can have it as a field.

    `Constraints(*data.tags.allowed(labels))` are those of a scheme of spans.
    """

    transitions: tuple[tuple[bool, ...], ...]  # from, to
    start: tuple[bool, ...]
    end: tuple[bool, ...]

    def apply(self, chain: Chain) -> Chain:
        """The chain with -inf wherever something is forbidden."""
        pairs = zip(self, chain, strict=True)
        return Chain(*(jnp.where(np.array(a), x, -jnp.inf) for a, x in pairs))


def log_partition(
    emissions: Emissions, mask: Mask, chain: Chain
) -> Float[Array, " batch"]:
    """`log Z`, the logarithm of the sum of `exp(s(y))` over all y.

    0 for a sentence without words, -inf where no path is allowed. Its gradient by the
    emissions are the `marginals`. Written by hand for reverse mode, and as often as
    wanted; forward mode (`jax.jvp`) is a TypeError.
    """
    emissions, steps = _time_major(emissions, mask)
    return _log_partition(emissions, steps, *_float32(chain))


def path_score(
    emissions: Emissions, tags: Int[Array, "batch length"], mask: Mask, chain: Chain
) -> Float[Array, " batch"]:
    """The score s of the given tags; nan where one at a word is not a class."""
    classes = emissions.shape[-1]
    emissions = jnp.where(mask[..., None], emissions, 0).astype(jnp.float32)
    transitions, start, end = _float32(chain)
    known = jnp.all(~mask | ((tags >= 0) & (tags < classes)), axis=1)
    tags = jnp.where(mask & known[:, None], tags, 0)
    each = jnp.take_along_axis(emissions, tags[..., None], axis=-1)[..., 0]
    moves = transitions.reshape(-1)[tags[:, :-1] * classes + tags[:, 1:]]
    last = jnp.maximum(jnp.sum(mask, axis=1) - 1, 0)[:, None]
    ends = start[tags[:, 0]] + end[jnp.take_along_axis(tags, last, axis=1)[:, 0]]
    score = jnp.sum(jnp.where(mask, each, 0), axis=1)
    score += jnp.sum(jnp.where(mask[:, 1:], moves, 0), axis=1)
    score += jnp.where(mask[:, 0], ends, 0)
    return jnp.where(known, score, jnp.nan)


def nll(
    emissions: Emissions, tags: Int[Array, "batch length"], mask: Mask, chain: Chain
) -> Float[Array, " batch"]:
    """`log Z - s(tags)`, one value a sentence; inf where the tags are forbidden."""
    return log_partition(emissions, mask, chain) - path_score(
        emissions, tags, mask, chain
    )


def marginals(emissions: Emissions, mask: Mask, chain: Chain) -> Emissions:
    """The probability of each class at each word; 0 at padding."""

    def total(emissions):
        return jnp.sum(log_partition(emissions, mask, chain))

    return jax.grad(total)(emissions.astype(jnp.float32))


def decode(
    emissions: Emissions, mask: Mask, chain: Chain
) -> tuple[Int[Array, "batch length"], Float[Array, " batch"]]:
    """The tags of highest score (Viterbi), 0 at padding, and that score.

    Where no path is allowed the score is -inf and the tags mean nothing.
    """
    emissions, steps = _time_major(emissions, mask)
    transitions, start, end = _float32(chain)

    def ahead(carry, word):
        scores, total = carry
        emission, real = word
        # The best predecessor is sought on the way back, for one class a sentence.
        best = jnp.max(scores[:, :, None] + transitions[None], axis=1) + emission
        new, shift = _shifted(best)
        kept = jnp.where(real, new, scores), total + jnp.where(real, shift, 0)
        return kept, scores

    first = _shifted(emissions[0] + start[None])
    (scores, total), before = jax.lax.scan(ahead, first, (emissions[1:], steps[1:]))
    scores += end[None]
    last = jnp.argmax(scores, axis=-1)

    def back(tag, word):
        scores, real = word
        previous = jnp.argmax(scores + transitions.T[tag], axis=-1)
        return jnp.where(real[:, 0], previous, tag), tag

    first_tag, tags = jax.lax.scan(back, last, (before, steps[1:]), reverse=True)
    tags = jnp.concatenate([first_tag[None], tags]).T.astype(jnp.int32)
    score = jnp.where(mask[:, 0], total[:, 0] + jnp.max(scores, axis=-1), 0)
    return jnp.where(mask, tags, 0), score


def k_best(
    emissions: Emissions, mask: Mask, chain: Chain, k: int
) -> tuple[Int[Array, "batch {k} length"], Float[Array, "batch {k}"]]:
    """The k paths of highest score, best first, and their scores.

    Where fewer paths are allowed, the scores of the others are -inf and their tags
    mean nothing. A sentence without words has one path, the empty one.
    """
    if k < 1:
        raise InputError(f"k is {k}; expected 1 or more")
    batch, _, classes = emissions.shape
    emissions, steps = _time_major(emissions, mask)
    transitions, start, end = _float32(chain)

    def best(candidates):  # batch … candidates -> their k largest, and which
        scores, places = jax.lax.top_k(candidates, min(k, candidates.shape[-1]))
        missing = k - scores.shape[-1]
        ends = [(0, 0)] * (scores.ndim - 1) + [(0, missing)]
        return jnp.pad(scores, ends, constant_values=-jnp.inf), jnp.pad(places, ends)

    def ahead(carry, word):
        scores, total = carry  # batch classes k
        emission, real = word
        every = scores[:, None] + transitions.T[None, :, :, None]  # to, from, k
        new, came_from = best(every.reshape(batch, classes, classes * k))
        new, shift = _shifted((new + emission[..., None]).reshape(batch, -1))
        new = jnp.where(real[..., None], new.reshape(scores.shape), scores)
        stay = jnp.arange(classes * k).reshape(1, classes, k)
        came_from = jnp.where(real[..., None], came_from, stay)
        return (new, total + jnp.where(real, shift, 0)), came_from

    first, total = _shifted(emissions[0] + start[None])
    alone = jnp.where(jnp.arange(k)[None, None] == 0, first[..., None], -jnp.inf)
    (scores, total), came_from = jax.lax.scan(
        ahead, (alone, total), (emissions[1:], steps[1:])
    )
    scores, place = best((scores + end[None, :, None]).reshape(batch, classes * k))
    came_from = came_from.reshape(-1, batch, classes * k)

    def back(place, came_from):
        return jnp.take_along_axis(came_from, place, axis=1), place

    place, places = jax.lax.scan(back, place, came_from, reverse=True)
    places = jnp.concatenate([place[None], places])  # length batch k
    tags = jnp.transpose(places // k, (1, 2, 0)).astype(jnp.int32)
    empty = jnp.where(jnp.arange(k)[None] == 0, 0.0, -jnp.inf)
    scores = jnp.where(mask[:, :1], total + scores, empty)
    return jnp.where(mask[:, None], tags, 0), scores


class CRF(nn.Module):
    """A chain's scores as parameters, which start at 0: a softmax at every word.

    Constraints hold in training and in decoding, so the loss of tags that break them
    is infinite. To train without them and decode with them, give the trained
    parameters to a module that has them.
    """

    classes: int
    constraints: Constraints | None = None

    def setup(self):
        """Makes the parameters."""
        zeros = nn.initializers.zeros
        shape = (self.classes, self.classes)
        self.transitions = self.param("transitions", zeros, shape, jnp.float32)
        self.start = self.param("start", zeros, (self.classes,), jnp.float32)
        self.end = self.param("end", zeros, (self.classes,), jnp.float32)

    def chain(self) -> Chain:
        """The scores, -inf where the constraints forbid."""
        chain = Chain(self.transitions, self.start, self.end)
        return chain if self.constraints is None else self.constraints.apply(chain)

    def __call__(
        self,
        emissions: Float[Array, "batch length {self.classes}"],
        tags: Int[Array, "batch length"],
        mask: Mask,
    ) -> Float[Array, " batch"]:
        """`nll`, one value a sentence."""
        return nll(emissions, tags, mask, self.chain())

    def decode(
        self, emissions: Float[Array, "batch length {self.classes}"], mask: Mask
    ) -> tuple[Int[Array, "batch length"], Float[Array, " batch"]]:
        """The best tags and their score."""
        return decode(emissions, mask, self.chain())

    def marginals(
        self, emissions: Float[Array, "batch length {self.classes}"], mask: Mask
    ) -> Float[Array, "batch length {self.classes}"]:
        """The probability of each class at each word."""
        return marginals(emissions, mask, self.chain())

    def k_best(
        self,
        emissions: Float[Array, "batch length {self.classes}"],
        mask: Mask,
        k: int,
    ) -> tuple[Int[Array, "batch {k} length"], Float[Array, "batch {k}"]]:
        """The k best paths and their scores."""
        return k_best(emissions, mask, self.chain(), k)


def _float32(chain: Chain) -> tuple[Array, Array, Array]:
    transitions, start, end = (jnp.asarray(x, jnp.float32) for x in chain)
    return transitions, start, end


def _time_major(emissions: Array, mask: Array) -> tuple[Array, Array]:
    emissions = jnp.where(mask[..., None], emissions, 0).astype(jnp.float32)
    return jnp.swapaxes(emissions, 0, 1), mask.T[..., None]


def _shifted(scores: Array) -> tuple[Array, Array]:
    """Scores less their largest, and that; a row of -inf stays as it is."""
    largest = jnp.max(scores, axis=-1, keepdims=True)
    largest = jnp.where(jnp.isfinite(largest), largest, 0)
    return scores - largest, largest


class _Saved(NamedTuple):
    """What the way back needs of the way ahead."""

    before: Any  # length-1 batch classes: log of forward sums, less their largest
    mixed: Any  # length-1 batch classes: log of their sums over predecessors
    last: Any  # batch classes: as `before`, after the last word
    safe: Any  # whether sums of probabilities were exact enough


# Both ways, a step is a sum over predecessors or successors: of probabilities (a
# matmul), or of their logarithms.


def _mix_fast(before, kernel):
    return _log(jnp.matmul(jnp.exp(before), jnp.exp(kernel), precision="highest"))


def _mix_exact(before, kernel):
    every, largest = _shifted(
        jnp.swapaxes(before[:, :, None] + kernel[None], 1, 2)
    )  # batch to from
    return _log(jnp.sum(jnp.exp(every), axis=-1)) + largest[..., 0]


def _log(x):
    """The logarithm; -inf at 0, where its derivative is taken as 0."""
    return jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), -jnp.inf)


def _ahead(mix: Callable, emissions, steps, columns, kernel, start):
    def step(carry, word):
        before, total = carry
        emission, real = word
        mixed = mix(before, kernel)
        new, shift = _shifted(mixed + columns + emission)
        after = jnp.where(real, new, before), total + jnp.where(real, shift, 0)
        return after, (before, mixed)

    first = _shifted(emissions[0] + start[None])
    return jax.lax.scan(step, first, (emissions[1:], steps[1:]))


def _kernel(transitions):
    """Transitions less the largest into each class, that, and which can be entered."""
    kernel, columns = _shifted(transitions.T)
    return kernel.T, columns.T, jnp.any(transitions > -jnp.inf, axis=0)[None, None]


def _forward(emissions, steps, transitions, start, end):
    kernel, columns, entered = _kernel(transitions)
    arguments = emissions, steps, columns, kernel, start
    fast = _ahead(_mix_fast, *arguments)
    _, (_, mixed) = fast
    safe = jnp.all((mixed > np.log(_SMALLEST)) | ~entered | ~steps[1:])
    (last, total), (before, mixed) = jax.lax.cond(
        safe, lambda: fast, lambda: _ahead(_mix_exact, *arguments)
    )
    final, shift = _shifted(last + end[None])
    log_z = _log(jnp.sum(jnp.exp(final), axis=-1)) + shift[:, 0] + total[:, 0]
    return jnp.where(steps[0, :, 0], log_z, 0), _Saved(before, mixed, last, safe)


@jax.custom_vjp
def _log_partition(emissions, steps, transitions, start, end):
    return _forward(emissions, steps, transitions, start, end)[0]


def _forward_rule(emissions, steps, transitions, start, end):
    log_z, saved = _forward(emissions, steps, transitions, start, end)
    return log_z, (steps, transitions, end, saved)


def _back_fast(kernel, steps, saved, after):
    weights = jnp.exp(kernel)
    before = jnp.exp(saved.before)
    known = saved.mixed > -jnp.inf
    sums = jnp.where(known, jnp.exp(jnp.where(known, saved.mixed, 0)), 1)

    def step(after, word):
        before, sums, counts = word
        shares = jnp.where(counts, after / sums, 0)
        product = jnp.matmul(shares, weights.T, precision="highest") * before
        real = counts.any(axis=-1, keepdims=True)
        return jnp.where(real, product, after), (after, shares)

    first, (each, shares) = jax.lax.scan(
        step, after, (before, sums, known & steps[1:]), reverse=True
    )
    pairs = jnp.einsum("tbi,tbj->ij", before, shares, precision="highest") * weights
    return first, each, pairs


def _back_exact(kernel, steps, saved, after):
    def step(carry, word):
        after, pairs = carry
        before, mixed, real = word
        known = (mixed > -jnp.inf)[:, None] & (before > -jnp.inf)[:, :, None]
        every = before[:, :, None] + kernel[None] - mixed[:, None]
        known &= every > -jnp.inf
        every = jnp.where(known, jnp.exp(jnp.where(known, every, 0)), 0)
        every = jnp.where(real[..., None], every * after[:, None], 0)
        new = jnp.where(real, jnp.sum(every, axis=2), after)
        return (new, pairs + jnp.sum(every, axis=0)), after

    words = saved.before, saved.mixed, steps[1:]
    (first, pairs), each = jax.lax.scan(
        step, (after, jnp.zeros_like(kernel)), words, reverse=True
    )
    return first, each, pairs


def _backward_rule(residuals, cotangent):
    steps, transitions, end, saved = residuals
    kernel, _, _ = _kernel(transitions)
    final = saved.last + end[None]
    possible = steps[0] & (jnp.max(final, axis=-1, keepdims=True) > -jnp.inf)
    after = jax.nn.softmax(jnp.where(possible, final, 0), axis=-1)
    after = jnp.where(possible, after * cotangent[:, None], 0)
    first, each, pairs = jax.lax.cond(
        saved.safe,
        functools.partial(_back_fast, kernel, steps, saved),
        functools.partial(_back_exact, kernel, steps, saved),
        after,
    )
    each = jnp.where(steps, jnp.concatenate([first[None], each]), 0)
    return each, None, pairs, jnp.sum(first, axis=0), jnp.sum(after, axis=0)


_log_partition.defvjp(_forward_rule, _backward_rule)
