"""Teaches students, scores their tables, tags with them; tables, verdicts, figures."""

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from etils import epath

from experiments.common import tables
from experiments.common.rows import print_claims, print_side_by_side, summary_row
from experiments.subword_reconstruction import data, linear, model, reconstruct, tagging
from experiments.subword_reconstruction.config import SHOWN, SLUG, Config
from experiments.subword_reconstruction.reconstruct import (
    COSINE,
    FLOOR,
    SIMILARITY,
    ZERO,
    School,
    Taught,
)
from jaxemb import storage, terminal
from jaxemb.analysis import figures, reconstruction
from jaxemb.data import batching, packed
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import analogy, intervals, neighbours
from jaxemb.train import results

ACCURACY = "test accuracy (%)"
OVERLAP = "neighbours shared with the teacher (Jaccard, %)"
_NEIGHBOURS = 10
_TABLE = 7  # neighbours that Table 4 shows
_SAMPLE = 2000


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    _check(config)
    workdir = epath.Path(config.workdir)
    with results.recorded(workdir):
        outcome = Outcome(config, workdir)
        outcome.measure()
    origins = [results.origin(workdir)]
    written = results.write(
        workdir,
        slug=SLUG,
        preset=config.preset,
        config=outcome.described(),
        origins=origins,
        data=outcome.data,
        rows=outcome.rows,
        claims=outcome.claims,
    )
    print_side_by_side(outcome.rows)
    print_claims(outcome.claims)
    return written


def _check(config: Config) -> None:
    if jax.process_count() > 1:
        raise InputError("this experiment runs in one process")
    epochs = config.epochs
    if not epochs or list(epochs) != sorted(set(epochs)) or epochs[0] < 1:
        raise InputError(f"--epochs {epochs}: expected ascending numbers from 1")
    if "tagging" in config.studies and config.seeds < 1:
        raise InputError(f"--seeds {config.seeds}: expected 1 or more")
    if wrong := set(config.permuted) - set(config.distances):
        raise InputError(f"--permuted {' '.join(sorted(wrong))}: not in --distances")


