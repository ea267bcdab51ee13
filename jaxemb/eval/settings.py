"""What all tests of one `jaxemb eval` have in common; imports nothing heavy.

The documentation of a field is the help of its flag.
"""

import dataclasses
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
    raw_rows: bool = False
    """Analogies by offsets of rows as they are, not of length one."""
    cumulative: bool = False
    """Also the running totals of analogies that word2vec prints."""
    k_means: Literal["spherical", "euclidean"] = "spherical"
    """How words are clustered."""
    restrict: int | None = None
    """Know only so many first rows, the most frequent words of most files."""
    resamples: int = 1000
    """Bootstrap resamples of the items, for the interval; 0: none."""
    seed: int = 0
    """Seed of the bootstrap and of k-means."""

    def check(self) -> None:
        """Raises an `InputError` that names the flag that is out of range."""
        if self.resamples < 0:
            raise InputError(f"--resamples is {self.resamples}; expected 0 or more")
        if self.restrict is not None and self.restrict < 1:
            raise InputError(f"--restrict is {self.restrict}; expected 1 or more rows")

    @property
    def bootstrap(self) -> dict[str, Any]:
        """How intervals are made."""
        return {"resamples": self.resamples, "seed": self.seed, "level": LEVEL}

    @property
    def look_up(self) -> dict[str, Any]:
        """How words find their rows."""
        return {"case": self.case, "restrict": self.restrict}
