"""What the TFDS builders of jaxemb's own readers share."""

import abc
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow_datasets as tfds

from jaxemb.data import sources


@dataclasses.dataclass(eq=False)
class LocalConfig(tfds.core.BuilderConfig):
    """One data set of a builder.

    Attributes:
      data_set: its name in `sources.DATA_SETS`.
    """

    data_set: str = ""


class LocalBuilder(tfds.core.GeneratorBasedBuilder):
    """Builds from the files that `sources.get` finds, in their order."""

    VERSION = tfds.core.Version("1.0.0")
    SUPERVISED: tuple[str, str] | None = None  # names of input and target

    def __init__(self, *, found: sources.Found | None = None, **kwargs):
        """Builds from `found`, or from wherever `sources.get` finds the data set."""
        self._found = found
        super().__init__(**kwargs)

    @property
    def _config(self) -> Any:
        """The configuration, of the class that belongs to the builder."""
        assert isinstance(self.builder_config, LocalConfig)
        return self.builder_config

    @abc.abstractmethod
    def _features(self) -> tfds.features.FeaturesDict:
        """Of one example."""

    @abc.abstractmethod
    def _examples(self, found: sources.Found) -> Mapping[str, Iterator[dict]]:
        """Split to its examples."""

    def _info(self) -> tfds.core.DatasetInfo:
        data_set = sources.DATA_SETS[self._config.data_set]
        return tfds.core.DatasetInfo(
            builder=self,
            description=f"{data_set.title}. Licence: {data_set.licence}.",
            homepage=data_set.homepage,
            features=self._features(),
            supervised_keys=self.SUPERVISED,
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager) -> Mapping[str, Iterator]:
        del dl_manager
        found = self._found or sources.get(self._config.data_set)
        splits = self._examples(found)
        return {name: self._generate_examples(rows) for name, rows in splits.items()}

    def _generate_examples(self, rows: Iterator[dict]) -> Iterator:
        yield from enumerate(rows)
