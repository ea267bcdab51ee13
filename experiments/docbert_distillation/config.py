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
    epochs: int = 5
    batch_size: int = 32
    learning_rate: float = 3e-4
    prior: bool = True
    """Whether the head's biases start at the classes' log odds in training, so that no
    steps are spent on learning that most classes are rare."""
    warmup: float = 0.1
    """Share of the steps in which the rate rises."""
    buckets: int = 4
    """Padded lengths, of each of which a program is compiled."""
    lengths: tuple[int, ...] = (16, 32, 64)
    """Shorter cuts at which the tuned teacher is tested, too."""
    epoch_sweep: tuple[int, ...] = ()
    """Fewer epochs for which it is tuned anew, for Figure 2."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Students:
    """How students and baselines are trained."""

    vectors: str = "glove-100d"
    """A data set or a file of word vectors, which stay as they are."""
    length: int = 64
    """Words that documents are cut to; tf-idf sees all of them."""
    passes: float = 3.0
    """Over the transfer set, copies counted; every cell of the control has as many
    steps, whatever the size of its own training set."""
    evaluations: int = 5
    """How often the development set is scored; the best is tested."""
    batch_size: int = 64
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
    sentences: tuple[int, int] = (6, 20)
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
    data: Literal[
        "reuters", "imdb", "hedwig-aapd", "hedwig-imdb", "hedwig-yelp", "planted"
    ] = "reuters"
    """The last three but one are the paper's own files, for those who have them."""
    ratings: bool = True
    """Of `imdb`: ten classes by stars; else positive or negative."""
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
        single = ("imdb", "hedwig-imdb", "hedwig-yelp")
        return self.data not in single and self.study != "composed"

    @property
    def metric(self) -> str:
        """What is reported."""
        return "F1 (%)" if self.multi_label else "accuracy (%)"

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.data == "planted":
            return ()
        named = ["reuters-21578" if self.data == "reuters" else self.data]
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
        if not self.students.passes > 0 or self.students.evaluations < 1:
            raise InputError(
                f"--students.passes {self.students.passes}, evaluations "
                f"{self.students.evaluations}: expected above 0, and 1 or more"
            )
        if self.study == "composed" and self.data in ("reuters", "hedwig-aapd"):
            raise InputError("--study composed: expected texts of one class, as IMDB's")
        if self.study == "composed":
            most = 1 / self.students.evaluations
            if not 0 < self.composed.gradual <= most:
                raise InputError(
                    f"--composed.gradual {self.composed.gradual}: expected above 0 and "
                    f"at most {most:g}, after which students are first scored"
                )
        if any(not 0 < n < self.teacher.epochs for n in self.teacher.epoch_sweep):
            raise InputError(
                f"--teacher.epoch-sweep {self.teacher.epoch_sweep}: expected 1 or "
                f"more, fewer than the {self.teacher.epochs} of the teacher"
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
    prior=False,
    lengths=(64, 128, 256, 384),
    epoch_sweep=(4, 10, 20),
)
_PAPER_STUDENTS = Students(
    vectors="GoogleNews-vectors-negative300.bin",
    length=1000,
    passes=30.0,
    evaluations=30,
    batch_size=128,
    learning_rate=0.01,
    linear_learning_rate=0.01,
    hidden=512,
    maps=100,
    features=512,
    sentences=(30, 60),
)
_REVIEW_TEACHER = Teacher(length=128, epochs=5, learning_rate=1e-4, lengths=(32, 64))
_REVIEW_STUDENTS = Students(length=128, learning_rate=2e-3, sentences=(10, 20))


def _paper(preset: str, data, *, epochs: int, factor: int, single: bool) -> Config:
    students = _PAPER_STUDENTS
    if single:
        students = dataclasses.replace(students, batch_size=64)
    if data != "reuters":
        students = dataclasses.replace(
            students, learning_rate=1e-3, linear_learning_rate=1e-3
        )
    return Config(
        preset=preset,
        data=data,
        teacher=dataclasses.replace(
            _PAPER_TEACHER,
            epochs=epochs,
            epoch_sweep=tuple(n for n in _PAPER_TEACHER.epoch_sweep if n < epochs),
        ),
        students=students,
        factor=factor,
        weight=4.0 if single else 1.0,
        sweep=(32, 64, 128, 256),
        seeds=5,
    )


