"""GloVe: word vectors whose products are logarithms of co-occurrence counts."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath
from jaxtyping import Array, Float

from jaxemb.data.cooccurrence import Cooccurrences
from jaxemb.data.corpus import Corpus
from jaxemb.errors import InputError
from jaxemb.static import descent
from jaxemb.static.settings import check_at_least
from jaxemb.static.tables import WordTables, write_words
from jaxemb.train import loop, parallel
from jaxemb.train.state import State


@dataclasses.dataclass(frozen=True, kw_only=True)
class GloVe:
    """Settings (Pennington et al. 2014), with the defaults of the authors' program."""

    dim: int = 100
    """Numbers a vector."""
    epochs: int = 25
    """Times that every entry of the co-occurrence matrix is met."""
    learning_rate: float = 0.05
    """Of AdaGrad."""
    cap: float = 100.0
    """Count from which on an entry has the weight 1."""
    power: float = 0.75
    """Of the weight `(count / cap) ** power` of lesser counts."""
    block: int = 1024
    """Entries of an update."""
    chunk: int = 65_536
    """Entries of a step of the loop."""
    seed: int = 0

    def __post_init__(self):
        for field in ("dim", "epochs", "block", "chunk"):
            check_at_least(1, self, field)
        check_at_least(0, self, "seed")
        if not self.cap > 0 or not self.learning_rate > 0:
            raise InputError(
                f"GloVe: cap is {self.cap} and learning_rate {self.learning_rate}; "
                "expected more than 0"
            )
        if self.chunk % self.block:
            raise InputError(
                f"chunk is {self.chunk}; expected a multiple of block ({self.block})"
            )


def weighted_squares(
    rows: dict[str, jax.Array],
    counts: Float[Array, " entries"],
    cap: float,
    power: float,
) -> Float[Array, " entries"]:
    """`f(X) (w . v + b + c - log X)^2 / 2` of each entry; 0 where X is 0.

    Args:
      rows: `input` and `output` (entries, dim), `input_bias` and `output_bias`
        (entries,) of the entries' rows and columns.
      counts: X.
      cap: the count from which on f is 1.
      power: f is `(X / cap) ** power` below.
    """
    score = jnp.einsum("ed,ed->e", rows["input"], rows["output"])
    known = jnp.where(counts > 0, counts, 1.0)
    error = score + rows["input_bias"] + rows["output_bias"] - jnp.log(known)
    weight = jnp.minimum((counts / cap) ** power, 1.0)
    return 0.5 * weight * jnp.square(error)


class Entries:
    """`entries(step)`: the co-occurrences of a step, in a new order each epoch.

    The order is `(a i + b) mod n` with a prime to n and near the golden section of it:
    any run of it is spread evenly over the matrix, and no permutation is ever stored.
    """

    def __init__(
        self,
        counts: Cooccurrences,
        *,
        chunk: int,
        block: int,
        seed: int = 0,
        process: tuple[int, int] = (0, 1),
    ):
        """Plans the steps; `process` is the index and number of those that share."""
        if block % process[1]:
            raise InputError(
                f"block is {block}; expected a multiple of {process[1]} processes"
            )
        self._counts, self._chunk, self._block = counts, chunk, block
        self._seed = seed
        share = block // process[1]
        self._own = slice(process[0] * share, (process[0] + 1) * share)
        self.num_chunks = max(1, math.ceil(len(counts) / chunk))

    def __call__(self, step: int) -> dict[str, np.ndarray]:
        """`rows`, `columns`, `counts`: (block, blocks), counts of 0 to fill up."""
        epoch, place = divmod(step, self.num_chunks)
        size = len(self._counts)
        rng = np.random.default_rng([self._seed, epoch])
        stride, offset = _coprime(size, rng), int(rng.integers(size))
        first = place * self._chunk
        order = np.arange(first, min(first + self._chunk, size), dtype=object)
        if size < 2**31:  # products fit 64 bits
            order = order.astype(np.int64)
        picked = ((order * stride + offset) % size).astype(np.int64)
        leaves = {
            "rows": self._laid_out(self._counts.rows, picked),
            "columns": self._laid_out(self._counts.columns, picked),
            "counts": self._laid_out(self._counts.values, picked),
        }
        return {name: leaf[self._own] for name, leaf in leaves.items()}

    def _laid_out(self, values: np.ndarray, picked: np.ndarray) -> np.ndarray:
        out = np.zeros(self._chunk, values.dtype)
        out[: len(picked)] = values[picked]
        return np.ascontiguousarray(out.reshape(-1, self._block).T)


