"""Sentiment trees in the Penn Treebank's brackets: `(3 (2 It) (4 (3 works) (2 .)))`."""

import dataclasses
import re
from collections.abc import Callable, Iterator

from jaxemb.data import files
from jaxemb.data.text import LabelledText
from jaxemb.errors import InputError

# A bracket, or anything else between white space and brackets. Only ASCII white space
# parts tokens: the treebank has words with no-break spaces in them.
_PIECE = re.compile(r"[()]|[^() \t]+")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A labelled node: a word, or two and more (seldom one) smaller trees."""

    label: int
    word: str | None = None
    children: tuple["Tree", ...] = ()

    def nodes(self) -> Iterator["Tree"]:
        """This node and all below it, parents first, left to right."""
        waiting: list[Tree] = [self]
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
        waiting: list[Tree | str] = [self]
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


def parse(text: str, *, classes: int = 5) -> Tree:
    """Reads one tree whose labels are whole numbers below `classes`.

    Raises:
      InputError: saying what was expected, and at which column.
    """
    # One entry an open node: its label, its word, the children it has so far.
    open_nodes: list[tuple[int, str | None, list[Tree]]] = []
    done: Tree | None = None
    pieces = _PIECE.finditer(text)
    for piece in pieces:
        column = piece.start() + 1
        if done is not None:
            raise InputError(f"column {column}: expected one tree, found more after it")
        match piece.group():
            case "(":
                if open_nodes and open_nodes[-1][1] is not None:
                    raise InputError(f"column {column}: expected ) after a word")
                following = next(pieces, None)
                open_nodes.append((_label(following, column, classes), None, []))
            case ")":
                if not open_nodes:
                    raise InputError(f"column {column}: expected ( before )")
                label, word, children = open_nodes.pop()
                if word is None and not children:
                    raise InputError(f"column {column}: expected a word or a tree")
                node = Tree(label, word, tuple(children))
                if open_nodes:
                    open_nodes[-1][2].append(node)
                else:
                    done = node
            case word:
                if not open_nodes:
                    raise InputError(
                        f"column {column}: expected (, found {word[:40]!r}"
                    )
                label, first, children = open_nodes.pop()
                if first is not None or children:
                    raise InputError(f"column {column}: expected ( or ) here")
                open_nodes.append((label, word, children))
    if done is None:
        raise InputError(f"the tree ends with {len(open_nodes)} brackets open")
    return done


def read_trees(path: files.Location, *, classes: int = 5) -> list[Tree]:
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
    tree: Tree, clean: Callable[[str], str] | None = None
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


def _label(piece: re.Match[str] | None, column: int, classes: int) -> int:
    field = piece.group() if piece else "the end"
    if field.isascii() and field.isdigit() and len(field) < 10 and int(field) < classes:
        return int(field)
    problem = f"expected a label of 0 to {classes - 1} after (, found {field[:40]!r}"
    raise InputError(f"column {column}: {problem}")
