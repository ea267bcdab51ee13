import dataclasses
import math

import numpy as np
import pytest
from gensim.models import fasttext
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial import distance

from jaxemb.data import pairs as pairs_lib
from jaxemb.data import sources
from jaxemb.data.formats.subwords import Subwords
from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors, read_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval import similarity


def table(words, seed=0, dim=5):
    rows = np.random.default_rng(seed).normal(size=(len(words), dim))
    return WordVectors(tuple(words), rows.astype(np.float32))


def made_pairs(words, n=40, seed=1):
    rng = np.random.default_rng(seed)
    ends = [rng.choice(words, 2, replace=False) for _ in range(n)]
    scores = rng.integers(0, 10, n) / 2  # with ties
    return [
        WordPair(str(a), str(b), float(s))
        for (a, b), s in zip(ends, scores, strict=True)
    ]


WORDS = [f"w{i}" for i in range(20)]


def by_scipy(vectors, pairs, missing=None):
    """Spearman and Pearson by scipy; `missing` is the row of an absent word."""
    cosines, human = [], []
    for a, b, score in pairs:
        rows = [vectors[w] if w in vectors else missing for w in (a, b)]
        if any(row is None for row in rows):
            continue
        zero = any(not np.any(row) for row in rows)
        cosines.append(0.0 if zero else 1 - distance.cosine(*np.float64(rows)))
        human.append(score)
    return stats.spearmanr(cosines, human)[0], stats.pearsonr(cosines, human)[0]


@given(st.integers(0, 30))
def test_scores_are_scipys(seed):
    vectors, pairs = table(WORDS, seed), made_pairs([*WORDS, "x", "y"], seed=seed)
    zero, mean = np.zeros(5), vectors.matrix.mean(axis=0)
    for oov, missing in (("skip", None), ("zero", zero), ("mean", mean)):
        found = similarity.word_similarity(vectors, pairs, oov=oov, resamples=0)
        expected = by_scipy(vectors, pairs, missing)
        assert (found.spearman, found.pearson) == pytest.approx(expected, abs=1e-6)
        known = [a in vectors and b in vectors for a, b, _ in pairs]
        assert (found.covered, found.total) == (sum(known), 40)


@pytest.mark.parametrize("zeros", [False, True])
def test_scores_are_gensims(tmp_path, zeros):
    vectors = table([*WORDS, "Paris", "paris", "ROME"], dim=8)
    pairs = made_pairs([*WORDS, "PARIS", "Paris", "rome", "absent"], 80)
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\t{s}\n" for a, b, s in pairs))
    pearson, spearman, missing = vectors.to_gensim().evaluate_word_pairs(
        path, dummy4unknown=zeros
    )
    found = similarity.word_similarity(
        vectors, pairs, oov="zero" if zeros else "skip", case="ignore", resamples=0
    )
    assert found.spearman == pytest.approx(spearman[0], abs=1e-6)
    assert found.pearson == pytest.approx(pearson[0], abs=1e-5)
    if not zeros:
        assert 100 * (1 - found.covered / found.total) == pytest.approx(missing)


def test_case_is_explicit():
    vectors = table(["Paris", "london", "ROME", "oslo"])
    pairs = [WordPair("Paris", "London", 1.0), WordPair("rome", "oslo", 2.0)]
    covered = {
        case: similarity.word_similarity(vectors, pairs, case=case)
        for case in ("exact", "lower", "fallback", "ignore")
    }
    assert {c: r.covered for c, r in covered.items()} == {
        "exact": 0,
        "lower": 0,
        "fallback": 1,
        "ignore": 2,
    }
    assert covered["fallback"].recased == 1 and covered["ignore"].recased == 2
    assert covered["exact"].recased == 0
    assert covered["fallback"].case == "fallback"


@pytest.mark.parametrize("case", ["exact", "lower", "fallback"])
def test_the_words_looked_up_are_enough(case):
    words = ["Paris", "paris", "London", "oslo", "ROME", "rome"]
    vectors = table(words)
    pairs = made_pairs(["Paris", "LONDON", "London", "Oslo", "rome", "ROME"], 30)
    looked_up = similarity.words_looked_up(pairs, case)
    part = vectors.subset([w for w in words if w in looked_up])
    assert similarity.word_similarity(part, pairs, case=case) == (
        similarity.word_similarity(vectors, pairs, case=case)
    )


@pytest.mark.parametrize("oov", ["skip", "zero", "mean"])
def test_no_coverage_is_nan_and_not_a_score(oov):
    pairs = [WordPair("x", "y", 1.0), WordPair("x", "z", 2.0), WordPair("w1", "z", 3.0)]
    found = similarity.word_similarity(table(WORDS), pairs, oov=oov)
    assert found.covered == 0 and found.total == 3
    for value in (found.spearman, found.pearson, found.low, found.high):
        assert math.isnan(value)


