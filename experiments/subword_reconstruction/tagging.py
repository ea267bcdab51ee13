"""Part-of-speech tagging with words that are looked up, spelled, or both (Table 3)."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np
from etils import epath

from experiments.common import treebank as shared
from experiments.common.devices import mesh_for
from experiments.subword_reconstruction import data, model
from experiments.subword_reconstruction.config import Config, Tagging
from experiments.subword_reconstruction.reconstruct import School, Taught
from experiments.subword_reconstruction.treebank import Treebank
from jaxemb import nn as jnn
from jaxemb import optim, terminal, train
from jaxemb.data import batching, vocab
from jaxemb.eval import classification
from jaxemb.train import results

DEV, TEST = "dev/accuracy", "test/accuracy"
_SHORT = 8  # characters of the words that are spelled apart from the longer ones
_MULTIPLE = 64  # types of a batch are filled up to a multiple of it
# The longest spelling; of longer words the first and last characters count.
_LONGEST = 24


@dataclasses.dataclass(frozen=True)
class Cell:
    """What the grid chooses."""

    learning_rate: float
    dropout: float

    def __str__(self) -> str:
        return f"rate {self.learning_rate:g}, dropout {self.dropout:g}"


@dataclasses.dataclass(frozen=True)
class System:
    """One row of Table 3."""

    name: str
    full: bool = False
    pretrained: bool = False
    """Whether looked-up words start as the teacher's."""
    student: str | None = None
    """The distance by which characters have imitated the teacher before."""
    permuted: bool = False


FULL = System("FULL", full=True)


