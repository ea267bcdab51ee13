"""Learns the geometry, scores every system on every test, compares, draws."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.common.rows import interval_row, print_claims, print_side_by_side
from experiments.geometric_meta_embeddings import data, model, seeded
from experiments.geometric_meta_embeddings.board import Board, column
from experiments.geometric_meta_embeddings.config import SLUG, Config
from jaxemb import terminal
from jaxemb.analysis import figures, geometry
from jaxemb.data.vectors import WordVectors, write_word_vectors
from jaxemb.eval import intervals
from jaxemb.eval.intervals import Interval
from jaxemb.eval.settings import Settings
from jaxemb.spaces import combine
from jaxemb.train import results


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    workdir = Path(config.workdir)
    if config.training.seeds:
        outcome = seeded.run(config, workdir)
    else:
        with results.recorded(workdir):
            outcome = _run(config, workdir)
        outcome["origins"] = [results.origin(workdir)]
    written = results.write(workdir, slug=SLUG, preset=config.preset, **outcome)
    print_side_by_side(outcome["rows"])
    print_claims(outcome["claims"])
    return written


def _run(config: Config, workdir: Path) -> dict:
    sources = data.load_sources(config)
    tests = data.load_tests(config)
    equal = model.equal_width(config, sources)
    learned = model.learn(config, equal, config.c)
    terminal.say(
        f"{len(sources.words):,} words; objective {learned.objective:.6g} at "
        f"c = {config.c:g}"
    )
    tables = {
        name: WordVectors(sources.words, matrix.astype(np.float32), unique=True)
        for name, matrix in model.systems(config, sources, equal, learned).items()
    }
    for name in ("Geo-AVG", "Geo-CONC"):
        write_word_vectors(workdir / f"{name.lower()}.txt", tables[name])
    settings = Settings(resamples=config.resamples)
    board = Board(tests, settings, show=config.run.progress)
    left_out = board.leave_out_uncovered(tables["AVG"])
    rows = [row for name, table in tables.items() for row in board.rows(name, table)]
    swept = {}
    for c in sorted({*config.sweep, config.c}):
        latents = model.learn(config, equal, c).geometry.latents(equal)
        matrix = combine.average(latents).astype(np.float32)
        swept[c] = board.means(WordVectors(sources.words, matrix, unique=True))
        for group, mean in swept[c].items():
            rows.append(interval_row(f"Geo-AVG at c = {c:g}", f"{group}, sweep", mean))
    claims = _claims(config, sources, tables, board)
    report = geometry.alignment(*learned.geometry.latents(equal)[:2])
    rows += [
        interval_row(
            "same word in two sources", metric, Interval(value, np.nan, np.nan)
        )
        for metric, value in (
            ("mean cosine of latents", report.cosine),
            ("found as nearest (%)", 100 * report.found),
        )
    ]
    _draw(config, workdir, learned, swept, tables, board)
    return {
        "config": {
            **_described(config, sources, learned, equal),
            "tests without a covered item": left_out,
        },
        "data": [*sources.data, *board.data()],
        "rows": rows,
        "claims": claims,
    }


def _claims(
    config: Config,
    sources: data.Sources,
    tables: Mapping[str, WordVectors],
    board: Board,
) -> list[results.Claim]:
    """The paper's claims: the geometry beats plain combination and the sources."""
    claims = []
    for better, worse in model.claimed(sources.names):
        for group, of in board.differences(tables[better], tables[worse]).items():
            gap = intervals.mean_of(list(of.values()))
            claims.append(
                results.Claim(
                    claim=f"{better} beats {worse}: {group}",
                    verdict=intervals.verdict(gap.low, gap.high),
                    evidence=f"mean difference {gap.mean:+.2f} points [{gap.low:.2f}, "
                    f"{gap.high:.2f}] over {len(of)} tests, paired bootstrap over "
                    f"their items, {config.resamples} resamples",
                )
            )
    return claims


def _draw(
    config: Config,
    workdir: Path,
    learned: model.Learned,
    swept: Mapping[float, Mapping[str, Interval]],
    tables: Mapping[str, WordVectors],
    board: Board,
) -> None:
    folder = workdir / "figures"
    figures.save(
        geometry.metric_spectrum(learned.geometry.metric),
        folder / "metric-spectrum.svg",
        f"Eigenvalues of the shared metric at c = {config.c:g}.",
    )
    figures.save(
        geometry.regularisation_path(swept),
        folder / "regularisation-path.svg",
        "Geo-AVG's mean scores against c; nothing was chosen from this.",
    )
    gaps = {
        column(name): gap
        for of in board.differences(tables["Geo-AVG"], tables["AVG"]).values()
        for name, gap in of.items()
    }
    figures.save(
        geometry.benchmark_differences(gaps),
        folder / "benchmark-differences.svg",
        "Geo-AVG less AVG, in points, with paired 95 % intervals.",
    )


def _described(
    config: Config,
    sources: data.Sources,
    learned: model.Learned,
    equal: Sequence[np.ndarray],
) -> dict:
    described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
    return {
        **described,
        "vocabulary": len(sources.words),
        "widths": [matrix.shape[1] for matrix in sources.matrices],
        "latent_width": equal[0].shape[1],
        "objective": learned.objective,
        "iterations": learned.iterations,
        "interval": "95 %: bootstrap over pairs (similarity) or relations (SemEval), "
        "Wilson over questions (analogies); of a mean over tests, from theirs as of "
        "independent figures. The method has no seed: nothing is random but that",
        "latents": "rows of length 1 before they are combined, as the authors' program",
    }
