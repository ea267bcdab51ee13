"""Probing tasks made of a treebank: what of its syntax can be told from a sentence.

The classes are those of SentEval's TreeDepth and TopConst (Conneau et al. 2018), whose
sentences are automatically parsed books; here they are those of a treebank.
"""

import collections
import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jaxemb.data import treebank
from jaxemb.data.trees import Tree
from jaxemb.errors import InputError

Documents = Mapping[str, Sequence[Tree[str]]]

OTHER = "OTHER"


class ProbingExample(NamedTuple):
    """A sentence, its class counted from 0, and the document that it is from."""

    tokens: tuple[str, ...]
    label: int
    document: str


@dataclasses.dataclass(frozen=True)
class ProbingTask:
    """Sentences by a property of their trees."""

    name: str
    classes: tuple[str, ...]
    examples: tuple[ProbingExample, ...]

    @property
    def majority(self) -> float:
        """Share of the largest class."""
        counts = collections.Counter(example.label for example in self.examples)
        return max(counts.values()) / len(self.examples)


def tree_depth(
    documents: Documents, depths: Collection[int] = range(5, 13)
) -> ProbingTask:
    """The depth of a sentence's tree, without traces; other depths are left out.

    Depth is counted in edges from the sentence's node to the deepest word. SentEval has
    the same eight classes, but draws sentences so that depth is independent of length,
    which takes a far larger corpus.
    """
    classes = sorted(depths)
    rows = [
        (tree, str(treebank.depth(tree)), name)
        for name, tree in _heard(documents)
        if treebank.depth(tree) in classes
    ]
    return _task("TreeDepth", tuple(map(str, classes)), rows)


def top_constituents(
    documents: Documents, kinds: int = 19, *, most: int | None = None, seed: int = 1111
) -> ProbingTask:
    """The sequence of constituents below the sentence's node: the commonest, or OTHER.

    Punctuation inside of a sentence is left out of its sequence; SentEval leaves out
    the sentence, of which a small treebank has too few.

    Args:
      documents: of trees.
      kinds: how many sequences have a class of their own.
      most: sentences a class, a draw where there are more: SentEval's classes are
        balanced, and half of the sentences of news are `NP_VP_.`.
      seed: of the draw.
    """
    trees = _heard(documents)
    sequences = ["_".join(treebank.top_constituents(tree)) for _, tree in trees]
    counts = collections.Counter(sequences)
    # The commonest first; of equally common ones in the order of the alphabet.
    common = sorted(counts, key=lambda s: (-counts[s], s))[:kinds]
    rows = [
        (tree, sequence if sequence in common else OTHER, name)
        for (name, tree), sequence in zip(trees, sequences, strict=True)
    ]
    if most is not None:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(rows)).tolist()
        seen: collections.Counter[str] = collections.Counter()
        kept = []
        for place in order:
            seen[rows[place][1]] += 1
            if seen[rows[place][1]] <= most:
                kept.append(place)
        rows = [rows[place] for place in sorted(kept)]
    return _task("TopConst", (*common, OTHER), rows)


def _heard(documents: Documents) -> list[tuple[str, Tree[str]]]:
    """Documents' names and sentences without traces, of those that have words."""
    return [
        (name, heard)
        for name, trees in documents.items()
        for tree in trees
        if (heard := treebank.without_traces(tree)) is not None
    ]


def _task(
    name: str, classes: tuple[str, ...], rows: Sequence[tuple[Tree[str], str, str]]
) -> ProbingTask:
    if not rows:
        raise InputError(
            f"{name}: no sentence of the treebank is of any of its classes"
        )
    examples = tuple(
        ProbingExample(treebank.words(tree), classes.index(label), document)
        for tree, label, document in rows
    )
    return ProbingTask(name, classes, examples)
