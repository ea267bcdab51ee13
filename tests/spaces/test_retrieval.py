"""Nearest rows, CSLS and ranks against brute force; no large intermediate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb.errors import InputError
from jaxemb.spaces import dictionaries, normalize, retrieval, selection
from jaxemb.spaces.dictionaries import SelfLearning


def rows(seed, count=90, dim=6):
    space = np.random.default_rng(seed).normal(size=(count, dim))
    return normalize.unit(space).astype(np.float32)


@pytest.fixture(params=[7, 64, 4096])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(retrieval, "_BATCH", 13)
    monkeypatch.setattr(retrieval, "_WIDEST", 16)
    monkeypatch.setattr(retrieval, "_BLOCK", request.param)
    monkeypatch.setattr(dictionaries, "_BATCH", 16)
    jax.clear_caches()


def csls_matrix(source, target, k=10):
    cosines = source.astype(np.float64) @ target.T.astype(np.float64)
    of_source = np.sort(cosines, axis=1)[:, -k:].mean(axis=1)
    of_target = np.sort(cosines, axis=0)[-k:].mean(axis=0)
    return 2 * cosines - of_source[:, np.newaxis] - of_target[np.newaxis]


def test_nearest_rows_are_those_of_brute_force(small_blocks):
    source, target = rows(0), rows(1, 70)
    products = source @ target.T
    for k in (1, 3, 70):
        found = retrieval.nearest(source, target, k)
        order = np.argsort(-products, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(found.rows, order)
        best = np.take_along_axis(products, order, axis=1)
        np.testing.assert_allclose(found.scores, best, atol=1e-6)


def test_csls_is_that_of_brute_force(small_blocks):
    source, target = rows(2), rows(3, 70)
    expected = csls_matrix(source, target)
    found = retrieval.csls(source, target, 5)
    order = np.argsort(-expected, axis=1)[:, :5]
    np.testing.assert_array_equal(found.rows, order)
    np.testing.assert_allclose(
        found.scores, np.take_along_axis(expected, order, axis=1), atol=1e-6
    )
    again = retrieval.csls(source, target, 5, own_penalty=False)
    np.testing.assert_array_equal(again.rows, order)
    own = retrieval.mean_of_nearest(source, target)[:, np.newaxis]
    np.testing.assert_allclose(again.scores - own, found.scores, atol=1e-6)


@pytest.mark.parametrize("hubs", [False, True])
def test_ranks_are_those_of_brute_force(small_blocks, hubs):
    source, target = rows(4), rows(5, 70)
    gold = np.random.default_rng(6).integers(0, 70, size=90)
    penalty = retrieval.mean_of_nearest(target, source) if hubs else None
    scores = csls_matrix(source, target) if hubs else source @ target.T
    own = np.take_along_axis(scores, gold[:, np.newaxis], axis=1)
    expected = 1 + (scores > own).sum(axis=1)
    found = retrieval.ranks(source, target, gold, row_penalty=penalty)
    np.testing.assert_array_equal(found, expected)


def test_of_equal_rows_the_first_comes_first(small_blocks):
    target = np.repeat(rows(7, 10), 8, axis=0)
    found = retrieval.nearest(rows(8, 20), target, 3).rows
    np.testing.assert_array_equal(found % 8, np.tile([0, 1, 2], (20, 1)))
    gold = found[:, 2]
    np.testing.assert_array_equal(retrieval.ranks(rows(8, 20), target, gold), 3)


@pytest.mark.parametrize("words", [100, 640, 1000, 5000])
@pytest.mark.parametrize("k", [1, 2, 4, 10])
def test_top_k_is_jax_top_k_with_its_ties(words, k):
    scores = np.random.default_rng(9).integers(0, 40, size=(20, words))
    scores = jnp.asarray(scores, jnp.float32)
    ours, theirs = selection.top_k(scores, k), jax.lax.top_k(scores, k)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])


@pytest.mark.parametrize("count", [10, 64, 130, 256])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_column_top_k_is_top_k_of_the_transpose_with_its_ties(count, k):
    scores = np.random.default_rng(10).integers(0, 40, size=(count, 37))
    scores = jnp.asarray(scores, jnp.float32)
    ours, theirs = selection.column_top_k(scores, k), jax.lax.top_k(scores.T, k)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])


def test_batches_have_one_size_and_cover_everything():
    found = list(selection.batches(10, 4))
    assert [part.tolist() for part in found] == [
        *([0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 9, 9])
    ]
    assert list(selection.batches(0, 4)) == []


def test_a_perfect_map_has_mrr_1_and_a_random_one_the_harmonic_number():
    source = rows(10, 1000, 20)
    assert np.all(retrieval.ranks(source, source, np.arange(1000)) == 1)
    ranks = retrieval.ranks(source, rows(11, 1000, 20), np.arange(1000))
    expected = np.sum(1 / np.arange(1, 1001)) / 1000
    assert np.mean(1 / ranks) == pytest.approx(expected, abs=0.004)


def test_no_array_is_larger_than_some_scores():
    """200,000 × 200,000 scores would need 160 GB; lowered, nothing run."""
    words, dim, k = 200_000, 300, 10

    def shape(*sizes, dtype=jnp.float32):
        return jax.ShapeDtypeStruct(sizes, dtype)

    def best(count):
        return shape(count, k, dtype=jnp.int32), shape(count, k)

    step = shape(dtype=jnp.int32)
    batch = retrieval._batch_beside(words)
    lowered = (
        retrieval._better.lower(
            shape(words, dim),
            shape(words),
            shape(retrieval._BATCH, dim),
            best(retrieval._BATCH),
            step,
            block=retrieval._BLOCK,
            hubs=True,
        ),
        retrieval._better_by_csls.lower(
            shape(words, dim),
            shape(batch, dim),
            best(words),
            shape(words, k),
            step,
            step,
            neighbours=10,
        ),
    )
    for one in lowered:
        temporary = one.compile().memory_analysis().temp_size_in_bytes
        # Two tables of 240 MB on the device, two on the host, and this.
        assert temporary < 4 * 4 * retrieval._SCORES
        assert 4 * 4 * words * dim + temporary < 4e9


@pytest.mark.parametrize("direction", ["forward", "backward", "union", "mutual"])
@pytest.mark.parametrize("neighbours", [0, 10])
def test_dictionaries_are_those_of_brute_force(small_blocks, direction, neighbours):
    source, target = rows(12), rows(13, 70)
    scores = csls_matrix(source, target) if neighbours else source @ target.T
    forward = {(i, int(j)) for i, j in enumerate(scores.argmax(axis=1))}
    backward = {(int(i), j) for j, i in enumerate(scores.argmax(axis=0))}
    expected = {
        "forward": forward,
        "backward": backward,
        "union": forward | backward,
        "mutual": forward & backward,
    }[direction]
    pairs = dictionaries.induce(
        source, target, direction=direction, neighbours=neighbours
    )
    assert set(map(tuple, pairs.tolist())) == expected
    kept_in_memory = dictionaries._induced(
        jnp.asarray(source),
        jnp.asarray(target),
        jax.random.key(0),
        1.0,
        neighbours=neighbours,
        stochastic=False,
    )
    one_pass = dictionaries._pairs(*map(np.asarray, kept_in_memory[:2]), direction)
    assert set(map(tuple, one_pass.tolist())) == expected
    cosines = source @ target.T
    best = (cosines.max(axis=1).mean() + cosines.max(axis=0).mean()) / 2
    assert float(kept_in_memory[2]) == pytest.approx(best, abs=1e-5)


def test_a_part_of_the_similarities_is_seen():
    """With similarities of one sign, a word that is not seen scores 0."""
    source = np.abs(rows(14, 2000, 4))
    key = jax.random.key(3)
    forward, _, _ = dictionaries._induced(
        jnp.asarray(source),
        jnp.asarray(source),
        key,
        0.25,
        neighbours=0,
        stochastic=True,
    )
    # The nearest word to each is itself, where it is seen.
    assert np.mean(np.asarray(forward) == np.arange(2000)) == pytest.approx(
        0.25, abs=0.03
    )


def test_mutual_pairs_are_seen_in_both_directions_or_in_none():
    """All words are their own translation: those seen are found in both directions."""
    source = jnp.asarray(np.abs(rows(15, 500, 4)))
    found = {}
    for together in (False, True):
        forward, backward, _ = dictionaries._induced(
            source,
            source,
            jax.random.key(4),
            0.25,
            neighbours=0,
            stochastic=True,
            together=together,
        )
        same = (np.asarray(side) == np.arange(500) for side in (forward, backward))
        found[together] = np.mean(np.logical_and(*same))
    assert found[True] == pytest.approx(0.25, abs=0.06)
    assert found[False] == pytest.approx(0.25**2, abs=0.04)


@pytest.mark.parametrize("keep", [0.1, 0.8])
def test_entries_are_seen_by_chance_and_apart_from_each_other(keep):
    """Counts of rows, columns and neighbours vary as those of coins do."""
    shape = 512, 768
    one, other = (
        np.asarray(dictionaries.seen(jax.random.key(k), shape, keep)) for k in (0, 1)
    )
    coin = np.sqrt(keep * (1 - keep))
    assert abs(one.mean() - keep) < 4 * coin / np.sqrt(one.size)
    for axis in (0, 1):
        expected = coin * np.sqrt(shape[axis])
        assert one.sum(axis=axis).std() == pytest.approx(expected, rel=0.1)
    pairs = (
        (one, other),
        (one[1:], one[:-1]),
        (one[:, 1:], one[:, :-1]),
        (one[1:, 1:], one[:-1, :-1]),
    )
    for first, second in pairs:
        both = np.corrcoef(first.ravel(), second.ravel())[0, 1]
        assert abs(both) < 4 / np.sqrt(first.size)


def planted(seed, words=2000, dim=50):
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(words, dim)) * np.exp(-np.arange(dim) / 25)[np.newaxis]
    turn = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    target = source @ turn
    target = target + 0.1 * target.std() * rng.normal(size=target.shape)
    return normalize.unit(source), normalize.unit(target)


@pytest.mark.parametrize("seed", range(3))
def test_self_learning_grows_a_dictionary_from_15_pairs(seed):
    source, target = planted(seed)
    first = np.stack([np.arange(15)] * 2, axis=1)

    def mrr(pairs):
        from jaxemb.spaces import align

        turn = align.procrustes(source[pairs[:, 0]], target[pairs[:, 1]])
        return np.mean(1 / retrieval.ranks(source @ turn, target, np.arange(2000)))

    assert 0.4 < mrr(first) < 0.7
    settings = SelfLearning(direction="mutual", keep=1.0, patience=5, most=40)
    learned = dictionaries.learn(source, target, first, settings)
    assert mrr(learned.pairs) > 0.99
    assert learned.objective[-1] > learned.objective[0]


def test_the_part_that_is_seen_grows_when_the_objective_stands():
    source, target = planted(3, words=400, dim=20)
    first = np.stack([np.arange(30)] * 2, axis=1)
    settings = SelfLearning(keep=0.25, patience=3, most=200)
    learned = dictionaries.learn(source, target, first, settings)
    assert set(learned.keep) == {0.25, 0.5, 1.0}
    assert np.all(np.diff(learned.keep) >= 0)
    again = dictionaries.learn(source, target, first, settings)
    np.testing.assert_array_equal(again.pairs, learned.pairs)
    right = np.mean(learned.pairs[:, 0] == learned.pairs[:, 1])
    assert right > 0.95


def test_a_dictionary_that_gives_itself_is_the_end():
    source, target = planted(3, words=400, dim=20)
    first = np.stack([np.arange(30)] * 2, axis=1)
    settings = SelfLearning(direction="mutual", keep=1.0, patience=100)
    learned = dictionaries.learn(source, target, first, settings)
    assert len(learned.objective) < 50
    again = dictionaries.learn(source, target, learned.pairs, settings)
    np.testing.assert_array_equal(again.pairs, learned.pairs)
    assert again.objective == learned.objective[-1:]


def test_a_collapse_is_told():
    source, _ = planted(4, words=300, dim=20)
    hub = np.tile(source[:1], (300, 1))
    settings = SelfLearning(direction="forward", keep=1.0, patience=2, neighbours=0)
    first = np.stack([np.arange(5)] * 2, axis=1)
    with pytest.raises(dictionaries.Collapsed, match="different words of one side"):
        dictionaries.learn(source, normalize.unit(hub), first, settings)


def test_bad_arguments_are_named():
    with pytest.raises(InputError, match="k = 91: expected 1 to 90"):
        retrieval.nearest(rows(0), rows(0), 91)
    with pytest.raises(InputError, match="an empty seed dictionary"):
        dictionaries.learn(rows(0), rows(0), np.zeros((0, 2), np.int64))
    with pytest.raises(InputError, match="a gold row outside the 90 rows"):
        retrieval.ranks(rows(0), rows(0), np.full(90, 90))
