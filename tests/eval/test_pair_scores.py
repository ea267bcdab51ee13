import numpy as np
import pytest
from scipy import stats
from scipy.spatial import distance

from jaxemb.data.vectors import WordVectors
from jaxemb.eval import pair_scores
from jaxemb.eval.pair_scores import PairScores


@pytest.fixture
def made():
    rng = np.random.default_rng(0)
    human = rng.normal(size=60)
    systems = [human + rng.normal(scale=s, size=60) for s in (0.5, 1.0, 2.0, 4.0)]
    systems[1][:5] = np.nan
    return [PairScores(scores, human) for scores in systems]


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
def test_correlations_are_scipys_over_covered_pairs(made, metric):
    expected = {"spearman": stats.spearmanr, "pearson": stats.pearsonr}[metric]
    one = made[1]
    assert one.covered == 55
    found = one.correlation(metric, resamples=200)
    assert found.mean == pytest.approx(expected(one.scores[5:], one.human[5:])[0])
    assert found.low < found.mean < found.high


def test_contrasts_weigh_correlations_of_common_pairs(made):
    rho = [stats.spearmanr(one.scores[5:], one.human[5:])[0] for one in made]
    weights = (0.5, -0.5, 0.25, -1.0)
    found = pair_scores.contrast(
        list(zip(weights, made, strict=True)), resamples=100, seed=3
    )
    assert found.mean == pytest.approx(np.dot(weights, rho))
    alone = pair_scores.contrast([(1.0, made[0]), (-1.0, made[0])], resamples=50)
    assert (alone.mean, alone.low, alone.high) == (0, 0, 0)  # the same resamples


def test_lists_share_the_pairs_that_are_drawn(made):
    """By a loop over resamples of units, each with its scores in every list."""
    rng = np.random.default_rng(4)
    human = rng.normal(size=40)
    second = [PairScores(human + rng.normal(size=40), human) for _ in range(2)]
    lists = [[(1.0, made[0]), (-1.0, made[1])], [(1.0, second[0]), (-0.5, second[1])]]
    units = [np.arange(60), np.arange(40, 80)]  # twenty pairs are in both
    found = pair_scores.contrast_lists(lists, units, resamples=30, seed=2)
    whole = [pair_scores.contrast(terms, resamples=0).mean for terms in lists]
    assert found.mean == pytest.approx(np.mean(whole))
    drawn = np.random.default_rng(2).integers(0, 75, (30, 75)) + 5  # 5 have no score
    means = []
    for row in drawn:
        rhos = []
        for terms, of in zip(lists, units, strict=True):
            picked = [i for unit in row for i in np.flatnonzero(of == unit)]
            rhos.append(
                sum(
                    weight * stats.spearmanr(one.scores[picked], one.human[picked])[0]
                    for weight, one in terms
                )
            )
        means.append(np.mean(rhos))
    expected = np.quantile(means, [0.025, 0.975])
    np.testing.assert_allclose((found.low, found.high), expected)


def test_the_same_list_twice_is_no_more_evidence(made):
    terms = [(1.0, made[0]), (-1.0, made[2])]
    once = pair_scores.contrast_lists([terms], [np.arange(60)], resamples=50)
    twice = pair_scores.contrast_lists([terms] * 2, [np.arange(60)] * 2, resamples=50)
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))


def test_rows_and_cosines():
    rows = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    rows[2] = 0
    vectors = WordVectors(("a", "b", "zero", "d"), rows)
    items = [("a", "B"), ("a", "zero"), ("d", "absent"), ("d", "b")]
    found = pair_scores.rows_of(vectors, items)
    np.testing.assert_array_equal(found, [[0, 1], [0, -1], [3, -1], [3, 1]])
    values = pair_scores.cosines(rows[[0, 3]], rows[[1, 1]])
    scores = pair_scores.scored(found, values)
    expected = [1 - distance.cosine(rows[i], rows[1]) for i in (0, 3)]
    np.testing.assert_allclose(scores[[0, 3]], expected, atol=1e-6)
    assert np.all(np.isnan(scores[1:3]))
