"""Classifiers on frozen embeddings: alpha chosen on validation, verdicts, figures."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from etils import epath

from experiments.alpha_embeddings import classifiers, data, model
from experiments.alpha_embeddings.analyse import LIMIT, claim_of, row_of
from experiments.alpha_embeddings.config import Config
from experiments.alpha_embeddings.model import Name, names_of
from jaxemb import terminal, train
from jaxemb.analysis import alpha as analysis
from jaxemb.analysis import figures
from jaxemb.eval import intervals
from jaxemb.train import results

_DONE = "done"
_PLAIN = Name("U+V", "0", "I", "1")  # the paper's baseline here
_TITLES = {"newsgroups": "20 Newsgroups", "imdb": "IMDB"}
_MEASURES = {"newsgroups": ("AUC", "accuracy"), "imdb": ("accuracy",)}


class Job(NamedTuple):
    """One classifier on one task."""

    task: str
    kind: str

    @property
    def title(self) -> str:
        name = {"linear": "linear", "bilstm": "BiLSTM"}[self.kind]
        return f"{_TITLES[self.task]}, {name}"

    @property
    def measures(self) -> tuple[str, ...]:
        return _MEASURES[self.task]


class Found(NamedTuple):
    """Scores in per cent at the epoch that is best on the validation part."""

    dev: float
    test: float


# A seed's scores: embedding to measure to what was found.
Scores = dict[str, dict[str, Found]]


@dataclasses.dataclass(frozen=True, eq=False)
class Measured:
    """What all classifiers found, and the texts."""

    scores: Mapping[Job, Mapping[str, Sequence[Scores]]]
    """Job to tables to one a seed."""
    documents: tuple[data.Documents, ...]


def jobs(config: Config) -> list[Job]:
    """Every classifier of every task asked for."""
    tasks = [task for task in config.tasks if task in _TITLES]
    return list(
        itertools.starmap(Job, itertools.product(tasks, config.classifier.kinds))
    )


def run(config: Config, source: data.Source, workdir: Path) -> Measured:
    """Trains every classifier on every embedding, or finds it done."""
    documents = {
        task: data.load_documents(config, task, source.words)
        for task in dict.fromkeys(job.task for job in jobs(config))
    }
    scores: dict[Job, dict[str, list[Scores]]] = {job: {} for job in jobs(config)}
    for tables in source.names:
        trainers = {
            job: _trainer(config, job, documents[job.task], source, tables)
            for job in jobs(config)
        }
        for seed in range(source.seeds):
            one = source.get(tables, seed)
            for job in jobs(config):
                scores[job].setdefault(tables, []).append({})
            for variant, reference in itertools.product(
                config.variants, config.references
            ):
                place = Path(one.label) / f"{variant}-{reference}"
                parts = {job: workdir / job.task / job.kind / place for job in trainers}
                _fit(config, one, (variant, reference), trainers, documents, parts)
                for job, folder in parts.items():
                    found = _read(folder, job)
                    scores[job][tables][seed] |= found
                    if config.run.progress:
                        terminal.say(_told(job, one, found))
    return Measured(scores, tuple(documents.values()))


def _trainer(config, job, documents, source, tables):
    if job.kind == "linear":
        return classifiers.Linear(config, documents.classes)
    shape = len(source.words), int(tables.removesuffix("d"))
    trainer = classifiers.Recurrent(config, documents.classes, *shape)
    trainer.read(documents)
    return trainer


def _fit(config, one, label, trainers, documents, parts) -> None:
    """All jobs on the embeddings of one variant and reference, made once for them."""
    todo = [job for job, folder in parts.items() if not (folder / _DONE).exists()]
    if not todo:
        return
    vocab = len(one.tables.words)
    means = {
        task: {
            part: classifiers.Means(documents[task].part(part)[0], vocab)
            for part in ("train", "dev", "test")
        }
        for task in {job.task for job in todo if job.kind == "linear"}
    }
    stacks = {task: {part: [] for part in of} for task, of in means.items()}
    names = []
    for name, table in _embedded(config, one, label):
        names.append(str(name))
        for task, of in means.items():
            for part, mean in of.items():
                stacks[task][part].append(mean(table))
        for job in todo:
            if job.kind == "bilstm":
                folder = epath.Path(parts[job] / f"{name.metric} {name.member}")
                trainers[job].fit(table, str(name), folder, one.seed)
    for job in todo:
        if job.kind == "linear":
            features = {
                part: np.stack(rows, axis=1) for part, rows in stacks[job.task].items()
            }
            folder = epath.Path(parts[job] / "all")
            of = documents[job.task]
            trainers[job].fit(of, features, names, folder, one.seed)
        (parts[job] / _DONE).touch()


def _embedded(config, one, label) -> Iterator[tuple[Name, np.ndarray]]:
    """Embeddings by name; the plain one comes with its reference in any metric."""
    of = model.geometry(config, one, *label)
    for member, rows in model.members(config, of):
        for metric in config.metrics:
            yield Name(*label, metric, member), model.normalised(rows, of, metric)
    if label == _PLAIN[:2] and _PLAIN not in names_of(config):
        words = one.tables.input + one.tables.output
        yield _PLAIN, model.normalised(words.astype(np.float64), of, "I")


def _read(folder: Path, job: Job) -> Scores:
    """For each embedding and measure the epoch of the first highest dev score."""
    scores: Scores = {}
    for run in sorted(folder.iterdir()):
        if not (run / "metrics.jsonl").exists():
            continue
        lines = train.read_metrics(run)
        for measure in job.measures:
            start = f"dev/{measure}/"
            known = [line for line in lines if any(k.startswith(start) for k in line)]
            names = [k.removeprefix(start) for k in known[0] if k.startswith(start)]
            for name in names:
                best = max(known, key=lambda line, n=start + name: line[n])
                found = Found(best[start + name], best[f"test/{measure}/{name}"])
                scores.setdefault(name, {})[measure] = found
    return scores


def _told(job: Job, one: data.Model, found: Scores) -> str:
    measure = job.measures[0]
    best = max(found, key=lambda name: found[name][measure].dev)
    return (
        f"{one.label} · {job.title}: {measure} {found[best][measure].test:.2f}, {best}"
    )


class Outcome:
    """Rows, claims and figures of what was measured."""

    def __init__(self, config: Config, source: data.Source, measured: Measured):
        self._config, self._source = config, source
        self._scores = measured.scores
        self.chosen: dict[str, list[str]] = {}

    def _systems(self) -> list[str]:
        return list(dict.fromkeys(name.system for name in names_of(self._config)))

    def _members(self, systems: Sequence[str]) -> list[str]:
        names = names_of(self._config)
        return [str(name) for name in names if name.system in systems]

    def _values(
        self, job: Job, tables: str, name: str, measure: str
    ) -> list[float] | None:
        seeds = self._scores[job][tables]
        if any(name not in scores for scores in seeds):
            return None
        return [scores[name][measure].test for scores in seeds]

    def _tuned(
        self, job: Job, tables: str, systems: Sequence[str], measure: str, title: str
    ) -> list[float]:
        """The test score of each seed, of what is best on its validation part."""
        values, chosen = [], []
        for scores in self._scores[job][tables]:
            best = max(
                self._members(systems), key=lambda name: scores[name][measure].dev
            )
            values.append(scores[best][measure].test)
            chosen.append(best)
        self.chosen[f"{tables}/{title}, {job.title}, {measure}"] = chosen
        return values

    def _groups(self) -> dict[str, list[str]]:
        """Systems whose members, and perhaps reference, validation chooses among."""
        groups = {f"{system}, chosen": [system] for system in self._systems()}
        for kind, metric in itertools.product(("E", "LE"), self._config.metrics):
            own = [
                s
                for s in self._systems()
                if s.startswith(f"{kind}-U+V-") and s.endswith(f"-{metric}")
            ]
            if len(own) > 1:
                groups[f"{kind}-U+V-*-{metric}, reference chosen too"] = own
        return groups

    def rows(self) -> list[results.Row]:
        """The paper's tables, then every embedding."""
        rows = []
        for job in self._scores:
            for measure in job.measures:
                title = f"{job.title}, {measure} (%)"
                for tables in self._scores[job]:
                    plain = self._values(job, tables, str(_PLAIN), measure)
                    if plain:
                        rows.append((f"{tables}/U+V", title, plain))
                    for name, systems in self._groups().items():
                        values = self._tuned(job, tables, systems, measure, name)
                        rows.append((f"{tables}/{name}", title, values))
        for job in self._scores:
            for measure in job.measures:
                for tables in self._scores[job]:
                    for name in map(str, names_of(self._config)):
                        values = self._values(job, tables, name, measure)
                        title = f"{job.title}, {measure} (%), sweep"
                        rows.append((f"{tables}/{name}", title, values))
        return [row for one in rows for row in row_of(*one)]

    def claims(self) -> list[results.Claim]:
        """Tuned alphas and limits against the plain vectors, then by width."""
        claims = []
        for job in self._scores:
            for measure in job.measures:
                gains: dict[str, list[np.ndarray]] = {}
                for tables in self._scores[job]:
                    plain = self._values(job, tables, str(_PLAIN), measure)
                    if plain is None:
                        continue
                    for name in self._claimed():
                        systems = self._groups()[name]
                        values = self._tuned(job, tables, systems, measure, name)
                        gap = intervals.paired_t(values, plain)
                        claims.append(
                            claim_of(
                                f"{name}, beats U+V: {job.title}, {measure} ({tables})",
                                gap,
                                f"paired t over {len(values)} seeds",
                            )
                        )
                        gains.setdefault(name, []).append(np.subtract(values, plain))
                for name, (narrow, *others) in gains.items():
                    if others and name.startswith("E-"):
                        first, *_, last = self._scores[job]
                        claims.append(
                            claim_of(
                                f"the gain of {name}, over U+V is larger at {first} "
                                f"than at {last}: {job.title}, {measure}",
                                intervals.paired_t(narrow, others[-1]),
                                f"paired t over {len(narrow)} seeds",
                            )
                        )
        return claims

    def _claimed(self) -> list[str]:
        """With the reference chosen too, in Fisher's metric, as the paper's tables."""
        groups = list(self._groups())
        chosen = [g for g in groups if "*" in g and "-F," in g]
        return chosen or [g for g in groups if "*" in g] or groups

    def write_figures(self, folder: Path) -> None:
        """Test scores against alpha, as the paper's Figure 3."""
        for job in self._scores:
            for measure, tables in itertools.product(job.measures, self._scores[job]):
                lines, levels = {}, {}
                for system in self._systems():
                    if not system.startswith("E-"):
                        continue
                    curve = self._curve(job, tables, system, measure)
                    lines[system] = curve
                    limit = Name.of(system, LIMIT)
                    values = self._values(job, tables, str(limit), measure)
                    if values:
                        levels[system] = float(np.mean(values))
                plain = self._values(job, tables, str(_PLAIN), measure)
                if plain:
                    levels["U+V"] = float(np.mean(plain))
                title = f"{job.title}, {measure} (%), {tables}"
                if lines and len(self._config.alphas) > 1:
                    figures.save(
                        analysis.sweep_figure(lines, title, limits=levels),
                        folder / f"{tables}-{job.task}-{job.kind}-{measure}.svg",
                        f"{title} on test against α at the epoch best on validation, "
                        f"mean of {self._source.seeds} seeds; dotted: t1 limits in "
                        "the colour of their system, and U+V.",
                    )

    def _curve(self, job: Job, tables: str, system: str, measure: str):
        alphas = sorted(self._config.alphas)
        names = [str(Name.of(system, f"{a:g}")) for a in alphas]
        values = [self._values(job, tables, name, measure) for name in names]
        return figures.Curve(alphas, [float(np.mean(one)) for one in values])
