import collections
import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from jaxemb.data import batching
from jaxemb.errors import InputError


def ragged_columns(lengths):
    sequences = [np.full(n, i + 1) for i, n in enumerate(lengths)]
    return {
        "tokens": batching.Ragged.of(sequences),
        "label": np.arange(len(lengths)),
    }


@given(st.lists(st.lists(st.integers(1, 99), max_size=9), min_size=1, max_size=8))
def test_ragged_pads_each_row(sequences):
    ragged = batching.Ragged.of(sequences)
    rows = np.arange(len(sequences))[::-1]
    length = max(1, max(map(len, sequences)) - 1)
    expected = [(sequences[r] + [0] * length)[:length] for r in rows]
    assert ragged.padded(rows, length).tolist() == expected
    assert ragged.lengths.tolist() == [len(s) for s in sequences]


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=40),
    batch_size=st.integers(1, 9),
    seed=st.integers(0, 5),
)
def test_an_epoch_shows_every_example(lengths, batch_size, seed):
    buckets = batching.length_buckets(np.array(lengths), 3, multiple=4)
    plan = batching.Shuffled(ragged_columns(lengths), batch_size, seed, buckets)
    for epoch in range(2):
        first = epoch * plan.steps_per_epoch
        batches = [plan(first + i) for i in range(plan.steps_per_epoch)]
        seen = collections.Counter(int(x) for b in batches for x in b["label"])
        assert set(seen) == set(range(len(lengths)))
        assert sum(seen.values()) == plan.steps_per_epoch * batch_size
        for batch in batches:
            assert batch["tokens"].shape[1] in buckets
            for row, label in zip(batch["tokens"], batch["label"], strict=True):
                assert (row == label + 1).sum() == lengths[label]


