"""Settings that several experiments have."""

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """GloVe and skip-gram tables of one text, trained here."""

    seeds: int = 0
    """How many times both are trained; 0: never."""
    text: Literal["mixed", "planted"] = "mixed"
    """WikiText-2, Brown and IMDB's training reviews; or a text with planted topics."""
    dim: int = 100
    min_count: int = 10
    """Occurrences of a word that gets a vector."""
    window: int = 10
    """Of GloVe; skip-gram has half of it, as both programs' defaults have."""
    glove_epochs: int = 10
    glove_learning_rate: float = 0.2
    skipgram_epochs: int = 5
