"""The figures and words that the paper prints, and which of our runs they are of."""

import dataclasses
from collections.abc import Iterable

from experiments.delta_embedding.config import ARMS, BESIDE_PARTS, OF_THE_PAPER, Config
from jaxemb.train import results

_TABLE = "glove-100d"


def _column(*figures: float) -> dict[str, float]:
    return dict(zip(ARMS, figures, strict=True))


# Table 1 of the paper: task to measure to arm.
PAPER: dict[str, dict[str, dict[str, float]]] = {
    "rt-polarity": {"test accuracy (%)": _column(78.61, 76.66, 76.17, 79.30, 78.71)},
    "kmr": {"test accuracy (%)": _column(68.43, 66.72, 67.01, 67.97, 68.96)},
    "squad": {
        "F1 (%)": _column(74.35, 77.33, 77.56, 78.12, 76.31),
        "exact match (%)": _column(64.29, 67.94, 68.08, 68.45, 66.48),
    },
    "multinli-fiction": {
        "genre accuracy (%)": _column(69.3, 69.5, 69.5, 71.5, 70.9),
        "matched accuracy (%)": _column(61.2, 62.6, 63.0, 63.4, 63.6),
        "mismatched accuracy (%)": _column(62.1, 64.0, 63.6, 64.3, 63.8),
        "SNLI accuracy (%)": _column(57.2, 59.7, 60.2, 60.6, 59.7),
    },
}
# Table 2, of the table that SQuAD tuned; `untuned` is GloVe.
PAPER_QVEC = {
    "untuned": 0.37536,
    "finetune": 0.37267,
    "delta-1e-3": 0.37536,
    "delta-1e-4": 0.37543,
    "delta-1e-5": 0.37332,
}


def _pairs(untuned: float, finetune: float, delta: float) -> dict[str, float]:
    return {"untuned": untuned, "finetune": finetune, "delta-1e-4": delta}


# Table 3, of the same: list to Spearman's correlation.
PAPER_SIMILARITY: dict[str, dict[str, float]] = {
    "WS-353-ALL": _pairs(0.555, 0.545, 0.563),
    "WS-353-SIM": _pairs(0.657, 0.659, 0.667),
    "WS-353-REL": _pairs(0.495, 0.485, 0.506),
    "MC-30": _pairs(0.776, 0.764, 0.783),
    "RG-65": _pairs(0.741, 0.736, 0.740),
    "RW-STANFORD": _pairs(0.391, 0.377, 0.392),
    "MEN-TR-3k": _pairs(0.702, 0.703, 0.703),
    "MTurk-287": _pairs(0.632, 0.625, 0.635),
    "MTurk-771": _pairs(0.574, 0.577, 0.576),
    "YP-130": _pairs(0.460, 0.475, 0.467),
    "SIMLEX-999": _pairs(0.292, 0.304, 0.295),
    "VERB-143": _pairs(0.302, 0.305, 0.315),
    "SimVerb-3500": _pairs(0.169, 0.176, 0.171),
}
# Table 4: the words that moved most.
PAPER_WORDS: dict[str, tuple[str, ...]] = {
    "sentiment": tuple(
        "neither still unexpected nor bore lacking worst suffers usual moving works "
        "interesting tv fun smart".split()
    ),
    "reading": tuple(
        "why another what along called whose call which also this if not occupation "
        "whom but he because into".split()
    ),
    "inference": tuple(
        "not the even i nothing because that you it as anything only was if want "
        "forget well be so from does in certain could".split()
    ),
}


def stands_beside(
    config: Config, texts: Iterable[results.Data], table: results.Data
) -> bool:
    """Whether the paper's figures may stand beside a run's.

    Only where texts and table are its own and whole, the table by the catalogue's name
    and not a file of that name, and all settings that decide a figure are those of the
    preset that is its run.
    """
    own = OF_THE_PAPER.get(config.task)
    if own is None or any(used.kind != "real" for used in (*texts, table)):
        return False
    if table.name != _TABLE or _TABLE not in config.vectors:
        return False
    names = {f.name for f in dataclasses.fields(config)} - {*BESIDE_PARTS}
    return all(getattr(config, name) == getattr(own, name) for name in names)
