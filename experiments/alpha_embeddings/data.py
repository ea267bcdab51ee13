"""GloVe tables, trained once and kept; the tests and texts that embeddings meet."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from etils import epath

from experiments.alpha_embeddings.config import PARTS, SIMILARITY, Config
from experiments.common import tables as files
from experiments.common.datasets import described, planted
from jaxemb import static, terminal, train
from jaxemb.data import (
    batching,
    cooccurrence,
    corpus,
    sources,
    stopwords,
    synthetic,
    text,
    vocab,
)
from jaxemb.data.analogies import Analogy, read_analogies
from jaxemb.data.corpus import readers
from jaxemb.data.features import WordFeatures, read_features
from jaxemb.data.pairs import WordPair, read_pairs
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import similarity
from jaxemb.train import checkpoints, loop, results

_VALIDATION_SEED = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """Both tables of one trained model."""

    name: str
    """`50d`, and for its seeds the same."""
    seed: int
    tables: static.WordTables

    @property
    def label(self) -> str:
        """What progress and folders call it."""
        return f"{self.name}/seed-{self.seed}"


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """Models of one vocabulary, each got when it is asked for."""

    names: tuple[str, ...]
    """`50d` and the like, each with all seeds."""
    seeds: int
    words: tuple[str, ...]
    data: tuple[results.Data, ...]
    origins: tuple[Mapping, ...]
    """By which commits, and how long, tables were trained."""
    described: Mapping
    """What results tell of text and tables."""
    get: Callable[[str, int], Model]
    """By name and seed."""

    def models(self) -> Iterator[Model]:
        """All of them, one at a time."""
        for name in self.names:
            for seed in range(self.seeds):
                yield self.get(name, seed)


@dataclasses.dataclass(frozen=True, eq=False)
class Tests:
    """What vectors are tested on; empty where a task was not asked for."""

    similarity: Mapping[str, Sequence[WordPair]]
    pooled: Sequence[WordPair]
    """The pairs of all lists but those that are parts of another."""
    classes: WordFeatures | None
    analogies: Mapping[str, Sequence[Analogy]]
    data: tuple[results.Data, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Documents:
    """Texts as rows of a vocabulary, words that it lacks left out."""

    name: str
    classes: int
    tokens: batching.Ragged
    labels: np.ndarray
    rows: Mapping[str, np.ndarray]
    """The texts of train, dev and test."""
    unknown: float
    """Share of the content words that the vocabulary lacks."""
    data: results.Data

    def part(self, name: str) -> tuple[batching.Ragged, np.ndarray]:
        """Texts and labels of one part."""
        rows = self.rows[name]
        offsets = self.tokens.offsets
        sequences = [self.tokens.values[offsets[r] : offsets[r + 1]] for r in rows]
        return batching.Ragged.of(sequences), self.labels[rows]


# ------------------------------------------------------------------------------ tables


def load_source(config: Config) -> Source:
    """The models to make embeddings of: a user's, or those trained here."""
    if config.words and config.contexts:
        return _own_files(config, config.words, config.contexts)
    return _trained(config)


