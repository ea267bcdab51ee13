"""Rows, claims and figures of what teacher and students have done."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.common.findings import Findings
from experiments.common.rows import interval_row, summary_row
from experiments.docbert_distillation import costs, scores
from experiments.docbert_distillation.config import ARMS, MAIN, OTHER_WAY, Config
from experiments.docbert_distillation.data import Task
from experiments.docbert_distillation.students import Trained
from jaxemb.analysis import figures
from jaxemb.eval import intervals
from jaxemb.train import results

Runs = Mapping[str, Mapping[str, list[Trained]]]
"""System to arm to one a seed."""

MARGIN = 1.0  # points that pass for parity


class Outcome:
    """What a run has made, as figures."""

    def __init__(self, config: Config, task: Task, runs: Runs, taught: np.ndarray):
        self.config, self.task, self.runs = config, task, runs
        self.taught = taught
        """The teacher's logits of the test part."""
        self.documents = task.documents["test"]

    def test(self, system: str, arm: str) -> list[float]:
        """Test scores in points, a seed each."""
        return [self.points(run.test) for run in self.runs[system][arm]]

    def points(self, logits: np.ndarray) -> float:
        """The score of logits of the test part."""
        return 100 * scores.score(self.task, logits, self.documents)


def named(system: str, arm: str) -> str:
    """What a row is called."""
    return system if arm == "plain" else f"{system}, {arm}"


def add_rows(outcome: Outcome, findings: Findings) -> None:
    """Test and development scores, macro F1, agreement with the teacher."""
    config, task = outcome.config, outcome.task
    metric = config.metric
    statistic = scores.resampled(task, outcome.taught, outcome.documents)
    count = len(outcome.documents)
    found = intervals.bootstrap(statistic, count)
    findings.rows.append(interval_row("teacher", metric, found))
    macro = "macro F1 (%)"
    each = scores.class_scores(task, outcome.taught, outcome.documents)
    findings.add("teacher", macro, [100 * float(np.mean(each))])
    for system, arms in outcome.runs.items():
        for arm, runs in arms.items():
            name = named(system, arm)
            findings.add(name, metric, outcome.test(system, arm))
            findings.add(name, f"{metric}, dev", [100 * run.dev for run in runs])
            classes = [
                scores.class_scores(task, run.test, outcome.documents) for run in runs
            ]
            findings.add(name, macro, [100 * float(np.mean(c)) for c in classes])
            same = [scores.agreement(task, run.test, outcome.taught) for run in runs]
            agreed = "agreement with the teacher (%)"
            findings.add(name, agreed, [100 * share for share in same])
    findings.shown += [metric, f"{metric}, dev", macro, agreed]


def add_teacher(
    outcome: Outcome,
    epochs: list[float],
    shorter: Mapping[int, np.ndarray],
    findings: Findings,
) -> None:
    """Figure 2: the teacher after every epoch, and on shorter cuts of documents."""
    task, documents = outcome.task, outcome.documents
    for number, value in enumerate(epochs, 1):
        metric = f"teacher, {outcome.config.metric}, dev, by epoch"
        findings.add(f"epoch {number}", metric, [100 * value])
    whole = scores.resampled(task, outcome.taught, documents)
    for length, logits in shorter.items():
        cut = scores.resampled(task, logits, documents)
        found = intervals.bootstrap(cut, len(documents))
        metric = f"teacher, {outcome.config.metric}, by pieces read"
        findings.rows.append(interval_row(f"{length} pieces", metric, found))
        gap = intervals.paired_bootstrap(whole, cut, len(documents))
        findings.claims.append(
            results.Claim(
                claim=f"cutting documents from {outcome.config.teacher.length} to "
                f"{length} pieces costs the teacher {outcome.config.metric}",
                verdict=intervals.verdict(gap.low, gap.high),
                evidence=f"difference {gap.mean:+.3g} [{gap.low:.3g}, {gap.high:.3g}], "
                f"paired bootstrap over {len(documents)} documents; tuned once, at "
                "full length",
            )
        )


def add_costs(
    here: Mapping[str, costs.Cost], paper: Mapping[str, costs.Cost], findings: Findings
) -> None:
    """Table 3: of the run's models, and of the paper's."""
    metrics = ("parameters (M)", "FLOPs of a document (M)", "milliseconds a document")
    for system, found in here.items():
        findings.add(system, metrics[0], [found.parameters / 1e6])
        findings.add(system, metrics[1], [found.flops / 1e6])
        if found.seconds is not None:
            findings.add(system, metrics[2], [1e3 * found.seconds])
    findings.shown += metrics
    for system, found in paper.items():
        values = found.parameters / 1e6, found.flops / 1e6
        for metric, value, printed in zip(
            metrics, values, costs.published(system), strict=False
        ):
            # Counts of shapes, which no data decide.
            findings.rows.append(
                summary_row(
                    system,
                    f"{metric}, at the paper's sizes",
                    [value],
                    published=printed,
                    source="Table 3",
                )
            )


