"""Small planted worlds whose answer is known; the same seed gives the same world."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from jaxemb.data.pairs import WordPair
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
_ONSETS = "b d f g k l m n p r s t v z br dr gr kl pl st tr".split()
_VOWELS = "a e i o u ai ou".split()


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
    neutral = _invented_words(rng, num_words - len(taken), taken)
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
        pairs=_scored_pairs(rng, words, base, num_pairs),
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


def _invented_words(rng: np.random.Generator, count: int, taken: set[str]) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < count:
        syllables = (rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(3))
        if (word := "".join(syllables)) not in taken:
            words[word] = None
    return list(words)


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


def _scored_pairs(
    rng: np.random.Generator, words: list[str], base: np.ndarray, count: int
) -> tuple[WordPair, ...]:
    unit = base / np.linalg.norm(base, axis=1, keepdims=True)
    rows = []
    for _ in range(count):
        i, j = rng.choice(len(words), size=2, replace=False)
        score = 5 + 5 * float(unit[i] @ unit[j]) + rng.normal(scale=0.3)
        rows.append(
            WordPair(words[i], words[j], round(float(np.clip(score, 0, 10)), 2))
        )
    return tuple(rows)


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
    words = _invented_words(rng, num_topics * words_a_topic + 10, set())
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


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedSources:
    """Tables that see the same meanings through different distortions.

    Attributes:
      words: of every table.
      tables: name to table; each is the meanings, scaled unevenly along random axes and
        rotated, with noise.
      meanings: (words, dim), what the tables have in common.
      pairs: word pairs scored by the cosine of their meanings.
    """

    words: tuple[str, ...]
    tables: Mapping[str, WordVectors]
    meanings: np.ndarray
    pairs: tuple[WordPair, ...]


def planted_sources(
    seed: int = 0,
    *,
    tables: int = 2,
    num_words: int = 1000,
    dim: int = 20,
    num_pairs: int = 2000,
    noise: float = 0.3,
) -> PlantedSources:
    """Makes several sources of one world (the geometric meta-embeddings' premise)."""
    rng = np.random.default_rng(seed)
    words = tuple(_invented_words(rng, num_words, set()))
    meanings = rng.normal(size=(num_words, dim))
    made = {}
    for number in range(tables):
        rotation, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
        scales = rng.lognormal(size=dim)
        rows = meanings @ (scales[:, np.newaxis] * rotation)
        rows += noise * rng.normal(size=rows.shape)
        made[f"source-{number + 1}"] = WordVectors(words, rows.astype(np.float32))
    pairs = _cosine_pairs(rng, words, meanings, num_pairs)
    return PlantedSources(words, made, meanings, pairs)


def _cosine_pairs(
    rng: np.random.Generator, words: tuple[str, ...], space: np.ndarray, count: int
) -> tuple[WordPair, ...]:
    """Pairs of different words, scored by their cosine."""
    unit = space / np.linalg.norm(space, axis=1, keepdims=True)
    ends = rng.integers(0, len(words), size=(count, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return tuple(
        WordPair(words[a], words[b], float(unit[a] @ unit[b])) for a, b in ends.tolist()
    )


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedLanguages:
    """Two languages that say the same with different spectra.

    Attributes:
      source: its space is the meanings with a steep spectrum, rotated.
      target: the same with a flat spectrum, rotated otherwise.
      translations: word by word, as many as there are words.
    """

    source: WordVectors
    target: WordVectors
    translations: tuple[tuple[str, str], ...]


def planted_languages(
    seed: int = 0, *, num_words: int = 1000, dim: int = 30, noise: float = 0.01
) -> PlantedLanguages:
    """Makes two languages of which post-processing mends the mismatch.

    Column i of the meanings is scaled by `exp(-i / 8)` to the power 1.5 in the source
    and 0.5 in the target.
    """
    rng = np.random.default_rng(seed)
    meanings = rng.normal(size=(num_words, dim))
    spread = np.exp(-np.arange(dim) / 8)[np.newaxis]
    sides = []
    for prefix, power in (("s-", 1.5), ("t-", 0.5)):
        rotation, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
        rows = (meanings * spread**power) @ rotation
        rows += noise * rng.normal(size=rows.shape)
        words = tuple(prefix + w for w in _invented_words(rng, num_words, set()))
        sides.append(WordVectors(words, rows.astype(np.float32)))
    pairs = tuple(zip(sides[0].words, sides[1].words, strict=True))
    return PlantedLanguages(sides[0], sides[1], pairs)


@dataclasses.dataclass(frozen=True, eq=False)
class PlantedComponents:
    """Words whose components are known, and sentences that one of them decides.

    Attributes:
      vectors: their covariance has exactly the planted eigenvectors, its eigenvalues
        fall.
      directions: (dim, dim), one a column, that of most variance first.
      deciding: the component that decides, counted from 1.
      sentences: of class 1 where the mean of its words' deciding component is above the
        median.
      pairs: word pairs scored by their cosine with all components at variance 1.
    """

    vectors: WordVectors
    directions: np.ndarray
    deciding: int
    sentences: tuple[LabelledText, ...]
    pairs: tuple[WordPair, ...]


def planted_components(
    seed: int = 0,
    *,
    num_words: int = 600,
    dim: int = 24,
    deciding: int = 21,
    num_sentences: int = 400,
    length: int = 6,
    num_pairs: int = 500,
) -> PlantedComponents:
    """Makes a world in which variance says nothing of a component's worth.

    Args:
      seed: of all draws.
      num_words: more than `dim`.
      dim: width of the table.
      deciding: the component that decides, counted from 1.
      num_sentences: in all.
      length: words a sentence.
      num_pairs: of words.
    """
    if not 1 <= deciding <= dim < num_words:
        raise InputError(
            "planted components need 1 <= deciding <= dim < num_words; got "
            f"{deciding}, {dim} and {num_words}"
        )
    rng = np.random.default_rng(seed)
    words = tuple(_invented_words(rng, num_words, set()))
    drawn = rng.normal(size=(num_words, dim))
    white, _ = np.linalg.qr(drawn - drawn.mean(axis=0, keepdims=True))
    white *= np.sqrt(num_words)  # the covariance is the identity, exactly
    scales = np.exp(-np.arange(dim) * 2 / dim)[np.newaxis]
    directions, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    rows = (white * scales) @ directions.T + rng.normal(size=(1, dim))
    chosen = rng.integers(0, num_words, size=(num_sentences, length))
    means = white[chosen, deciding - 1].mean(axis=1)
    labels = means > np.median(means)
    sentences = tuple(
        LabelledText(tuple(words[i] for i in one), int(label))
        for one, label in zip(chosen.tolist(), labels, strict=True)
    )
    return PlantedComponents(
        WordVectors(words, rows.astype(np.float32)),
        directions,
        deciding,
        sentences,
        _cosine_pairs(rng, words, white, num_pairs),
    )
