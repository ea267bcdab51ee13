"""Reuters-21578 as a TFDS data set: the wires of the modified Apté split."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import tensorflow_datasets as tfds

from jaxemb.data import reuters, sources
from jaxemb.data.builders.local import LocalBuilder, LocalConfig


class Reuters(LocalBuilder):
    """Wires by the topics that both parts have, in the order of their files.

    Features: `id`, `title`, `body`, and `topics` by name, of which a wire has one or
    more.
    """

    BUILDER_CONFIGS = [
        LocalConfig(
            name="reuters-21578",
            description=sources.DATA_SETS["reuters-21578"].title,
            data_set="reuters-21578",
        )
    ]

    def _features(self) -> tfds.features.FeaturesDict:
        return tfds.features.FeaturesDict(
            {
                "id": np.int32,
                "title": tfds.features.Text(),
                "body": tfds.features.Text(),
                "topics": tfds.features.Sequence(tfds.features.Text()),
            }
        )

    def _examples(self, found: sources.Found) -> Mapping[str, Iterator[dict]]:
        parts = reuters.modapte_90(reuters.read_reuters(found))
        return {"train": _rows(parts.train), "test": _rows(parts.test)}


def _rows(wires: Iterable[reuters.Wire]) -> Iterator[dict]:
    for wire in wires:
        row = wire._asdict()
        del row["split"]
        yield row
