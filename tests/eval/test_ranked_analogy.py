"""Analogies by products: planted offsets, gensim, and sums written out."""

import numpy as np
import pytest

from jaxemb.data.analogies import Analogy
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import analogy
from jaxemb.eval import ranked_analogy as ranked
from jaxemb.spaces import fuzzy
from jaxemb.spaces.fuzzy import FuzzyEmbedding, Measure

COUNT, DIM = 60, 6
WORDS = tuple(f"w{i}" for i in range(COUNT))


@pytest.fixture
def vectors():
    rows = np.random.default_rng(0).normal(size=(COUNT, DIM))
    return WordVectors(WORDS, rows.astype(np.float32))


@pytest.fixture
def sections():
    rng = np.random.default_rng(1)
    drawn = [Analogy(*rng.choice(WORDS, 4, replace=False)) for _ in range(60)]
    drawn[3] = drawn[3]._replace(d="absent")
    return {"one": drawn[:25], "gram2-two": drawn[25:]}


def ranks_by_loops(score, sections):
    """The place of each fourth word, given the scores of all words for a question."""
    found = []
    for question in (q for rows in sections.values() for q in rows):
        if question.d not in WORDS:
            found.append(np.nan)
            continue
        rest = [w for w in WORDS if w not in question[:3]]
        scores = dict(zip(WORDS, score(question), strict=True))
        place = 1 + sum(scores[w] >= scores[question.d] for w in rest) - 1
        found.append(float(place) if place <= 5 else np.inf)
    return found


def test_offsets_are_answered_as_by_loops_and_by_gensim(vectors, sections, tmp_path):
    system = ranked.three_cos_add(vectors)
    found = ranked.ranked_analogies(vectors, sections, system)
    unit = {w: np.float64(vectors[w]) / np.linalg.norm(vectors[w]) for w in WORDS}

    def score(question):
        a, b, c, _ = question
        return [float((unit[b] - unit[a] + unit[c]) @ unit[w]) for w in WORDS]

    expected = ranks_by_loops(score, sections)
    np.testing.assert_array_equal(found.ranks, expected)
    ours = analogy.analogies(vectors, sections)
    assert found.at(1).sections == ours.sections
    assert found.at(1).whole == ours.whole
    path = tmp_path / "questions.txt"
    lines = [
        f": {n}\n" + "".join(f"{' '.join(q)}\n" for q in r) for n, r in sections.items()
    ]
    path.write_text("".join(lines))
    theirs, by_section = vectors.to_gensim().evaluate_word_analogies(str(path))
    assert found.at(1).whole.accuracy == pytest.approx(theirs)
    assert found.at(1).sections[0].correct == len(by_section[0]["correct"])


@pytest.mark.parametrize("direction", ["forward", "backward", "mean"])
@pytest.mark.parametrize("normaliser", ["softmax", "max"])
def test_sets_are_answered_as_by_loops(vectors, sections, direction, normaliser):
    embedding = FuzzyEmbedding.from_vectors(vectors.matrix, normaliser)
    p = dict(zip(WORDS, embedding.p, strict=True))
    for measure in (
        Measure("kl", direction=direction),
        Measure("cross-entropy", bernoulli=True, direction=direction),
    ):
        system = ranked.fuzzy_analogy(embedding, measure)
        found = ranked.ranked_analogies(vectors, sections, system)

        def score(question, measure=measure):
            a, b, c, _ = question
            made = np.maximum(np.minimum(p[b] + p[c], 1) - p[a], 0)
            alike = measure.similarity(np.tile(made, (COUNT, 1)), embedding.p)
            return np.round(alike, 11)

        np.testing.assert_array_equal(found.ranks, ranks_by_loops(score, sections))


