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
