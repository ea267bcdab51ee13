"""The experiment on fuzzy sets: a user's files, printed tables, verdicts."""

import dataclasses
import json
from typing import get_args

import numpy as np
import pytest

from experiments.common import cli, texts
from experiments.feature_tuples import compare, data, main, model, printed
from experiments.feature_tuples import config as config_lib
from experiments.feature_tuples.config import PRESETS
from jaxemb.data import synthetic, vectors
from jaxemb.data.analogies import Analogy
from jaxemb.data.compounds import Compound
from jaxemb.errors import InputError
from jaxemb.eval.function_words import ranked
from jaxemb.eval.intervals import Interval
from jaxemb.eval.pair_scores import PairScores
from jaxemb.eval.ranked_analogy import RankedAnalogies
from jaxemb.spaces import fuzzy
from jaxemb.train import results


def config_of(*arguments):
    return cli.parse("feature_tuples", PRESETS, list(arguments))


@pytest.fixture
def world():
    return synthetic.planted_topics()


@pytest.fixture
def planted(monkeypatch):
    tests = data.load_tests(config_of("smoke"))
    monkeypatch.setattr(data, "load_tests", lambda config: tests)
    return tests


def test_a_users_own_vectors(planted, world, tmp_path):
    words = sorted({word for sentence in world.sentences for word in sentence})
    compound = planted.compounds["planted"][0]
    words.append(compound.joined)
    rows = np.random.default_rng(0).normal(size=(len(words), 12)).astype(np.float32)
    path = tmp_path / "my.own.vec"
    vectors.write_word_vectors(path, vectors.WordVectors(tuple(words), rows))
    config = config_of(
        *("custom", "--vectors", str(path), "--workdir", str(tmp_path / "run")),
        *("--variants", "max", "--frequent-rows", "60", "--resamples", "50"),
        *("--candidates", "50", "--no-progress"),
    )
    written = main.run(config)
    assert written == results.read(tmp_path / "run")
    assert written["config"]["vocabulary"] == {"my.own.vec": len(words)}
    by_name = {(row["name"], row["metric"]): row for row in written["rows"]}
    row = by_name["my.own.vec, cosine", "planted, Spearman (150 of 150)"]
    low, high = row["interval"]  # over pairs, for want of seeds
    assert low < row["measured"] < high
    assert ("my.own.vec, max: CE, Bernoulli") in {name for name, _ in by_name}
    assert any("constituents, Pearson" in c["claim"] for c in written["claims"])
    names = ("hubs", "function-words", "analogies-my.own.vec")
    for name in names:
        assert (tmp_path / "run" / "figures" / f"{name}.svg").exists()
    told = json.loads((tmp_path / "run" / "examples.json").read_text())
    assert told == written["config"]["examples"]
    assert set(told["neighbours"]) == set(planted.expressions)
    for row in written["config"]["running totals"]["my.own.vec, sets"]:
        parts = [part for part in row[2:] if part is not None]
        assert min(parts) <= row[1] <= max(parts)


def test_what_a_table_cannot_tell_is_not_scored(planted, world, tmp_path):
    words = sorted({word for sentence in world.sentences for word in sentence})
    rows = np.random.default_rng(0).normal(size=(len(words), 12))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    path = tmp_path / "unit.vec"
    table = vectors.WordVectors(tuple(words), rows.astype(np.float32))
    vectors.write_word_vectors(path, table)
    config = config_of(
        *("custom", "--vectors", str(path), "--workdir", str(tmp_path / "run")),
        *("--variants", "softmax-rows", "--resamples", "50", "--no-progress"),
    )
    written = main.run(config)
    assert written["config"]["rows of length 1"] == ["unit.vec"]
    names = {row["name"] for row in written["rows"]}
    # Lengths are no news, nor are the first 30,000 rows of fewer.
    assert not any("unit rows" in name or "by length" in name for name in names)
    metrics = {row["metric"] for row in written["rows"]}
    assert not any("most frequent words only" in metric for metric in metrics)
    claims = {claim["claim"] for claim in written["claims"]}
    for text in (
        "softmax-rows: CE, Bernoulli beats cosine on planted (unit.vec)",
        "softmax-rows: sets, Bernoulli: more analogies than by 3CosAdd (unit.vec)",
        "entropy, softmax-rows: more function words than by frequency in the first 15 "
        "(unit.vec)",
    ):
        assert text in claims
    assert not any("joined" in claim for claim in claims)  # no compound is a word