def test_a_mean_of_rows_that_are_not_finite_is_named():
    vectors = table(WORDS)
    vectors.matrix[9, 2] = np.nan  # of a word that no pair has
    pairs = [WordPair("w1", "w2", 1.0), WordPair("w1", "w3", 2.0)]
    assert not math.isnan(similarity.word_similarity(vectors, pairs).spearman)
    with pytest.raises(InputError, match=f"{WORDS[9]!r} is not finite"):
        similarity.word_similarity(vectors, pairs, oov="mean")


def test_subwords_compose_what_the_table_lacks_as_gensim_does():
    keyed = fasttext.FastTextKeyedVectors(6, min_n=2, max_n=4, bucket=50)
    rng = np.random.default_rng(0)
    keyed.index_to_key = ["king", "queen", "paris"]
    keyed.key_to_index = {w: i for i, w in enumerate(keyed.index_to_key)}
    keyed.vectors_vocab = rng.normal(size=(3, 6)).astype(np.float32)
    keyed.vectors_ngrams = rng.normal(size=(50, 6)).astype(np.float32)
    keyed.recalc_char_ngram_buckets()
    keyed.vectors = rng.normal(size=(3, 6)).astype(np.float32)
    vectors = WordVectors.from_gensim(keyed)
    pairs = [
        *(WordPair("king", "queen", 5.0), WordPair("kings", "Queens", 3.0)),
        *(WordPair("king", "parish", 1.0), WordPair("Paris", "kingly", 2.0)),
    ]
    found = similarity.word_similarity(vectors, pairs, oov="subword", resamples=0)
    names = [(a, b.lower() if b == "Paris" else b) for a, b, _ in pairs]
    names = [("paris" if a == "Paris" else a, b) for a, b in names]
    cosines = [keyed.similarity(a, b) for a, b in names]
    expected = stats.pearsonr(cosines, [p.score for p in pairs]).statistic
    assert found.pearson == pytest.approx(expected, abs=1e-5)
    assert (found.covered, found.composed, found.total) == (1, 3, 4)
    assert found.cells()["covered"] == "1/4 (+3 composed)"
    skipped = similarity.word_similarity(vectors, pairs, resamples=0)
    assert (skipped.covered, skipped.composed) == (1, 0)
    with pytest.raises(InputError, match="no fastText subwords"):
        similarity.word_similarity(table(WORDS), made_pairs(WORDS), oov="subword")


def test_a_word_without_subwords_is_skipped():
    buckets = Subwords(np.zeros((4, 2), np.float32), np.ones((2, 2), np.float32), 3, 6)
    vectors = WordVectors(("a", "b"), np.eye(2, dtype=np.float32), buckets)
    pairs = [WordPair("a", "b", 1.0), WordPair("a", "absent", 2.0)]
    found = similarity.word_similarity(vectors, pairs, oov="subword")
    assert (found.covered, found.composed) == (1, 0)


def test_known_words_are_those_that_find_a_row():
    pairs = [WordPair("W1", "w2", 1.0), WordPair("x", "w2", 2.0)]
    vectors = table(WORDS)
    assert similarity.known_words(vectors, pairs) == {"W1", "w2"}
    assert similarity.known_words(vectors, pairs, "exact") == {"w2"}


def test_no_pairs_and_one_pair_have_no_score():
    empty = similarity.word_similarity(table(WORDS), [])
    assert math.isnan(empty.spearman) and empty.total == 0
    one = similarity.word_similarity(table(WORDS), [WordPair("w1", "w2", 3.0)])
    assert math.isnan(one.spearman) and one.covered == 1


def test_a_constant_table_has_no_score():
    same = WordVectors(tuple(WORDS), np.ones((20, 3), np.float32))
    found = similarity.word_similarity(same, made_pairs(WORDS))
    assert found.covered == 40 and math.isnan(found.spearman)


def test_a_zero_row_counts_as_missing():
    vectors = table(WORDS)
    without = vectors.subset([w for w in WORDS if w != "w3"])
    vectors.matrix[3] = 0
    pairs = made_pairs(WORDS)
    found = similarity.word_similarity(vectors, pairs)
    assert found.zero_rows == 1
    assert dataclasses.replace(found, zero_rows=0) == (
        similarity.word_similarity(without, pairs)
    )


def test_words_with_themselves_tie():
    pairs = [WordPair(w, w, float(i)) for i, w in enumerate(WORDS)]
    found = similarity.word_similarity(table(WORDS, dim=50), pairs)
    assert found.covered == 20 and math.isnan(found.spearman)


