"""Training of word vectors: an objective, a corpus, and the loop of `jaxemb.train`."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from jaxemb import axes
from jaxemb.data.corpus import Corpus
from jaxemb.static import descent, noise, rows, running
from jaxemb.static.blocks import Blocks, Layout
from jaxemb.static.objectives import Block, Objective, SubwordSkipGram
from jaxemb.static.settings import check_at_least
from jaxemb.static.subwords import NGrams
from jaxemb.static.tables import WordTables
from jaxemb.train import parallel
from jaxemb.train.metrics import Mean
from jaxemb.train.state import State

_MOST = 16  # see `most_places`
# A loss so many times that of tossing coins tells that the tables have exploded.
_EXPLODED = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """How word vectors are trained, whatever the objective."""

    dim: int = 100
    """Numbers a vector."""
    epochs: int = 5
    learning_rate: float = 0.025
    """At the start; falls in a line to `last_learning_rate`."""
    last_learning_rate: float = 1e-4
    sample: float = 1e-3
    """Frequency above which occurrences of a word are left out; 0 for never."""
    dynamic: bool = True
    """Draw the radius of each window; else it is the widest."""
    noise_power: float = 0.75
    """Noise words are drawn by count to this power."""
    layout: Layout = Layout()
    """How words are grouped into products and updates."""
    seed: int = 0

    def __post_init__(self):
        for field in ("dim", "epochs"):
            check_at_least(1, self, field)
        for field in ("sample", "seed", "learning_rate", "last_learning_rate"):
            check_at_least(0, self, field)


def train(
    corpus: Corpus,
    objective: Objective,
    training: Training,
    workdir: epath.PathLike,
    **options: Any,
) -> WordTables:
    """Trains word vectors, going on from the newest checkpoint in `workdir`.

    A loss is that of a word: the sum over its pairs (of CBOW, which has one prediction
    a word, that one) of `-log sigmoid` of the true pair's score and of minus those of
    its `negatives` noise words, averaged over the words that have a neighbour once
    frequent ones are left out. In `metrics.jsonl`, `train/loss` is over every eighth of
    them, before the update that they take part in, of the steps since the line before;
    `held_out/loss`, after each epoch, is over all of `corpus.held_out`, with the same
    windows and noise words each time. It is not there where nothing was held out, or no
    word of it has a neighbour.

    Args:
      corpus: to train on.
      objective: what to train for.
      training: everything else that the vectors depend on.
      workdir: the run's folder.
      **options: the fields of `RunOptions`.

    Raises:
      InputError: where an epoch has nothing to learn, or `workdir` holds another run.
      Diverged: where the loss explodes.
    """
    prepared = Prepared(corpus, objective, training)
    params = running.run(
        prepared.state,
        make_step(objective, training, training.epochs * prepared.num_chunks),
        prepared.batches,
        workdir,
        running.RunOptions(**options),
        epochs=training.epochs,
        steps_an_epoch=prepared.num_chunks,
        words=corpus.words,
        config=prepared.config,
        learning_rate=training.learning_rate,
        evaluate=prepared.evaluate,
    )
    return prepared.tables(params)


class Prepared:
    """What a run is made of, given a corpus, an objective and settings."""

    def __init__(
        self,
        corpus: Corpus,
        objective: Any,
        training: Training,
        vectors: Callable[[np.ndarray], np.ndarray] | None = None,
    ):
        """Lays the text out.

        Args:
          corpus: to train on.
          objective: what to train for.
          training: everything else.
          vectors: of places of the text, for objectives that read them; what the corpus
            holds out has none.
        """
        subwords = isinstance(objective, SubwordSkipGram)
        training = dataclasses.replace(
            training, layout=training.layout.settled(subwords)
        )
        self._corpus, self._objective, self._training = corpus, objective, training
        self._vectors = vectors
        self.ngrams = None
        if isinstance(objective, SubwordSkipGram):
            self.ngrams = NGrams(
                corpus.words, objective.minn, objective.maxn, objective.buckets
            )
        process = (jax.process_index(), jax.process_count())
        self.batches = self._blocks(corpus, process)
        self.num_chunks = self.batches.num_chunks
        self._held_out = None
        if corpus.held_out and vectors is None:
            blocks = self._blocks(_same_draws(corpus), (0, 1))
            self._held_out = blocks if blocks.has_neighbours(0) else None
        self._loss = parallel.everywhere(_block_losses(objective))

    def _blocks(self, corpus: Corpus, process: tuple[int, int]) -> Blocks:
        return Blocks(
            corpus,
            self._training.layout,
            window=self._objective.window,
            dynamic=self._training.dynamic,
            sample=self._training.sample,
            seed=self._training.seed,
            ngrams=self.ngrams,
            vectors=self._vectors,
            process=process,
        )

    @property
    def config(self) -> dict[str, Any]:
        """Everything that the vectors depend on, as JSON."""
        return {
            "objective": type(self._objective).__name__,
            **dataclasses.asdict(self._objective),
            **dataclasses.asdict(self._training),
            "corpus": running.corpus_identity(self._corpus),
        }

    def state(self) -> State:
        """Tables as word2vec begins: small random inputs, outputs of zero."""
        training, vocab = self._training, len(self._corpus.words)
        word_key, ngram_key, root_key = jax.random.split(
            jax.random.key(training.seed), 3
        )
        shape, width = (training.dim,), float(training.dim)
        params = {
            "input": rows.uniform(word_key, vocab, shape, width),
            "output": rows.zeros(vocab, shape),
        }
        if self.ngrams is not None:
            params["ngrams"] = rows.uniform(ngram_key, len(self.ngrams), shape, width)
        return self._first(params, root_key)

    def _first(self, params: dict[str, jax.Array], root_key: jax.Array) -> State:
        """The state at step 0 of these parameters."""
        counts = np.asarray(self._corpus.counts)
        return State(
            step=jnp.zeros([], jnp.int32),
            key=jax.random.key_data(root_key),
            params=params,
            opt_state=(),
            frozen={"noise": noise.unigram(counts, self._training.noise_power)},
        )

    @property
    def evaluate(self) -> Callable[[State], Mapping[str, float]] | None:
        """The held-out loss as a function of the state; None where there is none."""
        return None if self._held_out is None else self._held_out_loss

    def _held_out_loss(self, state: State) -> Mapping[str, float]:
        assert self._held_out is not None
        total = words = 0.0
        for number in range(self._held_out.num_chunks):
            variables = {**state.variables, "number": np.int32(number)}
            losses = self._loss(variables, self._held_out(number))
            one, count = jax.device_get(losses)
            total, words = total + float(one), words + float(count)
        return {"held_out/loss": total / words}

    def tables(self, params: Mapping[str, np.ndarray]) -> WordTables:
        """What was trained, without the rows that fill up."""
        vocab = len(self._corpus.words)
        subwords = None
        if self.ngrams is not None:
            own = np.ascontiguousarray(params["input"][:vocab])
            subwords = self.ngrams.table(own, params["ngrams"])
        return WordTables(
            self._corpus.words,
            np.asarray(self._corpus.counts),
            params["input"][:vocab],
            params["output"][:vocab],
            subwords=subwords,
        )


def most_places(objective: Any, training: Training, around: int | None = None) -> float:
    """How many places of a row move it at the full rate in one update.

    16 for the defaults of word2vec (a rate of 0.025, windows of 5 drawn anew, 5
    negatives), and fewer in proportion as what one place adds grows with them.

    Args:
      objective: what is trained for.
      training: how.
      around: predictions that a word takes part in; those of its window unless given.
    """
    window: int = objective.window
    if around is None:
        around = window + 1 if training.dynamic else 2 * window
    strength = training.learning_rate * around * (1 + objective.negatives)
    return _MOST * min(1.0, 0.025 * 6 * 6 / max(strength, 1e-9))


def make_step(
    objective: Any,
    training: Training,
    num_steps: int,
    *,
    most: float | None = None,
    whole: Sequence[str] = (),
    clip_norm: float | None = None,
):
    """Builds `step(state, batch)`: one update of the tables for each block of a chunk.

    Its metrics are `loss`, as `train` tells it, infinite where it is finite but beyond
    all learning, and `words`, how many words of text it covered.

    Args:
      objective: what to train for.
      training: how.
      num_steps: over which the learning rate falls.
      most: places of a row that move it at the full rate; `most_places` unless given.
      whole: tables that the objective reads whole.
      clip_norm: the longest gradient of an update, over its centres with a neighbour;
        None: any.
    """
    most = most_places(objective, training) if most is None else most
    falls = (training.learning_rate - training.last_learning_rate) / num_steps
    largest = _EXPLODED * objective.untrained

    def step(state: State, batch: dict[str, Any]) -> tuple[State, dict[str, Any]]:
        rate = training.learning_rate - falls * state.step

        def update(number, carry):
            tables, total, words = carry
            key = jax.random.fold_in(state.step_key, number)
            block = _block(objective, state.frozen["noise"], batch, number, key)
            centres = jnp.sum(block.before + block.after > 0, dtype=jnp.float32)
            tables, loss = descent.descend(
                tables,
                objective.ids(block),
                lambda read: objective.loss(read, block),
                rate,
                most,
                whole=whole,
                examples=axes.sum_over_devices(centres),
                clip_norm=clip_norm,
            )
            return tables, total + loss.shown, words + loss.words

        zero = jnp.zeros([])
        tables, total, words = jax.lax.fori_loop(
            0, jnp.max(batch["blocks"]), update, (state.params, zero, zero)
        )
        metrics = {
            "loss": Mean(descent.unless_exploded(total, words, largest), words),
            "words": jnp.max(batch["raw"]).astype(jnp.float32),
        }
        return dataclasses.replace(state, step=state.step + 1, params=tables), metrics

    return step


def _block_losses(objective: Any):
    """From tables and a batch to its loss, summed over all words, and their number."""

    def losses(variables, batch):
        root = jax.random.fold_in(jax.random.key(0), variables["number"])

        def add(number, carry):
            key = jax.random.fold_in(root, number)
            block = _block(objective, variables["noise"], batch, number, key)
            read = descent.take(variables["params"], objective.ids(block))
            loss = objective.loss(read, block, every=1)
            return carry[0] + loss.shown, carry[1] + loss.words

        zero = jnp.zeros([])
        return jax.lax.fori_loop(0, jnp.max(batch["blocks"]), add, (zero, zero))

    return losses


def _block(objective, noise_table, batch, number, key) -> Block:
    groups = batch["words"].shape[0]
    shape = (axes.global_batch(groups), objective.shared)
    drawn = noise.draw(noise_table, key, shape)

    def leaf(name, dtype=jnp.int32):
        x = jax.lax.dynamic_index_in_dim(batch[name], number, axis=1, keepdims=False)
        return x.astype(dtype)

    return Block(
        words=leaf("words"),
        before=leaf("before"),
        after=leaf("after"),
        noise=axes.local_part(drawn, groups),
        window=objective.window,
        ngrams=leaf("ngrams") if "ngrams" in batch else None,
        owners=leaf("owners") if "owners" in batch else None,
        vectors=leaf("vectors", jnp.float32) if "vectors" in batch else None,
    )


def _same_draws(corpus: Corpus) -> Corpus:
    """The held-out part, its frequent words left out as often as in training."""
    held_out = corpus.held_out
    assert held_out is not None
    return dataclasses.replace(held_out, counts=corpus.counts)