class Spelled:
    """Batches of sentences in which each type is spelled once."""

    def __init__(self, treebank: Treebank, ids: np.ndarray, unknown: float):
        """Prepares the spelling of every type.

        Args:
          treebank: what is tagged.
          ids: the row of the word table that each type has.
          unknown: how often a singleton of the training part counts as unknown.
        """
        self._ids, self._unknown = ids, unknown
        self._singletons = treebank.singletons
        self._letters = shared.shortened(treebank.spelled, _LONGEST)
        self._is_long = self._letters.lengths > _SHORT
        self.most: dict[int, list[int]] = {}

    def note(self, types: np.ndarray) -> None:
        """Makes room for the types of such a batch, by its padded length."""
        most = self.most.setdefault(types.shape[1], [_MULTIPLE, _MULTIPLE])
        for i, group in enumerate(self._groups(types)):
            most[i] = max(most[i], -(-len(group) // _MULTIPLE) * _MULTIPLE)

    def batch(
        self, batch: batching.Batch, rng: np.random.Generator | None = None
    ) -> batching.Batch:
        """Adds spelling and word ids; with `rng`, singletons may be unknown."""
        types = batch["types"]
        groups = self._groups(types)
        place = np.zeros(len(self._ids), np.int32)
        spelled, start = [], 0
        room = self.most[types.shape[1]]
        for group, size, length in zip(groups, room, (_SHORT, _LONGEST), strict=True):
            filled = np.concatenate([group, np.zeros(size - len(group), group.dtype)])
            place[group] = start + np.arange(len(group))
            spelled.append(self._letters.padded(filled, length))
            start += size
        ids = self._ids[types]
        if rng is not None:
            hidden = self._singletons[types] & (rng.random(types.shape) < self._unknown)
            ids = np.where(hidden, vocab.UNK_ID, ids)
        rest = {name: x for name, x in batch.items() if name != "types"}
        spelling = {"short": spelled[0], "long": spelled[1], "place": place[types]}
        return {**rest, **spelling, "ids": ids.astype(np.int32)}

    def _groups(self, types: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        every = np.unique(types)
        return every[~self._is_long[every]], every[self._is_long[every]]


class _Program(NamedTuple):
    """What systems of one shape and dropout share."""

    module: model.WordTagger
    step: train.parallel.DataParallel
    hits: Callable[..., classification.Ratio]


class Taggers:
    """Trains and scores the systems; those of one shape share one program."""

    def __init__(self, config: Config, world: data.World, workdir: epath.Path):
        """Prepares batches."""
        assert world.treebank is not None
        self._config = config
        self._teacher = world.teacher
        self._workdir = workdir
        self._school = School(config, world.teacher, "relu", world.tests)
        self.treebank = treebank = world.treebank
        lengths = np.concatenate([c["types"].lengths for c in treebank.splits.values()])
        self._buckets = batching.length_buckets(lengths, config.tagging.buckets)
        types = np.arange(len(treebank.words))
        seen = types < treebank.known
        self._spelled = {
            pretrained: Spelled(
                treebank,
                np.where(
                    seen | (treebank.has_vector & pretrained), types, vocab.UNK_ID
                ),
                config.tagging.unknown,
            )
            for pretrained in (False, True)
        }
        # Room for the types of every batch of every seed, so that shapes are few.
        for seed in range(config.seeds):
            plan = self._plan(seed)
            for step in range(self._num_steps):
                self._note(plan(step))
        for split in ("dev", "test"):
            for batch in self._held_out(split):
                self._note(batch)

    def _note(self, batch: batching.Batch) -> None:
        for spelled in self._spelled.values():
            spelled.note(batch["types"])

    def _plan(self, seed: int) -> batching.Shuffled:
        return batching.Shuffled(
            self.treebank.splits["train"],
            self._config.tagging.batch_size,
            seed=seed,
            buckets=self._buckets,
        )

    def _held_out(self, split: str) -> Iterator[batching.Batch]:
        columns = self.treebank.splits[split]
        return batching.in_order(
            columns, self._config.tagging.batch_size, self._buckets
        )

    @property
    def _num_steps(self) -> int:
        """Of a tagger's training, whatever its seed."""
        return self._config.tagging.epochs * self._plan(0).steps_per_epoch

    @functools.cache  # noqa: B019 (the taggers live as long as their run)
    def _program(self, full: bool, dropout: float) -> _Program:
        tagging, treebank = self._config.tagging, self.treebank
        module = model.WordTagger(
            len(treebank.words) if full else None,
            len(self._teacher.characters),
            self._teacher.vectors.dim,
            self._config.hidden,
            dropout,
            jnn.Tagger(
                len(treebank.tags),
                hidden=tagging.hidden,
                mlp=tagging.mlp,
                dropout_rate=dropout,
            ),
        )
        tx = optim.falling_adam(0.0, self._num_steps)
        step = train.make_step(model.tagging_loss(module), tx)
        mesh, mode = mesh_for(tagging.batch_size), self._config.run.parallel
        return _Program(
            module,
            train.data_parallel(step, mesh, mode=mode),
            train.everywhere(model.tagging_hits(module)),
        )

    def params(self, system: System, seed: int, dropout: float = 0.0) -> dict:
        """The parameters that a system starts from."""
        module = self._program(system.full, dropout).module
        params = model.initial(module, seed, inputs=4)
        if system.pretrained:
            known = self.treebank.has_vector[:, None]
            table = np.where(known, self.treebank.vectors, params["words"]["table"])
            params["words"]["table"] = table
        if system.student:
            one = Taught("relu", system.student, seed, system.permuted)
            params["char"] = self._school.teach(one, one.folder(self._workdir))
        return params

    def folder(self, system: System, cell: Cell, seed: int) -> epath.Path:
        """Where a system is trained."""
        named = f"{cell.learning_rate:g}-{cell.dropout:g}"
        return self._workdir / "tagging" / system.name / named / f"seed-{seed}"

    def fit(self, system: System, cell: Cell, seed: int) -> dict:
        """Trains a system, or finds it done; returns the scores of its best epoch."""
        config = self._config
        program = self._program(system.full, cell.dropout)
        spelled = self._spelled[system.pretrained]
        plan = self._plan(seed)
        tx = optim.falling_adam(cell.learning_rate, self._num_steps)
        folder = self.folder(system, cell, seed)

        def batches(number: int) -> batching.Batch:
            rng = np.random.default_rng([seed, number])
            return spelled.batch(plan(number), rng)

        def evaluate(state: train.State) -> dict[str, float]:
            scores = {}
            for split, name in (("dev", DEV), ("test", TEST)):
                counts = [
                    program.hits(state.variables, spelled.batch(batch))
                    for batch in self._held_out(split)
                ]
                scores[name] = float(sum(counts[1:], start=counts[0]).value)
            return scores

        params = self.params(system, seed, cell.dropout)
        with results.recorded(folder):
            train.fit(
                train.State.create({"params": params}, tx, jax.random.key(seed)),
                program.step,
                batches,
                self._num_steps,
                folder,
                evaluate=evaluate,
                evaluate_every=plan.steps_per_epoch,
                keep=1,
                config={
                    "system": dataclasses.asdict(system),
                    "cell": dataclasses.asdict(cell),
                    "seed": seed,
                    "data": [
                        d.sha256 for d in (self.treebank.data, self._teacher.data)
                    ],
                    "tagging": _deciding(config.tagging),
                    "schedule": "the rate falls in a line to 0",
                    "characters": len(self._teacher.characters),
                    "hidden": config.hidden,
                    "epochs": config.epochs[-1] if system.student else 0,
                    "words": len(self._teacher.vectors) if system.student else 0,
                },
                name=f"{system.name} {seed}",
                tensorboard=config.run.tensorboard,
                progress=config.run.progress,
            )
        best = train.best_evaluation(folder, DEV)
        terminal.say(
            f"{system.name} · {cell} · seed {seed}: test accuracy "
            f"{100 * best[TEST]:.2f} at step {best['step']}"
        )
        return best

    def stored(self, system: System) -> dict[str, int]:
        """Entries of lookup tables, and parameters, as the system would be shipped.

        Characters and words as far as it can have seen them: those of the training
        part, and of the teacher where it starts from that.
        """
        treebank, teacher = self.treebank, self._teacher
        params = self.params(dataclasses.replace(system, student=None), 0)
        numbers = sum(array.size for array in jax.tree.leaves(params))
        words, characters = 0, treebank.own_characters
        if system.student:
            characters = len(teacher.characters) - 2
        numbers -= (len(teacher.characters) - 2 - characters) * self._config.hidden
        if system.full:
            words = treebank.known - 2
            if system.pretrained:
                words = treebank.words_with_teacher
            numbers += (words + 2 - len(treebank.words)) * teacher.vectors.dim
        return {"lookup entries": words + characters, "parameters": numbers}


def _deciding(settings: Tagging) -> dict:
    """The settings that decide what one training becomes."""
    kept = results.as_json(settings)
    for name in ("rows", "learning_rates", "dropouts", "margin"):
        del kept[name]
    return kept
