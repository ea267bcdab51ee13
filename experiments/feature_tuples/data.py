"""The tables of a run, read or trained, and the tests that they take."""

import dataclasses
import itertools
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import texts
from experiments.common.datasets import described, planted
from experiments.common.tables import read
from experiments.common.updates import GROUP, groups_of
from experiments.feature_tuples.config import (
    ASYMMETRIC,
    COMPOUNDS,
    HYPONYMS,
    Config,
)
from jaxemb import static, terminal
from jaxemb.data import compounds as compounds_lib
from jaxemb.data import corpus, lexicons, sources, synthetic
from jaxemb.data.analogies import Analogy, read_analogies
from jaxemb.data.compounds import Compound
from jaxemb.data.corpus import readers
from jaxemb.data.pairs import WordPair, read_pairs
from jaxemb.data.vectors import WordVectors, read_word_vectors, write_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval.lookup import Case
from jaxemb.train import results

SIMLEX = "SimLex-999"
_READERS = {
    "compounds-reddy": ("Reddy", "scores", compounds_lib.read_reddy),
    "compounds-farahmand": ("Farahmand", "judgements", compounds_lib.read_farahmand),
}
_VECTORS = "vectors.safetensors"
_OBJECTIVES = {"skipgram": static.SkipGram, "cbow": static.CBOW}


