"""The experiment on multi-task meta-embedding: what its card says cannot be faked."""

import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from etils import epath
from scipy import stats

from experiments.common import cli
from experiments.multitask_meta_embedding import (
    analogies,
    analyse,
    data,
    extrinsic,
    main,
    model,
    training,
)
from experiments.multitask_meta_embedding import config as config_of
from experiments.multitask_meta_embedding.config import (
    PRESETS,
    SLUG,
    SMOKE,
    Autoencoder,
    MultiTask,
)
from experiments.multitask_meta_embedding.model import CONCATENATED
from experiments.multitask_meta_embedding.similarity import Measured, Measurer
from experiments.multitask_meta_embedding.training import UNLABELLED, Run
from jaxemb import nn as jnn
from jaxemb.data import recipes, sources, synthetic
from jaxemb.data.analogies import Analogy, read_analogies
from jaxemb.data.pairs import WordPair
from jaxemb.data.semeval2012 import Relation
from jaxemb.data.vectors import (
    WordVectors,
    read_word_vectors,
    write_word_vectors,
)
from jaxemb.errors import InputError
from jaxemb.eval import analogy, holdout, intervals, kinds
from jaxemb.nn import meta
from jaxemb.spaces.ensemble import EmbeddingEnsemble
from jaxemb.train import checkpoints, results

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


@pytest.fixture(scope="module")
def world():
    """Sources that share meanings and, louder, what people do not care about."""
    return planted(3, 0.3)


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


@pytest.fixture(scope="module")
def found(world):
    """Supervised, by shuffled labels, and by nothing: the plain autoencoder."""
    return three_ways(world, "Brier", 0.1, SETTINGS)


def three_ways(world, supervision, weight, settings):
    runs = [Run(supervision, 0, seed, weight) for seed in range(SEEDS)] * 3
    shuffled = [world.pool.shuffled(seed) for seed in range(SEEDS)]
    own = [world.pool.scores] * SEEDS
    last = slice(2 * SEEDS, None)
    runs[last] = [run._replace(supervision=UNLABELLED) for run in runs[last]]
    return trained(world, runs, np.stack(own + shuffled + own), settings)


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


def test_what_lacks_words_stands_beside_nothing_over_all_pairs(world):
    """Its figures have metrics of their own; claims are over common pairs."""
    measured = Measured(world, [0, 1, 2])
    noisy = np.random.default_rng(0).normal(size=(3, len(world.pool.of)))
    there, lacks, worse = world.pool.scores + np.array([[0.1], [0.1], [1.0]]) * noisy
    lacks[np.flatnonzero(world.pool.of == 1)[:300]] = np.nan
    measured.add("CONC", worse)
    measured.add("AV", there)
    measured.add("one", lacks)
    tables = analyse.Tables(SMOKE, measured)
    rows = tables.rows()
    assert rows[0].metric == analyse.MEAN
    names = {}
    for row in rows:
        names.setdefault(row.metric, []).append(row.name)
    wanted = {
        analyse.MEAN: ["CONC", "AV"],
        "A, ρ × 100 (800 of 800 pairs)": ["CONC", "AV", "one"],
        "B, ρ × 100 (800 of 800 pairs)": ["CONC", "AV"],
        "C, ρ × 100 (800 of 800 pairs)": ["CONC", "AV", "one"],
        analyse.COVERED: ["one"],
        "B, ρ × 100 (500 of 800 pairs)": ["one"],
        analyse.LACKING: ["one"],
    }
    assert names == wanted
    shown = tables.shown(rows)["shown"]
    assert set(wanted) - set(shown) == {"B, ρ × 100 (500 of 800 pairs)"}
    gap = tables._gap(["AV"], ["one"])
    by_list = []
    for number in range(3):
        both = (world.pool.of == number) & ~np.isnan(lacks)
        human = world.pool.scores[both]
        rhos = [stats.spearmanr(c[both], human)[0] for c in (there, lacks)]
        by_list.append(100 * (rhos[0] - rhos[1]))
    assert gap.mean == pytest.approx(np.mean(by_list))


