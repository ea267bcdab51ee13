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
from ratios import by_turns, comparison

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
    return [comparison(work, "torch", pairs, TARGET, note)]


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

        torch.set_num_threads(2)
        self._torch = torch
        params = _start()
        self._table = torch.nn.Embedding(CHARACTERS, HIDDEN)
        self._lstm = torch.nn.LSTM(HIDDEN, HIDDEN, batch_first=True, bidirectional=True)
        self._project = torch.nn.Linear(2 * HIDDEN, DIM)
        copies = {
            self._table.weight: params["characters"]["embedding"],
            self._project.weight: params["project"]["kernel"].T,
            self._project.bias: params["project"]["bias"],
        }
        for direction, suffix in (("forward", "l0"), ("backward", "l0_reverse")):
            cell = params["lstm"][direction]
            own = {
                "weight_ih": cell["input"]["kernel"].T,
                "weight_hh": cell["recurrent"].T,
                "bias_ih": cell["input"]["bias"],
                "bias_hh": np.zeros(4 * HIDDEN, np.float32),
            }
            for name, value in own.items():
                copies[getattr(self._lstm, f"{name}_{suffix}")] = value
        # The second bias of torch's LSTM is one too many: it stays at 0.
        for name, parameter in self._lstm.named_parameters():
            parameter.requires_grad_(not name.startswith("bias_hh"))
        with torch.no_grad():
            for parameter, value in copies.items():
                parameter.copy_(torch.tensor(np.array(value)))
        modules = (self._table, self._lstm, self._project)
        trained = [p for m in modules for p in m.parameters() if p.requires_grad]
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
    for row in comparisons():
        print(json.dumps(row, indent=1))
