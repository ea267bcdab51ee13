"""From finished parts to rows, claims and the paper's figures beside them."""

import dataclasses
import json

import numpy as np
import pytest
from etils import epath

from experiments.delta_embedding import (
    analyse,
    claims,
    data,
    finished,
    main,
    paper,
    task,
    tuned,
)
from experiments.delta_embedding import config as presets
from experiments.delta_embedding.config import Config, Model, arm
from jaxemb import train
from jaxemb.data import batching, sources, synthetic
from jaxemb.data.vectors import read_word_vectors
from jaxemb.errors import InputError
from jaxemb.train import results
from tests.delta_embedding.shared import DIM, VOCAB, WORDS, of, smoke


@pytest.mark.parametrize(
    "name",
    ["", "delta", "delta-", "prox--1", "l2-3", "delta-x"]
    + ["delta-nan", "prox-nan", "delta-inf", "prox--inf"],
)
def test_unknown_arms_are_named(name):
    with pytest.raises(InputError, match=f"--arms {name}: expected"):
        arm(name)


def test_the_weight_of_a_proximal_step_may_be_infinite():
    assert arm("prox-inf").c == np.inf
    assert arm("prox-1e-4").other_form == "delta-1e-4"
    assert arm("delta-1e-4").other_form == "prox-1e-4"


def test_parts_trained_before_rates_decayed_stay_valid():
    """The settings that a part of `bidaf` was claimed with before there was `decay`."""
    assert main._part_of(presets.BIDAF) == {
        "task": "squad2-half-dev",
        "protocol": "seeds",
        "epochs": 30,
        "batch_size": 30,
        "buckets": 4,
        "second_buckets": 1,
        "model": {
            "kind": "bidaf",
            "widths": [3, 4, 5],
            "maps": 100,
            "hidden": 32,
            "dropout": 0.2,
            "norm_limit": None,
            "ema": 0.99,
            "dtype": "float32",
        },
        "limits": {"sentence": 50, "context": 250, "question": 30, "answer": None},
        "optimizer": "adam",
        "learning_rate": 0.002,
        "accumulate": 1,
    }
    decaying = dataclasses.replace(presets.SICK, decay="linear")
    assert main._part_of(decaying)["decay"] == "linear"
    smaller = dataclasses.replace(presets.BIDAF, share=0.1)
    assert main._part_of(smaller)["share"] == 0.1


def written_parts(workdir, config, table, scores):
    """Parts as a run leaves them: arm to part to (dev, test) of its epochs."""
    for name, parts in scores.items():
        for part, epochs in enumerate(parts):
            folder = tuned.part_folder(config, workdir, table.name, name, part)
            folder.mkdir(parents=True)
            lines = [
                json.dumps({"step": 10 * n, "dev/accuracy": d, "test/accuracy": t})
                for n, (d, t) in enumerate(epochs, 1)
            ]
            (folder / "metrics.jsonl").write_text("".join(f"{x}\n" for x in lines))


def test_c_is_chosen_on_dev_in_each_part(tmp_path, monkeypatch, capsys):
    def unreachable(config):
        raise sources.FetchError("no index")

    monkeypatch.setattr(data, "load_polarity", unreachable)
    config = Config(
        task="kmr",
        arms=("fixed", "delta-1e-4", "delta-1e-5", "prox-1e-4"),
        protocol="seeds",
        parts=2,
        batch_size=1,
    )
    rows = np.arange(10), np.arange(10), np.arange(4)
    labels = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    made = {"source": "made up", "sha256": None, "size": 10}
    kind = results.Data(name="kmr", kind="subset", **made)
    examples = task.Task(WORDS, {"labels": labels}, (kind,), classes=2, splits=rows)
    glove = results.Data(name="glove-100d", kind="real", **made)
    table = tuned.Table(None, np.zeros((VOCAB, DIM)), glove)
    scores = {
        "fixed": [[(0.99, 0.1)], [(0.99, 0.1)]],
        # The first of two epochs of the same dev score counts.
        "delta-1e-4": [[(0.3, 0.2), (0.7, 0.5), (0.7, 0.9)], [(0.6, 0.6)]],
        "delta-1e-5": [[(0.6, 0.8)], [(0.8, 0.4)]],
        "prox-1e-4": [[(0.99, 0.1)], [(0.99, 0.1)]],
    }
    written_parts(tmp_path, config, table, scores)
    tests = data.Tests({}, None)
    run = finished.Finished(config, examples, [table], tests, epath.Path(tmp_path))
    assert run.chosen_on_dev(table) == pytest.approx([50, 40])
    assert run.chosen_epochs(table, "delta-1e-4") == [2, 1]
    assert run.claimed_arms == ["delta-1e-4", "delta-1e-5"]
    assert "no polarity lexicon, so no Table 5: no index" in capsys.readouterr().err
    # Most of train is 0, most of test is 1.
    assert run.of_majority(config.measures[0]) == [25, 25]
    own = dataclasses.replace(presets.KMR, arms=config.arms)
    real = dataclasses.replace(examples.data[0], kind="real")
    for settings, used, published in (
        (own, examples.data[0], None),
        (config, real, None),  # of other batches than the paper's run
        (own, real, 66.72),
    ):
        run.config, run.task = settings, dataclasses.replace(examples, data=(used,))
        row = analyse._score_rows(run, table, config.measures[0])[0]
        assert row.published == published
        assert (row.source is None) == (published is None)


