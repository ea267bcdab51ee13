"""Presets of sub-word reconstruction, and the figures that the paper prints."""

import dataclasses
from typing import Literal

from experiments.common.cli import Experiment
from experiments.common.names import at_hand, similarity_lists
from jaxemb.data import sources
from jaxemb.errors import InputError

SLUG = "subword_reconstruction"
TITLE = "Reconstruction of word embeddings from sub-word parameters (characters)"

Study = Literal["similarity", "analogies", "tagging", "linear", "outliers"]
Head = Literal["relu", "linear", "highway"]
Distance = Literal["D1", "D2", "Dsqrt2", "Dinf", "Dcos"]
Row = Literal["FULL", "FULL+EMB", "CHAR"]

# The three similarity lists of the paper, as the two sources name them.
SIMILARITY_LISTS = {
    "WS-353": ("WS-353-ALL", "WS-353"),
    "MEN": ("MEN-TR-3k", "MEN"),
    "RW": ("RW-STANFORD", "RW"),
}
# Words whose neighbours Table 4 shows; the teacher at hand writes them in lower case.
SHOWN = ("beautiful", "amazing", "Springfield")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tagging:
    """The tagger that students are put into."""

    rows: tuple[Row, ...] = ("FULL", "FULL+EMB", "CHAR")
    """Beside them CHAR(D) for every distance, and CHAR(D, permuted)."""
    tags: Literal["xpos", "upos"] = "xpos"
    """The Penn Treebank's tags, as in the paper, or the universal ones."""
    sentences: int | None = None
    """The first so many training sentences; all unless given."""
    held_out: int | None = None
    """Likewise of dev and of test."""
    epochs: int = 6
    """Of the task; the first of best dev accuracy is tested."""
    batch_size: int = 32
    hidden: int = 100
    """Of each direction of the LSTM over words."""
    mlp: int = 100
    learning_rates: tuple[float, ...] = (5e-4, 2e-3, 5e-3)
    dropouts: tuple[float, ...] = (0.1, 0.3, 0.5)
    """One grid on FULL, of the first seed, chooses the cell for all rows."""
    unknown: float = 0.5
    """How often FULL sees a word of the training part's singletons as unknown."""
    buckets: int = 5
    """How many padded lengths sentences are sorted into."""
    margin: float = 0.1
    """Points that may be lost where a claim is that CHAR(D1) does what FULL does."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """A teacher, its students, and what is measured of them."""

    slug = SLUG
    studies: tuple[Study, ...] = ("similarity", "analogies", "linear")
    """What is claimed of similarity by epochs (Table 1), analogies and neighbours
    (Tables 2 and 4), tagging (Table 3), the linear model (section 3.1), outliers among
    the taught."""
    teacher: str = "glove-100d"
    """A word table: a data set's name or a file. glove-100d falls back to its subset
    where only that is at hand."""
    words: int = 20_000
    """The teacher's most frequent words; those of the tests are added."""
    heads: tuple[Head, ...] = ("relu",)
    """Of the student: relu (eq. 2), highway (eq. 3), or linear. Tagging is with relu
    alone, outliers with one; the linear model has none."""
    distances: tuple[Distance, ...] = ("D1", "D2", "Dsqrt2", "Dinf", "Dcos")
    permuted: tuple[Distance, ...] = ()
    """Distances for which a student of the teacher's rows in random order is trained
    too: the control that has seen vectors, but not whose they are."""
    hidden: int = 100
    """Width of characters and of each LSTM over them."""
    epochs: tuple[int, ...] = (10,)
    """After how many epochs of reconstruction students are scored; the last ends it."""
    curve_every: int = 2
    """Epochs between the points of curves."""
    seeds: int = 5
    batch_size: int = 256
    buckets: int = 6
    """How many padded lengths words are sorted into."""
    learning_rate: float = 5e-3
    tagging: Tagging = Tagging()
    linear_words: int = 2000
    """Of the linear model; half of them are held out."""
    outliers: float = 0.1
    """Share of the taught words whose teacher is made noise."""

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.preset == "smoke":
            return ()
        teacher = at_hand(self.teacher)
        named = [teacher] if teacher in sources.DATA_SETS else []
        if self.tests_tables:
            named += [similarity_lists(), "analogies"]
        return (*named, *(["ud-english-ewt"] if "tagging" in self.studies else []))

    @property
    def tests_tables(self) -> bool:
        """Whether students' tables are tested as such."""
        return bool({"similarity", "analogies"} & set(self.studies))

    @property
    def is_near_the_paper(self) -> bool:
        """Whether claims name the paper's figures: its width, the presets' teacher."""
        known = self.preset != "smoke" and self.teacher in TEACHERS
        return known and self.hidden == PAPER_HIDDEN

    @property
    def least_linear_words(self) -> int:
        """How many words leave half of them more than there are features, and one out.

        Features are the last states of both LSTMs and a constant.
        """
        return 2 * (2 * self.hidden + 2)

    def check(self) -> None:
        """Names the first setting that makes no run, or that no study heeds."""
        tagging = self.tagging
        numbers = {
            "words": self.words,
            "hidden": self.hidden,
            "seeds": self.seeds,
            "batch-size": self.batch_size,
            "buckets": self.buckets,
            "tagging.sentences": tagging.sentences,
            "tagging.held-out": tagging.held_out,
            "tagging.epochs": tagging.epochs,
            "tagging.batch-size": tagging.batch_size,
            "tagging.hidden": tagging.hidden,
            "tagging.mlp": tagging.mlp,
            "tagging.buckets": tagging.buckets,
        }
        for name, value in numbers.items():
            if value is not None and value < 1:
                raise InputError(f"--{name} {value}: expected 1 or more")
        several = {
            "studies": self.studies,
            "heads": self.heads,
            "distances": self.distances,
            "tagging.learning-rates": tagging.learning_rates,
            "tagging.dropouts": tagging.dropouts,
        }
        for name, values in several.items():
            if not values or len(set(values)) < len(values):
                told = " ".join(map(str, values))
                raise InputError(f"--{name} {told}: expected one or more, each once")
        heads = " ".join(self.heads)
        if "tagging" in self.studies and self.heads != ("relu",):
            raise InputError(f"--heads {heads}: expected relu, for tagging")
        if "outliers" in self.studies and len(self.heads) > 1:
            raise InputError(f"--heads {heads}: expected one, for outliers")
        epochs, every = self.epochs, self.curve_every
        if not epochs or list(epochs) != sorted(set(epochs)) or epochs[0] < 1:
            raise InputError(f"--epochs {epochs}: expected ascending numbers from 1")
        if every < 1 or any(epoch % every for epoch in epochs):
            raise InputError(f"--curve-every {every}: expected to divide --epochs")
        if wrong := set(self.permuted) - set(self.distances):
            names = " ".join(sorted(wrong))
            raise InputError(f"--permuted {names}: not in --distances")
        if not 0 <= self.outliers < 1:
            raise InputError(f"--outliers {self.outliers}: expected 0 to below 1")
        if "linear" in self.studies and self.linear_words < self.least_linear_words:
            raise InputError(
                f"--linear-words {self.linear_words}: expected "
                f"{self.least_linear_words} or more, as --hidden is {self.hidden}"
            )

    def check_taught(self, words: int) -> None:
        """Names a teacher that has too few words for the linear model."""
        if "linear" in self.studies and words < self.least_linear_words:
            raise InputError(
                f"--words {self.words}: expected {self.least_linear_words} or more "
                f"words of the teacher for the linear model, found {words}"
            )


