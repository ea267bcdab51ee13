"""An epoch of Kim's CNN on rt-polarity beside the same model in torch.

    python scripts/benchmarks/kim_cnn.py

Widths 3, 4 and 5, 100 maps each, fixed 300-d vectors, batches of 50, Adam. Both start
from the same parameters and take the same batches, sentences of like length together;
losses are compared before times are. Compiling is not counted: jaxemb takes a batch of
every length once before.
"""

import functools
import json
import statistics

import numpy as np
from ratios import by_turns, row

from jaxemb.data import batching

DIM, MAPS, WIDTHS, CLASSES = 300, 100, (3, 4, 5), 2
BATCH, BUCKETS, RATE = 50, 4, 1e-3
REPEATS = 3
SAME = 10  # steps whose losses are compared one by one
TARGET = 1.0


def comparisons() -> list[dict]:
    """The ratio as `scripts/bench` shows it."""
    ours, theirs = _Ours(), _Theirs()
    mine, other = np.array(ours.epoch()), np.array(theirs.epoch())
    # Adam amplifies rounding, so that later losses are alike on average only.
    same = np.allclose(mine[:SAME], other[:SAME], rtol=1e-4)
    if not (same and np.isclose(mine.mean(), other.mean(), rtol=0.02)):
        raise AssertionError("torch learns otherwise")
    pairs = by_turns(ours.epoch, theirs.epoch, REPEATS)
    own, peer = (statistics.median(p[i] for p in pairs) for i in (0, 1))
    sentences = len(_corpus()[0]["words"])
    note = f"{own:.1f} s (peer {peer:.1f} s), same losses"
    work = f"Kim's CNN, an epoch of rt-polarity's {sentences:,} sentences"
    return [row(work, "torch", pairs, TARGET, note)]


@functools.cache
def _corpus() -> tuple[batching.Columns, np.ndarray]:
    """Sentences as numbers, and vectors of the words."""
    from jaxemb.data import sources, text, vocab

    texts = text.read_rt_polarity(sources.get("rt-polarity-8530"))
    words = vocab.Vocab.build(t.tokens for t in texts)
    columns = {
        "words": batching.Ragged.of([words.encode(t.tokens) for t in texts]),
        "labels": np.array([t.label for t in texts], np.int32),
    }
    rng = np.random.default_rng(0)
    vectors = 0.4 * rng.normal(size=(len(words), DIM)).astype(np.float32)
    vectors[0] = 0  # padding
    return columns, vectors


@functools.cache
def _batches() -> list[batching.Batch]:
    columns, _ = _corpus()
    buckets = batching.length_buckets(columns["words"].lengths, BUCKETS)
    plan = batching.Shuffled(columns, BATCH, seed=0, buckets=buckets)
    return [plan(step) for step in range(plan.steps_per_epoch)]


@functools.cache
def _module():
    from jaxemb import nn

    return nn.KimCNN(CLASSES, WIDTHS, MAPS)


@functools.cache
def _start() -> dict:
    """The parameters that both start from."""
    import jax
    import jax.numpy as jnp

    words = jnp.zeros((1, 8, DIM)), jnp.ones((1, 8), bool)
    return _module().init(jax.random.key(0), *words, deterministic=True)["params"]


class _Ours:
    def __init__(self):
        import jax
        import jax.numpy as jnp
        import optax

        from jaxemb import losses, train

        module, table = _module(), jnp.asarray(_corpus()[1])

        def loss_fn(variables, batch, key):
            del key
            words = batch["words"]
            logits = module.apply(
                variables, table[words], words > 0, deterministic=True
            )
            return losses.softmax_cross_entropy(logits, batch["labels"]).mean(), {}

        tx = optax.adam(RATE)
        self._step = jax.jit(train.make_step(loss_fn, tx))
        self._state = train.State.create({"params": _start()}, tx, jax.random.key(0))
        for batch in {batch["words"].shape: batch for batch in _batches()}.values():
            self._step(self._state, batch)

    def epoch(self) -> list[float]:
        found = []
        for batch in _batches():
            self._state, metrics = self._step(self._state, batch)
            found.append(metrics["loss"])
        return [float(loss) for loss in found]


class _Theirs:
    """`Conv1d` over the batch cut to its longest sentence, and zeros at both ends."""

    def __init__(self):
        import torch
        import torch_copies

        torch.set_num_threads(2)
        self._torch, start = torch, _start()
        self._table = torch.tensor(_corpus()[1])
        self._filters = []
        for width in WIDTHS:
            own = start[f"width_{width}"]
            conv = torch.nn.Conv1d(DIM, MAPS, width, padding=width - 1)
            kernel = np.asarray(own["kernel"]).reshape(width, DIM, MAPS)
            with torch.no_grad():
                conv.weight.copy_(torch.tensor(kernel.transpose(2, 1, 0).copy()))
                conv.bias.copy_(torch.tensor(np.array(own["bias"])))
            self._filters.append(conv)
        self._output = torch_copies.linear(start["output"])
        trained = torch_copies.trained(*self._filters, self._output)
        self._adam = torch.optim.Adam(trained, RATE)
        self._batches = []
        for batch in _batches():
            lengths = (batch["words"] > 0).sum(axis=1)
            words = torch.tensor(batch["words"][:, : lengths.max()]).long()
            real = []  # which windows have a word: they alone count
            for more in (width - 1 for width in WIDTHS):
                windows = np.arange(lengths.max() + more)
                real.append(torch.tensor(windows < lengths[:, np.newaxis] + more))
            labels = torch.tensor(batch["labels"]).long()
            self._batches.append((words, real, labels))

    def epoch(self) -> list[float]:
        torch, losses = self._torch, []
        for words, real, labels in self._batches:
            vectors = self._table[words].transpose(1, 2)
            pooled = []
            for conv, windows in zip(self._filters, real, strict=True):
                maps = conv(vectors).masked_fill(~windows[:, None], -torch.inf)
                pooled.append(torch.relu(maps.amax(dim=2)))
            logits = self._output(torch.cat(pooled, dim=1))
            loss = torch.nn.functional.cross_entropy(logits, labels)
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()
            losses.append(float(loss.detach()))
        return losses


if __name__ == "__main__":
    for found in comparisons():
        print(json.dumps(found, indent=1))
