"""Makes the text's features and the tables, runs the studies of a preset."""

import dataclasses
from pathlib import Path

import jax

from experiments.common.findings import Findings
from experiments.common.rows import print_claims, print_side_by_side
from experiments.dynamic_to_static import data, similarity, tagging, windows
from experiments.dynamic_to_static.config import PAPER, SLUG, Config
from experiments.dynamic_to_static.model import Tables
from jaxemb import terminal
from jaxemb.errors import InputError
from jaxemb.train import results


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    config.check()
    if jax.process_count() > 1:
        raise InputError("this experiment runs in one process")
    workdir = Path(config.workdir)
    findings = Findings(paper={} if config.text == "planted" else PAPER)
    text = data.load(config)
    terminal.say(
        f"{len(text.corpus):,} sentences, {len(text.corpus.tokens):,} known words of "
        f"{len(text.corpus.words):,} kinds"
    )
    tables = Tables(config, text)
    parts = [workdir]
    used = [*text.data]
    if "similarity" in config.studies:
        similarity.study(config, text, tables, workdir, findings)
    if "windows" in config.studies:
        windows.study(config, text, tables, workdir, findings)
    if "tagging" in config.studies:
        tagged = tagging.study(config, text, tables, workdir, findings)
        parts += tagged.folders
        used += tagged.data
    written = results.write(
        workdir,
        slug=SLUG,
        preset=config.preset,
        config=_described(config, text, findings),
        origins=[*text.origins, *tables.origins(), *map(results.origin, parts)],
        data=used,
        rows=findings.rows,
        claims=findings.claims,
    )
    shown = set(findings.shown)
    print_side_by_side([row for row in findings.rows if row.metric in shown])
    print_claims(findings.claims)
    return written


def _described(config: Config, text: data.Text, findings: Findings) -> dict:
    """The config with what a reader must know of the protocol."""
    described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
    return {
        **described,
        "sentences read": len(text.corpus),
        "words read": int(text.corpus.raw[-1]),
        "words trained on": len(text.corpus.tokens),
        "vocabulary": len(text.corpus.words),
        "encoder width": text.vectors.dim,
        "interval": f"95 %: Student t over {config.seeds} seeds, for claims over "
        "differences paired by seed; one text and one set of tests, whose sampling is "
        "not in it. What is not trained is one figure for all seeds",
        **findings.notes,
        "shown": findings.shown,
    }
