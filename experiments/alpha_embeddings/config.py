"""Presets of natural alpha-embeddings, and the figures that the paper prints."""

import dataclasses
from typing import Literal

from experiments.common.cli import Experiment
from experiments.common.names import at_hand, similarity_lists
from jaxemb.data import sources
from jaxemb.errors import InputError

SLUG = "alpha_embeddings"
TITLE = "Natural alpha-embeddings: words as tangents of distributions over contexts"

# The similarity lists of the paper that are at hand, and its columns; SCWS is not.
SIMILARITY = {
    "WS-353-ALL": "ws353",
    "MC-30": "mc",
    "RG-65": "rg",
    "WS-353-SIM": "ws353sim",
    "WS-353-REL": "ws353rel",
    "MEN-TR-3k": "men",
    "MTurk-287": "mturk287",
    "RW-STANFORD": "rw",
    "SIMLEX-999": "simlex999",
}
PARTS = "WS-353-SIM", "WS-353-REL"  # of another list: not pooled a second time

Task = Literal["similarity", "purity", "analogy", "newsgroups", "imdb"]
Variant = Literal["U", "U+V"]
Reference = Literal["0", "u", "ud"]
Metric = Literal["I", "F", "nF-pI", "nI-pF"]
Kind = Literal["linear", "bilstm"]
Text = Literal["imdb", "wikitext-2", "brown", "20newsgroups", "planted"]

