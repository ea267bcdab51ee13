"""Presets of delta embedding learning."""

import dataclasses
import math
from typing import Literal, NamedTuple

from experiments.common.cli import Experiment
from experiments.common.names import at_hand, similarity_lists
from jaxemb.data import sources
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

    @property
    def other_form(self) -> str:
        """The name of the arm with the same weight in the other form."""
        return f"{'delta' if self.prox else 'prox'}-{self.name.partition('-')[2]}"


# In the order of the paper's Table 1.
ARMS = ("finetune", "fixed", "delta-1e-3", "delta-1e-4", "delta-1e-5")


def arm(name: str) -> Arm:
    """`fixed`, `finetune`, `delta-C` (penalty in the loss) or `prox-C`.

    C may be infinite with a proximal step, which then is `fixed`; in a loss it may not.
    """
    if name in ("fixed", "finetune"):
        return Arm(name, name)
    kind, _, weight = name.partition("-")
    try:
        c = float(weight)
    except ValueError:
        c = math.nan
    bounded = math.isfinite(c) or (kind == "prox" and not math.isnan(c))
    if kind not in ("delta", "prox") or not bounded or c < 0:
        raise InputError(f"--arms {name}: expected fixed, finetune, delta-C or prox-C")
    return Arm(name, "delta", c, prox=kind == "prox")


class Measure(NamedTuple):
    """A score of an evaluation and what rows call it, in per cent."""

    score: str
    title: str


@dataclasses.dataclass(frozen=True)
class Kind:
    """What the tasks of one kind have in common."""

    name: Literal["sentiment", "inference", "reading"]
    models: tuple[str, ...]
    """Which models can do them."""
    selects: str
    """The score whose highest value on dev chooses the epoch."""
    examples: str
    """What it is trained on, in the plural."""


SENTIMENT = Kind("sentiment", ("cnn", "lstm"), "accuracy", "sentences")
INFERENCE = Kind("inference", ("esim",), "accuracy", "sentence pairs")
READING = Kind("reading", ("bidaf",), "f1", "questions")

Task = Literal[
    "rt-polarity",
    "rt-polarity-8530",
    "kmr",
    "planted",
    "mnli-dev-matched",
    "sick",
    "multinli-fiction",
    "planted-pairs",
    "squad2-half-dev",
    "squad",
    "planted-questions",
]
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("rt-polarity", "rt-polarity-8530", "kmr", "planted"), SENTIMENT),
    **dict.fromkeys(
        ("mnli-dev-matched", "sick", "multinli-fiction", "planted-pairs"), INFERENCE
    ),
    **dict.fromkeys(("squad2-half-dev", "squad", "planted-questions"), READING),
}

