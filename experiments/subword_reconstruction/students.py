"""Students' tables tested: similarity, analogies, neighbours (Tables 1, 2 and 4)."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
from etils import epath

from experiments.common.findings import Findings
from experiments.subword_reconstruction import data, model
from experiments.subword_reconstruction.config import (
    PAPER_EPOCHS,
    SHOWN,
    Config,
    Head,
)
from experiments.subword_reconstruction.reconstruct import (
    COSINE,
    FLOOR,
    LEAST,
    LOSS,
    SIMILARITY,
    WAY,
    ZERO,
    School,
    Taught,
    history,
)
from jaxemb import storage, terminal
from jaxemb.analysis import figures, reconstruction
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import neighbours

SYNTACTIC, SEMANTIC = "syntactic analogies (%)", "semantic analogies (%)"
OVERLAP = "neighbours shared with the teacher (Jaccard, %)"
_NEIGHBOURS = 10
_TABLE = 7  # neighbours that Table 4 shows
_SAMPLE = 2000  # words whose neighbours are compared

Scores = Mapping[str, Sequence[float]]


class Students:
    """The students of one head, beside the random ones and the teacher."""

    def __init__(
        self,
        config: Config,
        world: data.World,
        head: Head,
        workdir: epath.Path,
        findings: Findings,
    ):
        """Trains every student of the head, or finds them done."""
        self._config = config
        self._world = world
        self._head = head
        self._workdir = workdir
        self._findings = findings
        self._teacher = world.teacher.vectors
        self._school = School(config, world.teacher, head, world.tests)
        seeds = range(config.seeds)
        self._taught: dict[str, list[Taught]] = {}
        for distance in config.distances:
            one = [Taught(head, distance, seed) for seed in seeds]
            self._taught[one[0].name] = one
        for distance in config.permuted:
            one = [Taught(head, distance, seed, True) for seed in seeds]
            self._taught[one[0].name] = one
        untaught = [self._school.untaught(seed) for seed in seeds]
        self._tables = {"random": [self._school.table(p) for p in untaught]}
        self._curves: dict[str, list[list[dict[str, float]]]] = {}
        for name, students in self._taught.items():
            self._tables[name], self._curves[name] = [], []
            for one, start in zip(students, self._tables["random"], strict=True):
                self._learn(one, start)

    def _learn(self, one: Taught, start: WordVectors) -> None:
        folder = one.folder(self._workdir)
        params = self._school.teach(one, folder)
        self._tables[one.name].append(self._school.table(params))
        targets = self._school.targets(one)
        first = {
            **self._school.similarity(start),
            **self._school.nearness(start.matrix, one.distance, targets),
        }
        self._curves[one.name].append([first, *history(folder)])
        last = self._curves[one.name][-1][-1]
        told = ", ".join(
            f"{n} {last[n]:.3g}" for n in (FLOOR, COSINE, SIMILARITY) if n in last
        )
        terminal.say(f"{self._head} · {one.name} · seed {one.seed}: {told}")

    def measure(self) -> None:
        """Every row, claim and figure of the head."""
        if "analogies" in self._config.studies:
            self._analogies()
        self._similarity()
        self._nearness()

    def _row(self, name: str) -> str:
        """As rows call a system: the head only where several are compared."""
        alone = len(self._config.heads) == 1 or name == "teacher"
        return name if alone else f"{self._head}/{name}"

    def _add(self, name: str, metric: str, values: Sequence[float]) -> None:
        if name != "teacher" or self._head == self._config.heads[0]:
            self._findings.add(self._row(name), metric, values)
        if metric not in self._findings.shown:
            self._findings.shown.append(metric)

    def _beats(
        self,
        metric: str,
        scores: Mapping[str, Scores],
        a: str,
        b: str,
        epoch: int | None = None,
    ) -> None:
        """A claim on two systems; with the paper's figures if the head is its own."""
        one, other = scores[a][metric], scores[b][metric]
        most = max(len(one), len(other))  # the teacher is one for all seeds
        printed, where = None, self._where(epoch)
        if self._head == "highway" and {a, b} <= set(
            self._findings.paper.get(metric, {})
        ):
            printed = metric, a, b
            if (epoch or self._config.epochs[-1]) != PAPER_EPOCHS:
                where += f"; the paper's {PAPER_EPOCHS}"
        self._findings.beats(
            f"{a} beats {b}: {metric} ({where})",
            [*one] * (most // len(one)),
            [*other] * (most // len(other)),
            printed=printed,
        )

    def _beats_after(self, epoch: int, a: str, b: str) -> None:
        """Likewise, of similarity after an epoch."""
        self._findings.beats(
            f"{a} beats {b}: {SIMILARITY} ({self._where(epoch)})",
            *(self._similar(name, epoch) for name in (a, b)),
            printed=(_after(epoch, SIMILARITY), a, b) if self._head == "relu" else None,
        )

    def _teacher_beats_all(self, metric: str, scores: Mapping[str, Scores]) -> None:
        best = np.max([scores[d][metric] for d in self._config.distances], axis=0)
        self._findings.beats(
            f"the teacher beats the best student: {metric} ({self._where()})",
            [*scores["teacher"][metric]] * len(best),
            best.tolist(),
        )

    def _is_the_papers(self, head: Head) -> bool:
        """Whether claims are about this head: the one named, or the only one."""
        return self._head == head or head not in self._config.heads

    def _where(self, epoch: int | None = None) -> str:
        return f"{self._head} head, {epoch or self._config.epochs[-1]} epochs"

    def _at(self, name: str, epoch: int, metric: str) -> list[float]:
        """The values of all seeds after an epoch; 0 is before the first."""
        place = epoch // self._config.curve_every
        return [run[place][metric] for run in self._curves[name]]

    def _similar(self, name: str, epoch: int) -> list[float]:
        """The mean similarity of all seeds after an epoch; random is after none."""
        if name == "random":
            name, epoch = next(iter(self._taught)), 0
        return self._at(name, epoch, SIMILARITY)

    def _similarity(self) -> None:
        """Table 1: the mean of the lists by epochs, with random and teacher."""
        config, last = self._config, self._config.epochs[-1]
        teacher = self._school.similarity(self._teacher)
        first = next(iter(self._taught))
        scores: dict[str, dict[str, list[float]]] = {
            "random": {m: self._at(first, 0, m) for m in teacher},
            **{n: {m: self._at(n, last, m) for m in teacher} for n in self._taught},
            "teacher": {m: [value] for m, value in teacher.items()},
        }
        for metric in teacher:
            for name, values in scores.items():
                self._add(name, metric, values[metric])
        for epoch in config.epochs[:-1]:
            for name in self._taught:
                metric = _after(epoch, SIMILARITY)
                self._add(name, metric, self._similar(name, epoch))
        if "similarity" in config.studies and self._is_the_papers("relu"):
            for epoch in config.epochs:
                for name in config.distances:
                    self._beats_after(epoch, name, "random")
                for name in config.permuted:
                    self._beats_after(epoch, name, f"{name}, permuted")
            self._teacher_beats_all(SIMILARITY, scores)
            self._over_epochs()
        starts = scores["random"][SIMILARITY]
        epochs = range(0, last + 1, config.curve_every)
        lines = {
            name: figures.banded(
                epochs, [self._at(name, e, SIMILARITY) for e in epochs]
            )
            for name in self._taught
        }
        figures.save(
            figures.curves(
                lines,
                f"mean similarity × 100 ({self._head} head)",
                x_label="epochs of reconstruction",
                levels={"random": float(np.mean(starts))},
            ),
            self._workdir / "figures" / f"{self._head}-similarity.svg",
            "Mean Spearman × 100 over the similarity lists, 95 % bands over seeds; "
            f"the teacher has {teacher[SIMILARITY]:.1f}.",
        )

    def _over_epochs(self) -> None:
        """What Table 1 says of Dcos among the others, and of more epochs."""
        config = self._config

        def mean(name: str) -> list[float]:
            every = [self._at(name, epoch, SIMILARITY) for epoch in config.epochs]
            return np.mean(every, axis=0).tolist()

        metric = f"{SIMILARITY}, mean over the epochs scored ({self._head} head)"
        for name in config.distances:
            if "Dcos" in config.distances and name != "Dcos":
                claim = f"Dcos beats {name}: {metric}"
                self._findings.beats(claim, mean("Dcos"), mean(name))
        if len(config.epochs) < 2:
            return
        few, many = config.epochs[0], config.epochs[-1]
        for name in config.distances:
            ends = [self._at(name, epoch, SIMILARITY) for epoch in (many, few)]
            order = [many, few]
            if name == "Dinf":  # the one that falls in the paper
                ends, order = ends[::-1], order[::-1]
            self._findings.beats(
                f"{name} after {order[0]} epochs beats {name} after {order[1]}: "
                f"{SIMILARITY} ({self._head} head)",
                *ends,
            )

    def _nearness(self) -> None:
        """Distances to what was taught, above the floor, epoch by epoch."""
        last = self._config.epochs[-1]
        for name in self._taught:
            for metric in (LOSS, FLOOR, COSINE, ZERO):
                self._add(name, metric, self._at(name, last, metric))
            way = self._school.way(self._taught[name][0], self.losses(name))
            self._add(name, WAY, way)
            self._add_curves(name)
        first = next(iter(self._taught))
        for metric in (COSINE, ZERO):
            self._add("random", metric, self._at(first, 0, metric))
        epochs = range(0, last + 1, self._config.curve_every)
        lines = {}
        for name in self._taught:
            points = np.array([self._at(name, epoch, FLOOR) for epoch in epochs])
            lines[name] = figures.banded(epochs, points / points[0].mean())
        figures.save(
            figures.curves(
                lines,
                f"distance above the floor, over its first value ({self._head} head)",
                x_label="epochs of reconstruction",
            ),
            self._workdir / "figures" / f"{self._head}-reconstruction.svg",
            "Mean distance to what is taught, less the least that the head can attain, "
            "over that of a random student; 95 % bands over seeds.",
        )

    def _add_curves(self, name: str) -> None:
        """The floor, and what is above it, at every point; not for the README."""
        row, last = self._row(name), self._config.epochs[-1]
        above = zip(self.losses(name), self._at(name, last, FLOOR), strict=True)
        floors = [loss - over for loss, over in above]
        self._findings.add(row, LEAST, [float(np.mean(floors))])  # of every seed
        for metric in (LOSS, FLOOR, COSINE):
            for epoch in range(0, last + 1, self._config.curve_every):
                values = self._at(name, epoch, metric)
                self._findings.add(row, _after(epoch, metric), values)

    def losses(self, name: str) -> list[float]:
        """The mean distances that students of a kind ended at."""
        return self._at(name, self._config.epochs[-1], LOSS)

    def _analogies(self) -> None:
        """Tables 2 and 4: analogies by 3CosMul, neighbours and how many are shared."""
        tables = {**self._tables, "teacher": [self._teacher]}
        last = self._config.epochs[-1]
        scores: dict[str, dict[str, list[float]]] = {}
        for name, own in tables.items():
            scores[name] = self._answers(name, last)
            if name != "teacher":
                scores[name][OVERLAP] = [
                    100 * self._overlap(table, seed) for seed, table in enumerate(own)
                ]
            told = ", ".join(f"{m} {np.mean(v):.2f}" for m, v in scores[name].items())
            terminal.say(f"{self._head} · {name}: {told}")
        for metric in scores["random"]:
            for name, found in scores.items():
                if metric in found:
                    self._add(name, metric, found[metric])
        if self._is_the_papers("highway"):
            self._analogy_claims(scores)
        for epoch in self._config.epochs[:-1]:
            self._analogies_after(epoch, scores)
        self._show_neighbours(tables)

    def _answers(self, name: str, epoch: int) -> dict[str, list[float]]:
        """Analogies of all seeds after an epoch, or of what has none."""
        kinds = [f"{kind} analogies (%)" for kind in self._world.tests.analogies]
        if name in self._taught:
            return {kind: self._at(name, epoch, kind) for kind in kinds}
        plain = [self._teacher] if name == "teacher" else self._tables[name]
        found = [self._school.analogies(table) for table in plain]
        return {kind: [one[kind] for one in found] for kind in kinds}

    def _analogies_after(self, epoch: int, scores: Mapping[str, Scores]) -> None:
        """Table 2 at an epoch before the last, beside random students."""
        taught = {name: self._answers(name, epoch) for name in self._taught}
        for name, found in taught.items():
            for metric, values in found.items():
                self._add(name, _after(epoch, metric), values)
        if self._is_the_papers("highway"):
            both = {**taught, "random": scores["random"]}
            for metric in (SYNTACTIC, SEMANTIC):
                for name in self._config.distances if metric in both["random"] else ():
                    pair = ("random", name) if metric == SYNTACTIC else (name, "random")
                    self._beats(metric, both, *pair, epoch=epoch)

    def _analogy_claims(self, scores: Mapping[str, Scores]) -> None:
        distances = self._config.distances
        wanted = [(SYNTACTIC, "random", name) for name in distances]
        wanted += [(SYNTACTIC, "Dinf", d) for d in distances if d != "Dinf"]
        wanted += [(SYNTACTIC, "random", "teacher")]
        wanted += [(SEMANTIC, name, "random") for name in distances]
        wanted += [(SEMANTIC, "D2", d) for d in distances if d != "D2"]
        wanted += [(OVERLAP, name, "random") for name in distances]
        for name in self._config.permuted:
            control = f"{name}, permuted"
            wanted += [(m, name, control) for m in (SYNTACTIC, SEMANTIC, OVERLAP)]
        for metric, better, worse in wanted:
            both = {better, worse} <= set(scores)
            if both and metric in scores[better] and metric in scores[worse]:
                self._beats(metric, scores, better, worse)
        if SEMANTIC in scores["random"]:
            self._teacher_beats_all(SEMANTIC, scores)

    def _overlap(self, table: WordVectors, seed: int) -> float:
        return neighbours.neighbour_overlap(
            self._teacher,
            table,
            _NEIGHBOURS,
            sample=_SAMPLE,
            resamples=0,
            seed=seed,
        ).jaccard

    def _show_neighbours(self, tables: Mapping[str, Sequence[WordVectors]]) -> None:
        """Table 4: neighbours by the teacher, a random student and a taught one."""
        words = [w.lower() for w in SHOWN if w.lower() in self._teacher]
        words = words or list(self._teacher.words[: len(SHOWN)])
        shown: dict[str, dict[str, list[str]]] = {}
        for name in ("teacher", "random", self._config.distances[0]):
            table = tables[name][0]
            usable = [w for w in words if table[w].any()]
            near = neighbours.nearest_neighbours(table, usable, _TABLE)
            for word, found in zip(usable, near, strict=True):
                shown.setdefault(word, {})[name] = [w for w, _ in found]
        self._findings.notes.setdefault("neighbours", {})[self._head] = shown
        path = self._workdir / f"{self._head}-neighbours.json"
        storage.write_text(path, json.dumps(shown, indent=1) + "\n")
        terminal.print_table(
            [
                {"word": word, "by": name, "nearest": " ".join(found)}
                for word, by in shown.items()
                for name, found in by.items()
            ]
        )
        print()


def study(
    config: Config, world: data.World, workdir: epath.Path, findings: Findings
) -> None:
    """Every head's students; then the heads compared, and Figure 1."""
    ends: dict[Head, dict[str, list[float]]] = {}
    for head in config.heads:
        students = Students(config, world, head, workdir, findings)
        students.measure()
        ends[head] = {d: students.losses(d) for d in config.distances}
    figures.save(
        reconstruction.distance_contours(model.DISTANCES),
        workdir / "figures" / "distances.svg",
        "Where each distance from x is the same (Figure 1 of the paper); that of Dcos "
        "is a ray.",
    )
    for head in [h for h in ends if h != "relu" and "relu" in ends]:
        for distance in config.distances:
            findings.beats(
                f"the relu head ends farther from the teacher than the {head} head "
                f"({distance}, {config.epochs[-1]} epochs)",
                ends["relu"][distance],
                ends[head][distance],
            )


def _after(epoch: int, metric: str) -> str:
    """A point of a curve, as rows have it, and `PAPER` the columns of Table 1."""
    return f"{metric} after {epoch} epochs"
