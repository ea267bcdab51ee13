import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.spatial import distance

from jaxemb.data import semeval2012, sources
from jaxemb.data.semeval2012 import Choice, Relation
from jaxemb.data.vectors import WordVectors, read_word_vectors
from jaxemb.eval import relational

PAIRS = [(f"x{i}", f"y{i}") for i in range(8)]
EXAMPLES = (("p0", "q0"), ("p1", "q1"))


def made_relation(name="1b", seed=0):
    rng = np.random.default_rng(seed)
    ratings = {pair: float(rng.integers(-4, 5)) for pair in PAIRS}  # with ties
    questions = [
        tuple(map(tuple, rng.choice(PAIRS, 4, replace=False))) for _ in range(9)
    ]
    choices = []
    for question in questions:
        question = tuple((str(a), str(b)) for a, b in question)
        for _ in range(5):
            least, most = rng.choice(4, 2, replace=False)
            chosen = question[least] if rng.random() > 0.2 else None
            choices.append(Choice(question, chosen, question[most]))
    return Relation(name, "KIND", "thing", EXAMPLES, ratings, choices)


def table(seed=0, missing=()):
    words = [w for pair in (*PAIRS, *EXAMPLES) for w in pair if w not in missing]
    rows = np.random.default_rng(seed).normal(size=(len(words), 5))
    return WordVectors(tuple(words), rows.astype(np.float32))


def official(relation, ratings):
    """The task's scorer as its programs describe it, in loops.

    Spearman of the two scales; of each question asked, the lowest and the highest
    rated pair, the first of equals, are right if no pair has more votes.
    """
    gold = [relation.ratings[p] for p in ratings]
    rho = stats.spearmanr(gold, list(ratings.values())).statistic
    questions, right = [], 0
    for choice in relation.choices:
        if choice.pairs not in questions:
            questions.append(choice.pairs)
    for question in questions:
        answers = [c for c in relation.choices if c.pairs == question]
        least = {p: sum(c.least == p for c in answers) for p in question}
        most = {p: sum(c.most == p for c in answers) for p in question}
        lowest = highest = question[0]
        for pair in question[1:]:
            lowest = pair if ratings[pair] < ratings[lowest] else lowest
            highest = pair if ratings[pair] > ratings[highest] else highest
        right += least[lowest] == max(least.values())
        right += most[highest] == max(most.values())
    return rho, right / (2 * len(questions))


@pytest.mark.parametrize("seed", range(5))
def test_ratings_and_scores_are_those_of_loops(seed):
    relation, vectors = made_relation(seed=seed), table(seed)
    unit = {w: np.float64(vectors[w]) / np.linalg.norm(vectors[w]) for w in vectors}
    expected = {
        (a, b): np.mean(
            [
                1 - distance.cosine(unit[b] - unit[a], unit[y] - unit[x])
                for x, y in EXAMPLES
            ]
        )
        for a, b in PAIRS
    }
    ratings = relational.rate_pairs(relation, unit)
    assert ratings == pytest.approx(expected)
    found = relational.relational_similarity(vectors, [relation])
    assert (found.spearman, found.maxdiff) == pytest.approx(
        official(relation, expected)
    )
    assert (found.covered, found.total, found.choices) == (8, 8, 9)


@pytest.mark.parametrize("seed", range(6))
def test_equal_ratings_choose_the_pair_that_a_question_names_first(seed):
    relation = made_relation(seed=seed)
    rng = np.random.default_rng(seed)
    ratings = {pair: float(rng.integers(2)) for pair in PAIRS}
    found = relational.score_ratings(relation, ratings)
    assert (found.spearman, found.maxdiff) == pytest.approx(official(relation, ratings))
    noisy = {p: v + float(rng.normal(scale=1e-15)) for p, v in ratings.items()}
    assert relational.score_ratings(relation, noisy) == found


def test_answers_that_choose_nothing_or_name_a_pair_twice():
    one, two, three = PAIRS[:3]
    question = (one, two, two, three)
    choices = [
        Choice(question, None, two),  # nobody says which is the least typical
        Choice(question, None, None),
        Choice(question, None, one),
        Choice(question, None, two),
    ]
    ratings = {one: 1.0, two: 2.0, three: 0.0}
    relation = Relation("1b", "KIND", "thing", EXAMPLES, ratings, choices)
    found = relational.score_ratings(relation, ratings)
    assert (found.right, found.choices, found.maxdiff) == (2, 1, 1.0)
    assert found.maxdiff == official(relation, ratings)[1]
    other = relational.score_ratings(relation, {one: 2.0, two: 1.0, three: 0.0})
    assert (other.right, other.maxdiff) == (1, 0.5)  # the least was open to anyone


def test_maxdiff_has_an_interval_where_nothing_is_right():
    relation = made_relation()
    wrong = {pair: -value for pair, value in relation.ratings.items()}
    choices = [Choice(tuple(PAIRS[:4]), PAIRS[0], PAIRS[1])]
    ratings = dict(zip(PAIRS[:4], (4.0, 1.0, 3.0, 2.0), strict=True))
    none = relation._replace(choices=choices)
    found = relational.score_ratings(none, {**wrong, **ratings})
    expected = stats.binomtest(0, 2).proportion_ci(method="wilson")
    assert (found.right, found.maxdiff, found.maxdiff_low) == (0, 0.0, 0.0)
    assert found.maxdiff_high == pytest.approx(expected.high)
    whole = relational.relational_similarity(table(), [relation])
    [only] = whole.relations
    bounds = only.maxdiff_low, only.maxdiff_high
    assert (whole.maxdiff_low, whole.maxdiff_high) == pytest.approx(bounds)
    without = relational.relational_similarity(table(), [relation], resamples=0)
    assert math.isnan(without.maxdiff_low)


