"""Trains what a preset asks for, compares, draws."""

import dataclasses
from pathlib import Path

from etils import epath

from experiments.common.rows import print_by_system, print_claims
from experiments.multitask_meta_embedding import (
    analogies,
    analyse,
    data,
    extrinsic,
    similarity,
)
from experiments.multitask_meta_embedding.config import EXTRINSIC, SLUG, Config
from experiments.multitask_meta_embedding.outcome import Outcome
from jaxemb import storage
from jaxemb.errors import InputError
from jaxemb.spaces import combine
from jaxemb.spaces.ensemble import EmbeddingEnsemble
from jaxemb.train import loop, results

_COLUMNS = 4  # metrics that are printed
_METHODS = (
    "95 %: rows, Student's t over seeds; claims on similarity, bootstrap over pairs of "
    "words, each with its scores in every list that has it, of the mean over seeds and "
    "lists, and Welch's interval over seeds, whose squares add; on analogies, the "
    "bootstrap over the pairs of words that questions are made of, or over relations, "
    "and Student's t over seeds, whose squares add; other claims, paired t over seeds "
    "or as their evidence says. Seeds share the order of batches"
)


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    if not storage.is_local(config.workdir):
        raise InputError(f"--workdir {config.workdir}: expected a local folder")
    if not config.is_planted and len(config.sources) < 2:
        raise InputError(
            f"--sources: expected two tables or more, found {len(config.sources)}"
        )
    workdir = Path(config.workdir)
    loop.claim(epath.Path(workdir), _deciding(config))
    found = Outcome()
    _on_similarity(config, workdir, found)
    for task in EXTRINSIC:
        if task in config.tasks:
            found.take(extrinsic.run(config, task, workdir))
    plain = dataclasses.replace(config, run=type(config.run)(), trained=None)
    parts = [results.origin(part) for part in sorted(found.parts)]
    written = results.write(
        workdir,
        slug=SLUG,
        preset=config.preset,
        config={**results.as_json(plain), **found.told, "interval": _METHODS},
        origins=[*parts, {"commits": [results.commit()], "seconds": 0.0}],
        data=list({one.name: one for one in found.data}.values()),
        rows=found.rows,
        claims=found.claims,
    )
    metrics = list(dict.fromkeys(row.metric for row in found.rows))
    print_by_system(found.rows, metrics[:_COLUMNS])
    print_claims(found.claims)
    return written


def _on_similarity(config: Config, workdir: Path, found: Outcome) -> None:
    wanted = {"unsupervised", "supervised", "ablations", "analogies"}
    if not wanted & set(config.tasks):
        return
    world = data.load_world(config)
    measurer = similarity.Measurer(config, world)
    for task in ("unsupervised", "supervised", "ablations"):
        if task in config.tasks:
            getattr(measurer, task)()
    measured = measurer.measured
    if measured.cosines:
        outcome = analyse.Tables(config, measured)
        rows = outcome.rows()
        found.rows += rows
        found.claims += outcome.claims()
        outcome.write_figures(workdir / "figures")
        if not set(EXTRINSIC) & set(config.tasks):
            found.told |= outcome.shown(rows)
    if "analogies" in config.tasks:
        found.take(analogies.run(config, measurer))
    if config.export:
        paths = measurer.export(workdir, _everything(config))
        print(f"meta-embeddings: {', '.join(map(str, paths))}")
    found.data += world.data
    found.told |= analyse.told_of(measured)
    found.parts |= measured.parts


def _everything(config: Config) -> EmbeddingEnsemble:
    """The words of the tables in their order, as many as asked for."""
    tables, _ = data.read_sources(config)
    words = combine.all_words(list(tables.values()))[: config.words]
    return EmbeddingEnsemble.of(tables, words)


def _deciding(config: Config) -> dict:
    """The settings that decide what finished parts hold."""
    settings = results.as_json(config)
    for name in ("preset", "run", "resamples", "export", "words", "trained"):
        del settings[name]
    if not settings["multitask"]["hold_outs"]:  # as before there was such a field
        del settings["multitask"]["hold_outs"]
    return settings
