"""Presets of static vectors from dynamic ones, and the figures the paper prints."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from experiments.common.cli import Experiment
from experiments.common.names import at_hand, similarity_lists
from jaxemb.data import sources
from jaxemb.errors import InputError

SLUG = "dynamic_to_static"
NOT_HERE = "an ELMo-like encoder"
TITLE = "Using dynamic embeddings to improve static embeddings"

Study = Literal["similarity", "windows", "tagging"]
Task = Literal["chunking", "pos"]

# The paper's columns, and the tests' names.
SIMILARITY = {
    "WS-353-ALL": "WS353",
    "WS-353-SIM": "WS353S",
    "WS-353-REL": "WS353R",
    "SIMLEX-999": "SimLex",
    "RW-STANFORD": "RW",
    "MEN-TR-3k": "MEN",
}
ANALOGY = {"msr": "MSR", "google": "Google", "semeval-2012": "SemEval"}

# What is trained against an encoder, as settings of `static.ContextToStatic`.
OURS: Mapping[str, Mapping[str, Any]] = {
    "ours": {},
    "ours, itself": {"include_self": True},
    "ours, uniform": {"attention": False},
    "ours, uniform, itself": {"attention": False, "include_self": True},
    "ours, scaled": {"scaled": True},
    "ours, weights fixed": {"stop_gradient": True},
    "code": {"variant": "released_code", "bias": True},
    "code, itself": {"variant": "released_code", "bias": True, "include_self": True},
}
TRAINED = ("SG", "CBOW", "fastText")
UNTRAINED = ("input table", "average", "average, PCA")
LOADED = ("glove-100d",)  # vectors that others trained, on other texts
System = Literal[
    "SG", "CBOW", "fastText", "input table", "average", "average, PCA", "glove-100d",
    "ours", "ours, itself", "ours, uniform", "ours, uniform, itself",
    "ours, scaled", "ours, weights fixed", "code", "code, itself",
]  # fmt: skip

# Of Figure 6 the paper names three pairs; these are more of the same kind.
PAIRS = tuple(
    tuple(pair.split("/"))
    for pair in "he/she him/her his/hers man/woman men/women boy/girl father/mother "
    "son/daughter brother/sister brothers/sisters husband/wife king/queen "
    "prince/princess uncle/aunt nephew/niece grandfather/grandmother grandpa/grandma "
    "policeman/policewoman actor/actress himself/herself".split()
)
SENTENCE = "football is the most popular sport in brazil"
SHOWN = "while"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tagging:
    """The taggers that vectors are put into (Table 3)."""

    tasks: tuple[Task, ...] = ("chunking", "pos")
    """Chunks of CoNLL-2000; Penn tags of UD English EWT, in place of the Wall Street
    Journal's, which is not free."""
    rows: tuple[str, ...] = ("SG", "glove-100d", "ours", "ours, itself", "encoder")
    """Tables trained here, a data set of vectors, and the encoder's own vectors of the
    sentences."""
    sentences: int | None = None
    """The first so many training sentences; all unless given."""
    held_out: int = 10
    """Every so many-th training sentence of CoNLL-2000 is its development part."""
    epochs: int = 6
    """The first of best development score is tested."""
    batch_size: int = 32
    hidden: int = 100
    """Of each direction of the LSTM."""
    characters: int = 30
    """Width of a character's vector."""
    char_features: int = 50
    """Of the convolution over characters."""
    dropout: float = 0.5
    learning_rate: float = 3e-3
    """At the start; falls in a line to 0."""
    clip_norm: float = 5.0
    """The longest gradient of an update."""
    buckets: int = 4
    """How many padded lengths sentences are sorted into."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """A text, an encoder of it, and the vectors that are made of both."""

    slug = SLUG
    studies: tuple[Study, ...] = ("similarity",)
    """Table 2 with its analyses; Figures 4 and 5; Table 3."""
    text: Literal["wikitext-2+brown", "planted"] = "wikitext-2+brown"
    encoder: str = "minilm"
    """A data set, or a folder of weights as the transformers library has them (BERT,
    RoBERTa, DistilBERT, GPT-2)."""
    layer: int = -1
    """Whose states are a word's vector; -1 is the last."""
    lengths: tuple[int, int] = (10, 40)
    """Words and marks of the shortest and of the longest sentence."""
    sentences: int | None = None
    """So many of them, drawn once for all; all unless given."""
    min_count: int = 5
    """Occurrences of a word that gets a vector; rarer ones only the encoder sees."""
    systems: tuple[System, ...] = (
        *TRAINED,
        *UNTRAINED,
        *LOADED,
        "ours",
        "ours, itself",
        "ours, uniform",
        "ours, uniform, itself",
        "code",
        "code, itself",
    )
    dim: int = 300
    window: int = 5
    negatives: int = 5
    epochs: int = 10
    """Of every system that is trained."""
    learning_rate: float = 0.025
    clip_norm: float = 5.0
    """Of the gradient of an update, times its centres."""
    sample: float = 1e-3
    """Frequency above which the baselines leave occurrences of a word out."""
    buckets: int = 200_000
    """Rows that fastText's n-grams are hashed to."""
    groups: int = 4
    """Groups of 16 words in an update of what is trained against the encoder."""
    baseline_groups: int | None = None
    """Likewise of the baselines; the trainer's choice unless given."""
    widths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    """Windows of Figure 4, with attention and without (Figure 5)."""
    kinds: tuple[Literal["ours, scaled", "ours, weights fixed"], ...] = (
        "ours, scaled",
        "ours, weights fixed",
    )
    """Other kinds of attention, beside Figure 5, with the window that all else has."""
    seeds: int = 3
    tagging: Tagging = Tagging()
    shared: str | None = None
    """Folder of the text, its features and the trained tables, which presets share;
    runs/dynamic_to_static/shared unless given."""

    @property
    def shared_folder(self) -> str:
        """Where what presets share is kept."""
        inside = self.preset in ("smoke", "custom")
        default = f"{self.workdir}/shared" if inside else f"runs/{SLUG}/shared"
        return self.shared or default

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.text == "planted":
            return ()
        named = ["wikitext-2", "brown"]
        if self.encoder in sources.DATA_SETS:
            named.append(self.encoder)
        if {"similarity", "windows"} & set(self.studies):
            named.append(similarity_lists())
        if "similarity" in self.studies:
            named += ["analogies", "semeval-2012"]
            named += [at_hand(name) for name in LOADED if name in self.systems]
        if "tagging" in self.studies:
            tasks = {"chunking": "conll2000", "pos": "ud-english-ewt"}
            named += [tasks[task] for task in self.tagging.tasks]
            tables = map(at_hand, self.tagging.rows)
            named += [name for name in tables if name in sources.DATA_SETS]
        return tuple(dict.fromkeys(named))

    def check(self) -> None:
        """Names the first setting that makes no run."""
        for name in ("seeds", "epochs", "min_count"):
            if getattr(self, name) < 1:
                flag = name.replace("_", "-")
                raise InputError(f"--{flag} {getattr(self, name)}: expected 1 or more")
        if not 1 <= self.lengths[0] <= self.lengths[1]:
            raise InputError(f"--lengths {self.lengths}: expected two, ascending")
        if not self.widths or min(self.widths) < 1:
            raise InputError(f"--widths {self.widths}: expected windows of 1 or more")


