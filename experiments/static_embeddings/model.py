"""The trainers, each from a text to vectors and the words a second it took."""

import time
from pathlib import Path
from typing import Any, NamedTuple

from experiments.static_embeddings.config import Config
from experiments.static_embeddings.data import Text
from jaxemb import static, terminal
from jaxemb.data import cooccurrence
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError


class Trained(NamedTuple):
    """What a trainer made, and how long it took."""

    vectors: WordVectors
    seconds: float
    """Of training; reading and counting words apart, which are the same for all."""
    words: int
    """Words of text met, each epoch anew."""


def train(config: Config, system: str, text: Text, seed: int, folder: Path) -> Trained:
    """Trains one system with one seed."""
    if system.startswith("gensim-"):
        return _gensim(config, system, text, seed)
    start = time.perf_counter()
    options: dict[str, Any] = {
        "mode": config.run.parallel,
        "name": f"{system}, seed {seed}",
        "tensorboard": config.run.tensorboard,
        "profile": config.run.profile_steps if seed == 0 else None,
        "progress": config.run.progress,
    }
    if system == "glove":
        counts = cooccurrence.count(
            text.corpus,
            folder / "cooccurrences",
            window=config.glove_window,
            progress=config.run.progress,
        )
        settings = static.GloVe(dim=config.dim, epochs=config.glove_epochs, seed=seed)
        tables = static.train_glove(text.corpus, counts, settings, folder, **options)
        kind, epochs = "sum", 1
    else:
        training = static.Training(
            dim=config.dim,
            epochs=config.epochs,
            sample=config.sample,
            layout=static.Layout(groups=config.update and config.update // 16),
            seed=seed,
        )
        objective = _objective(config, system)
        tables = static.train(text.corpus, objective, training, folder, **options)
        kind, epochs = "input", config.epochs
    seconds = time.perf_counter() - start
    return Trained(tables.vectors(kind), seconds, epochs * int(text.corpus.raw[-1]))


def _objective(config: Config, system: str) -> Any:
    shared = {"window": config.window, "negatives": config.negatives}
    if system == "skipgram":
        return static.SkipGram(**shared)
    if system == "cbow":
        return static.CBOW(**shared)
    if system == "fasttext":
        return static.SubwordSkipGram(buckets=config.buckets, **shared)
    raise InputError(f"--systems {system}: no such system")


def _gensim(config: Config, system: str, text: Text, seed: int) -> Trained:
    model = _word2vec()(
        vector_size=config.dim,
        window=config.window,
        negative=config.negatives,
        sg=int(system == "gensim-skipgram"),
        sample=config.sample,
        min_count=config.min_count,
        workers=config.workers,
        seed=seed,
    )
    file = str(text.file)
    model.build_vocab(corpus_file=file)
    start = time.perf_counter()
    model.train(
        corpus_file=file,
        total_words=model.corpus_total_words,
        total_examples=model.corpus_count,
        epochs=config.epochs,
    )
    seconds = time.perf_counter() - start
    words = config.epochs * model.corpus_total_words
    return Trained(WordVectors.from_gensim(model.wv), seconds, words)


def best_workers(config: Config, file: Path, part: Path) -> int:
    """How many of gensim's threads are fastest here, on the first words of the text."""
    with open(file, encoding="utf-8") as text, open(part, "w", encoding="utf-8") as out:
        size = 0
        for line in text:
            out.write(line)
            size += len(line)
            if size > 5_000_000:
                break
    rates = {}
    for workers in (1, 2, 3, 4):
        model = _word2vec()(
            vector_size=config.dim, sg=1, min_count=config.min_count, workers=workers
        )
        model.build_vocab(corpus_file=str(part))
        start = time.perf_counter()
        model.train(
            corpus_file=str(part),
            total_words=model.corpus_total_words,
            total_examples=model.corpus_count,
            epochs=1,
        )
        rates[workers] = model.corpus_total_words / (time.perf_counter() - start)
    part.unlink()
    best = max(rates, key=rates.__getitem__)
    told = ", ".join(f"{n}: {rate:,.0f}" for n, rate in rates.items())
    terminal.say(f"gensim, words a second by workers: {told}; {best} it is")
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
