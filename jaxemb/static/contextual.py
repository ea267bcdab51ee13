"""Word vectors that an encoder's vectors of the words around them predict.

"Using Dynamic Embeddings to Improve Static Embeddings" (Wang et al. 2020): skip-gram
whose centre is what a frozen encoder makes of a word in its sentence, while the words
around it have a vector each, wherever they stand. These are what training is for.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath
from jaxtyping import Array, Bool, Float, Int

from jaxemb import losses, numerics
from jaxemb.data.corpus import Corpus
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.static import rows, running
from jaxemb.static.objectives import Block, Loss, Rows
from jaxemb.static.settings import check_at_least
from jaxemb.static.trainer import Prepared, Training, make_step, most_places
from jaxemb.train.state import State

Variant = Literal["paper", "released_code"]
_STRIDE = 8  # while training, the loss of every 8th word is shown


@dataclasses.dataclass(frozen=True, kw_only=True)
class ContextToStatic:
    """Predicts the words around each word from its vector in context.

    With o the encoder's vector of a centre, `u = U o + b`, v the vectors of the words
    around it, `s_j = u . v_j` and a = `losses.context_weights`:

        "paper" (eq. 15):  -log s(sum_j a_j s_j) - k E log s(-u . v_noise)
        "released_code":   sum_j [-log s(a_j s_j) - k E log s(-u . v_noise)]

    the second with `a = softmax(s / sqrt(dim))`, as in the authors' public program. The
    noise words of a group are shared, as those of `SkipGram` are, and count
    `negatives / shared` each.
    """

    window: int = 5
    """Largest distance of a neighbour."""
    negatives: int = 5
    """Noise words that every centre, or in the code's variant every pair, is told
    from."""
    shared: int = 16
    """Noise words drawn for a group."""
    variant: Variant = "paper"
    attention: bool = True
    """Weigh the words around by a; else all alike."""
    stop_gradient: bool = False
    """Take the weights as given, so that no gradient flows through them."""
    include_self: bool = False
    """Count the centre among the words around it: then its vector is drawn to the
    encoder's own."""
    over: Literal["centre", "group"] = "centre"
    """What the weights add up to 1 over: the words around a centre, or all pairs of a
    group, as the program has it, whose batches of pairs span centres."""
    scaled: bool | None = None
    """Divide by sqrt(dim) in the softmax; unless given, in the code's variant only."""
    bias: bool = False
    """Whether b is trained; else it is 0."""

    def __post_init__(self):
        for field in ("window", "negatives", "shared"):
            check_at_least(1, self, field)

    @property
    def whole(self) -> tuple[str, ...]:
        """The parameters that are no table of words."""
        return ("projection", "bias") if self.bias else ("projection",)

    @property
    def predictions(self) -> int:
        """How many a centre makes in the widest window."""
        if self.variant == "paper":
            return 1
        return 2 * self.window + self.include_self

    @property
    def untrained(self) -> float:
        """The loss of a word in the widest window while every choice is a coin's."""
        return math.log(2) * self.predictions * (1 + self.negatives)

    def ids(self, block: Block) -> dict[str, Int[Array, "groups _"]]:
        """The rows that a block reads, by table."""
        return {"output": jnp.concatenate([block.words, block.noise], axis=1)}

    def weights(
        self,
        scores: Float[Array, "groups group around"],
        near: Any,  # bool, of the same shape
        dim: int,
    ) -> Float[Array, "groups group around"]:
        """The weights a of the words around each centre."""
        scaled = self.variant != "paper" if self.scaled is None else self.scaled
        scale = dim**-0.5 if scaled else 1.0
        shape = scores.shape
        if self.over == "group":
            scores, near = (x.reshape(shape[0], -1) for x in (scores, near))
        found = losses.context_weights(
            scores, near, attention=self.attention, scale=scale
        ).reshape(shape)
        return jax.lax.stop_gradient(found) if self.stop_gradient else found

    def around(self, length: int) -> Bool[np.ndarray, "{length} {length}"]:
        """Which words of a sentence are around each of its words, a row a centre."""
        places = np.arange(length)
        apart = np.abs(np.subtract.outer(places, places))
        return (apart <= self.window) & ((apart > 0) | self.include_self)

    def loss(self, rows: Rows, block: Block, every: int = _STRIDE) -> Loss:
        """Over all words that have a neighbour; shown over every so many-th."""
        around, shared = block.words.shape[1], block.noise.shape[1]
        centres = project(block.vectors, rows["projection"], rows.get("bias"))
        scores = jnp.einsum("gcd,god->gco", centres, rows["output"])
        true, false = scores[..., :around], scores[..., around:]
        near = block.neighbours(self.include_self)
        weights = self.weights(true, near, centres.shape[-1])
        known = (block.before + block.after > 0).astype(jnp.float32)
        weighted, near = weights * true, near.astype(jnp.float32)

        def total(step: int):
            k, w, n = (x[:, ::step] for x in (known, weighted, near))
            noise = jnp.sum(numerics.softplus(false[:, ::step]), axis=-1)
            noise *= self.negatives / shared
            if self.variant == "paper":
                return jnp.sum(k * (numerics.softplus(-jnp.sum(w, axis=-1)) + noise))
            pairs = jnp.sum(n * numerics.softplus(-w), axis=-1)
            return jnp.sum(pairs + jnp.sum(n, axis=-1) * noise)

        return Loss(total(1), total(every), jnp.sum(known[:, ::every]))


