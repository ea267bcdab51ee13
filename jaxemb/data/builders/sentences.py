"""Labelled sentences as a TFDS data set: one builder, a configuration a corpus."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import tensorflow_datasets as tfds

from jaxemb.data import sources, text, trees
from jaxemb.data.files import Location
from jaxemb.data.text import RawText

_POLARITY = ("negative", "positive")
_SHADES = ("very negative", "negative", "neutral", "positive", "very positive")


@dataclasses.dataclass(eq=False)
class SentencesConfig(tfds.core.BuilderConfig):
    """What one corpus needs beyond the builder.

    Attributes:
      data_set: its name in `sources.DATA_SETS`.
      labels: the names of the classes, by id.
      read: from one of its files to its sentences, each as the examples made from it
        (one, or all labelled phrases).
    """

    data_set: str = ""
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


class Sentences(tfds.core.GeneratorBasedBuilder):
    """Sentences with a label, in the order of their files.

    Features: `text` (as the file has it, encoding repaired), `label`, and `group`, the
    number of the sentence in its split, which the phrases of one sentence share.
    """

    VERSION = tfds.core.Version("1.0.0")
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

    def __init__(self, *, found: sources.Found | None = None, **kwargs):
        """Builds from `found`, or from wherever `sources.get` finds the corpus."""
        self._found = found
        super().__init__(**kwargs)

    def _info(self) -> tfds.core.DatasetInfo:
        assert isinstance(self.builder_config, SentencesConfig)
        data_set = sources.DATA_SETS[self.builder_config.data_set]
        return tfds.core.DatasetInfo(
            builder=self,
            description=f"{data_set.title}. Licence: {data_set.licence}.",
            homepage=data_set.homepage,
            features=tfds.features.FeaturesDict(
                {
                    "text": tfds.features.Text(),
                    "label": tfds.features.ClassLabel(names=self.builder_config.labels),
                    "group": tfds.features.Scalar(np.int32),
                }
            ),
            supervised_keys=("text", "label"),
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager) -> Mapping[str, Iterator]:
        del dl_manager
        assert isinstance(self.builder_config, SentencesConfig)
        found = self._found or sources.get(self.builder_config.data_set)
        return {
            # "all" means every split to TFDS, so it cannot name one.
            "train" if split == "all" else split: self._generate_examples(place)
            for split, place in found.parts.items()
            if split != "unsup"
        }

    def _generate_examples(self, path: Location) -> Iterator:
        assert isinstance(self.builder_config, SentencesConfig)
        keys = itertools.count()
        for group, rows in enumerate(self.builder_config.read(path)):
            for row in rows:
                yield (
                    next(keys),
                    {"text": row.text, "label": row.label, "group": group},
                )