PRESETS = {
    "similarity": (
        "Table 2 and its analyses: 103,586 sentences, three seeds; 150 minutes",
        Config(preset="similarity"),
    ),
    "windows": (
        "Figures 4 and 5: windows, attention, 20,000 sentences; an hour",
        Config(preset="windows", studies=("windows",), sentences=20_000),
    ),
    "tagging": (
        "Table 3: chunks of CoNLL-2000, tags of UD English EWT; 85 minutes",
        Config(preset="tagging", studies=("tagging",)),
    ),
    "custom": (
        "your own encoder: --encoder FOLDER",
        Config(preset="custom", sentences=10_000, seeds=1),
    ),
    "smoke": (
        "planted senses, every study; seconds",
        Config(
            preset="smoke",
            studies=("similarity", "windows", "tagging"),
            text="planted",
            encoder="planted",
            lengths=(1, 40),
            min_count=1,
            systems=("SG", "fastText", *UNTRAINED, "ours", "ours, itself"),
            dim=8,
            window=2,
            epochs=2,
            sample=0.0,
            buckets=500,
            groups=8,
            baseline_groups=8,
            widths=(1, 2),
            kinds=("ours, scaled",),
            seeds=2,
            tagging=Tagging(
                tasks=("chunking",),
                rows=("ours", "encoder"),
                epochs=4,
                batch_size=8,
                hidden=4,
                characters=4,
                char_features=4,
                learning_rate=3e-2,
                buckets=1,
            ),
        ),
    ),
}

# Tables 2 and 3, whole. The paper's text and encoder are not at hand, so that no row
# here has a published figure beside it; claims name them.
_COLUMNS = (*SIMILARITY.values(), *ANALOGY.values())
_TABLE_2 = {
    "SG": (61.6, 69.2, 54.6, 35.1, 35.3, 68.8, 30.6, 46.7, 20.5),
    "CBOW": (66.2, 71.4, 52.6, 38.0, 30.0, 68.1, 44.0, 49.9, 18.9),
    "glove-100d": (54.3, 66.2, 47.7, 37.0, 36.6, 73.7, 61.4, 71.7, 16.9),
    "fastText": (68.3, 74.6, 61.6, 38.2, 37.3, 74.8, 53.2, 72.7, 19.5),
    "Deps": (60.6, 65.7, 36.2, 39.6, 33.0, 60.5, 40.3, 36.0, 22.9),
    "input table": (51.8, 60.1, 37.3, 48.1, 26.7, 42.8, 52.7, 50.5, 20.8),
    "input table, large": (57.8, 65.8, 46.4, 47.5, 27.6, 51.8, 57.6, 54.7, 20.7),
    "average": (59.4, 67.0, 49.9, 46.8, 30.8, 66.3, 62.2, 59.4, 20.8),
    "SynGCN": (60.9, 73.2, 45.7, 45.5, 33.7, 71.0, 52.8, 50.7, 23.4),
    "ours": (72.8, 75.3, 66.6, 49.4, 42.3, 76.2, 57.3, 75.8, 20.9),
}
_MEANS = {
    "mean similarity": slice(0, len(SIMILARITY)),
    "mean analogy": slice(len(SIMILARITY), None),
}
PAPER: dict[str, dict[str, float]] = {
    **{
        column: {name: row[i] for name, row in _TABLE_2.items()}
        for i, column in enumerate(_COLUMNS)
    },
    **{
        mean: {
            name: round(sum(row[part]) / len(row[part]), 2)
            for name, row in _TABLE_2.items()
        }
        for mean, part in _MEANS.items()
    },
    "chunking": {
        "SG": 93.14,
        "glove-100d": 93.05,
        "SynGCN": 93.15,
        "ours": 93.24,
        "encoder": 94.52,
    },
    "pos": {
        "SG": 97.24,
        "glove-100d": 97.23,
        "SynGCN": 97.22,
        "ours": 97.25,
        "encoder": 97.65,
    },
}
