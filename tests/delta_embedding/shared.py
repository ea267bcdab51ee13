"""What the tests of this experiment share."""

import jax
import numpy as np

from experiments.common import cli
from experiments.delta_embedding import config as presets
from experiments.delta_embedding import main
from jaxemb import train
from jaxemb.data import vocab

VOCAB, DIM, BATCH = 40, 8, 16

WORDS = vocab.Vocab((vocab.PAD, vocab.UNK, *(f"w{i}" for i in range(2, VOCAB))))


def batch(number, size=BATCH, kind="cnn"):
    """Of every kind of task: the columns that one does not know do no harm."""
    rng = np.random.default_rng(number)
    tokens = rng.integers(1, VOCAB, (size, 12)).astype(np.int32)
    tokens *= np.arange(12) < rng.integers(3, 12, (size, 1))  # right padding
    columns = {"tokens": tokens, "labels": rng.integers(0, 2, size).astype(np.int32)}
    if kind in ("cnn", "lstm"):
        return columns
    names = ("premise", "hypothesis") if kind == "esim" else ("context", "question")
    ends = {end: rng.integers(0, 3, size).astype(np.int32) for end in ("start", "end")}
    return {
        "labels": columns["labels"],
        **ends,
        names[0]: tokens,
        names[1]: tokens[:, :6],
    }


def run(step, state, mesh, mode="jit", steps=10, kind="cnn"):
    step = train.data_parallel(step, mesh, mode=mode)
    state = step.place(state)
    for number in range(steps):
        state, metrics = step(state, batch(number, kind=kind))
        jax.block_until_ready(metrics)
    return jax.device_get((state, metrics))


def smoke(preset, workdir, *more, arms=("delta-1e-4",)):
    """Few arms, in batches that one device takes: compiling is what costs here."""
    arguments = [preset, "--workdir", str(workdir), "--no-progress"]
    arguments += ["--arms", *arms, "--batch-size", "25", *more]
    return main.run(cli.parse("delta_embedding", presets.PRESETS, arguments))


def of(written, metric):
    return {r["name"]: r["measured"] for r in written["rows"] if metric in r["metric"]}
