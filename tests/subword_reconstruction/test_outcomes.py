"""From students and taggers to rows, claims and the predictions of the card."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
from etils import epath

from experiments.common.findings import Findings
from experiments.subword_reconstruction import config as presets
from experiments.subword_reconstruction import main, reconstruct, students
from jaxemb.errors import InputError
from tests.subword_reconstruction.shared import SMOKE, config_of

RESULTS = pathlib.Path(presets.__file__).parent / "results"

_PRINTED = ("mean similarity after 50 epochs", "D1", "random")

_ANALOGIES = (students.SYNTACTIC, students.SEMANTIC, students.OVERLAP)


def test_verdicts_are_of_paired_differences():
    """By hand: t of two degrees of freedom at 97.5 % is 4.3027."""
    findings = Findings(paper=presets.PAPER)
    better, worse = [3.0, 4.0, 6.0], [1.0, 2.0, 3.0]
    findings.beats("a", better, worse, printed=_PRINTED)
    findings.beats("b", worse, better)
    findings.beats("c", worse, better, margin=5.0)
    verdicts = [claim.verdict for claim in findings.claims]
    assert verdicts == ["supported", "contradicted", "supported"]
    half = 4.3027 * np.std([2, 2, 3], ddof=1) / np.sqrt(3)
    low, high = 7 / 3 - half, 7 / 3 + half
    evidence = findings.claims[0].evidence
    assert f"[{low:.3g}, {high:.3g}], 3 seeds" in evidence
    assert evidence.endswith("in the paper 13 against 3")
    planted = Findings()
    planted.beats("a", better, worse, printed=_PRINTED)
    assert "paper" not in planted.claims[0].evidence


def test_the_papers_figures_stand_beside_its_own_size_only():
    names = ("similarity", "analogies", "tagging", "narrow", "smoke")
    own = [name for name in names if presets.PRESETS[name][1].is_near_the_paper]
    assert own == ["similarity", "analogies", "tagging"]
    assert config_of("custom").is_near_the_paper
    assert not config_of("custom", "--teacher", "my.vec").is_near_the_paper


def test_a_claim_tells_the_papers_epochs_where_they_are_others():
    """Its figures of analogies are of students of 10 epochs."""

    def claim(config, head):
        school = students.Students.__new__(students.Students)
        school._config, school._head = config, head
        school._findings = Findings(paper=presets.PAPER)
        metric = students.SYNTACTIC
        scores = {"D1": {metric: [1.0, 2.0]}, "random": {metric: [3.0, 5.0]}}
        school._beats(metric, scores, "random", "D1")
        (found,) = school._findings.claims
        return found.claim.partition("(%) ")[2], "65.21" in found.evidence

    twenty = dataclasses.replace(SMOKE, epochs=(20,))
    ten = dataclasses.replace(SMOKE, epochs=(10,))
    more = "(highway head, 20 epochs; the paper's 10)"
    assert claim(twenty, "highway") == (more, True)
    assert claim(ten, "highway") == ("(highway head, 10 epochs)", True)
    assert claim(twenty, "relu") == ("(relu head, 20 epochs)", False)


def test_the_row_of_an_epoch_is_the_score_after_it(world, tmp_path):
    """Against students that stop there, scored from outside."""
    wanted = {
        "studies": ("similarity", "analogies"),
        "heads": ("relu",),
        "distances": ("D1",),
        "permuted": (),
        "seeds": 2,
    }
    config = dataclasses.replace(SMOKE, **wanted)
    findings = Findings()
    workdir = epath.Path(tmp_path)
    own = students.Students(config, world, "relu", workdir, findings)
    own.measure()
    x = world.teacher.vectors.matrix
    metrics = reconstruct.LOSS, reconstruct.FLOOR, reconstruct.COSINE
    rows = {(row.name, row.metric): row.values for row in findings.rows}
    for epoch in (0, 2, 4):
        scores = []
        for seed in range(2):
            stopped = dataclasses.replace(config, epochs=(epoch,))
            school = reconstruct.School(stopped, world.teacher, "relu", world.tests)
            one = reconstruct.Taught("relu", "D1", seed)
            place = workdir / f"{epoch}-{seed}"
            params = school.teach(one, place) if epoch else school.untaught(seed)
            table = school.embed(params)
            answers = school.analogies(school.table(params))
            scores.append({**school.nearness(table, "D1", x), **answers})
        for metric in metrics:
            values = [score[metric] for score in scores]
            np.testing.assert_allclose(own._at("D1", epoch, metric), values, rtol=1e-5)
            found = rows["D1", f"{metric} after {epoch} epochs"]
            np.testing.assert_allclose(found, values, atol=1e-4)
        values = [score[students.SYNTACTIC] for score in scores]
        after = f"{students.SYNTACTIC} after {epoch} epochs" if epoch == 2 else None
        who = "D1" if epoch else "random"
        found = rows[who, after or students.SYNTACTIC]
        np.testing.assert_allclose(found, values, atol=1e-4)
    floor = np.maximum(-x, 0).sum(axis=1).mean()
    assert rows["D1", reconstruct.LEAST] == (pytest.approx(floor, abs=1e-3),)
    assert rows["D1", reconstruct.FLOOR] == rows["D1", f"{metrics[1]} after 4 epochs"]
    # The README has the last epoch only.
    curves = {
        reconstruct.LEAST,
        *(f"{m} after {e} epochs" for m in metrics for e in (0, 2, 4)),
    }
    assert curves <= {row.metric for row in findings.rows}
    assert not curves & set(findings.shown)
    assert (workdir / "figures" / "relu-reconstruction.svg").exists()


def predicted(settings):
    """Claims of check 11, each with the rows that it is of."""
    distances, epochs = settings["distances"], settings["epochs"]
    if settings["preset"] == "similarity":
        metric = "mean similarity"
        for epoch in epochs:
            after = "" if epoch == epochs[-1] else f" after {epoch} epochs"
            where = f"{metric} (relu head, {epoch} epochs"
            for name in distances:
                one, other = (name, metric + after), ("random", metric)
                yield f"{name} beats random: {where}", one, other
            one, other = (("D1" + kind, metric + after) for kind in ("", ", permuted"))
            yield f"D1 beats D1, permuted: {where}", one, other
    if settings["preset"] == "analogies":
        pairs = [("random", name, "syntactic analogies (%)") for name in distances]
        pairs += [("D1", "D1, permuted", metric) for metric in _ANALOGIES]
        for better, worse, metric in pairs:
            claim = (
                f"{better} beats {worse}: {metric} (highway head, {epochs[-1]} epoch"
            )
            one, other = ((f"highway/{name}", metric) for name in (better, worse))
            yield claim, one, other
    if settings["preset"] == "tagging":
        metric = "test accuracy (%)"
        control = "CHAR(D1, permuted)"
        pairs = [(f"CHAR({distance})", "CHAR") for distance in distances]
        for better, worse in [*pairs, ("CHAR(D1)", control), (control, "CHAR")]:
            claim = f"{better} beats {worse}: {metric}"
            yield claim, (better, metric), (worse, metric)


@pytest.mark.parametrize("preset", ["similarity", "analogies", "tagging"])
def test_committed_results_answer_every_prediction(preset):
    """Check 11: whatever the verdict, it is told, and it is that of the rows.

    So are those on the control. Claims begin as predicted: what they tell of the paper
    may follow.
    """
    scipy_stats = pytest.importorskip("scipy.stats")
    found = json.loads((RESULTS / f"{preset}.json").read_text())
    rows = {(r["name"], r["metric"]): r["values"] for r in found["rows"]}
    verdicts = {c["claim"]: c["verdict"] for c in found["claims"]}
    settings = found["config"]
    assert settings["teacher"] == "glove-100d"
    assert settings["words"] == 20_000 and settings["seeds"] >= 3
    assert settings["epochs"][0] >= 10
    wanted = list(predicted(settings))
    assert len(wanted) >= 6
    for claim, better, worse in wanted:
        gap = scipy_stats.ttest_rel(rows[better], rows[worse]).confidence_interval()
        says = "supported" if gap.low > 0 else "contradicted" if gap.high < 0 else ""
        told = [verdict for full, verdict in verdicts.items() if full.startswith(claim)]
        assert told == [says or "inconclusive"], claim


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--epochs", "4", "2"), "--epochs .*: expected ascending"),
        (("--epochs", "0"), "--epochs .*: expected ascending"),
        (("--curve-every", "3"), "--curve-every 3: expected to divide"),
        (("--permuted", "Dinf"), "--permuted Dinf: not in --distances"),
        (("--words", "0"), "--words 0: expected 1 or more"),
        (("--outliers", "1"), "--outliers 1.0: expected 0 to below 1"),
        (("--distances",), "--distances : expected one or more"),
        (("--distances", "D1", "D1"), "--distances D1 D1: .* each once"),
        (("--heads",), "--heads : expected one or more"),
        (("--heads", "highway"), "--heads highway: expected relu, for tagging"),
        (
            ("--studies", "outliers", "--heads", "relu", "linear"),
            "--heads relu linear: expected one, for outliers",
        ),
        (("--tagging.epochs", "0"), "--tagging.epochs 0: expected 1 or more"),
        (("--tagging.held-out", "0"), "--tagging.held-out 0: expected 1 or more"),
        (("--tagging.sentences", "0"), "--tagging.sentences 0: expected 1 or more"),
        (("--batch-size", "0"), "--batch-size 0: expected 1 or more"),
        (
            ("--linear-words", "0"),
            "--linear-words 0: expected 36 or more, as --hidden is 8",
        ),
        (
            ("--linear-words", "403", "--hidden", "100"),
            "--linear-words 403: expected 404 or more, as --hidden is 100",
        ),
        (
            ("--hidden", "100", "--linear-words", "404"),
            "--words 20000: expected 404 or more words .*, found 125",
        ),
        (("--tagging.dropouts",), "--tagging.dropouts : expected one or more"),
    ],
)
def test_mistakes_are_named(arguments, problem, tmp_path):
    config = config_of("smoke", *arguments, "--workdir", str(tmp_path))
    with pytest.raises(InputError, match=problem):
        main.run(config)