def test_a_users_own_text(planted, world, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(" ".join(s).upper() + "\n" for s in world.sentences))
    arguments = (
        *("custom", "--corpus", str(path), "--workdir", str(tmp_path / "run")),
        *("--dims", "8", "--seeds", "1", "--sample", "0", "--update", "128"),
        *("--hub-queries", "20", "--variants", "mean", "--resamples", "20"),
        "--no-progress",
    )
    written = main.run(config_of(*arguments))
    assert [d["name"] for d in written["data"]] == ["text.txt"]
    kept = tmp_path / "run" / "8-d" / "seed-0" / "vectors.safetensors"
    table = vectors.read_word_vectors(kept)
    assert table.dim == 8 and any("_" in word for word in table.words)  # joined
    first = written["rows"][0]
    assert first["name"] == "8-d, cosine" and first["measured"] > 0.5
    again = main.run(config_of(*arguments))  # nothing is trained twice
    assert again["rows"] == written["rows"]
    with pytest.raises(InputError, match="holds a run with window = 5, not 3"):
        main.run(config_of(*arguments, "--window", "3"))


def test_mistakes_are_named(tmp_path):
    for arguments in ((), ("--vectors", "a.vec", "--corpus", "mixed")):
        config = config_of("custom", *arguments, "--workdir", str(tmp_path))
        with pytest.raises(InputError, match="expected --vectors, tables to read, or"):
            data.load_spaces(config, None, tmp_path)
    for settings, problem in (
        ({"update": 100}, "--update 100: expected a multiple of 16"),
        ({"seeds": 0}, "--seeds 0: expected 1 or more"),
        ({"frequent_rows": 0}, "--frequent-rows 0: expected 1 or more"),
        ({"dims": ()}, "--dims: expected one number or more"),
        ({"tops": (0, 5)}, "--tops: expected one number or more"),
    ):
        with pytest.raises(InputError, match=problem):
            dataclasses.replace(config_of("custom"), **settings)


def test_words_in_another_language_are_refused(planted, tmp_path):
    path = tmp_path / "other.vec"
    vectors.write_word_vectors(
        path, vectors.WordVectors(("eins", "zwei"), np.eye(2, dtype=np.float32))
    )
    config = config_of("custom", "--vectors", str(path), "--workdir", str(tmp_path))
    with pytest.raises(InputError, match="other.vec: holds next to none of the pairs"):
        main.run(config)


def test_table_9_has_one_total_that_cannot_be():
    [one] = printed.impossible_totals()
    assert (one.row, one.column, one.printed) == ("past tense", "sets 100", 27.72)
    assert one.implied == pytest.approx(21.72, abs=0.05)  # one digit was misprinted
    kept = {k: v for k, v in printed.ANALOGIES.items() if k != "past tense"}
    assert printed.impossible_totals(kept) == []
    # The share of semantic questions, as each column of a row has it, is the same.
    for row in kept.values():
        apart = [(s, m, o) for s, m, o in zip(*row, strict=True) if abs(m - s) > 4]
        shares = [(o - s) / (m - s) for s, m, o in apart]
        assert len(shares) < 2 or np.ptp(shares) < 0.005


def test_printed_entropies_are_above_their_bound():
    for size in printed.VOCABULARIES.values():
        assert min(printed.ENTROPIES.values()) > 100 * printed.fuzzy.entropy_bound(
            *size
        )
    assert "27.72" in printed.notes()["running totals"]


def test_printed_figures_are_of_rows_that_sum_to_one():
    # 200 is also the size of the authors' example.
    assert printed.fitting_dimensions() == [200]
    even = printed.even_rows(200)
    for found in printed.ENTROPIES.values():  # nothing that sums to 1 has more
        assert 0.99 * even["entropy"] < found < even["entropy"]
    for name, figures in printed.DIVERGENCES.items():
        for found in figures:  # a cross-entropy is the least where sets are the same
            assert even[name] < found < 1.003 * even[name]
    # Not as the paper writes them: without the terms of absent features.
    word = np.full(200, 1 / 200)
    for pair, [found] in (
        ((word**2, word), printed.DIVERGENCES["intersection from word"]),
        ((word, word**2), printed.DIVERGENCES["word from intersection"]),
    ):
        for measure in (fuzzy.kl, fuzzy.cross_entropy):
            assert abs(measure(*pair) / found - 1) > 0.05


def test_normalisers_of_the_config_are_those_of_the_library():
    assert set(get_args(config_lib.Normaliser)) == set(get_args(fuzzy.Normaliser))
    config = config_of("sgns")
    assert {config.normaliser, *config.variants} == set(get_args(fuzzy.Normaliser))