_ACCURACY = Measure("test/accuracy", "test accuracy (%)")
_SNLI = Measure("snli/accuracy", "SNLI accuracy (%)")
_F1 = Measure("test/f1", "F1 (%)")
_EXACT = Measure("test/exact", "exact match (%)")
# What is measured of each task, the main figure first; the others have accuracy.
_MEASURES: dict[str, tuple[Measure, ...]] = {
    "mnli-dev-matched": (_ACCURACY, _SNLI),
    "multinli-fiction": (
        Measure("test/accuracy", "genre accuracy (%)"),
        Measure("matched/accuracy", "matched accuracy (%)"),
        Measure("mismatched/accuracy", "mismatched accuracy (%)"),
        _SNLI,
    ),
    **dict.fromkeys(("squad2-half-dev", "squad", "planted-questions"), (_F1, _EXACT)),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """What is above the word vectors."""

    kind: Literal["cnn", "lstm", "esim", "bidaf"] = "cnn"
    """Kim's CNN, or one LSTM whose last state is classified; ESIM for sentence pairs,
    BiDAF for questions."""
    widths: tuple[int, ...] = (3, 4, 5)
    """Window widths of the CNN."""
    maps: int = 100
    """Feature maps of the CNN for each width."""
    hidden: int = 128
    """State size of the LSTMs, of each direction."""
    dropout: float = 0.5
    norm_limit: float | None = 3.0
    """Largest L2 norm of the weights into one class."""
    ema: float | None = None
    """Decay of the average of the parameters that is evaluated; None: none is."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of the computation; parameters stay float32."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """The longest texts; see README for what happens to others."""

    sentence: int = 50
    """Words of a premise or hypothesis; the rest is cut off."""
    context: int = 400
    """Words of a paragraph that is trained on."""
    question: int = 30
    """Words of a question that is trained on."""
    answer: int | None = None
    """Words of a predicted answer; None: any number."""


# The fields of a Config that do not decide what one part of an arm measures.
BESIDE_PARTS = (
    *("preset", "vectors", "arms", "report", "run"),
    *("intrinsic", "resamples", "export"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """One experiment: a task, a word table, and the arms compared on it."""

    slug = SLUG
    task: Task = "rt-polarity"
    """Sentences by polarity, their part that is in a wheel, labelled phrases in five
    classes; sentence pairs by entailment; questions about paragraphs; or the planted
    world of either."""
    vectors: tuple[str, ...] = ("glove-100d",)
    """Word tables, one experiment each: data-set names or files. glove-100d falls back
    to its subset where only that is at hand."""
    arms: tuple[str, ...] = ARMS
    """fixed, finetune, delta-C (penalty in the loss), prox-C (proximal step)."""
    protocol: Literal["folds", "seeds"] = "folds"
    """Cross-validation, fold f with seed f; or one split and several seeds."""
    parts: int = 10
    """How many folds or seeds."""
    epochs: int = 25
    batch_size: int = 50
    buckets: int = 4
    """How many padded lengths sentences (premises, paragraphs) are sorted into."""
    second_buckets: int = 1
    """The same of the second text: hypotheses, questions."""
    model: Model = Model()
    limits: Limits = Limits()
    optimizer: Literal["adadelta", "adam", "sgd"] = "adadelta"
    learning_rate: float = 1.0
    decay: Literal["none", "linear"] = "none"
    """Of the learning rate: linear, to 0 at the end of the longest part."""
    share: float = 1.0
    """Of the paragraphs to train on, a seeded choice; questions only."""
    accumulate: int = 1
    """Parts that a batch is taken in, for less memory."""
    intrinsic: Literal["similarity", "all"] = "similarity"
    """What is measured of tuned tables: word similarity; or also its change with a
    bootstrap over word pairs, QVEC, the words that moved and the neighbours of not."""
    resamples: int = 1000
    """Of that bootstrap."""
    export: bool = False
    """Write the tuned tables of part 0 to tables/."""
    report: bool = False
    """Write report.html at the end."""

    @property
    def kind(self) -> Kind:
        """What the task has in common with others."""
        return KINDS[self.task]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is measured on test, the main figure first."""
        return _MEASURES.get(self.task, (_ACCURACY,))

    @property
    def planted(self) -> bool:
        """Whether the task is a world of `jaxemb.data.synthetic`."""
        return self.task.startswith("planted")

    @property
    def texts(self) -> tuple[str, ...]:
        """The data sets that hold the task's texts."""
        if self.task in ("mnli-dev-matched", "multinli-fiction"):
            return (self.task.removesuffix("-fiction"), snli_at_hand())
        here = {"kmr": ("sst-trees",), "squad2-half-dev": ("squad2-half-dev", "xquad")}
        return here.get(self.task, (self.task,))

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.planted:
            return ()
        tables = map(at_hand, self.vectors)
        features = ("qvec",) if self.intrinsic == "all" else ()
        lists = similarity_lists()
        return (*self.texts, *tables, lists, *features, "vader-lexicon")

    def check(self) -> None:
        """Raises InputError where the settings do not go together."""
        if self.model.kind not in self.kind.models:
            raise InputError(
                f"--model.kind {self.model.kind}: {self.task} takes "
                f"{' or '.join(self.kind.models)}"
            )
        if not 0 < self.share <= 1:
            raise InputError(f"--share {self.share}: expected more than 0, at most 1")
        if self.share < 1 and self.kind is not READING:
            raise InputError(f"--share {self.share}: {self.task} has no paragraphs")


def snli_at_hand() -> str:
    """SNLI's official files or, where only that is here, its test set from e-SNLI."""
    if not sources.locate("snli") and sources.locate("snli-esnli"):
        return "snli-esnli"
    return "snli"


RT_POLARITY = Config(preset="rt-polarity", intrinsic="all")
CONTROL = dataclasses.replace(
    RT_POLARITY, preset="rt-polarity-50d", vectors=("glove-50d",)
)
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
    intrinsic="all",
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

# Both forms of the penalty, side by side.
_BOTH_FORMS = (*ARMS, "prox-1e-4")
_ESIM = Model(kind="esim", hidden=300, norm_limit=None)
MULTINLI = Config(
    preset="esim-multinli",
    task="multinli-fiction",
    arms=_BOTH_FORMS,
    protocol="seeds",
    parts=5,
    epochs=10,
    batch_size=32,
    buckets=3,
    second_buckets=2,
    model=_ESIM,
    optimizer="adam",
    learning_rate=4e-4,
    intrinsic="all",
)
# Cost decides the sizes of these. With so few pairs the original's rate and dropout
# hardly leave chance: rate and dropout are from the dev set of the first fold, with
# fixed vectors.
ESIM = dataclasses.replace(
    MULTINLI,
    preset="esim",
    task="mnli-dev-matched",
    arms=ARMS,
    protocol="folds",
    epochs=20,
    model=dataclasses.replace(_ESIM, hidden=32, dropout=0.3),
    learning_rate=2e-3,
)
SICK = dataclasses.replace(
    ESIM,
    preset="esim-sick",
    task="sick",
    arms=_BOTH_FORMS,
    protocol="seeds",
    epochs=30,
    buckets=2,
)
SICK_CONTROL = dataclasses.replace(
    SICK,
    preset="esim-sick-50d",
    vectors=("glove-50d",),
    arms=("fixed", "finetune", "delta-1e-4"),
)
_BIDAF = Model(kind="bidaf", hidden=100, dropout=0.2, norm_limit=None, ema=0.999)
SQUAD = Config(
    preset="bidaf-squad",
    task="squad",
    arms=_BOTH_FORMS,
    protocol="seeds",
    parts=3,
    epochs=12,
    batch_size=60,
    buckets=5,
    model=_BIDAF,
    optimizer="adadelta",
    learning_rate=0.5,
    intrinsic="all",
)
# As for ESIM: cost decides the size, dev with fixed vectors the number of updates.
BIDAF = dataclasses.replace(
    SQUAD,
    preset="bidaf",
    task="squad2-half-dev",
    arms=ARMS,
    epochs=30,
    batch_size=30,
    buckets=4,
    model=dataclasses.replace(_BIDAF, hidden=32, ema=0.99),
    optimizer="adam",
    learning_rate=2e-3,
    limits=Limits(context=250),
)
_SMALL = {
    "vectors": ("planted",),
    "arms": ("finetune", "delta-1e-3"),
    "parts": 2,
    "epochs": 3,
    "batch_size": 32,
    "buckets": 1,
    "second_buckets": 1,
    "optimizer": "adam",
    "learning_rate": 1e-2,
    "resamples": 50,
}
SMOKE_ESIM = dataclasses.replace(
    ESIM,
    preset="smoke-esim",
    task="planted-pairs",
    model=dataclasses.replace(_ESIM, hidden=8),
    **_SMALL,
)
SMOKE_BIDAF = dataclasses.replace(
    SQUAD,
    preset="smoke-bidaf",
    task="planted-questions",
    model=dataclasses.replace(_BIDAF, hidden=8, ema=0.9),
    export=True,
    **_SMALL,
)

# The presets that are the paper's own runs, by task.
OF_THE_PAPER = {preset.task: preset for preset in (RT_POLARITY, KMR, MULTINLI, SQUAD)}

PRESETS = {
    "rt-polarity": (
        "Table 1: Kim's CNN, ten folds; two hours on one core",
        RT_POLARITY,
    ),
    "rt-polarity-50d": ("the same on the complete GloVe 50-d; an hour", CONTROL),
    "kmr": ("Table 1: an LSTM on labelled phrases, five seeds; two hours", KMR),
    "esim": (
        "ESIM on 9,815 pairs of MultiNLI, five folds, SNLI as transfer; 80 minutes",
        ESIM,
    ),
    "esim-sick": ("the same on SICK, six arms, five seeds; 50 minutes", SICK),
    "esim-sick-50d": (
        "three arms of it on the complete GloVe 50-d; 25 minutes",
        SICK_CONTROL,
    ),
    "bidaf": (
        "BiDAF on 2,575 questions of SQuAD 2.0, XQuAD as test; 100 minutes on one core",
        BIDAF,
    ),
    "esim-multinli": (
        "Table 1: ESIM on the fiction of MultiNLI; needs its official files",
        MULTINLI,
    ),
    "bidaf-squad": ("Table 1: BiDAF on SQuAD 1.1; an accelerator's work", SQUAD),
    "demo": ("three arms on GloVe 50-d and 8,530 sentences; five minutes", DEMO),
    "smoke": ("the planted world; seconds", SMOKE),
    "smoke-esim": ("planted sentence pairs; seconds", SMOKE_ESIM),
    "smoke-bidaf": ("planted questions; seconds", SMOKE_BIDAF),
}
