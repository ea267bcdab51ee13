"""Training a character BiLSTM beside the same model in torch: words a second.

    python scripts/benchmarks/char_bilstm.py

A word's vector is composed from its characters and drawn to a teacher's (D2, Adam, as
in experiments/subword_reconstruction). Both start from the same parameters and take the
same batches, words of like length together; losses are compared before times are.
Compiling is not counted: jaxemb takes the batches once before.
"""

import functools
import json
import statistics

import numpy as np
from ratios import by_turns, row

from jaxemb.data import batching

WORDS, CHARACTERS, DIM, HIDDEN = 8192, 60, 100, 100
BATCH, BUCKETS, RATE = 256, 6, 1e-3
REPEATS = 5
TARGET = 0.9


def comparisons() -> list[dict]:
    """The ratio as `scripts/bench` shows it."""
    ours, theirs = _Ours(), _Theirs()
    if not np.allclose(ours.epoch(), theirs.epoch(), rtol=1e-3):
        raise AssertionError("torch learns otherwise")
    pairs = by_turns(ours.epoch, theirs.epoch, REPEATS)
    own, peer = (WORDS / statistics.median(p[i] for p in pairs) for i in (0, 1))
    note = f"{own:,.0f} words/s (peer {peer:,.0f}), same losses"
    work = f"character BiLSTM, {HIDDEN} wide, {WORDS} words in batches of {BATCH}"
    return [row(work, "torch", pairs, TARGET, note)]


@functools.cache
def _batches() -> list[batching.Batch]:
    """An epoch; lengths are spread as those of frequent English words are."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.normal(7.3, 2.6, WORDS).round(), 1, 20).astype(int)
    words = [rng.integers(1, CHARACTERS, n) for n in lengths]
    teacher = 0.4 * rng.normal(size=(WORDS, DIM)).astype(np.float32)
    columns = {"characters": batching.Ragged.of(words), "teacher": teacher}
    buckets = batching.length_buckets(lengths, BUCKETS, multiple=1)
    plan = batching.Shuffled(columns, BATCH, seed=0, buckets=buckets)
    return [plan(step) for step in range(plan.steps_per_epoch)]


@functools.cache
def _module():
    from jaxemb import nn

    return nn.CharBiLSTM(CHARACTERS, DIM, HIDDEN, head="relu")


@functools.cache
def _start() -> dict:
    """The parameters that both start from."""
    import jax

    words = jax.numpy.asarray(_batches()[0]["characters"])
    return _module().init(jax.random.key(0), words, deterministic=True)["params"]


class _Ours:
    def __init__(self):
        import jax
        import jax.numpy as jnp
        import optax

        from jaxemb import train
        from jaxemb.losses import distances

        module = _module()

        def loss_fn(variables, batch, key):
            del key
            vectors = module.apply(variables, batch["characters"], deterministic=True)
            return jnp.mean(distances.d2(batch["teacher"], vectors)), {}

        tx = optax.adam(RATE)
        self._step = jax.jit(train.make_step(loss_fn, tx))
        self._state = train.State.create({"params": _start()}, tx, jax.random.key(0))
        for batch in _batches():
            self._step(self._state, batch)

    def epoch(self) -> list[float]:
        losses = []
        for batch in _batches():
            self._state, metrics = self._step(self._state, batch)
            losses.append(metrics["loss"])
        return [float(loss) for loss in losses]


class _Theirs:
    def __init__(self):
        import torch
        import torch_copies

        torch.set_num_threads(2)
        self._torch = torch
        params = _start()
        self._table = torch_copies.embedding(params["characters"]["embedding"])
        self._lstm = torch_copies.bilstm(params["lstm"])
        self._project = torch_copies.linear(params["project"])
        trained = torch_copies.trained(self._table, self._lstm, self._project)
        self._adam = torch.optim.Adam(trained, RATE)
        self._batches = [
            (
                torch.tensor(batch["characters"]),
                torch.tensor((batch["characters"] > 0).sum(axis=1)),
                torch.tensor(batch["teacher"]),
            )
            for batch in _batches()
        ]

    def epoch(self) -> list[float]:
        torch = self._torch
        losses = []
        for characters, lengths, teacher in self._batches:
            packed = torch.nn.utils.rnn.pack_padded_sequence(
                self._table(characters), lengths, batch_first=True, enforce_sorted=False
            )
            _, (last, _) = self._lstm(packed)
            vectors = torch.relu(self._project(torch.cat([last[0], last[1]], dim=1)))
            loss = torch.square(teacher - vectors).sum(dim=1).mean()
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()
            losses.append(float(loss.detach()))
        return losses


if __name__ == "__main__":
    for found in comparisons():
        print(json.dumps(found, indent=1))
