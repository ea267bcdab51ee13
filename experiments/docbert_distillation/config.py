"""Presets of DocBERT and its students, and the figures that the paper prints."""

import dataclasses
from typing import Literal

from experiments.common.cli import Experiment
from experiments.common.names import at_hand
from jaxemb.data import sources
from jaxemb.errors import InputError

SLUG = "docbert_distillation"
TITLE = "Exploring the limits of simple learners in knowledge distillation"

Student = Literal["LSTM", "KimCNN", "LR"]
Baseline = Literal["XML-CNN", "HAN", "SVM"]
Direction = Literal["student_teacher", "teacher_student"]

REVIEWS = 25_000  # in each of IMDB's two files
# The cells of the control: whether the transfer set is augmented, and a teacher heard.
ARMS = {
    "plain": (False, False),
    "augmented": (True, False),
    "KD": (False, True),
    "KD, augmented": (True, True),
}
MAIN = "KD, augmented"
# The other direction of the divergence, in the paper's setting.
OTHER_WAY = "KD, augmented, other direction"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Teacher:
    """How the encoder is tuned."""

    weights: str = "minilm"
    """A data set, or a folder of weights as the transformers library has them."""
    length: int = 96
    """Pieces that documents are cut to (the paper's MSL)."""
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 2e-4
    warmup: float = 0.1
    """Share of the steps in which the rate rises."""
    buckets: int = 4
    """Padded lengths, of each of which a program is compiled."""
    lengths: tuple[int, ...] = (16, 32, 64)
    """Shorter cuts at which the tuned teacher is tested, too."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Students:
    """How students and baselines are trained."""

    vectors: str = "glove-100d"
    """A data set or a file of word vectors, which stay as they are."""
    length: int = 96
    """Words that documents are cut to; tf-idf sees all of them."""
    steps: int = 400
    """Of every cell of the control alike, whatever the size of its training set."""
    evaluations: int = 5
    """How often the development set is scored; the best is tested."""
    batch_size: int = 32
    learning_rate: float = 5e-3
    linear_learning_rate: float = 3e-2
    """Of LR and SVM, which start at 0."""
    dropout: float = 0.5
    hidden: int = 64
    """Of each direction of the LSTM."""
    weight_drop: tuple[float, float] = (0.1, 0.0)
    """Of the LSTM's recurrent kernels, forward and backward; the authors' program drops
    from the forward one only."""
    type_dropout: float = 0.2
    ema: float = 0.99
    """Decay of the LSTM's average of parameters."""
    activation: float = 0.0
    """Weight of the size of the LSTM's states (AR)."""
    temporal: float = 0.0
    """Weight of their differences (TAR)."""
    maps: int = 50
    """Of each width of KimCNN and XML-CNN."""
    features: int = 128
    """Of the layer between in XML-CNN."""
    han_hidden: int = 50
    sentences: tuple[int, int] = (8, 24)
    """Sentences, and words of each, that HAN reads."""
    words: int | None = None
    """The most words of tf-idf; all unless given."""
    weight_decay: float = 1e-5
    """Of the SVM."""
    buckets: int = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Composed:
    """A student with and without a teacher, pruning and adversarial training."""

    student: Literal["LSTM", "KimCNN"] = "KimCNN"
    sparsity: float = 0.9
    """Share of each matrix that pruning leaves at 0."""
    gradual: float = 0.25
    """Share of the steps over which it gets there; the rest are recovery, and only
    there are students scored."""
    period: int = 10
    """Steps between choices of masks."""
    epsilon: float = 5.0
    """Length of the change of a text's vectors that adversarial training adds the loss
    of (the fast gradient method)."""
    radii: tuple[float, ...] = (2.5, 5.0, 10.0)
    """Lengths of the changes under which students are tested."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """A teacher, its students, and the texts that it teaches them on."""

    slug = SLUG
    study: Literal["students", "composed"] = "students"
    """The paper's, or all eight mixtures of a teacher, pruning and adversarial
    training."""
    data: Literal["reuters", "imdb", "planted"] = "reuters"
    ratings: bool = True
    """Of IMDB: ten classes by stars, as in the paper; else positive or negative."""
    documents: tuple[int, int, int] | None = None
    """So many of train, dev and test, drawn once for all; all of Reuters (a quarter of
    its training wires are the development part) unless given."""
    teacher: Teacher = Teacher()
    students: Students = Students()
    composed: Composed = Composed()
    systems: tuple[Student, ...] = ("LSTM", "KimCNN", "LR")
    baselines: tuple[Baseline, ...] = ("XML-CNN", "HAN", "SVM")
    factor: int = 3
    """The transfer set's size, in training sets."""
    weight: float = 1.0
    """Lambda of equation 1."""
    direction: Direction = "student_teacher"
    """Of the divergence, as printed; students of `MAIN` are also trained by the
    other."""
    temperature: float = 1.0
    gold_for_copies: bool = True
    """Whether changed documents keep the label of what they were."""
    sweep: tuple[int, ...] = (16, 32)
    """Other widths of the LSTM, for Figure 1."""
    seeds: int = 3
    repeats: int = 11
    """Calls whose median is a model's time."""

    @property
    def multi_label(self) -> bool:
        """Whether a document may have several classes."""
        return self.data != "imdb" and self.study != "composed"

    @property
    def metric(self) -> str:
        """What is reported."""
        return "F1 (%)" if self.multi_label else "accuracy (%)"

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.data == "planted":
            return ()
        named = ["reuters-21578" if self.data == "reuters" else "imdb"]
        named.append("ud-english-ewt")
        for name in (self.teacher.weights, at_hand(self.students.vectors)):
            if name in sources.DATA_SETS:
                named.append(name)
        return tuple(named)

    def check(self) -> None:
        """Names the first setting that makes no run."""
        for name in ("seeds", "factor", "repeats"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} {getattr(self, name)}: expected 1 or more")
        if self.students.steps < self.students.evaluations:
            raise InputError(
                f"--students.steps {self.students.steps}: expected as many as "
                f"evaluations, {self.students.evaluations}, or more"
            )
        if self.study == "composed" and self.data == "reuters":
            raise InputError("--study composed: expected texts of one class, as IMDB's")
        if self.study == "composed":
            most = 1 / self.students.evaluations
            if not 0 < self.composed.gradual <= most:
                raise InputError(
                    f"--composed.gradual {self.composed.gradual}: expected above 0 and "
                    f"at most {most:g}, after which students are first scored"
                )
        train, dev, test = self.documents or (1, 1, 1)
        if min(train, dev, test) < 1:
            raise InputError(
                f"--documents {self.documents}: expected 1 or more of each"
            )
        if self.data == "imdb" and max(train + dev, test) > REVIEWS:
            raise InputError(
                f"--documents {self.documents}: expected at most {REVIEWS:,} of train "
                "and dev together, and of test"
            )