def test_a_row_that_is_not_finite_is_named():
    vectors = table(WORDS)
    vectors.matrix[7, 2] = np.nan
    with pytest.raises(InputError, match="the vector of 'w7' is not finite"):
        similarity.word_similarity(vectors, made_pairs(WORDS))


def test_tiny_and_huge_rows_have_the_same_cosines():
    vectors, pairs = table(WORDS), made_pairs(WORDS)
    scale = np.where(np.arange(20) % 2, 1e-30, 1e30)[:, np.newaxis]
    scaled = WordVectors(vectors.words, (vectors.matrix * scale).astype(np.float32))
    first = similarity.word_similarity(vectors, pairs)
    second = similarity.word_similarity(scaled, pairs)
    assert first.pearson == pytest.approx(second.pearson, abs=1e-6)


def test_the_interval_is_a_bootstrap_over_pairs():
    vectors, pairs = table(WORDS), made_pairs(WORDS, 60)
    found = similarity.word_similarity(vectors, pairs, resamples=300, seed=5)
    human = np.array([p.score for p in pairs])
    cosines = np.array([vectors.similarity(p.first, p.second) for p in pairs])
    expected = stats.bootstrap(
        (cosines, human),
        lambda x, y: stats.spearmanr(x, y).statistic,
        paired=True,
        vectorized=False,
        n_resamples=300,
        method="percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_difference_is_taken_on_the_pairs_that_both_cover():
    words = [*WORDS, "only"]
    first, second = table(words, 0), table(WORDS, 1)
    pairs = made_pairs([*words, "neither"], 60)
    found = similarity.compare_similarity(first, second, pairs)
    common = [p for p in pairs if p.first in second and p.second in second]
    assert (found.common, found.total) == (len(common), 60)
    assert found.first == pytest.approx(by_scipy(first, common)[0], abs=1e-6)
    assert found.second == pytest.approx(by_scipy(second, common)[0], abs=1e-6)
    assert found.difference == pytest.approx(found.first - found.second)
    assert found.low < found.difference < found.high
    same = similarity.compare_similarity(first, first, pairs)
    assert same.difference == same.low == same.high == 0
    nothing = similarity.compare_similarity(first, second, pairs[:0])
    assert math.isnan(nothing.difference) and nothing.common == 0


def test_common_pairs_are_those_that_every_table_covers():
    tables = [table(WORDS, 0), table(WORDS[3:], 1), table(WORDS[:-2], 2)]
    pairs = made_pairs([*WORDS, "absent"], 80)
    known = set(WORDS[3:-2])
    common = [p for p in pairs if p.first in known and p.second in known]
    for vectors in tables:
        found = similarity.word_similarity(vectors, pairs, oov="common", others=tables)
        assert found.scored == len(common) and found.total == 80
        covered = [p for p in pairs if p.first in vectors and p.second in vectors]
        assert found.covered == len(covered) > len(common)
        assert found.spearman == pytest.approx(by_scipy(vectors, common)[0], abs=1e-6)
        assert found.cells()["covered"] == f"{len(covered)}/80 ({len(common)} common)"
    alone = similarity.word_similarity(tables[1], pairs, oov="common")
    assert alone.spearman == similarity.word_similarity(tables[1], pairs).spearman
    nothing = similarity.word_similarity(
        tables[0], pairs, oov="common", others=[table(["x", "y"])]
    )
    assert math.isnan(nothing.spearman) and nothing.scored == 0


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "expected"),
    [("RG-65", 0.691), ("MEN-TR-3k", 0.681), ("WS-353-ALL", 0.533)],
)
def test_known_scores_of_glove(name, expected):
    lists, glove = (sources.locate(n) for n in ("wordsim", "glove-100d-subset"))
    if lists is None or glove is None:
        pytest.skip("needs wordsim/ and glove.6B.100d.subset.txt in $JAXEMB_DATA")
    pairs = pairs_lib.read_pairs(lists.part(name))
    keep = similarity.words_looked_up(pairs)
    found = similarity.word_similarity(
        read_word_vectors(glove.path, keep=keep), pairs, resamples=100
    )
    assert found.covered == found.total
    assert found.spearman == pytest.approx(expected, abs=0.002)
    assert found.low < found.spearman < found.high


