"""Tunes the teacher, keeps its logits, trains the students, compares."""

from pathlib import Path

import jax

from experiments.common.findings import Findings
from experiments.docbert_distillation import (
    analyse,
    composed,
    costs,
    data,
    scores,
    students,
    teacher,
)
from experiments.docbert_distillation.config import ARMS, MAIN, OTHER_WAY, Config, paper
from jaxemb import terminal
from jaxemb.errors import InputError
from jaxemb.train import results


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    config.check()
    if jax.process_count() > 1:
        raise InputError("this experiment runs in one process")
    workdir = Path(config.workdir)
    task = data.load(config)
    sizes = {part: len(own) for part, own in task.documents.items()}
    terminal.say(
        ", ".join(f"{count:,} {part}" for part, count in sizes.items())
        + f"; {task.classes} classes"
    )
    taught, loaded = teacher.tune(config, task, workdir)
    logits = taught.logits()
    inputs = data.read_inputs(config, task)
    if config.study == "composed":
        return _compose(config, task, taught, loaded, inputs, logits)
    runs = _train(config, task, inputs, logits, workdir)
    shorter = {length: taught.shorter(length) for length in config.teacher.lengths}
    few = {n: taught.fewer(n) for n in config.teacher.epoch_sweep}
    fewer = {number: found for number, (found, _) in few.items()}
    here = costs.here(config, task, inputs, taught)
    sizes = {"classes": task.classes, "dim": inputs.table.shape[1]}
    widths = {
        hidden: costs.width_parameters(config, hidden, **sizes)
        for hidden in (config.sweep if "LSTM" in config.systems else ())
    }
    printed = {} if config.data == "planted" else costs.of_paper()
    findings = Findings(paper=paper(config))
    outcome = analyse.Outcome(
        config, task, runs, logits[[d.id for d in task.documents["test"]]]
    )
    analyse.add_rows(outcome, findings)
    analyse.add_teacher(outcome, taught.epochs(), shorter, fewer, findings)
    analyse.add_costs(here, widths, printed, findings)
    analyse.add_claims(outcome, findings)
    analyse.write_figures(
        outcome, here, widths, taught.epochs(), shorter, workdir / "figures"
    )
    folders = [taught.folder, workdir / "logits"]
    folders += [workdir / f"logits-{length}" for length in shorter]
    for number, (_, folder) in few.items():
        folders += [folder, workdir / f"logits-epochs-{number}"]
    folders += [
        run.folder for arms in runs.values() for own in arms.values() for run in own
    ]
    told = {
        "classes": task.classes,
        "classes that occur in training": len(
            {c for d in task.documents["train"] for c in d.classes}
        ),
        "words of tf-idf": len(inputs.tfidf.words),
        "interval": f"95 %: Student t over {config.seeds} seeds, for claims over "
        "differences paired by seed; one teacher and one test part, whose sampling is "
        "not in it. Of the teacher: bootstrap over test documents",
    }
    used = (*task.data, *loaded.data, *inputs.data)
    return _publish(config, task, inputs, used, folders, told, findings)


def _publish(config: Config, task, inputs, used, folders, told, findings) -> dict:
    return findings.publish(
        config.workdir,
        config,
        {
            "documents read": {part: len(own) for part, own in task.documents.items()},
            "test words with a vector": round(inputs.covered, 4),
            **told,
        },
        [results.origin(folder) for folder in folders],
        used,
    )


def _compose(config: Config, task, taught, loaded, inputs, logits) -> dict:
    workdir = Path(config.workdir)
    found, folders = composed.train_all(config, task, inputs, logits, workdir)
    documents = task.documents["test"]
    reached = 100 * scores.score(task, logits[[d.id for d in documents]], documents)
    findings = Findings()
    composed.add_findings(config, found, reached, findings)
    composed.write_figures(config, found, reached, workdir / "figures")
    told = {
        "interval": f"95 %: Student t over {config.seeds} seeds; claims are of means "
        "over cells, paired by seed. One teacher and one test part",
    }
    used = (*task.data, *loaded.data, *inputs.data)
    folders = [taught.folder, workdir / "logits", *folders]
    return _publish(config, task, inputs, used, folders, told, findings)


def _train(config: Config, task, inputs, logits, workdir: Path) -> analyse.Runs:
    given = (config, task, inputs, logits, workdir)
    seeds = range(config.seeds)
    runs: dict[str, dict[str, list[students.Trained]]] = {}
    for name in config.systems:
        system, other = (
            students.System(*given, name, other_way=way) for way in (False, True)
        )
        runs[name] = {arm: [system.fit(arm, seed) for seed in seeds] for arm in ARMS}
        runs[name][OTHER_WAY] = [other.fit(MAIN, seed) for seed in seeds]
    for name in config.baselines:
        system = students.System(*given, name)
        runs[name] = {"plain": [system.fit("plain", seed) for seed in seeds]}
    for hidden in config.sweep if "LSTM" in config.systems else ():
        system = students.System(*given, "LSTM", hidden=hidden)
        runs[system.name] = {MAIN: [system.fit(MAIN, seed) for seed in seeds]}
    return runs
