"""Leave one similarity list out: supervise on the others, test on it, and what leaks.

Lists share words and even pairs, so that what is learned from five may hold answers to
the sixth. `Control` says what is taken away from supervision.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxemb.data.pairs import WordPair
from jaxemb.errors import InputError
from jaxemb.eval import similarity

Control = Literal["pairs", "leaky", "words"]
"""Which pairs no one may be supervised by: those that are `pairs` of the list held out,
in either order (`pairs`); none (`leaky`); those with any of its words (`words`).
"""


@dataclasses.dataclass(frozen=True, eq=False)
class Pool:
    """The pairs of all lists as one, scores in [0, 1] by the range of each list."""

    names: tuple[str, ...]
    pairs: tuple[WordPair, ...]
    of: Int[np.ndarray, " pairs"]
    """The list of each pair."""

    @classmethod
    def of_lists(cls, lists: Mapping[str, Sequence[WordPair]]) -> "Pool":
        """Puts lists together, in their order."""
        pairs, of = [], []
        for number, (name, rows) in enumerate(lists.items()):
            scaled = similarity.pooled({name: rows})
            if not scaled:
                raise InputError(f"{name}: expected scores that differ, found none")
            pairs += scaled
            of += [number] * len(scaled)
        return cls(tuple(lists), tuple(pairs), np.array(of))

    @property
    def words(self) -> tuple[str, ...]:
        """Every word, in the order of its first pair."""
        return tuple(dict.fromkeys(word for pair in self.pairs for word in pair[:2]))

    @property
    def scores(self) -> Float[np.ndarray, " pairs"]:
        """What people said, from 0 to 1."""
        return np.array([pair.score for pair in self.pairs])

    def rows(self, words: Sequence[str]) -> Int[np.ndarray, "pairs 2"]:
        """The places of both words of every pair; -1 for one that is not there."""
        place = {word: i for i, word in enumerate(words)}
        return np.array([[place.get(w, -1) for w in pair[:2]] for pair in self.pairs])

    def shuffled(self, seed: int) -> Float[np.ndarray, " pairs"]:
        """The scores, dealt anew among the pairs of each list."""
        rng = np.random.default_rng(seed)
        scores = self.scores
        for number in range(len(self.names)):
            own = np.flatnonzero(self.of == number)
            scores[own] = scores[rng.permutation(own)]
        return scores


@dataclasses.dataclass(frozen=True, eq=False)
class Holdout:
    """Masks over the pairs of a pool."""

    name: str
    train: Bool[np.ndarray, " pairs"]
    dev: Bool[np.ndarray, " pairs"]
    """Of the lists supervised by, none of them a pair in `train` too."""
    test: Bool[np.ndarray, " pairs"]
    removed: int
    """Pairs of the other lists that the control took away."""


def leave_one_out(
    pool: Pool,
    control: Control = "pairs",
    *,
    validation: float = 0.1,
    seed: int = 0,
) -> list[Holdout]:
    """A hold-out for each list.

    Args:
      pool: all lists.
      control: what is taken away from supervision.
      validation: share of the pairs supervised by that a run is chosen on. A pair that
        is in several lists is on one side.
      seed: of that choice, the same for every list held out.
    """
    if control not in get_args(Control):
        raise InputError(
            f"control is {control!r}; expected one of {', '.join(get_args(Control))}"
        )
    if not 0 <= validation < 1:
        raise InputError(f"validation is {validation}; expected 0 up to 1")
    keys = [frozenset((a.lower(), b.lower())) for a, b, _ in pool.pairs]
    distinct = sorted(set(keys), key=sorted)
    rng = np.random.default_rng(seed)
    draws = dict(zip(distinct, rng.random(len(distinct)), strict=True))
    in_dev = np.array([draws[key] < validation for key in keys])
    found = []
    for number, name in enumerate(pool.names):
        test = pool.of == number
        own = [key for key, held in zip(keys, test, strict=True) if held]
        forbidden = set(own) if control == "pairs" else set()
        words = set().union(*own) if control == "words" else set()
        leaks = np.array([key in forbidden or bool(key & words) for key in keys])
        kept = ~test & ~leaks
        removed = int(np.sum(~test & leaks))
        found.append(Holdout(name, kept & ~in_dev, kept & in_dev, test, removed))
    return found
