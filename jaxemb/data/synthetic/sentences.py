"""Sentences whose label words decide, and sentences of planted topics."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from jaxemb.data.pairs import WordPair
from jaxemb.data.synthetic.words import invented_words, scored_pairs
from jaxemb.data.text import LabelledText
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError

# Half of either list is negative, half positive; the planted are function-like words
# whose pretrained vectors say little of polarity.
_PLANTED = {
    -1: ("not", "neither", "lacking", "worst", "bore"),
    1: ("still", "unexpected", "works", "fun", "smart"),
}
_POLAR = {
    -1: ("bad", "dull", "awful", "weak", "boring", "stale", "flat", "poor", "silly"),
    1: ("good", "great", "fine", "warm", "moving", "fresh", "lively", "rich", "witty"),
}


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedSentiment:
    """A world of positive and negative sentences.

    Attributes:
      vectors: the base table, one row a word.
      train: sentences to train on, shuffled.
      test: sentences of the same kind to test on.
      planted: the words that decide labels though their base vectors do not show it.
      polarity: -1, 0 or 1 for every word: the label that it argues for.
      direction: the unit vector along which base vectors show polarity; 0 in planted.
      pairs: word pairs scored by the base vectors' cosine, with a little noise.
    """

    vectors: WordVectors
    train: tuple[LabelledText, ...]
    test: tuple[LabelledText, ...]
    planted: tuple[str, ...]
    polarity: Mapping[str, int]
    direction: np.ndarray
    pairs: tuple[WordPair, ...]


def planted_sentiment(
    seed: int = 0,
    *,
    num_words: int = 500,
    num_planted: int = 10,
    num_polar: int = 60,
    dim: int = 20,
    num_train: int = 2000,
    num_test: int = 500,
    lengths: tuple[int, int] = (4, 24),
    strength: float = 1.0,
    num_pairs: int = 300,
) -> PlantedSentiment:
    """Draws a world in which a few words have to move for the task to be solved.

    Every sentence has one word that decides its label (from length 12 on, two that
    agree), half the time a planted one, among neutral words. Vectors of the other
    deciding words have `strength` along the label direction; those of neutral and of
    planted words have exactly nothing there. So a linear classifier of the mean
    vector does no better than chance on the sentences that planted words decide,
    until their vectors move: *not*, *works* and others, half of either label. The
    last tenth of the neutral words is in no sentence.

    Args:
      seed: of all draws.
      num_words: words in all.
      num_planted: deciding words whose vectors lack the label direction; even, from 2.
      num_polar: deciding words whose vectors have it; even, from 2.
      dim: width of the vectors.
      num_train: training sentences, half of either label.
      num_test: test sentences, likewise.
      lengths: the shortest and the longest sentence.
      strength: length of the polar part of a vector; the rest is about 1 long.
      num_pairs: pairs in the similarity list.
    """
    deciding = num_planted, num_polar
    if any(n < 2 or n % 2 for n in deciding) or num_words < sum(deciding) + 20:
        raise InputError(
            "a planted world needs num_planted and num_polar even and above 0, and "
            f"num_words at least 20 more than both; got {num_planted}, {num_polar}, "
            f"{num_words}"
        )
    if dim < 2 or not 1 <= lengths[0] <= lengths[1]:
        raise InputError(f"expected dim >= 2 and 1 <= lengths; got {dim}, {lengths}")
    rng = np.random.default_rng(seed)
    planted = _deciding(_PLANTED, num_planted, "planted")
    polar = _deciding(_POLAR, num_polar, "polar")
    taken = {*planted, *polar}
    neutral = invented_words(rng, num_words - len(taken), taken)
    polarity = {**planted, **polar, **dict.fromkeys(neutral, 0)}
    words = [*planted, *polar, *neutral]

    direction = rng.normal(size=dim)
    direction /= np.linalg.norm(direction)
    # A dozen topics, so that some words are alike for reasons other than polarity.
    topics = rng.normal(size=(12, dim))[rng.integers(12, size=num_words)]
    base = (0.8 * topics + 0.6 * rng.normal(size=(num_words, dim))) / np.sqrt(dim)
    base -= np.outer(base @ direction, direction)
    shown = np.array([polarity[word] * (word not in planted) for word in words])
    base += strength * np.outer(shown, direction)

    seen = neutral[: len(neutral) - len(neutral) // 10]
    sentences = [
        _sentence(rng, label, (planted, polar)[decider], seen, lengths)
        for count in (num_train, num_test)
        for label, decider in _balanced(rng, count)
    ]
    return PlantedSentiment(
        vectors=WordVectors(tuple(words), base.astype(np.float32)),
        train=tuple(sentences[:num_train]),
        test=tuple(sentences[num_train:]),
        planted=tuple(planted),
        polarity=polarity,
        direction=direction.astype(np.float32),
        pairs=scored_pairs(rng, words, base, num_pairs),
    )


def _deciding(
    named: Mapping[int, Sequence[str]], count: int, prefix: str
) -> dict[str, int]:
    """`count` words with their polarity: real ones first, then numbered ones."""
    words: dict[str, int] = {}
    for polarity in (-1, 1):
        real = list(named[polarity][: count // 2])
        sign = "good" if polarity > 0 else "bad"
        more = range(len(real), count // 2)
        words |= dict.fromkeys(
            [*real, *(f"{prefix}-{sign}-{i}" for i in more)], polarity
        )
    return words


def _balanced(rng: np.random.Generator, count: int) -> list[tuple[int, int]]:
    """A label and a kind of deciding word for each sentence, all four equally often."""
    kinds = np.arange(count) % 4
    return [(int(kind % 2), int(kind // 2)) for kind in rng.permutation(kinds)]


def _sentence(
    rng: np.random.Generator,
    label: int,
    deciding: Mapping[str, int],
    neutral: list[str],
    lengths: tuple[int, int],
) -> LabelledText:
    length = int(rng.integers(lengths[0], lengths[1] + 1))
    of_label = [
        word for word, polarity in deciding.items() if polarity == 2 * label - 1
    ]
    tokens = [neutral[i] for i in rng.integers(len(neutral), size=length)]
    for place in rng.choice(length, size=1 + (length >= 12), replace=False):
        tokens[place] = of_label[rng.integers(len(of_label))]
    return LabelledText(tuple(tokens), label)


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedTopics:
    """A text whose words belong to topics.

    Attributes:
      sentences: each of words of one topic, and of function words of none.
      topics: the words of each topic.
      pairs: word pairs, scored 1 within a topic and 0 across.
    """

    sentences: tuple[tuple[str, ...], ...]
    topics: tuple[tuple[str, ...], ...]
    pairs: tuple[WordPair, ...]


def planted_topics(
    seed: int = 0,
    *,
    num_topics: int = 4,
    words_a_topic: int = 15,
    num_sentences: int = 2000,
    length: int = 10,
) -> PlantedTopics:
    """Draws a text in which words of a topic keep company.

    Args:
      seed: of all draws.
      num_topics: from 2.
      words_a_topic: from 2.
      num_sentences: in all.
      length: words a sentence, a fifth of them of no topic.
    """
    if num_topics < 2 or words_a_topic < 2:
        raise InputError(
            "planted topics need num_topics and words_a_topic of 2 or more; got "
            f"{num_topics} and {words_a_topic}"
        )
    rng = np.random.default_rng(seed)
    words = invented_words(rng, num_topics * words_a_topic + 10, set())
    topics = tuple(
        tuple(words[i * words_a_topic : (i + 1) * words_a_topic])
        for i in range(num_topics)
    )
    common = words[num_topics * words_a_topic :]
    sentences = []
    for number in range(num_sentences):
        own = rng.choice(topics[number % num_topics], length)
        filled = np.where(rng.random(length) < 0.2, rng.choice(common, length), own)
        sentences.append(tuple(map(str, filled)))
    order = rng.permutation(num_sentences)
    pairs = [
        WordPair(a, b, float(i == j))
        for i, first in enumerate(topics)
        for j, second in enumerate(topics[i:], i)
        for a, b in zip(first, second[1:] + second[:1], strict=True)
    ]
    return PlantedTopics(tuple(sentences[i] for i in order), topics, tuple(pairs))
