"""Word spaces: several of one latent truth, two languages, components that count."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxemb.data.pairs import WordPair
from jaxemb.data.synthetic.words import cosine_pairs, invented_words
from jaxemb.data.text import LabelledText
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError


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
    words = tuple(invented_words(rng, num_words, set()))
    meanings = rng.normal(size=(num_words, dim))
    made = {}
    for number in range(tables):
        rotation, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
        scales = rng.lognormal(size=dim)
        rows = meanings @ (scales[:, np.newaxis] * rotation)
        rows += noise * rng.normal(size=rows.shape)
        made[f"source-{number + 1}"] = WordVectors(words, rows.astype(np.float32))
    pairs = cosine_pairs(rng, words, meanings, num_pairs)
    return PlantedSources(words, made, meanings, pairs)


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
        words = tuple(prefix + w for w in invented_words(rng, num_words, set()))
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
    words = tuple(invented_words(rng, num_words, set()))
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
        cosine_pairs(rng, words, white, num_pairs),
    )
