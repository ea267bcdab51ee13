"""What models of similarity know of analogies."""

import dataclasses

import numpy as np
import pytest

from experiments.common import cli
from experiments.multitask_meta_embedding import analogies, data, training
from experiments.multitask_meta_embedding.config import SMOKE
from experiments.multitask_meta_embedding.similarity import Measurer
from experiments.multitask_meta_embedding.training import Run
from jaxemb.data import sources
from jaxemb.data.analogies import Analogy, read_analogies
from jaxemb.data.semeval2012 import Relation
from jaxemb.eval import analogy, intervals, kinds
from tests.multitask_meta_embedding.shared import SETTINGS


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