PRESETS = {
    "reuters": (
        "Reuters-21578, ModApte, 90 topics: MiniLM to its students; 155 minutes",
        Config(preset="reuters", teacher=Teacher(epoch_sweep=(1,))),
    ),
    "imdb": (
        "IMDB by stars, 4,500 reviews: MiniLM to its students; 65 minutes",
        Config(
            preset="imdb",
            data="imdb",
            documents=(2000, 500, 2000),
            teacher=_REVIEW_TEACHER,
            students=_REVIEW_STUDENTS,
            factor=4,
            weight=4.0,
            sweep=(),
        ),
    ),
    "imdb-binary": (
        "the same reviews, positive or negative, twofold transfer set; 50 minutes",
        Config(
            preset="imdb-binary",
            data="imdb",
            ratings=False,
            documents=(2000, 500, 2000),
            teacher=_REVIEW_TEACHER,
            students=_REVIEW_STUDENTS,
            factor=2,
            weight=4.0,
            sweep=(),
        ),
    ),
    "composed": (
        "distilled, pruned, adversarially trained: a 2 × 2 × 2 table on IMDB; 50 "
        "minutes",
        Config(
            preset="composed",
            study="composed",
            data="imdb",
            ratings=False,
            documents=(2000, 500, 2000),
            teacher=dataclasses.replace(_REVIEW_TEACHER, lengths=()),
            students=dataclasses.replace(
                _REVIEW_STUDENTS, passes=8.0, evaluations=4, learning_rate=1e-3
            ),
            factor=1,
            weight=4.0,
            seeds=5,
        ),
    ),
    "reuters-paper": (
        "the paper's sizes: --teacher.weights FOLDER --students.vectors FILE",
        _paper("reuters-paper", "reuters", epochs=30, factor=3, single=False),
    ),
    "aapd-paper": (
        "likewise, on Hedwig's files of AAPD",
        _paper("aapd-paper", "hedwig-aapd", epochs=20, factor=4, single=False),
    ),
    "imdb-paper": (
        "likewise, on Hedwig's files of IMDB in ten classes",
        _paper("imdb-paper", "hedwig-imdb", epochs=4, factor=4, single=True),
    ),
    "yelp-paper": (
        "likewise, on Hedwig's files of Yelp 2014, which are not augmented",
        _paper("yelp-paper", "hedwig-yelp", epochs=1, factor=1, single=True),
    ),
    "smoke": (
        "planted topics, three of the students; half a minute",
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
                epoch_sweep=(1,),
            ),
            students=Students(
                vectors="planted",
                length=32,
                passes=2.5,
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
            systems=("KimCNN", "LR"),
            baselines=("SVM",),
            factor=2,
            sweep=(),
            seeds=2,
            repeats=2,
        ),
    ),
}

# Table 2, test columns, and Table 3 in millions; the teacher is BERT large. Teachers
# here are smaller, so that no row has a published figure beside it; claims name them.
_TEST = {
    "reuters": {
        "LR": 74.8, "SVM": 86.1, "KimCNN": 80.8, "XML-CNN": 86.2, "HAN": 85.2,
        "LSTM": 87.0, "BERT-base": 89.0, "teacher": 90.7, "KD-LSTM": 88.9,
        "KD-KimCNN": 87.0, "KD-LR": 83.7,
    },
    "hedwig-aapd": {
        "LR": 64.9, "SVM": 69.1, "KimCNN": 51.4, "XML-CNN": 68.7, "HAN": 68.0,
        "LSTM": 70.5, "BERT-base": 73.4, "teacher": 75.2, "KD-LSTM": 72.9,
        "KD-KimCNN": 70.6, "KD-LR": 71.3,
    },
    "hedwig-imdb": {
        "LR": 43.4, "SVM": 42.4, "KimCNN": 42.7, "HAN": 51.2, "LSTM": 52.8,
        "BERT-base": 54.2, "teacher": 55.6, "KD-LSTM": 53.7, "KD-KimCNN": 48.3,
        "KD-LR": 43.3,
    },
    "hedwig-yelp": {
        "LR": 60.9, "SVM": 59.6, "KimCNN": 66.1, "HAN": 67.9, "LSTM": 68.7,
        "BERT-base": 72.0, "teacher": 72.5, "KD-LSTM": 69.4, "KD-KimCNN": 66.2,
        "KD-LR": 62.3,
    },
}  # fmt: skip
PARAMETERS = {"LR": 3.3, "KimCNN": 0.4, "LSTM": 3.3, "BERT-base": 110.0}
FLOPS = {"LR": 6.5, "KimCNN": 26.0, "LSTM": 780.9, "BERT-base": 30_000.0}


def paper(config: Config) -> dict[str, dict[str, float]]:
    """The paper's test figures by metric, which claims are to name.

    Of `imdb` there are none: the paper's ten classes are of another collection, which
    is the one called `hedwig-imdb` here.
    """
    return {config.metric: _TEST[config.data]} if config.data in _TEST else {}
