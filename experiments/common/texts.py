"""Text at hand that several experiments train word tables on."""

from collections.abc import Iterable, Iterator, Sequence

from experiments.common.datasets import described
from experiments.common.names import MIXED
from jaxemb.data import sources
from jaxemb.data.corpus import readers
from jaxemb.train import results


def mixed() -> tuple[readers.Sentences, list[results.Data]]:
    """Encyclopaedia, Brown and film reviews, lower-cased, without punctuation marks."""
    found = {name: sources.get(name) for name in MIXED}
    parts: tuple[Iterable[Sequence[str]], ...] = (
        readers.Sentences(
            lambda: _words_only(readers.read_wikitext(found["wikitext-2"], lower=True))
        ),
        readers.Sentences(
            lambda: _words_only(readers.read_brown(found["brown"], lower=True))
        ),
        # Its reader leaves marks out itself.
        readers.read_imdb(found["imdb"], parts=("train",)),
    )
    data = [
        described(found["wikitext-2"], name="wikitext-2, its training part"),
        described(found["brown"]),
        described(found["imdb"], 25_000, name="imdb, its training reviews"),
    ]
    return readers.Sentences(lambda: (s for part in parts for s in part)), data


def _words_only(sentences: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    for sentence in sentences:
        if words := [w for w in sentence if any(map(str.isalnum, w))]:
            yield words
