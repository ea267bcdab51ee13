"""Trees in the Penn Treebank's brackets: `(3 (2 It) (4 (3 works) (2 .)))`.

Here are sentiment trees, a number at each node; `treebank` has trees of constituents.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from jaxemb.data import files
from jaxemb.data.text import LabelledText
from jaxemb.errors import InputError

# A bracket, or anything else between white space and brackets. Only ASCII white space
# parts tokens: the treebank has words with no-break spaces in them.
_PIECE = re.compile(r"[()]|[^() \t]+")

Label = TypeVar("Label", int, str)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Tree(Generic[Label]):
    """A labelled node: a word, or two and more (seldom one) smaller trees."""

    label: Label
    word: str | None = None
    children: tuple["Tree[Label]", ...] = ()

    def nodes(self) -> Iterator["Tree[Label]"]:
        """This node and all below it, parents first, left to right."""
        waiting: list[Tree[Label]] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words from left to right."""
        return tuple(node.word for node in self.nodes() if node.word is not None)

    def __str__(self) -> str:
        pieces: list[str] = []
        waiting: list[Tree[Label] | str] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                pieces.append(node)
                continue
            pieces.append(f"({node.label}" if not pieces else f" ({node.label}")
            if node.word is not None:
                pieces.append(f" {node.word})")
                continue
            waiting.append(")")
            waiting.extend(reversed(node.children))
        return "".join(pieces)

    # By their text, because a deep tree would exhaust a recursive comparison.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"parse({str(self)!r})"


class Misread(Exception):
    """What is wrong with brackets, and where."""

    def __init__(self, offset: int, problem: str):
        """Keeps both apart, since a file counts lines and a line columns."""
        super().__init__(problem)
        self.offset = offset


def read_brackets(
    text: str, label_of: Callable[[str], Label], *, unlabelled: Label | None = None
) -> Iterator[tuple[Tree[Label], int]]:
    """Reads one tree after the other, each with the place in the text where it ends.

    Args:
      text: brackets, labels and words between spaces or tabs.
      label_of: reads a label; a ValueError says what it expected.
      unlabelled: the label of a bracket that is followed by another at once; without
        it that is an error.

    Raises:
      Misread: where brackets do not close, or hold neither a word nor trees.
    """
    # One entry an open node: its label, its word, the children it has so far.
    open_nodes: list[tuple[Label, str | None, list[Tree[Label]]]] = []
    pieces = list(_PIECE.finditer(text))
    place = 0
    while place < len(pieces):
        offset = pieces[place].start()
        match pieces[place].group():
            case "(":
                if open_nodes and open_nodes[-1][1] is not None:
                    raise Misread(offset, "expected ) after a word")
                more = place + 1 < len(pieces)
                field = pieces[place + 1].group() if more else "the end"
                if field == "(" and unlabelled is not None:
                    open_nodes.append((unlabelled, None, []))
                else:
                    try:
                        open_nodes.append((label_of(field), None, []))
                    except ValueError as error:
                        raise Misread(offset, str(error)) from None
                    place += 1
            case ")":
                if not open_nodes:
                    raise Misread(offset, "expected ( before )")
                label, word, children = open_nodes.pop()
                if word is None and not children:
                    raise Misread(offset, "expected a word or a tree")
                node = Tree(label, word, tuple(children))
                if open_nodes:
                    open_nodes[-1][2].append(node)
                else:
                    yield node, offset + 1
            case word:
                if not open_nodes:
                    raise Misread(offset, f"expected (, found {word[:40]!r}")
                label, first, children = open_nodes.pop()
                if first is not None or children:
                    raise Misread(offset, "expected ( or ) here")
                open_nodes.append((label, word, children))
        place += 1
    if open_nodes:
        problem = f"the text ends with {len(open_nodes)} brackets open"
        raise Misread(len(text), problem)


def parse(text: str, *, classes: int = 5) -> Tree[int]:
    """Reads one tree whose labels are whole numbers below `classes`.

    Raises:
      InputError: saying what was expected, and at which column.
    """

    def label_of(field: str) -> int:
        if field.isascii() and field.isdigit() and len(field) < 10:
            if int(field) < classes:
                return int(field)
        expected = f"expected a label of 0 to {classes - 1} after ("
        raise ValueError(f"{expected}, found {field[:40]!r}")

    try:
        tree, end = next(read_brackets(text, label_of), (None, 0))
    except Misread as error:
        raise InputError(_at_column(error)) from None
    if tree is None:
        raise InputError("the tree ends with 0 brackets open")
    if more := _PIECE.search(text, end):
        problem = "expected one tree, found more after it"
        raise InputError(_at_column(Misread(more.start(), problem)))
    return tree


def read_trees(path: files.Location, *, classes: int = 5) -> list[Tree[int]]:
    """Reads one tree a line; blank lines are left out.

    Raises:
      InputError: with file and line, also where no tree is found.
    """
    trees = []
    for number, line in enumerate(files.read_lines(path), 1):
        if line.strip():
            try:
                trees.append(parse(line, classes=classes))
            except InputError as error:
                raise InputError.at(str(path), number, str(error)) from None
    if not trees:
        raise InputError(f"{path}: expected labelled trees, found none")
    return trees


def phrases(
    tree: Tree[int], clean: Callable[[str], str] | None = None
) -> Iterator[LabelledText]:
    """Every node's words and label: the whole sentence first, then parents first.

    A phrase that a sentence holds twice comes twice. `clean` is applied to each word
    of the sentence.
    """
    tokens = tree.tokens if clean is None else tuple(map(clean, tree.tokens))
    widths: dict[int, int] = {}
    nodes = list(tree.nodes())
    for node in reversed(nodes):  # children before their parents
        width = sum(widths[id(child)] for child in node.children)
        widths[id(node)] = width if node.word is None else 1
    start = 0  # words to the left of the node, as nodes come from left to right
    for node in nodes:
        yield LabelledText(tokens[start : start + widths[id(node)]], node.label)
        start += node.word is not None


def _at_column(error: Misread) -> str:
    return f"column {error.offset + 1}: {error}"