@dataclasses.dataclass(frozen=True, eq=False)
class Tests:
    """What vectors are tested on."""

    similarity: Mapping[str, Sequence[WordPair]]
    """SimLex-999, or the planted list, first."""
    analogies: Mapping[str, Sequence[Analogy]]
    compounds: Mapping[str, Sequence[Compound]]
    function_words: Sequence[str]
    expressions: Sequence[str]
    """Sets whose neighbours are shown."""
    asymmetric: Sequence[tuple[str, str]]
    """Sets whose divergences are shown both ways."""
    hyponyms: Sequence[tuple[str, str]]
    data: tuple[results.Data, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Space:
    """A table, or the same table trained with several seeds."""

    name: str
    dim: int
    tables: tuple[WordVectors, ...]
    counts: np.ndarray | None
    """How often each word occurs; None of a table that is only read."""
    case: Case
    analogies: bool
    """Whether its analogies are answered."""

    @property
    def unit_rows(self) -> bool:
        """Whether rows have length 1 already: what was learned of lengths is lost."""
        return all(np.allclose(t.norms, 1, atol=1e-3) for t in self.tables)


@dataclasses.dataclass(frozen=True, eq=False)
class Text:
    """What tables are trained on."""

    corpus: corpus.Corpus
    data: tuple[results.Data, ...]


def load_tests(config: Config) -> Tests:
    """Similarity lists, Google's analogies and, where they are, noun compounds."""
    if config.corpus == "planted":
        return _planted_tests()
    name = next(n for n in config.data_sets if n.startswith("wordsim"))
    lists, questions = sources.get(name), sources.get("analogies")
    similarity = {part: read_pairs(path) for part, path in lists.parts.items()}
    simlex = next(part for part in similarity if part.lower() == SIMLEX.lower())
    similarity = {SIMLEX: similarity.pop(simlex), **similarity}
    analogies = read_analogies(questions.part("google"))
    used = [
        described(lists, sum(map(len, similarity.values()))),
        described(
            questions, sum(map(len, analogies.values())), name="analogies, google"
        ),
    ]
    compounds = {}
    for name in COMPOUNDS:
        if found := sources.locate(name):
            short, part, read_compounds = _READERS[name]
            compounds[short] = read_compounds(found.part(part))
            used.append(described(found))
        else:
            terminal.say(f"left out: {sources.missing(name)}")
    known = lexicons.english_function_words()
    return Tests(
        similarity,
        analogies,
        compounds,
        known,
        config.expressions,
        ASYMMETRIC,
        HYPONYMS,
        tuple(used),
    )


def load_spaces(
    config: Config, tests: Tests, workdir: Path
) -> tuple[list[Space], list[results.Data]]:
    """Reads the tables that are named, or trains those that are not there yet."""
    if bool(config.vectors) == bool(config.corpus):
        raise InputError("expected --vectors, tables to read, or --corpus to train on")
    if config.vectors:
        spaces, data = [], []
        for name in config.vectors:
            table, used = read(name)
            if not isinstance(table, WordVectors):
                raise InputError(f"--vectors {name}: expected a table of words")
            case = "fallback"
            spaces.append(Space(used.name, table.dim, (table,), None, case, True))
            data.append(used)
        return spaces, data
    text = _load_text(config, tests, workdir)
    spaces = []
    for dim in config.dims:
        tables = tuple(
            _trained(config, text, dim, seed, workdir) for seed in range(config.seeds)
        )
        answers = dim in config.analogy_dims
        counts = np.asarray(text.corpus.counts)
        spaces.append(Space(f"{dim}-d", dim, tables, counts, "lower", answers))
    return spaces, list(text.data)


def part_folders(config: Config, workdir: Path) -> list[Path]:
    """Where each training is kept."""
    if config.vectors:
        return []
    return [
        _folder(workdir, dim, seed)
        for dim in config.dims
        for seed in range(config.seeds)
    ]


def _folder(workdir: Path, dim: int, seed: int) -> Path:
    return workdir / f"{dim}-d" / f"seed-{seed}"


def _trained(
    config: Config, text: Text, dim: int, seed: int, workdir: Path
) -> WordVectors:
    """Focus vectors; kept once they are trained, and then only read."""
    folder = _folder(workdir, dim, seed)
    if not (folder / _VECTORS).exists():
        options: dict[str, Any] = {
            "mode": config.run.parallel,
            "name": f"{dim}-d, seed {seed}",
            "tensorboard": config.run.tensorboard,
            "profile": config.run.profile_steps if seed == 0 else None,
            "progress": config.run.progress,
        }
        training = static.Training(
            dim=dim,
            epochs=config.epochs,
            sample=config.sample,
            layout=static.Layout(groups=groups_of(config.update), group=GROUP),
            seed=seed,
        )
        objective = _OBJECTIVES[config.objective](
            window=config.window, negatives=config.negatives
        )
        with results.recorded(folder):
            tables = static.train(text.corpus, objective, training, folder, **options)
        write_word_vectors(folder / _VECTORS, tables.vectors("input"))
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        terminal.say(f"{config.objective}, {dim}-d, seed {seed}: trained")
    return read_word_vectors(folder / _VECTORS)


def _load_text(config: Config, tests: Tests, workdir: Path) -> Text:
    """Reads the text once, its compounds joined, and keeps it in the run's folder."""
    folder, told = workdir / "corpus", workdir / "text.json"
    if not told.exists():
        sentences, data = _sentences(config)
        rated = itertools.chain.from_iterable(tests.compounds.values())
        if not folder.exists():
            corpus.build(
                compounds_lib.join_compounds(sentences, rated),
                folder,
                min_count=config.min_count,
                progress=config.run.progress,
            )
        told.write_text(json.dumps([dataclasses.asdict(one) for one in data]))
    data = tuple(results.Data(**one) for one in json.loads(told.read_text()))
    return Text(corpus.open_corpus(folder), data)


def _sentences(config: Config) -> tuple[Iterable[Sequence[str]], list[results.Data]]:
    if config.corpus == "planted":
        world = synthetic.planted_topics()
        return world.sentences, [planted("planted topics", len(world.sentences))]
    if config.corpus != "mixed":
        path = Path(config.corpus)
        sentences = readers.read_sentences(path, lower=True)
        return sentences, [_own_text(path)]
    return texts.mixed()


def _own_text(path: Path) -> results.Data:
    return results.Data(
        name=path.name,
        kind="real",
        source="a file of the user's",
        sha256=None,
        size=path.stat().st_size,
    )


def _planted_tests() -> Tests:
    """Topics take the place of meanings: analogies and compounds are made of them."""
    world = synthetic.planted_topics()
    first, second, *_ = world.topics
    pairs = list(zip(first, second, strict=True))
    questions = [Analogy(*p, *q) for p in pairs for q in pairs if p != q]
    half = len(questions) // 2
    compounds = [
        Compound(a, b, float(topic is other))
        for topic in world.topics[:2]
        for other in world.topics[:2]
        for a, b in zip(topic, other[1:] + other[:1], strict=True)
    ]
    in_topics = {word for topic in world.topics for word in topic}
    words = {word for sentence in world.sentences for word in sentence}
    return Tests(
        {"planted": world.pairs},
        {"topics": questions[:half], "gram-topics": questions[half:]},
        {"planted": compounds},
        sorted(words - in_topics),
        [f"{first[0]} {sign} {second[0]}" for sign in "|&-"],
        [(first[0], second[0])],
        list(zip(first, second, strict=True)),
        (),
    )
