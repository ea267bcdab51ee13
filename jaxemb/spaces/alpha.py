"""Alpha-embeddings: words as tangents of distributions (Volpi & Malagò 2020).

A trained model with tables U and V gives a word w the distribution over contexts
`p_w(c) = softmax_c(u_w·v_c)`. Its alpha-embedding is the tangent at a reference
distribution p0 that points to p_w in Amari's alpha-geometry, in the model's tangent
space. With `beta = (1 - alpha) / 2`, `q = softmax(beta ln p_w + (1 - beta) ln p0)` and
the Fisher matrix `I = E_p0[(V - E_p0 V)(V - E_p0 V)^T]`:

    W(w) = (Z / beta) I^-1 (E_q V - E_p0 V),   Z = sum_c p0^(1 - beta) p_w^beta

which is the paper's eqs. 2 and 3 without their overflow: only the factor Z may be huge,
and embeddings are normalised before use. Words are taken in blocks, so that no
vocabulary × vocabulary matrix exists.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy import special

from jaxemb.errors import InputError
from jaxemb.spaces import selection, spectrum

Metric = Literal["I", "F"]
Table = Float[np.ndarray, "vocab dim"]
# Logits of a block of words against the whole vocabulary: 16 MB, as larger blocks fit
# no cache, unless these would be fewer words than a matrix product is efficient for.
_LOGITS, _WORDS = 1 << 22, 128


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """The tables that give distributions, and the reference they are seen from."""

    words: np.ndarray  # (vocab, dim): u_w, or u_w + v_w
    contexts: np.ndarray  # (vocab, dim): v_c
    log_reference: np.ndarray  # (vocab,): ln p0
    context_bias: np.ndarray | None = None  # (vocab,), added to the logits

    def __post_init__(self):
        """Checks shapes, and that the reference is a distribution."""
        vocab = len(self.contexts)
        if self.words.shape[1] != self.contexts.shape[1]:
            raise InputError(
                f"words of {self.words.shape[1]} and contexts of "
                f"{self.contexts.shape[1]} dimensions; expected the same"
            )
        if self.log_reference.shape != (vocab,):
            raise InputError(
                f"a reference of shape {self.log_reference.shape}; expected ({vocab},)"
            )
        total = float(np.exp(self.log_reference).sum())
        if not abs(total - 1) < 1e-6:
            raise InputError(f"the reference sums to {total:.6g}; expected 1")

    @functools.cached_property
    def bias(self) -> np.ndarray:
        """The contexts' bias, or zeros."""
        if self.context_bias is None:
            return np.zeros(len(self.contexts))
        return np.asarray(self.context_bias, np.float64)

    @functools.cached_property
    def mean(self) -> np.ndarray:
        """`E_p0 V`, in float64."""
        return np.exp(self.log_reference) @ np.asarray(self.contexts, np.float64)

    @functools.cached_property
    def centred(self) -> np.ndarray:
        """`V - E_p0 V`, in float64; it gives the same distributions as V."""
        return np.asarray(self.contexts, np.float64) - self.mean[np.newaxis]

    @functools.cached_property
    def fisher(self) -> np.ndarray:
        """`I(p0)`, in float64."""
        weights = np.exp(self.log_reference / 2)[:, np.newaxis]
        return spectrum.gram(weights * self.centred)

    @functools.cached_property
    def log_tangent(self) -> np.ndarray:
        """`sum_c p0(c) (bias_c - ln p0(c)) (v_c - E_p0 V)`, in float64."""
        weights = np.exp(self.log_reference) * (self.bias - self.log_reference)
        return weights @ self.centred


def uniform(vocab: int) -> Float[np.ndarray, " vocab"]:
    """`ln p0` of the reference "0"."""
    return np.full(vocab, -np.log(vocab))


def unigram(counts: np.ndarray, floor: float = 1e-12) -> Float[np.ndarray, " vocab"]:
    """`ln p0` of the reference "ud", from the corpus' counts."""
    shares = np.maximum(np.asarray(counts, np.float64) / np.sum(counts), floor)
    return np.log(shares / shares.sum())


