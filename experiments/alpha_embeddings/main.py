"""Trains the tables, makes every embedding, tries it on the tasks, and compares."""

import dataclasses
from pathlib import Path

from etils import epath

from experiments.alpha_embeddings import analyse, data, extrinsic, intrinsic
from experiments.alpha_embeddings.config import SLUG, Config
from experiments.common.rows import print_by_system, print_claims
from jaxemb import storage
from jaxemb.errors import InputError
from jaxemb.train import loop, results

_COLUMNS = 4  # metrics that are printed, of those that U+V has too


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    if not storage.is_local(config.workdir):
        raise InputError(f"--workdir {config.workdir}: expected a local folder")
    workdir = Path(config.workdir)
    loop.claim(epath.Path(workdir), _deciding(config))
    source = data.load_source(config)
    # The time of the tables, which other runs share, is told beside the run's own.
    origins = [{**origin, "seconds": 0.0} for origin in source.origins]
    rows, claims, used, told = [], [], list(source.data), {}
    with results.recorded(workdir):
        tests = data.load_tests(config)
        used += tests.data
        if config.intrinsic:
            published, also = data.load_published(config, source)
            used += also
            told["words that WG5 knows"] = {n: len(t) for n, t in published.items()}
            parts = intrinsic.measure(config, source, tests, published, workdir)
            outcome = analyse.Outcome(config, source, tests, parts)
            rows += outcome.rows()
            rows += analyse.inspect(config, source, tests, workdir / "figures")
            claims += outcome.claims()
            outcome.write_figures(workdir / "figures")
            told["chosen"] = outcome.chosen
        if extrinsic.jobs(config):
            measured = extrinsic.run(config, source, workdir)
            outcome = extrinsic.Outcome(config, source, measured)
            rows += outcome.rows()
            claims += outcome.claims()
            outcome.write_figures(workdir / "figures")
            told.setdefault("chosen", {}).update(outcome.chosen)
            told["unknown words"] = {
                d.name: round(d.unknown, 4) for d in measured.documents
            }
            used += [d.data for d in measured.documents]
    written = results.write(
        workdir,
        slug=SLUG,
        preset=config.preset,
        config={**_described(config, source), **told},
        origins=[*origins, results.origin(workdir)],
        data=list({one.name: one for one in used}.values()),
        rows=rows,
        claims=claims,
    )
    plain = [row.metric for row in rows if row.name.endswith("/U+V")]
    print_by_system(rows, list(dict.fromkeys(plain))[:_COLUMNS])
    print_claims(claims)
    return written


def _deciding(config: Config) -> dict:
    """The settings that decide what finished parts hold."""
    settings = results.as_json(config)
    for name in ("preset", "run", "folds", "resamples", "export"):
        del settings[name]
    for name in ("dims", "seeds", "folder"):
        del settings["tables"][name]
    del settings["classifier"]["kinds"]
    return settings


def _described(config: Config, source: data.Source) -> dict:
    plain = dataclasses.replace(config, run=type(config.run)())
    plain = dataclasses.replace(
        plain, tables=dataclasses.replace(plain.tables, folder=None)
    )
    return {
        **results.as_json(plain),
        "text and tables": dict(source.described),
        "interval": "95 %: rows, Student t over seeds of the tables; claims, as their "
        "evidence says: bootstrap over test items of the mean over seeds, or paired t "
        "over seeds",
        "α chosen": "similarity and analogies: on the other folds of the test items, "
        "for each seed apart; purity: on the other seeds; classifiers: on the "
        "validation part, with the epoch",
        "answers": "a question that several words answer equally well is wrong, as "
        "words with one limit are; case: lower-cased tests",
    }
