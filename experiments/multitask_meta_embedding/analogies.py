"""Table 3: do models that learned similarity answer analogies?"""

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
from jaxemb.eval import intervals, kinds
from jaxemb.eval.settings import Settings
from jaxemb.spaces.ensemble import EmbeddingEnsemble
from jaxemb.train import results

_SCORE = {"analogy": "accuracy", "relational": "spearman"}
_METRIC = {"analogy": "accuracy (%)", "relational": "ρ × 100"}


def run(config: Config, measurer: Measurer) -> Outcome:
    """Scores sources, plain combinations, and the models of Table 2."""
    tests, used = data.load_analogies(config)
    scores: dict[str, dict[str, list[float]]] = {}  # set to system to one a seed
    told: dict[str, str] = {}
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
        scores[name] = {}
        for system, table in plain.items():
            fields = _fields(test, table)
            scores[name][system] = [100 * fields[_SCORE[test.kind]]]
            told[f"{system}, {name}"] = f"{fields['covered']} of {fields['total']}"
    for loss in config.losses:
        _models(config, measurer, loss, tests, scores)
    rows = [
        summary_row(system, f"{name}, {_METRIC[tests[name][0].kind]}", values)
        for name, of in scores.items()
        for system, values in of.items()
    ]
    claims = [c for name, of in scores.items() for c in _claims(config, name, of)]
    said = {"analogy questions or pairs covered": told}
    return Outcome(rows, claims, list(used), said)


def _fields(test: kinds.Test, table: WordVectors) -> dict:
    # A question that a table cannot answer is wrong, so that all are asked the same.
    settings = Settings(resamples=0, oov="zero")
    return dict(test.score(table, settings, (table,)).fields)


def _models(config, measurer, loss, tests, scores) -> None:
    """The mean over the lists held out, for each pair of losses and seed."""
    runs, encoders = measurer.encoders(loss)
    for name, (test, ensemble) in tests.items():
        values = _kept_scores(config, measurer, loss, name, test, ensemble, encoders)
        for kind in config.multitask.supervisions:
            by_seed = [
                float(
                    np.mean(
                        [
                            value
                            for run, value in zip(runs, values, strict=True)
                            if (run.supervision, run.seed) == (kind, seed)
                        ]
                    )
                )
                for seed in range(min(config.analogy_seeds, config.multitask.seeds))
            ]
            scores[name][f"{TITLES[loss]}-{kind}"] = by_seed
        terminal.say(f"{name}: models of {TITLES[loss]} asked")


def _kept_scores(
    config: Config,
    measurer: Measurer,
    loss: str,
    name: str,
    test: kinds.Test,
    ensemble: EmbeddingEnsemble,
    encoders: np.ndarray,
) -> np.ndarray:
    """The score of every model whose seed is asked, nan for others; kept on the way."""
    settings = config.multitask
    runs, _ = measurer.encoders(loss)
    folder = Path(config.workdir) / "asked"

    def compute() -> dict[str, np.ndarray]:
        values = np.full(len(runs), np.nan)
        for number, one in enumerate(runs):
            if one.seed < config.analogy_seeds:
                code = training.encode(encoders[number], settings, ensemble)
                table = ensemble.table(np.asarray(code))
                values[number] = 100 * _fields(test, table)[_SCORE[test.kind]]
        return {"values": values}

    described = {"loss": loss, "set": name, "seeds": config.analogy_seeds}
    return training.kept(folder, described, compute)[0]["values"]


def _claims(config: Config, name: str, of: dict) -> list[results.Claim]:
    """The paper: the best models beat the sources; here against CONC, too."""
    models = [model for model in all_pairs(config) if model in of]
    claims = []
    sources = [system for system in of if system not in models]
    for better in ("L2-Brier", "Cos-Brier"):
        if better not in of:
            continue
        for worse in sources:
            gap = intervals.t_interval(np.array(of[better]) - of[worse][0])
            claims.append(
                results.Claim(
                    claim=f"{better} beats {worse} on {name}",
                    verdict=intervals.verdict(gap.low, gap.high),
                    evidence=f"difference {gap.mean:+.2f} points [{gap.low:.2f}, "
                    f"{gap.high:.2f}], t over {len(of[better])} seeds, each the mean "
                    "over the lists held out",
                )
            )
    return claims
