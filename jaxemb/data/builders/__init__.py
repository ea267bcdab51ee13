"""Data sets prepared by TFDS as ArrayRecord and read back without TensorFlow.

`read` gives rows by their number, in constant time and from disk, which is what a
corpus larger than memory needs; small ones are simpler read by `jaxemb.data.text`.
"""

import contextlib
import io
import os
import socket
import sys
import types
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from unittest import mock

import tensorflow_datasets as tfds
from tensorflow_datasets.core.download import extractor

from jaxemb.data import files, sources, tokenize, wheels
from jaxemb.data.builders.corpus import corpus_sentences
from jaxemb.data.builders.glue import GlueFiles
from jaxemb.data.builders.inference import Inference, InferenceConfig, sentence_pairs
from jaxemb.data.builders.local import LocalBuilder, LocalConfig
from jaxemb.data.builders.questions import Questions, questions
from jaxemb.data.builders.reuters import Reuters
from jaxemb.data.builders.sentences import Sentences, SentencesConfig
from jaxemb.data.text import LabelledText
from jaxemb.errors import InputError

__all__ = [
    "GlueFiles",
    "Inference",
    "InferenceConfig",
    "Questions",
    "Reuters",
    "Sentences",
    "SentencesConfig",
    "corpus_sentences",
    "labelled",
    "prepare",
    "prepare_tfds",
    "questions",
    "read",
    "sentence_pairs",
]

Rows = Sequence[Mapping[str, Any]]

_OWN: tuple[type[LocalBuilder], ...] = (
    Sentences,
    Inference,
    Questions,
    GlueFiles,
    Reuters,
)


def read(name: str, split: str = "train") -> Rows:
    """The rows of one split, each a mapping of `text` (bytes), `label` and more.

    A corpus that a builder of ours knows is prepared from the files that `sources.get`
    finds; one that only TFDS has, or any other name that TFDS knows, by TFDS, whose
    feature names may differ. Corpora without splits of their own are all "train".

    Args:
      name: "rt-polarity", "sst-phrases", "sst-2-glue", … or a TFDS name such as
        "glue/sst2".
      split: as TFDS takes it: "train", "test[:10%]", "all".

    Raises:
      InputError: where there is no such data set or split, or it cannot be had.
    """
    builder = prepare(name)
    try:
        # Its decorator hides the parameters from type checkers.
        return cast(Any, builder).as_data_source(split=split)
    except (ValueError, KeyError) as error:
        splits = ", ".join(builder.info.splits)
        raise InputError(f"{name} has no split {split!r}; it has {splits}") from error


def prepare(name: str) -> tfds.core.DatasetBuilder:
    """The builder of a data set, fetched and written as ArrayRecord if need be."""
    own = next((b for b in _OWN if name in b.builder_configs), None)
    if own is None:
        known = sources.DATA_SETS.get(name)
        return prepare_tfds((known and known.tfds) or name)
    config = cast(LocalConfig, own.builder_configs[name])
    found = sources.get(config.data_set)
    if not found.parts:
        return prepare_tfds(found.data_set.tfds or name)
    # Files that differ are prepared apart, so that what is read is never stale.
    folder = _folder() / "jaxemb" / found.sha256[:16]
    return _prepared(
        lambda: own(
            found=found, config=name, data_dir=folder, file_format="array_record"
        )
    )


def prepare_tfds(name: str) -> tfds.core.DatasetBuilder:
    """The builder of one of TFDS's own data sets, fetched and written if need be."""
    # TFDS knows the data sets of its older modules, GLUE's for one, once imported.
    import tensorflow_datasets.text  # noqa: F401

    try:
        return _prepared(
            lambda: tfds.builder(
                name, data_dir=_folder(), file_format="array_record", try_gcs=False
            )
        )
    except tfds.core.DatasetNotFoundError as error:
        own = ", ".join(name for builder in _OWN for name in builder.builder_configs)
        raise InputError(
            f"no data set {name!r} to prepare: TFDS has none, and of our own there are "
            f"{own}"
        ) from error
    except InputError:
        raise
    # TFDS raises whatever its downloader, its extractors and the archives raise.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise sources.FetchError(f"TFDS could not prepare {name} ({reason})") from error


def labelled(
    rows: Iterable[Mapping[str, Any]],
    tokenize: Callable[[str], tuple[str, ...]] = tokenize.kim,
    *,
    text: str = "text",
) -> Iterator[LabelledText]:
    """Rows cut into tokens; `text` names the feature ("sentence" in glue/sst2)."""
    for row in rows:
        yield LabelledText(tokenize(row[text].decode("utf-8")), int(row["label"]))


def _folder() -> Path:
    return files.cache_dir() / "tfds"


def _prepared(
    make: Callable[[], tfds.core.DatasetBuilder],
) -> tfds.core.DatasetBuilder:
    builder = make()
    if not _is_prepared(builder):
        with wheels.locked(_folder()), _quietly(), _without_tensorflow():
            builder = make()  # another process may have prepared it meanwhile
            if not _is_prepared(builder):
                _require_network(builder)
                builder.download_and_prepare()
    return builder


def _is_prepared(builder: tfds.core.DatasetBuilder) -> bool:
    # TFDS's own test logs a warning where the answer is no.
    return (builder.data_path / "dataset_info.json").exists()


def _require_network(builder: tfds.core.DatasetBuilder) -> None:
    """Fails within seconds where TFDS would retry for minutes."""
    proxies = urllib.request.getproxies()
    for url in builder.url_infos or ():
        place = urllib.parse.urlsplit(url)
        if place.scheme not in ("http", "https") or place.scheme in proxies:
            continue
        port = place.port or {"http": 80, "https": 443}[place.scheme]
        try:
            socket.create_connection((place.hostname, port), timeout=10).close()
        except OSError as error:
            raise sources.Offline(
                f"TFDS cannot fetch {builder.name} because {place.hostname} does not "
                f"answer"
            ) from error
        return


@contextlib.contextmanager
def _without_tensorflow() -> Iterator[None]:
    """Has TFDS open archives with Python's `open`, which it leaves to TensorFlow."""
    gfile = types.SimpleNamespace(GFile=open)
    stand_in = types.SimpleNamespace(
        compat=types.SimpleNamespace(as_text=os.fsdecode),
        io=types.SimpleNamespace(gfile=gfile),
    )
    with mock.patch.object(extractor, "tf", stand_in):
        yield


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keeps what TFDS prints away from standard output, and bars to terminals."""
    if sys.stderr.isatty():
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    tfds.disable_progress_bar()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        tfds.enable_progress_bar()