def test_a_verdict_is_what_items_and_seeds_both_say():
    above, wide = Interval(0.2, 0.1, 0.3), Interval(0.2, -0.5, 0.9)
    below = Interval(-0.2, -0.3, -0.1)
    assert compare.Gap(above, None, "x").verdict == "supported"
    assert compare.Gap(above, above, "x").verdict == "supported"
    assert compare.Gap(above, wide, "x").verdict == "inconclusive"
    assert compare.Gap(above, below, "x").verdict == "inconclusive"
    assert compare.Gap(below, below, "x").verdict == "contradicted"


def test_gaps_are_paired_by_item_and_by_seed():
    config = config_of("smoke")
    rng = np.random.default_rng(0)
    human = rng.normal(size=50)
    good = [PairScores(human + rng.normal(size=50) / 4, human) for _ in range(3)]
    poor = [PairScores(rng.normal(size=50), human) for _ in range(3)]
    gap = compare.correlations(config, [(1.0, good), (-1.0, poor)])
    rho = [[one.correlation(resamples=0).mean for one in many] for many in (good, poor)]
    assert gap.items.mean == pytest.approx(np.mean(rho[0]) - np.mean(rho[1]))
    assert gap.seeds.mean == pytest.approx(gap.items.mean)
    assert gap.verdict == "supported"
    inside = [np.array([1.0, 1, 0, 0.5]), np.array([1.0, 1, 1, 1])]
    gap = compare.shares(config, inside, "pairs")
    assert gap.items.mean == pytest.approx(100 * (np.mean([1, 1, 0.5, 0.75]) - 0.5))
    assert gap.seeds.mean == pytest.approx(gap.items.mean)
    assert gap.over == "4 pairs"


def answered(questions, *ranks):
    none = np.full((len(questions), 5), -1)
    return [
        RankedAnalogies(np.array(one, float), none, {"all": questions}) for one in ranks
    ]


def test_analogies_are_resampled_by_word_pairs():
    config = config_of("smoke")
    pairs = [(f"a{i}", f"b{i}") for i in range(8)]
    questions = [Analogy(*p, *q) for p in pairs for q in pairs if p != q]
    # One pair of eight is answered by the better system alone, with all the others.
    lucky = [1.0 if "a0" in q else np.inf for q in questions]
    lost = [np.inf] * len(questions)
    lost[-1] = np.nan  # a word that one table lacks
    ours, theirs = answered(questions, lucky, lucky), answered(questions, lost, lost)
    gap = compare.analogies(config, [(1.0, ours), (-1.0, theirs)])
    assert gap.items.mean == pytest.approx(100 * 14 / 55)
    assert gap.over == "the 8 word pairs of 55 questions"
    assert gap.items.low == 0  # the pair may not be drawn at all
    assert gap.verdict == "inconclusive"
    both = compare.analogies(
        config, [(1.0, ours), (-1.0, theirs), (-1.0, ours), (1.0, theirs)]
    )
    assert (both.items.low, both.items.high) == (0, 0)


def test_rankings_are_resampled_by_words():
    config = config_of("smoke")
    words = tuple(f"w{i:02}" for i in range(60))
    known = words[:20]
    values = -np.arange(60.0)
    good, poor = (
        [ranked(words, sign * values, known, least=60) for _ in range(2)]
        for sign in (1, -1)
    )
    gap = compare.rankings(config, good, poor, 10)
    assert gap.items.mean == gap.seeds.mean == 10
    assert gap.verdict == "supported" and gap.over == "60 words"
    same = compare.rankings(config, good, good, 10)
    assert (same.items.low, same.items.high) == (0, 0)


def test_every_reading_of_the_measures_is_a_system():
    config = config_of("sgns")
    systems = model.similarity_systems(config)
    assert [s.name for s in systems[:3]] == ["cosine", "KL", "CE"]
    assert len({s.name for s in systems}) == len(systems) == 1 + 12 + (5 + 1) * 4
    assert {s.measure for s in systems[1:13]} == {
        model.Measure(kind, bernoulli, direction)
        for kind in ("kl", "cross-entropy")
        for bernoulli in (False, True)
        for direction in ("forward", "backward", "mean")
    }


def test_punctuation_is_left_out_of_tokenised_text():
    text = [["The", "@-@", "rock", "'s", ",", "."], ["="], ["1.5", "%"]]
    assert list(texts._words_only(text)) == [["The", "rock", "'s"], ["1.5"]]
    assert Compound("rock", "band", 1.0).joined == "rock_band"
