"""Aligns every pair of languages by every system, scores, compares, draws."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from etils import epath

from experiments.bli_postprocessing import data, model
from experiments.bli_postprocessing.config import (
    GRID,
    SLUG,
    Config,
    Direction,
    System,
)
from experiments.common.rows import print_claims, print_side_by_side, summary_row
from jaxemb import storage, terminal
from jaxemb.analysis import figures, lexicon
from jaxemb.eval import induction, intervals
from jaxemb.eval.induction import Induction
from jaxemb.eval.intervals import Interval
from jaxemb.spaces import dictionaries, spectrum
from jaxemb.train import loop, results

_NEIGHBOURS = {"cosine": 0, "CSLS": 10}
_POST = " + POSTPROC"


class Variant(NamedTuple):
    """An aligner, and for self-learning what its dictionaries hold."""

    title: str
    system: System
    direction: Direction


@dataclasses.dataclass(frozen=True, eq=False)
class Scored:
    """One system with one seed dictionary: a score for each of its random seeds."""

    by_seed: tuple[Mapping[str, Induction], ...]
    """Retrieval to score; "grouped" is by cosine."""

    def reciprocal_ranks(self, retrieval: str) -> np.ndarray:
        """Of every test pair, the mean over seeds, in per cent."""
        ranks = [scores[retrieval].ranks for scores in self.by_seed]
        return 100 * np.mean([1 / r for r in ranks], axis=0)


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    workdir = Path(config.workdir)
    loop.claim(epath.Path(workdir), _deciding(config))
    rows, claims, collapsed, tuned = [], [], [], {}
    with results.recorded(workdir):
        task = data.load_task(config)
        terminal.say(
            f"{task.name}: {len(task.source.matrix):,} × {len(task.target.matrix):,} "
            f"rows, {len(task.train):,} pairs to train on, {len(task.test):,} of "
            f"{task.test_total:,} to test on"
        )
        scored = {}
        for size in config.seed_sizes:
            orders = config.alpha_source, config.alpha_target
            if config.tune:
                orders = model.tuned_orders(config, task, task.train[:size])
                tuned[f"{size} pairs"] = orders
                terminal.say(f"{task.name} · {size} pairs: orders {orders} chosen")
            scored[size] = _scored(config, task, size, orders, workdir, collapsed)
        for size, systems in scored.items():
            rows += _rows(f"{size} pairs", systems)
            claims += _claims(config, f"{task.name}, {size} pairs", systems)
        if config.grid:
            rows += _grid(config, task, workdir)
        _draw(task, scored, orders, workdir)
    used = [*task.source.data, *task.target.data, *task.data]
    written = results.write(
        workdir,
        slug=SLUG,
        preset=config.preset,
        config={**_described(config, task, collapsed), "tuned": tuned},
        origins=[results.origin(workdir)],
        data=list({one.name: one for one in used}.values()),
        rows=rows,
        claims=claims,
    )
    print_side_by_side([row for row in rows if "grid" not in row.metric])
    print_claims(claims)
    return written


def _variants(config: Config) -> list[Variant]:
    titles = {"procrustes": "Procrustes", "supervised": "VecMap", "rcsls": "RCSLS"}
    variants = []
    for system in config.systems:
        if system == "self-learning":
            first, *others = config.directions
            variants.append(Variant("VecMap SL", system, first))
            variants += [Variant(f"VecMap SL, {d}", system, d) for d in others]
        else:
            variants.append(Variant(titles[system], system, "mutual"))
    return variants


def _scored(
    config: Config,
    task: data.Task,
    size: int,
    orders: tuple[float, float],
    workdir: Path,
    collapsed: list[str],
) -> dict[str, Scored]:
    """System to its scores; one that has collapsed is told and left out."""
    scored = {}
    for label, alphas in {"": (0.0, 0.0), _POST: orders}.items():
        spaces = model.Spaces.of(task, *alphas)
        for variant in _variants(config):
            name = f"{variant.title}{label}"
            try:
                scores = _seeds(config, variant, spaces, task, size, name, workdir)
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
    variant: Variant,
    spaces: model.Spaces,
    task: data.Task,
    size: int,
    name: str,
    workdir: Path,
) -> tuple[Mapping[str, Induction], ...]:
    seeds = config.seeds if _is_random(config, variant) else 1
    scores = []
    for seed in range(seeds):
        path = workdir / "parts" / f"{task.name}-{size}-{name}-seed-{seed}.json"
        if not path.exists():
            mapped = model.align_spaces(
                config,
                variant.system,
                spaces,
                task.train[:size],
                direction=variant.direction,
                seed=seed,
            )
            if seed == 0:
                _export(task, mapped, workdir / f"{task.name}-{size}-{name}.tsv")
            found = {
                retrieval: mapped.ranks(task, neighbours).tolist()
                for retrieval, neighbours in _NEIGHBOURS.items()
            }
            storage.write_text(path, json.dumps(found) + "\n")
        kept = json.loads(path.read_text())
        ranks = {retrieval: np.array(of) for retrieval, of in kept.items()}
        by_retrieval = {
            retrieval: Induction.of(
                of, total=task.test_total, resamples=config.resamples
            )
            for retrieval, of in ranks.items()
        }
        best = induction.best_ranks(ranks["cosine"], task.test)
        grouped = Induction.of(best, resamples=config.resamples)
        scores.append({**by_retrieval, "grouped": grouped})
    return tuple(scores)


def _is_random(config: Config, variant: Variant) -> bool:
    return variant.system == "self-learning" and variant.direction in config.dropout


def _export(task: data.Task, mapped: model.Mapped, path: Path) -> None:
    """The induced dictionary of the most frequent words, as tab-separated text."""
    most = 5000
    pairs = dictionaries.induce(mapped.source[:most], mapped.target[:most])
    lines = [f"{task.source.names[s]}\t{task.target.names[t]}\n" for s, t in pairs]
    storage.write_text(path, "".join(lines))


def _rows(label: str, scored: Mapping[str, Scored]) -> list[results.Row]:
    rows = []
    for name, one in scored.items():
        for retrieval in _NEIGHBOURS:
            scores = [by[retrieval] for by in one.by_seed]
            covered = f"{scores[0].covered} of {scores[0].total} pairs"
            how = f"by {retrieval} ({covered})"
            rows.append(
                _row(name, f"{label}: MRR × 100 {how}", [s.mrr for s in scores])
            )
            for k in (1, 5):
                precision = [s.precision[k] for s in scores]
                rows.append(_row(name, f"{label}: P@{k} (%) {how}", precision))
        grouped = [by["grouped"] for by in one.by_seed]
        words = f"{grouped[0].covered} source words"
        for measure, found in (
            ("MRR × 100", [s.mrr for s in grouped]),
            ("P@1 (%)", [s.precision[1] for s in grouped]),
        ):
            metric = f"{label}: {measure} of the best translation, by cosine ({words})"
            rows.append(_row(name, metric, found))
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
    wanted = [(f"{v.title}{_POST}", v.title) for v in _variants(config)]
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
    for i, a in enumerate(GRID):
        source = spectrum.similarity_order(task.source.matrix, a)
        for j, b in enumerate(GRID):
            target = spectrum.similarity_order(task.target.matrix, b)
            mapped = model.align_spaces(
                config, "supervised", model.Spaces(source, target), task.train[:size]
            )
            table[i, j] = 100 * np.mean(1 / mapped.ranks(task, 0))
            metric = f"{size} pairs: MRR × 100, grid of orders"
            rows.append(
                summary_row(f"source {a:g}, target {b:g}", metric, [table[i, j]])
            )
    figures.save(
        lexicon.order_grid(GRID, table),
        workdir / "figures" / f"{task.name}-grid.svg",
        f"MRR × 100 of supervised VecMap on {task.name} by the orders of both sides.",
    )
    return rows


def _draw(
    task: data.Task,
    scored: Mapping[int, Mapping[str, Scored]],
    orders: tuple[float, float],
    workdir: Path,
) -> None:
    spaces = model.Spaces.of(task, *orders)
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
    by_size: dict[str, dict[int, float]] = {}
    for size, systems in sorted(scored.items()):
        for name, one in systems.items():
            mrr = float(one.reciprocal_ranks("cosine").mean())
            by_size.setdefault(name, {})[size] = mrr
    if len(scored) > 1:
        figures.save(
            lexicon.seed_curve(by_size),
            workdir / "figures" / f"{task.name}-seed-sizes.svg",
            f"MRR × 100 on {task.name} by the pairs of the seed dictionary.",
        )


def _deciding(config: Config) -> dict:
    """The settings that decide what finished parts hold."""
    settings = results.as_json(config)
    for name in ("preset", "run", "grid", "seeds", "seed_sizes", "resamples"):
        del settings[name]
    return settings


def _described(config: Config, task: data.Task, collapsed: Sequence[str]) -> dict:
    described = results.as_json(dataclasses.replace(config, run=type(config.run)()))
    return {
        **described,
        "rows": {"source": len(task.source.matrix), "target": len(task.target.matrix)},
        "train pairs": len(task.train),
        "collapsed": list(collapsed),
        "ranked": "rows, not words: of words that share a row the row counts once",
        "gold": "each line of the test dictionary by itself, lower-cased; best "
        "translation: scores a source word by the best ranked of its lines",
        "interval": "95 %: bootstrap over test pairs; Student t over seeds where a "
        "system has several; differences over the means of seeds, paired by test pair",
    }
