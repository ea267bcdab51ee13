"""Words as fuzzy sets, looked at: expressions, hubs and figures."""

import numpy as np
import pytest

from jaxemb.analysis import figures
from jaxemb.analysis import fuzzy as shown
from jaxemb.analysis.fuzzy import Expression, FuzzySpace
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval.analogy import Accuracies, Section
from jaxemb.eval.intervals import Interval
from jaxemb.spaces import fuzzy
from jaxemb.spaces.fuzzy import Measure

WORDS = ("rose", "violet", "noble", "metal", "british", *(f"w{i}" for i in range(45)))


@pytest.fixture
def space():
    rows = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)
    return FuzzySpace.of(WordVectors(WORDS, rows))


def test_expressions_are_taken_from_left_to_right(space):
    p = dict(zip(WORDS, space.embedding.p, strict=True))
    cases = {
        "rose": p["rose"],
        "rose | violet": p["rose"] + p["violet"] - p["rose"] * p["violet"],
        "rose ∩ violet": p["rose"] * p["violet"],
        "rose - violet": np.maximum(p["rose"] - p["violet"], 0),
        "rose + noble - metal": np.maximum(p["rose"] + p["noble"] - p["metal"], 0),
        r"rose ⊔ noble \ metal": np.maximum(p["rose"] + p["noble"] - p["metal"], 0),
    }
    for text, expected in cases.items():
        np.testing.assert_allclose(space.set_of(text), expected)
    assert space.knows("rose | violet") and not space.knows("rose | tulip")


@pytest.mark.parametrize(
    "text", ["", "rose |", "rose violet", "rose ? violet", "| rose"]
)
def test_what_is_no_expression_is_named(text):
    with pytest.raises(InputError, match="expected words with"):
        Expression.parse(text)


def test_neighbours_are_the_most_alike(space):
    for measure in (fuzzy.PRINTED, Measure("kl", True, "mean")):
        target = space.set_of("noble & metal")
        scores = {
            w: float(measure.similarity(target, space.set_of(w)))
            for w in WORDS
            if w not in ("noble", "metal")
        }
        expected = sorted(scores, key=scores.__getitem__, reverse=True)[:7]
        found = space.neighbours("noble & metal", 7, measure)
        assert [word for word, _ in found] == expected
        assert dict(found) == pytest.approx({w: scores[w] for w in expected})


def test_raw_neighbours_are_those_of_sums(space):
    found = space.raw_neighbours("noble & metal", 4)
    # gensim's definition but for unit rows: here vectors are added as they are.
    total = space.vectors["noble"] + space.vectors["metal"]
    keyed = space.vectors.to_gensim().similar_by_vector(total, topn=8)
    expected = [w for w, _ in keyed if w not in ("noble", "metal")][:4]
    assert [word for word, _ in found] == expected
    assert space.raw_neighbours("rose | violet") is None
    with pytest.raises(InputError, match="'tulip' is not among"):
        space.neighbours("tulip")


def test_asymmetry_and_inclusion(space):
    [found] = shown.asymmetry_report(space, [("rose & noble", "metal")], Measure("kl"))
    a, b = space.set_of("rose & noble"), space.set_of("metal")
    assert found.forward == pytest.approx(float(np.sum(a * np.log(a / b))))
    assert found.backward == pytest.approx(float(np.sum(b * np.log(b / a))))
    rows = space.vectors.matrix
    scores = shown.inclusion_scores(space, [("rose", "violet"), ("violet", "rose")])
    np.testing.assert_allclose(scores[0], np.mean(rows[0] <= rows[1]))
    assert scores.sum() == pytest.approx(1)


def test_hubs_are_counted_as_by_loops(space):
    for measure in (None, fuzzy.PRINTED):
        hubs = shown.hub_report(space, measure, k=3, queries=20, seed=1)
        asked = np.random.default_rng(1).permutation(len(WORDS))[:20]
        counts = dict.fromkeys(WORDS, 0)
        for row in asked:
            near = space.raw_neighbours if measure is None else space.neighbours
            for word, _ in near(WORDS[row], 3):
                counts[word] += 1
        np.testing.assert_array_equal(hubs.counts, list(counts.values()))
        assert hubs.counts.sum() == 60
        assert hubs.never == np.mean(np.array(list(counts.values())) == 0)
        assert hubs.top(1)[0][1] == max(counts.values())
        assert hubs.skewness > 0


def test_figures(space):
    ranking = shown.top_entropy_words(space, ["rose"], least=10)
    entropies = [float(fuzzy.entropy(space.set_of(w))) for w in ranking.words]
    assert entropies == sorted(entropies, reverse=True)
    drawn = [
        shown.function_word_curves({"entropy": ranking}),
        shown.hub_histogram({"cosine": shown.hub_report(space, None, k=2)}),
        shown.dimension_sweep(
            {
                "cosine": {20: Interval(0.2, 0.1, 0.3), 50: Interval(0.3, 0.2, 0.4)},
                "KL": {20: Interval(0.2, np.nan, np.nan), 50: Interval(0.1, 0.0, 1.0)},
            }
        ),
    ]
    for figure, text in zip(
        drawn, ("function words", "2 neighbours", "Spearman"), strict=True
    ):
        assert text in figures.to_svg(figure)


def test_sections_without_a_score_are_not_drawn():
    scores = [Section("known", 0.5, 0.2, 0.8, 2, 4, 4, 4)]
    scores.append(Section("absent", np.nan, np.nan, np.nan, 0, 0, 0, 9))
    found = Accuracies(scores[0], tuple(scores), None, None)
    drawn = figures.to_svg(shown.section_accuracies({"cosine": found}))
    assert "known" in drawn and "50.0" in drawn
    assert "absent" not in drawn