def model_unigram(
    words: Table,
    contexts: Table,
    *,
    word_bias: np.ndarray | None = None,
    context_bias: np.ndarray | None = None,
    counts: np.ndarray | None = None,
) -> Float[np.ndarray, " vocab"]:
    """`ln p0` of the reference "u": the contexts' marginal in the model.

    With the biases of GloVe the joint is `exp(u_w·v_c + b_w + b_c)`, summed over words;
    without, the words' distributions are averaged with the weights `counts`.
    """
    biases = word_bias is not None and context_bias is not None
    if counts is None and not biases:
        raise InputError("model_unigram: expected both biases, or counts")
    if word_bias is not None and context_bias is not None:
        weights, extra = word_bias, context_bias
    else:
        weights = np.log(np.maximum(np.asarray(counts, np.float64), 1e-300))
        extra = np.zeros(len(contexts))
    total = np.full(len(contexts), -np.inf)
    table, extra = (jnp.asarray(x, jnp.float32) for x in (contexts, extra))
    for rows in _blocks(len(words), len(contexts)):
        block = jnp.asarray(words[rows], jnp.float32)
        # Against the largest of the block, so that float32 holds what is left.
        top = np.max(weights[rows])
        relative = jnp.asarray(weights[rows] - top, jnp.float32)
        part = _marginal(block, table, extra, relative, conditional=not biases)
        total = np.logaddexp(total, np.asarray(part, np.float64) + top)
    return total - special.logsumexp(total)


def alpha_embedding(
    model: Model, alpha: float, *, scaled: bool = False, exact: bool = False
) -> Float[np.ndarray, "words dim"]:
    """The alpha-embedding of every word.

    At alpha = 1 it is `u_w + I^-1 sum_c p0(c) (bias_c - ln p0(c)) (v_c - E_p0 V)`, the
    word's own vector and one that all words share, which takes no sum over pairs of
    words; that is the limit of the others, to which it is exact in float64.

    Args:
      model: tables and reference.
      alpha: any number; 1 with a uniform reference gives the words' own vectors.
      scaled: whether to multiply by `Z / |beta|`, which may overflow for large
        `|alpha|` and is lost when rows are normalised.
      exact: in float64. In float32 a row's error is about 1e-6 / |beta| of its length,
        so that alphas within 0.01 of 1, but not 1 itself, need it.
    """
    beta = (1 - alpha) / 2
    if beta == 0:
        shift = np.linalg.solve(model.fisher, model.log_tangent)
        return np.asarray(model.words, np.float64) + shift[np.newaxis]
    out = np.empty(model.words.shape)
    log_z = np.zeros(len(model.words))
    dtype = np.float64 if exact else np.float32
    with jax.enable_x64(exact):
        contexts = jnp.asarray(_with_column(model.centred, 1.0), dtype)
        extra = jnp.asarray(beta * model.bias + (1 - beta) * model.log_reference, dtype)
        bias = jnp.asarray(model.bias, dtype)
        for rows in _blocks(len(model.words), len(model.contexts)):
            block = jnp.asarray(_with_column(model.words[rows], 0.0), dtype)
            out[rows], mixed_z = _tangent(beta * block, contexts, extra)
            if scaled:
                log_z[rows] = mixed_z - beta * _log_partition(block, contexts, bias)
    if scaled:
        out *= (np.exp(log_z) / abs(beta))[:, np.newaxis]
    out *= -1 if beta < 0 else 1
    return np.linalg.solve(model.fisher, out.T).T


def limit_embedding(
    model: Model,
    k: int = 1,
    *,
    weighted: bool = False,
    contexts: "tuple[np.ndarray, np.ndarray] | None" = None,
) -> Float[np.ndarray, "words dim"]:
    """The limit of the directions as alpha goes to minus infinity, over k contexts.

    The mean of `I^-1 (v_c - E_p0 V)` over the k contexts of the largest
    `p_w(c) / p0(c)`, with those ratios as weights if `weighted`.

    Args:
      model: tables and reference.
      k: how many contexts.
      weighted: whether the ratios are weights.
      contexts: what `top_contexts` gave for this k or a larger one, so that several
        limits of a model share one search.
    """
    rows, log_ratios = top_contexts(model, k) if contexts is None else contexts
    rows, log_ratios = rows[:, :k], log_ratios[:, :k]
    if rows.shape[1] < k:
        raise InputError(f"k = {k}: expected as many contexts, found {rows.shape[1]}")
    if weighted:
        weights = np.exp(log_ratios - log_ratios.max(axis=1, keepdims=True))
    else:  # words of the same contexts have the same numbers, to the last bit
        rows, weights = np.sort(rows, axis=1), np.ones_like(log_ratios)
    weights /= weights.sum(axis=1, keepdims=True)
    tangents = np.linalg.solve(model.fisher, model.centred.T).T  # one a context
    total = np.zeros(model.words.shape)
    for column, weight in zip(rows.T, weights.T, strict=True):
        total += weight[:, np.newaxis] * tangents[column]
    return total