_GRID = (-10.0, -6.0, -4.0, -3.0, -2.0, -1.0, -0.5, 0.0, 0.5)
_GRID += (1.0, 1.3, 1.7, 2.0, 3.0, 5.0, 10.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tables:
    """The GloVe tables that everything is computed from, trained once for all."""

    corpus: tuple[Text, ...] = ("imdb", "wikitext-2", "brown", "20newsgroups")
    """Texts: unlabelled reviews, an encyclopaedia, the Brown corpus, the messages of
    the training part; or the planted world."""
    min_count: int = 60
    """Words that occur less often are left out."""
    window: int = 10
    dims: tuple[int, ...] = (50, 100)
    """Widths, each with all seeds."""
    seeds: int = 3
    epochs: int = 10
    learning_rate: float = 0.2
    """Of GloVe's AdaGrad; its program's 0.05 takes more epochs."""
    folder: str | None = None
    """Where text and tables are kept, for other runs too; tables in the folder of the
    presets unless given."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Classifier:
    """What is trained on top of the word vectors, which stay as they are."""

    kinds: tuple[Kind, ...] = ("linear",)
    """BatchNorm and a dense layer over the mean of word vectors; a BiLSTM, the maximum
    over words, and two dense layers."""
    hidden: int = 32
    """Of each direction of the LSTM."""
    features: int = 20
    """Of the dense layer between."""
    dropout: float = 0.05
    epochs: int = 30
    """At most: the epoch of the highest score on the validation part counts."""
    batch_size: int = 64
    learning_rate: float = 2e-3
    """Of Adam, so high that scores come to rest before the last epoch: short of that
    it is the length of vectors that is compared, as long ones learn faster."""
    validation: float = 0.1
    """Share of the training texts, by class, that alpha and epoch are chosen on."""
    longest: int = 200
    """Content words of a text that the LSTM reads."""
    headers: bool = True
    """Keep the lines of newsgroup messages before the text."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """Tables, the embeddings made of them, and the tasks they are tried on."""

    slug = SLUG
    tasks: tuple[Task, ...] = ("similarity", "purity", "analogy")
    """Similarity, analogy and purity are of the vectors; newsgroups and imdb train a
    classifier."""
    tables: Tables = Tables()
    words: str | None = None
    """A file with your own table of words (u), with --contexts; nothing is trained."""
    contexts: str | None = None
    """The table of contexts (v), of the same words."""
    counts: str | None = None
    """A word and its count a line, for the references u and ud."""
    published: tuple[str, ...] = ("glove-50d", "glove-100d")
    """GloVe's own vectors (WG5), a baseline of the intrinsic tasks beside tables of the
    same width: data sets, of which a subset may stand in, or files."""
    variants: tuple[Variant, ...] = ("U", "U+V")
    """Whether a word's distribution is that of u or of u + v."""
    references: tuple[Reference, ...] = ("0", "u", "ud")
    """The distribution p0: uniform, the model's unigram, the corpus' unigram."""
    joint: Literal["learned", "variant"] = "learned"
    """Whose marginal the reference u is: of the joint that GloVe has learned, or for
    U+V of the one that u + v would give."""
    metrics: tuple[Metric, ...] = ("I", "F")
    """Plain or Fisher's, for lengths and products; nF-pI has Fisher's lengths and plain
    products."""
    alphas: tuple[float, ...] = _GRID
    limits: tuple[str, ...] = ("t1", "t3", "t3-w", "t5", "t5-w")
    """Limits at minus infinity: over how many contexts, and whether weighted."""
    folds: int = 3
    """Of the cross-validation that chooses alpha for analogies and similarity."""
    restarts: int = 3
    """Of k-means, for purity."""
    resamples: int = 1000
    """Of the bootstrap over test items."""
    classifier: Classifier = Classifier()
    export: bool = False
    """Write every embedding to WORKDIR/vectors, rows of length 1 in its metric and such
    that plain products are the metric's."""

    def __post_init__(self):
        if not (self.alphas or self.limits):
            raise InputError("--alphas and --limits are both empty; expected some")
        for limit in self.limits:
            limit_of(limit)
        if (self.words is None) != (self.contexts is None):
            raise InputError("expected --words and --contexts together")

    @property
    def intrinsic(self) -> bool:
        """Whether a task is of the vectors themselves."""
        return bool({"similarity", "purity", "analogy"} & set(self.tasks))

    @property
    def tables_folder(self) -> str:
        """Where tables are kept."""
        if "planted" in self.tables.corpus:
            return self.tables.folder or f"{self.workdir}/tables"
        return self.tables.folder or f"runs/{SLUG}/tables"

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if "planted" in self.tables.corpus:
            return ()
        named: list[str] = [] if self.words else list(self.tables.corpus)
        if self.intrinsic:
            tables = map(at_hand, self.published)
            named += [name for name in tables if name in sources.DATA_SETS]
        needed = {
            "similarity": similarity_lists(),
            "purity": "qvec",
            "analogy": "analogies",
            "newsgroups": "20newsgroups",
            "imdb": "imdb",
        }
        return tuple(dict.fromkeys([*named, *(needed[task] for task in self.tasks)]))


def limit_of(name: str) -> tuple[int, bool]:
    """How many contexts a limit is over, and whether they are weighted: `t3-w`."""
    digits = name.removeprefix("t").removesuffix("-w")
    if not name.startswith("t") or not digits.isdigit() or int(digits) < 1:
        raise InputError(f"--limits {name}: expected t1, t3, t3-w and the like")
    return int(digits), name.endswith("-w")


# The paper's grid is from -4 to 4 in steps of 0.2 near 0; every second step is here.
_COARSE = (-4.0, -3.0, -2.2, -1.4, -1.0, -0.6, -0.2, 0.2, 0.6, 1.0, 1.4, 2.2, 3.0, 4.0)

SIMILARITY_AND_PURITY = Config(preset="similarity", tasks=("similarity", "purity"))
ANALOGIES = Config(
    preset="analogies",
    tasks=("analogy",),
    variants=("U+V",),
    metrics=("I", "F", "nF-pI"),
)
LINEAR = Config(
    preset="linear",
    tasks=("newsgroups", "imdb"),
    variants=("U+V",),
    alphas=_COARSE,
)
BILSTM = Config(
    preset="bilstm",
    tasks=("imdb",),
    tables=Tables(dims=(100,)),
    variants=("U+V",),
    metrics=("F",),
    alphas=(-4.0, 1.0),
    limits=("t1",),
    classifier=Classifier(kinds=("bilstm",), epochs=5, learning_rate=4e-3),
)
SMOKE = Config(
    preset="smoke",
    tasks=("similarity", "purity", "analogy", "imdb"),
    published=(),
    tables=Tables(corpus=("planted",), min_count=1, dims=(8,), seeds=2, epochs=150),
    variants=("U+V",),
    references=("0", "u"),
    alphas=(-2.0, 1.0, 3.0),
    limits=("t1", "t3-w"),
    restarts=2,
    resamples=100,
    classifier=Classifier(epochs=2, batch_size=16),
)

PRESETS = {
    "similarity": (
        "word similarity and purity against alpha, 50-d and 100-d; half an hour "
        "with the training of the tables",
        SIMILARITY_AND_PURITY,
    ),
    "analogies": ("analogies against alpha, alpha by cross-validation", ANALOGIES),
    "linear": ("20 Newsgroups and IMDB, linear classifiers", LINEAR),
    "bilstm": ("IMDB, a BiLSTM", BILSTM),
    "custom": (
        "your own tables: --words U.vec --contexts V.vec --counts counts.tsv",
        Config(export=True, published=()),
    ),
    "smoke": ("a planted world; seconds", SMOKE),
}

# Tables 1, 2, 4 and 5, on corpora of 1.5 and 1.8 billion words with 300 dimensions: no
# row here has a published figure beside it.
PAPER = {
    "similarity, all (geb)": {"LE-U+V-ud-F": 65.2, "U": 51.9, "U+V": 53.7},
    "analogy, total (geb)": {"E-U+V-0-I": 76.7, "U": 70.4, "U+V": 73.2},
    "20 Newsgroups, AUC": {"E-U+V-u-F": 96.79, "LE-U+V-u-F": 96.65, "U+V": 96.34},
    "20 Newsgroups, accuracy": {"E-U+V-u-F": 66.30, "LE-U+V-ud-F": 64.76, "U+V": 65.06},
    "IMDB, linear": {"E-U+V-ud-F": 84.23, "LE-U+V-u-F": 84.29, "U+V": 83.76},
    "IMDB, BiLSTM": {"E-U+V-u-F": 88.56, "LE-U+V-u-F": 88.66, "U+V": 88.00},
}
