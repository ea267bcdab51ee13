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
AGREED = "agreement with the teacher (%)"


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
    reached = scores.macro_f1(task, outcome.taught, outcome.documents)
    findings.add("teacher", macro, [100 * reached])
    for system, arms in outcome.runs.items():
        for arm, runs in arms.items():
            name = named(system, arm)
            findings.add(name, metric, outcome.test(system, arm))
            findings.add(name, f"{metric}, dev", [100 * run.dev for run in runs])
            means = [scores.macro_f1(task, r.test, outcome.documents) for r in runs]
            findings.add(name, macro, [100 * mean for mean in means])
            same = [scores.agreement(task, run.test, outcome.taught) for run in runs]
            findings.add(name, AGREED, [100 * share for share in same])
    findings.shown += [metric, f"{metric}, dev", macro, AGREED]


def add_teacher(
    outcome: Outcome,
    epochs: list[float],
    shorter: Mapping[int, np.ndarray],
    fewer: Mapping[int, np.ndarray],
    findings: Findings,
) -> None:
    """Figure 2: the teacher after every epoch, tuned for fewer, on shorter cuts."""
    task, documents = outcome.task, outcome.documents
    for number, value in enumerate(epochs, 1):
        metric = f"teacher, {outcome.config.metric}, dev, by epoch"
        findings.add(f"epoch {number}", metric, [100 * value])
    whole = scores.resampled(task, outcome.taught, documents)
    tuned = outcome.config.teacher.epochs
    findings.rows += [
        interval_row(
            f"{number} epochs",
            f"teacher, {outcome.config.metric}, by epochs tuned for",
            intervals.bootstrap(
                scores.resampled(task, logits, documents), len(documents)
            ),
        )
        for number, logits in {**fewer, tuned: outcome.taught}.items()
    ]
    for number, logits in fewer.items():
        few = scores.resampled(task, logits, documents)
        findings.claims.append(
            _costs_the_teacher(
                f"tuning for {number} of {tuned} epochs", whole, few, outcome, ""
            )
        )
    for length, logits in shorter.items():
        cut = scores.resampled(task, logits, documents)
        found = intervals.bootstrap(cut, len(documents))
        metric = f"teacher, {outcome.config.metric}, by pieces read"
        findings.rows.append(interval_row(f"{length} pieces", metric, found))
        what = f"cutting documents from {outcome.config.teacher.length} to {length}"
        more = "; tuned once, at full length"
        claim = _costs_the_teacher(f"{what} pieces", whole, cut, outcome, more)
        findings.claims.append(claim)


def _costs_the_teacher(what: str, whole, less, outcome: Outcome, more: str):
    count = len(outcome.documents)
    gap = intervals.paired_bootstrap(whole, less, count)
    return results.Claim(
        claim=f"{what} costs the teacher {outcome.config.metric}",
        verdict=intervals.verdict(gap.low, gap.high),
        evidence=f"difference {gap.mean:+.3g} [{gap.low:.3g}, {gap.high:.3g}], paired "
        f"bootstrap over {count} documents{more}",
    )


def add_costs(
    here: Mapping[str, costs.Cost],
    widths: Mapping[int, int],
    paper: Mapping[str, costs.Cost],
    findings: Findings,
) -> None:
    """Table 3: of the run's models, of LSTMs of other widths, and of the paper's."""
    metrics = ("parameters (M)", "FLOPs of a document (M)", "milliseconds a document")
    for system, found in here.items():
        findings.add(system, metrics[0], [found.parameters / 1e6])
        findings.add(system, metrics[1], [found.flops / 1e6])
        if found.seconds is not None:
            findings.add(system, metrics[2], [1e3 * found.seconds])
        if system != "teacher":
            ratio = here["teacher"].flops / found.flops
            findings.add(system, "the teacher's FLOPs over its own", [ratio])
    for width, parameters in widths.items():
        findings.add(f"LSTM-{width}", metrics[0], [parameters / 1e6])
    findings.shown += [*metrics, "the teacher's FLOPs over its own"]
    if not paper:
        return
    _add_paper_costs(paper, metrics[:2], findings)


def _add_paper_costs(paper: Mapping[str, costs.Cost], metrics, findings) -> None:
    """Counts of shapes, which no data decide, and the verdict on the claim of both."""
    of = ", at the paper's sizes"
    ratio_metric = f"FLOPs, BERT base's over its own{of}"
    findings.shown += [f"{metric}{of}" for metric in metrics] + [ratio_metric]
    bert = paper["BERT-base"]
    for system, found in paper.items():
        values = found.parameters / 1e6, found.flops / 1e6
        for metric, value, printed in zip(
            metrics, values, costs.published(system), strict=False
        ):
            findings.rows.append(
                summary_row(
                    system,
                    f"{metric}{of}",
                    [value],
                    published=printed,
                    source="Table 3",
                )
            )
        findings.rows.append(
            summary_row(
                system,
                ratio_metric,
                [bert.flops / found.flops],
                published=costs.RATIOS[system],
                source="Table 3",
            )
        )
    share = 100 * paper["LSTM"].parameters / bert.parameters
    ratio = bert.flops / paper["LSTM"].flops
    for claim, holds, evidence in (
        ("has 3 % of BERT base's parameters", round(share) <= 3, f"{share:.2f} %"),
        ("takes a fortieth of BERT base's FLOPs", ratio >= 40, f"1 in {ratio:.1f}"),
    ):
        findings.claims.append(
            results.Claim(
                claim=f"at the paper's sizes the LSTM {claim}",
                verdict="supported" if holds else "contradicted",
                evidence=f"{evidence}, counted here of shapes and of the compiled "
                "program, without an interval",
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
            printed=(metric, f"KD-{system}", "teacher"),
            margin=MARGIN,
        )
    for system in (*config.systems, *config.baselines):
        findings.beats(
            f"the teacher beats {system}, trained plain, {metric}",
            [outcome.points(outcome.taught)] * config.seeds,
            outcome.test(system, "plain"),
            printed=(metric, "teacher", system),
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
    widths: Mapping[int, int],
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
    if widths and "LSTM" in here:
        _draw_sizes(outcome, here, widths, max(epochs), folder)
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


def _draw_sizes(
    outcome: Outcome,
    here: Mapping[str, costs.Cost],
    widths: Mapping[int, int],
    teacher: float,
    folder: Path,
) -> None:
    """Figure 1: development scores by the number of parameters."""
    sizes = {f"LSTM-{width}": count for width, count in widths.items()}
    sizes["LSTM"] = here["LSTM"].parameters
    names = sorted(sizes, key=lambda name: sizes[name])
    dev = [[100 * run.dev for run in outcome.runs[name][MAIN]] for name in names]
    millions = [sizes[name] / 1e6 for name in names]
    figures.save(
        figures.curves(
            {"distilled LSTM": figures.banded(millions, dev)},
            f"{outcome.config.metric}, dev",
            x_label="parameters (M), embeddings left out",
            log_x=True,
            levels={"teacher": 100 * teacher},
        ),
        folder / "sizes.svg",
        "Development score of the distilled LSTM by its size (Figure 1).",
    )


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
    """F1 of the classes tested, the commonest first, with a teacher and without."""
    task = outcome.task
    counts = task.right(task.documents["train"]).sum(axis=0)
    order = np.argsort(-counts, kind="stable")
    order = order[task.right(outcome.documents).any(axis=0)[order]]
    groups = np.array_split(order, min(5, len(order)))
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
