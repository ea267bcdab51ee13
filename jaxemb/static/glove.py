"""GloVe: word vectors whose products are logarithms of co-occurrence counts."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath
from jaxtyping import Array, Bool, Float, Int

from jaxemb.data.cooccurrence import Cooccurrences
from jaxemb.data.corpus import Corpus
from jaxemb.errors import InputError
from jaxemb.static import descent, rows, running
from jaxemb.static.settings import check_at_least
from jaxemb.static.tables import WordTables
from jaxemb.train import parallel
from jaxemb.train.metrics import Mean
from jaxemb.train.state import State

_SCANNED = 1 << 20  # entries looked at at once for those held out
# What the largest count that float32 holds costs at a score of 0: no mean of costs is
# as large while anything is learnt.
_EXPLODED = 0.5 * math.log(np.finfo(np.float32).max) ** 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class GloVe:
    """Settings (Pennington et al. 2014), with the defaults of the authors' program.

    But for `dim`, which is 50 there; and the program updates by single entries.
    """

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
    held_out: int = 0
    """With N about every N-th pair of words, chosen by a hash of the two, is kept apart
    and its cost told after each epoch; 0, as in the program, trains on all."""
    seed: int = 0

    def __post_init__(self):
        for field in ("dim", "epochs", "block", "chunk"):
            check_at_least(1, self, field)
        check_at_least(0, self, "seed")
        if self.held_out < 0 or self.held_out == 1:
            raise InputError(
                f"GloVe: held_out is {self.held_out}; expected 0, or N of 2 or more to "
                "keep every N-th pair apart"
            )
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


def kept_apart(
    first: Int[np.ndarray, " entries"], second: Int[np.ndarray, " entries"], every: int
) -> Bool[np.ndarray, " entries"]:
    """Which entries are held out: the same for a pair of words in either order.

    Else half the pairs held out would be trained on in the other direction, where their
    count is the same.
    """
    low, high = (f(first, second).astype(np.uint64) for f in (np.minimum, np.maximum))
    mixed = low * np.uint64(0x9E3779B97F4A7C15) + high * np.uint64(0xD1342543DE82EF95)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(33)) % np.uint64(every) == 0


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
        held_out: int = 0,
        process: tuple[int, int] = (0, 1),
    ):
        """Plans the steps.

        Args:
          counts: the entries.
          chunk: how many make a step.
          block: how many make an update.
          seed: of the order.
          held_out: every so many-th is left out; 0 for none.
          process: index and number of the processes that share a block.
        """
        if block % process[1]:
            raise InputError(
                f"block is {block}; expected a multiple of {process[1]} processes"
            )
        self._counts, self._chunk, self._block = counts, chunk, block
        self._seed, self._held_out = seed, held_out
        share = block // process[1]
        self._own = slice(process[0] * share, (process[0] + 1) * share)
        self.num_chunks = max(1, math.ceil(len(counts) / chunk))

    def __call__(self, step: int) -> dict[str, np.ndarray]:
        """`rows`, `columns`, `counts`: (block, blocks), counts of 0 to fill up.

        So are the counts of entries that are held out.
        """
        epoch, place = divmod(step, self.num_chunks)
        size = len(self._counts)
        rng = np.random.default_rng([self._seed, epoch])
        stride, offset = _coprime(size, rng), int(rng.integers(size))
        first = place * self._chunk
        order = np.arange(first, min(first + self._chunk, size), dtype=object)
        if size < 2**31:  # products fit 64 bits
            order = order.astype(np.int64)
        picked = ((order * stride + offset) % size).astype(np.int64)
        leaves = _entries(self._counts, picked, self._chunk)
        if self._held_out:
            apart = kept_apart(leaves["rows"], leaves["columns"], self._held_out)
            leaves["counts"][apart] = 0
        return {name: self._own_blocks(leaf) for name, leaf in leaves.items()}

    def _own_blocks(self, flat: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(flat.reshape(-1, self._block).T[self._own])


class HeldOut:
    """The entries kept apart, and what they cost on average."""

    def __init__(self, counts: Cooccurrences, settings: GloVe):
        """Finds them, with memory for their numbers."""
        self._counts, self._chunk = counts, settings.chunk
        found = []
        for start in range(0, len(counts), _SCANNED):
            part = slice(start, start + _SCANNED)
            pair = np.asarray(counts.rows[part]), np.asarray(counts.columns[part])
            found.append(start + np.flatnonzero(kept_apart(*pair, settings.held_out)))
        self._places = np.concatenate(found)

        def cost(variables, batch):
            tables, counts = variables["params"], batch["counts"]
            read = descent.take(tables, _ids(batch["rows"], batch["columns"]))
            each = weighted_squares(read, counts, settings.cap, settings.power)
            return jnp.sum(each), jnp.sum(counts > 0, dtype=jnp.float32)

        self._cost = parallel.everywhere(cost)

    def __len__(self) -> int:
        return len(self._places)

    def loss(self, state: State) -> Mapping[str, float]:
        """The mean cost of an entry, as the loop writes it."""
        total = met = 0.0
        for start in range(0, len(self), self._chunk):
            picked = self._places[start : start + self._chunk]
            batch = _entries(self._counts, picked, self._chunk)
            one, count = jax.device_get(self._cost(state.variables, batch))
            total, met = total + float(one), met + float(count)
        return {"held_out/loss": total / met}


def train_glove(
    corpus: Corpus,
    counts: Cooccurrences,
    settings: GloVe,
    workdir: epath.PathLike,
    **options: Any,
) -> WordTables:
    """Trains GloVe vectors, going on from the newest checkpoint in `workdir`.

    `train/loss` in `metrics.jsonl` is the mean cost of an entry, as `weighted_squares`
    has it, before the update that it takes part in, over the steps since the line
    before; `held_out/loss`, after each epoch, that of the entries kept apart, if any.
    Speed is in entries a second, as the text itself is read only once, to count.

    Args:
      corpus: whose words they are.
      counts: its co-occurrence matrix.
      settings: everything else that the vectors depend on.
      workdir: the run's folder.
      **options: the fields of `RunOptions`.

    Raises:
      InputError: where corpus and counts do not belong together, or `workdir` holds
        another run.
      Diverged: where the loss explodes.
    """
    words = corpus.words
    if len(words) != counts.vocab:
        raise InputError(
            f"{counts.folder}: counts of {counts.vocab} words, where {corpus.folder} "
            f"has {len(words)}"
        )
    if len(counts) == 0:
        raise InputError(f"{counts.folder}: no two words stand near each other")
    entries = Entries(
        counts,
        chunk=settings.chunk,
        block=settings.block,
        seed=settings.seed,
        held_out=settings.held_out,
        process=(jax.process_index(), jax.process_count()),
    )
    params = running.run(
        functools.partial(init_state, len(words), settings),
        make_step(settings),
        entries,
        workdir,
        running.RunOptions(**{"name": "GloVe", **options}),
        epochs=settings.epochs,
        steps_an_epoch=entries.num_chunks,
        words=words,
        config=_config(corpus, counts, settings),
        learning_rate=settings.learning_rate,
        evaluate=_evaluate(counts, settings),
    )
    params = {name: table[: len(words)] for name, table in params.items()}
    return WordTables(
        words,
        np.asarray(corpus.counts),
        params["input"],
        params["output"],
        params["input_bias"],
        params["output_bias"],
    )


def _config(corpus: Corpus, counts: Cooccurrences, settings: GloVe) -> dict[str, Any]:
    """Everything that the vectors depend on, as JSON."""
    return {
        "objective": "GloVe",
        **dataclasses.asdict(settings),
        "counts": {
            "entries": len(counts),
            "window": counts.window,
            "weighting": counts.weighting,
            "symmetric": counts.symmetric,
            "sha256": counts.sha256,
        },
        "corpus": running.corpus_identity(corpus),
    }


def _evaluate(
    counts: Cooccurrences, settings: GloVe
) -> Callable[[State], Mapping[str, float]] | None:
    if not settings.held_out:
        return None
    held_out = HeldOut(counts, settings)
    if len(held_out) == len(counts):
        raise InputError(
            f"{counts.folder}: held_out={settings.held_out} keeps all {len(counts)} "
            "entries apart"
        )
    return held_out.loss if len(held_out) else None


def init_state(vocab: int, settings: GloVe) -> State:
    """Everything uniform in +-0.5 / (dim + 1), all sums of squares 1."""
    key, root_key = jax.random.split(jax.random.key(settings.seed))
    shapes = {
        "input": (settings.dim,),
        "input_bias": (),
        "output": (settings.dim,),
        "output_bias": (),
    }
    keys = jax.random.split(key, len(shapes))
    params = {
        name: rows.uniform(keys[i], vocab, shape, settings.dim + 1.0)
        for i, (name, shape) in enumerate(shapes.items())
    }
    return State(
        step=jnp.zeros([], jnp.int32),
        key=jax.random.key_data(root_key),
        params=params,
        opt_state=jax.tree.map(jnp.ones_like, params),
        frozen={},
    )


def make_step(settings: GloVe):
    """Builds `step(state, batch)`: an update for each block of entries.

    Its metrics are `loss`, as `train_glove` tells it, infinite where it is finite but
    beyond all learning, and `entries`, how many it met.
    """

    def step(state: State, batch: dict[str, Any]) -> tuple[State, dict[str, Any]]:
        def update(carry, block):
            tables, squares, total, met = carry
            ids = _ids(block["rows"], block["columns"])

            def cost(read):
                each = weighted_squares(
                    read, block["counts"], settings.cap, settings.power
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
        cost = descent.unless_exploded(total, met, _EXPLODED)
        metrics = {"loss": Mean(cost, met), "entries": met}
        new = dataclasses.replace(
            state, step=state.step + 1, params=tables, opt_state=squares
        )
        return new, metrics

    return step


def _ids(first: jax.Array, second: jax.Array) -> dict[str, jax.Array]:
    """The rows that entries read, by table."""
    return {
        "input": first,
        "input_bias": first,
        "output": second,
        "output_bias": second,
    }


def _entries(
    counts: Cooccurrences, picked: np.ndarray, size: int
) -> dict[str, np.ndarray]:
    """The entries picked; counts of 0 fill up to `size`."""

    def leaf(values: np.ndarray) -> np.ndarray:
        out = np.zeros(size, values.dtype)
        out[: len(picked)] = values[picked]
        return out

    return {
        "rows": leaf(counts.rows),
        "columns": leaf(counts.columns),
        "counts": leaf(counts.values),
    }


def _coprime(size: int, rng: np.random.Generator) -> int:
    golden = (math.sqrt(5) - 1) / 2
    stride = max(
        1, round(size * golden) + int(rng.integers(-size // 50 - 1, size // 50 + 1))
    )
    while math.gcd(stride, size) != 1:
        stride += 1
    return stride
