"""Table 4 and Fig. 3: taggers and classifiers, with and without reconstruction."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from experiments.common.rows import summary_row
from experiments.multitask_meta_embedding import data
from experiments.multitask_meta_embedding.config import Config
from experiments.multitask_meta_embedding.outcome import Outcome
from jaxemb import losses, optim, terminal, train
from jaxemb import nn as jnn
from jaxemb.analysis import figures
from jaxemb.analysis import meta as analysis
from jaxemb.data import batching, files
from jaxemb.eval import intervals
from jaxemb.train import checkpoints, results

META, CONTROL, CONC = "Meta", "Meta, λ = 0", "CONC"
_TITLES = {"pos": "UDPoS", "recipes": "recipes", "imdb": "IMDB"}
_ENCODERS = {"cnn": "CNN", "lstm": "LSTM", "gru": "GRU", "highway": "Highway"}
_BUCKETS = {"pos": 2, "recipes": 2, "imdb": 1}
_SPARE = 1.2  # rows of a batch's table over the most distinct words that were seen
_EARLY = 10  # Fig. 3 is said to differ before this epoch


class Plain(nn.Module):
    """A tagger or classifier of the sources as they are."""

    main: nn.Module

    def __call__(self, sources, known, mask, ids, *, deterministic: bool):
        """As `AuxReconstruction`, which has something to reconstruct."""
        del known
        logits = self.main(sources[ids], mask, deterministic=deterministic)
        return logits, jnp.zeros(len(mask))


class Batches:
    """Batches whose words are rows of a small table of their own."""

    def __init__(self, texts: data.Texts, config: Config):
        self._texts, self._size = texts, config.extrinsic.batch_size
        lengths = [part["tokens"].lengths for part in texts.parts.values()]
        count = _BUCKETS[texts.name]
        self.buckets = batching.length_buckets(np.concatenate(lengths), count)
        self.plan = batching.Shuffled(
            texts.parts["train"], self._size, seed=0, buckets=self.buckets
        )
        self._rows = {length: 0 for length in self.buckets}
        for step in range(self.plan.steps_per_epoch):
            self._see(self.plan(step))
        for part in ("dev", "test"):
            for batch in self._in_order(part):
                self._see(batch)
        self._rows = {
            length: -(-int(_SPARE * most) // 64) * 64
            for length, most in self._rows.items()
        }

    def _see(self, batch) -> None:
        length = batch["tokens"].shape[1]
        distinct = len(np.unique(batch["tokens"]))
        self._rows[length] = max(self._rows[length], distinct)

    def _in_order(self, part: str) -> Iterator[batching.Batch]:
        columns = self._texts.parts[part]
        return batching.in_order(columns, self._size, self.buckets)

    def train(self, table: np.ndarray, known: np.ndarray):
        """The batch of a step."""
        return lambda step: self._with_rows(self.plan(step), table, known)

    def held_out(self, part: str, table: np.ndarray, known: np.ndarray):
        """Every example of a part once."""
        for batch in self._in_order(part):
            yield self._with_rows(batch, table, known)

    def _with_rows(self, batch, table, known) -> batching.Batch:
        tokens = batch.pop("tokens")
        rows, ids = np.unique(tokens, return_inverse=True)
        size = self._rows[tokens.shape[1]]
        while size < len(rows):  # another shape to compile, which hardly happens
            size *= 2
        rows = np.pad(rows, (0, size - len(rows)))
        return {
            **batch,
            "sources": table[rows],
            "known": known[rows],
            "ids": ids.reshape(tokens.shape).astype(np.int32),
            "mask": tokens > 0,
        }


def run(config: Config, task: str, workdir: Path) -> Outcome:
    """Trains every encoder on every system, all seeds at once, or finds it done."""
    texts = data.load_texts(config, task)
    batches = Batches(texts, config)
    trained: dict[str, dict[str, Trained]] = {}
    parts, rates = set(), {}
    for encoder in config.extrinsic.encoders:
        trained[encoder] = {}
        for system in systems(texts):
            title = f"{_ENCODERS[encoder]}, {system}"
            folder = Path(workdir) / task / encoder / _folder(system)
            trainer = Trainer(config, texts, batches, encoder, system)
            # The two that differ in λ alone have one rate.
            of = f"{_ENCODERS[encoder]}, {META}" if system == CONTROL else title
            if of not in rates:
                rates[of] = trainer.choose_rate(folder / "rates")
                parts.add(folder / "rates")
            rates[title] = rates[of]
            runs = [(seed, rates[of]) for seed in range(config.extrinsic.seeds)]
            found = trained[encoder][system] = trainer.fit(folder, runs)
            parts.add(folder)
            if config.run.progress:
                terminal.say(f"{task}, {title}: {found.test.mean():.2f}")
    outcome = _Analysis(config, task, texts, trained)
    outcome.write_figures(workdir / "figures")
    told = {
        f"{_TITLES[task]}, data": dict(texts.told),
        f"{_TITLES[task]}, learning rate": rates,
        f"{_TITLES[task]}, dev (%) by epoch, the mean over seeds": {
            f"{_ENCODERS[encoder]}, {system}": np.round(
                one.dev_by_epoch.mean(axis=0), 2
            ).tolist()
            for encoder, of in trained.items()
            for system, one in of.items()
        },
    }
    return Outcome(outcome.rows(), outcome.claims(), list(texts.data), told, parts)


def systems(texts: data.Texts) -> tuple[str, ...]:
    """Every source alone, all side by side, and the two autoencoders."""
    return (*texts.ensemble.names, CONC, META, CONTROL)


@dataclasses.dataclass(frozen=True)
class Trained:
    """What the seeds of one encoder on one system came to; accuracies in per cent."""

    dev_by_epoch: np.ndarray  # seeds epochs
    dev: np.ndarray  # of each seed's best epoch on dev
    test: np.ndarray  # at that epoch
    right: np.ndarray  # seeds examples: the labels of test that are right, likewise
    labels: np.ndarray  # of each example

    @classmethod
    def read(cls, folder: Path, seeds: int) -> "Trained":
        """From what a finished run left."""
        lines = train.evaluations(epath.Path(folder), "dev/accuracy")
        dev = np.array(
            [[one[f"dev/accuracy/{s}"] for one in lines] for s in range(seeds)]
        )
        best = dev.argmax(axis=1)
        kept = []
        for seed, epoch in enumerate(best):
            with np.load(_hits_path(folder, lines[epoch]["step"])) as found:
                kept.append((found["right"][seed], found["labels"]))
        right = np.stack([one for one, _ in kept]).astype(np.int64)
        labels = kept[0][1].astype(np.int64)
        test = 100 * right.sum(axis=1) / labels.sum()
        return cls(dev, dev.max(axis=1), test, right, labels)


def _hits_path(folder: Path, step: int) -> Path:
    return folder / "test" / f"{int(step)}.npz"


class Trainer:
    """One encoder on one system."""

    def __init__(self, config, texts: data.Texts, batches: Batches, encoder, system):
        self._config, self._texts, self._batches = config, texts, batches
        self._settings = config.extrinsic
        self._name = f"{texts.name}/{encoder}/{system}"
        ensemble = texts.ensemble
        if system in ensemble.names:
            place = ensemble.names.index(system)
            table, known = ensemble.matrices[place], ensemble.known[:, [place]]
        else:
            table, known = ensemble.concatenate(), ensemble.known
        # Rows have length 1, one a source. What is read has numbers of variance 1:
        # from small ones, single sources learn for many epochs more.
        table = table * np.sqrt(table.shape[1] / known.shape[1])
        self._table, self._known = table.astype(np.float32), known
        self._module = self._build(encoder, system)
        self._weight = self._settings.weight if system == META else 0.0

    def _build(self, encoder: str, system: str) -> nn.Module:
        settings = self._settings
        common = dict(
            hidden=settings.hidden,
            encoder=encoder,
            bidirectional=False,
            dropout_rate=settings.dropout,
        )
        if self._texts.tagged:
            main = jnn.Tagger(self._texts.classes, mlp=None, **common)
        else:
            main = jnn.TextClassifier(self._texts.classes, **common)
        if system not in (META, CONTROL):
            return Plain(main)
        # Without dropout of its own: the encoder drops its inputs, whatever they are.
        meta = jnn.AEME(self._texts.ensemble.widths, hidden=settings.meta)
        return jnn.AuxReconstruction(meta, main, settings.loss, settings.level)

    def choose_rate(self, folder: Path) -> float:
        """The learning rate of highest accuracy on dev, with one seed."""
        rates = self._settings.learning_rates
        if len(rates) == 1:
            return rates[0]
        tried = self.fit(folder, [(0, rate) for rate in rates])
        return rates[int(tried.dev.argmax())]

    def fit(self, folder: Path, runs: Sequence[tuple[int, float]]) -> Trained:
        """Trains a model for each seed and learning rate, or finds it done."""
        epoch = self._batches.plan.steps_per_epoch
        steps = self._settings.epochs * epoch
        if not (folder / checkpoints.FOLDER / str(steps)).is_dir():
            with results.recorded(folder):
                self._train(epath.Path(folder), runs, steps, epoch)
        return Trained.read(folder, len(runs))

    def _train(
        self,
        folder: epath.Path,
        runs: Sequence[tuple[int, float]],
        steps: int,
        epoch: int,
    ) -> None:
        plan = self._batches.train(self._table, self._known)
        programs = _programs(self._module, self._weight, self._texts.tagged, steps)
        example = {k: v for k, v in plan(0).items() if k != "labels"}
        seeds, rates = map(jnp.array, zip(*runs, strict=True))
        state = programs.start(seeds, rates, example)
        train.fit(
            state,
            programs.step,
            plan,
            steps,
            folder,
            evaluate=lambda state: self._evaluate(state, programs.hits, Path(folder)),
            evaluate_every=epoch,
            save_every=steps,
            keep=1,
            config={
                "system": self._name,
                "runs": [list(run) for run in runs],
                **results.as_json(self._settings),
            },
            name=self._name,
            progress=self._config.run.progress,
        )

    def _evaluate(self, state, hits, folder: Path) -> dict[str, float]:
        """Accuracies; which labels of test are right goes to a file of the epoch."""
        scores = {}
        for part in ("dev", "test"):
            right, labels = [], []
            for batch in self._batches.held_out(part, self._table, self._known):
                real = batch["weight"] > 0
                found = hits(state.params, batch)
                right.append(np.asarray(found[0])[:, real])
                labels.append(np.asarray(found[1])[0, real])
            whole = np.concatenate(right, axis=1), np.concatenate(labels)
            values = 100 * whole[0].sum(axis=1) / whole[1].sum()
            scores[f"{part}/accuracy"] = float(np.mean(values))
            for seed, value in enumerate(values):
                scores[f"{part}/accuracy/{seed}"] = float(value)
        path = _hits_path(folder, int(state.step[0]))
        path.parent.mkdir(exist_ok=True)
        with files.write_atomically(path) as part, part.open("wb") as stream:
            small = [one.astype(np.int16) for one in whole]
            np.savez_compressed(stream, right=small[0], labels=small[1])
        return scores


class _Programs(NamedTuple):
    """What is compiled, for all seeds at once."""

    start: Any
    step: Any
    hits: Any


@functools.lru_cache(maxsize=4)
def _programs(module, weight: float, tagged: bool, steps: int) -> _Programs:
    """The same for systems of the same shape, which then compile once."""

    @functools.partial(jax.vmap, in_axes=(0, 0, None))
    def start(seed, rate, example):
        init_key, train_key = jax.random.split(jax.random.key(seed))
        variables = module.init(init_key, *_inputs(example), deterministic=True)
        return train.State.create(variables, optim.falling_adam(rate, steps), train_key)

    def loss_of(variables, batch, key):
        logits, auxiliary = module.apply(
            variables, *_inputs(batch), deterministic=False, rngs={"dropout": key}
        )
        mask = batch["mask"] if tagged else None
        each = losses.softmax_cross_entropy(logits, batch["labels"], mask=mask)
        task = jnp.sum(each) / (jnp.sum(batch["mask"]) if tagged else len(each))
        if not weight:
            return task, {}
        return task + weight * jnp.mean(auxiliary), {}

    @functools.partial(train.over_models, in_axes=(0, None))
    def hits(params, batch):
        """Of each example of a batch: right labels, and all."""
        variables = {"params": params}
        logits, _ = module.apply(variables, *_inputs(batch), deterministic=True)
        right = jnp.argmax(logits, axis=-1) == batch["labels"]
        if not tagged:
            return right.astype(jnp.int32), jnp.ones(right.shape, jnp.int32)
        mask = batch["mask"]
        return jnp.sum(right & mask, axis=1), jnp.sum(mask, axis=1)

    # One device: the rows of a batch's table are no examples to be split.
    mesh = train.make_mesh(jax.devices()[:1])
    # The rate is part of the state, each model's own.
    step = train.over_seeds(train.make_step(loss_of, optim.falling_adam(0.0, steps)))
    return _Programs(jax.jit(start), train.data_parallel(step, mesh), jax.jit(hits))


def _inputs(batch):
    return batch["sources"], batch["known"], batch["mask"], batch["ids"]


def _folder(system: str) -> str:
    return system.replace(", λ = 0", "-without-weight").replace("/", "-")


class _Analysis:
    """Rows, claims and figures of one task."""

    def __init__(
        self,
        config: Config,
        task: str,
        texts: data.Texts,
        trained: Mapping[str, Mapping[str, Trained]],
    ):
        self._config, self._task, self._texts = config, task, texts
        self._trained = trained

    def rows(self) -> list[results.Row]:
        rows = []
        for part in ("test", "dev"):
            for encoder, of in self._trained.items():
                metric = f"{_TITLES[self._task]} {_ENCODERS[encoder]}, {part} (%)"
                rows += [
                    summary_row(name, metric, getattr(one, part).tolist())
                    for name, one in of.items()
                ]
        if "alignment rate" in self._texts.told:
            rate = 100 * self._texts.told["alignment rate"]
            rows.append(summary_row("phrases", "aligned with tags (%)", [rate]))
        return rows

    def claims(self) -> list[results.Claim]:
        """The paper's, then the controls it lacks, then Fig. 3."""
        claims = []
        title = _TITLES[self._task]
        for encoder, of in self._trained.items():
            where = f"{title}, {_ENCODERS[encoder]}"
            best = self._best_source(encoder)
            wanted = {
                f"reconstruction with all sources beats the best source ({best})": best,
                "control: it beats all sources side by side (CONC)": CONC,
                "control: it beats the same without reconstruction (λ = 0)": CONTROL,
            }
            for text, worse in wanted.items():
                claims.append(self._claim(f"{text}: {where}", of[META], of[worse]))
        if {"lstm", "cnn", "gru", "highway"} <= set(self._trained):
            meta = {encoder: of[META] for encoder, of in self._trained.items()}
            for other in ("cnn", "gru", "highway"):
                text = f"the LSTM is the best model: {title}, over {_ENCODERS[other]}"
                claims.append(self._claim(text, meta["lstm"], meta[other]))
        return claims + self._speed_claims()

    def _claim(self, text: str, better: Trained, worse: Trained) -> results.Claim:
        """From the examples of the test and the seeds, both paired."""
        gaps = 100 * (better.right - worse.right).mean(axis=0)
        labels = better.labels
        items = intervals.bootstrap(
            lambda rows: gaps[rows].sum(axis=-1) / labels[rows].sum(axis=-1),
            len(labels),
            resamples=self._config.resamples,
        )
        seeds = intervals.paired_t(better.test, worse.test)
        over = f"{len(labels):,} test examples and over {len(better.test)} seeds"
        return _verdict(text, intervals.with_spread(items, seeds), f"over {over}")

    def _best_source(self, encoder: str) -> str:
        """The one of the highest accuracy on dev."""
        of = self._trained[encoder]
        names = self._texts.ensemble.names
        return max(names, key=lambda name: of[name].dev.mean())

    def _speed_claims(self) -> list[results.Claim]:
        if self._task != "pos":
            return []
        encoder = "lstm" if "lstm" in self._trained else next(iter(self._trained))
        of = {s: one.dev_by_epoch for s, one in self._trained[encoder].items()}
        first = min(_EARLY - 1, self._config.extrinsic.epochs)
        found = {s: analysis.early(v, first) for s, v in of.items()}
        best = self._best_source(encoder)
        claims = []
        for worse in (best, CONC, CONTROL):
            text = (
                f"learning is faster before epoch {_EARLY}: Meta is nearer its best "
                f"than {worse} is to its own, dev accuracy of epochs 1 to {first} less "
                f"that of the best epoch of the same run, {_ENCODERS[encoder]}"
            )
            gap = intervals.paired_t(found[META], found[worse])
            over = f"paired t over {len(found[META])} seeds"
            claims.append(_verdict(text, gap, over))
        for worse in (best, CONTROL):
            text = f"seeds of Meta differ less at the end than those of {worse}"
            claims.append(_spread_claim(text, of[META][:, -1], of[worse][:, -1]))
        return claims

    def write_figures(self, folder: Path) -> None:
        """Fig. 3: dev accuracy against epochs, of every encoder."""
        for encoder, of in self._trained.items():
            title = f"{_TITLES[self._task]}, {_ENCODERS[encoder]}: dev accuracy (%)"
            curves = {system: one.dev_by_epoch for system, one in of.items()}
            figures.save(
                analysis.learning_curves(curves, title),
                folder / f"{self._task}-{encoder}.svg",
                f"{title}, mean and 95 % band of {self._config.extrinsic.seeds} seeds.",
            )


def _verdict(text: str, gap: intervals.Interval, over: str) -> results.Claim:
    return results.Claim(
        claim=text,
        verdict=intervals.verdict(gap.low, gap.high),
        evidence=f"difference {gap.mean:+.2f} points [{gap.low:.2f}, {gap.high:.2f}], "
        f"{over}",
    )


def _spread_claim(text: str, less: np.ndarray, more: np.ndarray) -> results.Claim:
    """By the ratio of variances and its interval from the F distribution."""
    ratio, low, high = analysis.variance_ratio(more, less)
    return results.Claim(
        claim=text,
        verdict=intervals.verdict(low - 1, high - 1),
        evidence=f"ratio of the variances of dev accuracy {ratio:.2f} [{low:.2f}, "
        f"{high:.2f}], F distribution, {len(less)} seeds each",
    )
