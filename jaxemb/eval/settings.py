"""What all tests of one `jaxemb eval` have in common; imports nothing heavy.

The documentation of a field is the help of its flag.
"""

import dataclasses
import math
from typing import Any, Literal

from jaxemb.errors import InputError

LEVEL = 0.95


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How tests are scored."""

    oov: Literal["skip", "zero", "mean", "subword", "common"] = "skip"
    """A word that is missing: skip its pairs and questions; take the zero vector
    (questions are wrong) or the mean; compose it of n-grams (fastText .bin); or skip
    what any of the tables lacks. Tests without a policy skip, and say so."""
    case: Literal["fallback", "exact", "lower", "ignore"] = "fallback"
    """How a word finds its row: exact, as written; fallback, as written, else
    lower-cased; lower, lower-cased; ignore, whatever the case of the row."""
    method: Literal["3cosadd", "3cosmul", "norm"] = "3cosadd"
    """How analogies are answered; norm has the least length of b - a + c - d."""
    epsilon: float = 1e-3
    """What 3cosmul adds to its denominator; gensim has 1e-6."""
    raw_rows: bool = False
    """Analogies by offsets of rows as they are, not of length one."""
    cumulative: bool = False
    """Also the running totals of analogies that word2vec prints."""
    k_means: Literal["spherical", "euclidean"] = "spherical"
    """How words are clustered."""
    first_rows: int | None = None
    """Know only so many first rows, the most frequent words of most files."""
    resamples: int = 1000
    """Bootstrap resamples of the items, for the interval; 0: none. The interval of an
    accuracy is Wilson's and needs none."""
    seed: int = 0
    """Seed of the bootstrap and of k-means."""

    def check(self) -> None:
        """Raises an `InputError` that names the flag that is out of range."""
        if self.resamples < 0:
            raise InputError(f"--resamples is {self.resamples}; expected 0 or more")
        if self.first_rows is not None and self.first_rows < 1:
            raise InputError(
                f"--first-rows is {self.first_rows}; expected 1 or more rows"
            )
        if not 0 < self.epsilon < math.inf:
            raise InputError(f"--epsilon is {self.epsilon}; expected a number above 0")
        if self.seed < 0:
            raise InputError(f"--seed is {self.seed}; expected 0 or more")

    @property
    def bootstrap(self) -> dict[str, Any]:
        """How intervals are made."""
        return {"resamples": self.resamples, "seed": self.seed, "level": LEVEL}

    @property
    def look_up(self) -> dict[str, Any]:
        """How words find their rows."""
        return {"case": self.case, "first_rows": self.first_rows}
