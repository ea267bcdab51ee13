"""An epoch of a BiLSTM-CRF on CoNLL-2003 beside torch with pytorch-crf.

    python scripts/benchmarks/tagger.py

Named entities from fixed vectors of words. Both start from the same parameters and take
the same batches, sentences of like length together; torch gets them packed, and cut to
their longest sentence. Losses of all steps of the first epoch are compared before times
are. Compiling is not counted: jaxemb takes a batch of every length once before.
"""

import functools
import json
import statistics

import numpy as np
from ratios import by_turns, row

from jaxemb.data import batching

DIM, HIDDEN = 100, 100
BATCH, BUCKETS, RATE = 32, 6, 1e-3
REPEATS = 3
TARGET = 1.5


def comparisons() -> list[dict]:
    """The ratio as `scripts/bench` shows it."""
    ours, theirs = _Ours(), _Theirs()
    if not np.allclose(ours.epoch(), theirs.epoch(), rtol=1e-2, atol=1e-2):
        raise AssertionError("torch learns otherwise")
    pairs = by_turns(ours.epoch, theirs.epoch, REPEATS)
    own, peer = (statistics.median(p[i] for p in pairs) for i in (0, 1))
    columns, _, _ = _corpus()
    note = f"{own:.1f} s (peer {peer:.1f} s), same losses"
    work = (
        f"BiLSTM-CRF, 2 × {HIDDEN}, an epoch of CoNLL-2003's {len(columns['words']):,} "
        f"sentences in batches of {BATCH}"
    )
    return [row(work, "torch and pytorch-crf", pairs, TARGET, note)]


@functools.cache
def _corpus() -> tuple[batching.Columns, int, np.ndarray]:
    """Sentences as numbers, how many tags there are, and vectors of the words."""
    from jaxemb.data import conll, sources, vocab

    part = sources.get("conll2003").part("train")
    sentences = conll.read_conll(part, conll.CONLL2003)
    words = vocab.Vocab.build(s["words"] for s in sentences)
    tags = sorted({tag for s in sentences for tag in s["entities"]})
    number = {tag: i for i, tag in enumerate(tags)}
    columns = {
        "words": batching.Ragged.of([words.encode(s["words"]) for s in sentences]),
        "tags": batching.Ragged.of(
            [[number[tag] for tag in s["entities"]] for s in sentences]
        ),
    }
    rng = np.random.default_rng(0)
    vectors = 0.4 * rng.normal(size=(len(words), DIM)).astype(np.float32)
    return columns, len(tags), vectors


@functools.cache
def _batches() -> list[batching.Batch]:
    columns, _, _ = _corpus()
    buckets = batching.length_buckets(columns["words"].lengths, BUCKETS)
    plan = batching.Shuffled(columns, BATCH, seed=0, buckets=buckets)
    return [plan(step) for step in range(plan.steps_per_epoch)]


@functools.cache
def _module():
    from jaxemb import nn

    _, classes, _ = _corpus()
    return nn.Tagger(classes, HIDDEN, head="crf", mlp=None)


@functools.cache
def _start() -> dict:
    """The parameters that both start from."""
    import jax
    import jax.numpy as jnp

    words = jnp.zeros((1, 1, DIM)), jnp.ones((1, 1), bool)
    return _module().init(jax.random.key(0), *words, deterministic=True)["params"]


class _Ours:
    def __init__(self):
        import jax
        import jax.numpy as jnp
        import optax

        from jaxemb import train

        module, table = _module(), jnp.asarray(_corpus()[2])

        def loss_fn(variables, batch, key):
            del key
            each = module.apply(
                variables, table[batch["words"]], batch["tags"], batch["words"] > 0,
                deterministic=True, method="loss",
            )  # fmt: skip
            return jnp.mean(each), {}

        tx = optax.adam(RATE)
        self._step = jax.jit(train.make_step(loss_fn, tx))
        self._state = train.State.create({"params": _start()}, tx, jax.random.key(0))
        for batch in {batch["words"].shape: batch for batch in _batches()}.values():
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
        import torchcrf

        torch.set_num_threads(2)
        self._rnn, start = torch.nn.utils.rnn, _start()
        _, classes, vectors = _corpus()
        self._table = torch.tensor(vectors)
        self._lstm = torch_copies.bilstm(start["encoder_0"])
        self._output = torch_copies.linear(start["output"])
        self._crf = torchcrf.CRF(classes, batch_first=True)
        with torch.no_grad():
            for scores in self._crf.parameters():
                scores.zero_()  # where ours start
        modules = self._lstm, self._output, self._crf
        self._adam = torch.optim.Adam(torch_copies.trained(*modules), RATE)
        self._batches = []
        for batch in _batches():
            longest = (batch["words"] > 0).sum(axis=1).max()
            words, tags = (batch[name][:, :longest] for name in ("words", "tags"))
            mask = torch.tensor(words > 0)
            self._batches.append(
                (torch.tensor(words).long(), torch.tensor(tags).long(), mask)
            )

    def epoch(self) -> list[float]:
        losses = []
        for words, tags, mask in self._batches:
            packed = self._rnn.pack_padded_sequence(
                self._table[words], mask.sum(dim=1), batch_first=True,
                enforce_sorted=False,
            )  # fmt: skip
            states, _ = self._rnn.pad_packed_sequence(
                self._lstm(packed)[0], batch_first=True
            )
            loss = -self._crf(self._output(states), tags, mask, reduction="mean")
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()
            losses.append(float(loss.detach()))
        return losses


if __name__ == "__main__":
    for found in comparisons():
        print(json.dumps(found, indent=1))
