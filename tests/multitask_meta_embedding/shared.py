"""What the tests of this experiment share."""

import numpy as np

from experiments.multitask_meta_embedding import data, training
from experiments.multitask_meta_embedding.config import MultiTask
from experiments.multitask_meta_embedding.training import UNLABELLED, Run
from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import holdout
from jaxemb.spaces.ensemble import EmbeddingEnsemble

SEEDS = 4

SETTINGS = MultiTask(
    hidden=(16,),
    head=(12, 6),
    weights=(0.1,),
    epochs=12,
    batch_size=32,
    learning_rate=1e-2,
    dropout=0.0,
    controls=(),
)


def planted(asked, noise, pairs=800):
    """Three sources of 8 hidden numbers a word; people compare the first `asked`."""
    rng = np.random.default_rng(0)
    words = tuple(f"w{i}" for i in range(150))
    meanings = rng.normal(size=(150, asked))
    latent = np.hstack([meanings, 1.5 * rng.normal(size=(150, 8 - asked))])
    tables = {}
    for name in ("one", "two", "three"):
        rows = latent @ rng.normal(size=(8, 10)) + noise * rng.normal(size=(150, 10))
        tables[name] = WordVectors(words, rows.astype(np.float32))
    unit = meanings / np.linalg.norm(meanings, axis=1, keepdims=True)
    lists = {}
    for name in "ABC":
        chosen = rng.integers(0, 150, size=(pairs, 2))
        lists[name] = [
            WordPair(words[a], words[b], float(unit[a] @ unit[b])) for a, b in chosen
        ]
    ensemble = EmbeddingEnsemble.of(tables, words)
    totals = {name: pairs for name in lists}
    return data.World(ensemble, holdout.Pool.of_lists(lists), totals, 150, ())


def trained(world, runs, labels, settings=SETTINGS):
    holdouts = holdout.leave_one_out(world.pool, "pairs")
    return training.multitask(
        world,
        settings,
        "cosine",
        "glorot",
        runs,
        np.stack([holdouts[run.holdout].train for run in runs]),
        np.stack([holdouts[run.holdout].dev for run in runs]),
        labels,
        keep_encoders=True,
        name="test",
    )


def three_ways(world, supervision, weight, settings):
    runs = [Run(supervision, 0, seed, weight) for seed in range(SEEDS)] * 3
    shuffled = [world.pool.shuffled(seed) for seed in range(SEEDS)]
    own = [world.pool.scores] * SEEDS
    last = slice(2 * SEEDS, None)
    runs[last] = [run._replace(supervision=UNLABELLED) for run in runs[last]]
    return trained(world, runs, np.stack(own + shuffled + own), settings)
