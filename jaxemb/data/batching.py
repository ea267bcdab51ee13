"""Batches as a function of the step, so that a run can start again anywhere.

A batch plan is called with a step and returns that step's batch: the order of an epoch
depends on the seed and the epoch alone. Sequences are padded to one of a few lengths,
which bounds how many programs the step compiles to.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxemb.errors import InputError

Batch = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Ragged:
    """Sequences of unequal length, end to end in one array."""

    values: np.ndarray
    """Every sequence after the one before it."""
    offsets: np.ndarray
    """Where each sequence starts; one more entry than there are sequences."""

    @classmethod
    def of(cls, sequences: Sequence[Any], dtype: Any = np.int32) -> "Ragged":
        """Packs lists or arrays of numbers."""
        lengths = np.fromiter((len(s) for s in sequences), np.int64, len(sequences))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        values = np.empty(offsets[-1], dtype)
        for start, sequence in zip(offsets, sequences, strict=False):
            values[start : start + len(sequence)] = sequence
        return cls(values, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Length of every sequence."""
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> "Ragged":
        """The named rows, in their order."""
        sequences = [self.values[self.offsets[r] : self.offsets[r + 1]] for r in rows]
        return Ragged.of(sequences, self.values.dtype)

    def padded(self, rows: np.ndarray, length: int, fill: Any = 0) -> np.ndarray:
        """The named rows as a matrix of `length` columns, padded on the right."""
        place = np.arange(length)
        inside = place < np.minimum(self.lengths[rows], length)[:, None]
        source = np.where(inside, self.offsets[rows][:, None] + place, 0)
        if not len(self.values):
            return np.full(source.shape, fill, self.values.dtype)
        return np.where(inside, self.values[source], fill).astype(self.values.dtype)


Columns = Mapping[str, np.ndarray | Ragged]

Buckets = tuple[int, ...] | Mapping[str, tuple[int, ...]]
"""Padded lengths, ascending: of all ragged columns together, or of each by name.

Empty: the longest length. By name, a batch has one length of each column's, so there
are at most as many shapes as the product of their numbers.
"""


def take(columns: Columns, rows: np.ndarray) -> dict[str, np.ndarray | Ragged]:
    """The named rows of every column."""
    return {
        name: column.take(rows) if isinstance(column, Ragged) else column[rows]
        for name, column in columns.items()
    }


