"""Pipelines over text: its words, and the text as ids of words."""

# pyright: reportMissingImports=false
# The extra `beam` has an environment of its own.

import collections
import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import AsDict, AsSingleton

from jaxemb.data.corpus import shards as shard_files
from jaxemb.data.corpus.building import check_settings, chunks
from jaxemb.data.corpus.readers import split_lines
from jaxemb.data.corpus.spool import held_apart
from jaxemb.data.pipelines import storage
from jaxemb.errors import InputError

_PIECE = 1 << 26  # bytes of text that one worker takes at a time


@dataclasses.dataclass(frozen=True)
class Settings:
    """How text becomes words; see `corpus.build` for all but `lower`."""

    min_count: int = 5
    max_words: int | None = None
    max_sentence: int = 10_000
    held_out: int = 0
    lower: bool = False

    def __post_init__(self):
        check_settings(self.min_count, self.max_words, self.max_sentence, self.held_out)


@dataclasses.dataclass(frozen=True)
class Piece:
    """A piece of a text file: the lines that begin in it."""

    number: int
    path: str
    start: int
    stop: int | None  # None: to the end

    def sentences(self, settings: Settings) -> Iterator[list[str]]:
        """Its sentences, in order."""
        with storage.open_text(self.path) as stream:
            yield from split_lines(
                stream,
                self.path,
                lower=settings.lower,
                max_sentence=settings.max_sentence,
                start=self.start,
                stop=self.stop,
            )


def count(
    texts: Sequence[str],
    output: str,
    settings: Settings | None = None,
    *,
    options: PipelineOptions | None = None,
    piece_bytes: int = _PIECE,
) -> None:
    """Counts the words of text files, as `corpus.build` does.

    Args:
      texts: files or patterns (`gs://bucket/*.txt.gz`) with one sentence a line.
      output: a new folder for the vocabulary.
      settings: how text becomes words.
      options: Beam's.
      piece_bytes: plain files are read in pieces of this size, packed ones whole.

    Raises:
      InputError: where no file matches, no word is frequent enough, or the folder is
        not new.
    """
    settings = settings or Settings()
    storage.require_new(output)
    pieces = _pieces(texts, piece_bytes)
    with beam.Pipeline(options=options) as pipeline:
        spread = _spread(pipeline, pieces)
        _ = (
            spread
            | "count words"
            >> beam.ParDo(_CountWords(settings), _sizes(spread, settings))
            | "sum" >> beam.CombinePerKey(sum)
            | "often enough" >> beam.Filter(_often, settings.min_count)
            | "collect" >> beam.combiners.ToList()
            | "write words" >> beam.Map(_write_words, output, settings.max_words)
        )
    path = FileSystems.join(output, shard_files.WORDS)
    if not storage.read_bytes(path):
        raise InputError(
            f"{', '.join(texts)}: no word occurs {settings.min_count} times (min_count)"
        )
    info = {
        "pieces": [dataclasses.asdict(piece) for piece in pieces],
        "settings": dataclasses.asdict(settings),
    }
    path = FileSystems.join(output, _COUNTED)
    storage.write_bytes(path, json.dumps(info).encode())


def encode(
    counted: str, output: str, *, options: PipelineOptions | None = None
) -> None:
    """Writes the text whose words `count` counted as ArrayRecord shards of ids.

    Args:
      counted: the folder that `count` wrote; its text must still be where it was.
      output: a new folder for the shards, one a piece of text.
      options: Beam's.

    Raises:
      InputError: where `count` has not completed, or the folder is not new.
    """
    info = storage.read_info(counted, _COUNTED, "count")
    settings = Settings(**info["settings"])
    pieces = [Piece(**piece) for piece in info["pieces"]]
    vocabulary = storage.read_bytes(FileSystems.join(counted, shard_files.WORDS))
    storage.require_new(output)
    with beam.Pipeline(options=options) as pipeline:
        # A side input, so that it goes to each worker once and not with each piece.
        words = pipeline | "vocabulary" >> beam.Create([vocabulary])
        _ = _spread(pipeline, pieces) | "encode" >> beam.ParDo(
            _Encode(settings, output, len(pieces)), AsSingleton(words)
        )
    told = {
        **dataclasses.asdict(settings),
        "settings": ["min_count", "max_words", "max_sentence", "held_out"],
        "shards": len(pieces),
    }
    words_path = FileSystems.join(output, shard_files.WORDS)
    storage.write_bytes(words_path, vocabulary)
    info_path = FileSystems.join(output, shard_files.TEXT_INFO)
    storage.write_bytes(info_path, json.dumps(told).encode())


