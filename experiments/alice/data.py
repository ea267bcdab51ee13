"""Texts as pieces, the parts that a seed trains on, and the encoder."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.alice.config import PAIRS, Config, Task
from experiments.common import encoders
from experiments.common.datasets import described, planted
from jaxemb import pretrained
from jaxemb.data import batching, commonsense, sources, synthetic
from jaxemb.data.commonsense import Candidate, Choice
from jaxemb.errors import InputError
from jaxemb.eval import questions
from jaxemb.train import results

TITLES = {
    "mctaco": "MC-TACO",
    "comve": "ComVE",
    "commonsenseqa": "CommonsenseQA",
    "cosmosqa": "Cosmos QA",
    "mcscript": "MCScript",
    "mcscript2": "MCScript2.0",
    "planted pairs": "planted pairs",
    "planted choices": "planted choices",
}
Examples = Sequence[Candidate] | Sequence[Choice]
FOLDS = 5


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Examples as columns: `ids_0`, `mask_0`, `segments_0` of the first option, etc."""

    examples: Examples
    columns: dict[str, np.ndarray | batching.Ragged]

    def take(self, rows: np.ndarray) -> "Part":
        """Some of them, in the order given."""
        kept: Any = [self.examples[row] for row in rows]
        return Part(kept, batching.take(self.columns, rows))

    def some(self, most: int | None, rng: np.random.Generator | None = None) -> "Part":
        """The first whole groups, or in a random order, that do not exceed `most`."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for row, example in enumerate(self.examples):
            groups.setdefault(_group(example), []).append(row)
        each = list(groups.values())
        if rng is not None:
            each = [each[i] for i in rng.permutation(len(each))]
        rows: list[int] = []
        for own in each:
            if most is not None and rows and len(rows) + len(own) > most:
                break
            rows += own
        return self.take(np.array(rows))


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded:
    """A task whose texts are cut, and the encoder that reads them."""

    task: Task
    options: int
    """0 for a task of pairs."""
    pool: Part
    """What is trained on, and for MC-TACO also held out."""
    dev: Part | None
    test: Part
    buckets: tuple[int, ...]
    encoder: pretrained.Pretrained
    data: tuple[results.Data, ...]

    @property
    def classes(self) -> int:
        """Logits of an example."""
        return self.options or 2

    def split(self, config: Config, seed: int) -> tuple[Part, Part]:
        """What a seed trains on, and what chooses its epoch."""
        rng = np.random.default_rng([seed, 12])
        train, dev = self.pool, self.dev
        if dev is None:
            groups = [_group(example) for example in self.pool.examples]
            held = questions.grouped_folds(groups, FOLDS, seed=0) == seed % FOLDS
            train = self.pool.take(np.flatnonzero(~held))
            dev = self.pool.take(np.flatnonzero(held))
        return train.some(config.examples, rng), dev.some(config.dev_examples)


def load(config: Config, task: Task) -> Loaded:
    """Reads a task, cuts its texts and keeps of the encoder what they need."""
    parts, used = _read(task)
    if config.planted:
        texts = [t for own in parts.values() for e in own for t in texts_of(e)]
        both = [" ".join((t,) if isinstance(t, str) else t) for t in texts]
        encoder = encoders.planted(both)
    else:
        encoder, its_data = encoders.load(config.encoder)
        used = (*used, its_data)
    cutter = dataclasses.replace(
        pretrained.Cutter.of(encoder),
        longest=min(config.longest, encoder.config.longest),
    )
    cut = {name: _columns(own, cutter) for name, own in parts.items()}
    ragged = [c for part in cut.values() for n, c in part.items() if n[:3] == "ids"]
    kept = np.unique(np.concatenate([column.values for column in ragged]))
    encoder = _trimmed(encoder, config.layers, kept)
    for part in cut.values():
        for name, column in part.items():
            if name.startswith("ids"):
                renamed = np.searchsorted(kept, column.values).astype(np.int32)
                part[name] = batching.Ragged(renamed, column.offsets)
    lengths = np.concatenate([column.lengths for column in ragged])
    made = {name: Part(parts[name], columns) for name, columns in cut.items()}
    return Loaded(
        task=task,
        options=0 if task in PAIRS else len(parts["test"][0].options),
        pool=made["train"],
        dev=made.get("dev"),
        test=made["test"].some(config.test_examples),
        buckets=batching.length_buckets(lengths, config.buckets),
        encoder=encoder,
        data=used,
    )


def texts_of(example: Candidate | Choice) -> list[tuple[str, str] | str]:
    """The texts of an example: of a candidate one, of a choice one for each option.

    A pair has the sentence or passage first, which is cut if both are too long; then
    question and answer.
    """
    if isinstance(example, Candidate):
        return [(example.sentence, f"{example.question} {example.answer}")]
    first = example.passage or example.question
    if not first:
        return list(example.options)
    asked = f"{example.question} " if example.passage else ""
    return [(first, f"{asked}{option}") for option in example.options]


def _read(task: Task) -> tuple[dict[str, Any], tuple[results.Data, ...]]:
    if task.startswith("planted"):
        return _planted(task)
    found = sources.get(task)
    paths = found.parts
    data = (described(found),)
    if task == "mctaco":
        return {
            "train": commonsense.read_mctaco(paths["dev"]),
            "test": commonsense.read_mctaco(paths["test"]),
        }, data
    if task == "comve":
        names = ("train", "dev", "test")
        both = {n: (paths[n], paths[f"{n}-answers"]) for n in names}
        return {n: commonsense.read_comve(*both[n]) for n in names}, data
    if task == "commonsenseqa":  # the key of its test part is kept back
        read, split = commonsense.read_commonsenseqa, {"train": "train", "test": "dev"}
    elif task == "cosmosqa":
        read, split = commonsense.read_cosmosqa, {"train": "train", "test": "dev"}
    else:
        read, split = (
            commonsense.read_mcscript,
            {n: n for n in ("train", "dev", "test")},
        )
    return {name: read(found.part(part)) for name, part in split.items()}, data


def _planted(task: Task) -> tuple[dict[str, Any], tuple[results.Data, ...]]:
    rows: Any = synthetic.planted_candidates(questions=40)
    if task == "planted choices":
        rows = [
            Choice(str(i), first.sentence, "which", (first.answer, other.answer), 0)
            if i % 2
            else Choice(
                str(i), first.sentence, "which", (other.answer, first.answer), 1
            )
            for i, (first, other) in enumerate(zip(rows[::4], rows[1::4], strict=True))
        ]
    cut = 3 * len(rows) // 4
    return {"train": rows[:cut], "test": rows[cut:]}, (planted(task, len(rows)),)


def _columns(
    examples: Examples, cutter: pretrained.Cutter
) -> dict[str, np.ndarray | batching.Ragged]:
    each = [texts_of(example) for example in examples]
    if len({len(texts) for texts in each}) != 1:
        raise InputError("questions differ in how many options they have")
    columns: dict[str, Any] = {}
    for place, texts in enumerate(zip(*each, strict=True)):
        pieces = cutter.texts(texts).columns()
        columns |= {f"{name}_{place}": column for name, column in pieces.items()}
    labels = [example.label for example in examples]
    if None in labels:
        raise InputError("a question without its key; expected parts that have one")
    return columns | {"labels": np.array(labels, np.int32)}


def _trimmed(
    encoder: pretrained.Pretrained, layers: int | None, kept: np.ndarray
) -> pretrained.Pretrained:
    """The lower layers, and the rows of the pieces that occur.

    Rows that never occur take no gradient, and without decay Adam leaves them alone:
    leaving them out changes no number, and saves their moments.
    """
    config, params = encoder.config, dict(encoder.params)
    layers = config.layers if layers is None else layers
    if not 1 <= layers <= config.layers:
        raise InputError(f"--layers {layers}: expected 1 to {config.layers}")
    blocks = params["blocks"]
    beyond = {f"layer_{i}" for i in range(layers, config.layers)}
    params["blocks"] = {k: v for k, v in blocks.items() if k not in beyond}
    params["pieces"] = {"embedding": params["pieces"]["embedding"][kept]}
    return dataclasses.replace(
        encoder,
        config=dataclasses.replace(config, layers=layers, vocab=len(kept)),
        params=params,
    )


def _group(example: Candidate | Choice) -> tuple[str, ...]:
    """What has to stay together: a question's candidates, a passage's questions."""
    if isinstance(example, Candidate):
        return example.group
    return (example.passage or example.id,)