@given(
    lengths=st.lists(st.integers(0, 20), min_size=1, max_size=12),
    count=st.integers(1, 4),
    multiple=st.sampled_from([1, 4]),
)
def test_buckets_pad_least_of_all_choices(lengths, count, multiple):
    def padded(buckets):
        return sum(min(b for b in buckets if b >= n) for n in lengths)

    sizes = {max(multiple, -(-n // multiple) * multiple) for n in lengths}
    choices = [
        {*some, max(sizes)}
        for k in range(count)
        for some in itertools.combinations(sizes, k)
    ]
    buckets = batching.length_buckets(np.array(lengths), count, multiple)
    assert len(buckets) <= count
    assert set(buckets) <= sizes
    assert padded(buckets) == min(map(padded, choices))


def test_bucketing_pads_less_than_the_longest():
    lengths = np.random.default_rng(0).integers(1, 64, 1000)
    buckets = batching.length_buckets(lengths, 4)
    plan = batching.Shuffled(ragged_columns(lengths), 50, 0, buckets)
    padded = sum(plan(i)["tokens"].size for i in range(plan.steps_per_epoch))
    assert padded < 1.3 * lengths.sum()
    assert len(buckets) <= 4


def test_a_batch_is_a_function_of_the_step():
    plan = batching.Shuffled(ragged_columns(range(50)), 8, 3, (16, 64))
    other = batching.Shuffled(ragged_columns(range(50)), 8, 3, (16, 64))
    for step in [40, 3, 0, 17, 3]:
        np.testing.assert_array_equal(plan(step)["label"], other(step)["label"])
    assert not np.array_equal(plan(0)["label"], plan(plan.steps_per_epoch)["label"])
    seeded = batching.Shuffled(ragged_columns(range(50)), 8, 4, (16, 64))
    orders = [[p(i)["label"].tolist() for i in range(7)] for p in (plan, seeded)]
    assert orders[0] != orders[1]


def test_processes_share_a_batch():
    columns = ragged_columns(range(30))
    whole = batching.Shuffled(columns, 12, 0, (8, 32))
    parts = [
        batching.Shuffled(columns, 12, 0, (8, 32), process_index=i, process_count=3)
        for i in range(3)
    ]
    for step in range(5):
        together = [part(step) for part in parts]
        for name in whole(step):
            joined = np.concatenate([part[name] for part in together])
            np.testing.assert_array_equal(joined, whole(step)[name])


@given(lengths=st.lists(st.integers(0, 12), min_size=1, max_size=20))
def test_in_order_gives_each_example_weight_one(lengths):
    total = np.zeros(len(lengths))
    for batch in batching.in_order(ragged_columns(lengths), 4, (4, 12)):
        assert batch["tokens"].shape[0] == 4
        np.add.at(total, batch["index"], batch["weight"])
        np.testing.assert_array_equal(batch["label"], batch["index"])
    np.testing.assert_array_equal(total, 1)


def two_texts(lengths):
    return {
        "long": batching.Ragged.of([np.full(a, i + 1) for i, (a, _) in lengths]),
        "short": batching.Ragged.of([np.full(b, i + 1) for i, (_, b) in lengths]),
        "label": np.arange(len(lengths)),
    }


@given(
    lengths=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=1),
    batch_size=st.integers(1, 5),
)
def test_each_column_may_have_buckets_of_its_own(lengths, batch_size):
    columns = two_texts(list(enumerate(lengths)))
    buckets = {"long": (8, 16, 30), "short": (4, 9)}
    plan = batching.Shuffled(columns, batch_size, 0, buckets)
    batches = [plan(i) for i in range(plan.steps_per_epoch)]
    ordered = list(batching.in_order(columns, batch_size, buckets))
    for batch in [*batches, *ordered]:
        for column, name in enumerate(("long", "short")):
            width = batch[name].shape[1]
            longest = max(lengths[label][column] for label in batch["label"])
            assert width == min(b for b in buckets[name] if b >= longest)
            for row, label in zip(batch[name], batch["label"], strict=True):
                assert (row == label + 1).sum() == lengths[label][column]
    assert {x for b in batches for x in b["label"]} == set(range(len(lengths)))
    shapes = {(b["long"].shape[1], b["short"].shape[1]) for b in [*batches, *ordered]}
    assert len(shapes) <= 6


def test_like_pairs_of_lengths_share_a_batch():
    lengths = np.random.default_rng(0).integers(1, [[33, 17]], (600, 2))
    buckets = {"long": (8, 16, 24, 32), "short": (8, 16)}
    columns = two_texts(list(enumerate(lengths.tolist())))
    plan = batching.Shuffled(columns, 20, 0, buckets)
    batches = [plan(i) for i in range(plan.steps_per_epoch)]
    for column, name in enumerate(buckets):
        alone = sum(-(-length // 8) * 8 for length in lengths[:, column])
        padded = sum(batch[name].size for batch in batches)
        assert padded < 1.15 * alone


def test_buckets_of_unknown_columns_are_refused():
    columns = two_texts([(0, (1, 1))])
    with pytest.raises(InputError, match=r"of \['long'\]; expected .*'long', 'short'"):
        batching.Shuffled(columns, 1, 0, {"long": (4,)})


def test_rows_can_be_taken():
    columns = two_texts(list(enumerate([(1, 2), (3, 0), (0, 4)])))
    taken = batching.take(columns, np.array([2, 0]))
    assert taken["label"].tolist() == [2, 0]
    assert taken["long"].lengths.tolist() == [0, 1]
    assert taken["short"].values.tolist() == [3, 3, 3, 3, 1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 5, "process_count": 2}, "5 examples cannot be split over 2"),
        ({"buckets": (2,)}, "length 3 does not fit the longest bucket, 2"),
        ({"buckets": (4, 2)}, "ascending"),
        ({"columns": {"x": np.zeros(0)}}, "no examples"),
        ({"columns": {"x": np.zeros(2), "y": np.zeros(3)}}, "differ in length"),
    ],
)
def test_bad_plans_are_refused(options, message):
    arguments = {"columns": ragged_columns([1, 2, 3]), "batch_size": 2, "seed": 0}
    with pytest.raises(InputError, match=message):
        batching.Shuffled(**(arguments | options))
