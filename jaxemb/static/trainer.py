"""Training of word vectors: an objective, a corpus, and the loop of `jaxemb.train`."""

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from jaxemb import axes
from jaxemb.data.corpus import Corpus
from jaxemb.static import descent, noise
from jaxemb.static.blocks import Blocks, Layout
from jaxemb.static.objectives import Block, Objective, SubwordSkipGram
from jaxemb.static.settings import check_at_least
from jaxemb.static.subwords import NGrams, with_ngrams
from jaxemb.static.tables import WordTables, write_words
from jaxemb.train import loop, parallel
from jaxemb.train.state import State

_MOST = 16  # see `most_places`


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
    *,
    mesh: jax.sharding.Mesh | None = None,
    mode: parallel.Mode = "jit",
    shard_rows: bool = False,
    name: str = "word vectors",
    progress: bool = True,
    **instruments: Any,
) -> WordTables:
    """Trains word vectors, going on from the newest checkpoint in `workdir`.

    After each epoch the loss on `corpus.held_out`, if there is any, is written to
    `metrics.jsonl` as `held_out/loss`: the mean over all its true pairs (CBOW: words),
    where `train/loss` is over every eighth word as it was met.

    Args:
      corpus: to train on.
      objective: what to train for.
      training: everything else that the vectors depend on.
      workdir: the run's folder.
      mesh: the devices; all of them if None.
      mode: "jit" or "pmap".
      shard_rows: spread the rows of the tables over the devices.
      name: shown before the progress bar.
      progress: show one.
      **instruments: `tensorboard` and `profile` of `train.fit`.
    """
    mesh = parallel.make_mesh() if mesh is None else mesh
    prepared = Prepared(corpus, objective, training)
    num_steps = training.epochs * prepared.num_chunks
    multiple = mesh.size if shard_rows else 1
    state = prepared.state(multiple)
    step = parallel.data_parallel(
        make_step(objective, training, num_steps),
        mesh,
        mode=mode,
        shard_rows=("^params/",) if shard_rows else (),
    )
    write_words(epath.Path(workdir), corpus.words)
    state = loop.fit(
        state,
        step,
        prepared.batches,
        num_steps,
        workdir,
        evaluate=prepared.held_out_loss if corpus.held_out else None,
        evaluate_every=prepared.num_chunks,
        save_every=prepared.num_chunks,
        config=prepared.config,
        name=name,
        progress=progress,
        **instruments,
    )
    return prepared.tables(parallel.to_host(state.params))


class Prepared:
    """What a run is made of, given a corpus, an objective and settings."""

    def __init__(self, corpus: Corpus, objective: Objective, training: Training):
        subwords = isinstance(objective, SubwordSkipGram)
        training = dataclasses.replace(
            training, layout=training.layout.settled(subwords)
        )
        self._corpus, self._objective, self._training = corpus, objective, training
        process = (jax.process_index(), jax.process_count())
        blocks = self._blocks(corpus, process)
        self.num_chunks = blocks.num_chunks
        self.ngrams = None
        if isinstance(objective, SubwordSkipGram):
            self.ngrams = NGrams(
                corpus.words, objective.minn, objective.maxn, objective.buckets
            )
        self.batches = self._with_ngrams(blocks)
        self._held_out: list[dict[str, np.ndarray]] | None = None
        self._loss = parallel.everywhere(_block_losses(objective))

    def _blocks(self, corpus: Corpus, process: tuple[int, int]) -> Blocks:
        return Blocks(
            corpus,
            self._training.layout,
            window=self._objective.window,
            dynamic=self._training.dynamic,
            sample=self._training.sample,
            seed=self._training.seed,
            process=process,
        )

    def _with_ngrams(self, blocks: Blocks) -> Callable[[int], dict[str, np.ndarray]]:
        if self.ngrams is None:
            return blocks
        return with_ngrams(blocks, self.ngrams, self._objective.window)

    @property
    def config(self) -> dict[str, Any]:
        """Everything that the vectors depend on, as JSON."""
        corpus = self._corpus
        digest = hashlib.sha256(np.ascontiguousarray(corpus.counts).tobytes())
        digest.update("\n".join(corpus.words).encode("utf-8", "surrogatepass"))
        return {
            "objective": type(self._objective).__name__,
            **dataclasses.asdict(self._objective),
            **dataclasses.asdict(self._training),
            "corpus": {
                "words": int(corpus.raw[-1]),
                "vocabulary": len(corpus.words),
                "sha256": digest.hexdigest(),
            },
        }

    def state(self, multiple: int) -> State:
        """Tables as word2vec begins: small random inputs, outputs of zero.

        Rows of zero, which nothing reads, fill up to a multiple of `multiple`.
        """
        training, vocab = self._training, len(self._corpus.words)
        word_key, ngram_key, root_key = jax.random.split(
            jax.random.key(training.seed), 3
        )

        def random_rows(key, rows):
            table = jax.random.uniform(key, (rows, training.dim)) - 0.5
            return _filled(np.asarray(table) / training.dim, multiple)

        params = {
            "input": random_rows(word_key, vocab),
            "output": _filled(np.zeros((vocab, training.dim), np.float32), multiple),
        }
        if self.ngrams is not None:
            params["ngrams"] = random_rows(ngram_key, len(self.ngrams))
        counts = np.asarray(self._corpus.counts)
        return State(
            step=jnp.zeros([], jnp.int32),
            key=jax.random.key_data(root_key),
            params=params,
            opt_state=(),
            frozen={"noise": noise.unigram(counts, training.noise_power)},
        )

    def held_out_loss(self, state: State) -> Mapping[str, float]:
        """The loss on the sentences kept apart, the same draws each time."""
        if self._held_out is None:
            assert self._corpus.held_out is not None
            blocks = self._blocks(_same_draws(self._corpus), (0, 1))
            batches = self._with_ngrams(blocks)
            self._held_out = [batches(i) for i in range(blocks.num_chunks)]
        total = predictions = 0.0
        for number, batch in enumerate(self._held_out):
            variables = {**state.variables, "number": jnp.asarray(number)}
            one, count = jax.device_get(self._loss(variables, batch))
            total, predictions = total + float(one), predictions + float(count)
        return {"held_out/loss": total / predictions if predictions else math.nan}

    def tables(self, params: Mapping[str, np.ndarray]) -> WordTables:
        """What was trained, without the rows that fill up."""
        rows = len(self._corpus.words)
        subwords = None
        if self.ngrams is not None:
            own = np.ascontiguousarray(params["input"][:rows])
            subwords = self.ngrams.table(own, params["ngrams"])
        return WordTables(
            self._corpus.words,
            np.asarray(self._corpus.counts),
            params["input"][:rows],
            params["output"][:rows],
            subwords=subwords,
        )