def train_glove(
    corpus: Corpus,
    counts: Cooccurrences,
    settings: GloVe,
    workdir: epath.PathLike,
    *,
    mesh: jax.sharding.Mesh | None = None,
    mode: parallel.Mode = "jit",
    shard_rows: bool = False,
    name: str = "GloVe",
    progress: bool = True,
    **instruments: Any,
) -> WordTables:
    """Trains GloVe vectors, going on from the newest checkpoint in `workdir`.

    `train/loss` in `metrics.jsonl` is the mean cost of an entry.

    Args:
      corpus: whose words they are.
      counts: its co-occurrence matrix.
      settings: everything else that the vectors depend on.
      workdir: the run's folder.
      mesh: the devices; all of them if None.
      mode: "jit" or "pmap".
      shard_rows: spread the rows of the tables over the devices.
      name: shown before the progress bar.
      progress: show one.
      **instruments: `tensorboard` and `profile` of `train.fit`.
    """
    words = corpus.words
    if len(words) != counts.vocab:
        raise InputError(
            f"{counts.folder}: counts of {counts.vocab} words, where {corpus.folder} "
            f"has {len(words)}"
        )
    if len(counts) == 0:
        raise InputError(f"{counts.folder}: no two words stand near each other")
    mesh = parallel.make_mesh() if mesh is None else mesh
    entries = Entries(
        counts,
        chunk=settings.chunk,
        block=settings.block,
        seed=settings.seed,
        process=(jax.process_index(), jax.process_count()),
    )
    step = parallel.data_parallel(
        make_step(settings),
        mesh,
        mode=mode,
        shard_rows=("^params/", "^opt_state/") if shard_rows else (),
    )
    config = {
        "objective": "GloVe",
        **dataclasses.asdict(settings),
        "entries": len(counts),
        "vocabulary": len(words),
    }
    write_words(epath.Path(workdir), words)
    state = loop.fit(
        init_state(len(words), settings, mesh.size if shard_rows else 1),
        step,
        entries,
        settings.epochs * entries.num_chunks,
        workdir,
        save_every=entries.num_chunks,
        config=config,
        name=name,
        progress=progress,
        **instruments,
    )
    params = parallel.to_host(state.params)
    params = {table: rows[: len(words)] for table, rows in params.items()}
    return WordTables(words, np.asarray(corpus.counts), **params)


def init_state(vocab: int, settings: GloVe, multiple: int = 1) -> State:
    """Everything uniform in +-0.5 / (dim + 1), all sums of squares 1."""
    rows = vocab + -vocab % multiple
    key, root_key = jax.random.split(jax.random.key(settings.seed))
    shapes = {
        "input": (vocab, settings.dim),
        "input_bias": (vocab,),
        "output": (vocab, settings.dim),
        "output_bias": (vocab,),
    }

    def random(key, shape):
        table = np.asarray(jax.random.uniform(key, shape)) - np.float32(0.5)
        out = np.zeros((rows, *shape[1:]), np.float32)
        out[:vocab] = table / np.float32(settings.dim + 1)
        return out

    keys = jax.random.split(key, len(shapes))
    params = {
        name: random(keys[i], shape) for i, (name, shape) in enumerate(shapes.items())
    }
    return State(
        step=jnp.zeros([], jnp.int32),
        key=jax.random.key_data(root_key),
        params=params,
        opt_state=jax.tree.map(np.ones_like, params),
        frozen={},
    )


def make_step(settings: GloVe):
    """Builds `step(state, batch)`: an update for each block of entries."""

    def step(state: State, batch: dict[str, Any]) -> tuple[State, dict[str, jax.Array]]:
        def update(carry, block):
            tables, squares, total, met = carry
            ids = {
                "input": block["rows"],
                "input_bias": block["rows"],
                "output": block["columns"],
                "output_bias": block["columns"],
            }

            def cost(rows):
                each = weighted_squares(
                    rows, block["counts"], settings.cap, settings.power
                )
                return jnp.sum(each), jnp.sum(block["counts"] > 0, dtype=jnp.float32)

            tables, squares, (loss, count) = descent.adagrad(
                tables, squares, ids, cost, settings.learning_rate
            )
            return (tables, squares, total + loss, met + count), None

        zero = jnp.zeros([])
        blocks = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), batch)
        (tables, squares, total, met), _ = jax.lax.scan(
            update, (state.params, state.opt_state, zero, zero), blocks
        )
        metrics = {"loss": total / jnp.maximum(met, 1)}
        new = dataclasses.replace(
            state, step=state.step + 1, params=tables, opt_state=squares
        )
        return new, metrics

    return step


def _coprime(size: int, rng: np.random.Generator) -> int:
    golden = (math.sqrt(5) - 1) / 2
    stride = max(
        1, round(size * golden) + int(rng.integers(-size // 50 - 1, size // 50 + 1))
    )
    while math.gcd(stride, size) != 1:
        stride += 1
    return stride
