"""Part-of-speech tagging with words that are looked up, spelled, or both (Table 3)."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from experiments.common.devices import mesh_for
from experiments.subword_reconstruction import data, model, reconstruct
from experiments.subword_reconstruction.config import Config
from experiments.subword_reconstruction.reconstruct import Taught
from jaxemb import nn as jnn
from jaxemb import terminal, train
from jaxemb.analysis import reconstruction
from jaxemb.data import batching, vocab
from jaxemb.eval import classification
from jaxemb.train import results

DEV, TEST = "dev/accuracy", "test/accuracy"
_EVAL_BATCH = 64
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


def systems(config: Config) -> list[System]:
    """The rows of the table."""
    rows = {
        "FULL": System("FULL", full=True),
        "FULL+EMB": System("FULL+EMB", full=True, pretrained=True),
        "CHAR": System("CHAR"),
    }
    found = [rows[name] for name in config.tagging.rows]
    found += [System(f"CHAR({d})", student=d) for d in config.distances]
    return found + [
        System(f"CHAR({d}, permuted)", student=d, permuted=True)
        for d in config.permuted
    ]


class Spelled:
    """Batches of sentences in which each type is spelled once."""

    def __init__(self, treebank: data.Treebank, ids: np.ndarray, unknown: float):
        """Prepares the spelling of every type.

        Args:
          treebank: what is tagged.
          ids: the row of the word table that each type has.
          unknown: how often a singleton of the training part counts as unknown.
        """
        self._ids, self._unknown = ids, unknown
        self._singletons = treebank.singletons
        self._letters = _shortened(treebank.spelled)
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


def _shortened(spelled: batching.Ragged) -> batching.Ragged:
    """The spelling, without the middle of words that are too long."""
    ends = _LONGEST // 2
    rows = [
        spelled.values[a:b]
        if b - a <= _LONGEST
        else np.concatenate(
            [spelled.values[a : a + ends], spelled.values[b - ends : b]]
        )
        for a, b in zip(spelled.offsets, spelled.offsets[1:], strict=False)
    ]
    return batching.Ragged.of(rows)


class _Program(NamedTuple):
    """What systems of one shape and dropout share."""

    init: Callable[[jax.Array], dict]
    step: train.parallel.DataParallel
    hits: Callable[..., classification.Ratio]


class Taggers:
    """Trains and scores the systems; those of one shape share one program."""

    def __init__(
        self,
        config: Config,
        treebank: data.Treebank,
        teacher: data.Teacher,
        whole_teacher: Mapping[str, np.ndarray],
        school: reconstruct.School,
        workdir: epath.Path,
    ):
        """Prepares batches.

        Args:
          config: of the run.
          treebank: what is tagged.
          teacher: whose words students imitate.
          whole_teacher: vectors of the treebank's words that the teacher has.
          school: of the students.
          workdir: of the run.
        """
        self._config = config
        self._treebank = treebank
        self._teacher = teacher
        self._vectors = whole_teacher
        self._school = school
        self._workdir = workdir
        lengths = np.concatenate([c["types"].lengths for c in treebank.splits.values()])
        self._buckets = batching.length_buckets(lengths, config.tagging.buckets)
        types = np.arange(len(treebank.words))
        seen = types < treebank.known
        has = np.array([word in whole_teacher for word in treebank.words])
        self._spelled = {
            pretrained: Spelled(
                treebank,
                np.where(seen | (has & pretrained), types, vocab.UNK_ID),
                config.tagging.unknown,
            )
            for pretrained in (False, True)
        }
        # Room for the types of every batch of every seed, so that shapes are few.
        for seed in range(config.seeds):
            plan = self._plan(seed)
            for step in range(plan.steps_per_epoch * config.tagging.epochs):
                self._note(plan(step))
        for split in ("dev", "test"):
            for batch in self._held_out(split):
                self._note(batch)

    def _note(self, batch: batching.Batch) -> None:
        for spelled in self._spelled.values():
            spelled.note(batch["types"])

    def _plan(self, seed: int) -> batching.Shuffled:
        return batching.Shuffled(
            self._treebank.splits["train"],
            self._config.tagging.batch_size,
            seed=seed,
            buckets=self._buckets,
        )

    def _held_out(self, split: str) -> Iterator[batching.Batch]:
        columns = self._treebank.splits[split]
        return batching.in_order(columns, _EVAL_BATCH, self._buckets)

    @functools.cache  # noqa: B019 (the taggers live as long as their run)
    def _program(self, full: bool, dropout: float) -> _Program:
        tagging, treebank = self._config.tagging, self._treebank
        module = model.WordTagger(
            len(treebank.words) if full else None,
            len(treebank.characters),
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
        step = train.make_step(model.tagging_loss(module), model.optimizer(0.0))
        example = jnp.ones([1, 4], jnp.int32)
        return _Program(
            jax.jit(lambda key: module.init(key, *4 * [example], deterministic=True)),
            train.data_parallel(step, mesh_for(tagging.batch_size)),
            train.everywhere(model.tagging_hits(module)),
        )

    def params(self, system: System, seed: int, dropout: float = 0.0) -> dict:
        """The parameters that a system starts from."""
        variables = self._program(system.full, dropout).init(jax.random.key(seed))
        params = jax.device_get(variables["params"])
        if system.pretrained:
            table = np.array(params["words"]["table"])
            for row, word in enumerate(self._treebank.words):
                if word in self._vectors:
                    table[row] = self._vectors[word]
            params["words"]["table"] = table
        if system.student:
            one = Taught("relu", system.student, seed, system.permuted)
            folder = reconstruct.folder_of(self._workdir / "tagging", one)
            params["char"] = self._school.teach(one, folder)
        return params

    def fit(self, system: System, cell: Cell, seed: int, folder: epath.Path) -> dict:
        """Trains a system, or finds it done; returns the scores of its best epoch."""
        config = self._config
        program = self._program(system.full, cell.dropout)
        spelled = self._spelled[system.pretrained]
        plan = self._plan(seed)
        tx = model.optimizer(cell.learning_rate)

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
                config.tagging.epochs * plan.steps_per_epoch,
                folder,
                evaluate=evaluate,
                evaluate_every=plan.steps_per_epoch,
                save_every=config.tagging.epochs * plan.steps_per_epoch,
                config={
                    "system": dataclasses.asdict(system),
                    "cell": dataclasses.asdict(cell),
                    "seed": seed,
                    "data": [
                        d.sha256 for d in (*self._treebank.data, self._teacher.data)
                    ],
                    "tagging": results.as_json(config.tagging),
                    "hidden": config.hidden,
                    "epochs": list(config.epochs) if system.student else [],
                    "words": config.words if system.student else None,
                },
                name=f"{system.name} {seed}",
                tensorboard=config.run.tensorboard,
                progress=config.run.progress,
            )
        best = best_epoch(folder)
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
        treebank = self._treebank
        params = self.params(dataclasses.replace(system, student=None), 0)
        _, all_numbers = reconstruction.stored(params, ("table", "embedding"))
        entries = treebank.own_characters
        if system.student:
            entries = len(treebank.characters) - 2
        # Two rows of characters beside them: padding and unknown.
        spare = len(treebank.characters) - 2 - entries
        numbers = all_numbers - spare * self._config.hidden
        if system.full:
            words = treebank.known - 2
            if system.pretrained:
                own = set(treebank.words[2 : treebank.known])
                words += self._teacher.size - sum(w in self._vectors for w in own)
            spare = len(treebank.words) - 2 - words  # negative where more are shipped
            numbers -= spare * self._teacher.vectors.dim
            entries += words
        return {"lookup entries": entries, "parameters": numbers}


def best_epoch(folder: epath.Path) -> dict[str, float]:
    """The evaluation with the first highest dev accuracy."""
    lines = [line for line in train.read_metrics(folder) if DEV in line]
    return max(lines, key=lambda line: line[DEV])


def grid(config: Config, taggers: Taggers, workdir: epath.Path) -> dict[Cell, float]:
    """Dev accuracy of FULL, with the first seed, for every cell."""
    found = {}
    for dropout in config.tagging.dropouts:
        for rate in config.tagging.learning_rates:
            cell = Cell(rate, dropout)
            folder = workdir / "tagging" / "grid" / f"{rate:g}-{dropout:g}"
            full = System("FULL", full=True)
            found[cell] = taggers.fit(full, cell, 0, folder)[DEV]
    return found


def folders(
    config: Config, workdir: epath.Path, rows: Sequence[System]
) -> dict[tuple[str, int], epath.Path]:
    """Where each system of each seed is trained."""
    return {
        (system.name, seed): workdir / "tagging" / system.name / f"seed-{seed}"
        for system in rows
        for seed in range(config.seeds)
    }
