"""Presets of geometric meta-embeddings, and the figures that the paper prints."""

import dataclasses
from typing import Literal

from experiments.common.cli import Experiment
from experiments.common.names import MIXED, at_hand, similarity_lists
from experiments.common.options import Training
from jaxemb.data import sources

SLUG = "geometric_meta_embeddings"
TITLE = "Geometric meta-embeddings: rotate each source, share one metric, then combine"

# The six similarity lists and three analogy sets of the paper, and their columns.
SIMILARITY = {
    "RG-65": "RG",
    "MC-30": "MC",
    "WS-353-ALL": "WS",
    "MTurk-771": "MTurk",
    "RW-STANFORD": "RW",
    "SIMLEX-999": "SL",
}
ANALOGY = {"msr": "MSR", "google": "GL", "semeval-2012": "SemEval"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """Some sources, and the ways to make one table of them."""

    slug = SLUG
    sources: tuple[str, ...] = ()
    """Word tables: names of data sets, or files in any format that is read."""
    inputs: Literal["unit", "code"] = "unit"
    """Rows of length 1 in every source; or, as the authors' script has it, columns of
    length 1 in the first source and the others as they are."""
    words: Literal["common", "union"] = "common"
    """The words that all sources have, or those of any with missing rows imputed."""
    width: Literal["pca", "pad"] = "pca"
    """What makes sources of different width equal."""
    c: float = 50.0
    """Weight of the metric's norm: half of the lambda of the authors' program."""
    sweep: tuple[float, ...] = (0.5, 5.0, 50.0, 500.0)
    """Other weights, whose scores are shown and from which nothing is chosen."""
    solver: Literal["closed", "riemannian"] = "closed"
    """The closed form (two sources), or the paper's conjugate gradient from the best
    start known."""
    iterations: int = 300
    """Of conjugate gradient, at most."""
    resamples: int = 1000
    """Of the bootstrap over test items."""
    training: Training = Training()
    """In place of `--sources`."""

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.preset == "smoke" or self.training.text == "planted":
            return ()
        named = tuple(at_hand(name) for name in self.sources)
        known = tuple(name for name in named if name in sources.DATA_SETS)
        lists = similarity_lists()
        text = MIXED if self.training.seeds else ()
        return (*text, *known, lists, "analogies", "semeval-2012")


def _preset(name: str, *tables: str, **settings) -> Config:
    return Config(preset=name, sources=tables, **settings)


PRESETS = {
    "glove-googlenews": (
        "GloVe 100-d and GoogleNews 300-d, their common words; minutes",
        _preset("glove-googlenews", "glove-100d", "googlenews-subset"),
    ),
    "glove-wordllama": (
        "GloVe 100-d and WordLlama 256-d; minutes",
        _preset("glove-wordllama", "glove-100d", "wordllama"),
    ),
    "googlenews-wordllama": (
        "GoogleNews 300-d and WordLlama 256-d; minutes",
        _preset("googlenews-wordllama", "googlenews-subset", "wordllama"),
    ),
    "three-sources": (
        "all three, by conjugate gradient; minutes",
        _preset(
            "three-sources",
            *("glove-100d", "googlenews-subset", "wordllama"),
            solver="riemannian",
        ),
    ),
    "code-inputs": (
        "GloVe and GoogleNews normalised as the authors' script does; minutes",
        _preset("code-inputs", "glove-100d", "googlenews-subset", inputs="code"),
    ),
    "trained": (
        "GloVe and skip-gram trained here on one text, five seeds; 20 minutes",
        _preset("trained", training=Training(seeds=5)),
    ),
    "custom": ("your own tables: --sources a.vec b.bin", Config()),
    "smoke": ("a planted world; seconds", Config(preset="smoke", c=1.0, sweep=(1e4,))),
}

# Tables 1 to 3 of the paper, the averages: similarity, analogy. Their sources are whole
# and other than ours, so that no row here has a published figure beside it.
PAPER = {
    "GloVe+CBOW": {
        "CONC": (69.9, 55.5),
        "AVG": (69.3, 53.4),
        "Geo-CONC": (71.1, 57.1),
        "Geo-AVG": (70.6, 56.3),
    },
}
