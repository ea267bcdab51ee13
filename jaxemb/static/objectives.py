"""What word vectors are trained to do: skip-gram, CBOW and skip-gram of subwords.

An objective says which rows of which tables a block reads, and what the loss of the
block is, given these rows. Its gradient with respect to the rows is all that a trainer
needs; the tables are never differentiated whole.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxemb import numerics
from jaxemb.errors import InputError
from jaxemb.static.settings import check_at_least

Rows = dict[str, jax.Array]

# While training, the loss of every 8th word is shown: the gradient needs no logarithm,
# and those of all words would cost a fifth of the time.
_STRIDE = 8


class Block(NamedTuple):
    """The words of one update, in groups of neighbours."""

    words: Any  # int32 (groups, group + 2 window): with the neighbours of the ends
    before: Any  # int32 (groups, group): neighbours of each word, 0 for filling
    after: Any  # int32 (groups, group)
    noise: Any  # int32 (groups, shared): noise words of each group
    window: int
    ngrams: Any = None  # int32 (groups, ngrams): rows of the centres' n-grams
    owners: Any = None  # int32 (groups, ngrams): whose; `group` for filling
    vectors: Any = None  # float (groups, group, dim): of the centres, from elsewhere

    @property
    def centres(self) -> Int[Array, "groups group"]:
        """The words themselves."""
        return self.words[:, self.window : self.words.shape[1] - self.window]

    def neighbours(self, itself: bool = False) -> Bool[Array, "groups group around"]:
        """Which of `words` are the neighbours of each centre.

        Args:
          itself: count a centre that has neighbours among them.
        """
        distance = self._distances()[None]  # 1 group around
        near = (distance >= -self.before[..., None]) & (
            distance <= self.after[..., None]
        )
        if itself:
            return near & (self.before + self.after > 0)[..., None]
        return near & (distance != 0)

    def neighboured(self) -> Bool[Array, "groups around group"]:
        """The same with its last axes swapped, for products that want it so."""
        distance = self._distances().T[None]
        near = (distance >= -self.before[:, None, :]) & (
            distance <= self.after[:, None, :]
        )
        return near & (distance != 0)

    def _distances(self) -> Int[np.ndarray, "group around"]:
        group, around = self.before.shape[1], self.words.shape[1]
        return np.arange(around)[None, :] - self.window - np.arange(group)[:, None]


class Loss(NamedTuple):
    """Of one block; sums, so that blocks and devices add up."""

    total: Any  # float32 scalar, to be differentiated
    shown: Any  # float32 scalar: the same over every so many-th centre
    words: Any  # float32 scalar: centres with a neighbour that `shown` is over


@dataclasses.dataclass(frozen=True, kw_only=True)
class SkipGram:
    """Predicts the words around each word, against noise words (Mikolov et al. 2013).

    The noise words of a group are shared by its pairs, each counting
    `negatives / shared` in each pair: the expected loss is that of `negatives` noise
    words drawn anew for every pair, at the cost of one matrix product.
    """

    window: int = 5
    """Largest distance of a neighbour."""
    negatives: int = 5
    """Noise words that every pair stands against."""
    shared: int = 16
    """Noise words drawn for a group."""

    def __post_init__(self):
        for field in ("window", "negatives", "shared"):
            check_at_least(1, self, field)

    def ids(self, block: Block) -> dict[str, Int[Array, "groups _"]]:
        """The rows that a block reads, by table."""
        outputs = jnp.concatenate([block.words, block.noise], axis=1)
        return {"input": block.centres, "output": outputs}

    def loss(self, rows: Rows, block: Block, every: int = _STRIDE) -> Loss:
        """Over all pairs of the block; shown over those of every so many-th word."""
        return _skip_gram(rows["input"], rows["output"], block, self.negatives, every)

    @property
    def untrained(self) -> float:
        """The loss of a word in the widest window while every choice is a coin's."""
        return _coins(2 * self.window, self.negatives)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CBOW:
    """Predicts each word from the mean of the words around it (Mikolov et al. 2013)."""

    window: int = 5
    """Largest distance of a neighbour."""
    negatives: int = 5
    """Noise words that every word stands against."""
    shared: int = 8
    """Noise words drawn for a group."""
    whole_step: bool = True
    """Give every word of a mean the whole gradient of the mean, as word2vec and gensim
    do; else its share, which is the gradient indeed and wants a larger step."""

    def __post_init__(self):
        for field in ("window", "negatives", "shared"):
            check_at_least(1, self, field)

    def ids(self, block: Block) -> dict[str, Int[Array, "groups _"]]:
        """The rows that a block reads, by table."""
        outputs = jnp.concatenate([block.centres, block.noise], axis=1)
        return {"input": block.words, "output": outputs}

    def loss(self, rows: Rows, block: Block, every: int = _STRIDE) -> Loss:
        """Over all words that have a neighbour; shown over every so many-th."""
        group, shared = block.before.shape[1], block.noise.shape[1]
        count = (block.before + block.after).astype(jnp.float32)  # groups group
        sums = _sum_rows(
            rows["input"],
            block.neighbours().astype(jnp.float32),
            block.neighboured().astype(jnp.float32),
        )
        mean = _mean(sums, count, self.whole_step)
        true = jnp.einsum("gcd,gcd->gc", mean, rows["output"][:, :group])
        false = jnp.einsum("gcd,gnd->gcn", mean, rows["output"][:, group:])
        known = (count > 0).astype(jnp.float32)

        def total(step: int):
            k, t, f = known[:, ::step], true[:, ::step], false[:, ::step]
            noise = jnp.sum(numerics.softplus(f), axis=-1) * (self.negatives / shared)
            return jnp.sum(k * (numerics.softplus(-t) + noise))

        return Loss(total(1), total(every), jnp.sum(known[:, ::every]))

    @property
    def untrained(self) -> float:
        """The loss of a word while every choice is a coin's."""
        return _coins(1, self.negatives)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SubwordSkipGram:
    """Skip-gram whose words are the mean of their n-grams (Bojanowski et al. 2017).

    A word's input vector is the mean of a row of its own and of those of its character
    n-grams, each of which is given the whole gradient of the mean, as fastText does.
    """

    window: int = 5
    """Largest distance of a neighbour."""
    negatives: int = 5
    """Noise words that every pair stands against."""
    shared: int = 16
    """Noise words drawn for a group."""
    minn: int = 3
    """Characters of the shortest n-gram; the brackets of `<word>` count."""
    maxn: int = 6
    """Characters of the longest n-gram."""
    buckets: int = 2_000_000
    """Rows that n-grams are hashed to; only those of the vocabulary are trained, but
    the vectors that come of it hold all, as fastText does: 800 MB for 100 numbers."""

    def __post_init__(self):
        for field in ("window", "negatives", "shared", "minn", "buckets"):
            check_at_least(1, self, field)
        check_at_least(self.minn, self, "maxn")
        if self.buckets >= 2**32:
            raise InputError(
                f"SubwordSkipGram: buckets is {self.buckets}; expected less than 2^32"
            )

    def ids(self, block: Block) -> dict[str, Int[Array, "groups _"]]:
        """The rows that a block reads, by table."""
        outputs = jnp.concatenate([block.words, block.noise], axis=1)
        return {"input": block.centres, "output": outputs, "ngrams": block.ngrams}

    def loss(self, rows: Rows, block: Block, every: int = _STRIDE) -> Loss:
        """Over all pairs of the block; shown over those of every so many-th word."""
        groups, group, dim = rows["input"].shape
        place = jnp.arange(groups)[:, None], block.owners
        # One row more than words: the n-grams that only fill up belong to it.
        sums = jnp.zeros((groups, group + 1, dim)).at[place].add(rows["ngrams"])
        count = jnp.zeros((groups, group + 1)).at[place].add(1.0)
        centres = _mean(rows["input"] + sums[:, :group], 1 + count[:, :group], True)
        return _skip_gram(centres, rows["output"], block, self.negatives, every)

    @property
    def untrained(self) -> float:
        """The loss of a word in the widest window while every choice is a coin's."""
        return _coins(2 * self.window, self.negatives)


