"""What Beam pipelines leave, made into what `corpus.build` and `cooccurrence.count` do.

The pipelines themselves are in `jaxemb.data.pipelines`; nothing here needs Beam.
"""

import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from array_record.python import array_record_module  # pyright: ignore[reportAttributeAccessIssue]

from jaxemb.data import cooccurrence
from jaxemb.data.corpus.building import Corpus, open_corpus
from jaxemb.data.corpus.files import new_folder
from jaxemb.data.corpus.spool import held_apart
from jaxemb.data.corpus.writing import Encoded, write_corpus
from jaxemb.errors import InputError

WORDS, TEXT_INFO, PAIRS_INFO = "words.tsv", "text.json", "pairs.json"
TEXT, PAIRS = "text-{:05d}-of-{:05d}.array_record", "pairs-{:05d}-of-{:05d}.npz"

_HEAD = struct.Struct("<qq")  # sentences and words of a record


def corpus_from_shards(
    shards: str | os.PathLike[str], folder: str | os.PathLike[str]
) -> Corpus:
    """A corpus of the ArrayRecord shards that the pipeline `encode` wrote.

    It is the one that `corpus.build` makes of the same text with the same settings.

    Raises:
      InputError: where the shards are not complete, or the folder is not new.
    """
    shards = Path(shards)
    info = _info(shards / TEXT_INFO, "encode")
    words, counts = parse_words((shards / WORDS).read_bytes(), str(shards / WORDS))
    paths = (shards / TEXT.format(i, info["shards"]) for i in range(info["shards"]))
    settings = {key: info[key] for key in info["settings"]}
    found = np.zeros(len(words), np.int64)

    def chunks() -> Iterator[Encoded]:
        for chunk in read_shards(paths, settings["held_out"]):
            ids, _, _ = chunk.part(apart=False)
            found[:] += np.bincount(ids, minlength=len(words))
            yield chunk

    with new_folder(folder) as part:
        write_corpus(chunks(), part, words, counts, settings)
        if not np.array_equal(found, counts):
            word = words[int(np.flatnonzero(found != counts)[0])]
            raise InputError(
                f"{shards}: {word!r} does not occur as often as it was counted; the "
                "text has changed between `count` and `encode`"
            )
    return open_corpus(folder)


def cooccurrences_from_shards(
    shards: str | os.PathLike[str], folder: str | os.PathLike[str]
) -> cooccurrence.Cooccurrences:
    """Co-occurrences of the shards that the pipeline `cooccurrences` wrote.

    They are those that `cooccurrence.count` makes of the same corpus.

    Raises:
      InputError: where the shards are not complete, or the folder is not new.
    """
    shards = Path(shards)
    info = _info(shards / PAIRS_INFO, "cooccurrences")
    scheme = cooccurrence.Scheme(**info["scheme"])
    paths = (shards / PAIRS.format(i, info["shards"]) for i in range(info["shards"]))
    runs = map(_read_run, paths)
    with new_folder(folder) as part:
        cooccurrence.write(runs, part, scheme)
    return cooccurrence.open_cooccurrences(folder)


def pack(ids: np.ndarray, lengths: np.ndarray) -> bytes:
    """One record: sentences as ids of their words, -1 for unknown, and lengths."""
    head = _HEAD.pack(len(lengths), len(ids))
    return head + lengths.astype("<i4").tobytes() + ids.astype("<i4").tobytes()


def unpack(record: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The ids and lengths that `pack` was given."""
    sentences, words = _HEAD.unpack_from(record)
    numbers = np.frombuffer(record, "<i4", sentences + words, _HEAD.size)
    ids = numbers[sentences:].astype(np.int32)
    return ids, numbers[:sentences].astype(np.int64)


def write_shard(path: str | os.PathLike[str], records: Iterable[bytes]) -> None:
    """Writes an ArrayRecord file whose records can be read one by one."""
    writer = array_record_module.ArrayRecordWriter(os.fspath(path), "group_size:1")
    try:
        for record in records:
            writer.write(record)
    finally:
        writer.close()


def read_shards(paths: Iterable[Path], held_out: int) -> Iterator[Encoded]:
    """The text of shards in their order, with the sentences that are held out."""
    done = 0
    for path in paths:
        for record in read_records(path):
            ids, lengths = unpack(record)
            yield Encoded(ids, lengths, held_apart(done, len(lengths), held_out))
            done += len(lengths)


def read_records(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The records of an ArrayRecord file."""
    _require(path)
    reader = array_record_module.ArrayRecordReader(os.fspath(path))
    try:
        for number in range(reader.num_records()):
            yield reader.read([number])[0]
    finally:
        reader.close()


def format_words(words: Sequence[tuple[str, int]]) -> bytes:
    """A vocabulary as a word, a tab and its count a line."""
    return "".join(f"{word}\t{count}\n" for word, count in words).encode()


def parse_words(data: bytes, name: str) -> tuple[list[str], np.ndarray]:
    """The words and counts that `format_words` was given."""
    words, counts = [], []
    for number, line in enumerate(data.decode().split("\n")[:-1], 1):
        word, tab, count = line.partition("\t")
        if not tab or not count.isdecimal():
            raise InputError.at(name, number, "expected a word, a tab and a count")
        words.append(word)
        counts.append(int(count))
    return words, np.array(counts, np.int64)


def _info(path: Path, command: str) -> Mapping[str, Any]:
    if not path.is_file():
        raise InputError(
            f"{path}: missing, so the pipeline `{command}` has not completed here"
        )
    return json.loads(path.read_text())


def _require(path: str | os.PathLike[str]) -> None:
    if not os.path.exists(path):
        raise InputError(f"{os.fspath(path)}: no such file, though its shards are told")


def _read_run(path: Path) -> cooccurrence.Run:
    _require(path)
    with np.load(path, allow_pickle=False) as arrays:
        return cooccurrence.Run(arrays["keys"], arrays["sums"])