def test_people_agree_with_themselves():
    relation = made_relation()
    own = relational.score_ratings(relation, relation.ratings)
    assert own.spearman == pytest.approx(1.0)


def test_the_score_is_a_mean_over_test_relations():
    relations = [made_relation(n, s) for s, n in enumerate(("1a", "1b", "1c", "1d"))]
    found = relational.relational_similarity(table(), relations)
    assert [r.name for r in found.relations] == ["1b", "1c", "1d"]  # 1a is for training
    each = [r.spearman for r in found.relations]
    assert found.spearman == pytest.approx(np.mean(each))
    assert (found.with_score, found.scored) == (3, 24)
    assert min(each) <= found.low <= found.spearman <= found.high <= max(each)
    accuracies = [r.maxdiff for r in found.relations]
    assert found.maxdiff == pytest.approx(np.mean(accuracies))
    training = relational.relational_similarity(table(), relations, training=True)
    assert [r.name for r in training.relations] == ["1a"]


def test_missing_words_by_policy():
    relation, vectors = made_relation(), table(missing=("x3",))
    skip = relational.relational_similarity(vectors, [relation])
    assert (skip.covered, skip.total) == (7, 8)
    asked = {c.pairs for c in relation.choices}
    assert skip.choices == sum(PAIRS[3] not in question for question in asked)
    zero = relational.relational_similarity(vectors, [relation], oov="zero")
    assert (zero.covered, zero.choices) == (7, len(asked))
    unit = {w: np.float64(vectors[w]) / np.linalg.norm(vectors[w]) for w in vectors}
    ratings = {**relational.rate_pairs(relation, unit), PAIRS[3]: 0.0}
    ordered = {pair: ratings[pair] for pair in PAIRS}
    assert zero.spearman == pytest.approx(official(relation, ordered)[0])
    common = [
        relational.relational_similarity(
            t, [relation], oov="common", others=(vectors, table())
        )
        for t in (vectors, table())
    ]
    assert common[0].spearman == skip.spearman
    assert [c.relations[0].covered for c in common] == [7, 7]
    assert [c.covered for c in common] == [7, 8]


@pytest.mark.parametrize("missing", [("p0", "p1"), tuple(w for p in PAIRS for w in p)])
def test_no_examples_or_no_pairs_is_nan(missing):
    vectors = table(missing=missing)
    for oov in ("skip", "zero"):
        found = relational.relational_similarity(vectors, [made_relation()], oov=oov)
        if oov == "skip" or "p0" in missing:
            assert math.isnan(found.spearman) and math.isnan(found.maxdiff)
            assert found.scored == found.with_score == found.choices == 0


def test_equal_rows_are_nan_and_not_the_official_zero():
    vectors = table()
    vectors.matrix[:] = 1
    found = relational.relational_similarity(vectors, [made_relation()])
    assert math.isnan(found.spearman) and math.isnan(found.maxdiff)
    assert found.covered == 8 and found.scored == found.choices == 0


@pytest.mark.data
def test_glove_on_the_task():
    glove, task = sources.locate("glove-100d-subset"), sources.locate("semeval-2012")
    if glove is None or task is None:
        pytest.skip("needs glove.6B.100d.subset.txt and analogies/semeval2012/")
    relations = semeval2012.read_semeval2012(task.parts)
    words = {w for r in relations for p in (*r.paradigms, *r.ratings) for w in p}
    keep = words | {w.lower() for w in words}
    vectors = read_word_vectors(glove.path, keep=keep)
    found = relational.relational_similarity(vectors, relations, resamples=100)
    assert len(found.relations) == 69 and found.total == 2791
    # Random ratings have .018 and .312 (the task's own baseline): far below this.
    assert found.low > 0.2 and found.maxdiff_low > 0.4


RHO = """
use lib $ARGV[0];
use Statistics::RankCorrelation;
my @x = split(/,/, $ARGV[1]);
my @y = split(/,/, $ARGV[2]);
print Statistics::RankCorrelation->new(\\@x, \\@y)->spearman;
"""


@pytest.mark.data
def test_spearman_is_that_of_the_tasks_own_module():
    task = sources.locate("semeval-2012")
    perl = shutil.which("perl")
    folder = None if task is None else Path(str(task.part("paradigms"))).parent
    if folder is None or perl is None or not (folder / "Statistics").is_dir():
        pytest.skip("needs perl and analogies/semeval2012/Statistics/")
    rng = np.random.default_rng(0)
    for relation in semeval2012.read_semeval2012(task.parts)[:3]:
        ratings = {pair: float(rng.integers(20)) for pair in relation.ratings}
        sides = [",".join(map(str, x.values())) for x in (relation.ratings, ratings)]
        command = [perl, "-e", RHO, str(folder), *sides]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = relational.score_ratings(relation, ratings)
        assert found.spearman == pytest.approx(float(done.stdout), abs=1e-9)