def test_hold_outs_are_chosen_by_name(world, tmp_path):
    settings = dataclasses.replace(
        SETTINGS, hold_outs=("C",), supervisions=("Brier",), epochs=1, seeds=1
    )
    config = dataclasses.replace(SMOKE, multitask=settings, trained=str(tmp_path))
    measurer = Measurer(config, world)
    measurer.supervised()
    own = world.pool.of == 2
    [cosines] = measurer.measured.cosines["Cos-Brier"]
    np.testing.assert_array_equal(np.isfinite(cosines), own)
    assert measurer.measured.told["λ"] == {"cosine": {"C": 0.1}}
    seconds = measurer.measured.told["seconds of training"]
    assert set(seconds["all models of Table 2"]) == {"Cos"}
    metrics = {row.metric for row in analyse.Tables(config, measurer.measured).rows()}
    assert metrics == {analyse.MEAN, "C, ρ × 100 (800 of 800 pairs)"}
    wrong = dataclasses.replace(settings, hold_outs=("C", "D"))
    with pytest.raises(InputError, match="hold-outs: 'D' is none of the .* A, B, C"):
        Measurer(dataclasses.replace(config, multitask=wrong), world)


def test_a_run_of_before_is_found_again():
    """What claims a folder has no field of which nobody made use."""
    assert "hold_outs" not in main._deciding(SMOKE)["multitask"]
    settings = dataclasses.replace(SMOKE.multitask, hold_outs=("A",))
    config = dataclasses.replace(SMOKE, multitask=settings)
    assert main._deciding(config)["multitask"]["hold_outs"] == ["A"]


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