PRESETS = {
    "similarity": (
        "Table 1: five distances and a control, 50 epochs; half an hour on one core",
        Config(
            preset="similarity",
            studies=("similarity",),
            permuted=("D1",),
            epochs=(10, 20, 30, 50),
            curve_every=5,
        ),
    ),
    "analogies": (
        "Tables 2 and 4, by three heads, 20 epochs; 80 minutes on one core",
        Config(
            preset="analogies",
            studies=("analogies",),
            heads=("highway", "relu", "linear"),
            permuted=("D1",),
            epochs=(10, 20),
            curve_every=5,
        ),
    ),
    "narrow": (
        "Table 1 with characters of 25 numbers, as Lample et al. have; 6 minutes",
        Config(
            preset="narrow",
            studies=("similarity",),
            hidden=25,
            epochs=(10, 20, 30, 50),
            curve_every=5,
        ),
    ),
    "tagging": (
        "Table 3: POS tags of UD English EWT, a grid, eight systems; under two hours",
        Config(
            preset="tagging",
            studies=("tagging",),
            distances=("D1", "D2", "Dinf", "Dcos"),
            permuted=("D1",),
            epochs=(50,),
            curve_every=10,
            seeds=3,
        ),
    ),
    "linear": (
        "section 3.1: the top layer, and students, with outliers; 2 minutes",
        Config(
            preset="linear",
            studies=("linear", "outliers"),
            heads=("linear",),
            distances=("D1", "D2"),
            hidden=25,
        ),
    ),
    "custom": (
        "your own table: --teacher my.vec",
        Config(permuted=("D1",), heads=("highway",)),
    ),
    "smoke": (
        "planted morphology, every study; seconds",
        Config(
            preset="smoke",
            studies=("similarity", "analogies", "tagging", "linear", "outliers"),
            teacher="planted",
            distances=("D1", "D2", "Dcos"),
            permuted=("D1",),
            hidden=8,
            epochs=(2, 4),
            seeds=2,
            batch_size=32,
            buckets=1,
            learning_rate=1e-2,
            tagging=Tagging(
                epochs=1,
                batch_size=8,
                hidden=4,
                mlp=4,
                learning_rates=(1e-2,),
                dropouts=(0.1,),
                buckets=1,
            ),
            linear_words=100,
        ),
    ),
}

