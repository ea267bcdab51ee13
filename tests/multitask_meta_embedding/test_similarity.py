"""Autoencoders and supervised similarity: what the card says cannot be faked."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from experiments.common import cli
from experiments.multitask_meta_embedding import model, training
from experiments.multitask_meta_embedding.config import SMOKE, Autoencoder
from experiments.multitask_meta_embedding.model import CONCATENATED
from experiments.multitask_meta_embedding.similarity import Measurer
from experiments.multitask_meta_embedding.training import UNLABELLED, Run
from jaxemb import nn as jnn
from jaxemb.eval import intervals
from jaxemb.nn import meta
from tests.multitask_meta_embedding.shared import (
    SEEDS,
    SETTINGS,
    planted,
    three_ways,
    trained,
)


def rho(world, cosines):
    own = world.pool.of == 0
    human = world.pool.scores[own]
    return np.array([stats.spearmanr(one[own], human).statistic for one in cosines])


def test_supervision_helps_on_a_list_held_out_and_shuffled_labels_do_not(world, found):
    supervised, shuffled, plain = rho(world, found["cosines"]).reshape(3, SEEDS)
    assert intervals.paired_t(supervised, plain).low > 0.1
    nothing = intervals.paired_t(shuffled, plain)
    assert nothing.low < 0
    assert nothing.mean < 0.05


def test_runs_without_labels_are_one_model_and_choose_epochs_apart(world, capfd):
    runs = [Run(UNLABELLED, holdout, 0, 0.1) for holdout in (0, 1)]
    runs.append(Run("Brier", 0, 0, 0.1))
    # What is best by the one is worst by the other, and neither trains.
    labels = np.stack([world.pool.scores, 1 - world.pool.scores, world.pool.scores])
    settings = dataclasses.replace(SETTINGS, epochs=2)
    together = trained(world, runs, labels, settings)
    assert "2 models" in capfd.readouterr().err
    for i in (0, 1):
        alone = trained(world, runs[i : i + 1], labels[i : i + 1], settings)
        for name, values in alone.items():
            np.testing.assert_allclose(together[name][i], values[0], atol=2e-3)
    assert together["dev"][:2].argmax(axis=1).tolist() == [1, 0]


def gradient_of(world, supervision, weight):
    """Of the objective at the first batch, its start, and what it reads."""
    module = model.SimilarityModel(world.ensemble.widths, SETTINGS, "glorot")
    fixed = training.fixed_of(world, "l2")
    rows = jnp.arange(32)
    params = module.init(
        jax.random.key(0), *fixed.words(fixed.pairs[rows]), deterministic=True
    )["params"]
    one = {
        "choice": jnp.array([supervision == kind for kind in training.KINDS], float),
        "weight": jnp.float32(weight),
        "supervised": jnp.ones(len(fixed.pairs), bool),
        "labels": jnp.asarray(world.pool.scores, jnp.float32),
    }
    objective = training.objective(module, "l2")
    key = jax.random.key(1)
    return jax.grad(objective)(params, one, rows, key, fixed), params, fixed, rows


@pytest.mark.parametrize("supervision", training.KINDS)
def test_without_weight_nothing_is_learned_to_reconstruct(world, supervision):
    """The card's check 7, of the objective that similarity is learned by."""
    gradient, *_ = gradient_of(world, supervision, 0.0)
    for leaf in jax.tree.leaves(gradient["meta"]["decode"]):
        assert (leaf == 0).all()
    for part in gradient["meta"]["encode_0"], gradient["head"]["layer_0"]:
        assert (part["kernel"] != 0).any()
    gradient, *_ = gradient_of(world, supervision, 0.1)
    assert (gradient["meta"]["decode"]["kernel"] != 0).any()


def aeme_loss(world, params, rows, fixed, loss):
    """λ of 1: half the loss of both words, the mean over pairs."""
    module = jnn.AEME(world.ensemble.widths, hidden=SETTINGS.hidden)
    words = fixed.words(fixed.pairs[rows])
    coded = module.apply({"params": params}, *words, deterministic=True)
    each = meta.reconstruction_loss(coded, loss, module.parts) / fixed.unit
    return jnp.mean(each)