def test_delta_is_held_against_the_better_of_both(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "load_polarity", lambda config: {})
    arms = ("fixed", "finetune", "delta-1e-4")
    config = dataclasses.replace(presets.KMR, parts=3, arms=arms, batch_size=1)
    table = tuned.Table(None, np.zeros((VOCAB, DIM)), GLOVE)
    examples = task.Task(WORDS, {}, (used("kmr"),))
    scores = {
        "fixed": [[(0.5, 0.50)], [(0.5, 0.52)], [(0.5, 0.54)]],
        "finetune": [[(0.5, 0.60)], [(0.5, 0.63)], [(0.5, 0.65)]],
        "delta-1e-4": [[(0.5, 0.59)], [(0.5, 0.62)], [(0.5, 0.64)]],
    }
    written_parts(tmp_path, config, table, scores)
    tests = data.Tests({}, None)
    run = finished.Finished(config, examples, [table], tests, epath.Path(tmp_path))
    claim = claims._beats_both(run, table, "delta-1e-4")
    assert claim.claim == (
        "delta-1e-4 is at least the better of fixed and finetune on kmr (glove-100d)"
    )
    assert claim.verdict == "contradicted"
    assert claim.evidence.startswith(
        "which is finetune: paired difference -1.00 points [-1.00, -1.00], 3 seeds"
    )


def used(name, kind="real"):
    return results.Data(name=name, kind=kind, source="", sha256=None, size=1)


GLOVE = used("glove-100d")


@pytest.mark.parametrize("preset", ["rt-polarity", "kmr", "bidaf-squad"])
@pytest.mark.parametrize(
    ("changes", "text", "table"),
    [
        ({"epochs": 1}, "real", GLOVE),
        ({"parts": 2}, "real", GLOVE),
        ({"decay": "linear"}, "real", GLOVE),
        ({"model": Model(hidden=8)}, "real", GLOVE),
        ({"limits": presets.Limits(question=5)}, "real", GLOVE),
        ({}, "subset", GLOVE),
        ({}, "real", used("glove-100d-subset", "subset")),
        ({}, "real", used("glove-50d")),
        ({}, "real", used("mine-100d.txt")),
        ({"vectors": ("mine/glove-100d",)}, "real", GLOVE),
    ],
)
def test_the_papers_figures_stand_beside_its_own_run_only(preset, changes, text, table):
    own = presets.PRESETS[preset][1]
    # What does not decide the figures of a part may differ.
    beside = dataclasses.replace(own, preset="custom", arms=("fixed",), export=True)
    for config in (own, beside):
        assert paper.stands_beside(config, [used("texts")], GLOVE)
        changed = dataclasses.replace(config, **changes)
        assert not paper.stands_beside(changed, [used("texts", text)], table)


@pytest.mark.parametrize("name", ["esim", "esim-sick", "bidaf", "smoke", "demo"])
def test_presets_that_stand_in_have_no_published_figures(name):
    config = dataclasses.replace(presets.PRESETS[name][1], vectors=("glove-100d",))
    assert not paper.stands_beside(config, [used("texts")], GLOVE)


