"""Two tables of one text, GloVe and skip-gram, trained here seed by seed and kept."""

import dataclasses
import json
from pathlib import Path

from experiments.common import texts
from experiments.common.cli import Run
from experiments.common.datasets import planted
from experiments.common.options import Training
from jaxemb import static
from jaxemb.data import cooccurrence, corpus, synthetic
from jaxemb.data.vectors import WordVectors
from jaxemb.train import results

NAMES = "GloVe", "skip-gram"


class Trainer:
    """Tables of a text, which is read and counted once."""

    def __init__(self, settings: Training, run: Run, folder: Path):
        self._settings, self._run = settings, run
        self._folder = folder
        progress = run.progress
        text, counts, told = (folder / name for name in ("text", "counts", "text.json"))
        if not told.exists():
            sentences, data = self._sentences()
            if not text.exists():
                corpus.build(
                    sentences, text, min_count=settings.min_count, progress=progress
                )
            told.write_text(json.dumps([dataclasses.asdict(one) for one in data]))
        self.text = corpus.open_corpus(text)
        if not counts.exists():
            cooccurrence.count(
                self.text, counts, window=settings.window, progress=progress
            )
        self._counts = cooccurrence.open_cooccurrences(counts)
        self.data = tuple(results.Data(**one) for one in json.loads(told.read_text()))

    def _sentences(self):
        if self._settings.text == "mixed":
            return texts.mixed()
        world = synthetic.planted_topics()
        return world.sentences, [planted("planted topics", len(world.sentences))]

    def tables(self, seed: int) -> list[WordVectors]:
        """A table for each of `NAMES`, trained unless its folder holds it."""
        settings, folder = self._settings, self._folder / f"seed-{seed}"
        # Entries of an update: fewer where there are few in all.
        block = 1024 if len(self._counts) > 100_000 else 64
        chunk = min(1 << 16, -(-len(self._counts) // block) * block)
        glove = static.GloVe(
            dim=settings.dim,
            epochs=settings.glove_epochs,
            learning_rate=settings.glove_learning_rate,
            block=block,
            chunk=chunk,
            seed=seed,
        )
        training = static.Training(
            dim=settings.dim, epochs=settings.skipgram_epochs, seed=seed
        )
        shown = [
            {
                "mode": self._run.parallel,
                "progress": self._run.progress,
                "name": f"{name}, seed {seed}",
            }
            for name in NAMES
        ]
        first = static.train_glove(
            self.text, self._counts, glove, folder / "glove", **shown[0]
        )
        objective = static.SkipGram(window=max(1, settings.window // 2))
        second = static.train(
            self.text, objective, training, folder / "skip-gram", **shown[1]
        )
        return [first.vectors("sum"), second.vectors("input")]
