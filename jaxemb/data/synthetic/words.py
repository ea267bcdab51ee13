"""What several planted worlds are made of: invented words, pairs scored by a rule."""

from collections.abc import Mapping, Sequence

import numpy as np

from jaxemb.data.features import WordFeatures
from jaxemb.data.pairs import WordPair

_ONSETS = "b d f g k l m n p r s t v z br dr gr kl pl st tr".split()
_VOWELS = "a e i o u ai ou".split()


def invented_words(rng: np.random.Generator, count: int, taken: set[str]) -> list[str]:
    """Different words of three syllables, none of those that are taken."""
    words: dict[str, None] = {}
    while len(words) < count:
        syllables = (rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(3))
        if (word := "".join(syllables)) not in taken:
            words[word] = None
    return list(words)


def by_kind(kinds: Mapping[str, Sequence[str]]) -> tuple[list[str], WordFeatures]:
    """All words, kind after kind, and a feature of value 1 for the kind of each."""
    words = [word for members in kinds.values() for word in members]
    places = np.repeat(np.arange(len(kinds)), [len(m) for m in kinds.values()])
    return words, WordFeatures(tuple(words), tuple(kinds), np.eye(len(kinds))[places])


def scored_pairs(
    rng: np.random.Generator, words: list[str], base: np.ndarray, count: int
) -> tuple[WordPair, ...]:
    """Pairs of different words, scored 0 to 10 by their cosine and a little noise."""
    unit = base / np.linalg.norm(base, axis=1, keepdims=True)
    rows = []
    for _ in range(count):
        i, j = rng.choice(len(words), size=2, replace=False)
        score = 5 + 5 * float(unit[i] @ unit[j]) + rng.normal(scale=0.3)
        rows.append(
            WordPair(words[i], words[j], round(float(np.clip(score, 0, 10)), 2))
        )
    return tuple(rows)


def cosine_pairs(
    rng: np.random.Generator, words: tuple[str, ...], space: np.ndarray, count: int
) -> tuple[WordPair, ...]:
    """Pairs of different words, scored by their cosine."""
    unit = space / np.linalg.norm(space, axis=1, keepdims=True)
    ends = rng.integers(0, len(words), size=(count, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return tuple(
        WordPair(words[a], words[b], float(unit[a] @ unit[b])) for a, b in ends.tolist()
    )
