"""From trained models to rows and claims, and what a run leaves behind."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from experiments.common import cli
from experiments.multitask_meta_embedding import (
    analyse,
    data,
    extrinsic,
    main,
    training,
)
from experiments.multitask_meta_embedding import config as config_of
from experiments.multitask_meta_embedding.config import PRESETS, SLUG, SMOKE
from experiments.multitask_meta_embedding.similarity import Measured, Measurer
from experiments.multitask_meta_embedding.training import UNLABELLED
from jaxemb.data import sources, synthetic
from jaxemb.data.vectors import WordVectors, read_word_vectors, write_word_vectors
from jaxemb.errors import InputError
from jaxemb.train import results
from tests.multitask_meta_embedding.shared import SETTINGS, planted

_BOUNDS = re.compile(r"\[(-?[0-9.]+), (-?[0-9.]+)\]")


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
    assert measurer.measured.told["λ"] == {"cosine": {"Brier": {"C": 0.1}}}
    seconds = measurer.measured.told["seconds of training"]
    assert set(seconds["all models of Table 2"]) == {"Cos"}
    metrics = {row.metric for row in analyse.Tables(config, measurer.measured).rows()}
    assert metrics == {analyse.MEAN, "C, ρ × 100 (800 of 800 pairs)", analyse.DEV}
    wrong = dataclasses.replace(settings, hold_outs=("C", "D"))
    with pytest.raises(InputError, match="hold-outs: 'D' is none of the .* A, B, C"):
        Measurer(dataclasses.replace(config, multitask=wrong), world)


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


def test_models_are_put_together_from_the_right_runs(world, tmp_path, monkeypatch):
    """Training is replaced by numbers that name the run."""
    asked = []
    kinds = "OLS", "NLL", "Brier"
    # λ, one a list held out.
    best = {"OLS": (0.1, 0.1, 0.1), "NLL": (10.0, 1.0, 10.0), "Brier": (1.0, 10.0, 0.1)}

    def signed(run, loss, init):
        kind = (UNLABELLED, *kinds).index(run.supervision)
        return run.weight + 10 * run.seed + 100 * run.holdout + 1000 * kind

    def of(kind):
        return np.array(best["Brier" if kind == UNLABELLED else kind])

    def train(world, settings, loss, init, runs, supervised, dev, labels, **how):
        asked.append((loss, init, settings, runs, supervised, labels))
        each = np.array([signed(run, loss, init) for run in runs])
        if (loss, init, settings.optimizer) == ("l2", "paper", "sgd"):
            each[:1] = np.nan  # diverged
        # The second epoch is best, and of weights that of the list held out.
        height = [
            [0.1, 0.5 if run.weight == of(run.supervision)[run.holdout] else 0.2, 0.1]
            for run in runs
        ]
        found = {
            "cosines": np.repeat(each[:, None], len(labels[0]), axis=1),
            "dev": np.array(height),
        }
        return found | ({"encoders": each[:, None]} if how["keep_encoders"] else {})

    monkeypatch.setattr(training, "multitask", train)
    settings = dataclasses.replace(
        SETTINGS,
        supervisions=kinds,
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
    chosen = {kind: dict(zip("ABC", of(kind), strict=True)) for kind in kinds}
    assert measured.told["λ"] == {"cosine": chosen, "l2": chosen}
    seconds = measured.told["seconds of training"]
    assert set(seconds["the choice of λ"]) == {
        f"{loss}-{kind}" for loss in ("Cos", "L2") for kind in kinds
    }
    for loss, number in (("Cos", 1), ("Cos", 2), ("L2", 3), ("Cos", 0)):
        kind = (UNLABELLED, *kinds)[number]
        name = f"{loss}-{kind}"
        for seed, cosines in enumerate(measured.cosines[name]):
            wanted = of(kind)[world.pool.of] + 10 * seed
            wanted += 100 * world.pool.of + 1000 * number
            np.testing.assert_allclose(cosines, wanted)
        assert measured.told["epochs chosen"][name] == [0, 0, 6, 0]
        assert measured.dev[name] == pytest.approx([50, 50])
    assert measured.cosines["Cos-Brier, λ = 0"][0].min() == 3000
    inits = {init for _, init, *_ in asked}
    assert inits == {"glorot", "paper"}
    # What supervises: most with leakage, least without the words of the list.
    shares = {}
    for loss, init, chosen, runs, supervised, labels in asked:
        asks = loss, init, chosen, len(runs), runs[0].supervision, runs[0].weight > 0
        if asks == ("cosine", "glorot", settings, 3, "Brier", True):
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
    near_by = [c for c in tables.claims() if "pairs held out of the lists" in c.claim]
    assert [claim.verdict for claim in near_by] == ["inconclusive"]
    measured.dev["Cos-Brier"] = [51.0, 51.1]
    near_by = [c for c in tables.claims() if "pairs held out of the lists" in c.claim]
    assert [claim.verdict for claim in near_by] == ["supported"]
    assert "difference +1.05 points" in near_by[0].evidence
    assert {row.name for row in tables.rows() if row.metric == analyse.DEV} == set(
        measured.dev
    )
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
        [of_lists] = weights.values()
        assert {run.holdout: run.weight for run in runs} == of_lists
        found.append((list(of_lists.values()), cosines, encoders))
    (weights, cosines, encoders), (others, there, again) = found
    assert weights[0] == others[0]
    own = world.pool.of == 0
    np.testing.assert_array_equal(cosines[own], there[own])
    np.testing.assert_array_equal(encoders[0], again[0])
    assert weights[1:] != others[1:]
    assert np.abs(cosines - there)[~own].max() > 0.01
    assert np.abs(encoders[1:] - again[1:]).max() > 0.01


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
        told = [one for one in found["claims"] if text in one["claim"]]
        assert told
        for one in told:
            low, high = map(float, _BOUNDS.search(one["evidence"]).groups())
            says = "supported" if low > 0 else "contradicted" if high < 0 else ""
            assert one["verdict"] == (says or "inconclusive")
            assert "seeds" in one["evidence"]
    of = {(row["name"], row["metric"]): row for row in found["rows"]}
    systems = {
        "similarity": [("Cos-Brier", analyse.MEAN), ("Cos-none", analyse.MEAN)],
        "pos": [
            (system, f"UDPoS {encoder}, test (%)")
            for system in (extrinsic.META, extrinsic.CONTROL)
            for encoder in ("CNN", "LSTM", "GRU", "Highway")
        ],
    }
    assert all(len(of[one]["values"]) == 5 for one in systems[preset])
