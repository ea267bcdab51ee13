"""Many small models at once: seeds, hold-outs and supervisions are one axis of arrays.

Each loss of reconstruction has a program of its own. On accelerators the models of a
program are trained side by side, on CPU in turn (`train.over_models`).
"""

import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import stats

from experiments.multitask_meta_embedding import data, model
from experiments.multitask_meta_embedding.config import Autoencoder, MultiTask
from jaxemb import losses, numerics, terminal, train
from jaxemb import nn as jnn
from jaxemb.data import files
from jaxemb.eval import pair_scores
from jaxemb.nn import meta
from jaxemb.spaces.ensemble import EmbeddingEnsemble
from jaxemb.train import results

KINDS = "OLS", "NLL", "Brier"
UNLABELLED = "none"  # a run whose task is no part of its loss
_L2 = 1e-6  # of 1TON's vectors and projections


class Run(NamedTuple):
    """One of many: what it is supervised by, how, and its seed."""

    supervision: str
    holdout: int
    """Which list is held out."""
    seed: int
    weight: float
    """λ."""


class _Fixed(NamedTuple):
    """What all models read."""

    x: Any  # words dims
    known: Any  # words source
    unit: Any  # the loss where nothing is reconstructed
    pairs: Any  # pairs 2: rows of both words

    def words(self, rows):
        """Sources, and which of them are known."""
        return self.x[rows], self.known[rows]


