"""Trees of constituents as the Penn Treebank has them, one bracket for each."""

from jaxemb.data import files, tokenize
from jaxemb.data.trees import Misread, Tree, read_brackets
from jaxemb.errors import InputError

_TRACE = "-NONE-"
# Tags of marks inside of a sentence; the one that ends it is another, `.`.
PUNCTUATION = frozenset([",", ":", "``", "''", "-LRB-", "-RRB-"])


def read_treebank(path: files.Location) -> list[Tree[str]]:
    """Reads the trees of a file, each over any number of lines.

    The bracket without a label that the Treebank puts around a sentence is taken off.
    Labels are as annotated (`NP-SBJ-1`), traces are there (`(-NONE- *-1)`) and words
    have their escapes (`-LRB-`); see `category`, `without_traces` and `words`.

    Raises:
      InputError: with file and line, also where no tree is found.
    """
    lines = list(files.read_lines(path))
    text = " ".join(lines)  # one character for each line's end, so that offsets hold

    def label_of(field: str) -> str:
        if field in ("(", ")", "the end"):
            raise ValueError(f"expected a label after (, found {field!r}")
        return field

    trees = []
    try:
        for tree, _ in read_brackets(text, label_of, unlabelled=""):
            alone = not tree.label and len(tree.children) == 1
            trees.append(tree.children[0] if alone else tree)
    except Misread as error:
        line = _line(lines, error.offset)
        raise InputError.at(str(path), line, str(error)) from None
    if not trees:
        raise InputError(f"{path}: expected trees in brackets, found none")
    return trees


def category(label: str) -> str:
    """A label without its functions and indices: `NP-SBJ-1` is an `NP`."""
    if label.startswith("-"):  # -LRB-, -NONE-
        return label
    for mark in "-=|":
        label = label.partition(mark)[0]
    return label


def without_traces(tree: Tree[str]) -> Tree[str] | None:
    """The tree of what is heard: no traces, and no node that has only those."""
    kept: dict[int, Tree[str]] = {}
    for node in reversed(list(tree.nodes())):  # children before their parents
        if node.word is not None:
            if node.label != _TRACE:
                kept[id(node)] = node
            continue
        children = tuple(kept[id(c)] for c in node.children if id(c) in kept)
        if children:
            kept[id(node)] = Tree(node.label, None, children)
    return kept.get(id(tree))


def words(tree: Tree[str]) -> tuple[str, ...]:
    """The words as they were written."""
    return tuple(tokenize.ptb_unescape(word) for word in tree.tokens)


def depth(tree: Tree[str]) -> int:
    """Edges on the longest way from the node to a word."""
    below: dict[int, int] = {}
    for node in reversed(list(tree.nodes())):
        deepest = max((below[id(child)] for child in node.children), default=0)
        below[id(node)] = deepest + 1
    return below[id(tree)]


def top_constituents(tree: Tree[str]) -> tuple[str, ...]:
    """Categories of what is immediately below the node, without inner punctuation."""
    below = (category(child.label) for child in tree.children)
    return tuple(label for label in below if label not in PUNCTUATION)


def _line(lines: list[str], offset: int) -> int:
    """The line, counted from 1, of an offset into the lines joined by one character."""
    for number, line in enumerate(lines, 1):
        offset -= len(line) + 1
        if offset < 0:
            return number
    return len(lines)