Objective = SkipGram | CBOW | SubwordSkipGram


def _skip_gram(
    centres: Float[Array, "groups group dim"],
    outputs: Float[Array, "groups outputs dim"],
    block: Block,
    negatives: int,
    every: int,
) -> Loss:
    """Every word against its neighbours and the group's noise: one product a group."""
    around, shared = block.words.shape[1], block.noise.shape[1]
    true = block.neighbours().astype(jnp.float32)  # groups group around
    pairs = (block.before + block.after).astype(jnp.float32)[..., None]
    noise = jnp.broadcast_to(pairs * (negatives / shared), (*pairs.shape[:2], shared))
    weights = jnp.concatenate([true, noise], axis=-1)  # groups group outputs
    scores = jnp.einsum("gcd,god->gco", centres, outputs)

    def total(step: int):
        # softplus(-x) of a true pair is softplus(x) - x.
        w, x, t = weights[:, ::step], scores[:, ::step], true[:, ::step]
        return jnp.sum(w * numerics.softplus(x)) - jnp.sum(t * x[..., :around])

    words = jnp.sum(pairs[:, ::every] > 0, dtype=jnp.float32)
    return Loss(total(1), total(every), words)


def _coins(pairs: int, negatives: int) -> float:
    return math.log(2) * pairs * (1 + negatives)


def _mean(
    sums: Float[Array, "groups group dim"],
    count: Float[Array, "groups group"],
    whole_step: bool,
) -> Float[Array, "groups group dim"]:
    """The mean, 0 of nothing; differentiated as if it were the sum if `whole_step`."""
    mean = sums / jnp.maximum(count, 1)[..., None]
    return sums + jax.lax.stop_gradient(mean - sums) if whole_step else mean


@jax.custom_vjp
def _sum_rows(rows, near, near_swapped):
    """`near @ rows`; its gradient is a product without a transposed side: faster."""
    return jnp.einsum("gca,gad->gcd", near, rows)


def _sum_rows_forward(rows, near, near_swapped):
    return _sum_rows(rows, near, near_swapped), near_swapped


def _sum_rows_backward(near_swapped, gradient):
    return jnp.einsum("gac,gcd->gad", near_swapped, gradient), None, None


_sum_rows.defvjp(_sum_rows_forward, _sum_rows_backward)
