"""Presets of bilingual lexicon induction with post-processed spaces."""

import dataclasses
from typing import Annotated, Literal

import tyro

from experiments.common.cli import Run

SLUG = "bli_postprocessing"
TITLE = "Bilingual lexicon induction after unsupervised post-processing of word spaces"

System = Literal["supervised", "self-learning", "rcsls"]
GRID = (-0.5, -0.25, -0.15, 0.0, 0.15, 0.25, 0.5)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Pairs of languages, and the aligners compared without and with the paper's."""

    preset: tyro.conf.Suppress[str] = "custom"
    pairs: tuple[str, ...] = ("en-fr", "en-ru", "ru-fr")
    """Of xling-eval; source first."""
    english: Literal["googlenews-subset", "glove-100d"] = "googlenews-subset"
    """The English table; the wider side is reduced to the narrower by its principal
    directions."""
    source: str | None = None
    """A file of vectors for the source instead, with --target, --train and --test."""
    target: str | None = None
    train: str | None = None
    """A file of word pairs, the most frequent first."""
    test: str | None = None
    systems: tuple[System, ...] = ("supervised", "self-learning", "rcsls")
    """VecMap with the seed dictionary, VecMap that improves it, and RCSLS; each without
    and with post-processing."""
    alpha_source: float = -0.25
    alpha_target: float = 0.15
    grid: bool = True
    """Score every pair of orders in the paper's grid too (supervised)."""
    seed_sizes: tuple[int, ...] = (5000, 1000)
    """Pairs of the seed dictionary."""
    vocabulary: int = 200_000
    """The most frequent words of each side."""
    cutoff: int = 20_000
    """The most frequent words that self-learning looks at."""
    direction: Literal["forward", "backward", "union", "mutual"] = "mutual"
    """Which pairs an induced dictionary holds; VecMap's own is union."""
    patience: int = 50
    """Iterations of self-learning without a rise."""
    seeds: int = 3
    """Of self-learning, which is random."""
    resamples: int = 1000
    """Of the bootstrap over test pairs."""
    run: Annotated[Run, tyro.conf.OmitArgPrefixes] = Run()

    @property
    def workdir(self) -> str:
        """Where the run is kept."""
        return self.run.workdir or f"runs/{SLUG}/{self.preset}"

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.preset == "smoke" or self.source:
            return ()
        languages = {language for pair in self.pairs for language in pair.split("-")}
        tables = {"en": self.english, "fr": "french-fasttext", "ru": "navec-ru"}
        named = tuple(tables[x] for x in ("en", "fr", "ru") if x in languages)
        return (*named, "wordfreq", "bli-xling")


PRESETS = {
    "xling": (
        "EN-FR, EN-RU and RU-FR, six systems, two seed sizes; hours",
        Config(preset="xling", cutoff=5000, patience=10),
    ),
    "union": (
        "the same with VecMap's own union of directions; hours",
        Config(
            preset="union",
            cutoff=5000,
            patience=10,
            direction="union",
            systems=("self-learning",),
            grid=False,
        ),
    ),
    "custom": (
        "your own: --source a.vec --target b.vec --train pairs.tsv --test pairs.tsv",
        Config(),
    ),
    "smoke": (
        "two planted languages; seconds",
        Config(
            preset="smoke",
            pairs=("planted",),
            seed_sizes=(200,),
            patience=3,
            seeds=2,
            grid=False,
            direction="mutual",
        ),
    ),
}

# Table 3 of the paper: MRR × 100 on xling-eval, for languages that are not here.
PAPER = {
    "DE-HR": {"RCSLS": 17.2, "+POST": 21.2, "VecMap SL": 40.9, "SL +POST": 42.5},
    "FI-FR": {"RCSLS": 37.8, "+POST": 40.3, "VecMap SL": 47.5, "SL +POST": 48.9},
}
