"""Presets of pruning an encoder while it is pretrained."""

import dataclasses
from typing import Literal

from experiments.common.cli import Experiment
from jaxemb.data import sources
from jaxemb.errors import InputError

SLUG = "compressing_bert"
NOT_HERE = "Wikipedia and BookCorpus, next-sentence prediction"
TITLE = "Compressing BERT: studying the effects of weight pruning on transfer learning"

Study = Literal["pretraining", "tuning"]
Arm = Literal["deletion", "longer", "matched", "downstream", "random"]
HERE = ("sst-2", "mrpc", "sts-b", "rte")

# The matrices of every layer and the table of pieces. Not the pooler, which the
# authors' code masks too: it learns from next sentences, and nothing here mends it.
PRUNED = r"(encoder/)?(pieces/embedding|blocks/.*kernel)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pretraining:
    """Masked language modelling while weights are removed."""

    burn_in: int = 500
    """Steps before anything is removed: the head is new, as MiniLM came without one."""
    gradual: int = 250
    """Steps over which weights are removed."""
    recovery: int = 400
    """Steps after that."""
    period: int = 10
    """Steps between choices of masks."""
    refresh_after: bool = True
    """Whether masks are chosen anew while recovering, as the authors' code does."""
    regrow: bool = True
    """Whether removed weights may return with their old values, likewise."""
    batch_size: int = 16
    length: int = 64
    """Pieces of a text."""
    places: int = 10
    """Hidden pieces of a text at most."""
    learning_rate: float = 1e-4
    warmup: int = 10
    clip_norm: float = 1.0
    held_out: int = 320
    """Texts of which the loss is told."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tuning:
    """Classifiers above the pruned encoders."""

    examples: int | None = 500
    """Of a task, drawn once for all; all unless given."""
    held_out: int | None = 400
    """Examples that scores are of."""
    longest: int = 64
    """Pieces that a text is cut to."""
    buckets: int = 2
    batch_size: int = 32
    epochs: int = 3
    more_epochs: int = 6
    """Of `deletion`, `longer` and, at most, `matched`; the paper has 13."""
    more_epochs_sparse: int = 6
    """Likewise from 70 % on; the paper has 15."""
    after: int = 2
    """Epochs after pruning downstream; the paper has 5."""
    after_sparse: int = 2
    """Likewise from 80 % on; the paper has 7."""
    learning_rates: tuple[float, ...] = (5e-5,)
    """Of several each cell has the one with the best held-out mean over seeds, as the
    paper chooses it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Experiment):
    """An encoder pruned to several sparsities, and tasks that it is tuned for."""

    slug = SLUG
    studies: tuple[Study, ...] = ("tuning",)
    encoder: str = "minilm"
    """A data set, or a folder of weights as the transformers library has them."""
    text: Literal["wikitext-2", "planted"] = "wikitext-2"
    tasks: tuple[str, ...] = ("sst-2",)
    """Of sst-2, mrpc, sts-b and rte as they are at hand, or glue-TASK, GLUE's own
    files of cola, sst-2, mrpc, sts-b, qqp, mnli, qnli and rte."""
    sparsities: tuple[int, ...] = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90)
    """Per cent of the weights of each matrix."""
    side_sparsities: tuple[int, ...] = (60, 90)
    """Of `deletion`, `longer`, `matched` and `downstream`."""
    random_sparsities: tuple[int, ...] = (30, 60, 90)
    """Of the control, in pretraining and in tuning."""
    arms: tuple[Arm, ...] = ("deletion", "longer", "downstream", "random")
    dense_epochs: tuple[int, ...] = ()
    """Dense epochs before 60 % are removed at once, one more cell of `downstream` for
    each: whether it matters when one prunes."""
    group_shares: tuple[int, ...] = (25, 50, 75)
    """Per cent of the heads that are taken out of the dense encoder."""
    timed: int = 15
    """How often each forward pass is timed."""
    seeds: int = 3
    """Of tuning; pretraining has one, as in the paper."""
    pretraining: Pretraining = Pretraining()
    tuning: Tuning = Tuning()
    shared: str | None = None
    """Folder of the pretrained encoders, which presets share. Unless given,
    runs/compressing_bert/shared; of smoke, custom and paper, `shared` in the folder of
    the run."""

    @property
    def shared_folder(self) -> str:
        """Where what presets share is kept."""
        inside = self.preset in ("smoke", "custom", "paper")
        default = f"{self.workdir}/shared" if inside else f"runs/{SLUG}/shared"
        return self.shared or default

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that the run reads."""
        if self.text == "planted":
            return ()
        named = ["wikitext-2"]
        if self.encoder in sources.DATA_SETS:
            named.append(self.encoder)
        if "tuning" in self.studies:
            other = {"sts-b": "sts-benchmark"}
            named += [other.get(task, task) for task in self.tasks]
        return tuple(named)

    def check(self) -> None:
        """Names the first setting that makes no run."""
        for name in ("sparsities", "side_sparsities", "random_sparsities"):
            for percent in getattr(self, name):
                if not 0 <= percent < 100:
                    flag = name.replace("_", "-")
                    raise InputError(f"--{flag} {percent}: expected 0 to 99 per cent")
        if 0 not in self.sparsities or 0 in (
            *self.side_sparsities,
            *self.random_sparsities,
        ):
            raise InputError("--sparsities: expected 0 among them and no side arm at 0")
        known = (*HERE, *(n for n in sources.DATA_SETS if n.startswith("glue-")))
        for task in self.tasks:
            if task not in known and self.text != "planted":
                raise InputError(f"--tasks {task}: expected one of {', '.join(known)}")
        for name in ("seeds", "timed"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} {getattr(self, name)}: expected 1 or more")
        if not self.tuning.learning_rates:
            raise InputError("--tuning.learning-rates: expected one or more")


_EVERY = (10, 20, 30, 40, 50, 60, 70, 80, 90)

PRESETS = {
    "pretraining": (
        "loss by sparsity, features, attention, size: ten sparsities; 4 hours",
        Config(preset="pretraining", studies=("pretraining",)),
    ),
    "sst-2": (
        "all arms on 500 sentences of SST-2, six sparsities, three seeds; 105 minutes",
        Config(
            preset="sst-2",
            sparsities=(0, 30, 40, 60, 70, 90),
            side_sparsities=(60, 70, 90),
        ),
    ),
    "mrpc": (
        "500 pairs of MRPC, 0, 60 and 90 %, four arms, three seeds; 55 minutes",
        Config(
            preset="mrpc",
            tasks=("mrpc",),
            sparsities=(0, 60, 90),
            side_sparsities=(60,),
            random_sparsities=(60,),
            arms=("deletion", "longer", "random"),
        ),
    ),
    "sts-b": (
        "500 pairs of STS-B, 0, 60 and 90 %, four arms, three seeds; 40 minutes",
        Config(
            preset="sts-b",
            tasks=("sts-b",),
            sparsities=(0, 60, 90),
            side_sparsities=(60,),
            random_sparsities=(60,),
            arms=("deletion", "longer", "random"),
        ),
    ),
    "when": (
        "SST-2, pruned to 60 % after 0 to 6 epochs of tuning; 30 minutes",
        Config(
            preset="when",
            sparsities=(0,),
            side_sparsities=(),
            random_sparsities=(),
            arms=(),
            dense_epochs=(0, 1, 3, 6),
        ),
    ),
    "paper": (
        "the paper's settings on its own tasks: --encoder FOLDER; needs accelerators",
        Config(
            preset="paper",
            studies=("pretraining", "tuning"),
            encoder="bert-base-uncased",
            tasks=("glue-mnli", "glue-qqp", "glue-qnli", "glue-sst-2", "glue-cola"),
            side_sparsities=_EVERY,
            random_sparsities=_EVERY,
            arms=("deletion", "longer", "matched", "downstream", "random"),
            pretraining=Pretraining(
                burn_in=10_000,
                gradual=10_000,
                recovery=90_000,
                batch_size=32,
                length=128,
                places=20,
                learning_rate=2e-5,
                held_out=64_000,
            ),
            tuning=Tuning(
                examples=None,
                held_out=None,
                longest=128,
                buckets=4,
                more_epochs=13,
                more_epochs_sparse=15,
                after=5,
                after_sparse=7,
                learning_rates=(2e-5, 3e-5, 4e-5, 5e-5),
            ),
        ),
    ),
    "custom": (
        "your own encoder: --encoder FOLDER",
        Config(
            preset="custom",
            studies=("pretraining", "tuning"),
            random_sparsities=(60,),
            seeds=1,
        ),
    ),
    "smoke": (
        "a planted text and task, every arm; a minute",
        Config(
            preset="smoke",
            studies=("pretraining", "tuning"),
            encoder="planted",
            text="planted",
            tasks=("planted",),
            sparsities=(0, 60),
            side_sparsities=(60,),
            random_sparsities=(60,),
            arms=("deletion", "longer", "matched", "downstream", "random"),
            dense_epochs=(0,),
            group_shares=(50,),
            timed=3,
            seeds=2,
            pretraining=Pretraining(
                burn_in=50,
                gradual=20,
                recovery=10,
                period=10,
                batch_size=30,
                length=16,
                places=4,
                learning_rate=3e-3,
                held_out=120,
            ),
            tuning=Tuning(
                examples=150,
                held_out=100,
                longest=16,
                buckets=1,
                batch_size=30,
                epochs=2,
                more_epochs=3,
                more_epochs_sparse=3,
                after=1,
                after_sparse=1,
                learning_rates=(1e-3,),
            ),
        ),
    ),
}