# Figures of which a reader seeks the lowest.
LOWER_IS_BETTER = ("held-out D1", "held-out D2")

PAPER_HIDDEN = 100  # width of characters in all its tables
PAPER_EPOCHS = 10  # of reconstruction before analogies and tagging
# Tables beside whose students the paper's figures are named, in its teacher's stead.
TEACHERS = ("glove-100d", "glove-100d-subset")
# Tables 1 (× 100), 2 and 3 of the paper. Its teacher and treebank are not at
# hand, so that no row here has a published figure beside it; claims name them.
PAPER = {
    **{
        f"mean similarity after {epochs} epochs": {
            "random": 3,
            "D1": d1,
            "D2": d2,
            "Dinf": dinf,
            "Dcos": dcos,
            "teacher": 50,
        }
        for epochs, d1, d2, dinf, dcos in (
            (10, 9, 12, 12, 13),
            (20, 11, 12, 10, 15),
            (30, 12, 14, 9, 15),
            (50, 13, 15, 10, 15),
        )
    },
    "syntactic analogies (%)": {
        "random": 65.21,
        "D1": 26.32,
        "D2": 27.56,
        "Dinf": 45.68,
        "Dcos": 23.77,
        "teacher": 57.42,
    },
    "semantic analogies (%)": {
        "random": 1.13,
        "D1": 2.20,
        "D2": 2.47,
        "Dinf": 1.74,
        "Dcos": 2.22,
        "teacher": 59.58,
    },
    "test accuracy (%)": {
        "FULL": 97.20,
        "FULL+EMB": 97.32,
        "CHAR": 96.93,
        "CHAR(D1)": 97.17,
        "CHAR(D2)": 97.08,
        "CHAR(Dinf)": 97.06,
        "CHAR(Dcos)": 97.08,
    },
}