def length_buckets(
    lengths: np.ndarray, count: int, multiple: int = 8
) -> tuple[int, ...]:
    """The padded lengths, at most `count`, that need the least padding in all.

    Each is a multiple of `multiple`, as accelerators tile; the last fits the longest.
    """
    rounded = np.maximum(multiple, -(-np.asarray(lengths) // multiple) * multiple)
    sizes, numbers = np.unique(rounded, return_counts=True)
    held = np.concatenate([[0], np.cumsum(numbers)])  # sequences below each size
    # cost[j]: the least total length of the sequences up to size j, in so many buckets.
    cost = np.where(np.arange(len(sizes) + 1) == 0, 0.0, np.inf)
    choices = []
    for _ in range(count):
        # One more bucket, of the size of column j, after the sizes up to row i.
        padded = cost[:, None] + sizes[None] * (held[None, 1:] - held[:, None])
        padded[held[:, None] > held[None, 1:]] = np.inf
        choices.append(padded.argmin(axis=0))
        cost = np.concatenate([[0.0], padded.min(axis=0)])
    buckets, end = [], len(sizes)
    for choice in reversed(choices):
        if end == 0:
            break
        buckets.append(int(sizes[end - 1]))
        end = int(choice[end - 1])
    return tuple(sorted(set(buckets)))


@dataclasses.dataclass(frozen=True, eq=False)
class Shuffled:
    """Full batches of shuffled examples, epoch after epoch: `plan(step)` is a batch.

    An epoch has `ceil(examples / batch_size)` batches and shows every example; its last
    batch is filled up with examples that the epoch has shown already. With `buckets`,
    examples of like lengths share a batch, padded to the shortest bucket that fits.
    """

    columns: Columns
    """Name to one entry an example; `Ragged` columns come out padded."""
    batch_size: int
    """Examples of one step over all processes."""
    seed: int
    buckets: Buckets = ()
    process_index: int = 0
    process_count: int = 1

    def __post_init__(self) -> None:
        if self.num_examples == 0:
            raise InputError("there are no examples to make batches of")
        if self.batch_size < 1 or self.batch_size % self.process_count:
            raise InputError(
                f"a batch of {self.batch_size} examples cannot be split over "
                f"{self.process_count} processes"
            )
        _ = self._shapes  # buckets that do not fit are told at once

    @property
    def num_examples(self) -> int:
        """Examples in an epoch."""
        return _num_examples(self.columns)

    @property
    def steps_per_epoch(self) -> int:
        """Batches in an epoch."""
        return -(-self.num_examples // self.batch_size)

    @functools.cached_property
    def _shapes(self) -> "_Shapes":
        return _Shapes(self.columns, self.buckets)

    @functools.lru_cache(maxsize=2)  # noqa: B019 (a plan lives as long as its run)
    def _epoch(self, epoch: int) -> np.ndarray:
        """Row numbers of the epoch's examples: one row a batch."""
        generator = np.random.default_rng([self.seed, epoch])
        order = generator.permutation(self.num_examples)
        order = order[np.argsort(self._shapes.place[order], kind="stable")]
        missing = self.steps_per_epoch * self.batch_size - len(order)
        order = np.concatenate([order, np.resize(order, missing)])
        return generator.permutation(order.reshape(-1, self.batch_size))

    def __call__(self, step: int) -> Batch:
        """The batch of a step, this process's part of it."""
        epoch, place = divmod(step, self.steps_per_epoch)
        rows = self._epoch(epoch)[place]
        lengths = self._shapes.lengths(rows)
        local = self.batch_size // self.process_count
        rows = rows[self.process_index * local :][:local]
        return _gather(self.columns, rows, lengths)


def in_order(
    columns: Columns, batch_size: int, buckets: Buckets = ()
) -> Iterator[Batch]:
    """Every example once, for evaluation, in full batches of bounded shapes.

    A batch also has `index`, the examples' row numbers, and `weight`, 0 for examples
    that only fill the last batch up and 1 for the others.
    """
    shapes = _Shapes(columns, buckets)
    order = np.argsort(shapes.place, kind="stable")
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        weight = np.zeros(batch_size, np.float32)
        weight[: len(rows)] = 1
        rows = np.resize(rows, batch_size)
        batch = _gather(columns, rows, shapes.lengths(rows))
        yield {**batch, "index": rows, "weight": weight}


def _num_examples(columns: Columns) -> int:
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) != 1:
        raise InputError(f"the columns of a data set differ in length: {sizes}")
    return next(iter(sizes.values()))


class _Shapes:
    """The padded lengths of examples, and the order that brings like ones together."""

    def __init__(self, columns: Columns, buckets: Buckets):
        examples = _num_examples(columns)
        lengths = {n: c.lengths for n, c in columns.items() if isinstance(c, Ragged)}
        self._parts: list[tuple[tuple[str, ...], tuple[int, ...], np.ndarray]] = []
        if isinstance(buckets, Mapping):
            if set(buckets) != set(lengths):
                raise InputError(
                    f"buckets are of {sorted(buckets)}; expected the ragged columns, "
                    f"{sorted(lengths)}"
                )
            for name, of_name in buckets.items():
                self._add((name,), lengths[name], of_name)
        elif lengths:
            longest = np.max(list(lengths.values()), axis=0)
            self._add(tuple(lengths), longest, buckets)
        # One number for the buckets of all columns, the first column's counting most.
        self.place = np.zeros(examples, np.int64)
        for _, padded, bucket in self._parts:
            self.place = self.place * len(padded) + bucket

    def _add(
        self, names: tuple[str, ...], lengths: np.ndarray, buckets: tuple[int, ...]
    ) -> None:
        _check_buckets(buckets, lengths)
        padded = buckets or (max(1, int(lengths.max(initial=0))),)
        self._parts.append((names, padded, np.searchsorted(padded, lengths)))

    def lengths(self, rows: np.ndarray) -> dict[str, int]:
        """Each ragged column's padded length in a batch of these rows."""
        return {
            name: padded[bucket[rows].max()]
            for names, padded, bucket in self._parts
            for name in names
        }


def _check_buckets(buckets: tuple[int, ...], lengths: np.ndarray) -> None:
    if list(buckets) != sorted(set(buckets)) or any(b < 1 for b in buckets):
        raise InputError(f"bucket lengths {buckets} are not positive and ascending")
    if buckets and lengths.max(initial=0) > buckets[-1]:
        raise InputError(
            f"a sequence of length {lengths.max()} does not fit the longest bucket, "
            f"{buckets[-1]}"
        )


def _gather(columns: Columns, rows: np.ndarray, lengths: Mapping[str, int]) -> Batch:
    return {
        name: column.padded(rows, lengths[name])
        if isinstance(column, Ragged)
        else column[rows]
        for name, column in columns.items()
    }
