"""Table 3: static vectors, and the encoder's own, as what a BiLSTM-CRF reads."""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from etils import epath
from jaxtyping import Array, Bool, Float, Int

from experiments.common import tables as word_tables
from experiments.common.devices import mesh_for
from experiments.common.findings import Findings
from experiments.dynamic_to_static import data, tagged
from experiments.dynamic_to_static.config import OURS, PAPER, TRAINED, Config, Task
from experiments.dynamic_to_static.model import Tables
from jaxemb import nn as jnn
from jaxemb import optim, terminal, train
from jaxemb.analysis import figures
from jaxemb.data import batching
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import lookup, spans
from jaxemb.train import checkpoints, results

DEV, TEST = "dev/score", "test/score"
METRICS = {"chunking": "chunking, span F1 (%)", "pos": "tags, accuracy (%)"}


class WordTagger(nn.Module):
    """A BiLSTM-CRF over given vectors of words and a convolution of their letters."""

    classes: int
    letters: int  # different characters, padding and unknown too
    hidden: int
    characters: int  # width of a character's vector
    char_features: int
    dropout: float

    def setup(self):
        """Makes the parts."""
        self.char = jnn.CharCNN(
            self.letters, self.char_features, self.characters, name="char"
        )
        self.tagger = jnn.Tagger(
            self.classes,
            hidden=self.hidden,
            head="crf",
            mlp=None,
            dropout_rate=self.dropout,
            name="tagger",
        )

    def _words(self, vectors, letters, deterministic):
        flat = letters.reshape(-1, letters.shape[-1])
        spelled = self.char(flat, deterministic=deterministic)
        spelled = spelled.reshape(*letters.shape[:2], -1)
        return jnp.concatenate([vectors, spelled], axis=-1)

    def loss(
        self,
        vectors: Float[Array, "batch length dim"],
        letters: Int[Array, "batch length letters"],
        tags: Int[Array, "batch length"],
        mask: Bool[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Float[Array, " batch"]:
        """`-log p(tags)`, one value a sentence."""
        words = self._words(vectors, letters, deterministic)
        return self.tagger.loss(words, tags, mask, deterministic=deterministic)

    def decode(
        self,
        vectors: Float[Array, "batch length dim"],
        letters: Int[Array, "batch length letters"],
        mask: Bool[Array, "batch length"],
    ) -> Int[Array, "batch length"]:
        """The best tags."""
        return self.tagger.decode(self._words(vectors, letters, True), mask)


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """Vectors of the words of a corpus: by type, or by place."""

    rows: np.ndarray
    by_place: bool
    covered: float
    """The share of the test part's words that have a vector."""
    data: results.Data | None = None
    """Of vectors that are not made here."""

    @property
    def digest(self) -> str:
        """Tells these vectors from all others."""
        digest = hashlib.sha256(str(self.rows.shape).encode())
        digest.update(np.ascontiguousarray(self.rows).data)
        return digest.hexdigest()


class Tagged(NamedTuple):
    """What a study leaves beside its findings."""

    folders: list[epath.Path]
    """Of the taggers and of the features that they read."""
    data: list[results.Data]


class Taggers:
    """Trains and scores the rows of one task."""

    def __init__(self, config: Config, task: Task, workdir: Path):
        self._config, self._task = config, task
        self._workdir = workdir
        self.corpus = corpus = tagged.read(config, task)
        columns = corpus.columns.values()
        lengths = np.concatenate([_ragged(own["types"]).lengths for own in columns])
        settings = config.tagging
        self._buckets = batching.length_buckets(lengths, settings.buckets)
        self._module = module = WordTagger(
            len(corpus.tags),
            corpus.characters,
            settings.hidden,
            settings.characters,
            settings.char_features,
            settings.dropout,
        )
        self._steps = settings.epochs * self._plan(0).steps_per_epoch
        self._tx = optax.chain(
            optax.clip_by_global_norm(settings.clip_norm),
            optax.adam(optim.warmup_linear(settings.learning_rate, 0, self._steps)),
        )

        def loss(variables, batch, key):
            each = module.apply(
                variables,
                *(batch[name] for name in ("vectors", "letters", "tags", "mask")),
                deterministic=False,
                rngs={"dropout": key},
                method="loss",
            )
            return jnp.sum(each) / jnp.sum(batch["mask"]), {}

        def decode(variables, batch):
            inputs = (batch[name] for name in ("vectors", "letters", "mask"))
            return module.apply(variables, *inputs, method="decode")

        step = train.make_step(loss, self._tx)
        self._step = train.data_parallel(step, mesh_for(settings.batch_size))
        self._decode = train.everywhere(decode)

    def _plan(self, seed: int) -> batching.Shuffled:
        return batching.Shuffled(
            self.corpus.columns["train"],
            self._config.tagging.batch_size,
            seed=seed,
            buckets=self._buckets,
        )

    def _batch(self, batch: batching.Batch, source: Source) -> batching.Batch:
        rows = batch["places"] if source.by_place else batch["types"]
        return {
            "vectors": np.asarray(source.rows[rows], np.float32),
            "letters": self.corpus.letters[batch["types"]],
            "tags": batch["tags"],
            "mask": batch["types"] > 0,
        }

    def _held_out(self, part: str) -> Iterator[batching.Batch]:
        columns = self.corpus.columns[part]
        return batching.in_order(
            columns, self._config.tagging.batch_size, self._buckets
        )

    def _params(self, width: int, seed: int) -> dict:
        shape = jax.ShapeDtypeStruct
        variables = self._module.lazy_init(
            jax.random.key(seed),
            shape((1, 4, width), jnp.float32),
            shape((1, 4, tagged.LETTERS), jnp.int32),
            shape((1, 4), jnp.int32),
            shape((1, 4), jnp.bool_),
            deterministic=True,
            method="loss",
        )
        return variables["params"]

    def score(self, variables, source: Source, part: str) -> float:
        """Span F1 or accuracy of a part."""
        gold, found = [], []
        for batch in self._held_out(part):
            best = np.asarray(self._decode(variables, self._batch(batch, source)))
            for row, index, weight in zip(
                best, batch["index"], batch["weight"], strict=True
            ):
                if weight:
                    right = self.corpus.parts[part][index][1]
                    gold.append(right)
                    found.append([self.corpus.tags[tag] for tag in row[: len(right)]])
        if self.corpus.spans:
            return spans.span_scores(gold, found, resamples=0).f1
        pairs = [zip(a, b, strict=True) for a, b in zip(gold, found, strict=True)]
        return float(np.mean([a == b for pair in pairs for a, b in pair]))

    def fit(self, name: str, source: Source, seed: int) -> dict[str, float]:
        """Trains a row, or finds it done; the scores of its best epoch."""
        config = self._config
        plan = self._plan(seed)

        def evaluate(state: train.State) -> dict[str, float]:
            parts = (("dev", DEV), ("test", TEST))
            return {
                key: self.score(state.variables, source, part) for part, key in parts
            }

        folder = self.folder(name, seed)
        params = self._params(source.rows.shape[1], seed)
        finished = (folder / checkpoints.FOLDER / str(self._steps)).is_dir()
        with data.recorded_unless(finished, folder):
            train.fit(
                train.State.create({"params": params}, self._tx, jax.random.key(seed)),
                self._step,
                lambda number: self._batch(plan(number), source),
                self._steps,
                folder,
                evaluate=evaluate,
                evaluate_every=plan.steps_per_epoch,
                keep=1,
                config={
                    "row": name,
                    "seed": seed,
                    "data": self.corpus.data.sha256,
                    "vectors": source.digest,
                    "tagging": _deciding(config),
                },
                name=f"{self._task} {name} {seed}",
                tensorboard=config.run.tensorboard,
                progress=config.run.progress,
            )
        best = train.best_evaluation(folder, DEV)
        best["epoch"] = best["step"] // plan.steps_per_epoch
        terminal.say(
            f"{self._task} · {name} · seed {seed}: test {100 * best[TEST]:.2f} in "
            f"epoch {best['epoch']}"
        )
        return best

    def folder(self, name: str, seed: int) -> epath.Path:
        """Where a row is trained."""
        return epath.Path(self._workdir) / "tagging" / self._task / name / f"{seed}"


def study(
    config: Config, text: data.Text, tables: Tables, workdir: Path, findings: Findings
) -> "Tagged":
    """Every row of every task with every seed."""
    folders, used = [], {}
    for task in config.tagging.tasks:
        taggers = Taggers(config, task, workdir)
        if "encoder" in config.tagging.rows and config.text != "planted":
            folders.append(epath.Path(_features(config, text, task)))
        used[task] = taggers.corpus.data
        scores: dict[str, list[float]] = {}
        histories: dict[str, list[list[dict]]] = {}
        for row in config.tagging.rows:
            dev, epoch, covered, source = [], [], [], None
            for seed in range(config.seeds):
                if source is None or row in OURS or row in TRAINED:
                    source = _source(
                        config, text, tables, taggers.corpus, row, seed, task
                    )
                if source.data:
                    used[row] = source.data
                best = taggers.fit(row, source, seed)
                folders.append(taggers.folder(row, seed))
                lines = train.evaluations(folders[-1], DEV)
                histories.setdefault(row, []).append(lines)
                epoch.append(best["epoch"])
                scores.setdefault(row, []).append(100 * best[TEST])
                dev.append(100 * best[DEV])
                covered.append(100 * source.covered)
            findings.add(row, METRICS[task], scores[row])
            findings.add(row, f"{METRICS[task]}, dev", dev)
            findings.add(row, f"{task}: best epoch", epoch)
            findings.add(row, f"{task}: test words with a vector (%)", covered)
        findings.shown += [
            METRICS[task],
            f"{METRICS[task]}, dev",
            f"{task}: best epoch",
        ]
        _by_epoch(task, histories, workdir, findings)
        _claims(task, scores, findings)
    return Tagged(folders, list(used.values()))


def _source(
    config: Config,
    text: data.Text,
    tables: Tables,
    corpus: tagged.Corpus,
    row: str,
    seed: int,
    task: Task,
) -> Source:
    if row == "encoder":
        return Source(_encoded(config, text, corpus, task), True, 1.0)
    used = None
    if row in OURS or row in TRAINED:
        table = tables.table(row, seed)
    else:
        keep = lookup.forms_looked_up(set(corpus.words))
        table, used = word_tables.read(row, keep)
    if not isinstance(table, WordVectors):
        raise InputError(f"--tagging.rows {row}: expected a table of words")
    rows, covered = tagged.rows_of(corpus, table)
    return Source(rows, False, covered, used)


def _encoded(
    config: Config, text: data.Text, corpus: tagged.Corpus, task: Task
) -> np.ndarray:
    """The encoder's vectors of every word of every part, in their order."""
    sentences = [words for own in corpus.parts.values() for words, _ in own]
    if config.text == "planted":
        count = sum(map(len, sentences))  # the first of the text
        return tagged.scaled(text.vectors(np.arange(count)))
    folder = _features(config, text, task)
    rows = text.encoder.features(sentences, folder, config.run.progress).rows
    return tagged.scaled(rows)


def _features(config: Config, text: data.Text, task: Task) -> Path:
    name = f"features-{text.encoder.name}{text.encoder.layer:+d}-{task}"
    return Path(config.shared_folder) / name


def _by_epoch(
    task: Task,
    histories: Mapping[str, Sequence[Sequence[Mapping]]],
    workdir: Path,
    findings: Findings,
) -> None:
    """Whether the taggers have learnt what they can."""
    for row, seeds in histories.items():
        for number, lines in enumerate(zip(*seeds, strict=True), 1):
            values = [100 * line[DEV] for line in lines]
            findings.add(row, f"{METRICS[task]}, dev after epoch {number}", values)
    figures.save(
        figures.learning_curves(histories, DEV),
        workdir / "figures" / f"{task}.svg",
        f"The score on the development part of {task} after every epoch.",
    )


def _claims(
    task: Task, scores: Mapping[str, Sequence[float]], findings: Findings
) -> None:
    """The encoder's vectors are better than V′, which is as good as other tables.

    As good: the difference is below half of what the encoder gains in the paper.
    """
    margin = round((PAPER[task]["encoder"] - PAPER[task]["ours"]) / 2, 2)
    ours = [row for row in ("ours", "ours, itself") if row in scores]
    others = [row for row in ("SG", "glove-100d") if row in scores]
    wanted = [("encoder", row, 0.0) for row in ours if "encoder" in scores]
    for row in ours:
        for other in others:
            wanted += [(row, other, margin), (other, row, margin)]
    for better, worse, less in wanted:
        claim = f"is less than {less:g} points below" if less else "beats"
        findings.beats(
            f"{better} {claim} {worse}: {METRICS[task]}",
            scores[better],
            scores[worse],
            printed=(task, better, worse),
            margin=less,
        )


def _ragged(column) -> batching.Ragged:
    assert isinstance(column, batching.Ragged)
    return column


def _deciding(config: Config) -> dict:
    kept = results.as_json(config.tagging)
    for name in ("tasks", "rows"):
        del kept[name]
    return kept