def _trained(config: Config) -> Source:
    """Trains what is not there yet, all before anything else is done."""
    settings = config.tables
    folder = Path(config.tables_folder)
    words, data = _text(config, folder / "text")
    counts = _counted(config, words, folder / f"window-{settings.window}")
    # Entries of an update: fewer where there are few in all.
    block = 1024 if len(counts) > 100_000 else 64

    def get(name: str, seed: int) -> Model:
        glove = static.GloVe(
            dim=int(name.removesuffix("d")),
            epochs=settings.epochs,
            learning_rate=settings.learning_rate,
            chunk=min(1 << 16, -(-len(counts) // block) * block),
            block=block,
            seed=seed,
        )
        place = folder / name / f"seed-{seed}"
        steps = glove.epochs * math.ceil(len(counts) / glove.chunk)
        finished = (place / checkpoints.FOLDER / str(steps)).is_dir()
        recorded = contextlib.nullcontext() if finished else results.recorded(place)
        with recorded:
            tables = static.train_glove(
                words,
                counts,
                glove,
                place,
                mode=config.run.parallel,
                save_every=max(200, steps // glove.epochs),
                name=f"GloVe {name}, seed {seed}",
                tensorboard=config.run.tensorboard,
                progress=config.run.progress and not finished,
            )
        return Model(name, seed, tables)

    names = tuple(f"{dim}d" for dim in settings.dims)
    parts = [(name, seed) for name in names for seed in range(settings.seeds)]
    for name, seed in parts:
        get(name, seed)
    origins = [results.origin(folder / name / f"seed-{seed}") for name, seed in parts]
    told = {
        "words": int(words.raw[-1]),
        "tokens in the vocabulary": len(words.tokens),
        "vocabulary": len(words.words),
        "co-occurrences": len(counts),
        "seconds of training the tables": round(sum(o["seconds"] for o in origins), 1),
    }
    terminal.say(f"{len(words.words):,} words, {len(counts):,} co-occurrences")
    return Source(names, settings.seeds, words.words, data, tuple(origins), told, get)


def _text(
    config: Config, folder: Path
) -> tuple[corpus.Corpus, tuple[results.Data, ...]]:
    """The text, read once in one process and kept."""
    settings = config.tables
    kept = {"corpus": list(settings.corpus), "min_count": settings.min_count}
    loop.claim(epath.Path(folder), kept)
    sentences, data = _sentences(config)
    place = folder / "corpus"
    if train.is_primary() and not place.exists():
        corpus.build(
            sentences,
            place,
            min_count=settings.min_count,
            progress=config.run.progress,
        )
    train.wait_for_all("text")
    return corpus.open_corpus(place), data


def _counted(
    config: Config, words: corpus.Corpus, folder: Path
) -> cooccurrence.Cooccurrences:
    if train.is_primary() and not folder.exists():
        cooccurrence.count(
            words,
            folder,
            window=config.tables.window,
            progress=config.run.progress,
        )
    train.wait_for_all("co-occurrences")
    return cooccurrence.open_cooccurrences(folder)


def _sentences(config: Config) -> tuple[readers.Sentences, tuple[results.Data, ...]]:
    """Lower-cased sentences without stop-words and punctuation."""
    if "planted" in config.tables.corpus:
        world = synthetic.planted_forms()
        plain = readers.Sentences(lambda: iter(list(map(list, world.sentences))))
        return plain, (planted("planted forms", len(world.sentences)),)
    parts, data = [], []
    for name in config.tables.corpus:
        found = sources.get(name)
        if name == "imdb":
            parts.append(readers.read_imdb(found, parts=("unsup",)))
            data.append(described(found, 50_000, name="imdb, its unlabelled reviews"))
        elif name == "wikitext-2":
            parts.append(readers.read_wikitext(found, lower=True))
            data.append(described(found, name="wikitext-2, its training part"))
        elif name == "brown":
            parts.append(readers.read_brown(found, lower=True))
            data.append(described(found))
        else:
            parts.append(readers.read_newsgroups(found))
            data.append(described(found, 11_314, name="20newsgroups, training texts"))
    plain = readers.Sentences(lambda: (s for part in parts for s in part))
    return readers.without_stop_words(plain), tuple(data)


def load_published(
    config: Config, source: Source
) -> tuple[dict[str, WordVectors], list[results.Data]]:
    """GloVe's own vectors of our words, by the name of the tables of their width."""
    found, data = {}, []
    for name in config.published:
        table, used = files.read(name, keep=set(source.words))
        if not isinstance(table, WordVectors):
            raise InputError(f"--published {name}: expected a table of words")
        found[f"{table.dim}d"] = table
        data.append(used)
    return found, data


def _own_files(config: Config, words: str, contexts: str) -> Source:
    """A user's tables; without biases, so that their unigram is made of the counts."""
    first, used = files.read(words)
    second, also = files.read(contexts)
    if not (isinstance(first, WordVectors) and isinstance(second, WordVectors)):
        raise InputError("--words and --contexts: expected tables of words, not pieces")
    missing = [word for word in first.words if word not in second]
    if missing:
        raise InputError(
            f"--contexts {contexts}: lacks {len(missing)} words of --words, the first "
            f"is {missing[0]!r}"
        )
    if first.dim != second.dim:
        raise InputError(
            f"--contexts {contexts}: {second.dim} dimensions, where --words has "
            f"{first.dim}"
        )
    counts = np.ones(len(first), np.int64)
    needed = sorted(set(config.references) & {"u", "ud"})
    if config.counts:
        known = vocab.read_counts(config.counts)
        missing = [word for word in first.words if not known.get(word)]
        if missing:
            raise InputError(
                f"--counts {config.counts}: lacks {len(missing)} words of --words, the "
                f"first is {missing[0]!r}"
            )
        counts = np.array([known[word] for word in first.words], np.int64)
    elif needed:
        raise InputError(
            f"--references {' '.join(needed)}: expected --counts, or --references 0"
        )
    both = np.asarray(first.matrix), second.lookup(first.words)
    tables = static.WordTables(first.words, counts, *both)
    told = {"vocabulary": len(first.words)}
    name = f"{first.dim}d"
    only = Model(name, 0, tables)
    return Source((name,), 1, first.words, (used, also), (), told, lambda *_: only)


# ------------------------------------------------------------------------------- tests


def load_tests(config: Config) -> Tests:
    """The lists, classes and questions of the tasks asked for."""
    planted_world = "planted" in config.tables.corpus and not config.words
    if planted_world:
        return _planted_tests(config)
    lists: dict[str, list[WordPair]] = {}
    classes, questions, data = None, {}, []
    if "similarity" in config.tasks:
        name = next(n for n in config.data_sets if n.startswith("wordsim"))
        found = sources.get(name)
        known = {_list_name(part): place for part, place in found.parts.items()}
        lists = {n: read_pairs(known[n]) for n in SIMILARITY if n in known}
        data.append(described(found, sum(map(len, lists.values()))))
    if "purity" in config.tasks:
        found = sources.get("qvec")
        classes = read_features(found.part("supersenses-en"))
        data.append(described(found, len(classes.words)))
    if "analogy" in config.tasks:
        found = sources.get("analogies")
        questions = read_analogies(found.part("google"))
        data.append(described(found, sum(map(len, questions.values()))))
    pooled = {n: rows for n, rows in lists.items() if n not in PARTS}
    return Tests(lists, similarity.pooled(pooled), classes, questions, tuple(data))


def _list_name(part: str) -> str:
    """The wheel writes some names otherwise."""
    other = {
        "WS-353": "WS-353-ALL",
        "SimLex-999": "SIMLEX-999",
        "MEN": "MEN-TR-3k",
        "RW": "RW-STANFORD",
    }
    return other.get(part, part)


def _planted_tests(config: Config) -> Tests:
    world = synthetic.planted_forms()
    lists = {"planted": world.pairs} if "similarity" in config.tasks else {}
    return Tests(
        lists,
        similarity.pooled(lists),
        world.classes if "purity" in config.tasks else None,
        world.questions if "analogy" in config.tasks else {},
        (),
    )


# --------------------------------------------------------------------------- documents


def load_documents(config: Config, task: str, words: Sequence[str]) -> Documents:
    """The texts of a task, and which of them alpha and epoch are chosen on."""
    parts, classes, data = _labelled(config, task)
    index = {word: row for row, word in enumerate(words)}
    examples = [example for part in parts.values() for example in part]
    rows = [
        [index[token] for token in example.tokens if token in index]
        for example in examples
    ]
    labels = np.array([example.label for example in examples], np.int32)
    train = np.arange(len(parts["train"]))
    dev = _stratified(labels[train], config.classifier.validation)
    total = sum(len(example.tokens) for example in examples)
    return Documents(
        task,
        classes,
        batching.Ragged.of(rows),
        labels,
        {
            "train": np.setdiff1d(train, dev),
            "dev": dev,
            "test": np.arange(len(train), len(examples)),
        },
        1 - sum(map(len, rows)) / max(total, 1),
        data,
    )


def _labelled(
    config: Config, task: str
) -> tuple[dict[str, list[text.LabelledText]], int, results.Data]:
    if "planted" in config.tables.corpus and not config.words:
        world = synthetic.planted_forms()
        parts = {"train": list(world.train), "test": list(world.test)}
        return parts, 2, planted("planted texts", len(world.train) + len(world.test))
    if task == "newsgroups":
        found = sources.get("20newsgroups")
        headers = config.classifier.headers
        parts = {
            part: text.read_newsgroups(
                found.part(part), headers=headers, tokenize=_content
            )
            for part in ("train", "test")
        }
        return parts, len(text.NEWSGROUPS), described(found)
    found = sources.get("imdb")
    parts = {
        part: text.read_imdb(found.part(part), tokenize=_content)
        for part in ("train", "test")
    }
    return parts, 2, described(found, 50_000, name="imdb, its labelled reviews")


def _content(document: str) -> tuple[str, ...]:
    """Words as the tables' text has them."""
    sentences = readers.review_sentences(document)
    return stopwords.content_words(word for words in sentences for word in words)


def _stratified(labels: np.ndarray, share: float) -> np.ndarray:
    """The same share of every class, by a fixed seed."""
    rng = np.random.default_rng(_VALIDATION_SEED)
    chosen = []
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        chosen.append(rows[: round(share * len(rows))])
    return np.sort(np.concatenate(chosen))


def folds(items: Sequence[Hashable], count: int) -> np.ndarray:
    """The fold of each item, of a fixed permutation; equal items share theirs.

    Lists repeat pairs and questions of each other, and one that alpha is chosen on must
    not be tested on too.
    """
    places = {item: place for place, item in enumerate(dict.fromkeys(items))}
    order = np.random.default_rng(_VALIDATION_SEED).permutation(len(places))
    return order[np.array([places[item] for item in items], np.int64)] % count
