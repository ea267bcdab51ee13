"""Table 4 and Fig. 3: taggers and classifiers, with and without reconstruction."""

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from etils import epath

from experiments.common.rows import summary_row
from experiments.multitask_meta_embedding import data
from experiments.multitask_meta_embedding.config import Config
from experiments.multitask_meta_embedding.outcome import Outcome
from jaxemb import losses, terminal, train
from jaxemb import nn as jnn
from jaxemb.analysis import figures
from jaxemb.analysis import meta as analysis
from jaxemb.data import batching
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
    curves: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    parts = set()
    for encoder in config.extrinsic.encoders:
        curves[encoder] = {}
        for system in systems(texts):
            folder = epath.Path(workdir) / task / encoder / _folder(system)
            Trainer(config, texts, batches, encoder, system).fit(folder)
            parts.add(Path(folder))
            curves[encoder][system] = _read(folder, config.extrinsic.seeds)
            best = np.mean(_at_best(curves[encoder][system])["test"])
            if config.run.progress:
                terminal.say(f"{task}, {_ENCODERS[encoder]}, {system}: {best:.2f}")
    outcome = _Analysis(config, task, texts, curves)
    outcome.write_figures(workdir / "figures")
    told = {
        f"{_TITLES[task]}, data": dict(texts.told),
        f"{_TITLES[task]}, dev (%) by epoch, the mean over seeds": {
            f"{_ENCODERS[encoder]}, {system}": np.round(
                one["dev"].mean(axis=0), 2
            ).tolist()
            for encoder, of in curves.items()
            for system, one in of.items()
        },
    }
    return Outcome(outcome.rows(), outcome.claims(), list(texts.data), told, parts)


def systems(texts: data.Texts) -> tuple[str, ...]:
    """Every source alone, all side by side, and the two autoencoders."""
    return (*texts.ensemble.names, CONC, META, CONTROL)


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

    def fit(self, folder: epath.Path) -> None:
        """Trains all seeds, or finds it done."""
        epoch = self._batches.plan.steps_per_epoch
        steps = self._settings.epochs * epoch
        if (folder / checkpoints.FOLDER / str(steps)).is_dir():
            return
        with results.recorded(folder):
            self._train(folder, steps, epoch)

    def _train(self, folder: epath.Path, steps: int, epoch: int) -> None:
        plan = self._batches.train(self._table, self._known)
        programs = _programs(
            self._module,
            self._weight,
            self._texts.tagged,
            self._settings.learning_rate,
            steps,
        )
        example = {k: v for k, v in plan(0).items() if k != "labels"}
        state = programs.start(jnp.arange(self._settings.seeds), example)
        train.fit(
            state,
            programs.step,
            plan,
            steps,
            folder,
            evaluate=lambda state: self._evaluate(state, programs.hits),
            evaluate_every=epoch,
            save_every=steps,
            keep=1,
            config={"system": self._name, **results.as_json(self._settings)},
            name=self._name,
            progress=self._config.run.progress,
        )

    def _evaluate(self, state, hits) -> dict[str, float]:
        scores = {}
        for part in ("dev", "test"):
            right, total = 0, 0
            for batch in self._batches.held_out(part, self._table, self._known):
                found = hits(state.params, batch)
                right, total = (
                    right + np.asarray(found[0]),
                    total + np.asarray(found[1]),
                )
            values = 100 * right / total
            scores[f"{part}/accuracy"] = float(np.mean(values))
            for seed, value in enumerate(values):
                scores[f"{part}/accuracy/{seed}"] = float(value)
        return scores


class _Programs(NamedTuple):
    """What is compiled, for all seeds at once."""

    start: Any
    step: Any
    hits: Any


@functools.lru_cache(maxsize=4)
def _programs(
    module, weight: float, tagged: bool, rate: float, steps: int
) -> _Programs:
    """The same for systems of the same shape, which then compile once."""
    tx = optax.adam(optax.linear_schedule(rate, 0.0, steps))

    @functools.partial(jax.vmap, in_axes=(0, None))
    def start(seed, example):
        init_key, train_key = jax.random.split(jax.random.key(seed))
        variables = module.init(init_key, *_inputs(example), deterministic=True)
        return train.State.create(variables, tx, train_key)

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
        """Right and all labels of a batch."""
        variables = {"params": params}
        logits, _ = module.apply(variables, *_inputs(batch), deterministic=True)
        right = jnp.argmax(logits, axis=-1) == batch["labels"]
        weights = batch["weight"].reshape(-1, *[1] * (right.ndim - 1))
        counted = jnp.broadcast_to(weights > 0, right.shape)
        if tagged:
            counted &= batch["mask"]
        return jnp.sum(right & counted), jnp.sum(counted)

    # One device: the rows of a batch's table are no examples to be split.
    mesh = train.make_mesh(jax.devices()[:1])
    step = train.over_seeds(train.make_step(loss_of, tx))
    return _Programs(jax.jit(start), train.data_parallel(step, mesh), jax.jit(hits))


