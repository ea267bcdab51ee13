"""Presets of multi-task meta-embedding, and the figures that the paper prints."""

import dataclasses
from typing import Literal

from experiments.common.cli import Experiment
from experiments.common.names import MIXED, at_hand, similarity_lists
from experiments.common.options import Training
from jaxemb.data import sources
from jaxemb.errors import InputError

SLUG = "multitask_meta_embedding"
TITLE = "Meta-embedding as an auxiliary task: reconstruct the sources while learning"

# The six similarity lists of the paper, and their columns.
SIMILARITY = {
    "SIMLEX-999": "SimLex",
    "WS-353-ALL": "WS353",
    "RG-65": "RG",
    "MTurk-771": "MTurk",
    "RW-STANFORD": "RW",
    "MEN-TR-3k": "MEN",
}
ANALOGY = {"msr": "MSR", "google": "Google", "semeval-2012": "SemEval"}

Task = Literal[
    "unsupervised", "supervised", "ablations", "analogies", "pos", "recipes", "imdb"
]
Loss = Literal["cosine", "l1", "l2", "kl"]
Supervision = Literal["OLS", "NLL", "Brier"]
Distance = Literal["manhattan", "euclidean", "cosine", "asymmetric"]
Control = Literal["leaky", "words", "shuffled"]
Encoder = Literal["cnn", "lstm", "gru", "highway"]

