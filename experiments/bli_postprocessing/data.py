"""Two languages: rows, which row each word has, and dictionaries between them."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from experiments.bli_postprocessing.config import Config
from experiments.common.datasets import described, planted
from experiments.common.names import at_hand
from jaxemb.data import packed, sources, synthetic
from jaxemb.data.translations import Translation, read_translations
from jaxemb.data.vectors import read_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval.induction import covered
from jaxemb.spaces import combine
from jaxemb.train import results


@dataclasses.dataclass(frozen=True, eq=False)
class Side:
    """One language; words may share a row, and rows are what is ranked."""

    name: str
    index: dict[str, int]
    matrix: np.ndarray
    """(rows, dim), the most frequent first."""
    names: tuple[str, ...]
    """For each row its most frequent word."""
    data: tuple[results.Data, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """A pair of languages, of one width, with its dictionaries as rows."""

    name: str
    source: Side
    target: Side
    train: np.ndarray
    """(pairs, 2), the most frequent first."""
    test: np.ndarray
    test_total: int
    """Test pairs, covered or not."""
    data: tuple[results.Data, ...]


def load_task(config: Config) -> Task:
    """Reads the pair of languages."""
    if config.preset == "smoke":
        return _planted()
    if config.source:
        sides, train, test, data = _own_files(config)
    else:
        source, _, target = config.pair.partition("-")
        dictionaries = sources.get("bli-xling")
        places = {
            name: dictionaries.parts.get(f"{config.pair}-{name}")
            for name in ("5k", "test")
        }
        if None in places.values():
            raise InputError(f"--pair {config.pair}: not in bli-xling here; try en-fr")
        sides = [_side(config, language) for language in (source, target)]
        train, test = (read_translations(p, lower=True) for p in places.values())
        data = (described(dictionaries, len(train) + len(test)),)
    first, second = combine.same_width([side.matrix for side in sides])
    sides = [
        dataclasses.replace(side, matrix=matrix)
        for side, matrix in zip(sides, (first, second), strict=True)
    ]
    indices = [side.index for side in sides]
    return Task(
        config.pair,
        *sides,
        train=covered(train, *indices),
        test=covered(test, *indices),
        test_total=len(test),
        data=data,
    )


def _side(config: Config, language: str) -> Side:
    """A language's table, its words by frequency."""
    frequency = sources.get("wordfreq")
    if language not in frequency.parts:
        raise InputError(f"--pair: no vectors of {language!r} here; known: en, fr, ru")
    order = packed.read_frequency_order(frequency.parts[language])
    if language == "fr":
        found = sources.get("french-fasttext")
        table = packed.read_spacy(*(found.parts[p] for p in _SPACY))
        index = _lower(table.index)
        matrix = table.matrix
    else:
        name = "navec-ru" if language == "ru" else at_hand(config.english)
        found = sources.get(name)
        place = found.parts["vectors"]
        vectors = (
            packed.read_navec(place) if language == "ru" else read_word_vectors(place)
        )
        index, matrix = _lower(vectors.index), vectors.matrix
    used = (described(found, len(matrix)), described(frequency, len(order)))
    return _by_frequency(language, index, matrix, order, config.vocabulary, used)


_SPACY = "vectors", "key2row", "strings"


def _lower(index: dict[str, int]) -> dict[str, int]:
    """The rows of lower-cased words: of a word's forms the lower one, or the first.

    A table may have "DES", an acronym, before "des".
    """
    lowered = {word: row for word, row in index.items() if word == word.lower()}
    for word, row in index.items():
        lowered.setdefault(word.lower(), row)
    return lowered


def _by_frequency(
    name: str,
    index: dict[str, int],
    matrix: np.ndarray,
    order: Sequence[str],
    most: int,
    data: tuple[results.Data, ...],
) -> Side:
    """Keeps the rows of the most frequent words, in that order, each row once."""
    listed = [word for word in order if word in index]
    ranked = dict.fromkeys(listed[:most])
    if len(ranked) < most:  # words that the list lacks come after those it has
        rest = [word for word in index if word not in ranked]
        ranked.update(dict.fromkeys(rest[: most - len(ranked)]))
    place: dict[int, int] = {}
    names = []
    for word in ranked:
        if index[word] not in place:
            place[index[word]] = len(place)
            names.append(word)
    rows = np.asarray(matrix[list(place)], np.float64)
    return Side(name, {w: place[index[w]] for w in ranked}, rows, tuple(names), data)


def _own_files(config: Config):
    """A user's tables and dictionaries."""
    if not (config.source and config.target and config.train and config.test):
        raise InputError("expected --source, --target, --train and --test together")
    sides = []
    for path in (config.source, config.target):
        table = read_word_vectors(path, limit=config.vocabulary)
        sides.append(
            Side(
                path,
                dict(table.index),
                np.asarray(table.matrix, np.float64),
                table.words,
                (),
            )
        )
    train, test = (read_translations(p) for p in (config.train, config.test))
    return sides, train, test, ()


def _planted() -> Task:
    world = synthetic.planted_languages()
    sides = [
        Side(
            name,
            {word: i for i, word in enumerate(words)},
            np.asarray(matrix, np.float64),
            words,
            (planted(name, len(words)),),
        )
        for name, words, matrix in (
            ("planted source", world.source.words, world.source.matrix),
            ("planted target", world.target.words, world.target.matrix),
        )
    ]
    pairs = [Translation(*pair) for pair in world.translations]
    rows = covered(pairs, *(side.index for side in sides))
    return Task("planted", *sides, rows[:200], rows[200:700], 500, ())
