"""The pipeline that counts co-occurrences of shards of encoded text."""

# pyright: reportMissingImports=false
# The extra `beam` has an environment of its own.

import dataclasses
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import AsDict

from jaxemb.data.cooccurrence import Run, Scheme, Weighting, count_block, merge
from jaxemb.data.corpus import shards as shard_files
from jaxemb.data.corpus.spool import held_apart
from jaxemb.data.corpus.writing import Encoded
from jaxemb.data.pipelines import storage

_MERGE_BYTES = 1 << 28
_BLOCK_PAIRS = 1 << 22


def cooccurrences(
    encoded: str,
    output: str,
    *,
    window: int = 10,
    weighting: Weighting = "harmonic",
    symmetric: bool = True,
    shards: int = 16,
    options: PipelineOptions | None = None,
) -> None:
    """Counts pairs of words near each other, as `cooccurrence.count` does.

    Args:
      encoded: the folder that `encode` wrote.
      output: a new folder for the pairs.
      window: the greatest distance.
      weighting: what a pair at distance d adds: 1/d ("harmonic") or 1 ("flat").
      symmetric: whether pairs count in both directions.
      shards: files to write; the pairs of one must fit into a worker's memory.
      options: Beam's.

    Raises:
      InputError: where `encode` has not completed, or the folder is not new.
    """
    info = storage.read_info(encoded, shard_files.TEXT_INFO, "encode")
    path = FileSystems.join(encoded, shard_files.WORDS)
    words, counts = shard_files.parse_words(storage.read_bytes(path), path)
    scheme = Scheme(len(words), window, weighting, symmetric)
    storage.require_new(output)
    number = info["shards"]
    names = [shard_files.TEXT.format(i, number) for i in range(number)]
    paths = [(i, FileSystems.join(encoded, name)) for i, name in enumerate(names)]
    limits = _row_limits(counts, scheme, shards)
    with beam.Pipeline(options=options) as pipeline:
        pieces = (
            pipeline
            | "shards" >> beam.Create(paths)
            | "spread over workers" >> beam.Reshuffle()
        )
        sizes = {}
        if info["held_out"]:
            sizes = AsDict(pieces | "count sentences" >> beam.ParDo(_CountSentences()))
        counted = pieces | "count pairs" >> beam.ParDo(
            _Count(scheme, limits, info["held_out"]), sizes
        )
        # Every file is written, if only to say that nothing is in it: a lost one is
        # then told from an empty one.
        nothing = np.empty(0, np.int64)
        empty = pipeline | "empty files" >> beam.Create(
            [(file, (nothing, nothing)) for file in range(len(limits))]
        )
        _ = (
            (counted, empty)
            | beam.Flatten()
            | "merge" >> beam.CombinePerKey(_Merge())
            | "write" >> beam.Map(_write, output, len(limits))
        )
    told = {"scheme": dataclasses.asdict(scheme), "shards": len(limits)}
    path = FileSystems.join(output, shard_files.PAIRS_INFO)
    storage.write_bytes(path, json.dumps(told).encode())


class _CountSentences(beam.DoFn):
    """The number of sentences of a shard."""

    def process(self, element: tuple[int, str]):
        number, path = element
        records = _local_records(path)
        yield number, sum(len(shard_files.unpack(record)[1]) for record in records)


class _Count(beam.DoFn):
    """The pairs of a shard, in runs, each with the number of its output file."""

    def __init__(self, scheme: Scheme, limits: np.ndarray, held_out: int):
        self._scheme, self._limits, self._held_out = scheme, limits, held_out

    def process(self, element: tuple[int, str], sizes: Mapping[int, int]):
        number, path = element
        done = sum(sizes.get(before, 0) for before in range(number))
        for record in _local_records(path):
            ids, lengths = shard_files.unpack(record)
            apart = held_apart(done, len(lengths), self._held_out)
            done += len(lengths)
            tokens, known, _ = Encoded(ids, lengths, apart).part(apart=False)
            for run in self._runs(tokens, np.repeat(np.cumsum(known), known)):
                yield from self._by_file(run)

    def _runs(self, tokens: np.ndarray, ends: np.ndarray) -> Iterator[Run]:
        size = max(1, _BLOCK_PAIRS // (2 * self._scheme.window))
        for start in range(0, len(tokens), size):
            block = tokens[start : start + size + self._scheme.window]
            within = ends[start : start + size] - start
            yield count_block(block, within, len(within), self._scheme)

    def _by_file(self, run: Run) -> Iterator[tuple[int, tuple[np.ndarray, np.ndarray]]]:
        first_keys = self._limits << self._scheme.bits
        places = [*np.searchsorted(run.keys, first_keys), len(run.keys)]
        for file, (start, stop) in enumerate(itertools.pairwise(places)):
            if start < stop:
                yield file, (run.keys[start:stop], run.sums[start:stop])


class _Merge(beam.CombineFn):
    """Runs of one output file; merged whenever they have doubled."""

    def create_accumulator(self) -> list[Run]:
        return []

    def add_input(self, mutable_accumulator: list[Run], element) -> list[Run]:
        runs = [*mutable_accumulator, Run(*element)]
        rest = sum(len(run.keys) for run in runs[1:])
        return [_merged(runs)] if rest > len(runs[0].keys) else runs

    def merge_accumulators(self, accumulators: Iterable[list[Run]]) -> list[Run]:
        return [_merged([run for runs in accumulators for run in runs])]

    def extract_output(self, accumulator: list[Run]) -> Run:
        return _merged(accumulator)


def _merged(runs: Sequence[Run]) -> Run:
    pieces = list(merge([Run(*run) for run in runs], _MERGE_BYTES))
    keys = [piece.keys for piece in pieces] or [np.empty(0, np.int64)]
    sums = [piece.sums for piece in pieces] or [np.empty(0, np.int64)]
    return Run(np.concatenate(keys), np.concatenate(sums))


def _row_limits(counts: np.ndarray, scheme: Scheme, shards: int) -> np.ndarray:
    """The first row of each output file, so that files have about as many pairs."""
    most = np.minimum(2 * scheme.window * counts, scheme.vocab)
    ends = np.cumsum(most)
    targets = np.arange(shards) * (ends[-1] / shards)
    return np.unique(np.searchsorted(ends - most, targets))[: len(counts)]


def _local_records(path: str) -> Iterator[bytes]:
    """The records of a shard, which is copied here first: the format needs that."""
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "shard")
        with (
            FileSystems.open(
                path, compression_type=CompressionTypes.UNCOMPRESSED
            ) as source,
            open(local, "wb") as target,
        ):
            shutil.copyfileobj(source, target, 1 << 20)
        yield from shard_files.read_records(local)


def _write(counted: tuple[int, Run], output: str, files: int) -> None:
    file, run = counted
    path = FileSystems.join(output, shard_files.PAIRS.format(file, files))
    storage.write_file(path, lambda local: _save(local, Run(*run)))


def _save(local: str, run: Run) -> None:
    with open(local, "wb") as stream:
        np.savez(stream, keys=run.keys, sums=run.sums)
