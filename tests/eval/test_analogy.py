import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jaxemb.data import analogies as reader
from jaxemb.data import sources
from jaxemb.data.analogies import Analogy
from jaxemb.data.vectors import WordVectors, read_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval import analogy, search

CASED = ["paris", "Paris", "PARIS", "rome", "oslo", "Oslo", "king", "Queen"]
WORDS = [*CASED, *(f"w{i}" for i in range(22))]


def table(words=WORDS, seed=0, dim=6):
    rows = np.random.default_rng(seed).normal(size=(len(words), dim))
    return WordVectors(tuple(words), rows.astype(np.float32))


def made_sections(words, seed=1, n=30):
    rng = np.random.default_rng(seed)
    names = ["capitals", "gram1-made", "gram2-made"]
    return {
        name: [
            Analogy(*map(str, rng.choice(words, 4, replace=False))) for _ in range(n)
        ]
        for name in names
    }


def write(path, sections):
    lines = [
        line
        for name, rows in sections.items()
        for line in (f": {name}", *map(" ".join, rows))
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Several batches and blocks, the last of each shorter."""
    monkeypatch.setattr(search, "BATCH", 16)
    monkeypatch.setattr(search, "BLOCK", 13)


def by_definition(vectors, question, method, epsilon=1e-3, normalise=True):
    """The fourth word by a loop over candidates."""
    unit = {w: vectors[w] / np.linalg.norm(vectors[w]) for w in vectors}
    own = unit if normalise else {w: vectors[w] for w in vectors}
    a, b, c = question[:3]
    target = own[b] - own[a] + own[c]
    best, answer = -math.inf, None
    for word in vectors:
        if word in (a, b, c):
            continue
        if method == "3cosadd":
            score = unit[word] @ target
        elif method == "norm":
            score = -np.linalg.norm(own[b] - own[a] - own[word] + own[c])
        else:
            near = {w: (1 + unit[word] @ unit[w]) / 2 for w in (a, b, c)}
            score = near[b] * near[c] / (near[a] + epsilon)
        if score > best:
            best, answer = score, word
    return answer


@pytest.mark.parametrize(
    ("method", "normalise"),
    [
        *(("3cosadd", True), ("3cosadd", False), ("3cosmul", True)),
        *(("norm", True), ("norm", False)),
    ],
)
def test_answers_are_those_of_a_loop(method, normalise):
    vectors = table()
    vectors.matrix[:] *= np.linspace(0.2, 3, len(WORDS))[:, None]
    questions = made_sections(WORDS)["capitals"]
    found = analogy.answer(
        vectors, questions, method=method, normalise=normalise, case="exact"
    )
    answers = [vectors.words[row] for row in found.rows]
    expected = [
        by_definition(vectors, q, method, normalise=normalise) for q in questions
    ]
    assert answers == expected
    assert not any(w in q[:3] for w, q in zip(answers, questions, strict=True))


def test_on_unit_rows_the_least_norm_is_the_highest_cosine():
    questions = made_sections(WORDS)["capitals"]
    add, norm = (
        analogy.answer(table(), questions, method=m) for m in ("3cosadd", "norm")
    )
    np.testing.assert_array_equal(add.rows, norm.rows)


@pytest.mark.filterwarnings("ignore:Call to deprecated `init_sims`")
def test_3cosmul_is_gensims():
    vectors, questions = table(), made_sections(WORDS)["capitals"]
    found = analogy.answer(
        vectors, questions, method="3cosmul", case="exact", epsilon=1e-6
    )
    keyed = vectors.to_gensim()
    for question, row in zip(questions, found.rows, strict=True):
        a, b, c, _ = question
        best = keyed.most_similar_cosmul(positive=[b, c], negative=[a], topn=1)
        assert vectors.words[row] == best[0][0]


@pytest.mark.parametrize("insensitive", [True, False])
@pytest.mark.parametrize("dummy", [True, False])
@pytest.mark.parametrize("first_rows", [300_000, 24])
def test_answers_are_gensims_question_by_question(
    tmp_path, insensitive, dummy, first_rows
):
    vectors = table()
    asked = [*WORDS, "ROME", "KING", "queen", "absent"]
    sections = made_sections(asked, n=60)
    # Planted, so that some are right, whatever the case.
    for a, b, c, d in (
        ("paris", "rome", "oslo", "w1"),
        ("Paris", "KING", "w2", "QUEEN"),
    ):
        where = {w.upper(): i for i, w in reversed(list(enumerate(WORDS)))}
        units = [vectors.matrix[where[w.upper()]] for w in (a, b, c)]
        units = [u / np.linalg.norm(u) for u in units]
        vectors.matrix[where[d.upper()]] = units[1] - units[0] + units[2]
        sections["capitals"].append(Analogy(a, b, c, d))
    path = write(tmp_path / "questions.txt", sections)
    score, theirs = vectors.to_gensim().evaluate_word_analogies(
        path,
        restrict_vocab=first_rows,
        case_insensitive=insensitive,
        dummy4unknown=dummy,
    )
    found = analogy.analogies(
        vectors,
        reader.read_analogies(path),
        oov="wrong" if dummy else "skip",
        case="ignore" if insensitive else "exact",
        first_rows=first_rows,
    )
    assert found.whole.accuracy == pytest.approx(score) and score > 0
    items = np.where(np.isnan(found.items) & dummy, 0.0, found.items)
    place = 0
    for section, counted in zip(found.sections, theirs[:-1], strict=True):
        assert section.name == counted["section"]
        right = sorted(counted["correct"])
        questions = sections[section.name]
        hits = items[place : place + len(questions)]
        ours = [q for q, hit in zip(questions, hits, strict=True) if hit == 1]
        if insensitive:
            ours = [tuple(w.upper() for w in q) for q in ours]
        assert sorted(map(tuple, ours)) == right
        assert section.scored == len(right) + len(counted["incorrect"])
        place += len(questions)


@given(st.integers(0, 20))
def test_a_planted_offset_is_found(seed):
    rng = np.random.default_rng(seed)
    words = tuple(f"{kind}{i}" for kind in "ab" for i in range(10))
    first = rng.normal(size=(10, 8))
    matrix = np.concatenate([first, first + 0.1 * rng.normal(size=8)])
    vectors = WordVectors(words, matrix.astype(np.float32))
    questions = [
        Analogy(f"a{i}", f"b{i}", f"a{j}", f"b{j}")
        for i in range(10) for j in range(10) if i != j
    ]  # fmt: skip
    found = analogy.analogies(vectors, {"x": questions}, method="norm", normalise=False)
    assert found.whole.accuracy == 1.0 and found.whole.covered == 90


def test_sections_totals_and_running_totals():
    vectors, sections = table(), made_sections([*WORDS, "absent"])
    found = analogy.analogies(vectors, sections)
    assert found.semantic is not None and found.syntactic is not None
    assert [g.name for g in found.groups][-3:] == ["semantic", "syntactic", "total"]
    items = found.items
    by_section = items.reshape(3, 30)
    for section, hits in zip(found.sections, by_section, strict=True):
        assert section.accuracy == pytest.approx(np.nanmean(hits))
        assert (section.covered, section.total) == (np.sum(~np.isnan(hits)), 30)
        test = stats.binomtest(int(np.nansum(hits)), section.scored)
        expected = test.proportion_ci(method="wilson")
        bounds = section.low, section.high
        assert bounds == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.syntactic.accuracy == pytest.approx(np.nanmean(by_section[1:]))
    assert found.semantic.accuracy == found.sections[0].accuracy
    assert found.whole.accuracy == pytest.approx(np.nanmean(items))
    rows = analogy.cumulative(found)
    assert [row["after"] for row in rows] == list(sections)
    assert math.isnan(rows[0]["syntactic"])
    assert rows[1]["total"] == pytest.approx(np.nanmean(by_section[:2]))
    assert rows[2]["syntactic"] == pytest.approx(found.syntactic.accuracy)
    assert rows[2]["semantic"] == rows[0]["semantic"] == found.semantic.accuracy
    only = analogy.analogies(vectors, {"one": sections["capitals"]})
    assert only.semantic is None and [g.name for g in only.groups] == ["total"]
    assert math.isnan(analogy.cumulative(only)[0]["semantic"])


def test_common_questions_are_those_that_all_tables_have():
    first, second = table(), table(WORDS[3:], seed=2)
    sections = made_sections([*WORDS, "absent"])
    found = [
        analogy.analogies(
            t, sections, oov="common", others=(first, second), case="exact"
        )
        for t in (first, second)
    ]
    rows = [q for rows in sections.values() for q in rows]
    both = sum(all(w in second for w in q) for q in rows)
    assert [f.whole.scored for f in found] == [both, both]
    assert found[0].whole.covered > found[1].whole.covered == both
    assert f"({both} common)" in found[0].cells()[-1]["covered"]


def shuffled(vectors, seed):
    order = np.random.default_rng(seed).permutation(len(vectors))
    words = tuple(vectors.words[i] for i in order)
    return WordVectors(words, np.ascontiguousarray(vectors.matrix[order]))


@pytest.mark.parametrize("method", ["3cosadd", "3cosmul", "norm"])
def test_a_tie_is_no_answer_whatever_the_order_of_rows(method, monkeypatch):
    vectors, questions = table(), made_sections(WORDS)["capitals"]
    answers = analogy.answer(vectors, questions, method=method, case="exact").rows
    # A second word gets the row of the commonest answer: no word is best alone there.
    winner = int(np.bincount(answers).argmax())
    double = next(i for i in range(len(WORDS)) if i not in answers)
    vectors.matrix[double] = 4 * vectors.matrix[winner]
    expected = []
    for question in questions:
        best = by_definition(vectors, question, method)
        pair = {WORDS[winner], WORDS[double]} - set(question[:3])
        expected.append(None if best in pair and len(pair) == 2 else best)
    assert expected.count(None) > 1
    for seed, batch, block in ((0, 16, 13), (1, 7, 30), (2, 32, 5)):
        monkeypatch.setattr(search, "BATCH", batch)
        monkeypatch.setattr(search, "BLOCK", block)
        moved = shuffled(vectors, seed)
        found = analogy.answer(moved, questions, method=method, case="exact")
        words = [moved.words[row] if row >= 0 else None for row in found.rows]
        assert words == expected
        np.testing.assert_array_equal(found.tied, [w is None for w in expected])
        assert not np.any(found.correct & found.tied)
    scores = analogy.analogies(moved, {"x": questions}, method=method, case="exact")
    assert scores.tied == expected.count(None)
    assert scores.whole.scored == len(questions)


def test_forms_of_one_word_do_not_tie_without_case():
    vectors = table()
    a, b, c = (vectors[w] / np.linalg.norm(vectors[w]) for w in ("rome", "king", "w3"))
    for form in ("oslo", "Oslo"):
        vectors.matrix[vectors.index[form]] = b - a + c
    question = [Analogy("rome", "king", "w3", "OSLO")]
    without = analogy.answer(vectors, question, case="ignore")
    assert without.correct.tolist() == [True] and not without.tied.any()
    exact = analogy.answer(vectors, [Analogy("rome", "king", "w3", "oslo")])
    assert exact.correct.tolist() == [False] and exact.tied.tolist() == [True]


def test_no_coverage_is_nan_and_not_zero():
    for oov in ("skip", "wrong"):
        found = analogy.analogies(table(), {"x": [Analogy(*"abcd")]}, oov=oov)
        assert math.isnan(found.whole.accuracy) and found.whole.covered == 0
        assert found.whole.total == 1
    one = WordVectors(("a",), np.ones((1, 3), np.float32))
    found = analogy.analogies(one, {"x": [Analogy(*"abcd")]})
    assert math.isnan(found.whole.accuracy) and found.whole.scored == 0
    none = analogy.analogies(table(), {"x": []})
    assert math.isnan(none.whole.accuracy) and none.whole.total == 0


def test_rows_of_one_direction_answer_nothing():
    rows = np.ones((30, 4), np.float32) * np.arange(1, 31)[:, None].astype(np.float32)
    found = analogy.analogies(WordVectors(tuple(WORDS), rows), made_sections(WORDS))
    assert math.isnan(found.whole.accuracy) and found.whole.covered == 90


def test_a_zero_row_is_no_answer_and_counts_as_missing():
    vectors, questions = table(), made_sections(WORDS)["capitals"]
    vectors.matrix[7] = 0
    found = analogy.answer(vectors, questions, case="exact", method="norm")
    touched = [WORDS[7] in question for question in questions]
    assert any(touched) and found.zero_rows == 1
    np.testing.assert_array_equal(found.covered, ~np.array(touched))
    assert 7 not in found.rows


def test_bad_input_is_named():
    questions = {"x": made_sections(WORDS)["capitals"]}
    with pytest.raises(InputError, match="first_rows is 0; expected 1 or more rows"):
        analogy.analogies(table(), questions, first_rows=0)
    for epsilon in (0.0, -1e-3, math.nan, math.inf):
        with pytest.raises(
            InputError, match="epsilon is .*; expected a number above 0"
        ):
            analogy.analogies(table(), questions, method="3cosmul", epsilon=epsilon)
    vectors = table()
    vectors.matrix[20, 1] = np.inf
    with pytest.raises(InputError, match="'w12' is not finite"):
        analogy.analogies(vectors, {"x": [Analogy("rome", "oslo", "king", "w1")]})


@pytest.mark.data
def test_glove_answers_as_in_gensim(monkeypatch, tmp_path):
    glove, lists = sources.locate("glove-100d-subset"), sources.locate("analogies")
    if glove is None or lists is None:
        pytest.skip("needs glove.6B.100d.subset.txt and analogies/questions-words.txt")
    monkeypatch.setattr(search, "BATCH", 256)
    monkeypatch.setattr(search, "BLOCK", 4096)
    sections = {
        name: rows[::40]
        for name, rows in reader.read_analogies(lists.part("google")).items()
    }
    vectors = read_word_vectors(glove.path, limit=30_000)
    path = write(tmp_path / "some.txt", sections)
    score, theirs = vectors.to_gensim().evaluate_word_analogies(path)
    found = analogy.analogies(vectors, sections, case="ignore")
    assert found.whole.accuracy == pytest.approx(score)
    questions = [q for rows in sections.values() for q in rows]
    ours = [q for q, hit in zip(questions, found.items, strict=True) if hit == 1]
    right = [q for section in theirs[:-1] for q in section["correct"]]
    assert [tuple(w.upper() for w in q) for q in ours] == right
