"""Trains every system with every seed, tests the vectors, and compares."""

import dataclasses
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from etils import epath

from experiments.common.rows import print_claims, print_side_by_side, summary_row
from experiments.static_embeddings import data, model
from experiments.static_embeddings.config import SLUG, Config
from jaxemb import storage, terminal, train
from jaxemb.data.vectors import WordVectors, write_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval import analogy, intervals, similarity
from jaxemb.train import loop, results

_SCORES = "scores.json"
_WORKERS = "gensim_workers.json"
_SPEED = "words a second"
_SECONDS = "seconds"
# How far below gensim's a score may be to count as equal.
_MARGIN = 0.02


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    if not storage.is_local(config.workdir):
        raise InputError(f"--workdir {config.workdir}: expected a local folder")
    workdir = Path(config.workdir)
    loop.claim(epath.Path(workdir), _deciding(config))
    if train.is_primary():
        _settle_workers(config, data.load_text(config, workdir), workdir)
    train.wait_for_all("text")
    text = data.load_text(config, workdir)
    tests = data.load_tests(config)
    scores: dict[str, list[dict[str, float]]] = {name: [] for name in config.systems}
    folders = []
    for seed in range(config.seeds):
        for system in config.systems:
            folder = workdir / system / f"seed-{seed}"
            folders.append(folder)
            _train_part(config, system, text, seed, folder, tests)
            if train.is_primary():
                one = json.loads((folder / _SCORES).read_text())
                scores[system].append(one)
                told = ", ".join(f"{n} {v:,.4g}" for n, v in one.items())
                terminal.say(f"{system} · seed {seed}: {told}")
    if not train.is_primary():
        return {}
    rows = [
        summary_row(system, metric, [one[metric] for one in many])
        for system, many in scores.items()
        for metric in many[0]
    ]
    claims = _claims(scores, len(text.corpus.tokens))
    written = results.write(
        workdir,
        slug=SLUG,
        preset=config.preset,
        config=_described(config, text, workdir),
        origins=[results.origin(folder) for folder in folders],
        data=[text.data, *tests.data],
        rows=rows,
        claims=claims,
    )
    print_side_by_side(rows)
    print_claims(claims)
    return written


def _deciding(config: Config) -> dict:
    """The settings that decide what a finished part holds."""
    settings = results.as_json(config)
    for name in ("preset", "systems", "seeds", "workers", "run"):
        del settings[name]
    return settings


def _settle_workers(config: Config, text: data.Text, workdir: Path) -> None:
    """Finds the numbers of gensim's threads, once a run, each on its own objective."""
    kept = workdir / _WORKERS
    best = json.loads(kept.read_text()) if kept.exists() else {}
    for system in filter(_is_gensims, config.systems):
        if not config.workers and system not in best:
            part = workdir / "part.txt"
            best[system] = model.best_workers(config, system, text.file, part)
            storage.write_text(kept, json.dumps(best))


def _workers(config: Config, workdir: Path) -> dict[str, int]:
    """The number of threads of each system of gensim's."""
    systems = list(filter(_is_gensims, config.systems))
    if config.workers or not systems:
        return dict.fromkeys(systems, config.workers)
    best = json.loads((workdir / _WORKERS).read_text())
    return {system: best[system] for system in systems}


def _is_gensims(system: str) -> bool:
    return system.startswith("gensim-")


def _train_part(
    config: Config,
    system: str,
    text: data.Text,
    seed: int,
    folder: Path,
    tests: data.Tests,
) -> None:
    """One system with one seed: trained in one go, since it is timed.

    gensim's, and all tests, are the primary process's; the others wait.
    """
    done = (folder / _SCORES).exists()
    # No process may begin before all have looked.
    train.wait_for_all(f"{system} {seed}")
    if done:
        return
    if train.is_primary() and folder.exists():
        shutil.rmtree(folder)  # begun and not finished
    train.wait_for_all(f"{system} {seed}, afresh")
    if _is_gensims(system):
        if train.is_primary():
            with results.recorded(folder):
                trained = model.train_gensim(
                    config,
                    system,
                    text.file,
                    epochs=config.epochs,
                    workers=_workers(config, Path(config.workdir))[system],
                    seed=seed,
                )
            _keep(trained, system, folder, tests)
        return
    with results.recorded(folder):
        trained = model.train(config, system, text, seed, folder)
    if train.is_primary():
        _keep(trained, system, folder, tests)