def test_exact_offsets_of_unit_rows_are_all_found_by_3cosadd():
    # A word is what it means beside one of two marks, and has length 1 with either.
    meanings = np.random.default_rng(3).normal(size=(20, 30))
    meanings *= 0.8 / np.linalg.norm(meanings, axis=1, keepdims=True)
    marks = np.repeat(0.6 * np.eye(2), 20, axis=0)
    rows = np.hstack([np.tile(meanings, (2, 1)), marks]).astype(np.float32)
    vectors = WordVectors(tuple(f"w{i}" for i in range(40)), rows)
    pairs = [(f"w{i}", f"w{i + 20}") for i in range(20)]
    sections = {"all": [Analogy(*p, *q) for p in pairs for q in pairs if p != q]}
    found = ranked.ranked_analogies(vectors, sections, ranked.three_cos_add(vectors))
    np.testing.assert_array_equal(found.ranks, 1)
    # Each pair is one unit, wherever it stands in a question.
    expected = [[i, j] for i in range(20) for j in range(20) if i != j]
    names = {tuple(row): q for row, q in zip(found.pairs, sections["all"], strict=True)}
    assert len(names) == len(expected) and len(np.unique(found.pairs)) == 20
    for (i, j), q in names.items():
        assert names[j, i][:2] == q[2:] and names[j, i][2:] == q[:2]


def test_planted_offsets_are_all_found_and_totals_lie_between():
    rng = np.random.default_rng(2)
    base, offset = rng.normal(size=(20, 30)), 3 * rng.normal(size=30)
    rows = np.concatenate([base, base + offset]).astype(np.float32)
    vectors = WordVectors(tuple(f"w{i}" for i in range(40)), rows)
    pairs = [(f"w{i}", f"w{i + 20}") for i in range(20)]
    questions = [Analogy(*p, *q) for p in pairs for q in pairs if p != q]

    # Exact offsets of rows as they are; rows of length one only bend them.
    def exact(asked):
        a, b, c = (rows[asked[:, i]].astype(np.float64) for i in range(3))
        target, every = b - a + c, rows.astype(np.float64)
        ones = np.ones((len(target), 1))
        half = -np.sum(every**2, axis=1, keepdims=True) / 2
        return fuzzy.Products(np.hstack([target, ones]), np.hstack([every, half]))

    sections = {"plain": questions[:100], "gram1": questions[100:150]}
    sections["gram2"] = questions[150:]
    found = ranked.ranked_analogies(vectors, sections, exact)
    assert found.at(1).whole.accuracy == 1
    other = ranked.ranked_analogies(
        vectors, sections, ranked.fuzzy_analogy(FuzzyEmbedding.from_vectors(rows))
    )
    for one in (found, other):
        for k in (1, 5):
            for row in analogy.cumulative(one.at(k)):
                bounds = [row["semantic"], row["syntactic"]]
                known = [b for b in bounds if not np.isnan(b)]
                assert min(known) <= row["total"] <= max(known)
        assert one.at(5).whole.correct >= one.at(1).whole.correct


def test_words_that_tie_are_no_answer(vectors, sections):
    def nothing(asked):
        return fuzzy.Products(np.zeros((len(asked), DIM)), np.float64(vectors.matrix))

    found = ranked.ranked_analogies(vectors, sections, nothing)
    assert found.at(5).whole.correct == 0
    assert found.at(5).whole.covered == 59


def test_first_rows_are_searched_and_known(vectors, sections):
    system = ranked.three_cos_add(vectors)
    found = ranked.ranked_analogies(vectors, sections, system, first_rows=30)
    short = WordVectors(WORDS[:30], vectors.matrix[:30])
    expected = ranked.ranked_analogies(short, sections, ranked.three_cos_add(short))
    np.testing.assert_array_equal(found.ranks, expected.ranks)
    assert found.answers.max() < 30


def test_what_is_not_offered_is_named(vectors, sections):
    system = ranked.three_cos_add(vectors)
    with pytest.raises(InputError, match="expected one of fallback, exact, lower"):
        ranked.ranked_analogies(vectors, sections, system, case="ignore")
    found = ranked.ranked_analogies(vectors, sections, system)
    with pytest.raises(InputError, match="k is 6; expected 1 to 5"):
        found.at(6)
