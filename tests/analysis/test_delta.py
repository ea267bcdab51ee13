import jax.numpy as jnp
import numpy as np
import pytest
from gensim.models import KeyedVectors
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from jaxemb.analysis import delta
from jaxemb.errors import InputError

WORDS = tuple(f"w{i}" for i in range(30))


def made(seed=0):
    return np.random.default_rng(seed).normal(size=(30, 6)).astype(np.float32)


def gensims(table):
    vectors = KeyedVectors(table.shape[1])
    vectors.add_vectors(list(WORDS), table)
    return vectors


def test_ranking_is_by_norm_and_leaves_out_what_did_not_move():
    table = np.zeros((4, 2), np.float32)
    table[1], table[3] = (3, 4), (0, 1)
    ranked = delta.norm_ranking(table, ["a", "b", "c", "d"], k=10)
    assert ranked == [("b", 5.0), ("d", 1.0)]
    assert delta.norm_ranking(jnp.asarray(table), ["a", "b", "c", "d"], k=1) == [
        ("b", 5.0)
    ]
    with pytest.raises(InputError, match="4 rows for 3 words"):
        delta.norm_ranking(table, ["a", "b", "c"])


@given(st.integers(0, 50), st.floats(0, 3))
def test_moved_fraction_is_its_definition(seed, tau):
    table = made(seed)
    table[::3] = 0
    loops = sum(sum(x * x for x in row) ** 0.5 > tau for row in table.tolist())
    assert delta.moved_fraction(table, tau) == pytest.approx(loops / 30)
    assert delta.moved_fraction(table) == pytest.approx(20 / 30)


def test_histogram_counts_every_row_once():
    table = made()
    table[:7] = 0
    histogram = delta.norm_histogram(table, bins=5)
    assert histogram.zeros == 7
    assert histogram.counts.sum() == 23 and len(histogram.edges) == 6
    assert histogram.edges[-1] == pytest.approx(delta.row_norms(table).max())
    nothing = delta.norm_histogram(np.zeros((3, 2), np.float32))
    assert nothing.zeros == 3 and nothing.counts.sum() == 0


def test_nearest_is_gensims():
    table = made()
    found = delta.nearest(table, WORDS, "w3", 8)
    expected = gensims(table).most_similar("w3", topn=8)
    assert [w for w, _ in found] == [w for w, _ in expected]
    np.testing.assert_allclose(
        [c for _, c in found], [c for _, c in expected], atol=1e-6
    )


def test_nearest_keeps_only_what_is_asked_and_never_a_zero_row():
    table = made()
    table[5] = 0
    keep = {"w3", "w4", "w5", "w6"}
    assert {w for w, _ in delta.nearest(table, WORDS, "w3", 8, keep=keep)} == {
        "w4",
        "w6",
    }
    with pytest.raises(InputError, match="'w5' is zero"):
        delta.nearest(table, WORDS, "w5")
    with pytest.raises(InputError, match="'nope' is not among the 30 words"):
        delta.nearest(table, WORDS, "nope")


@pytest.mark.parametrize("k", [0, -3])
def test_fewer_than_one_word_is_refused(k):
    with pytest.raises(InputError, match=f"k is {k}; expected 1 or more"):
        delta.nearest(made(), WORDS, "w3", k)
    with pytest.raises(InputError, match=f"k is {k}; expected 1 or more"):
        delta.norm_ranking(made(), WORDS, k)


def test_shift_with_a_polarity_lexicon():
    before, after = made(), made(1)
    polarity = {"w1": 2.5, "w2": -1.0, "w3": 0.0, "w4": -0.1, "absent": 1.0}
    shift = delta.neighbour_shift(before, after, WORDS, "w0", 10, polarity=polarity)
    for side, table in ((shift.before, before), (shift.after, after)):
        cosines = {w: gensims(table).similarity("w0", w) for w in ("w1", "w2", "w4")}
        expected = sorted(cosines, key=cosines.__getitem__, reverse=True)
        assert [n.word for n in side] == expected
        assert {n.word: n.side for n in side} == {"w1": 1, "w2": -1, "w4": -1}


def test_shift_without_a_lexicon_takes_any_word():
    before = made()
    shift = delta.neighbour_shift(before, before, WORDS, "w0", 5)
    assert shift.before == shift.after
    assert [n.word for n in shift.before] == [
        w for w, _ in gensims(before).most_similar("w0", topn=5)
    ]
    assert all(n.side == 0 for n in shift.before)
    only = delta.neighbour_shift(before, before, WORDS, "w0", 5, keep={"w9"})
    assert [n.word for n in only.after] == ["w9"]


@given(
    st.lists(st.integers(0, 4), min_size=30, max_size=30),
    st.sets(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=20),
)
def test_listed_words_above_others_is_sklearns_area(norms, listed):
    norms = np.array(norms, np.float64)
    found = delta.listed_above_others(norms, WORDS, listed)
    labels = [word in listed for word in WORDS]
    if any(labels):
        assert found == pytest.approx(roc_auc_score(labels, norms))
    else:
        assert np.isnan(found)


def test_listed_words_of_another_length():
    with pytest.raises(InputError, match="norms has 2 rows for 3 words"):
        delta.listed_above_others(np.ones(2), ["a", "b", "c"], {"a"})


def test_positive_share():
    sides = [delta.Neighbour("w", 0.5, side) for side in (1, -1, 0, 1)]
    assert delta.positive_share(sides) == 0.5
    assert np.isnan(delta.positive_share([]))


def test_listed_words_beside_words_of_like_frequency():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(60)]
    counts = rng.integers(1, 500, 60)
    norms = np.round(rng.random(60), 1)  # with ties
    listed = {"w3", "w10", "w59", "missing"}
    found = delta.listed_among_alike(norms, counts, words, listed, k=7)
    assert set(found) == {"w3", "w10", "w59"}
    for word, share in found.items():
        own = int(word[1:])
        others = [i for i in range(60) if words[i] not in listed]
        others.sort(key=lambda i: (abs(np.log(counts[i] / counts[own])), -counts[i]))
        points = [
            1.0 if norms[i] < norms[own] else 0.5 if norms[i] == norms[own] else 0.0
            for i in others[:7]
        ]
        assert share == pytest.approx(np.mean(points))


def test_frequency_alone_lists_no_word():
    """Norms that follow frequency: far above others, but not above their like."""
    counts = np.arange(1, 1001)
    words = [f"w{i}" for i in range(1000)]
    norms = np.log(counts) + 0.01 * np.random.default_rng(0).normal(size=1000)
    listed = {f"w{i}" for i in range(900, 980, 4)}
    assert delta.listed_above_others(norms, words, listed) > 0.9
    alike = delta.listed_among_alike(norms, counts, words, listed)
    assert abs(np.mean([*alike.values()]) - 0.5) < 0.15
