"""Tunes every system on every task with every seed, and judges the claims."""

import dataclasses

import jax
import numpy as np
from etils import epath

from experiments.alice import data, tuning
from experiments.alice.config import PAPER, Config
from experiments.alice.model import LINE
from experiments.alice.tuning import Measured
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
        _tell(config, loaded, findings)
        tuner, setting, tried, choices = tuning.choose(config, loaded, workdir)
        folders += choices
        _tell_choice(loaded, setting, tried, findings)
        found: Found = {system: [] for system in config.systems}
        swept: dict[float, list[Measured]] = {radius: [] for radius in config.sweep}
        for seed in range(config.seeds):
            for system in config.systems:
                found[system].append(tuner.measured(system, seed, setting))
                folders.append(tuner.folder(system, seed))
            for radius, own in swept.items():
                there, of = setting._replace(epsilon=radius), f", ε = {radius:g}"
                own.append(tuner.measured("ALICE", seed, there, of))
                folders.append(tuner.folder("ALICE", seed, of))
        seconds = {s: tuner.step_seconds(s, setting) for s in config.systems}
        _report(config, loaded, found, findings)
        _report_times(loaded, seconds, findings)
        _report_sweep(loaded, swept, findings)
        _draw(config, task, found, setting.epsilon, workdir)
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


def _tell_choice(loaded: data.Loaded, setting, tried, findings: Findings) -> None:
    title = data.TITLES[loaded.task]
    findings.notes[f"{title}: chosen"] = setting._asdict()
    for name, score in tried.items():
        findings.add(name, f"{title}, held-out score of the choice (%)", [score])


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
            held_out = f"{title}, {metric}, held out"
            for system, own in found.items():
                findings.add(system, held_out, [one.dev[metric] for one in own])
            findings.shown += [f"{title}, {metric}", held_out]
            _claims(f"{title}, {metric}", metric, found, findings)
    _report_attacks(config, title, found, findings)
    _robust(config, title, found, findings)
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


def _report_attacks(config: Config, title: str, found: Found, findings) -> None:
    units = {"accuracy": " (%)", "loss": "", "divergence": "", "ratio": " (%)"}
    for name, unit in units.items():
        for place, radius in enumerate((0.0, *config.robustness.radii)):
            if not radius and name in ("divergence", "ratio"):
                continue  # 0 by what they are
            metric = f"{title}, {_where(radius)}: {name}{unit}"
            for system, own in found.items():
                values = [one.attacked[name][place] for one in own]
                findings.add(system, metric, values)
            if radius and name != "ratio":
                findings.shown.append(metric)


def _where(radius: float) -> str:
    if not radius:
        return "the examples of the attacks, unchanged"
    return "attacked within ε" if radius == 1 else f"attacked within {radius:g} ε"


def _report_times(loaded: data.Loaded, seconds, findings: Findings) -> None:
    metric = f"{data.TITLES[loaded.task]}, step_time (ms)"
    for system, own in seconds.items():
        findings.add(system, metric, [1e3 * own])
    if "plain" in seconds:
        ratio = f"{data.TITLES[loaded.task]}, step_time over the plain step's"
        for system, own in seconds.items():
            findings.add(system, ratio, [own / seconds["plain"]])
        findings.shown.append(ratio)


def _report_sweep(loaded: data.Loaded, swept, findings: Findings) -> None:
    title = data.TITLES[loaded.task]
    for radius, own in swept.items():
        for metric in list(own[0].scores)[: 1 if loaded.options else 2]:
            name = f"{title}, {metric}, ALICE by its radius"
            findings.add(f"ε = {radius:g}", name, [one.scores[metric] for one in own])


def _claims(metric: str, name: str, found: Found, findings: Findings) -> None:
    for better, worse in [*_ORDER, *_BREGMAN]:
        if better in found and worse in found:
            findings.beats(
                f"{better} beats {worse}: {metric}",
                *([one.scores[name] for one in found[s]] for s in (better, worse)),
                printed=(metric, better, worse),
            )


def _robust(config: Config, title: str, found: Found, findings: Findings) -> None:
    """Whether training against changes helps against them, in the ball trained in."""
    place = 1 + config.robustness.radii.index(1.0)
    for better in ("ADV", "SMART", "ALICE"):
        if better not in found or "plain" not in found:
            continue
        rows = [found[system] for system in (better, "plain")]
        findings.beats(
            f"attacked within ε, {better} is right more often than plain: {title}",
            *([one.attacked["accuracy"][place] for one in own] for own in rows),
        )
        findings.beats(
            f"attacked within ε, {better} changes its mind less than plain (KL): "
            f"{title}",
            *([-one.attacked["divergence"][place] for one in own] for own in rows),
        )


def _draw(
    config: Config, task: str, found: Found, epsilon: float, workdir: epath.Path
) -> None:
    title, radii = data.TITLES[task], (0.0, *config.robustness.radii)
    seeds = f"95 % bands over {config.seeds} seeds"
    whats = {"accuracy": "accuracy (%)", "loss": "loss", "divergence": "KL"}
    for name, what in whats.items():
        lines = {
            system: figures.banded(
                list(radii),
                [[one.attacked[name][i] for one in own] for i in range(len(radii))],
            )
            for system, own in found.items()
        }
        figures.save(
            figures.curves(
                lines,
                f"{title}: {what} under attack",
                x_label=f"radius, in ε = {epsilon:g}",
            ),
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
            x_label=f"distance in steps of {max(radii) * epsilon:g}",
        ),
        workdir / "figures" / f"{task.replace(' ', '-')}-line.svg",
        f"Mean test loss along the slope of each text, {seeds}.",
    )


def _part(config: Config, one: results.Data) -> results.Data:
    """A data set of which not all is used is a subset."""
    capped = config.examples is not None or config.test_examples is not None
    if one.name in config.tasks and capped and one.kind == "real":
        return dataclasses.replace(one, kind="subset")
    return one


def _told(config: Config) -> dict:
    """What a reader must know of the protocol."""
    return {
        "interval": f"95 %: Student t over {config.seeds} seeds, for claims over "
        "differences paired by seed (the same examples, order, head and dropout); one "
        "test part, whose sampling is not in it",
        "chosen by": "the epoch of best F1 (pairs) or accuracy on what is held out; "
        "batch, rate (by plain) and radius (by ALICE) likewise, of the first seed",
        "held out": "scores of each seed's own fold (or of the development part), the "
        "mean being that of a cross-validation; the epoch was chosen by them",
    }
