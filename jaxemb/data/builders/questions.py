"""Questions with answers in a paragraph as a TFDS data set."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from jaxemb.data import sources, squad
from jaxemb.data.builders.local import LocalBuilder, LocalConfig
from jaxemb.data.files import Location


def _config(name: str) -> LocalConfig:
    description = sources.DATA_SETS[name].title
    return LocalConfig(name=name, description=description, data_set=name)


class Questions(LocalBuilder):
    """Questions in the order of their files, with the features of TFDS's own SQuAD.

    Features: `id`, `title`, `context`, `question`, and `answers` with a `text` and an
    `answer_start` each; none where the paragraph does not answer the question.
    """

    BUILDER_CONFIGS = [
        _config("squad"),
        _config("squad2-half-dev"),
        _config("xquad"),
    ]

    def _features(self) -> tfds.features.FeaturesDict:
        return tfds.features.FeaturesDict(
            {
                "id": np.str_,
                "title": tfds.features.Text(),
                "context": tfds.features.Text(),
                "question": tfds.features.Text(),
                "answers": tfds.features.Sequence(
                    {"text": tfds.features.Text(), "answer_start": np.int32}
                ),
            }
        )

    def _examples(self, found: sources.Found) -> Mapping[str, Iterator[dict]]:
        def rows(path: Location) -> Iterator[dict]:
            for question in squad.read_squad(path):
                answers = {
                    "text": [answer.text for answer in question.answers],
                    "answer_start": [answer.start for answer in question.answers],
                }
                yield {**question._asdict(), "answers": answers}

        return {split: rows(place) for split, place in found.parts.items()}


def questions(rows: Iterable[Mapping[str, Any]]) -> list[squad.Question]:
    """Rows of `Questions`, or of TFDS's own SQuAD, as `squad.read_squad` gives them."""
    read = []
    for row in rows:
        texts = [text.decode("utf-8") for text in row["answers"]["text"]]
        starts = map(int, row["answers"]["answer_start"])
        read.append(
            squad.Question(
                id=row["id"].decode("utf-8"),
                title=row["title"].decode("utf-8"),
                context=row["context"].decode("utf-8"),
                question=row["question"].decode("utf-8"),
                answers=tuple(map(squad.Answer, texts, starts)),
            )
        )
    return read
