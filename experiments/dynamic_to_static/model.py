"""Every system's table of the same words, trained where it has to be and kept."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common.devices import mesh_for
from experiments.dynamic_to_static.config import OURS, Config
from experiments.dynamic_to_static.data import Text
from jaxemb import pretrained, static
from jaxemb.data.vectors import WordVectors
from jaxemb.spaces.components import Components
from jaxemb.train import results


class Tables:
    """Tables by system and seed."""

    def __init__(self, config: Config, text: Text):
        self._config = config
        self._text = text
        self._folders: dict[Path, None] = {}

    def table(self, system: str, seed: int) -> WordVectors:
        """A system's vectors of all words; the same for every seed if untrained."""
        if system in OURS:
            return self.contextual(system, seed).vectors()
        if system in ("SG", "CBOW", "fastText"):
            return self._baseline(system, seed)
        return self._untrained(system)

    def contextual(
        self, system: str, seed: int, **settings: Any
    ) -> static.ContextTables:
        """What is trained against the encoder.

        Args:
          system: one of `OURS`.
          seed: of the run.
          **settings: of `ContextToStatic`, beside those of the system and the config.
        """
        config = self._config
        chosen = {"window": config.window, **OURS[system], **settings}
        folder = self.folder(system, seed, **settings)
        with results.recorded(folder):
            return static.train_contextual(
                self._text.corpus,
                self._text.vectors,
                static.ContextToStatic(negatives=config.negatives, **chosen),
                self._training(config.groups, seed, sample=0.0, dynamic=False),
                folder,
                clip_norm=config.clip_norm,
                encoder=self._text.identity,
                mesh=mesh_for(config.groups),
                **self._shown(f"{folder.parent.name}, seed {seed}"),
            )

    def folder(self, system: str, seed: int, **settings: Any) -> Path:
        """Where a trained system is kept; it is then a part of the results."""
        named = "".join(f", {name} {value}" for name, value in settings.items())
        folder = self._text.folder / f"{system}{named}" / f"seed-{seed}"
        self._folders[folder] = None
        return folder

    def origins(self) -> list[Mapping[str, Any]]:
        """Of every table that was asked for."""
        return [results.origin(folder) for folder in self._folders]

    def _baseline(self, system: str, seed: int) -> WordVectors:
        config = self._config
        window = {"window": config.window, "negatives": config.negatives}
        objective = {
            "SG": static.SkipGram(**window),
            "CBOW": static.CBOW(**window),
            "fastText": static.SubwordSkipGram(buckets=config.buckets, **window),
        }[system]
        folder = self.folder(system, seed)
        with results.recorded(folder):
            tables = static.train(
                self._text.corpus,
                objective,
                self._training(config.baseline_groups, seed, sample=config.sample),
                folder,
                **self._shown(f"{system}, seed {seed}"),
            )
        return WordVectors(tables.words, tables.vectors().matrix, unique=True)

    @functools.cache  # noqa: B019 (the tables live as long as their run)
    def _untrained(self, system: str) -> WordVectors:
        words = self._text.corpus.words
        if system == "input table":
            return self._text.input_table(words)
        if system == "average":
            means = pretrained.type_averages(
                self._text.vectors, np.asarray(self._text.corpus.tokens), len(words)
            )
            return WordVectors(words, means, unique=True)
        average = self._untrained("average").matrix
        width = min(self._config.dim, average.shape[1])
        projected = Components.of(average).project(average, slice(width))
        return WordVectors(words, projected.astype(np.float32), unique=True)

    def _training(
        self, groups: int | None, seed: int, **settings: Any
    ) -> static.Training:
        config = self._config
        return static.Training(
            dim=config.dim,
            epochs=config.epochs,
            learning_rate=config.learning_rate,
            layout=static.Layout(groups=groups),
            seed=seed,
            **settings,
        )

    def _shown(self, name: str) -> dict[str, Any]:
        run = self._config.run
        return {
            "mode": run.parallel,
            "progress": run.progress,
            "tensorboard": run.tensorboard,
            "name": name,
        }