def test_tables_2_and_3_are_printed_beside_squads_table_only(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "load_polarity", lambda config: {})
    arms = ("fixed", "finetune", "delta-1e-4")
    config = dataclasses.replace(presets.SQUAD, arms=arms)
    examples = task.Task(WORDS, {}, (used("squad"),))
    table = tuned.Table(None, np.zeros((VOCAB, DIM)), GLOVE)
    scores = {"QVEC-CCA": 0.4, "Spearman on MC-30 (30 of 30 pairs)": 0.5, "QVEC": 0.1}

    def printed(config, *, whole=True):
        tests = data.Tests({}, None, whole)
        run = finished.Finished(config, examples, [table], tests, epath.Path(tmp_path))
        run.tuned.untuned = lambda table: scores
        run.tuned.tuned = lambda *_, **__: {m: [s, s] for m, s in scores.items()}
        return {
            (row.name.removeprefix("glove-100d/"), row.metric.split(" (")[0]): (
                row.published,
                row.source,
            )
            for row in analyse._table_rows(run, table)
            if row.published is not None
        }

    assert printed(config) == {
        ("untuned", "QVEC-CCA"): (0.37536, "Table 2"),
        ("finetune", "QVEC-CCA"): (0.37267, "Table 2"),
        ("delta-1e-4", "QVEC-CCA"): (0.37543, "Table 2"),
        ("untuned", "Spearman on MC-30"): (0.776, "Table 3, MC-30"),
        ("finetune", "Spearman on MC-30"): (0.764, "Table 3, MC-30"),
        ("delta-1e-4", "Spearman on MC-30"): (0.783, "Table 3, MC-30"),
    }
    assert not printed(config, whole=False)
    assert not printed(dataclasses.replace(config, epochs=1))
    assert not printed(dataclasses.replace(presets.RT_POLARITY, arms=arms))


def test_table_3_names_the_lists_of_the_catalogue():
    assert set(paper.PAPER_SIMILARITY) == set(sources.DATA_SETS["wordsim"].parts)
    signs = [
        np.sign(of["delta-1e-4"] - of["untuned"])
        for of in paper.PAPER_SIMILARITY.values()
    ]
    assert signs.count(-1) == 1  # RG-65, as the paper has it


@pytest.mark.slow
def test_inference_from_training_to_claims(tmp_path):
    arms = ("finetune", "fixed", "delta-1e-4", "delta-1e-5", "prox-1e-4")
    written = smoke("smoke-esim", tmp_path, arms=arms)
    accuracies = of(written, "test accuracy")
    assert 0 < min(accuracies.values()) <= 100
    assert {"majority class", "planted vectors/delta, c chosen on dev"} < {*accuracies}
    metrics = {row["metric"].split(" (")[0] for row in written["rows"]}
    assert {"QVEC", "QVEC-CCA", "Spearman on planted", "change of planted"} <= metrics
    assert {"positive among the polar neighbours of not", "rows moved"} <= metrics
    tuning = {f"planted vectors/{name}" for name in arms if name != "fixed"}
    for metric in ("change of QVEC-CCA", "L2,1 norm", "rows exactly at zero"):
        assert set(of(written, metric)) == tuning
    norms = of(written, "L2,1 norm")
    assert 0 < norms["planted vectors/delta-1e-4"] < norms["planted vectors/finetune"]
    words = of(written, "norm of the row")
    assert len(words) == 20 and list(words.values()) == sorted(words.values())[::-1]
    lists = written["config"]["neighbours_of_not"]
    assert set(lists) == {f"planted vectors/{x}" for x in ("untuned", "delta-1e-4")}
    assert all(word[0] in "+-" for of in lists.values() for word in of.split())
    figures = {path.name for path in (tmp_path / "figures").glob("*.svg")}
    for name in ("neighbours", "moved-words", "delta-norms", "delta-1e-4-intrinsic"):
        assert f"planted vectors-{name}.svg" in figures
    claims = {claim["claim"]: claim["evidence"] for claim in written["claims"]}
    assert all("trained on 540 sentence pairs" in e for e in claims.values())
    on_tables = [
        c for c in claims if "raises" in c or "lowers" in c or "finetune:" in c
    ]
    assert len(on_tables) == 4
    assert all("the paper's Tables 2 and 3 are of its BiDAF" in c for c in on_tables)
    assert {
        claim.split(" (")[0].removesuffix(" on planted-pairs") for claim in claims
    } == {
        "delta-1e-4 beats fixed",
        "delta-1e-4 beats finetune",
        "delta-1e-4 is at least the better of fixed and finetune",
        "fixed beats finetune",
        "delta with c chosen on dev beats fixed",
        "delta with c chosen on dev beats finetune",
        "prox-1e-4 beats delta-1e-4",
        "prox-1e-4 leaves the majority of words intact",
        "prox-1e-4 leaves most rows exactly at zero",
        "delta-1e-4 raises mean similarity",
        "delta-1e-4 raises QVEC-CCA",
        "finetune lowers QVEC-CCA",
        "delta-1e-4 beats finetune: mean similarity",
        "the words of the paper's Table 4 move farther than others of like frequency "
        "under delta-1e-4",
        "delta-1e-4 leaves fewer positive words around “not”",
    }
    again = smoke("smoke-esim", tmp_path, arms=arms)  # finds everything done
    assert again == written
    with pytest.raises(InputError, match="holds a run with learning_rate = 0.01, not"):
        smoke("smoke-esim", tmp_path, "--learning-rate", "0.5", arms=arms)