def test_pieces_are_computed_once(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return {"x": np.arange(3)}

    for _ in range(2):
        arrays, recorded = training.kept(tmp_path, {"a": 1}, compute)
        np.testing.assert_array_equal(arrays["x"], np.arange(3))
        assert results.origin(recorded)["commits"]
    training.kept(tmp_path, {"a": 2}, compute)
    assert len(calls) == 2


def test_batches_show_every_pair_and_are_full():
    rows = training._epoch_rows(10, 4, 0)
    assert rows.shape == (3, 4)
    assert set(rows.ravel()) == set(range(10))
    assert not np.array_equal(rows, training._epoch_rows(10, 4, 1))


def test_the_rows_of_a_batch_are_the_vectors_of_its_words():
    texts = data.load_texts(SMOKE, "pos")
    batches = extrinsic.Batches(texts, SMOKE)
    table = texts.ensemble.concatenate().astype(np.float32)
    plan = batches.train(table, texts.ensemble.known)
    for step in (0, 1):
        batch, plain = plan(step), batches.plan(step)
        np.testing.assert_array_equal(
            batch["sources"][batch["ids"]], table[plain["tokens"]]
        )
        np.testing.assert_array_equal(batch["mask"], plain["tokens"] > 0)
        np.testing.assert_array_equal(batch["labels"], plain["labels"])
    seen = sum(
        int(b["weight"].sum()) for b in batches.held_out("dev", table, table > 0)
    )
    assert seen == len(texts.parts["dev"]["tokens"])


def test_the_control_has_no_weight_and_meta_has_one(tmp_path):
    """What would reconstruct is as it began in the one, and learned in the other."""
    settings = dataclasses.replace(SMOKE.extrinsic, epochs=1)
    config = dataclasses.replace(
        SMOKE, extrinsic=settings, run=cli.Run(workdir=str(tmp_path), progress=False)
    )
    texts = data.load_texts(config, "pos")
    batches = extrinsic.Batches(texts, config)
    biases = {}
    for name, system in (("control", extrinsic.CONTROL), ("meta", extrinsic.META)):
        folder = epath.Path(tmp_path / name)
        extrinsic.Trainer(config, texts, batches, "cnn", system).fit(folder)
        params = checkpoints.load_params(folder)["params"]
        biases[name] = params["meta"]["decode"]["bias"]
    assert (biases["control"] == 0).all()
    assert (biases["meta"] != 0).any(axis=-1).all()  # of every seed


def test_reviews_are_classified_with_their_mean_reconstructed(tmp_path):
    settings = dataclasses.replace(
        SMOKE.extrinsic, encoders=("gru",), meta=(8, 6), level="text", epochs=1
    )
    config = dataclasses.replace(
        SMOKE, extrinsic=settings, run=cli.Run(workdir=str(tmp_path), progress=False)
    )
    texts = data.load_texts(config, "imdb")
    batches = extrinsic.Batches(texts, config)
    trainer = extrinsic.Trainer(config, texts, batches, "gru", extrinsic.META)
    trainer.fit(epath.Path(tmp_path / "run"))
    found = extrinsic._read(epath.Path(tmp_path / "run"), settings.seeds)
    assert found["dev"].shape == found["test"].shape == (2, 1)
    # Shares of 30 examples, those that only fill a batch up not among them.
    np.testing.assert_allclose(found["test"] * 0.3, np.round(found["test"] * 0.3))


def test_models_of_similarity_are_asked_analogies(world, found, tmp_path, monkeypatch):
    config = dataclasses.replace(
        SMOKE,
        tasks=("analogies",),
        multitask=dataclasses.replace(SETTINGS, supervisions=("Brier",), seeds=2),
        run=cli.Run(workdir=str(tmp_path), progress=False),
        analogy_seeds=2,
    )
    words = world.ensemble.words
    questions = [Analogy(*words[i : i + 4]) for i in range(0, 40, 4)]
    test = kinds.AnalogyTest("planted", {"all": questions})
    pairs = [(words[i], words[i + 1]) for i in range(0, 18, 2)]
    rated = {pair: float(rank) for rank, pair in enumerate(pairs)}
    related = Relation("2a", "all", "some", ((words[30], words[31]),), rated, [])
    tests = {
        "planted": (test, world.ensemble),
        "related": (kinds.RelationalTest("related", [related]), world.ensemble),
    }
    monkeypatch.setattr(data, "load_analogies", lambda _: (tests, ()))
    runs = [Run("Brier", 0, seed, 0.1) for seed in (0, 1)]
    monkeypatch.setattr(Measurer, "encoders", lambda *_: (runs, found["encoders"][:2]))
    outcome = analogies.run(config, Measurer(config, world))
    values = {
        row.name: row.values for row in outcome.rows if row.metric.startswith("planted")
    }
    assert outcome.told["analogies covered"]["CONC, related"] == "9 of 9 rated pairs"
    [claim] = [c for c in outcome.claims if "Cos-Brier beats AV on related" in c.claim]
    assert "over the 1 relations of which a pair with a word" in claim.evidence
    assert "over 2 seeds" in claim.evidence
    assert set(values) == {*world.ensemble.names, "CONC", "AV", "SVD", "Cos-Brier"}
    assert len(values["Cos-Brier"]) == 2
    [claim] = [
        c for c in outcome.claims if "Cos-Brier beats CONC on planted" in c.claim
    ]
    assert "over the 20 word pairs of 10 questions" in claim.evidence
    # The figure of a seed is that of its own table.
    for seed, value in enumerate(values["Cos-Brier"]):
        code = training.encode(
            found["encoders"][seed], config.multitask, world.ensemble
        )
        table = world.ensemble.table(np.asarray(code))
        wanted = 100 * analogy.analogies(table, {"all": questions}).whole.accuracy
        assert value == pytest.approx(wanted)


def test_analogies_are_uncertain_by_word_pairs_and_by_seeds():
    """Every pair is asked with every other: twelve pairs, not 132 questions."""
    rng = np.random.default_rng(0)
    words = [(f"a{i}", f"b{i}") for i in range(12)]
    questions = [Analogy(*p, *q) for p in words for q in words if p != q]
    first = np.array([words.index(q[:2]) for q in questions])
    easy = rng.normal(size=12)
    seeds = np.stack([easy[first] + shift for shift in (0.3, 0.4, 0.7)])[:, None]
    worse = np.zeros((1, 1, len(questions)))
    test = kinds.AnalogyTest("made", {"all": questions})
    gap, over = analogies._gap(SMOKE, test, seeds, worse)
    assert over == "the 12 word pairs of 132 questions"
    by_seed = intervals.t_interval(100 * seeds.mean(axis=(1, 2)))
    pairs = analogy.word_pairs(test.sections)
    items = intervals.crossed_bootstrap(
        100 * seeds.mean(axis=(0, 1)), pairs, resamples=SMOKE.resamples
    )
    wanted = dataclasses.astuple(intervals.with_spread(items, by_seed))
    assert dataclasses.astuple(gap) == pytest.approx(wanted)
    assert gap.high - gap.low > items.high - items.low
    relations = kinds.RelationalTest("made", [])
    gap, over = analogies._gap(SMOKE, relations, seeds[..., ::30], worse[..., ::30])
    assert over == "the 5 relations"
    spread = intervals.t_interval(100 * seeds[..., ::30].mean(axis=(1, 2)))
    assert gap.mean - gap.low > spread.mean - spread.low


def test_a_question_that_names_its_answer_is_left_out():
    asked = {"x": [Analogy("a", "b", "a", "b"), Analogy("a", "b", "c", "d")]}
    found = data._sensible(kinds.AnalogyTest("made", asked))
    assert found.sections == {"x": [Analogy("a", "b", "c", "d")]}
    if sources.locate("analogies"):
        google = kinds.AnalogyTest(
            "google", read_analogies(sources.get("analogies").part("google"))
        )
        kept = data._sensible(google).sections
        assert sum(map(len, kept.values())) == 19_544


def test_models_are_put_together_from_the_right_runs(world, tmp_path, monkeypatch):
    """Training is replaced by numbers that name the run."""
    asked = []
    best = 1.0, 10.0, 0.1  # λ, one a list held out

    def signed(run, loss, init):
        kind = (UNLABELLED, "OLS", "NLL", "Brier").index(run.supervision)
        return run.weight + 10 * run.seed + 100 * run.holdout + 1000 * kind

    def train(world, settings, loss, init, runs, supervised, dev, labels, **how):
        asked.append((loss, init, settings, runs, supervised, labels))
        each = np.array([signed(run, loss, init) for run in runs])
        if (loss, init, settings.optimizer) == ("l2", "paper", "sgd"):
            each[:1] = np.nan  # diverged
        # The second epoch is best, and of weights that of the list held out.
        height = [
            [0.1, 0.5 if run.weight == best[run.holdout] else 0.2, 0.1] for run in runs
        ]
        found = {
            "cosines": np.repeat(each[:, None], len(labels[0]), axis=1),
            "dev": np.array(height),
        }
        return found | ({"encoders": each[:, None]} if how["keep_encoders"] else {})

    monkeypatch.setattr(training, "multitask", train)
    settings = dataclasses.replace(
        SETTINGS,
        weights=(0.1, 1.0, 10.0),
        epochs=3,
        seeds=2,
        paper_seeds=1,
        controls=("leaky", "words", "shuffled"),
        control_seeds=1,
    )
    config = dataclasses.replace(
        SMOKE,
        losses=("cosine", "l2"),
        multitask=settings,
        trained=str(tmp_path),
        run=cli.Run(workdir=str(tmp_path), progress=False),
    )
    measurer = Measurer(config, world)
    measurer.supervised()
    measurer.ablations()
    measured = measurer.measured
    chosen = dict(zip("ABC", best, strict=True))
    assert measured.told["λ"] == {"cosine": chosen, "l2": chosen}
    for name, kind in (("Cos-OLS", 1), ("L2-Brier", 3), (f"Cos-{UNLABELLED}", 0)):
        for seed, cosines in enumerate(measured.cosines[name]):
            wanted = np.array(best)[world.pool.of] + 10 * seed
            wanted += 100 * world.pool.of + 1000 * kind
            np.testing.assert_allclose(cosines, wanted)
        assert measured.told["epochs chosen"][name] == [0, 0, 6, 0]
    assert measured.cosines["Cos-Brier, λ = 0"][0].min() == 3000
    inits = {init for _, init, *_ in asked}
    assert inits == {"glorot", "paper"}
    # What supervises: most with leakage, least without the words of the list.
    shares = {}
    for loss, init, chosen, runs, supervised, labels in asked:
        if (loss, init, chosen, len(runs)) == ("cosine", "glorot", settings, 3):
            shuffled = not np.array_equal(labels[0], world.pool.scores)
            shares.setdefault(shuffled, []).append(supervised.mean())
    leaky, words = shares[False]
    assert leaky > shares[True][0] > words
    runs, encoders = measurer.encoders("l2")
    assert encoders[:, 0].tolist() == [signed(run, "l2", "glorot") for run in runs]
    recipe = [s for _, init, s, *_ in asked if s.optimizer == "sgd" and init == "paper"]
    assert {(s.batch_size, s.epochs) for s in recipe} == {(32, config.sgd_epochs)}
    tables = analyse.Tables(config, measured)
    said = [claim.claim for claim in tables.claims()]
    assert any("the asymmetric score beats the cosine" in text for text in said)
    assert any("over the same loop without labels" in text for text in said)
    recipe = "L2-Brier, SGD 0.05, N(0, 1)"
    assert measured.told["diverged"] == {recipe: "1 of 2 seeds"}
    assert recipe not in {row.name for row in tables.rows()}
    [text] = [text for text in said if "the paper's recipe" in text]
    assert text.endswith(f"; {recipe} diverged")
    assert recipe not in measured.told["epochs chosen"]
    lost = "L2-Brier, N(0, 1)"
    tables._measured.told["diverged"][lost] = "1 of 1 seeds"
    del measured.cosines[lost]
    said = [claim.claim for claim in tables.claims()]
    for text in (
        "Brier's score beats OLS, over all losses, N(0, 1)",
        "control: Glorot",
    ):
        [claim] = [one for one in said if one.startswith(text)]
        assert claim.endswith(f"; {lost} diverged")


def test_scores_of_the_list_held_out_choose_nothing(tmp_path):
    """Neither its λ nor its models, and they do choose those of the other lists."""
    config = dataclasses.replace(
        SMOKE,
        multitask=dataclasses.replace(
            SETTINGS,
            hidden=(8,),
            supervisions=("Brier",),
            weights=(0.01, 1.0, 100.0),
            epochs=6,
            seeds=1,
        ),
    )
    found = []
    for name, flipped in (("as they are", False), ("turned round", True)):
        world = planted(3, 0.3, pairs=300)
        if flipped:
            pairs = tuple(
                pair._replace(score=1 - pair.score) if of == 0 else pair
                for pair, of in zip(world.pool.pairs, world.pool.of, strict=True)
            )
            pool = dataclasses.replace(world.pool, pairs=pairs)
            world = dataclasses.replace(world, pool=pool)
        here = dataclasses.replace(config, trained=str(tmp_path / name))
        measurer = Measurer(here, world)
        weights = measurer.weights("cosine")
        measurer.pieces("cosine", weights, here.multitask)
        [cosines] = measurer.measured.cosines["Cos-Brier"]
        runs, encoders = measurer.encoders("cosine")
        assert {run.holdout: run.weight for run in runs} == weights
        found.append((list(weights.values()), cosines, encoders))
    (weights, cosines, encoders), (others, there, again) = found
    assert weights[0] == others[0]
    own = world.pool.of == 0
    np.testing.assert_array_equal(cosines[own], there[own])
    np.testing.assert_array_equal(encoders[0], again[0])
    assert weights[1:] != others[1:]
    assert np.abs(cosines - there)[~own].max() > 0.01
    assert np.abs(encoders[1:] - again[1:]).max() > 0.01


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


def test_a_recipe_phrase_is_in_one_part_only():
    rng = np.random.default_rng(0)
    names = [f"{'Flour' if i % 2 else 'flour'}{rng.integers(60)}" for i in range(300)]
    rows = [recipes.RecipePhrase(("1", name), ("QUANTITY", "NAME")) for name in names]
    parts = data.split_phrases(rows)
    assert sum(map(len, parts.values())) == 300
    words = {part: {row.tokens[1].lower() for row in of} for part, of in parts.items()}
    assert len(words["train"] | words["dev"] | words["test"]) == 60
    assert [len(words[part]) for part in ("train", "dev", "test")] == [48, 6, 6]


def test_meta_embeddings_are_written_as_tables(world, tmp_path):
    measurer = Measurer(SMOKE, world)
    paths = measurer.export(tmp_path, world.ensemble)
    table = read_word_vectors(paths[0])
    assert (len(table), table.dim) == (len(world.ensemble), SMOKE.autoencoder.hidden)


def test_mistakes_are_named(tmp_path):
    arguments = ["custom", "--sources", "a.vec", "--workdir", str(tmp_path)]
    config = cli.parse("multitask_meta_embedding", PRESETS, arguments)
    with pytest.raises(InputError, match="expected two tables or more, found 1"):
        main.run(config)
    with pytest.raises(InputError, match="--losses: expected one or more"):
        dataclasses.replace(SMOKE, losses=())


@pytest.mark.data
def test_the_words_of_the_six_lists():
    if not (sources.locate("wordsim") and sources.locate("glove-100d-subset")):
        pytest.skip("needs wordsim and glove-100d-subset")
    config = dataclasses.replace(
        PRESETS["similarity"][1], sources=("glove-100d", "glove-100d")
    )
    with pytest.raises(InputError, match="named twice"):
        data.load_world(config)
    config = dataclasses.replace(config, sources=("glove-100d",))
    found = data.load_world(config)
    # The paper counts 4,819, those that its sources know, perhaps.
    assert found.vocabulary == 4986
    assert sum(found.totals.values()) == 7222
    assert set(found.pool.names) == set(found.totals)


def test_tables_trained_here_are_sources_too(tmp_path):
    world = synthetic.planted_topics()
    words = tuple(sorted({word for one in world.sentences for word in one}))
    table = WordVectors(words, np.eye(len(words), 4, dtype=np.float32) + 1)
    for name in ("a.txt", "b.txt"):
        write_word_vectors(tmp_path / name, table)
    config = cli.parse(
        SLUG,
        PRESETS,
        [
            *("custom", "--sources", str(tmp_path / "a.txt"), str(tmp_path / "b.txt")),
            *("--training.seeds", "1", "--training.text", "planted"),
            *("--training.dim", "8", "--training.glove-epochs", "3"),
            *("--training.skipgram-epochs", "1", "--training.min-count", "1"),
            *("--workdir", str(tmp_path / "run"), "--no-progress"),
        ],
    )
    tables, used = data.read_sources(config)
    names = ["a.txt", "b.txt", "GloVe, trained here", "skip-gram, trained here"]
    assert list(tables) == names
    assert [one.name for one in used[:4]] == names
    again, _ = data.read_sources(config)
    for name in names[2:]:
        np.testing.assert_array_equal(again[name].matrix, tables[name].matrix)
        assert set(tables[name].words) == set(words)


@pytest.mark.parametrize(
    "preset, wanted",
    [
        ("similarity", ["supervision raises RG", "supervision raises MEN"]),
        ("pos", [f"(λ = 0): UDPoS, {e}" for e in ("CNN", "LSTM", "GRU", "Highway")]),
    ],
)
def test_what_the_card_predicts_has_a_verdict(preset, wanted):
    """Check 10; the sign is published whatever it is."""
    path = Path(config_of.__file__).parent / "results" / f"{preset}.json"
    if not path.exists():
        pytest.skip("not run yet")
    found = json.loads(path.read_text())
    for text in wanted:
        assert any(text in one["claim"] for one in found["claims"])
    assert max(len(row.get("values", ())) for row in found["rows"]) == 5
