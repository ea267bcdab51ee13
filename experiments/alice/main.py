"""Tunes every system on every task with every seed, and judges the claims."""

import jax
import numpy as np
from etils import epath

from experiments.alice import data
from experiments.alice.config import PAPER, Config
from experiments.alice.model import LINE, Measured, Tuner
from experiments.common.findings import Findings
from jaxemb import terminal
from jaxemb.analysis import figures
from jaxemb.errors import InputError
from jaxemb.train import results

Found = dict[str, list[Measured]]  # system to what its seeds measured

# What the paper claims, and two claims of robustness, which it only hopes for.
_ORDER = [("ADV", "plain"), ("SMART", "plain"), ("ALICE", "plain")]
_ORDER += [("ALICE", "ADV"), ("ALICE", "SMART")]
_BREGMAN = [("SMART+Bregman", "SMART"), ("ALICE+Bregman", "ALICE")]


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    config.check()
    if jax.process_count() > 1:
        raise InputError("this experiment runs in one process")
    workdir = epath.Path(config.workdir)
    findings = Findings(paper={} if config.planted else PAPER)
    folders, used = [workdir], {}
    for task in config.tasks:
        loaded = data.load(config, task)
        used |= {one.name: one for one in loaded.data}
        tuner = Tuner(config, loaded, workdir)
        _tell(config, loaded, findings)
        found: Found = {system: [] for system in config.systems}
        for seed in range(config.seeds):
            for system in config.systems:
                found[system].append(tuner.measured(system, seed))
                folders.append(tuner.folder(system, seed))
        _report(config, loaded, found, findings)
        _draw(config, task, found, workdir)
    return findings.publish(
        workdir,
        config,
        _told(config),
        list(map(results.origin, folders)),
        [_part(config, one) for one in used.values()],
    )


def _tell(config: Config, loaded: data.Loaded, findings: Findings) -> None:
    training, dev = loaded.split(config, 0)
    labels = np.asarray(loaded.test.columns["labels"])
    most = 100 * float(np.bincount(labels).max() / len(labels))
    title = data.TITLES[loaded.task]
    findings.notes[f"{title}: examples trained on, held out, tested"] = [
        len(part.examples) for part in (training, dev, loaded.test)
    ]
    findings.notes[f"{title}: commonest label of the test (%)"] = round(most, 2)
    findings.notes[f"{title}: padded lengths"] = list(loaded.buckets)
    terminal.say(
        f"{title}: {len(training.examples):,} examples a seed, {len(dev.examples):,} "
        f"held out, {len(loaded.test.examples):,} tested, lengths {loaded.buckets}"
    )


def _report(
    config: Config, loaded: data.Loaded, found: Found, findings: Findings
) -> None:
    title = data.TITLES[loaded.task]
    metrics = list(next(iter(found.values()))[0].scores)
    main = metrics[: 1 if loaded.options else 2]
    for metric in metrics:
        for system, own in found.items():
            findings.add(
                system, f"{title}, {metric}", [one.scores[metric] for one in own]
            )
        if metric in main:
            findings.shown.append(f"{title}, {metric}")
            _claims(f"{title}, {metric}", metric, found, findings)
    radii = config.robustness.radii
    for name, unit in (("accuracy", " (%)"), ("divergence", ""), ("ratio", " (%)")):
        for place, radius in enumerate(radii):
            metric = f"{title}, attacked at {radius:g}: {name}{unit}"
            for system, own in found.items():
                values = [one.attacked[name][place] for one in own]
                findings.add(system, metric, values)
            if radius and name != "ratio":
                findings.shown.append(metric)
    _robust(title, radii, found, findings)
    for kind in ("labelled_ratio", "virtual_ratio"):
        for system, own in found.items():
            if all(kind in one.ratios for one in own):
                what = kind.removesuffix("_ratio")
                findings.add(
                    system,
                    f"{title}, {what} change over embeddings (%)",
                    [one.ratios[kind] for one in own],
                )
    for system, own in found.items():
        findings.add(system, f"{title}, epoch chosen", [one.epoch for one in own])


def _claims(metric: str, name: str, found: Found, findings: Findings) -> None:
    for better, worse in [*_ORDER, *_BREGMAN]:
        if better in found and worse in found:
            findings.beats(
                f"{better} beats {worse}: {metric}",
                *([one.scores[name] for one in found[s]] for s in (better, worse)),
                printed=(metric, better, worse),
            )


def _robust(title: str, radii: tuple[float, ...], found: Found, findings) -> None:
    """Whether training against changes helps against them, at the largest radius."""
    for better in ("ADV", "SMART", "ALICE"):
        if better not in found or "plain" not in found:
            continue
        rows = [found[system] for system in (better, "plain")]
        findings.beats(
            f"attacked at {radii[-1]:g}, {better} is right more often than plain: "
            f"{title}",
            *([one.attacked["accuracy"][-1] for one in own] for own in rows),
        )
        findings.beats(
            f"attacked at {radii[-1]:g}, {better} changes its mind less than plain "
            f"(KL): {title}",
            *([-one.attacked["divergence"][-1] for one in own] for own in rows),
        )


def _draw(config: Config, task: str, found: Found, workdir: epath.Path) -> None:
    title, radii = data.TITLES[task], config.robustness.radii
    seeds = f"95 % bands over {config.seeds} seeds"
    for name, what in (("accuracy", "accuracy (%)"), ("divergence", "KL")):
        lines = {
            system: figures.banded(
                list(radii),
                [[one.attacked[name][i] for one in own] for i in range(len(radii))],
            )
            for system, own in found.items()
        }
        figures.save(
            figures.curves(lines, f"{title}: {what} under attack", x_label="radius"),
            workdir / "figures" / f"{task.replace(' ', '-')}-{name}.svg",
            f"Test examples whose embeddings are changed to raise the loss, {seeds}; "
            "radii are largest entries of the change of a piece's embedding.",
        )
    lines = {
        system: figures.banded(
            list(LINE), [[one.line[i] for one in own] for i in range(len(LINE))]
        )
        for system, own in found.items()
    }
    figures.save(
        figures.curves(
            lines,
            f"{title}: loss on a line through the embeddings",
            x_label=f"distance in steps of {max(radii):g}",
        ),
        workdir / "figures" / f"{task.replace(' ', '-')}-line.svg",
        f"Mean test loss along the slope of each text, {seeds}.",
    )


def _part(config: Config, one: results.Data) -> results.Data:
    """A data set of which not all is used is a subset."""
    capped = config.examples is not None or config.test_examples is not None
    if one.name in config.tasks and capped and one.kind == "real":
        return results.Data(
            name=one.name,
            kind="subset",
            source=one.source,
            sha256=one.sha256,
            size=one.size,
        )
    return one


def _told(config: Config) -> dict:
    """What a reader must know of the protocol."""
    return {
        "interval": f"95 %: Student t over {config.seeds} seeds, for claims over "
        "differences paired by seed (the same examples, order, head and dropout); one "
        "test part, whose sampling is not in it",
        "chosen by": "the epoch of best F1 (pairs) or accuracy on what is held out",
    }
