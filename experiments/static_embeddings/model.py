"""The trainers, each from a text to vectors and the words a second it took."""

import time
from pathlib import Path
from typing import Any, NamedTuple

from experiments.common.updates import GROUP, groups_of
from experiments.static_embeddings.config import Config
from experiments.static_embeddings.data import Text
from jaxemb import static, terminal
from jaxemb.data import cooccurrence
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.train import parallel


class Trained(NamedTuple):
    """What a trainer made, and how long it took."""

    vectors: WordVectors
    seconds: float
    """Of training; reading and counting words apart, which are the same for all."""
    words: int
    """Words of text met, each epoch anew."""


def train(config: Config, system: str, text: Text, seed: int, folder: Path) -> Trained:
    """Trains one system of ours with one seed, in all processes together."""
    start = time.perf_counter()
    options: dict[str, Any] = {
        "mode": config.run.parallel,
        "name": f"{system}, seed {seed}",
        "tensorboard": config.run.tensorboard,
        "profile": config.run.profile_steps if seed == 0 else None,
        "progress": config.run.progress,
    }
    if system == "glove":
        counts = _counted(config, text, folder / "cooccurrences")
        settings = static.GloVe(dim=config.dim, epochs=config.glove_epochs, seed=seed)
        tables = static.train_glove(text.corpus, counts, settings, folder, **options)
        kind, epochs = "sum", 1
    else:
        training = static.Training(
            dim=config.dim,
            epochs=config.epochs,
            sample=config.sample,
            layout=static.Layout(groups=groups_of(config.update), group=GROUP),
            seed=seed,
        )
        objective = _objective(config, system)
        tables = static.train(text.corpus, objective, training, folder, **options)
        kind, epochs = "input", config.epochs
    seconds = time.perf_counter() - start
    return Trained(tables.vectors(kind), seconds, epochs * int(text.corpus.raw[-1]))


def _counted(config: Config, text: Text, folder: Path) -> cooccurrence.Cooccurrences:
    """Counts in one process, for all."""
    if parallel.is_primary():
        cooccurrence.count(
            text.corpus,
            folder,
            window=config.glove_window,
            progress=config.run.progress,
        )
    parallel.wait_for_all("co-occurrences")
    return cooccurrence.open_cooccurrences(folder)


def _objective(config: Config, system: str) -> Any:
    shared = {"window": config.window, "negatives": config.negatives}
    if system == "skipgram":
        return static.SkipGram(**shared)
    if system == "cbow":
        return static.CBOW(**shared)
    if system == "fasttext":
        return static.SubwordSkipGram(buckets=config.buckets, **shared)
    raise InputError(f"--systems {system}: no such system")


def train_gensim(
    config: Config, system: str, file: Path, *, epochs: int, workers: int, seed: int
) -> Trained:
    """Trains gensim's, in this process."""
    model = _word2vec()(
        vector_size=config.dim,
        window=config.window,
        negative=config.negatives,
        sg=int(system == "gensim-skipgram"),
        sample=config.sample,
        min_count=config.min_count,
        workers=workers,
        seed=seed,
    )
    model.build_vocab(corpus_file=str(file))
    start = time.perf_counter()
    model.train(
        corpus_file=str(file),
        total_words=model.corpus_total_words,
        total_examples=model.corpus_count,
        epochs=epochs,
    )
    seconds = time.perf_counter() - start
    words = epochs * model.corpus_total_words
    return Trained(WordVectors.from_gensim(model.wv), seconds, words)


def best_workers(config: Config, system: str, file: Path, part: Path) -> int:
    """How many threads are fastest for a system of gensim's, on the first words."""
    with open(file, encoding="utf-8") as text, open(part, "w", encoding="utf-8") as out:
        size = 0
        for line in text:
            out.write(line)
            size += len(line)
            if size > 5_000_000:
                break
    rates = {}
    for workers in (1, 2, 3, 4):
        tried = train_gensim(config, system, part, epochs=1, workers=workers, seed=0)
        rates[workers] = tried.words / tried.seconds
    part.unlink()
    best = max(rates, key=rates.__getitem__)
    told = ", ".join(f"{n}: {rate:,.0f}" for n, rate in rates.items())
    terminal.say(f"{system}, words a second by workers: {told}; {best} it is")
    return best


def _word2vec() -> Any:
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise InputError(
            "--systems gensim-…: gensim is not installed; pip install 'jaxemb[bench]' "
            "or name other systems"
        ) from error
    return Word2Vec
