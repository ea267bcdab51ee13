"""The text that encoders are pretrained on, and the tasks they are tuned for."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.common import encoders
from experiments.common.datasets import described, planted
from experiments.compressing_bert.config import Config
from jaxemb import pretrained
from jaxemb.data import (
    GLUE_TASKS,
    batching,
    files,
    paraphrases,
    read_glue,
    relatedness,
    sources,
    synthetic,
    text,
)
from jaxemb.data.corpus import readers
from jaxemb.pretrained.features import digest_of_weights
from jaxemb.train import results

_SEED = 0  # of what is drawn from a task, the same for every run


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """An encoder and texts to go on pretraining it with."""

    encoder: pretrained.Pretrained
    train: np.ndarray
    """Pieces, a text a row, all of one length."""
    held_out: np.ndarray
    mask_id: int
    special_ids: tuple[int, ...]
    data: tuple[results.Data, ...]
    digest: str
    """Of the encoder's weights and tokenizer."""


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Labelled texts or pairs."""

    name: str
    parts: dict[str, batching.Columns]
    """`train` and `held out`."""
    classes: int
    """0: the label is a score in [0, 1]."""
    data: results.Data

    @property
    def metric(self) -> str:
        """What is told of it."""
        score = "accuracy (%)" if self.classes else "Spearman × 100"
        return f"{self.name}: {score}"

    @property
    def loss_unit(self) -> str:
        """Of its training loss."""
        return "nats" if self.classes else "squared error"

    @property
    def majority(self) -> float:
        """The accuracy of always giving the class that is most frequent in training."""
        train, held_out = (
            np.asarray(self.parts[part]["labels"]) for part in ("train", "held out")
        )
        return 100 * float(np.mean(held_out == np.bincount(train).argmax()))


def load(config: Config) -> World:
    """Reads the encoder, and cuts the text into its pieces."""
    if config.text == "planted":
        return _planted(config)
    encoder, used = encoders.load(config.encoder)
    length = config.pretraining.length
    cutting = hashlib.sha256(encoder.tokenizer or b"").hexdigest()[:16]
    cut = Path(config.shared_folder) / f"text-{cutting}-{length}.npz"
    found = sources.get("wikitext-2")
    if not cut.exists():
        cutter = pretrained.Cutter.of(encoder)
        rows = {
            part: _rows(
                cutter,
                [" ".join(s) for s in readers.read_wikitext(found, parts=(part,))],
                length,
            )
            for part in ("train", "valid")
        }
        with files.write_atomically(cut) as part, part.open("wb") as stream:
            np.savez(stream, **rows)
    with np.load(cut) as kept:
        train, held_out = kept["train"], kept["valid"]
    text_used = described(
        found,
        len(train),
        name=f"wikitext-2, training part in texts of {length} pieces",
        kind="subset",
    )
    return _world(config, encoder, train, held_out, (used, text_used))


def load_task(config: Config, world: World, name: str) -> Task:
    """Reads a task, and draws the examples that are used of it."""
    settings = config.tuning
    if name == "planted":
        whole = synthetic.planted_sentiment(num_words=120)
        rows = {
            part: [(" ".join(e.tokens), None, float(e.label)) for e in own]
            for part, own in (("train", whole.train), ("held out", whole.test))
        }
        used = planted("planted sentiment", settings.examples or len(whole.train))
        classes = 2
    else:
        rows, classes, found = _read(name)
        used = described(
            found,
            min(settings.examples or len(rows["train"]), len(rows["train"])),
            name=f"{name}, examples trained on",
            kind="subset",
        )
    cutter = dataclasses.replace(
        pretrained.Cutter.of(world.encoder), longest=settings.longest
    )
    sizes = {"train": settings.examples, "held out": settings.held_out}
    parts = {}
    for part, own in rows.items():
        order = np.random.default_rng(_SEED).permutation(len(own))[: sizes[part]]
        chosen = [own[i] for i in order]
        texts = [a if b is None else (a, b) for a, b, _ in chosen]
        labels = np.array([label for *_, label in chosen], np.float32)
        kind = labels.astype(np.int32) if classes else labels / np.float32(5)
        parts[part] = cutter.texts(texts).columns() | {"labels": kind}
    return Task(name, parts, classes, used)


def _read(name: str):
    """Examples of both parts; how many classes; what was found."""
    if name.startswith("glue-"):
        task, found = name.removeprefix("glue-"), sources.get(name)
        split = {"train": "train", "held out": "validation"}
        rows = {p: read_glue(task, found.part(s)) for p, s in split.items()}
        return rows, len(GLUE_TASKS[task].classes or ()), found
    if name == "sst-2":
        found = sources.get("sst-2")
        rows = {
            part: [(r.text, None, r.label) for r in text.kim_lines(found.part(split))]
            for part, split in (("train", "train"), ("held out", "dev"))
        }
        return rows, 2, found
    if name == "mrpc":
        found = sources.get("mrpc")
        split = {"train": "train", "held out": "test"}
        rows = {p: paraphrases.read_mrpc(found.part(s)) for p, s in split.items()}
        return rows, 2, found
    if name == "sts-b":
        found = sources.get("sts-benchmark")
        split = {"train": "train", "held out": "dev"}
        return (
            {p: relatedness.read_sts(found.part(s)) for p, s in split.items()},
            0,
            found,
        )
    found = sources.get("rte")
    split = {"train": "train", "held out": "validation"}
    return {p: read_glue("rte", found.part(s)) for p, s in split.items()}, 2, found


def _rows(cutter: pretrained.Cutter, texts: Sequence[str], length: int) -> np.ndarray:
    """All pieces end to end, between the marks that stand around a text."""
    first, last = cutter.around
    pieces = np.concatenate([np.array(ids, np.int32) for ids, _ in cutter.bare(texts)])
    inner = length - len(first) - len(last)
    whole = pieces[: len(pieces) // inner * inner].reshape(-1, inner)
    sides = [np.tile(np.array(m, np.int32), (len(whole), 1)) for m in (first, last)]
    return np.concatenate([sides[0], whole, sides[1]], axis=1)


def _world(
    config: Config,
    encoder: pretrained.Pretrained,
    train: np.ndarray,
    held_out: np.ndarray,
    data: tuple[results.Data, ...],
) -> World:
    tokenizer = pretrained.Cutter.of(encoder).tokenizer
    ids = {mark: tokenizer.token_to_id(mark) for mark in encoders.MARKS}
    return World(
        encoder,
        train,
        held_out[: config.pretraining.held_out],
        ids.pop("[MASK]"),
        tuple(sorted(i for i in ids.values() if i is not None)),
        data,
        digest_of_weights(encoder),
    )


def _planted(config: Config) -> World:
    world = synthetic.planted_topics(num_sentences=3000, length=14)
    task = synthetic.planted_sentiment(num_words=120)
    words = {w for s in world.sentences for w in s} | set(task.vectors.words)
    encoder = encoders.planted(words, dim=32, heads=4)
    cutter = pretrained.Cutter.of(encoder)
    texts = [" ".join(s) for s in world.sentences]
    rows = _rows(cutter, texts, config.pretraining.length)
    used = planted("planted topics", len(texts))
    return _world(config, encoder, rows[:-500], rows[-500:], (used,))