EXTRINSIC = "pos", "recipes", "imdb"
TITLES = {"cosine": "Cos", "l1": "L1", "l2": "L2", "kl": "KL"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Autoencoder:
    """The self-supervised systems of Table 1."""

    systems: tuple[str, ...] = ()
    """Which of those that are trained, by name; all unless given."""
    hidden: int = 200
    """Of every encoder and of 1TON's vectors, and what SVD keeps."""
    epochs: int = 60
    """Over the words of the similarity lists: many, since losses converge at their own
    pace."""
    batch_size: int = 256
    learning_rate: float = 3e-3
    """Of Adam."""
    free_learning_rate: float = 1e-2
    """Of 1TON at the first step, 0 after the last."""
    free_steps: int = 300
    """Of 1TON, each with all words: in batches a free vector hardly moves."""
    agreement: float = 0.1
    """Weight of the agreement of codes, where sources have codes of their own, beside
    a reconstruction that is 1 where nothing is reconstructed."""
    dropout: float = 0.2
    seeds: int = 5
    paper_seeds: int = 2
    """With weights from N(0, 1), of the paper's autoencoders; 0 for none."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiTask:
    """Similarity supervised by five lists and tested on the sixth."""

    hold_outs: tuple[str, ...] = ()
    """Lists to hold out in turn and to test on, by name; all unless given. Every list
    supervises the models of the others."""
    hidden: tuple[int, ...] = (200,)
    """Of the encoder; the last is the width of the meta-embedding."""
    head: tuple[int, ...] = (50, 10)
    """Of the siamese layers above it."""
    supervisions: tuple[Supervision, ...] = ("OLS", "NLL", "Brier")
    distance: Distance = "manhattan"
    weights: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    """λ, of a reconstruction that is 1 where nothing is reconstructed; chosen for each
    pair of losses and each list held out by pairs of the other lists, with one seed.
    Nothing is chosen where there is but one."""
    epochs: int = 20
    """At most: the epoch of the highest correlation on pairs held out counts."""
    batch_size: int = 256
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 3e-3
    """Adam's goes to 0 with the last step, plain gradient descent's stays."""
    dropout: float = 0.2
    validation: float = 0.1
    """Share of the supervised pairs that epoch and λ are chosen on."""
    seeds: int = 5
    paper_seeds: int = 2
    """With weights from N(0, 1); 0 for none."""
    controls: tuple[Control, ...] = ("leaky", "words", "shuffled")
    """Beside the default, which takes pairs of the list held out away from supervision:
    leave them in; take all pairs with one of its words away; shuffle the labels."""
    control_seeds: int = 2
    """Of the controls, which have Brier's score only."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Extrinsic:
    """Taggers and classifiers with reconstruction as an auxiliary loss."""

    encoders: tuple[Encoder, ...] = ("cnn", "lstm", "gru", "highway")
    hidden: int = 32
    """Half the states: one direction has twice as many."""
    meta: tuple[int, ...] = (100,)
    """Hidden layers of the autoencoder."""
    loss: Loss = "cosine"
    """Of the reconstruction: the one of the paper's best meta-embedding."""
    level: Literal["word", "text"] = "word"
    """What is reconstructed: every word, or the mean of a text's words."""
    weight: float = 0.1
    """λ."""
    dropout: float = 0.2
    epochs: int = 10
    """At most: the epoch of the highest accuracy on dev counts."""
    batch_size: int = 32
    learning_rates: tuple[float, ...] = (3e-3, 1e-2)
    """Of Adam at the first step, 0 after the last; the one of highest accuracy on dev,
    chosen for every system with one seed: narrow ones want a higher one than wide ones.
    Meta and its control with λ = 0 have the same."""
    seeds: int = 5
    train: int | None = None
    """Examples to train on; all unless given."""
    test: int | None = None
    """Examples to test on; all unless given."""
    longest: int = 60
    """Words of an example that are read; the rest is neither trained nor tested on."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """Sources, and what is learned from them."""

    slug = SLUG
    tasks: tuple[Task, ...] = ("unsupervised",)
    sources: tuple[str, ...] = ()
    """Word tables: names of data sets, or files in any format that is read."""
    training: Training = Training()
    """Tables that are sources, too, those of the first seed."""
    losses: tuple[Loss, ...] = ("cosine", "l1", "l2", "kl")
    """Of reconstruction."""
    autoencoder: Autoencoder = Autoencoder()
    multitask: MultiTask = MultiTask()
    extrinsic: Extrinsic = Extrinsic()
    sgd_epochs: int = 50
    """Of plain gradient descent among the ablations; the paper's number."""
    analogy_seeds: int = 3
    """Of the models that are tried on analogies."""
    trained: str | None = None
    """Where models of similarity are kept, for other runs too; a folder of all presets
    unless given."""
    resamples: int = 500
    """Of the bootstrap over test items."""
    export: bool = False
    """Write the meta-embedding of every loss to WORKDIR as a table."""
    words: int = 50_000
    """The most frequent words, by the order of the tables, that `--export` is over."""

    def __post_init__(self):
        if not self.losses:
            raise InputError("--losses: expected one or more")
        if not self.multitask.weights:
            raise InputError("--multitask.weights: expected one or more")

    @property
    def is_planted(self) -> bool:
        """Whether the world is synthetic."""
        return self.preset == "smoke"

    @property
    def trained_folder(self) -> str:
        """Where models of similarity are kept."""
        if self.is_planted:
            return self.trained or f"{self.workdir}/trained"
        return self.trained or f"runs/{SLUG}/trained"

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.is_planted:
            return ()
        named = [n for n in map(at_hand, self.sources) if n in sources.DATA_SETS]
        needed = {
            "analogies": ("analogies", "semeval-2012"),
            "pos": ("ud-english-ewt",),
            "recipes": ("recipes",),
            "imdb": ("imdb",),
        }
        if set(self.tasks) - set(EXTRINSIC):
            named.append(similarity_lists())
        if self.training.seeds:
            named += MIXED
        return (*named, *(name for t in self.tasks for name in needed.get(t, ())))


SOURCES = "glove-100d", "googlenews-subset", "wordllama", "glove-50d"

SMOKE = Config(
    preset="smoke",
    tasks=("unsupervised", "supervised", "pos"),
    losses=("cosine",),
    autoencoder=Autoencoder(
        systems=("Concatenated", "1TON"), hidden=8, epochs=2, seeds=2, paper_seeds=0
    ),
    multitask=MultiTask(
        hidden=(8,),
        head=(6, 4),
        weights=(0.1,),
        epochs=3,
        batch_size=32,
        learning_rate=1e-2,
        seeds=2,
        paper_seeds=0,
        controls=("shuffled",),
    ),
    extrinsic=Extrinsic(encoders=("cnn",), hidden=4, meta=(8,), epochs=2, seeds=2),
    resamples=50,
)

PRESETS = {
    "similarity": (
        "Tables 1 and 2: all systems, losses, hold-outs and leakage controls; 2 hours",
        Config(
            preset="similarity", tasks=("unsupervised", "supervised"), sources=SOURCES
        ),
    ),
    "distances": (
        "distances of the siamese head, depth, the paper's optimiser; 35 minutes",
        Config(
            preset="distances",
            tasks=("ablations",),
            sources=SOURCES,
            losses=("cosine", "l2"),
            multitask=MultiTask(
                supervisions=("Brier",), weights=(1.0,), seeds=3, controls=()
            ),
        ),
    ),
    "analogies": (
        "Table 3: the models of `similarity` on analogies; minutes after that preset",
        Config(preset="analogies", tasks=("analogies",), sources=SOURCES),
    ),
    "own-vectors": (
        "Tables 1 and 2 with GloVe and skip-gram trained here, too; 15 minutes",
        Config(
            preset="own-vectors",
            tasks=("unsupervised", "supervised"),
            sources=SOURCES,
            training=Training(seeds=1),
            losses=("cosine", "l2"),
            autoencoder=Autoencoder(systems=("Concatenated",), paper_seeds=0),
            multitask=MultiTask(
                supervisions=("Brier",), weights=(1.0,), paper_seeds=0, controls=()
            ),
        ),
    ),
    "pos": (
        "Table 4 and Fig. 3, parts of speech of UD English EWT, five seeds; an hour",
        Config(
            preset="pos",
            tasks=("pos",),
            sources=SOURCES,
        ),
    ),
    "recipes": (
        "Table 4, ingredient phrases of recipes; half an hour",
        Config(
            preset="recipes",
            tasks=("recipes",),
            sources=SOURCES,
            extrinsic=Extrinsic(seeds=3, epochs=6),
        ),
    ),
    "imdb": (
        "Table 4, sentiment of IMDB reviews, a part of them; an hour",
        Config(
            preset="imdb",
            tasks=("imdb",),
            sources=SOURCES,
            extrinsic=Extrinsic(
                meta=(100, 100),
                level="text",
                weight=0.15,
                hidden=16,
                seeds=3,
                epochs=6,
                train=4000,
                test=4000,
                longest=200,
            ),
        ),
    ),
    "custom": (
        "your own tables: --sources a.vec b.bin; writes their meta-embeddings",
        Config(export=True, autoencoder=Autoencoder(seeds=1, paper_seeds=0)),
    ),
    "smoke": ("a planted world; seconds", SMOKE),
}

# Points that supervision is said to add to a list: L2-Brier over the best autoencoder.
# The paper's sources are not at hand, so that no row has a published figure.
PAPER_GAINS = {"SIMLEX-999": 29.63, "RW-STANFORD": 27.05}
PAPER_MEAN_GAIN = 11.33
"""Likewise to the mean of the lists; its tables give 11.44 for Cos-Brier over L2."""
