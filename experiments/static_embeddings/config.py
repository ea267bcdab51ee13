"""Presets of the trainers of word vectors."""

import dataclasses
from typing import Literal

from experiments.common.cli import Experiment
from experiments.common.names import similarity_lists
from experiments.common.updates import groups_of

SLUG = "static_embeddings"
TITLE = "Word vectors trained here and by gensim: quality and speed side by side"

System = Literal[
    "skipgram", "cbow", "fasttext", "glove", "gensim-skipgram", "gensim-cbow"
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """One corpus, and the trainers compared on it."""

    slug = SLUG
    corpus: Literal["imdb", "wikitext-2", "planted"] = "imdb"
    """50,000 unlabelled reviews, an encyclopaedia, or the planted world."""
    systems: tuple[System, ...] = (
        "skipgram",
        "gensim-skipgram",
        "cbow",
        "gensim-cbow",
        "fasttext",
        "glove",
    )
    """What is trained, in this order for every seed."""
    seeds: int = 3
    dim: int = 100
    epochs: int = 5
    window: int = 5
    negatives: int = 5
    sample: float = 1e-3
    """Frequency above which occurrences of a word are left out."""
    update: int | None = None
    """Words of one update of the tables, a multiple of 16; if None, what the trainer
    chooses. Fewer for a vocabulary of hundreds, where an update meets each word often.
    """
    min_count: int = 5
    held_out: int = 100
    """Every so many-th sentence is kept apart, from gensim too."""
    buckets: int = 200_000
    """Rows that fastText's n-grams are hashed to."""
    glove_epochs: int = 25
    glove_window: int = 10
    workers: int = 0
    """Threads of gensim; 0 for the fastest of 1, 2, 3 and 4 on a part of the text, each
    of skip-gram and CBOW its own."""

    def __post_init__(self):
        groups_of(self.update)

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.corpus == "planted":
            return ()
        lists = similarity_lists()
        return (self.corpus, lists, "analogies")


SMOKE = Config(
    preset="smoke",
    corpus="planted",
    systems=("skipgram", "cbow", "fasttext", "glove"),
    seeds=1,
    dim=16,
    sample=0.0,
    update=128,
    buckets=500,
    glove_epochs=10,
)

PRESETS = {
    "imdb": (
        "12 million words of reviews, three seeds; about 1 h",
        Config(preset="imdb"),
    ),
    "wikitext-2": (
        "2 million words of Wikipedia, three seeds; 15 minutes",
        Config(preset="wikitext-2", corpus="wikitext-2"),
    ),
    "smoke": ("the planted world; seconds", SMOKE),
}