def project(
    vectors: Float[Array, "*batch width"],
    projection: Float[Array, "width dim"],
    bias: Float[Array, " dim"] | None = None,
) -> Float[Array, "*batch dim"]:
    """`U o + b` (eq. 10), as one product."""
    flat = vectors.reshape(-1, vectors.shape[-1]) @ projection
    flat = flat if bias is None else flat + bias[None]
    return flat.reshape(*vectors.shape[:-1], -1)


@dataclasses.dataclass(frozen=True, eq=False)
class TokenVectors:
    """A vector for every word of a text: from places in `corpus.tokens` to rows."""

    rows: np.ndarray
    """(rows, dim), in memory or mapped."""
    where: np.ndarray
    """The row of each place; `corpus.tokens` makes an encoder of a word table."""

    @property
    def dim(self) -> int:
        """Width of a vector."""
        return self.rows.shape[1]

    def __call__(self, places: np.ndarray) -> np.ndarray:
        """The vectors of places, in the dtype of the rows."""
        return self.rows[self.where[places]]


@dataclasses.dataclass(frozen=True, eq=False)
class ContextTables:
    """What training leaves.

    Attributes:
      words: the vocabulary.
      output: a vector for each word.
      projection: U, transposed: from the encoder's width to that of `output`.
      bias: b, where it was trained.
      objective: what was trained for.
    """

    words: tuple[str, ...]
    output: Float[np.ndarray, "vocab dim"]
    projection: Float[np.ndarray, "width dim"]
    bias: Float[np.ndarray, " dim"] | None
    objective: ContextToStatic

    def vectors(self) -> WordVectors:
        """The vectors of words: the product."""
        return WordVectors(self.words, np.ascontiguousarray(self.output), unique=True)

    def attention(
        self, encoded: Float[np.ndarray, "words width"], ids: Int[np.ndarray, " words"]
    ) -> Float[np.ndarray, "words words"]:
        """How much each word of a sentence weighs each other one; 0 outside its window.

        Args:
          encoded: the encoder's vectors of the words.
          ids: their rows.
        """
        centres = np.asarray(encoded, np.float32) @ self.projection
        centres = centres if self.bias is None else centres + self.bias
        scores = centres @ self.output[ids].T
        near = jnp.asarray(self.objective.around(len(ids)))
        found = self.objective.weights(
            jnp.asarray(scores)[None], near[None], self.output.shape[1]
        )
        return np.asarray(found[0])


class _Prepared(Prepared):
    def __init__(
        self,
        corpus: Corpus,
        objective: ContextToStatic,
        training: Training,
        vectors: TokenVectors,
    ):
        # All centres of an update move one U, as if it were a frequent n-gram.
        layout = training.layout.settled(subwords=True)
        training = dataclasses.replace(training, layout=layout)
        super().__init__(corpus, objective, training, vectors)
        self._width = vectors.dim

    def state(self) -> State:
        """Tables as the authors' program begins: V of zeros, U by Xavier and Glorot."""
        training, words = self._training, len(self._corpus.words)
        key, root_key = jax.random.split(jax.random.key(training.seed))
        shape = self._width, training.dim
        params = {
            "output": rows.zeros(words, (training.dim,)),
            "projection": jax.nn.initializers.xavier_uniform()(key, shape),
        }
        if self._objective.bias:
            params["bias"] = jnp.zeros(training.dim)
        return self._first(params, root_key)


def train_contextual(
    corpus: Corpus,
    vectors: TokenVectors,
    objective: ContextToStatic,
    training: Training,
    workdir: epath.PathLike,
    *,
    clip_norm: float | None = 5.0,
    encoder: Mapping[str, Any] | None = None,
    **options: Any,
) -> ContextTables:
    """Trains word vectors against an encoder's, going on from the newest checkpoint.

    An update adds the gradients of all its centres up, as that of `train` does, U's
    too. `train/loss` of `metrics.jsonl` is that of a centre that has a neighbour.

    Args:
      corpus: to train on.
      vectors: the encoder's, of every place of the text; they are not trained.
      objective: what to train for.
      training: everything else. The paper leaves no frequent word out and draws no
        windows: `sample=0, dynamic=False`.
      workdir: the run's folder.
      clip_norm: the longest gradient of an update, times its centres.
      encoder: what identifies the vectors, for the run's config.
      **options: the fields of `RunOptions`.

    Raises:
      InputError: where the vectors are not those of the text, an epoch has nothing to
        learn, or `workdir` holds another run.
      Diverged: where the loss explodes.
    """
    if len(vectors.where) != len(corpus.tokens):
        raise InputError(
            f"vectors of {len(vectors.where)} words; the text has {len(corpus.tokens)}"
        )
    prepared = _Prepared(corpus, objective, training, vectors)
    step = make_step(
        objective,
        training,
        training.epochs * prepared.num_chunks,
        most=most_places(objective, training, objective.predictions),
        whole=objective.whole,
        clip_norm=clip_norm,
    )
    params = running.run(
        prepared.state,
        step,
        prepared.batches,
        workdir,
        running.RunOptions(**options),
        epochs=training.epochs,
        steps_an_epoch=prepared.num_chunks,
        words=corpus.words,
        config={
            **prepared.config,
            "clip_norm": clip_norm,
            "encoder": dict(encoder or {}),
        },
        learning_rate=training.learning_rate,
        tables=("output",),
    )
    return ContextTables(
        corpus.words,
        params["output"][: len(corpus.words)],
        params["projection"],
        params.get("bias"),
        objective,
    )
