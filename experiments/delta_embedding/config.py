"""Presets of delta embedding learning, and the figures that the paper prints."""

import dataclasses
from typing import Literal

from experiments.common.cli import Experiment
from experiments.common.names import at_hand, similarity_lists
from jaxemb.errors import InputError

SLUG = "delta_embedding"
TITLE = (
    "Delta Embedding Learning: tune a frozen word table by a sparse, regularised delta"
)


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to treat the table."""

    name: str
    mode: Literal["fixed", "finetune", "delta"]
    c: float = 0.0
    """Weight of the L2,1 norm of the delta."""
    prox: bool = False
    """Shrink the delta after each step instead of adding the norm to the loss."""


def arm(name: str) -> Arm:
    """`fixed`, `finetune`, `delta-C` (penalty in the loss) or `prox-C`."""
    if name in ("fixed", "finetune"):
        return Arm(name, name)
    kind, _, weight = name.partition("-")
    try:
        c = float(weight)
    except ValueError:
        c = -1.0
    if kind not in ("delta", "prox") or c < 0:
        raise InputError(f"--arms {name}: expected fixed, finetune, delta-C or prox-C")
    return Arm(name, "delta", c, prox=kind == "prox")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """The classifier above the word vectors."""

    kind: Literal["cnn", "lstm"] = "cnn"
    """Kim's CNN, or one LSTM whose last state is classified."""
    widths: tuple[int, ...] = (3, 4, 5)
    """Window widths of the CNN."""
    maps: int = 100
    """Feature maps of the CNN for each width."""
    hidden: int = 128
    """State size of the LSTM."""
    dropout: float = 0.5
    norm_limit: float | None = 3.0
    """Largest L2 norm of the weights into one class."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of the computation; parameters stay float32."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """One experiment: a task, a word table, and the arms compared on it."""

    slug = SLUG
    task: Literal["rt-polarity", "rt-polarity-8530", "kmr", "planted"] = "rt-polarity"
    """Sentences by polarity, their part that is in a wheel, labelled phrases in five
    classes, or the planted world."""
    vectors: tuple[str, ...] = ("glove-100d",)
    """Word tables, one experiment each: data-set names or files. glove-100d falls back
    to its subset where only that is at hand."""
    arms: tuple[str, ...] = (
        "finetune",
        "fixed",
        "delta-1e-3",
        "delta-1e-4",
        "delta-1e-5",
    )
    """fixed, finetune, delta-C (penalty in the loss), prox-C (proximal step)."""
    protocol: Literal["folds", "seeds"] = "folds"
    """Cross-validation, fold f with seed f; or one split and several seeds."""
    parts: int = 10
    """How many folds or seeds."""
    epochs: int = 25
    batch_size: int = 50
    buckets: int = 4
    """How many padded lengths sentences are sorted into."""
    model: Model = Model()
    optimizer: Literal["adadelta", "adam", "sgd"] = "adadelta"
    learning_rate: float = 1.0
    accumulate: int = 1
    """Parts that a batch is taken in, for less memory."""
    report: bool = False
    """Write report.html at the end."""

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.task == "planted":
            return ()
        text = "sst-trees" if self.task == "kmr" else self.task
        lists = similarity_lists()
        return (text, *map(at_hand, self.vectors), lists, "vader-lexicon")


CONTROL = Config(preset="rt-polarity-50d", vectors=("glove-50d",))
KMR = Config(
    preset="kmr",
    task="kmr",
    vectors=("glove-100d",),
    protocol="seeds",
    parts=5,
    epochs=5,
    batch_size=64,
    buckets=5,
    model=Model(kind="lstm", norm_limit=None),
    optimizer="adam",
    learning_rate=1e-3,
)
SMOKE = Config(
    preset="smoke",
    task="planted",
    vectors=("planted",),
    arms=("finetune", "fixed", "delta-1e-3", "prox-1e-3"),
    parts=2,
    epochs=2,
    batch_size=32,
    buckets=1,
    model=Model(maps=8),
)
DEMO = Config(
    preset="demo",
    task="rt-polarity-8530",
    vectors=("glove-50d",),
    arms=("fixed", "finetune", "delta-1e-4"),
    parts=5,
    epochs=6,
    model=Model(maps=50),
    report=True,
)
# What the demo changes where there is no network.
OFFLINE = {"preset": "demo-offline", "task": "planted", "vectors": ("planted",)}

PRESETS = {
    "rt-polarity": (
        "Table 1: Kim's CNN, ten folds; two hours on one core",
        Config(preset="rt-polarity"),
    ),
    "rt-polarity-50d": ("the same on the complete GloVe 50-d; an hour", CONTROL),
    "kmr": ("Table 1: an LSTM on labelled phrases, five seeds; two hours", KMR),
    "demo": ("three arms on GloVe 50-d and 8,530 sentences; five minutes", DEMO),
    "smoke": ("the planted world; seconds", SMOKE),
}

# Accuracy in Table 1 of the paper.
PAPER = {
    "rt-polarity": {
        "finetune": 78.61,
        "fixed": 76.66,
        "delta-1e-3": 76.17,
        "delta-1e-4": 79.30,
        "delta-1e-5": 78.71,
    },
    "kmr": {
        "finetune": 68.43,
        "fixed": 66.72,
        "delta-1e-3": 67.01,
        "delta-1e-4": 67.97,
        "delta-1e-5": 68.96,
    },
}
