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
from collections.abc import Iterator
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
# Logits of a block of words against the whole vocabulary, at most this many.
_LOGITS = 1 << 25


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
    if counts is None and (word_bias is None or context_bias is None):
        raise InputError("model_unigram: expected both biases, or counts")
    total = np.full(len(contexts), -np.inf)
    table = jnp.asarray(contexts, jnp.float32)
    for rows in _blocks(len(words), len(contexts)):
        logits = _product(jnp.asarray(words[rows], jnp.float32), table.T)
        if word_bias is not None and context_bias is not None:
            logits = np.asarray(logits, np.float64) + context_bias[np.newaxis]
            logits += word_bias[rows, np.newaxis]
        else:
            logits = np.asarray(jax.nn.log_softmax(logits, axis=1), np.float64)
            weights = np.asarray(counts, np.float64)[rows, np.newaxis]
            logits += np.log(np.maximum(weights, 1e-300))
        total = np.logaddexp(total, special.logsumexp(logits, axis=0))
    return total - special.logsumexp(total)


def alpha_embedding(
    model: Model, alpha: float, *, scaled: bool = False, exact: bool = False
) -> Float[np.ndarray, "words dim"]:
    """The alpha-embedding of every word.

    Args:
      model: tables and reference.
      alpha: any number; 1 with a uniform reference gives the words' own vectors.
      scaled: whether to multiply by `Z / |beta|`, which may overflow for large
        `|alpha|` and is lost when rows are normalised.
      exact: in float64. In float32 a row's error is about 1e-6 / |beta| of its length,
        so that alphas within 0.01 of 1, but not 1 itself, need it.
    """
    beta = (1 - alpha) / 2
    out = np.empty(model.words.shape)
    log_z = np.empty(len(model.words))
    dtype = np.float64 if exact else np.float32
    with jax.enable_x64(exact):
        contexts = jnp.asarray(model.centred, dtype)
        reference = jnp.asarray(model.log_reference, dtype)
        bias = _bias(model, dtype)
        for rows in _blocks(len(model.words), len(model.contexts)):
            block = jnp.asarray(model.words[rows], dtype)
            if beta == 0:
                out[rows] = _log_tangent(block, contexts, reference, bias)
            else:
                out[rows], log_z[rows] = _tangent(
                    block, contexts, reference, bias, jnp.asarray(beta, dtype)
                )
    if scaled and beta != 0:
        out *= (np.exp(log_z) / abs(beta))[:, np.newaxis]
    out *= -1 if beta < 0 else 1
    return np.linalg.solve(model.fisher, out.T).T


def limit_embedding(
    model: Model, k: int = 1, *, weighted: bool = False
) -> Float[np.ndarray, "words dim"]:
    """The limit of the directions as alpha goes to minus infinity, over k contexts.

    The mean of `I^-1 (v_c - E_p0 V)` over the k contexts of the largest
    `p_w(c) / p0(c)`, with those ratios as weights if `weighted`.
    """
    rows, log_ratios = top_contexts(model, k)
    weights = np.ones_like(log_ratios)
    if weighted:
        weights = np.exp(log_ratios - log_ratios.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    total = np.zeros(model.words.shape)
    for column, weight in zip(rows.T, weights.T, strict=True):
        total += weight[:, np.newaxis] * model.centred[column]
    return np.linalg.solve(model.fisher, total.T).T


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
    bias = _bias(model, jnp.float32)
    for rows in _blocks(len(model.words), len(model.contexts)):
        block = jnp.asarray(model.words[rows], jnp.float32)
        ratios[rows], found[rows] = _top_ratios(block, contexts, reference, bias, k=k)
    return found, ratios


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
    vectors (similarity, analogy, classifiers) works in that metric.
    """
    if metric == "I":
        return embedding
    return embedding @ spectrum.power(model.fisher, 0.5)


def _blocks(words: int, contexts: int) -> Iterator[slice]:
    size = max(1, min(words, _LOGITS // max(contexts, 1)))
    for start in range(0, words, size):
        yield slice(start, min(start + size, words))


def _bias(model: Model, dtype) -> Float[Array, " vocab"]:
    bias = model.context_bias
    return (
        jnp.zeros(len(model.contexts), dtype)
        if bias is None
        else jnp.asarray(bias, dtype)
    )


def _log_p(words, contexts, bias) -> Float[Array, "block vocab"]:
    logits = _product(words, contexts.T) + bias[jnp.newaxis]
    return jax.nn.log_softmax(logits, axis=1)


def _product(a, b):
    # An accelerator must not round to bfloat16.
    return jnp.dot(a, b, precision=jax.lax.Precision.HIGHEST)


@jax.jit
def _tangent(words, contexts, log_reference, bias, beta):
    """`E_q V - E_p0 V` and `ln Z` of a block of words; `contexts` are centred."""
    log_p = _log_p(words, contexts, bias)
    mixed = beta * log_p + (1 - beta) * log_reference[jnp.newaxis]
    log_z = jax.nn.logsumexp(mixed, axis=1)
    return _product(jnp.exp(mixed - log_z[:, jnp.newaxis]), contexts), log_z


@jax.jit
def _log_tangent(words, contexts, log_reference, bias):
    """`sum_c p0(c) (ln p_w(c) - ln p0(c)) (v_c - E_p0 V)` of a block, for alpha = 1."""
    log_ratio = _log_p(words, contexts, bias) - log_reference[jnp.newaxis]
    return _product(jnp.exp(log_reference)[jnp.newaxis] * log_ratio, contexts)


@functools.partial(jax.jit, static_argnames="k")
def _top_ratios(words, contexts, log_reference, bias, *, k):
    log_ratio = _log_p(words, contexts, bias) - log_reference[jnp.newaxis]
    return selection.top_k(log_ratio, k)