def test_pooled_lists_are_ranked_in_the_range_of_each():
    rng = np.random.default_rng(0)
    words = tuple("abcdefgh")
    table = WordVectors(words, rng.normal(size=(8, 3)).astype(np.float32))
    lists = {
        "small": [WordPair("a", "b", 1.0), WordPair("c", "d", 4.0)],
        "large": [WordPair("e", "f", 10.0), WordPair("g", "h", 50.0)]
        + [WordPair("a", "h", 30.0)],
        "flat": [WordPair("a", "c", 2.0), WordPair("b", "c", 2.0)],
        "none": [],
    }
    pairs = similarity.pooled(lists)
    assert [pair.score for pair in pairs] == [0, 1, 0, 1, 0.5]
    cosines = [
        1 - distance.cosine(*(table.matrix[words.index(w)] for w in pair[:2]))
        for pair in pairs
    ]
    found = similarity.word_similarity(table, pairs, resamples=0)
    expected = stats.spearmanr(cosines, [0, 1, 0, 1, 0.5]).statistic
    assert found.spearman == pytest.approx(expected)
    known = similarity.pair_cosines(table, [*pairs, WordPair("a", "x", 1.0)])
    np.testing.assert_allclose(known, [*cosines, np.nan], atol=1e-6)


def scored_pairs(rng, words, count):
    ends = rng.choice(len(words), (count, 2))
    return [WordPair(words[a], words[b], float(rng.normal())) for a, b in ends]


def drawn_lists(couples, lists, units, resamples, seed=0):
    """The joint bootstrap by repetition: a loop over draws, lists and couples."""
    draws = np.random.default_rng(seed).integers(0, len(units), (resamples, len(units)))
    gaps = np.zeros((resamples, len(lists)))
    for r, draw in enumerate(draws):
        times = {units[u]: int(np.sum(draw == u)) for u in set(draw.tolist())}
        for place, pairs in enumerate(lists.values()):
            of = [p for p in pairs for _ in range(times.get(frozenset(p[:2]), 0))]
            human = [p.score for p in of]
            rho = [
                [stats.spearmanr([table[p] for p in of], human)[0] for table in couple]
                for couple in couples
            ]
            gaps[r, place] = np.mean([a - b for a, b in rho])
    return gaps


def test_lists_that_share_pairs_are_drawn_together():
    rng = np.random.default_rng(0)
    words = tuple(f"w{i}" for i in range(12))
    first = scored_pairs(rng, words, 15)
    shared = [WordPair(b.upper(), a, s + 1) for a, b, s in first[:10]]
    lists = {"one": first, "two": shared + scored_pairs(rng, words, 5)}
    tables = [
        WordVectors(words, rng.normal(size=(12, 4)).astype(np.float32))
        for _ in range(4)
    ]
    couples = [(tables[0], tables[1]), (tables[2], tables[3])]
    found = similarity.compare_lists(couples, lists, resamples=40)
    lowered = {
        name: [WordPair(a.lower(), b.lower(), s) for a, b, s in pairs]
        for name, pairs in lists.items()
    }
    units = list(dict.fromkeys(frozenset(p[:2]) for of in lowered.values() for p in of))
    assert len(units) < 21  # of 30 pairs
    cosines = [
        [
            {
                p: cosine
                for pairs in lowered.values()
                for p, cosine in zip(
                    pairs, similarity.pair_cosines(table, pairs), strict=True
                )
            }
            for table in couple
        ]
        for couple in couples
    ]
    gaps = drawn_lists(cosines, lowered, units, 40)
    for place, name in enumerate(lists):
        low, high = np.quantile(gaps[:, place], [0.025, 0.975])
        assert (found.by_list[name].low, found.by_list[name].high) == pytest.approx(
            (low, high)
        )
        alone = [
            similarity.compare_similarity(*couple, lists[name], resamples=0).difference
            for couple in couples
        ]
        assert found.values[name] == pytest.approx(alone)
        assert found.by_list[name].mean == pytest.approx(np.mean(alone))
    low, high = np.quantile(gaps.mean(1), [0.025, 0.975])
    assert (found.mean.low, found.mean.high) == pytest.approx((low, high))


def test_a_list_twice_is_no_more_evidence():
    rng = np.random.default_rng(1)
    words = tuple(f"w{i}" for i in range(30))
    tables = [
        WordVectors(words, rng.normal(size=(30, 4)).astype(np.float32))
        for _ in range(2)
    ]
    pairs = scored_pairs(rng, words, 60)
    once = similarity.compare_lists([tuple(tables)], {"a": pairs})
    twice = similarity.compare_lists([tuple(tables)], {"a": pairs, "b": pairs})
    assert (twice.mean.low, twice.mean.high) == (once.mean.low, once.mean.high)
    none = similarity.compare_lists([tuple(tables)], {"a": [WordPair("x", "y", 1.0)]})
    assert none.by_list == {} and math.isnan(none.mean.mean)
