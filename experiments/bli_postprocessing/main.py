"""Aligns every pair of languages by every system, scores, compares, draws."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.bli_postprocessing import data, model
from experiments.bli_postprocessing.config import GRID, SLUG, Config, System
from experiments.common.rows import print_claims, print_side_by_side, summary_row
from jaxemb import storage, terminal
from jaxemb.analysis import figures, lexicon
from jaxemb.eval import intervals
from jaxemb.eval.induction import Induction
from jaxemb.eval.intervals import Interval
from jaxemb.spaces import dictionaries
from jaxemb.train import results

_NEIGHBOURS = {"cosine": 0, "CSLS": 10}
_TITLES = {"supervised": "VecMap", "self-learning": "VecMap SL", "rcsls": "RCSLS"}
_POST = " + POSTPROC"


@dataclasses.dataclass(frozen=True, eq=False)
class Scored:
    """One system on one pair of languages: a score for each of its seeds."""

    by_seed: tuple[Mapping[str, Induction], ...]
    """Retrieval to score."""

    def reciprocal_ranks(self, retrieval: str) -> np.ndarray:
        """Of every test pair, the mean over seeds, in per cent."""
        ranks = [scores[retrieval].ranks for scores in self.by_seed]
        return 100 * np.mean([1 / r for r in ranks], axis=0)


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    workdir = Path(config.workdir)
    rows, claims, used, collapsed = [], [], [], []
    with results.recorded(workdir):
        for pair in config.pairs:
            task = data.load_task(config, pair)
            used += [*task.source.data, *task.target.data, *task.data]
            terminal.say(
                f"{pair}: {len(task.source.matrix):,} × {len(task.target.matrix):,} "
                f"rows, {len(task.train):,} pairs to train on, {len(task.test):,} of "
                f"{task.test_total:,} to test on"
            )
            for size in config.seed_sizes:
                scored = _scored(config, task, size, workdir, collapsed)
                label = f"{pair}, {size} pairs"
                rows += _rows(config, label, scored)
                claims += _claims(config, label, scored)
            if config.grid:
                rows += _grid(config, task, workdir)
            _draw_spectra(config, task, workdir)
    unique = {one.name: one for one in used}
    written = results.write(
        workdir,
        slug=SLUG,
        preset=config.preset,
        config=_described(config, collapsed),
        origins=[results.origin(workdir)],
        data=list(unique.values()),
        rows=rows,
        claims=claims,
    )
    print_side_by_side([row for row in rows if "grid" not in row.metric])
    print_claims(claims)
    return written


def _scored(
    config: Config, task: data.Task, size: int, workdir: Path, collapsed: list[str]
) -> dict[str, Scored]:
    """System to its scores; one that has collapsed is told and left out."""
    scored = {}
    orders = {"": (0.0, 0.0), _POST: (config.alpha_source, config.alpha_target)}
    for label, alphas in orders.items():
        spaces = model.Spaces.of(task, *alphas)
        for system in config.systems:
            name = f"{_TITLES[system]}{label}"
            try:
                scores = _seeds(config, system, spaces, task, size, name, workdir)
            except dictionaries.Collapsed as error:
                collapsed.append(f"{task.name}, {size} pairs, {name}: {error}")
                terminal.say(collapsed[-1])
                continue
            scored[name] = Scored(scores)
            told = ", ".join(
                f"{retrieval} {np.mean([s[retrieval].mrr.mean for s in scores]):.3f}"
                for retrieval in _NEIGHBOURS
            )
            terminal.say(f"{task.name} · {size} pairs · {name}: MRR by {told}")
    return scored


def _seeds(
    config: Config,
    system: System,
    spaces: model.Spaces,
    task: data.Task,
    size: int,
    name: str,
    workdir: Path,
) -> tuple[Mapping[str, Induction], ...]:
    seeds = config.seeds if system == "self-learning" else 1
    scores = []
    for seed in range(seeds):
        mapped = model.align_spaces(config, system, spaces, task.train[:size], seed)
        if seed == 0:
            _export(task, mapped, workdir / f"{task.name}-{size}-{name}.tsv")
        scores.append(
            {
                retrieval: mapped.score(task, neighbours, config)
                for retrieval, neighbours in _NEIGHBOURS.items()
            }
        )
    return tuple(scores)


def _export(task: data.Task, mapped: model.Mapped, path: Path) -> None:
    """The induced dictionary of the most frequent words, as tab-separated text."""
    most = 5000
    pairs = dictionaries.induce(mapped.source[:most], mapped.target[:most])
    lines = [f"{task.source.names[s]}\t{task.target.names[t]}\n" for s, t in pairs]
    storage.write_text(path, "".join(lines))


def _rows(
    config: Config, label: str, scored: Mapping[str, Scored]
) -> list[results.Row]:
    rows = []
    for name, one in scored.items():
        for retrieval in _NEIGHBOURS:
            scores = [by[retrieval] for by in one.by_seed]
            covered = f"{scores[0].covered} of {scores[0].total} pairs"
            measures = {
                f"{label}: MRR × 100 by {retrieval} ({covered})": [
                    s.mrr for s in scores
                ],
                **{
                    f"{label}: P@{k} (%) by {retrieval} ({covered})": [
                        s.precision[k] for s in scores
                    ]
                    for k in (1, 5)
                },
            }
            rows += [_row(name, metric, ms) for metric, ms in measures.items()]
    return rows


def _row(name: str, metric: str, measured: Sequence[Interval]) -> results.Row:
    """Over seeds where there are several; else over test pairs."""
    row = summary_row(name, metric, [100 * m.mean for m in measured])
    if len(measured) > 1:
        return row
    [one] = measured
    bounds = (round(100 * one.low, 4), round(100 * one.high, 4)) if one.known else None
    return dataclasses.replace(row, interval=bounds)


def _claims(
    config: Config, label: str, scored: Mapping[str, Scored]
) -> list[results.Claim]:
    """Post-processing helps each aligner, and self-learning helps the seed alone."""
    wanted = [(f"{title}{_POST}", title) for title in _TITLES.values()]
    wanted += [(f"VecMap SL{_POST}", "VecMap"), ("VecMap SL", "VecMap")]
    claims = []
    for better, worse in wanted:
        if better not in scored or worse not in scored:
            continue
        ours, theirs = (scored[n].reciprocal_ranks("cosine") for n in (better, worse))
        gap = intervals.bootstrap(
            lambda rows, d=ours - theirs: d[rows].mean(axis=-1),
            len(ours),
            resamples=config.resamples,
        )
        claims.append(
            results.Claim(
                claim=f"{better} beats {worse} in MRR ({label})",
                verdict=intervals.verdict(gap.low, gap.high),
                evidence=f"paired difference {gap.mean:+.2f} points [{gap.low:.2f}, "
                f"{gap.high:.2f}], bootstrap over {len(ours)} test pairs",
            )
        )
    return claims


def _grid(config: Config, task: data.Task, workdir: Path) -> list[results.Row]:
    """Supervised VecMap at every pair of orders, with the largest seed dictionary."""
    size = max(config.seed_sizes)
    table = np.empty((len(GRID), len(GRID)))
    rows = []
    plain = dataclasses.replace(config, resamples=0)
    for i, a in enumerate(GRID):
        for j, b in enumerate(GRID):
            spaces = model.Spaces.of(task, a, b)
            mapped = model.align_spaces(
                config, "supervised", spaces, task.train[:size], 0
            )
            mrr = mapped.score(task, 0, plain).mrr.mean
            table[i, j] = 100 * mrr
            metric = f"{task.name}: MRR × 100, grid of orders ({size} pairs)"
            rows.append(summary_row(f"source {a:g}, target {b:g}", metric, [100 * mrr]))
    figures.save(
        lexicon.order_grid(GRID, table),
        workdir / "figures" / f"{task.name}-grid.svg",
        f"MRR × 100 of supervised VecMap on {task.name} by the orders of both sides.",
    )
    return rows


def _draw_spectra(config: Config, task: data.Task, workdir: Path) -> None:
    spaces = model.Spaces.of(task, config.alpha_source, config.alpha_target)
    figures.save(
        lexicon.spectra(
            {
                "source": task.source.matrix,
                "source, post-processed": spaces.source,
                "target": task.target.matrix,
                "target, post-processed": spaces.target,
            }
        ),
        workdir / "figures" / f"{task.name}-spectra.svg",
        f"Singular values of both sides of {task.name}, over the largest.",
    )


def _described(config: Config, collapsed: Sequence[str]) -> dict:
    described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
    return {
        **described,
        "collapsed": list(collapsed),
        "ranked": "rows, not words: of words that share a row the row counts once",
        "gold": "each line of the test dictionary by itself; lower-cased",
        "interval": "95 %: bootstrap over test pairs; Student t over seeds where a "
        "system has several; differences over the means of seeds, paired by test pair",
    }