def kept(
    folder: Path, described: Mapping[str, Any], compute: Callable[[], dict]
) -> tuple[dict[str, np.ndarray], Path]:
    """Arrays that `compute` gives, from the file they were written to if they were.

    The file is named by what decides the numbers, so that runs share it.

    Returns:
      The arrays, and where `results.origin` finds by whom they were computed.
    """
    text = json.dumps(described, sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    path, recorded = folder / f"{name}.npz", folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with results.recorded(recorded):
            arrays = compute()
        with files.write_atomically(path) as part, part.open("wb") as stream:
            np.savez(stream, **arrays)
        path.with_suffix(".json").write_text(text + "\n")
    with np.load(path) as found:
        return dict(found), recorded


def unit_of(
    ensemble: EmbeddingEnsemble, loss: losses.Reconstruction, parts: Sequence[int]
) -> jax.Array:
    """The mean loss of an output of zeros, over which losses are told.

    L1 itself is ten thousand times the divergence of softmaxes, so that one weight
    would mean something else to each.
    """
    target = jnp.asarray(ensemble.concatenate(), jnp.float32)
    counted = meta.coordinates(jnp.asarray(ensemble.known), ensemble.widths)
    nothing = jnp.zeros(len(target))
    coded = meta.Coded(None, jnp.zeros_like(target), target, counted, nothing)
    return jnp.mean(meta.reconstruction_loss(coded, loss, parts))


# ------------------------------------------------------------------------- supervision


def labels_of(world: data.World, shuffled: bool, seed: int) -> np.ndarray:
    """What people said, or the same dealt anew."""
    return world.pool.shuffled(seed) if shuffled else world.pool.scores


def multitask(
    world: data.World,
    settings: MultiTask,
    loss: losses.Reconstruction,
    init: str,
    runs: Sequence[Run],
    supervised: np.ndarray,
    dev: np.ndarray,
    labels: np.ndarray,
    *,
    keep_encoders: bool,
    name: str,
) -> dict[str, np.ndarray]:
    """Trains runs side by side; all see the same pairs in the same order.

    Every pair of every list is reconstructed, those held out too; a run is supervised
    by its own pairs only. Runs that differ in nothing but the pairs that choose their
    epoch are one model.

    Args:
      world: words and pairs.
      settings: of all runs.
      loss: of reconstruction.
      init: how weights begin.
      runs: what to train.
      supervised: (runs, pairs), by which pairs.
      dev: (runs, pairs), which choose the epoch.
      labels: (runs, pairs).
      keep_encoders: whether to return them.
      name: for progress.

    Returns:
      `cosines` (runs, pairs) of the shared layer at the best epoch, `dev` (runs,
      epochs), Spearman's rho on pairs held out, and `encoders` (runs, numbers) if kept.
      Both are nan where a model has diverged: such an epoch is never the best.
    """
    ensemble = world.ensemble
    module = model.SimilarityModel(ensemble.widths, settings, init)
    # An argument of all programs: as a constant the compiler would work on it.
    fixed = fixed_of(world, loss)
    loss_of = objective(module, loss)
    batches = -(-len(fixed.pairs) // min(settings.batch_size, len(fixed.pairs)))
    tx = _optimizer(settings, settings.epochs * batches)
    models, of_run = _models(runs, supervised, labels)
    apart = [runs[i] for i in models]
    choice = np.array([[run.supervision == kind for kind in KINDS] for run in apart])
    arrays = {
        "choice": jnp.asarray(choice, jnp.float32),
        "weight": jnp.asarray([run.weight for run in apart], jnp.float32),
        "supervised": jnp.asarray(supervised[models]),
        "labels": jnp.asarray(labels[models], jnp.float32),
    }
    keys = jax.vmap(jax.random.key)(jnp.asarray([run.seed for run in apart]))

    def start(key, fixed):
        example = fixed.words(fixed.pairs[:2])
        params = module.init(key, *example, deterministic=True)["params"]
        return params, tx.init(params)

    def epoch(params, opt_state, one, key, batches, fixed):
        def step(carry, numbered):
            params, opt_state = carry
            number, rows = numbered
            here = jax.random.fold_in(key, number)
            gradient = jax.grad(loss_of)(params, one, rows, here, fixed)
            updates, opt_state = tx.update(gradient, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), None

        numbers = jnp.arange(len(batches))
        return jax.lax.scan(step, (params, opt_state), (numbers, batches))[0]

    encoder = model.encoder_of(settings, ensemble.widths)

    @jax.jit
    @functools.partial(train.over_models, in_axes=(0, None))
    def cosines_of(params, fixed):
        coded = encoder.apply(
            {"params": params["meta"]}, fixed.x, fixed.known, deterministic=True
        )
        first, second = (
            numerics.safe_unit(coded.code)[fixed.pairs[:, side]] for side in (0, 1)
        )
        return jnp.sum(first * second, axis=1)

    several = jax.jit(
        train.over_models(epoch, (0, 0, 0, 0, None, None)), donate_argnums=(0, 1)
    )
    params, opt_state = jax.jit(jax.vmap(start, in_axes=(0, None)))(keys, fixed)
    fold = jax.jit(jax.vmap(jax.random.fold_in, in_axes=(0, None)))
    best = np.full((len(runs), len(fixed.pairs)), np.nan, np.float32)
    highest = np.full(len(runs), -np.inf)
    history = np.zeros((len(runs), settings.epochs))
    encoders = None
    for number in range(settings.epochs):
        batches = _epoch_rows(len(fixed.pairs), settings.batch_size, number)
        params, opt_state = several(
            params, opt_state, arrays, fold(keys, number + 1), batches, fixed
        )
        cosines = np.asarray(cosines_of(params, fixed))[of_run]
        scores = [
            _rho(c[d], y[d]) for c, d, y in zip(cosines, dev, labels, strict=True)
        ]
        # Where nothing is held out, or nothing can be ranked, the last epoch counts.
        sound = np.isfinite(cosines).all(axis=1)
        scores = np.where(np.isnan(scores), number * 1e-6, scores)
        history[:, number] = np.where(sound, scores, np.nan)
        better = sound & (scores > highest)
        highest = np.where(better, scores, highest)
        best[better] = cosines[better]
        if keep_encoders:
            flat = _flat_encoders(params, settings)[of_run]
            encoders = flat if encoders is None else encoders
            encoders[better] = flat[better]
    terminal.say(f"{name}: {len(models)} models, dev ρ {np.mean(highest):.3f}")
    arrays = {"cosines": best, "dev": history}
    return arrays | ({} if encoders is None else {"encoders": encoders})


def fixed_of(world: data.World, loss: losses.Reconstruction) -> _Fixed:
    """What all models with one loss of reconstruction read."""
    ensemble = world.ensemble
    return _Fixed(
        jnp.asarray(ensemble.concatenate(), jnp.float32),
        jnp.asarray(ensemble.known),
        unit_of(ensemble, loss, (sum(ensemble.widths),)),
        jnp.asarray(world.pool.rows(ensemble.words)),
    )


def objective(
    module: model.SimilarityModel, loss: losses.Reconstruction
) -> Callable[..., jax.Array]:
    """`L_s + λ L_r` of a batch of pairs, as a function of what one model has.

    Its arguments: parameters; `choice` (of `KINDS`; without any there is no L_s),
    `weight` (λ), `supervised` and `labels` of every pair; the batch's rows; the key of
    dropout; what all models read.
    """
    parts = (sum(module.widths),)

    def loss_of(params, one, rows, key, fixed):
        coded, compared = module.apply(
            {"params": params},
            *fixed.words(fixed.pairs[rows]),
            deterministic=False,
            rngs={"dropout": key},
        )
        each = meta.reconstruction_loss(coded, loss, parts) / fixed.unit  # batch 2
        auxiliary = one["weight"] / 2 * jnp.mean(jnp.sum(each, axis=1))
        y, counts = one["labels"][rows], one["supervised"][rows]
        predicted = losses.exp_neg_distance(compared.distance)
        three = jnp.stack(
            [
                losses.brier(compared.cosine, y),
                losses.bce_from_distance(compared.distance, y),
                losses.brier(predicted, y),
            ]
        )
        mean = jnp.sum(jnp.where(counts[None], three, 0), axis=1)
        mean /= jnp.maximum(jnp.sum(counts), 1)
        return auxiliary + jnp.sum(one["choice"] * mean)

    return loss_of


def _models(
    runs: Sequence[Run], supervised: np.ndarray, labels: np.ndarray
) -> tuple[list[int], np.ndarray]:
    """The first run of each model, and which of these models each run is."""
    firsts: dict[tuple, int] = {}
    of_run = []
    for run, pairs, y in zip(runs, supervised, labels, strict=True):
        seen = () if run.supervision == UNLABELLED else (pairs.tobytes(), y.tobytes())
        one = (run.supervision, run.seed, run.weight, *seen)
        of_run.append(firsts.setdefault(one, len(firsts)))
    _, models = np.unique(of_run, return_index=True)
    return models.tolist(), np.array(of_run)


def _optimizer(settings: MultiTask, steps: int) -> optax.GradientTransformation:
    if settings.optimizer == "adam":
        return optax.adam(optax.linear_schedule(settings.learning_rate, 0.0, steps))
    return optax.sgd(settings.learning_rate)


def _rho(a: np.ndarray, b: np.ndarray) -> float:
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan
    return float(stats.spearmanr(a, b).statistic)


def _epoch_rows(examples: int, batch_size: int, epoch: int) -> np.ndarray:
    """Rows of an epoch's batches, all full: the last is filled from the first."""
    batch_size = min(batch_size, examples)
    order = np.random.default_rng([0, epoch]).permutation(examples)
    count = -(-examples // batch_size)
    return np.resize(order, (count, batch_size))


def _flat_encoders(params, settings: MultiTask) -> np.ndarray:
    layers = [params["meta"][f"encode_{i}"] for i in range(len(settings.hidden))]
    leaves = [x for one in layers for x in jax.tree.leaves(one)]
    with np.errstate(over="ignore"):  # of models that diverge, which nobody reads
        flat = [np.asarray(x, np.float16) for x in leaves]
    return np.concatenate([x.reshape(len(x), -1) for x in flat], axis=1)


def encode(
    flat: np.ndarray, settings: MultiTask, ensemble: EmbeddingEnsemble
) -> np.ndarray:
    """The meta-embedding of words by encoders that `multitask` kept."""
    module = model.encoder_of(settings, ensemble.widths)
    return _encode(
        module,
        jnp.asarray(flat, jnp.float32),
        jnp.asarray(ensemble.concatenate(), jnp.float32),
        jnp.asarray(ensemble.known),
    )


@functools.partial(jax.jit, static_argnums=0)
def _encode(module, flat, x, known):
    shapes = jax.eval_shape(
        lambda: module.init(jax.random.key(0), x, known, deterministic=True)
    )["params"]
    params = jax.tree.map(lambda s: jnp.zeros(s.shape), shapes)
    used = 0
    for i in range(len(module.hidden)):
        leaves, tree = jax.tree.flatten(shapes[f"encode_{i}"])
        filled = []
        for leaf in leaves:
            size = int(np.prod(leaf.shape))
            filled.append(flat[used : used + size].reshape(leaf.shape))
            used += size
        params[f"encode_{i}"] = jax.tree.unflatten(tree, filled)
    return module.apply({"params": params}, x, known, deterministic=True).code


# --------------------------------------------------------------------- self-supervision


def self_supervised(
    ensemble: EmbeddingEnsemble,
    module: Any,
    loss: losses.Reconstruction,
    seeds: int,
    settings: Autoencoder,
) -> list[tuple[dict, np.ndarray]]:
    """Trains one module from several seeds side by side, on reconstruction alone.

    The loss is over what it is where the output is 0, plus `settings.agreement` times
    how far the codes of sources lie apart.

    Returns:
      For each seed its parameters and the meta-embedding of every word.
    """
    fixed = _Fixed(
        jnp.asarray(ensemble.concatenate(), jnp.float32),
        jnp.asarray(ensemble.known),
        unit_of(ensemble, loss, module.parts),
        None,
    )
    free = isinstance(module, jnn.OneToN)
    if free:
        epochs, batch_size = settings.free_steps, len(ensemble)
        rate = optax.linear_schedule(settings.free_learning_rate, 0.0, epochs)
    else:
        epochs, batch_size = settings.epochs, settings.batch_size
        rate = settings.learning_rate
    tx = optax.adam(rate)

    def apply(params, rows, fixed, deterministic, key=None):
        inputs = fixed.words(rows)
        if free:
            return module.apply({"params": params}, rows, *inputs)
        rngs = {} if key is None else {"dropout": key}
        how = {"deterministic": deterministic, "rngs": rngs}
        return module.apply({"params": params}, *inputs, **how)

    def start(key, fixed):
        two = jnp.arange(2)
        inputs = (two, *fixed.words(two)) if free else fixed.words(two)
        how = {} if free else {"deterministic": True}
        params = module.init(key, *inputs, **how)["params"]
        return params, tx.init(params)

    def loss_of(params, rows, key, fixed):
        coded = apply(params, rows, fixed, False, key)
        alone = coded._replace(agreement=jnp.zeros_like(coded.agreement))
        total = jnp.mean(meta.reconstruction_loss(alone, loss, module.parts))
        total /= fixed.unit
        total += settings.agreement * jnp.mean(coded.agreement)
        if free:
            total += _L2 * sum(jnp.sum(jnp.square(p)) for p in jax.tree.leaves(params))
        return total

    def epoch(params, opt_state, key, batches, fixed):
        def step(carry, numbered):
            params, opt_state = carry
            number, rows = numbered
            here = jax.random.fold_in(key, number)
            gradient = jax.grad(loss_of)(params, rows, here, fixed)
            updates, opt_state = tx.update(gradient, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), None

        numbers = jnp.arange(len(batches))
        return jax.lax.scan(step, (params, opt_state), (numbers, batches))[0]

    keys = jax.vmap(jax.random.key)(jnp.arange(seeds))
    several = jax.jit(
        train.over_models(epoch, (0, 0, 0, None, None)), donate_argnums=(0, 1)
    )
    fold = jax.jit(jax.vmap(jax.random.fold_in, in_axes=(0, None)))
    params, opt_state = jax.jit(jax.vmap(start, in_axes=(0, None)))(keys, fixed)
    for number in range(epochs):
        batches = _epoch_rows(len(ensemble), batch_size, number)
        params, opt_state = several(
            params, opt_state, fold(keys, number + 1), batches, fixed
        )

    @jax.jit
    @functools.partial(train.over_models, in_axes=(0, None))
    def code_of(params, fixed):
        return apply(params, jnp.arange(len(ensemble)), fixed, True).code

    codes = np.asarray(code_of(params, fixed))
    params = jax.tree.map(np.asarray, params)
    return [
        (jax.tree.map(lambda x, s=seed: x[s], params), codes[seed])
        for seed in range(seeds)
    ]


def pair_cosines(world: data.World, matrix: np.ndarray, known=None) -> np.ndarray:
    """The cosine of every pair; nan where a word has no row."""
    rows = world.pool.rows(world.ensemble.words)
    found = pair_scores.cosines(matrix[rows[:, 0]], matrix[rows[:, 1]])
    if known is not None:
        found = np.where(known[rows].all(axis=1), found, np.nan)
    return found