def test_without_labels_it_is_the_plain_autoencoder(world):
    """Check 7: its gradient, and what a run without labels has learned."""
    gradient, params, fixed, rows = gradient_of(world, UNLABELLED, 1.0)
    plain = jax.grad(lambda p: aeme_loss(world, p, rows, fixed, "l2"))(params["meta"])
    same = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)
    jax.tree.map(same, gradient["meta"], plain)
    for leaf in jax.tree.leaves(gradient["head"]):
        assert (leaf == 0).all()

    settings = dataclasses.replace(SETTINGS, epochs=1)
    labels = np.stack([world.pool.scores])
    found = trained(world, [Run(UNLABELLED, 0, 0, 0.1)], labels, settings)
    fixed = training.fixed_of(world, "cosine")
    module = model.SimilarityModel(world.ensemble.widths, settings, "glorot")
    example = fixed.words(fixed.pairs[:2])
    params = module.init(jax.random.key(0), *example, deterministic=True)["params"]
    params = params["meta"]
    batches = training._epoch_rows(len(fixed.pairs), settings.batch_size, 0)
    tx = training._optimizer(settings, len(batches))
    state = tx.init(params)

    @jax.jit
    def step(params, state, rows):
        loss = lambda p: 0.1 * aeme_loss(world, p, rows, fixed, "cosine")
        updates, state = tx.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    for rows in batches:
        params, state = step(params, state, jnp.asarray(rows))
    encoder = model.encoder_of(settings, world.ensemble.widths)
    code = encoder.apply({"params": params}, fixed.x, fixed.known, deterministic=True)
    cosines = training.pair_cosines(world, np.asarray(code.code))
    np.testing.assert_allclose(found["cosines"][0], cosines, atol=1e-4)


def test_an_epoch_of_no_numbers_is_never_the_best(world):
    runs = [Run("OLS", 0, seed, 0.1) for seed in (0, 1)]
    labels = np.stack([world.pool.scores] * 2)
    settings = dataclasses.replace(
        SETTINGS, optimizer="sgd", learning_rate=np.nan, epochs=2
    )
    found = trained(world, runs, labels, settings)
    assert np.isnan(found["cosines"]).all()
    assert np.isnan(found["dev"]).all()


def test_autoencoders_that_diverge_have_no_figures(world, tmp_path):
    config = dataclasses.replace(
        SMOKE,
        losses=("l2",),
        autoencoder=dataclasses.replace(
            SMOKE.autoencoder, systems=(CONCATENATED,), learning_rate=np.nan
        ),
        trained=str(tmp_path),
        run=cli.Run(workdir=str(tmp_path), progress=False),
    )
    measurer = Measurer(config, world)
    measurer.unsupervised()
    seeds = config.autoencoder.seeds
    name = f"L2 {CONCATENATED}"
    assert measurer.measured.told["diverged"][name] == f"{seeds} of {seeds} seeds"
    assert set(measurer.measured.cosines) == {
        *world.ensemble.names,
        "CONC",
        "AV",
        "SVD",
    }


def test_supervision_helps_where_people_compare_all_that_sources_share():
    """The card's check 9 to the letter: y is the cosine of what is hidden."""
    world = planted(8, 1.0)
    settings = dataclasses.replace(SETTINGS, head=(16, 16), epochs=30)
    found = three_ways(world, "OLS", 1.0, settings)
    supervised, shuffled, plain = rho(world, found["cosines"]).reshape(3, SEEDS)
    single = [training.pair_cosines(world, m) for m in world.ensemble.matrices]
    assert plain.min() > rho(world, single).max() + 0.1
    assert supervised.mean() > plain.mean() + 0.01
    assert shuffled.mean() < plain.mean()


def test_encoders_that_were_kept_give_the_same_cosines(world, found):
    code = training.encode(found["encoders"][0], SETTINGS, world.ensemble)
    cosines = training.pair_cosines(world, np.asarray(code))
    np.testing.assert_allclose(cosines, found["cosines"][0], atol=5e-3)  # float16


@pytest.mark.parametrize("loss", ["l1", "l2", "cosine", "kl"])
def test_losses_are_told_over_that_of_zeros(world, loss):
    """What comes out of a decoder that is 0 everywhere has the loss 1."""
    ensemble = world.ensemble
    module = jnn.AEME(ensemble.widths, hidden=(4,))
    x = jnp.asarray(ensemble.concatenate(), jnp.float32)
    known = jnp.asarray(ensemble.known)
    params = module.init(jax.random.key(0), x, known, deterministic=True)["params"]
    params["decode"] = jax.tree.map(jnp.zeros_like, params["decode"])
    coded = module.apply({"params": params}, x, known, deterministic=True)
    found = meta.reconstruction_loss(coded, loss, module.parts).mean()
    unit = training.unit_of(ensemble, loss, module.parts)
    np.testing.assert_allclose(found / unit, 1, rtol=1e-5)


def test_one_vector_a_word_comes_near_the_best_of_its_rank(world):
    sources = world.ensemble.concatenate()
    module = jnn.OneToN(len(sources), world.ensemble.widths, features=4)
    settings = Autoencoder(free_learning_rate=0.03)
    run = training.self_supervised(world.ensemble, module, "l2", 2, settings)
    values = np.linalg.svd(sources, compute_uv=False)
    least = np.sum(values[4:] ** 2)
    for params, code in run:
        rest = sources - code @ params["project"]["kernel"]
        assert least <= np.sum(rest**2) < 1.05 * least