_PAPER_TEACHER = Teacher(
    weights="bert-large-uncased",
    length=512,
    epochs=30,
    batch_size=16,
    learning_rate=2e-5,
    lengths=(64, 128, 256, 384),
)
_PAPER_STUDENTS = Students(
    vectors="GoogleNews-vectors-negative300.bin",
    length=1000,
    steps=4000,
    evaluations=30,
    batch_size=128,
    learning_rate=0.01,
    linear_learning_rate=0.01,
    hidden=512,
    maps=100,
    features=512,
    sentences=(30, 60),
)

PRESETS = {
    "reuters": (
        "Reuters-21578, ModApte, 90 topics: MiniLM to its students; 85 minutes",
        Config(preset="reuters"),
    ),
    "imdb": (
        "IMDB by stars, 4,500 reviews: MiniLM to its students; 85 minutes",
        Config(
            preset="imdb",
            data="imdb",
            documents=(2000, 500, 2000),
            teacher=Teacher(length=256, epochs=2, learning_rate=1e-4, lengths=(64,)),
            students=Students(length=200, steps=200, sentences=(12, 24)),
            factor=4,
            weight=4.0,
            sweep=(),
        ),
    ),
    "composed": (
        "distilled, pruned, adversarially trained: a 2 × 2 × 2 table on IMDB; an hour",
        Config(
            preset="composed",
            study="composed",
            data="imdb",
            ratings=False,
            documents=(2000, 500, 2000),
            teacher=Teacher(length=256, epochs=2, learning_rate=1e-4, lengths=()),
            students=Students(length=200, steps=400, evaluations=4, learning_rate=1e-3),
            factor=1,
            weight=4.0,
            seeds=5,
        ),
    ),
    "reuters-paper": (
        "the paper's sizes: --teacher.weights FOLDER --students.vectors FILE",
        Config(
            preset="reuters-paper",
            teacher=_PAPER_TEACHER,
            students=_PAPER_STUDENTS,
            sweep=(32, 64, 128, 256),
            seeds=5,
        ),
    ),
    "imdb-paper": (
        "the paper's sizes on the 50,000 reviews of IMDB by stars, likewise",
        Config(
            preset="imdb-paper",
            data="imdb",
            documents=(20_000, 5_000, 25_000),
            teacher=dataclasses.replace(_PAPER_TEACHER, epochs=4),
            students=dataclasses.replace(
                _PAPER_STUDENTS,
                steps=20_000,
                batch_size=64,
                learning_rate=1e-3,
                linear_learning_rate=1e-3,
            ),
            factor=4,
            weight=4.0,
            sweep=(32, 64, 128, 256),
            seeds=5,
        ),
    ),
    "smoke": (
        "planted topics, every system; a minute",
        Config(
            preset="smoke",
            data="planted",
            teacher=Teacher(
                weights="planted",
                length=24,
                epochs=4,
                batch_size=16,
                learning_rate=3e-3,
                buckets=1,
                lengths=(8,),
            ),
            students=Students(
                vectors="planted",
                length=32,
                steps=20,
                evaluations=1,
                batch_size=16,
                learning_rate=3e-2,
                linear_learning_rate=0.1,
                hidden=4,
                maps=4,
                features=8,
                han_hidden=3,
                sentences=(3, 8),
                buckets=1,
            ),
            factor=2,
            sweep=(2,),
            seeds=2,
            repeats=2,
        ),
    ),
}