def add_claims(outcome: Outcome, findings: Findings) -> None:
    """Whether distillation helps, what of it is augmentation, and how near it comes."""
    config = outcome.config
    metric = config.metric
    pairs = [
        (MAIN, "plain", "distillation on the transfer set beats plain training"),
        ("KD", "plain", "distillation alone beats plain training"),
        ("augmented", "plain", "augmentation alone beats plain training"),
        (MAIN, "augmented", "distillation beats labels on the same transfer set"),
        (MAIN, "KD", "augmentation helps distillation"),
        (MAIN, OTHER_WAY, f"{config.direction} beats the other direction"),
    ]
    for system in config.systems:
        for better, worse, what in pairs:
            printed = (metric, f"KD-{system}", system)
            findings.beats(
                f"{system}: {what}, {metric}",
                outcome.test(system, better),
                outcome.test(system, worse),
                printed=printed if (better, worse) == (MAIN, "plain") else None,
            )
        findings.beats(
            f"{system} distilled is less than {MARGIN:g} point below its teacher, "
            f"{metric}",
            outcome.test(system, MAIN),
            [outcome.points(outcome.taught)] * config.seeds,
            printed=(metric, f"KD-{system}", "BERT-base"),
            margin=MARGIN,
        )
    half = f"LSTM-{config.students.hidden // 2}"
    if half in outcome.runs:
        findings.beats(
            f"at half its width the distilled LSTM loses less than {MARGIN:g} point, "
            f"{metric}",
            outcome.test(half, MAIN),
            outcome.test("LSTM", MAIN),
            margin=MARGIN,
        )


def write_figures(
    outcome: Outcome,
    here: Mapping[str, costs.Cost],
    epochs: list[float],
    shorter: Mapping[int, np.ndarray],
    folder: Path,
) -> None:
    """The control, Figures 1 and 2, and what distillation does to rare classes."""
    config = outcome.config
    teacher = outcome.points(outcome.taught)
    cells = [
        [float(np.mean(outcome.test(system, arm))) for arm in ARMS]
        for system in config.systems
    ]
    figures.save(
        figures.heat_map(
            np.array(cells), list(config.systems), list(ARMS), config.metric
        ),
        folder / "control.svg",
        f"Mean test scores of {config.seeds} seeds, all arms of as many steps; the "
        f"teacher has {teacher:.1f}.",
    )
    widths = sorted({*config.sweep, config.students.hidden})
    if config.sweep and "LSTM" in outcome.runs:
        names = [
            "LSTM" if width == config.students.hidden else f"LSTM-{width}"
            for width in widths
        ]
        line = figures.banded(widths, [outcome.test(name, MAIN) for name in names])
        figures.save(
            figures.curves(
                {"distilled LSTM": line},
                config.metric,
                x_label="states of each direction",
                log_x=True,
                levels={"teacher": teacher},
            ),
            folder / "width.svg",
            "Test score of the distilled LSTM by its width (Figure 1).",
        )
    figures.save(
        figures.curves(
            {
                "teacher": figures.Curve(
                    list(range(1, len(epochs) + 1)), _points(epochs)
                )
            },
            f"{config.metric}, dev",
            x_label="epochs",
        ),
        folder / "epochs.svg",
        "The teacher's development score after each epoch of one schedule (Figure 2).",
    )
    lengths = [*shorter, config.teacher.length]
    by_length = [*(outcome.points(logits) for logits in shorter.values()), teacher]
    figures.save(
        figures.curves(
            {"teacher": figures.Curve(lengths, by_length)},
            config.metric,
            x_label="pieces read",
        ),
        folder / "length.svg",
        "Test score of the tuned teacher on shorter cuts (Figure 2; tuned once).",
    )
    _draw_costs(outcome, here, teacher, folder)
    _draw_gains(outcome, folder)


def _points(values: list[float]) -> list[float]:
    return [100 * value for value in values]


def _draw_costs(outcome: Outcome, here, teacher: float, folder: Path) -> None:
    reached = {
        system: float(np.mean(outcome.test(system, arm)))
        for system in here
        for arm in [MAIN if system in outcome.config.systems else "plain"]
        if system != "teacher"
    }
    reached["teacher"] = teacher
    figures.save(
        figures.curves(
            {
                name: figures.Curve([here[name].flops / 1e6], [value])
                for name, value in reached.items()
            },
            outcome.config.metric,
            x_label="FLOPs of a document (M)",
            log_x=True,
            joined=False,
        ),
        folder / "cost.svg",
        "Students distilled, baselines plain: score by operations of the compiled "
        "program.",
    )


def _draw_gains(outcome: Outcome, folder: Path) -> None:
    """F1 of classes, the commonest first, with a teacher and without."""
    task = outcome.task
    counts = scores.right(task, task.documents["train"]).sum(axis=0)
    order = np.argsort(-counts, kind="stable")
    groups = np.array_split(order, min(5, task.classes))
    lines = {}
    for system in outcome.config.systems:
        gains = []
        for with_teacher, without in zip(
            outcome.runs[system][MAIN], outcome.runs[system]["augmented"], strict=True
        ):
            first, second = (
                scores.class_scores(task, run.test, outcome.documents)
                for run in (with_teacher, without)
            )
            gains.append([100 * float(np.mean((first - second)[g])) for g in groups])
        places = list(range(1, len(groups) + 1))
        lines[system] = figures.banded(places, np.transpose(gains))
    figures.save(
        figures.curves(
            lines, "gain in F1 by distillation, points", x_label="fifths of the classes"
        ),
        folder / "classes.svg",
        "What the teacher adds on the same transfer set, by classes from the commonest "
        "to the rarest.",
    )
