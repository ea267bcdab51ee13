"""The text, as every trainer gets it, and the tests of the vectors."""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from experiments.common.datasets import described, planted
from experiments.static_embeddings.config import Config
from jaxemb.data import corpus, sources, synthetic
from jaxemb.data.analogies import Analogy, read_analogies
from jaxemb.data.corpus import readers
from jaxemb.data.pairs import WordPair, read_pairs
from jaxemb.train import results

SHOWN = "WS-353-ALL", "SIMLEX-999", "MEN-TR-3k"


@dataclasses.dataclass(frozen=True, eq=False)
class Text:
    """One text in two forms: for gensim a file, for the others a corpus."""

    file: Path
    """A sentence a line, without those kept apart."""
    corpus: corpus.Corpus
    data: results.Data


@dataclasses.dataclass(frozen=True, eq=False)
class Tests:
    """What vectors are tested on."""

    similarity: Mapping[str, Sequence[WordPair]]
    analogies: Mapping[str, Sequence[Analogy]] | None
    data: tuple[results.Data, ...]


def load_text(config: Config, workdir: Path) -> Text:
    """Reads the text once and keeps it in the run's folder."""
    folder, file = workdir / "corpus", workdir / "text.txt"
    told = workdir / "text.json"
    if not told.exists():
        sentences, data = _sentences(config)
        file.unlink(missing_ok=True)
        workdir.mkdir(parents=True, exist_ok=True)
        settings = {"min_count": config.min_count, "held_out": config.held_out}
        if not folder.exists():
            corpus.build(sentences, folder, progress=config.run.progress, **settings)
        _write_lines(file, sentences, config.held_out)
        told.write_text(json.dumps(dataclasses.asdict(data)))
    data = results.Data(**json.loads(told.read_text()))
    return Text(file, corpus.open_corpus(folder), data)


def load_tests(config: Config) -> Tests:
    """The similarity lists and, of real words, Google's analogies."""
    if config.corpus == "planted":
        world = synthetic.planted_topics()
        return Tests({"planted": world.pairs}, None, ())
    name = next(n for n in config.data_sets if n.startswith("wordsim"))
    lists = sources.get(name)
    questions = sources.get("analogies")
    similarity = {
        part: read_pairs(path) for part, path in lists.parts.items() if part in SHOWN
    }
    analogies = read_analogies(questions.parts["google"])
    used = (
        described(lists, sum(map(len, similarity.values()))),
        described(questions, sum(map(len, analogies.values()))),
    )
    return Tests(similarity, analogies, used)


def _sentences(config: Config) -> tuple[Iterable[Sequence[str]], results.Data]:
    if config.corpus == "planted":
        world = synthetic.planted_topics()
        return world.sentences, planted("planted topics", len(world.sentences))
    found = sources.get(config.corpus)
    if config.corpus == "imdb":
        sentences = readers.read_imdb(found, parts=("unsup",))
        name = "imdb, its unlabelled reviews"
        return sentences, described(found, 50_000, name=name)
    sentences = readers.read_wikitext(found, parts=("train",), lower=True)
    return sentences, described(found, sum(1 for _ in sentences))


def _write_lines(file: Path, sentences: Iterable[Sequence[str]], held_out: int) -> None:
    """The sentences that `corpus.build` does not keep apart, a line each."""
    part = file.with_suffix(".part")
    with open(part, "w", encoding="utf-8") as out:
        counter = itertools.count(1)
        for sentence in sentences:
            if sentence and (not held_out or next(counter) % held_out):
                out.write(" ".join(sentence) + "\n")
    part.replace(file)