_COUNTED = "counted.json"


class _CountWords(beam.DoFn):
    """Every word of a piece with its count there, held-out sentences left out."""

    def __init__(self, settings: Settings):
        self._settings = settings

    def process(self, element: Piece, sizes: Mapping[int, int]):
        settings = self._settings
        done = sum(sizes.get(number, 0) for number in range(element.number))
        counts: collections.Counter[str] = collections.Counter()
        for sentence in element.sentences(settings):
            if not held_apart(done, 1, settings.held_out)[0]:
                counts.update(sentence)
            done += 1
        yield from counts.items()


class _CountSentences(beam.DoFn):
    """The number of sentences of a piece."""

    def __init__(self, settings: Settings):
        self._settings = settings

    def process(self, element: Piece):
        yield element.number, sum(1 for _ in element.sentences(self._settings))


class _Encode(beam.DoFn):
    """Writes a piece as a shard."""

    def __init__(self, settings: Settings, output: str, shards: int):
        self._settings, self._output, self._shards = settings, output, shards
        self._index: dict[str, int] = {}

    def process(self, element: Piece, vocabulary: bytes):
        if not self._index:
            words, _ = shard_files.parse_words(vocabulary, shard_files.WORDS)
            self._index = {word: i for i, word in enumerate(words)}
        name = shard_files.TEXT.format(element.number, self._shards)
        path = FileSystems.join(self._output, name)
        storage.write_file(
            path, lambda local: shard_files.write_shard(local, self._records(element))
        )
        yield path

    def _records(self, element: Piece) -> Iterator[bytes]:
        limit = self._settings.max_sentence
        find = self._index.get
        for words, lengths in chunks(element.sentences(self._settings), limit):
            ids = np.fromiter(
                map(find, words, itertools.repeat(-1)), np.int32, len(words)
            )
            yield shard_files.pack(ids, lengths)


def _pieces(texts: Sequence[str], size: int) -> list[Piece]:
    """Pieces of all files, in the order of patterns and then of names."""
    pieces: list[Piece] = []
    for pattern, match in zip(texts, FileSystems.match(list(texts)), strict=True):
        if not match.metadata_list:
            raise InputError(f"{pattern}: no such file")
        for file in sorted(match.metadata_list, key=lambda file: file.path):
            whole = storage.is_packed(file.path)
            starts = [0] if whole else range(0, max(1, file.size_in_bytes), size)
            for start in starts:
                stop = None if whole else start + size
                pieces.append(Piece(len(pieces), file.path, start, stop))
    return pieces


def _spread(pipeline: beam.Pipeline, pieces: Sequence[Piece]):
    return (
        pipeline
        | "pieces" >> beam.Create(pieces)
        | "spread over workers" >> beam.Reshuffle()
    )


def _sizes(spread, settings: Settings):
    """The sentences of each piece, which only matter to what is held out."""
    if not settings.held_out:
        return {}
    numbered = spread | "count sentences" >> beam.ParDo(_CountSentences(settings))
    return AsDict(numbered)


def _often(counted: tuple[str, int], min_count: int) -> bool:
    return counted[1] >= min_count


def _write_words(
    counted: list[tuple[str, int]], output: str, max_words: int | None
) -> None:
    ordered = sorted(counted, key=lambda pair: (-pair[1], pair[0]))[:max_words]
    path = FileSystems.join(output, shard_files.WORDS)
    storage.write_bytes(path, shard_files.format_words(ordered))
