"""Presets of words as fuzzy sets of features."""

import dataclasses
from typing import Literal

from experiments.common.cli import Experiment
from experiments.common.names import MIXED, at_hand, similarity_lists
from experiments.common.updates import groups_of
from jaxemb.data import sources
from jaxemb.errors import InputError

SLUG = "feature_tuples"
TITLE = "Word embeddings as tuples of feature probabilities: words as fuzzy sets"

COMPOUNDS = ("compounds-reddy", "compounds-farahmand")

# Table 5: words and phrases whose divergence is told both ways.
ASYMMETRIC = (("ganges", "delta"), ("north & korea", "china"))
# A hyponym and its hypernym, chosen by hand: the paper ties inclusion to hyponymy and
# names no data.
HYPONYMS = (
    ("rose", "flower"),
    ("oak", "tree"),
    ("dog", "animal"),
    ("cat", "animal"),
    ("horse", "animal"),
    ("lion", "animal"),
    ("eagle", "bird"),
    ("salmon", "fish"),
    ("shark", "fish"),
    ("apple", "fruit"),
    ("banana", "fruit"),
    ("bread", "food"),
    ("cheese", "food"),
    ("wine", "drink"),
    ("beer", "drink"),
    ("car", "vehicle"),
    ("truck", "vehicle"),
    ("piano", "instrument"),
    ("guitar", "instrument"),
    ("violin", "instrument"),
    ("sword", "weapon"),
    ("rifle", "weapon"),
    ("pistol", "weapon"),
    ("hammer", "tool"),
    ("chair", "furniture"),
    ("shirt", "clothing"),
    ("doctor", "person"),
    ("teacher", "person"),
    ("soldier", "person"),
    ("nurse", "person"),
    ("anger", "emotion"),
    ("fear", "emotion"),
    ("joy", "emotion"),
    ("football", "sport"),
    ("tennis", "sport"),
    ("red", "color"),
    ("blue", "color"),
    ("gold", "metal"),
    ("iron", "metal"),
    ("paris", "city"),
    ("london", "city"),
    ("france", "country"),
    ("italy", "country"),
    ("english", "language"),
    ("january", "month"),
    ("monday", "day"),
    ("murder", "crime"),
    ("theft", "crime"),
    ("cancer", "disease"),
    ("church", "building"),
)

Normaliser = Literal["softmax", "max", "mean", "exp-exp", "rows", "softmax-rows"]

# The one that the paper's figures are of, whatever its text says: see `printed`.
FITTED: Normaliser = "softmax-rows"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """Some word tables, read or trained, and everything the paper does with them."""

    slug = SLUG
    vectors: tuple[str, ...] = ()
    """Word tables: names of data sets, or files in any format that is read, their words
    by falling frequency. None: tables are trained."""
    corpus: str = ""
    """Text to train on: "mixed" (WikiText-2, Brown, training reviews of IMDB),
    "planted", or a file with one sentence a line, or one line, such as text8."""
    objective: Literal["skipgram", "cbow"] = "skipgram"
    dims: tuple[int, ...] = (20, 50, 100, 200, 300)
    """Dimensions that are trained."""
    seeds: int = 3
    epochs: int = 3
    window: int = 5
    negatives: int = 5
    sample: float = 1e-4
    """Frequency above which occurrences of a word are left out."""
    min_count: int = 5
    update: int | None = None
    """Words of one update of the tables, a multiple of 16; fewer for tiny texts."""
    normaliser: Normaliser = "softmax"
    """What a column is divided by: its sum (the paper's), its largest number, its mean,
    or the denominator with two exponentials, as printed; "rows" divides rows by their
    sums instead, "softmax-rows" columns and then rows."""
    variants: tuple[Normaliser, ...] = (
        "softmax-rows",
        "rows",
        "max",
        "mean",
        "exp-exp",
    )
    """Other normalisers, whose scores are shown and from which nothing is chosen;
    "softmax-rows", which the paper's figures are of, has claims of its own."""
    analogy_dims: tuple[int, ...] = (50, 100, 200)
    """Trained dimensions whose analogies are answered."""
    candidates: int = 30_000
    """The most frequent words, which alone are known and answer in a second score."""
    frequent: int = 100
    """How often a word must occur to be ranked by its entropy."""
    frequent_rows: int = 10_000
    """Where a table has no counts, how many of its first words are ranked."""
    tops: tuple[int, ...] = (15, 30, 50)
    """Of how many first words function words are counted."""
    main_dim: int = 100
    """The trained dimension that neighbours, entropies and hubs are shown of."""
    expressions: tuple[str, ...] = (
        "rose",
        "violet",
        "rose | violet",
        "computer",
        "power",
        "computer & power",
        "french",
        "british",
        "french - british",
        "noble",
        "metal",
        "good",
        "noble & metal",
        "noble & good",
        "tuberculosis + virus - bacteria",
        "freezing + hot - cold",
        "nintendo + dreamcast - ds",
        "billiards + karate - pool",
    )
    """Sets whose neighbours are shown: words with | (union), & (intersection), +
    (disjoint union) and - (difference) between them. Those of Tables 1 to 3, 6 and 7
    (analogies: `b + x - a`)."""
    hub_queries: int = 5000
    """Words that are asked for their neighbours, to count hubs."""
    resamples: int = 1000
    """Of the bootstrap over test items."""

    def __post_init__(self):
        groups_of(self.update)
        for name in ("dims", "tops"):
            if min(getattr(self, name), default=0) < 1:
                raise InputError(f"--{name}: expected one number or more, from 1")
        for name in ("seeds", "epochs", "frequent", "frequent_rows", "candidates"):
            if getattr(self, name) < 1:
                flag = name.replace("_", "-")
                raise InputError(f"--{flag} {getattr(self, name)}: expected 1 or more")

    @property
    def fitted(self) -> bool:
        """Whether sets are also read as the paper's figures are."""
        return FITTED in self.variants

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.corpus == "planted":
            return ()
        named = tuple(at_hand(name) for name in self.vectors)
        known = tuple(name for name in named if name in sources.DATA_SETS)
        text = MIXED if self.corpus == "mixed" else ()
        return (*known, *text, similarity_lists(), "analogies", *COMPOUNDS)


SMOKE = Config(
    preset="smoke",
    corpus="planted",
    dims=(8, 16),
    analogy_dims=(16,),
    main_dim=16,
    seeds=2,
    sample=0.0,
    update=128,
    variants=("softmax-rows", "max"),
    candidates=60,
    tops=(5, 10),
    resamples=100,
)

PRESETS = {
    "sgns": (
        "skip-gram at 20 to 300 dimensions, three seeds, 8.5 million words; minutes",
        Config(preset="sgns", corpus="mixed"),
    ),
    "cbow": (
        "the same by CBOW, the objective of the authors' example; minutes",
        Config(preset="cbow", corpus="mixed", objective="cbow"),
    ),
    "googlenews": (
        "word2vec's GoogleNews vectors, 300-d, a subset; a minute",
        Config(preset="googlenews", vectors=("googlenews-subset",)),
    ),
    "glove": (
        "GloVe 100-d; a minute",
        Config(preset="glove", vectors=("glove-100d",)),
    ),
    "custom": (
        "your own: --vectors a.vec, or --corpus text8 to train on",
        Config(),
    ),
    "smoke": ("the planted world; seconds", SMOKE),
}
