"""Labelled sentences as a TFDS data set: one builder, a configuration a corpus."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import tensorflow_datasets as tfds

from jaxemb.data import sources, text, trees
from jaxemb.data.builders.local import LocalBuilder, LocalConfig
from jaxemb.data.files import Location
from jaxemb.data.text import RawText

_POLARITY = ("negative", "positive")
_SHADES = ("very negative", "negative", "neutral", "positive", "very positive")


@dataclasses.dataclass(eq=False)
class SentencesConfig(LocalConfig):
    """What one corpus needs beyond the builder.

    Attributes:
      labels: the names of the classes, by id.
      read: from one of its files to its sentences, each as the examples made from it
        (one, or all labelled phrases).
    """

    labels: tuple[str, ...] = _POLARITY
    read: Callable[[Location], Iterator[Iterable[RawText]]] = lambda path: iter(())


def _whole(
    lines: Callable[[Location], Iterator[RawText]],
) -> Callable[[Location], Iterator[Iterable[RawText]]]:
    return lambda path: ([row] for row in lines(path))


def _phrases(path: Location) -> Iterator[Iterable[RawText]]:
    for tree in trees.read_trees(path):
        yield (RawText(" ".join(p.tokens), p.label) for p in trees.phrases(tree))


def _config(
    data_set: str,
    labels: tuple[str, ...] = _POLARITY,
    read: Callable[[Location], Iterator[RawText]] = text.kim_lines,
) -> SentencesConfig:
    return SentencesConfig(
        name=data_set,
        description=sources.DATA_SETS[data_set].title,
        data_set=data_set,
        labels=labels,
        read=_whole(read),
    )


class Sentences(LocalBuilder):
    """Sentences with a label, in the order of their files.

    Features: `text` (as the file has it, encoding repaired), `label`, and `group`, the
    number of the sentence in its split, which the phrases of one sentence share.
    """

    SUPERVISED = ("text", "label")
    BUILDER_CONFIGS = [
        _config("rt-polarity"),
        _config("rt-polarity-8530", read=text.rt_polarity_lines),
        _config("sst-1", _SHADES),
        _config("sst-2"),
        _config("subj", ("subjective", "objective")),
        _config("trec", ("DESC", "ENTY", "ABBR", "HUM", "LOC", "NUM")),
        _config("cr"),
        _config("mpqa"),
        _config("imdb", read=text.imdb_lines),
        _config("20newsgroups", text.NEWSGROUPS, text.newsgroups_lines),
        SentencesConfig(
            name="sst-phrases",
            description="Every labelled phrase of the SST trees",
            data_set="sst-trees",
            labels=_SHADES,
            read=_phrases,
        ),
    ]

    def _features(self) -> tfds.features.FeaturesDict:
        return tfds.features.FeaturesDict(
            {
                "text": tfds.features.Text(),
                "label": tfds.features.ClassLabel(names=self._config.labels),
                "group": tfds.features.Scalar(np.int32),
            }
        )

    def _examples(self, found: sources.Found) -> Mapping[str, Iterator[dict]]:
        return {
            # "all" means every split to TFDS, so it cannot name one.
            "train" if split == "all" else split: self._rows(place)
            for split, place in found.parts.items()
            if split != "unsup"
        }

    def _rows(self, path: Location) -> Iterator[dict]:
        for group, rows in enumerate(self._config.read(path)):
            for row in rows:
                yield {"text": row.text, "label": row.label, "group": group}
