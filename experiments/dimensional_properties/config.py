"""Presets of the dimensional properties of word spaces, and the paper's figures."""

import dataclasses

from experiments.common.cli import Experiment
from experiments.common.names import at_hand, similarity_lists
from jaxemb.data import sources
from jaxemb.errors import InputError

SLUG = "dimensional_properties"
NOT_HERE = "the paper's translation half"
TITLE = (
    "What principal components of word vectors are worth, whatever their variance "
    f"({NOT_HERE} is not here)"
)

# Sentence tasks and probes by the paper's names, and the data set of each.
TASKS = {
    "MR": "rt-polarity",
    "CR": "cr",
    "SUBJ": "subj",
    "MPQA": "mpqa",
    "SST2": "sst-2",
    "SST5": "sst-1",
    "TREC": "trec",
    "SICK-E": "sick",
    "MRPC": "mrpc",
}
PROBES = {"TreeDepth": "ptb-sample", "TopConst": "ptb-sample"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """A table, and what is made of it."""

    slug = SLUG
    vectors: str = ""
    """A word table: the name of a data set, or a file in any format that is read. Its
    components are those of all its rows."""
    native: str = ""
    """Another table with the words of `vectors`, trained at a smaller width, that is
    compared with as many components."""
    tasks: tuple[str, ...] = ()
    """Sentence tasks and probes: MR, CR, SUBJ, MPQA, SST2, SST5, TREC, SICK-E, MRPC,
    TreeDepth, TopConst. If none is named, those whose data are here."""
    folds: int = 10
    """Of cross-validation, nested for MR, CR, SUBJ and MPQA."""
    step: int = 10
    """Components by which the cumulative curve grows; 0 leaves the curve out."""
    removed: int = 5
    """Components that PPA removes."""
    swept: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 7, 10)
    """Numbers of components removed whose similarity is shown; 0 is the mean alone."""
    reduced: int = 7
    """Components that each PPA of PPA-PCA removes."""
    most: int = 300
    """Sentences of a class of TopConst, a draw where there are more."""
    margin: float = 1.0
    """Points that may be lost where a claim is that a score has saturated."""
    rank_margin: float = 0.2
    """Spearman's rho that passes for none where a claim is that there is none."""
    resamples: int = 1000
    """Of the bootstrap over pairs, rows or components."""
    seed: int = 1111
    """Of folds, of the random table and of the draw of TopConst."""

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.preset == "smoke":
            return ()
        named = (at_hand(name) for name in (self.vectors, self.native))
        tables = tuple(name for name in named if name in sources.DATA_SETS)
        both = {**TASKS, **PROBES}
        read = (both[task] for task in self.task_names())
        return (*tables, similarity_lists(), *dict.fromkeys(read))

    def task_names(self) -> tuple[str, ...]:
        """The tasks and probes of the run."""
        both = {**TASKS, **PROBES}
        for name in self.tasks:
            if name not in both:
                raise InputError(f"--tasks {name}: expected some of {', '.join(both)}")
        here = (name for name, found in both.items() if sources.locate(found))
        return self.tasks or tuple(here)


def _preset(name: str, vectors: str, **more) -> Config:
    return Config(preset=name, vectors=vectors, tasks=(*TASKS, *PROBES), **more)


SMOKE = Config(preset="smoke", folds=3, resamples=100, swept=(0, 1, 2), reduced=2)
PRESETS = {
    "googlenews": (
        "word2vec GoogleNews 300-d, 26,423 words; most of an hour on one core",
        _preset("googlenews", "googlenews-subset"),
    ),
    "glove-100d": (
        "GloVe 6B 100-d; a quarter of an hour",
        _preset("glove-100d", "glove-100d", native="glove-50d"),
    ),
    "glove-50d": (
        "GloVe 6B 50-d, complete; ten minutes",
        _preset("glove-50d", "glove-50d", step=5),
    ),
    "custom": ("your own table: --vectors a.vec", Config()),
    "smoke": ("a planted world; seconds", SMOKE),
}

# Tables 1 (random, T, M, B), 2 (PCA, GloVe-200) and 5 (PPA) of the paper, means over
# nine tasks. Its tables are whole and 300-d: no row of ours has a published figure
# beside it.
PAPER = {
    "any": {"random": 66.06},
    "GloVe": {
        "full": 74.19,
        "PPA-5": 73.93,
        "PCA-200": 73.68,
        "trained at 200": 73.83,
        "T": 70.59,
        "M": 71.25,
        "B": 68.04,
    },
    "word2vec": {
        "full": 76.88,
        "PPA-5": 76.88,
        "PCA-200": 75.48,
        "T": 73.34,
        "M": 70.08,
        "B": 70.96,
    },
}