def _inputs(batch):
    return batch["sources"], batch["known"], batch["mask"], batch["ids"]


def _folder(system: str) -> str:
    return system.replace(", λ = 0", "-without-weight").replace("/", "-")


def _read(folder: epath.Path, seeds: int) -> dict[str, np.ndarray]:
    """(seeds, epochs) of dev and test."""
    lines = train.evaluations(folder, "dev/accuracy")
    return {
        part: np.array(
            [[one[f"{part}/accuracy/{s}"] for one in lines] for s in range(seeds)]
        )
        for part in ("dev", "test")
    }


def _at_best(curves: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The scores of each seed at the epoch that is best on dev."""
    best = curves["dev"].argmax(axis=1)[:, None]
    return {k: np.take_along_axis(v, best, axis=1)[:, 0] for k, v in curves.items()}


class _Analysis:
    """Rows, claims and figures of one task."""

    def __init__(self, config, task, texts, curves):
        self._config, self._task, self._texts = config, task, texts
        self._curves = curves
        self._best = {
            encoder: {system: _at_best(one) for system, one in of.items()}
            for encoder, of in curves.items()
        }

    def rows(self) -> list[results.Row]:
        rows = []
        for part in ("test", "dev"):
            for encoder, of in self._best.items():
                metric = f"{_TITLES[self._task]} {_ENCODERS[encoder]}, {part} (%)"
                rows += [summary_row(name, metric, v[part]) for name, v in of.items()]
        if "alignment rate" in self._texts.told:
            rate = 100 * self._texts.told["alignment rate"]
            rows.append(summary_row("phrases", "aligned with tags (%)", [rate]))
        return rows

    def claims(self) -> list[results.Claim]:
        """The paper's, then the controls it lacks, then Fig. 3."""
        claims = []
        title = _TITLES[self._task]
        for encoder, of in self._best.items():
            meta = of[META]["test"]
            where = f"{title}, {_ENCODERS[encoder]}"
            best = self._best_source(encoder)
            wanted = {
                f"reconstruction with all sources beats the best source ({best})": best,
                "control: it beats all sources side by side (CONC)": CONC,
                "control: it beats the same without reconstruction (λ = 0)": CONTROL,
            }
            for text, worse in wanted.items():
                claims.append(_claim(f"{text}: {where}", meta, of[worse]["test"]))
        if {"lstm", "cnn", "gru", "highway"} <= set(self._best):
            meta = {e: of[META]["test"] for e, of in self._best.items()}
            for other in ("cnn", "gru", "highway"):
                text = f"the LSTM is the best model: {title}, over {_ENCODERS[other]}"
                claims.append(_claim(text, meta["lstm"], meta[other]))
        return claims + self._speed_claims()

    def _best_source(self, encoder: str) -> str:
        """The one of the highest accuracy on dev."""
        of = self._best[encoder]
        names = self._texts.ensemble.names
        return max(names, key=lambda name: of[name]["dev"].mean())

    def _speed_claims(self) -> list[results.Claim]:
        if self._task != "pos":
            return []
        encoder = "lstm" if "lstm" in self._curves else next(iter(self._curves))
        of = {s: v["dev"] for s, v in self._curves[encoder].items()}
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
            claims.append(_claim(text, found[META], found[worse]))
        for worse in (best, CONTROL):
            text = f"seeds of Meta differ less at the end than those of {worse}"
            claims.append(_spread_claim(text, of[META][:, -1], of[worse][:, -1]))
        return claims

    def write_figures(self, folder: Path) -> None:
        """Fig. 3: dev accuracy against epochs, of every encoder."""
        for encoder, of in self._curves.items():
            title = f"{_TITLES[self._task]}, {_ENCODERS[encoder]}: dev accuracy (%)"
            figures.save(
                analysis.learning_curves({s: v["dev"] for s, v in of.items()}, title),
                folder / f"{self._task}-{encoder}.svg",
                f"{title}, mean and 95 % band of {self._config.extrinsic.seeds} seeds.",
            )


def _claim(text: str, better, worse) -> results.Claim:
    gap = intervals.paired_t(list(better), list(worse))
    return results.Claim(
        claim=text,
        verdict=intervals.verdict(gap.low, gap.high),
        evidence=f"difference {gap.mean:+.2f} points [{gap.low:.2f}, {gap.high:.2f}], "
        f"paired t over {len(better)} seeds",
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