def _keep(trained: model.Trained, system: str, folder: Path, tests: data.Tests) -> None:
    """Writes vectors and, as the last thing, their scores."""
    scores = {
        **_tested(trained.vectors, tests),
        _SECONDS: trained.seconds,
        _SPEED: trained.words / trained.seconds,
    }
    if system == "glove":
        del scores[_SPEED]  # it reads the text once and then counts
    write_word_vectors(folder / "vectors.txt", trained.vectors)
    shutil.rmtree(folder / "cooccurrences", ignore_errors=True)
    storage.write_text(folder / _SCORES, json.dumps(scores))


def _tested(vectors: WordVectors, tests: data.Tests) -> dict[str, float]:
    scores = {}
    for name, pairs in tests.similarity.items():
        score = similarity.word_similarity(vectors, pairs, case="lower", resamples=0)
        scores[f"{name}, Spearman"] = score.spearman
        scores[f"{name}, covered (%)"] = 100 * score.covered / score.total
    if tests.analogies is not None:
        score = analogy.analogies(vectors, tests.analogies, case="lower")
        scores["Google, accuracy (%)"] = 100 * score.whole.accuracy
        scores["Google, covered (%)"] = 100 * score.whole.covered / score.whole.total
    return scores


def _claims(
    scores: Mapping[str, Sequence[Mapping[str, float]]], tokens: int
) -> list[results.Claim]:
    """Beside gensim: no slower, and no worse by more than the margin."""
    claims = []
    for system in ("skipgram", "cbow"):
        peer = f"gensim-{system}"
        if system not in scores or peer not in scores:
            continue
        ours, theirs = scores[system], scores[peer]
        ratios = [a[_SPEED] / b[_SPEED] for a, b in zip(ours, theirs, strict=True)]
        ratio = intervals.t_interval(ratios)
        claims.append(
            results.Claim(
                claim=f"{system} trains at least as many words a second as gensim",
                verdict=intervals.verdict(ratio.low - 1, ratio.high - 1),
                evidence=f"{ratio.mean:.2f} times [{ratio.low:.2f}, {ratio.high:.2f}], "
                f"{len(ratios)} seeds in turns on this machine",
            )
        )
        for metric in [m for m in ours[0] if m.endswith("Spearman")]:
            gap = intervals.paired_t(
                [one[metric] for one in ours], [one[metric] for one in theirs]
            )
            claims.append(
                results.Claim(
                    claim=f"{system} is within {_MARGIN} of gensim's, or better: "
                    f"{metric}",
                    verdict=intervals.verdict(gap.low + _MARGIN, gap.high + _MARGIN),
                    evidence=f"difference {gap.mean:+.4f} [{gap.low:.4f}, "
                    f"{gap.high:.4f}], {len(ours)} seeds",
                )
            )
    return claims


def _described(config: Config, text: data.Text, workdir: Path) -> dict:
    return {
        **results.as_json(dataclasses.replace(config, run=type(config.run)())),
        "workers": _workers(config, workdir),
        "text": {
            "words": int(text.corpus.raw[-1]),
            "sentences": len(text.corpus),
            "vocabulary": len(text.corpus.words),
        },
        "seconds": "of training, compilation and checkpoints too; for GloVe also of "
        "counting; reading the text and counting words is not in it for any system",
        "case": "lower-cased text, lower-cased tests",
        "interval": "Student t over seeds, 95 %; the sampling of test pairs is not "
        "in it",
    }
