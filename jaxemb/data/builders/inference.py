"""Sentence pairs by entailment as a TFDS data set: a configuration a corpus."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import tensorflow_datasets as tfds

from jaxemb.data import nli, sources
from jaxemb.data.builders.local import LocalBuilder, LocalConfig

Splits = Mapping[str, Iterator[nli.SentencePair | None]]


def _files(found: sources.Found) -> Splits:
    return {split: nli.nli_lines(place) for split, place in found.parts.items()}


def _apart(found: sources.Found) -> Splits:
    """e-SNLI's files, three a split: `test-premises` and so on."""
    splits = dict.fromkeys(name.partition("-")[0] for name in found.parts)
    sides = "premises", "hypotheses", "labels"
    return {
        split: nli.apart_lines(*(found.part(f"{split}-{side}") for side in sides))
        for split in splits
    }


@dataclasses.dataclass(eq=False)
class InferenceConfig(LocalConfig):
    """What one corpus needs beyond the builder.

    Attributes:
      read: from its files to the pairs of each split, None for each without a label.
    """

    read: Callable[[sources.Found], Splits] = _files


def _config(
    name: str, read: Callable[[sources.Found], Splits] = _files
) -> InferenceConfig:
    return InferenceConfig(
        name=name,
        description=sources.DATA_SETS[name].title,
        data_set=name,
        read=read,
    )


class Inference(LocalBuilder):
    """Labelled sentence pairs, in the order of their files.

    Features: `premise`, `hypothesis`, `label` (as TFDS's own SNLI has them) and
    `genre`, empty where the file has none. Pairs without a label are left out.
    """

    BUILDER_CONFIGS = [
        _config("multinli"),
        _config("mnli-dev-matched"),
        _config("snli"),
        _config("snli-esnli", _apart),
        _config("sick"),
    ]

    def _features(self) -> tfds.features.FeaturesDict:
        return tfds.features.FeaturesDict(
            {
                "premise": tfds.features.Text(),
                "hypothesis": tfds.features.Text(),
                "label": tfds.features.ClassLabel(names=nli.LABELS),
                "genre": tfds.features.Text(),
            }
        )

    def _examples(self, found: sources.Found) -> Mapping[str, Iterator[dict]]:
        def rows(pairs: Iterable[nli.SentencePair | None]) -> Iterator[dict]:
            for pair in pairs:
                if pair is not None:
                    yield {**pair._asdict(), "genre": pair.genre or ""}

        return {s: rows(pairs) for s, pairs in self._config.read(found).items()}


def sentence_pairs(rows: Iterable[Mapping[str, Any]]) -> nli.SentencePairs:
    """Rows of `Inference`, or of TFDS's own SNLI, as its readers would give them.

    TFDS marks a pair without a gold label by -1; those are left out and counted.
    """
    pairs, unlabelled = [], 0
    for row in rows:
        label = int(row["label"])
        if label < 0:
            unlabelled += 1
            continue
        genre = row.get("genre", b"").decode("utf-8")
        premise, hypothesis = (
            row[side].decode("utf-8") for side in ("premise", "hypothesis")
        )
        pairs.append(nli.SentencePair(premise, hypothesis, label, genre or None))
    return nli.SentencePairs(tuple(pairs), unlabelled)
