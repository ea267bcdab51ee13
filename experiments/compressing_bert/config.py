"""Presets of pruning an encoder while it is pretrained, and the paper's figures."""

import dataclasses
from typing import Literal

from experiments.common.cli import Experiment
from jaxemb.data import sources
from jaxemb.errors import InputError

SLUG = "compressing_bert"
NOT_HERE = "Wikipedia and BookCorpus, next-sentence prediction"
TITLE = "Compressing BERT: studying the effects of weight pruning on transfer learning"

Study = Literal["pretraining", "tuning"]
Arm = Literal["deletion", "longer", "downstream", "random"]
HERE = ("sst-2", "mrpc", "sts-b", "rte")

# The matrices of every layer, the table of pieces, the pooler.
PRUNED = r"(encoder/)?(pieces/embedding|blocks/.*kernel|pool/kernel)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pretraining:
    """Masked language modelling while weights are removed."""

    burn_in: int = 500
    """Steps before anything is removed: the head is new, as MiniLM came without one."""
    gradual: int = 60
    """Steps over which weights are removed."""
    recovery: int = 90
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
    """Of the arms `deletion` and `longer`; the paper has 13."""
    after: int = 2
    """Epochs after pruning downstream; the paper has 5."""
    learning_rate: float = 5e-5


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
    side_sparsities: tuple[int, ...] = (30, 60, 90)
    """Of the other arms, and of the random control."""
    arms: tuple[Arm, ...] = ("deletion", "longer", "downstream", "random")
    seeds: int = 3
    """Of tuning; pretraining has one, as in the paper."""
    pretraining: Pretraining = Pretraining()
    tuning: Tuning = Tuning()
    shared: str | None = None
    """Folder of the pretrained encoders, which presets share;
    runs/compressing_bert/shared unless given."""

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
        for name in ("sparsities", "side_sparsities"):
            for percent in getattr(self, name):
                if not 0 <= percent < 100:
                    flag = name.replace("_", "-")
                    raise InputError(f"--{flag} {percent}: expected 0 to 99 per cent")
        if 0 not in self.sparsities or 0 in self.side_sparsities:
            raise InputError("--sparsities: expected 0 among them and no side arm at 0")
        known = (*HERE, *(n for n in sources.DATA_SETS if n.startswith("glue-")))
        for task in self.tasks:
            if task not in known and self.text != "planted":
                raise InputError(f"--tasks {task}: expected one of {', '.join(known)}")
        if self.seeds < 1:
            raise InputError(f"--seeds {self.seeds}: expected 1 or more")


PRESETS = {
    "pretraining": (
        "loss by sparsity, features, attention, size: ten sparsities; 75 minutes",
        Config(preset="pretraining", studies=("pretraining",)),
    ),
    "sst-2": (
        "all arms on 500 sentences of SST-2, six sparsities, three seeds; 75 minutes",
        Config(
            preset="sst-2",
            sparsities=(0, 30, 50, 60, 70, 90),
            side_sparsities=(60, 90),
        ),
    ),
    "mrpc": (
        "500 pairs of MRPC, 0, 60 and 90 %, three arms, three seeds; 50 minutes",
        Config(
            preset="mrpc",
            tasks=("mrpc",),
            sparsities=(0, 60, 90),
            side_sparsities=(60,),
            arms=("deletion", "random"),
        ),
    ),
    "sts-b": (
        "500 pairs of STS-B, 0, 60 and 90 %, three arms, three seeds; 25 minutes",
        Config(
            preset="sts-b",
            tasks=("sts-b",),
            sparsities=(0, 60, 90),
            side_sparsities=(60,),
            arms=("deletion", "random"),
        ),
    ),
    "paper": (
        "the paper's settings on its own tasks: --encoder FOLDER; needs accelerators",
        Config(
            preset="paper",
            studies=("pretraining", "tuning"),
            encoder="bert-base-uncased",
            tasks=("glue-mnli", "glue-qqp", "glue-qnli", "glue-sst-2", "glue-cola"),
            side_sparsities=(10, 20, 30, 40, 50, 60, 70, 80, 90),
            seeds=1,
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
                after=5,
            ),
        ),
    ),
    "custom": (
        "your own encoder: --encoder FOLDER",
        Config(preset="custom", studies=("pretraining", "tuning"), seeds=1),
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
            seeds=2,
            pretraining=Pretraining(
                burn_in=50,
                gradual=20,
                recovery=10,
                period=10,
                batch_size=32,
                length=16,
                places=4,
                learning_rate=3e-3,
                held_out=128,
            ),
            tuning=Tuning(
                examples=320,
                held_out=100,
                longest=16,
                buckets=1,
                epochs=2,
                more_epochs=3,
                after=1,
                learning_rate=1e-3,
            ),
        ),
    ),
}

# Averages over five tasks that the paper prints, of which claims are (Tables 1 and 2).
PAPER = {
    "average accuracy": {
        "pruned 0 %": 87.2, "pruned 30 %": 87.1, "pruned 40 %": 86.7,
        "pruned 60 %": 85.6, "pruned 90 %": 73.4,
        "deletion 60 %": 85.7, "deletion 90 %": 77.9,
        "downstream 60 %": 85.6, "downstream 90 %": 71.4,
        "random 30 %": 83.3, "random 60 %": 75.6, "random 90 %": 65.7,
    },
    "pretraining loss": {
        "pruned 0 %": 1.82, "pruned 30 %": 1.86, "pruned 60 %": 2.25,
        "pruned 90 %": 5.83, "random 30 %": 2.98, "random 60 %": 5.63,
        "random 90 %": 7.37,
    },
}  # fmt: skip