def top_contexts(
    model: Model, k: int
) -> tuple[Int[np.ndarray, "words {k}"], Float[np.ndarray, "words {k}"]]:
    """The contexts of the largest `p_w(c) / p0(c)`, and the logarithms of these."""
    if not 1 <= k <= len(model.contexts):
        raise InputError(f"k = {k}: expected 1 to {len(model.contexts)} contexts")
    found = np.empty((len(model.words), k), np.int64)
    ratios = np.empty((len(model.words), k))
    contexts = jnp.asarray(model.centred, jnp.float32)
    reference = jnp.asarray(model.log_reference, jnp.float32)
    bias = jnp.asarray(model.bias, jnp.float32)
    for rows in _blocks(len(model.words), len(model.contexts)):
        block = jnp.asarray(model.words[rows], jnp.float32)
        ratios[rows], found[rows] = _top_ratios(block, contexts, reference, bias, k=k)
    return found, ratios


@dataclasses.dataclass(frozen=True)
class Limit:
    """The member of the family at minus infinity, over some contexts."""

    k: int = 1
    weighted: bool = False

    def __str__(self) -> str:
        return f"t{self.k}-w" if self.weighted else f"t{self.k}"


def family(
    model: Model, alphas: Iterable[float] = (), limits: Iterable[Limit] = ()
) -> "Iterator[tuple[float | Limit, Float[np.ndarray, 'words dim']]]":
    """The embeddings at every alpha, then the limits, one at a time.

    Rows have any length; `normalised` is the next step. Limits share one search.
    """
    for alpha in alphas:
        yield alpha, alpha_embedding(model, alpha)
    limits = tuple(limits)
    if limits:
        contexts = top_contexts(model, max(limit.k for limit in limits))
    for limit in limits:
        yield (
            limit,
            limit_embedding(model, limit.k, weighted=limit.weighted, contexts=contexts),
        )


def normalised(
    embedding: Float[np.ndarray, "words dim"], model: Model, metric: Metric
) -> Float[np.ndarray, "words dim"]:
    """Rows of length 1 in a metric: "I", the plain one, or "F", `sqrt(a^T I(p0) a)`."""
    squared = np.sum((embedding @ model.fisher) * embedding, axis=1)
    if metric == "I":
        squared = np.sum(embedding**2, axis=1)
    length = np.sqrt(np.maximum(squared, 0))[:, np.newaxis]
    return np.divide(embedding, length, out=np.zeros_like(embedding), where=length > 0)


def in_metric(
    embedding: Float[np.ndarray, "words dim"], model: Model, metric: Metric
) -> Float[np.ndarray, "words dim"]:
    """Rows whose plain products and distances are those of a metric.

    For "F" they are multiplied by `I(p0)^(1/2)`, so that everything that takes word
    vectors for their products (similarity, analogy, clusters) works in that metric.
    """
    if metric == "I":
        return embedding
    return embedding @ spectrum.power(model.fisher, 0.5)


def _blocks(words: int, contexts: int) -> Iterator[slice]:
    size = min(words, max(_WORDS, _LOGITS // max(contexts, 1)))
    for start in range(0, words, size):
        yield slice(start, min(start + size, words))


def _with_column(table: np.ndarray, value: float) -> np.ndarray:
    return np.pad(table, ((0, 0), (0, 1)), constant_values=value)


def _logits(words, contexts, bias) -> Float[Array, "block vocab"]:
    return _product(words, contexts.T) + bias[jnp.newaxis]


def _product(a, b):
    # An accelerator must not round to bfloat16.
    return jnp.dot(a, b, precision=jax.lax.Precision.HIGHEST)


@jax.jit
def _tangent(scaled_words, contexts, extra):
    """`E_q V - E_p0 V` of a block of words, and the logarithm of q's normaliser.

    `ln q = beta u_w·v_c + extra_c` but for that normaliser, into which the one of p_w
    goes too. `contexts` are centred and have a last column of ones, and words one of
    zeros: the ones sum the weights in the product that weighs the contexts, so that no
    weight is computed twice.
    """
    mixed = _logits(scaled_words, contexts, extra)
    top = jnp.max(mixed, axis=1, keepdims=True)
    sums = _product(jnp.exp(mixed - top), contexts)
    return sums[:, :-1] / sums[:, -1:], top[:, 0] + jnp.log(sums[:, -1])


@jax.jit
def _log_partition(words, contexts, bias):
    return jax.nn.logsumexp(_logits(words, contexts, bias), axis=1)


@functools.partial(jax.jit, static_argnames="conditional")
def _marginal(words, contexts, bias, log_weights, *, conditional):
    """`ln sum_w weight_w exp(logit)` of a block of words, for every context."""
    logits = _logits(words, contexts, bias)
    if conditional:
        logits = jax.nn.log_softmax(logits, axis=1)
    return jax.nn.logsumexp(logits + log_weights[:, jnp.newaxis], axis=0)


@functools.partial(jax.jit, static_argnames="k")
def _top_ratios(words, contexts, log_reference, bias, *, k):
    log_p = jax.nn.log_softmax(_logits(words, contexts, bias), axis=1)
    return selection.top_k(log_p - log_reference[jnp.newaxis], k)
