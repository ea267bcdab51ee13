"""The sources as one ensemble, the similarity lists as one pool, texts as ids."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.common import treebank
from experiments.common.datasets import described, planted
from experiments.common.tables import digested, read_several
from experiments.common.trained import NAMES, Trainer
from experiments.multitask_meta_embedding.config import ANALOGY, SIMILARITY, Config
from jaxemb.data import batching, recipes, sources, synthetic, text, tokenize
from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import holdout, kinds
from jaxemb.eval import sources as tests_lib
from jaxemb.spaces.ensemble import EmbeddingEnsemble
from jaxemb.train import results

_SPLIT_SEED = 0


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """What similarity is learned from and tested on."""

    ensemble: EmbeddingEnsemble
    """Of the words of all lists that any source has."""
    pool: holdout.Pool
    """Pairs of which both words are in the ensemble."""
    totals: Mapping[str, int]
    """Pairs of each list before that."""
    vocabulary: int
    """Words of all lists before that."""
    data: tuple[results.Data, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """Examples as rows of an ensemble; row 0 pads, and no source knows it."""

    name: str
    ensemble: EmbeddingEnsemble
    parts: Mapping[str, batching.Columns]
    """`tokens` and `labels` of train, dev and test."""
    classes: int
    tagged: bool
    """Whether every word has a label, or every text."""
    told: Mapping
    """What results say of the data."""
    data: tuple[results.Data, ...]


def load_world(config: Config) -> World:
    """Reads the similarity lists, and the sources at their words."""
    lists, tables, data = _lists(config)
    words = {w for rows in lists.values() for pair in rows for w in pair[:2]}
    if tables is None:
        tables, used = read_sources(config, sorted(words))
        data = (*used, *data)
    ensemble = EmbeddingEnsemble.of(tables, sorted(words), recase=True)
    ensemble = ensemble.take(ensemble.anywhere)
    there = set(ensemble.words)
    kept = {
        name: [pair for pair in rows if there.issuperset(pair[:2])]
        for name, rows in lists.items()
    }
    kept = {name: rows for name, rows in kept.items() if len(rows) > 2}
    if len(kept) < 2:
        raise InputError(
            "--sources: their words cover the pairs of fewer than two similarity "
            "lists; expected English words"
        )
    totals = {name: len(rows) for name, rows in lists.items()}
    pool = holdout.Pool.of_lists(kept)
    return World(ensemble, pool, totals, len(words), data)


def read_sources(
    config: Config, words: Sequence[str] | None = None
) -> tuple[dict[str, WordVectors], tuple[results.Data, ...]]:
    """The tables that are named, and those that are trained here."""
    tables, used = read_several(config.sources, words)
    if not config.training.seeds:
        return tables, used
    trainer = Trainer(config.training, config.run, Path(config.workdir) / "own")
    own = dict(zip(NAMES, trainer.tables(0), strict=True))
    own = {f"{name}, trained here": table for name, table in own.items()}
    told = (digested(name, table) for name, table in own.items())
    return tables | own, (*used, *told, *trainer.data)


def _lists(
    config: Config,
) -> tuple[
    Mapping[str, Sequence[WordPair]],
    Mapping[str, WordVectors] | None,
    tuple[results.Data, ...],
]:
    if config.is_planted:
        world = synthetic.planted_sources(tables=3, num_words=300, num_pairs=900)
        lists = {name: world.pairs[i::3] for i, name in enumerate("ABC")}
        return lists, world.tables, (planted("sources and pairs", len(world.words)),)
    found = tests_lib.find_tests(list(SIMILARITY)).tests
    tests = [test for test in found if isinstance(test, kinds.SimilarityTest)]
    lists = {test.name.removeprefix("EN-"): test.pairs for test in tests}
    return lists, None, tuple(_tested(test.name, len(test.pairs)) for test in tests)


def _tested(name: str, size: int) -> results.Data:
    return results.Data(
        name=name, kind="real", source="see jaxemb data list", sha256=None, size=size
    )


def load_analogies(
    config: Config,
) -> tuple[dict[str, tuple[kinds.Test, EmbeddingEnsemble]], tuple[results.Data, ...]]:
    """Each test with the ensemble of its own words, which are the candidates."""
    tests = [_sensible(test) for test in tests_lib.find_tests(list(ANALOGY)).tests]
    every = sorted({word for test in tests for word in test.words})
    tables, used = read_sources(config, every)
    found = {}
    for test in tests:
        ensemble = EmbeddingEnsemble.of(tables, sorted(test.words), recase=True)
        found[ANALOGY[test.name]] = test, ensemble.take(ensemble.anywhere)
    data = tuple(_tested(test.name, len(test.words)) for test in tests)
    return found, (*used, *data)


def _sensible(test: kinds.Test) -> kinds.Test:
    """Without questions that ask for a word that they name.

    The copy of Google's questions that is at hand has one more than Google: "rare is to
    rarely as rare to rarely", which nobody can get right, since words asked with are no
    answers.
    """
    if not isinstance(test, kinds.AnalogyTest):
        return test
    sections = {
        name: [one for one in questions if one[:2] != one[2:]]
        for name, questions in test.sections.items()
    }
    return dataclasses.replace(test, sections=sections)


# ------------------------------------------------------------------------------- texts


def load_texts(config: Config, task: str) -> Texts:
    """Reads a task's examples, and the sources at their words."""
    read = {"pos": _pos, "recipes": _recipes, "imdb": _imdb}[task]
    if config.is_planted:
        raw = _planted_texts(task)
    else:
        raw = read(config)
    settings = config.extrinsic
    parts = dict(raw.parts)
    parts["train"] = _some(parts["train"], settings.train)
    parts["test"] = _some(parts["test"], settings.test)
    cut = {
        part: [(words[: settings.longest], labels) for words, labels in rows if words]
        for part, rows in parts.items()
    }
    words = sorted({w for rows in cut.values() for tokens, _ in rows for w in tokens})
    tables, data = (raw.tables, raw.data) if raw.tables else ({}, raw.data)
    if not raw.tables:
        tables, used = read_sources(config, words)
        data = (*used, *raw.data)
    ensemble = EmbeddingEnsemble.of(tables, ["", *words], recase=True)
    place = {word: row for row, word in enumerate(ensemble.words)}
    columns = {}
    for part, rows in cut.items():
        tokens = [[place[w] for w in tokens] for tokens, _ in rows]
        if raw.tagged:
            labels = [tags[: settings.longest] for _, tags in rows]
            columns[part] = {
                "tokens": batching.Ragged.of(tokens),
                "labels": batching.Ragged.of(labels),
            }
        else:
            labels = np.array([label for _, label in rows], np.int32)
            columns[part] = {"tokens": batching.Ragged.of(tokens), "labels": labels}
    ids = np.concatenate([c["tokens"].values for c in columns.values()])
    told = {
        **raw.told,
        "examples": {part: len(rows) for part, rows in cut.items()},
        "words": {part: len(c["tokens"].values) for part, c in columns.items()},
        "words before examples are cut": {
            part: sum(len(tokens) for tokens, _ in rows) for part, rows in parts.items()
        },
        "distinct words": len(words),
        "share of words that each source knows": {
            name: round(float(ensemble.known[ids, i].mean()), 4)
            for i, name in enumerate(ensemble.names)
        },
    }
    return Texts(task, ensemble, columns, raw.classes, raw.tagged, told, data)


