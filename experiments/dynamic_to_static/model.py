"""Every system's table of the same words, trained where it has to be and kept."""

import contextlib
import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import tables
from experiments.common.devices import mesh_for
from experiments.dynamic_to_static.config import LOADED, OURS, TRAINED, Config
from experiments.dynamic_to_static.data import Text, recorded_unless
from jaxemb import pretrained, static
from jaxemb.data.vectors import WordVectors
from jaxemb.spaces.components import Components
from jaxemb.train import results

_FINISHED = "finished"  # a file in the folder of a table that is whole


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
        if system in TRAINED:
            return self._baseline(system, seed)
        return self._untrained(system)

    def contextual(
        self, system: str, seed: int, window: int | None = None
    ) -> static.ContextTables:
        """What is trained against the encoder.

        Args:
          system: one of `OURS`.
          seed: of the run.
          window: the config's unless given.
        """
        folder = self.folder(system, seed, window)
        with self._recorded(folder):
            return static.train_contextual(
                self._text.corpus,
                self._text.vectors,
                self._objective(system, window),
                self._training(system, seed),
                folder,
                clip_norm=self._config.clip_norm,
                encoder=self._text.identity,
                mesh=mesh_for(self._config.groups),
                **self._shown(system, seed, window),
            )

    def folder(self, system: str, seed: int, window: int | None = None) -> Path:
        """Where a trained system is kept; it is then a part of the results.

        Each choice of settings has a folder of its own, so that sweeps share one text.
        """
        decides = {
            **dataclasses.asdict(self._objective(system, window)),
            **dataclasses.asdict(self._training(system, 0)),
        }
        if system in OURS:
            decides |= {"clip_norm": self._config.clip_norm, **self._text.identity}
        told = json.dumps(decides, sort_keys=True, default=str)
        settings = hashlib.sha256(told.encode()).hexdigest()[:8]
        folder = self._text.folder / system / settings / f"seed-{seed}"
        self._folders[folder] = None
        return folder

    def origins(self) -> list[Mapping[str, Any]]:
        """Of every table that was asked for."""
        return [results.origin(folder) for folder in self._folders]

    @contextlib.contextmanager
    def _recorded(self, folder: Path) -> Iterator[None]:
        """Records who trains a table, and not who finds it trained."""
        finished = folder / _FINISHED
        with recorded_unless(finished.exists(), folder):
            yield
        finished.touch()

    def _objective(self, system: str, window: int | None = None) -> Any:
        config = self._config
        common = {"window": window or config.window, "negatives": config.negatives}
        if system in OURS:
            return static.ContextToStatic(**common, **OURS[system])
        return {
            "SG": static.SkipGram(**common),
            "CBOW": static.CBOW(**common),
            "fastText": static.SubwordSkipGram(buckets=config.buckets, **common),
        }[system]

    def _baseline(self, system: str, seed: int) -> WordVectors:
        folder = self.folder(system, seed)
        with self._recorded(folder):
            trained = static.train(
                self._text.corpus,
                self._objective(system),
                self._training(system, seed),
                folder,
                **self._shown(system, seed),
            )
        return WordVectors(trained.words, trained.vectors().matrix, unique=True)

    @functools.cache  # noqa: B019 (the tables live as long as their run)
    def _untrained(self, system: str) -> WordVectors:
        words = self._text.corpus.words
        if system in LOADED:
            table, _ = tables.read(system, set(words))
            assert isinstance(table, WordVectors)
            return table.subset(words)
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

    def _training(self, system: str, seed: int) -> static.Training:
        config = self._config
        whole = system in OURS  # windows and words as they are
        return static.Training(
            dim=config.dim,
            epochs=config.epochs,
            learning_rate=config.learning_rate,
            sample=0.0 if whole else config.sample,
            dynamic=not whole,
            layout=static.Layout(
                groups=config.groups if whole else config.baseline_groups
            ),
            seed=seed,
        )

    def _shown(
        self, system: str, seed: int, window: int | None = None
    ) -> dict[str, Any]:
        run = self._config.run
        wide = f", window {window}" if window else ""
        return {
            "mode": run.parallel,
            "progress": run.progress,
            "tensorboard": run.tensorboard,
            "name": f"{system}{wide}, seed {seed}",
        }