def most_places(objective: Objective, training: Training) -> float:
    """How many places of a row move it at the full rate in one update.

    16 for the defaults of word2vec (a rate of 0.025, windows of 5 drawn anew, 5
    negatives), and fewer in proportion as what one place adds grows with them.
    """
    around = objective.window + 1 if training.dynamic else 2 * objective.window
    strength = training.learning_rate * around * (1 + objective.negatives)
    return _MOST * min(1.0, 0.025 * 6 * 6 / max(strength, 1e-9))


def make_step(objective: Objective, training: Training, num_steps: int):
    """Builds `step(state, batch)`: one update of the tables for each block of a chunk.

    Its metrics are `loss`, the mean over true pairs (CBOW: words) of every eighth word,
    and `words`, how many words of text it covered.
    """
    most = most_places(objective, training)
    falls = (training.learning_rate - training.last_learning_rate) / num_steps

    def step(state: State, batch: dict[str, Any]) -> tuple[State, dict[str, jax.Array]]:
        rate = training.learning_rate - falls * state.step

        def update(number, carry):
            tables, total, predictions = carry
            key = jax.random.fold_in(state.step_key, number)
            block = _block(objective, state.frozen["noise"], batch, number, key)
            tables, loss = descent.descend(
                tables,
                objective.ids(block),
                lambda rows: objective.loss(rows, block),
                rate,
                most,
            )
            return tables, total + loss.shown, predictions + loss.predictions

        zero = jnp.zeros([])
        tables, total, predictions = jax.lax.fori_loop(
            0, jnp.max(batch["blocks"]), update, (state.params, zero, zero)
        )
        metrics = {
            "loss": total / jnp.maximum(predictions, 1),
            "words": jnp.max(batch["raw"]).astype(jnp.float32),
        }
        return dataclasses.replace(state, step=state.step + 1, params=tables), metrics

    return step


def _block_losses(objective: Objective):
    """From tables and a batch to its loss and predictions, summed over all words."""

    def losses(variables, batch):
        root = jax.random.fold_in(jax.random.key(0), variables["number"])

        def add(number, carry):
            key = jax.random.fold_in(root, number)
            block = _block(objective, variables["noise"], batch, number, key)
            rows = descent.take(variables["params"], objective.ids(block))
            loss = objective.loss(rows, block, every=1)
            return carry[0] + loss.shown, carry[1] + loss.predictions

        zero = jnp.zeros([])
        return jax.lax.fori_loop(0, jnp.max(batch["blocks"]), add, (zero, zero))

    return losses


def _block(objective, noise_table, batch, number, key) -> Block:
    groups = batch["words"].shape[0]
    shape = (axes.global_batch(groups), objective.shared)
    drawn = noise.draw(noise_table, key, shape)

    def leaf(name):
        x = jax.lax.dynamic_index_in_dim(batch[name], number, axis=1, keepdims=False)
        return x.astype(jnp.int32)

    return Block(
        words=leaf("words"),
        before=leaf("before"),
        after=leaf("after"),
        noise=axes.local_part(drawn, groups),
        window=objective.window,
        ngrams=leaf("ngrams") if "ngrams" in batch else None,
        owners=leaf("owners") if "owners" in batch else None,
    )


def _same_draws(corpus: Corpus) -> Corpus:
    """The held-out part, its frequent words left out as often as in training."""
    held_out = corpus.held_out
    assert held_out is not None
    return dataclasses.replace(held_out, counts=corpus.counts)


def _filled(table: np.ndarray, multiple: int) -> np.ndarray:
    return np.pad(table, ((0, -len(table) % multiple), (0, 0)))