def _some(rows: list, count: int | None) -> list:
    """That many at random, the same every time; in their order."""
    if count is None or count >= len(rows):
        return rows
    rng = np.random.default_rng(_SPLIT_SEED)
    return [rows[i] for i in np.sort(rng.permutation(len(rows))[:count])]


@dataclasses.dataclass(frozen=True, eq=False)
class _Raw:
    """Words and labels of each part."""

    parts: Mapping[str, list]
    classes: int
    tagged: bool
    data: tuple[results.Data, ...]
    told: Mapping = dataclasses.field(default_factory=dict)
    tables: Mapping[str, WordVectors] | None = None


def _pos(config: Config) -> _Raw:
    del config
    read, found = treebank.read_ewt("upos")
    tags, numbered = treebank.number_tags(read)
    parts = {
        part: [
            (list(one.words), labels)
            for one, labels in zip(sentences, numbered[part], strict=True)
        ]
        for part, sentences in read.items()
    }
    size = sum(map(len, parts.values()))
    return _Raw(parts, len(tags), True, (described(found, size),))


def _recipes(config: Config) -> _Raw:
    del config
    found = sources.get("recipes")
    read = recipes.read_recipes(found.part("nyt"))
    place = {tag: i for i, tag in enumerate(recipes.TAGS)}
    parts = {
        part: [(list(p.tokens), [place[t] for t in p.tags]) for p in phrases]
        for part, phrases in split_phrases(read.phrases).items()
    }
    told = {
        "phrases": read.total,
        "distinct phrases": len({_written(p) for p in read.phrases}),
        "alignment rate": round(read.rate, 4),
    }
    data = described(found, read.total, name="recipes (nyt)")
    return _Raw(parts, len(recipes.TAGS), True, (data,), told)


def split_phrases(
    phrases: Sequence[recipes.RecipePhrase],
) -> dict[str, list[recipes.RecipePhrase]]:
    """A tenth for dev, a tenth for test; of those written alike, all in one part."""
    distinct, which = np.unique([_written(p) for p in phrases], return_inverse=True)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(distinct))
    tenth = np.minimum(10 * order[which] // len(distinct), 2)
    return {
        part: [phrases[i] for i in np.flatnonzero(tenth == number)]
        for number, part in enumerate(("dev", "test", "train"))
    }


def _written(phrase: recipes.RecipePhrase) -> str:
    return " ".join(phrase.tokens).lower()


def _imdb(config: Config) -> _Raw:
    del config
    found = sources.get("imdb")
    read = {
        part: [
            (list(one.tokens), one.label)
            for one in text.read_imdb(found.part(part), tokenize=_plain_words)
        ]
        for part in ("train", "test")
    }
    rng = np.random.default_rng(_SPLIT_SEED)
    order = rng.permutation(len(read["train"]))
    rows = [read["train"][i] for i in order]
    parts = {"train": rows[1000:], "dev": rows[:1000], "test": read["test"]}
    data = described(found, len(read["train"]) + len(read["test"]), kind="subset")
    return _Raw(parts, 2, False, (data,))


def _plain_words(review: str) -> tuple[str, ...]:
    return tokenize.english(review.replace("<br />", " "))


def _planted_texts(task: str) -> _Raw:
    """A word's tag is the largest of three meanings; a text's class a sign."""
    world = synthetic.planted_sources(tables=3, num_words=300, num_pairs=2)
    rng = np.random.default_rng(1)
    chosen = rng.integers(0, len(world.words), size=(200, 7))
    tags = world.meanings[:, :3].argmax(axis=1)
    signs = world.meanings[chosen, 0].mean(axis=1) > 0
    tagged = task != "imdb"
    rows = [
        (
            [world.words[i] for i in one],
            tags[one].tolist() if tagged else int(sign),
        )
        for one, sign in zip(chosen, signs, strict=True)
    ]
    parts = {"train": rows[:140], "dev": rows[140:170], "test": rows[170:]}
    data = (planted(f"{task}: words of planted meanings", len(rows)),)
    return _Raw(parts, 3 if tagged else 2, tagged, data, tables=world.tables)
