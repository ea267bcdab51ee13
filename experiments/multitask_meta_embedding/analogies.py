"""Table 3: do models that learned similarity answer analogies?"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.common.rows import summary_row
from experiments.multitask_meta_embedding import data, training
from experiments.multitask_meta_embedding.analyse import all_pairs
from experiments.multitask_meta_embedding.config import TITLES, Config
from experiments.multitask_meta_embedding.outcome import Outcome
from experiments.multitask_meta_embedding.similarity import Measurer
from jaxemb import terminal
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import analogy, intervals, kinds
from jaxemb.eval.intervals import Interval
from jaxemb.eval.settings import Settings
from jaxemb.spaces.ensemble import EmbeddingEnsemble
from jaxemb.train import results

_METRIC = {"analogy": "accuracy (%)", "relational": "ρ × 100"}
_COMMON = {
    "analogy": "that both have words for",
    "relational": "of which a pair with a word that a table lacks has the score 0",
}


def run(config: Config, measurer: Measurer) -> Outcome:
    """Scores sources, plain combinations, and the models of Table 2."""
    tests, used = data.load_analogies(config)
    rows, claims, told, parts = [], [], {}, set()
    for name, (test, ensemble) in tests.items():
        plain = {
            source: WordVectors(ensemble.words, m.astype(np.float32))
            for source, m in zip(ensemble.names, ensemble.matrices, strict=True)
        }
        plain["CONC"] = ensemble.table(ensemble.concatenate())
        plain["AV"] = ensemble.table(ensemble.average())
        plain["SVD"] = ensemble.table(
            ensemble.svd(min(config.autoencoder.hidden, sum(ensemble.widths)))
        )
        found = {n: _items(test, table)[None, None] for n, table in plain.items()}
        for system, table in plain.items():
            told[f"{system}, {name}"] = _covered(test, table)
        for loss in config.losses:
            items = found["CONC"].size
            models, asked = _models(config, measurer, loss, name, test, ensemble, items)
            found |= models
            parts.add(asked)
            terminal.say(f"{name}: models of {TITLES[loss]} asked")
        metric = f"{name}, {_METRIC[test.kind]}"
        rows += [
            summary_row(n, metric, _scores(test, items)) for n, items in found.items()
        ]
        claims += _claims(config, name, test, found)
    said = {"analogies covered": told}
    return Outcome(rows, claims, list(used), said, parts)


def _score(test: kinds.Test, table: WordVectors) -> kinds.Outcome:
    missing = "skip" if test.kind == "analogy" else "zero"
    return test.score(table, Settings(resamples=0, oov=missing), (table,))


def _covered(test: kinds.Test, table: WordVectors) -> str:
    """How much of a test a table has words for."""
    found = _score(test, table).fields
    items = "questions" if test.kind == "analogy" else "rated pairs"
    return f"{found['covered']} of {found['total']} {items}"


def _items(test: kinds.Test, table: WordVectors) -> np.ndarray:
    """Whether each question is answered, or ρ of each relation; nan: cannot be."""
    outcome = _score(test, table)
    if outcome.items is not None:
        return np.asarray(outcome.items, np.float32)
    relations = outcome.fields["relations"]
    return np.array([one["spearman"] for one in relations], np.float32)


def _scores(test: kinds.Test, items: np.ndarray) -> list[float]:
    """One a seed, the mean over its models; what cannot be answered is wrong."""
    if test.kind == "analogy":
        items = np.nan_to_num(items)
    return (100 * np.nanmean(items, axis=(1, 2))).tolist()


def _models(
    config: Config,
    measurer: Measurer,
    loss: str,
    name: str,
    test: kinds.Test,
    ensemble: EmbeddingEnsemble,
    count: int,
) -> tuple[dict[str, np.ndarray], Path]:
    """(seeds, lists held out, items) of each supervision, and where they are kept."""
    settings = config.multitask
    runs, encoders = measurer.encoders(loss)
    seeds = range(min(config.analogy_seeds, settings.seeds))

    def compute() -> dict[str, np.ndarray]:
        found: dict[str, list[list[np.ndarray]]] = {}
        for number, one in enumerate(runs):
            if one.seed in seeds:
                code = training.encode(encoders[number], settings, ensemble)
                items = _items(test, ensemble.table(np.asarray(code)))
                by_seed = found.setdefault(one.supervision, [[] for _ in seeds])
                by_seed[one.seed].append(items)
        return {kind: np.array(items) for kind, items in found.items()}

    described = {
        "loss": loss,
        "set": name,
        "items": count,
        "seeds": len(seeds),
        "runs": [list(run) for run in runs],
        "encoders": hashlib.sha256(encoders.tobytes()).hexdigest(),
    }
    folder = Path(config.workdir) / "asked"
    found, recorded = training.kept(folder, described, compute)
    named = {f"{TITLES[loss]}-{kind}": items for kind, items in found.items()}
    return named, recorded


def _claims(
    config: Config, name: str, test: kinds.Test, found: Mapping[str, np.ndarray]
) -> list[results.Claim]:
    """The paper: the best models beat the sources; here against CONC, too."""
    models = set(all_pairs(config))
    claims = []
    for better in ("L2-Brier", "Cos-Brier"):
        for worse in found if better in found else ():
            if worse in models:
                continue
            gap, over = _gap(config, test, found[better], found[worse])
            claims.append(
                results.Claim(
                    claim=f"{better} beats {worse} on {name}",
                    verdict=intervals.verdict(gap.low, gap.high),
                    evidence=f"difference {gap.mean:+.2f} points [{gap.low:.2f}, "
                    f"{gap.high:.2f}], over {over} {_COMMON[test.kind]}, and over "
                    f"{len(found[better])} seeds; the mean over lists held out",
                )
            )
    return claims


def _gap(
    config: Config, test: kinds.Test, better: np.ndarray, worse: np.ndarray
) -> tuple[Interval, str]:
    """A difference on what both have scores for, and what it is over.

    Uncertain by the seeds, and by the pairs of words that questions are made of, each
    of which is asked with many others, or by the relations.
    """
    gaps = 100 * (better.astype(np.float64) - worse).mean(axis=1)  # seeds items
    known = ~np.isnan(gaps).any(axis=0)
    gaps = gaps[:, known]
    by_item, resamples = gaps.mean(axis=0), config.resamples
    if isinstance(test, kinds.AnalogyTest):
        pairs = analogy.word_pairs(test.sections)[known]
        items = intervals.crossed_bootstrap(by_item, pairs, resamples=resamples)
        over = f"the {len(np.unique(pairs))} word pairs of {len(by_item):,} questions"
    else:
        items = intervals.bootstrap(
            lambda rows: by_item[rows].mean(axis=-1), len(by_item), resamples=resamples
        )
        over = f"the {len(by_item)} relations"
    seeds = intervals.t_interval(gaps.mean(axis=1))
    return intervals.with_spread(items, seeds), over
