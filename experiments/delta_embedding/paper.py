"""The figures and words that the paper prints."""

from experiments.delta_embedding.config import ARMS


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