def test_reading_from_training_to_exported_tables(tmp_path):
    written = smoke("smoke-bidaf", tmp_path)
    f1, exact = of(written, "F1 (%)"), of(written, "exact match (%)")
    name = "planted vectors/delta-1e-4"
    assert 0 <= exact[name] <= f1[name] <= 100
    assert f"{name}, not averaged" in of(written, "QVEC-CCA")
    assert set(of(written, "rows exactly at zero")) == {name}
    claims = [claim["claim"] for claim in written["claims"]]
    assert f"delta-1e-4 raises QVEC-CCA ({name.split('/')[0]})" in claims
    assert "0 are not where they say" in written["config"]["answers_to_train_on"]
    base = synthetic.planted_questions().vectors
    tables = [
        read_word_vectors(
            tmp_path / "tables" / f"planted vectors-delta-1e-4{s}.safetensors"
        )
        for s in ("", "-raw")
    ]
    folder = tmp_path / "planted vectors" / "delta-1e-4" / "seed-0" / "best"
    saved = train.load_params(folder)
    words = (tmp_path / "words.txt").read_text().split("\n")
    for table, part in zip(tables, ("ema", "params"), strict=True):
        assert table.words == base.words
        change = table.matrix - base.matrix
        assert np.abs(change).max() > 1e-4
        row = words.index("what")
        expected = saved[part]["embed"]["delta"][row]
        np.testing.assert_allclose(
            change[base.index["what"]], expected, rtol=1e-4, atol=1e-6
        )
    assert not np.array_equal(tables[0].matrix, tables[1].matrix)


def test_programs_are_few():
    """Shapes of batches: the product of the buckets bounds how many are compiled."""
    config = dataclasses.replace(presets.SMOKE_ESIM, buckets=3, second_buckets=2)
    loaded = data.load(config)
    buckets = loaded.buckets(config)
    assert {name: len(of) for name, of in buckets.items()} == {
        "premise": 3,
        "hypothesis": 2,
    }
    plan = batching.Shuffled(loaded.split(config, 0).train, 32, 0, buckets)
    shapes = {
        tuple(plan(i)[name].shape for name in buckets)
        for i in range(3 * plan.steps_per_epoch)
    }
    assert len(shapes) <= 6


@pytest.mark.parametrize(
    ("preset", "changes", "problem"),
    [
        ("smoke-esim", ["--model.kind", "cnn"], "planted-pairs takes esim"),
        ("smoke", ["--model.kind", "bidaf"], "planted takes cnn or lstm"),
        ("smoke-bidaf", ["--protocol", "folds"], "has a split of its own"),
        ("smoke-bidaf", ["--share", "0"], "--share 0.0: expected more than 0"),
        ("smoke-esim", ["--share", "0.1"], "planted-pairs has no paragraphs"),
        ("smoke-esim", ["--protocol", "seeds"], "planted-pairs has no split"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path, preset, changes, problem):
    with pytest.raises(InputError, match=problem):
        smoke(preset, tmp_path, *changes)
