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
        text = data.load_text(config, workdir)
        config = _with_workers(config, text, workdir)
    train.wait_for_all("text")
    if not train.is_primary():
        text = data.load_text(config, workdir)
    tests = data.load_tests(config)
    scores: dict[str, list[dict[str, float]]] = {name: [] for name in config.systems}
    folders = []
    for seed in range(config.seeds):
        for system in config.systems:
            folder = workdir / system / f"seed-{seed}"
            folders.append(folder)
            one = _part(config, system, text, seed, folder, tests)
            scores[system].append(one)
            if train.is_primary():
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
        config=_described(config, text),
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


def _with_workers(config: Config, text: data.Text, workdir: Path) -> Config:
    """Settles the number of gensim's threads, once a run."""
    if config.workers or not any(s.startswith("gensim-") for s in config.systems):
        return config
    kept = workdir / "workers.json"
    if not kept.exists():
        best = model.best_workers(config, text.file, workdir / "part.txt")
        storage.write_text(kept, json.dumps(best))
    return dataclasses.replace(config, workers=json.loads(kept.read_text()))


def _part(
    config: Config,
    system: str,
    text: data.Text,
    seed: int,
    folder: Path,
    tests: data.Tests,
) -> dict[str, float]:
    """One system with one seed: trained in one go, since it is timed."""
    kept = folder / _SCORES
    if kept.exists():
        return json.loads(kept.read_text())
    if train.is_primary() and folder.exists():
        shutil.rmtree(folder)  # begun and not finished
    train.wait_for_all(f"{system} {seed}")
    with results.recorded(folder):
        trained = model.train(config, system, text, seed, folder)
        scores = {
            **_tested(trained.vectors, tests),
            _SECONDS: trained.seconds,
            _SPEED: trained.words / trained.seconds,
        }
    if system == "glove":
        del scores[_SPEED]  # it reads the text once and then counts
    if train.is_primary():
        write_word_vectors(folder / "vectors.txt", trained.vectors)
        shutil.rmtree(folder / "cooccurrences", ignore_errors=True)
        storage.write_text(kept, json.dumps(scores))
    return scores


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


def _described(config: Config, text: data.Text) -> dict:
    return {
        **results.as_json(dataclasses.replace(config, run=type(config.run)())),
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
