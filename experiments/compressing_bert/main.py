"""Pretrains and tunes the arms of a preset; rows, claims and figures of them."""

from pathlib import Path

import jax

from experiments.common.findings import Findings
from experiments.compressing_bert import analyse, data, published, tuned
from experiments.compressing_bert.config import Config
from experiments.compressing_bert.model import Pretrainer
from jaxemb import terminal
from jaxemb.errors import InputError
from jaxemb.train import results


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    config.check()
    if jax.process_count() > 1:
        raise InputError("this experiment runs in one process")
    workdir = Path(config.workdir)
    findings = Findings(paper={} if config.text == "planted" else published.accuracy())
    world = data.load(config)
    terminal.say(
        f"{len(world.train):,} texts of {world.train.shape[1]} pieces, "
        f"{len(world.held_out):,} held out"
    )
    pretrainer = Pretrainer(config, world)
    used, folders = [*world.data], []
    if "pretraining" in config.studies:
        analyse.study(config, world, pretrainer, workdir, findings)
    if "tuning" in config.studies:
        done = tuned.study(config, world, pretrainer, workdir, findings)
        used += done.data
        folders += done.folders
    return findings.publish(
        workdir,
        config,
        _told(config),
        [results.origin(folder) for folder in (*pretrainer.folders, *folders)],
        used,
    )


def _told(config: Config) -> dict:
    """What a reader must know of the protocol."""
    return {
        "interval": f"95 %: Student t over {config.seeds} seeds of tuning, for claims "
        "over differences paired by seed; of pretraining there is one run an arm, "
        "whose interval is over held-out batches",
        "objective": "hidden pieces alone, no next sentence",
        "start": "all arms go on from one burned-in model, whose head was new; weights "
        "that come with a head need it before random removal alone",
        "average": "only where one run has several tasks of accuracy",
    }
