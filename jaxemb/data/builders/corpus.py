"""Running text out of rows that TFDS prepared."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxemb.data.corpus.readers import Sentences, review_sentences


def corpus_sentences(
    rows: Sequence[Mapping[str, Any]],
    cut: Callable[[str], Iterable[list[str]]] = review_sentences,
    *,
    text: str = "text",
) -> Sentences:
    """The sentences of one feature of all rows, as often as asked for.

    What `corpus.build` takes: `corpus.build(corpus_sentences(read("imdb_reviews",
    "unsupervised")), folder)`.

    Args:
      rows: what `builders.read` gives.
      cut: from a text to its sentences, each a list of words.
      text: the feature that holds the text.
    """

    def read() -> Iterator[list[str]]:
        for number in range(len(rows)):
            yield from cut(rows[number][text].decode("utf-8"))

    return Sentences(read)
