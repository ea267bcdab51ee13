"""The tasks of the paper's sentiment half."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from experiments.common.datasets import described, planted
from experiments.delta_embedding.config import Config
from experiments.delta_embedding.task import Rows, Task, counted, ends
from jaxemb.data import batching, sources, synthetic, text, tokenize, trees, vocab
from jaxemb.train import results


def load(config: Config) -> Task:
    """Reads, and fetches if need be, the texts of a task."""
    if config.planted:
        world = synthetic.planted_sentiment()
        examples = [*world.train, *world.test]
        return _encode(examples, 2, planted("planted", len(examples)))
    if config.task == "kmr":
        return _kmr()
    found = sources.get(config.task)
    examples = text.read_rt_polarity(found)
    return _encode(examples, 2, counted(found, len(examples)))


def _kmr() -> Task:
    """Every labelled phrase once, in the first of train, dev and test that has it.

    This is the material of the Kaggle task, whose own test labels are hidden: it has
    the phrases of the treebank's sentences, a repeated one once. Splitting by sentence
    keeps a sentence's phrases together.
    """

    def clean(word: str) -> str:
        return tokenize.ptb_unescape(word).lower()

    found = sources.get("sst-trees")
    seen: set[tuple[str, ...]] = set()
    examples: list[text.LabelledText] = []
    sizes = []
    for part in ("train", "dev", "test"):
        before = len(examples)
        for tree in trees.read_trees(found.part(part)):
            for phrase in trees.phrases(tree, clean):
                if phrase.tokens not in seen:
                    seen.add(phrase.tokens)
                    examples.append(phrase)
        sizes.append(len(examples) - before)
    return _encode(examples, 5, described(found, kind="subset"), ends(*sizes))


def _encode(
    examples: Sequence[text.LabelledText],
    classes: int,
    data: results.Data,
    splits: Rows | None = None,
) -> Task:
    words = vocab.Vocab.build(example.tokens for example in examples)
    return Task(
        vocab=words,
        columns={
            "tokens": batching.Ragged.of([words.encode(e.tokens) for e in examples]),
            "labels": np.array([example.label for example in examples], np.int32),
        },
        data=(dataclasses.replace(data, size=len(examples)),),
        classes=classes,
        splits=splits,
    )