class Outcome:
    """What a run has measured, study by study."""

    def __init__(self, config: Config, workdir: epath.Path):
        self._config = config
        self._workdir = workdir
        self.rows: list[results.Row] = []
        self.claims: list[results.Claim] = []
        self._notes: dict = {}
        self._teacher, self._tests = data.load(config)
        self.data = [self._teacher.data, *self._tests.data]
        terminal.say(
            f"{len(self._teacher.vectors):,} of {self._teacher.size:,} words, "
            f"{len(self._teacher.characters) - 2} characters"
        )
        self._schools = {
            head: School(config, self._teacher, self._tests, head)
            for head in config.heads
        }

    def measure(self) -> None:
        """Runs every study of the config."""
        studies = self._config.studies
        if {"similarity", "analogy"} & set(studies):
            self._taught = reconstruct.teach_all(
                self._config, self._schools, self._workdir
            )
            for head, school in self._schools.items():
                if "similarity" in studies:
                    self._similarity(school)
                if "analogy" in studies:
                    self._analogy(school)
                self._nearness(head)
            self._contours()
        if "linear" in studies:
            self._linear()
        if "tagging" in studies:
            self._tagging()

    def described(self) -> dict:
        """The config with what a reader must know of the protocol."""
        config = self._config
        described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
        return {
            **described,
            "trained words": len(self._teacher.vectors),
            "teacher's words": self._teacher.size,
            "characters": len(self._teacher.characters) - 2,
            "covered": {
                **{n: len(rows) for n, rows in self._tests.similarity.items()},
                **{
                    name: sum(map(len, sections.values()))
                    for name, sections in self._tests.analogies.items()
                },
            },
            "asked": dict(self._tests.totals),
            "interval": f"95 %: Student t over {config.seeds} seeds, for claims over "
            "differences paired by seed; one teacher and one set of tests, whose "
            "sampling is not in it",
            "floor": "the least loss that a vector without negative coordinates can "
            "have (relu head); 0, or -1 for Dcos, for the other heads",
            "random": "the student before it is taught, of the same seeds",
            **self._notes,
        }

    # What students are called: the head only where several are compared.
    def _name(self, head: str, name: str) -> str:
        return f"{head}/{name}" if len(self._schools) > 1 else name

    def _students(self, head: str) -> dict[str, list[Taught]]:
        """Name to the students of all seeds."""
        found: dict[str, list[Taught]] = {}
        for one in self._taught:
            if one.head == head:
                found.setdefault(one.name, []).append(one)
        return found

    @functools.cache  # noqa: B019 (an outcome lives as long as its run)
    def _table(self, head: str, one: Taught | int) -> WordVectors:
        """The table of a student; of an untaught one by its seed."""
        school = self._schools[head]
        if isinstance(one, int):
            return school.embed(school.untaught(one))
        return school.embed(self._taught[one])

    def _add(self, name: str, metric: str, values: Sequence[float]) -> None:
        self.rows.append(summary_row(name, metric, values))

    def _claim(
        self, claim: str, better: Sequence[float], worse: Sequence[float], unit: str
    ) -> None:
        gap = intervals.paired_t(better, worse)
        self.claims.append(
            results.Claim(
                claim=claim,
                verdict=intervals.verdict(gap.low, gap.high),
                evidence=f"paired difference {gap.mean:+.2f} {unit} [{gap.low:.2f}, "
                f"{gap.high:.2f}], {len(better)} seeds",
            )
        )

    def _nearness(self, head: str) -> None:
        """Losses above the floor, epoch by epoch, and their figure."""
        lines: dict[str, figures.Curve] = {}
        for name, students in self._students(head).items():
            runs = [reconstruct.history(self._workdir, one) for one in students]
            for metric in (FLOOR, COSINE, ZERO):
                values = [run[-1][metric] for run in runs]
                self._add(self._name(head, name), metric, values)
            by_epoch = np.array([[line[FLOOR] for line in run] for run in runs])
            bands = [intervals.t_interval(column) for column in by_epoch.T]
            lines[name] = figures.Curve(
                self._epochs(),
                [(band.mean / bands[0].mean) for band in bands],
            )
        figures.save(
            figures.curves(
                lines,
                f"loss above the floor, over its first value ({head} head)",
                x_label="epochs of reconstruction",
            ),
            self._workdir / "figures" / f"{head}-reconstruction.svg",
            "Mean distance to the teacher less the least that the head can attain, "
            "over its value at the first evaluation.",
        )

    def _epochs(self) -> list[int]:
        every = int(np.gcd.reduce(self._config.epochs))
        return list(range(every, self._config.epochs[-1] + 1, every))

    def _similarity(self, school: School) -> None:
        """Table 1: the mean of the lists by epochs, with random and teacher."""
        config, head = self._config, school.head
        seeds = range(config.seeds)
        random = [school.similarity(self._table(head, seed)) for seed in seeds]
        teacher = school.similarity(self._teacher.vectors)
        by_epoch: dict[str, dict[int, list[float]]] = {}
        for name, students in self._students(head).items():
            runs = [reconstruct.history(self._workdir, one) for one in students]
            by_epoch[name] = {
                epoch: [run[i][SIMILARITY] for run in runs]
                for i, epoch in enumerate(self._epochs())
                if epoch in config.epochs
            }
        starts = [scores[SIMILARITY] for scores in random]
        for metric in random[0]:
            self._add(self._name(head, "random"), metric, [s[metric] for s in random])
            self._add("teacher", metric, [teacher[metric]])
            for name, students in self._students(head).items():
                ends = [reconstruct.last_scores(self._workdir, one) for one in students]
                self._add(self._name(head, name), metric, [e[metric] for e in ends])
        for epoch in config.epochs[:-1]:
            for name, scores in by_epoch.items():
                metric = f"{SIMILARITY} after {epoch} epochs"
                self._add(self._name(head, name), metric, scores[epoch])
        last = {name: scores[config.epochs[-1]] for name, scores in by_epoch.items()}
        self._similarity_claims(head, starts, teacher[SIMILARITY], last)
        figures.save(
            figures.curves(
                {
                    name: figures.Curve(
                        [0, *scores],
                        [np.mean(starts), *(np.mean(v) for v in scores.values())],
                    )
                    for name, scores in by_epoch.items()
                },
                f"mean similarity × 100 ({head} head)",
                x_label="epochs of reconstruction",
            ),
            self._workdir / "figures" / f"{head}-similarity.svg",
            "Mean Spearman × 100 over the similarity lists; the teacher has "
            f"{teacher[SIMILARITY]:.1f}.",
        )

    def _similarity_claims(
        self,
        head: str,
        random: Sequence[float],
        teacher: float,
        last: Mapping[str, Sequence[float]],
    ) -> None:
        where = f"in mean similarity ({head} head)"
        plain = {n: v for n, v in last.items() if n in self._config.distances}
        for name, values in plain.items():
            self._claim(f"{name} beats random {where}", values, random, "points")
            self._claim(
                f"the teacher beats {name} {where}",
                [teacher] * len(values),
                values,
                "points",
            )
        if "Dcos" in plain:
            for name, values in plain.items():
                if name != "Dcos":
                    claim = f"Dcos beats {name} {where}"
                    self._claim(claim, plain["Dcos"], values, "points")
        for name in self._config.permuted:
            control = last[f"{name}, permuted"]
            claim = f"{name} beats its permuted control {where}"
            self._claim(claim, last[name], control, "points")

    def _analogy(self, school: School) -> None:
        """Tables 2 and 4: analogies by 3CosMul, neighbours and how many are shared."""
        head, seeds = school.head, range(self._config.seeds)
        tables: dict[str, list[WordVectors]] = {
            "random": [self._table(head, seed) for seed in seeds]
        }
        for name, students in self._students(head).items():
            tables[name] = [self._table(head, one) for one in students]
        tables["teacher"] = [self._teacher.vectors]
        scores: dict[str, dict[str, list[float]]] = {}
        for name, own in tables.items():
            scores[name] = {}
            for kind, sections in self._tests.analogies.items():
                metric = f"{kind} analogies (%)"
                scores[name][metric] = [_answered(t, sections) for t in own]
            if name != "teacher":
                scores[name][OVERLAP] = [
                    100 * self._overlap(table, seed) for seed, table in enumerate(own)
                ]
            row = name if name == "teacher" else self._name(head, name)
            for metric, values in scores[name].items():
                self._add(row, metric, values)
            told = ", ".join(f"{m} {np.mean(v):.2f}" for m, v in scores[name].items())
            terminal.say(f"{head} · {name}: {told}")
        for name in self._config.distances:
            self._analogy_claims(head, scores, name)
        self._show_neighbours(head, tables)

    def _analogy_claims(
        self, head: str, scores: Mapping[str, Mapping[str, list[float]]], name: str
    ) -> None:
        own, random = scores[name], scores["random"]
        for metric, better, worse in (
            ("syntactic analogies (%)", "random", name),
            ("semantic analogies (%)", name, "random"),
            (OVERLAP, name, "random"),
        ):
            if metric in own and metric in random:
                claim = f"{better} beats {worse}: {metric} ({head} head)"
                self._claim(
                    claim, scores[better][metric], scores[worse][metric], "points"
                )
        control = scores.get(f"{name}, permuted")
        if control:
            claim = f"{name} beats its permuted control: {OVERLAP} ({head} head)"
            self._claim(claim, own[OVERLAP], control[OVERLAP], "points")

    def _overlap(self, table: WordVectors, seed: int) -> float:
        return neighbours.neighbour_overlap(
            self._teacher.vectors,
            table,
            _NEIGHBOURS,
            sample=_SAMPLE,
            resamples=0,
            seed=seed,
        ).jaccard

    def _show_neighbours(
        self, head: str, tables: Mapping[str, Sequence[WordVectors]]
    ) -> None:
        """Table 4: neighbours by the teacher, a random student and a taught one."""
        first = self._config.distances[0]
        words = [w.lower() for w in SHOWN if w.lower() in self._teacher.vectors]
        words = words or list(self._teacher.vectors.words[:3])
        shown: dict[str, dict[str, list[str]]] = {}
        for name in ("teacher", "random", first):
            table = tables[name][0]
            usable = [w for w in words if table[w].any()]
            near = neighbours.nearest_neighbours(table, usable, _TABLE)
            for word, found in zip(usable, near, strict=True):
                shown.setdefault(word, {})[name] = [w for w, _ in found]
        self._notes.setdefault("neighbours", {})[head] = shown
        storage.write_text(
            self._workdir / f"{head}-neighbours.json", json.dumps(shown, indent=1)
        )
        terminal.print_table(
            [
                {"word": word, "by": name, "nearest": " ".join(found)}
                for word, by in shown.items()
                for name, found in by.items()
            ]
        )
        print()

    def _contours(self) -> None:
        figures.save(
            reconstruction.distance_contours(model.DISTANCES),
            self._workdir / "figures" / "distances.svg",
            "Where each distance from x is the same (Figure 1 of the paper); that of "
            "Dcos is a ray.",
        )

    def _linear(self) -> None:
        school = next(iter(self._schools.values()))
        found = linear.study(self._config, self._teacher, school)
        self._notes["most influential words"] = found.pop("most influential")
        for name, seeds in found.items():
            for metric in seeds[0]:
                self._add(name, metric, [seed[metric] for seed in seeds])
        share = f"{100 * self._config.outliers:g} %"
        for label, claim in (
            ("", "without outliers LAD (D1) beats OLS (D2)"),
            (", outliers", f"with {share} outliers LAD (D1) beats OLS (D2)"),
        ):
            worse, better = (
                [seed["held-out D1"] for seed in found[f"{name}{label}"]]
                for name in linear.FITS
            )
            self._claim(f"{claim} in held-out D1", worse, better, "of OLS less LAD")

    def _tagging(self) -> None:
        """Table 3: the grid, then every system of every seed."""
        config, workdir = self._config, self._workdir
        treebank = data.load_treebank(config, self._teacher)
        self.data += treebank.data
        spelled = [treebank.characters.encode(w) for w in self._teacher.vectors.words]
        teacher = dataclasses.replace(
            self._teacher,
            characters=treebank.characters,
            spelled=batching.Ragged.of(spelled),
        )
        school = School(config, teacher, self._tests, "relu")
        taggers = tagging.Taggers(
            config,
            treebank,
            teacher,
            _vectors_of(config, teacher, treebank.words),
            school,
            workdir,
        )
        cells = tagging.grid(config, taggers, workdir)
        best = max(cells, key=lambda cell: cells[cell])
        for cell, value in cells.items():
            self._add(f"FULL, {cell}", "dev accuracy (%), grid", [100 * value])
        systems = tagging.systems(config)
        folders = tagging.folders(config, workdir, systems)
        scores = {
            system.name: [
                100
                * taggers.fit(system, best, seed, folders[system.name, seed])[
                    tagging.TEST
                ]
                for seed in range(config.seeds)
            ]
            for system in systems
        }
        accuracy = [summary_row(n, ACCURACY, v) for n, v in scores.items()]
        self.rows[:0] = accuracy
        for system in systems:
            for metric, count in taggers.stored(system).items():
                self._add(system.name, metric, [count])
        self._notes["cell"] = dataclasses.asdict(best)
        self._notes["tags"] = len(treebank.tags)
        self._notes["selection"] = (
            "test accuracy at the first epoch of best dev accuracy"
        )
        self._tagging_claims(scores)

    def _tagging_claims(self, scores: Mapping[str, list[float]]) -> None:
        wanted = [("FULL+EMB", "FULL"), ("FULL", "CHAR")]
        wanted += [(f"CHAR({d})", "CHAR") for d in self._config.distances]
        wanted += [
            (f"CHAR({d})", f"CHAR({d}, permuted)") for d in self._config.permuted
        ]
        for better, worse in wanted:
            if better in scores and worse in scores:
                claim = f"{better} beats {worse} in tagging"
                self._claim(claim, scores[better], scores[worse], "points")


def _answered(table: WordVectors, sections: Mapping) -> float:
    """Accuracy by 3CosMul in per cent; a question with a row of zeros is wrong."""
    found = analogy.analogies(table, sections, method="3cosmul", oov="wrong")
    return 100 * found.whole.accuracy


def _vectors_of(
    config: Config, teacher: data.Teacher, words: Sequence[str]
) -> dict[str, np.ndarray]:
    """Of the words that the whole teacher has, as written or in lower case."""
    whole: WordVectors = teacher.vectors
    if config.preset != "smoke":
        read, _ = tables.read(
            config.teacher, keep={f for w in words for f in (w, w.lower())}
        )
        assert not isinstance(read, packed.TokenTable)
        whole = read
    found = {}
    for word in words:
        form = word if word in whole else word.lower()
        if form in whole:
            found[word] = whole[form]
    return found
