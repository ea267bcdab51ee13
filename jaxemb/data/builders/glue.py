"""GLUE's official files as a TFDS data set: a configuration a task."""

from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow_datasets as tfds

from jaxemb.data import glue, sources
from jaxemb.data.builders.local import LocalBuilder, LocalConfig


def _config(task: str) -> LocalConfig:
    name = f"glue-{task}"
    return LocalConfig(
        name=name, description=sources.DATA_SETS[name].title, data_set=name
    )


class GlueFiles(LocalBuilder):
    """Examples of one task, in the order of their files.

    Features: `first`, `second` (empty in tasks of single sentences) and `label`, a
    class counted from 0, or the score of STS-B.
    """

    BUILDER_CONFIGS = [_config(task) for task in glue.GLUE_TASKS]

    def _features(self) -> tfds.features.FeaturesDict:
        return tfds.features.FeaturesDict(
            {
                "first": tfds.features.Text(),
                "second": tfds.features.Text(),
                "label": tfds.features.Scalar(np.float32),
            }
        )

    def _examples(self, found: sources.Found) -> Mapping[str, Iterator[dict]]:
        task = self._config.name.removeprefix("glue-")

        def rows(place) -> Iterator[dict]:
            for one in glue.glue_lines(task, place):
                yield {**one._asdict(), "second": one.second or ""}

        return {split: rows(place) for split, place in found.parts.items()}