# Table 2, test columns, and Table 3 in millions. Teachers here are smaller, so that no
# row has a published figure beside it; claims name them.
_TEST = {
    "reuters": {
        "LR": 74.8, "SVM": 86.1, "KimCNN": 80.8, "XML-CNN": 86.2, "HAN": 85.2,
        "LSTM": 87.0, "BERT-base": 89.0, "teacher": 90.7, "KD-LSTM": 88.9,
        "KD-KimCNN": 87.0, "KD-LR": 83.7,
    },
    "imdb": {
        "LR": 43.4, "SVM": 42.4, "KimCNN": 42.7, "HAN": 51.2, "LSTM": 52.8,
        "BERT-base": 54.2, "teacher": 55.6, "KD-LSTM": 53.7, "KD-KimCNN": 48.3,
        "KD-LR": 43.3,
    },
}  # fmt: skip
PARAMETERS = {"LR": 3.3, "KimCNN": 0.4, "LSTM": 3.3, "BERT-base": 110}
FLOPS = {"LR": 6.5, "KimCNN": 26.0, "LSTM": 780.9, "BERT-base": 30_000}


def paper(config: Config) -> dict[str, dict[str, float]]:
    """The paper's test figures by metric, which claims are to name."""
    return {config.metric: _TEST[config.data]} if config.data in _TEST else {}
