"""A text with homographs whose sense a distant word decides."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxemb.data.pairs import WordPair
from jaxemb.data.synthetic.words import invented_words
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedSenses:
    """Sentences, and vectors of their words as a perfect encoder would have them.

    Attributes:
      sentences: of words; a cue, other words, a homograph and a neighbour of its sense.
      vectors: (tokens, dim), of every word of the text: a homograph has that of its
        sense, any other word the same everywhere.
      shuffled: the same, the senses of each homograph's places in random order.
      types: a vector for every word, homographs' too, as an encoder without contexts
        would have it.
      neighbours: of each homograph, the words beside its first and its second sense.
      pairs: of neighbours of one homograph, 10 for the same sense and 0 for the other.
    """

    sentences: tuple[tuple[str, ...], ...]
    vectors: np.ndarray
    shuffled: np.ndarray
    types: WordVectors
    neighbours: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    pairs: tuple[WordPair, ...]


def planted_senses(
    seed: int = 0,
    *,
    homographs: int = 4,
    beside: int = 3,
    others: int = 40,
    sentences: int = 1200,
    distance: int = 6,
    dim: int = 16,
) -> PlantedSenses:
    """Draws a world in which windows cannot tell the senses of a word apart.

    A sentence is `cue, other words, homograph, neighbour, other words`: within
    `distance` words of the neighbour nothing but the homograph, whose form is the same
    in both senses, has to do with it.

    Args:
      seed: of all draws.
      homographs: words with two senses each.
      beside: neighbours of each sense.
      others: words that say nothing.
      sentences: how many.
      distance: words between a cue and the homograph; more than any window.
      dim: width of the vectors.
    """
    if min(homographs, beside, others, sentences, distance, dim) < 1:
        raise InputError("planted_senses: expected numbers of 1 or more")
    rng = np.random.default_rng(seed)
    named = invented_words(rng, homographs * (3 + 2 * beside) + others, set())
    taken = iter(named)
    forms = [next(taken) for _ in range(homographs)]
    cues = [(next(taken), next(taken)) for _ in forms]
    near = [
        tuple(tuple(next(taken) for _ in range(beside)) for _ in range(2))
        for _ in forms
    ]
    rest = list(taken)
    types = {word: rng.normal(size=dim) for word in named}
    meanings = rng.normal(size=(homographs, 2, dim))

    text, rows, places = [], [], []
    for number in range(sentences):
        which, sense = number % homographs, int(rng.integers(2))
        before = rng.choice(rest, distance).tolist()
        after = rng.choice(rest, distance).tolist()
        word = forms[which]
        beside_it = near[which][sense][int(rng.integers(beside))]
        sentence = (cues[which][sense], *before, word, beside_it, *after)
        places.append((len(rows) + 1 + distance, which, sense))
        rows += [types[w] for w in sentence]
        rows[places[-1][0]] = meanings[which, sense]
        text.append(sentence)
    vectors = np.array(rows, np.float32)
    shuffled = vectors.copy()
    for which in range(homographs):
        own = [place for place, of, _ in places if of == which]
        shuffled[own] = vectors[rng.permutation(own)]
    return PlantedSenses(
        tuple(text),
        vectors,
        shuffled,
        WordVectors(tuple(types), np.array(list(types.values()), np.float32)),
        {form: (sides[0], sides[1]) for form, sides in zip(forms, near, strict=True)},
        tuple(_pairs(near)),
    )


def _pairs(near: list[tuple[tuple[str, ...], ...]]) -> list[WordPair]:
    found = []
    for first, second in near:
        for side in (first, second):
            found += [
                WordPair(a, b, 10.0) for i, a in enumerate(side) for b in side[:i]
            ]
        found += [WordPair(a, b, 0.0) for a in first for b in second]
    return found
