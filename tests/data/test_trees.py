import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import sources, trees
from jaxemb.data.trees import Tree
from jaxemb.errors import InputError

LABEL = st.integers(0, 4)
WORD = st.text(st.characters(exclude_characters="() \t\r\n", codec="utf-8"), min_size=1)
TREE = st.recursive(
    st.builds(Tree, LABEL, WORD),
    lambda smaller: st.builds(
        Tree, LABEL, st.none(), st.lists(smaller, min_size=1, max_size=3).map(tuple)
    ),
    max_leaves=12,
)


def recursive_phrases(tree):
    """Words and label of each node, by the definition."""
    if tree.word is not None:
        return [((tree.word,), tree.label)]
    below = [recursive_phrases(child) for child in tree.children]
    words = tuple(word for rows in below for word in rows[0][0])
    return [(words, tree.label), *(row for rows in below for row in rows)]


@given(TREE)
def test_round_trip(tree):
    again = trees.parse(str(tree))
    assert again == tree and hash(again) == hash(tree)
    assert recursive_phrases(again) == recursive_phrases(tree)


@given(TREE)
def test_phrases_are_all_nodes(tree):
    assert list(trees.phrases(tree)) == recursive_phrases(tree)
    assert tree.tokens == recursive_phrases(tree)[0][0]


def test_an_example():
    text = "(3 (2 It) (4 (3 works) (2 .)))"
    tree = trees.parse(text)
    assert str(tree) == text
    assert list(trees.phrases(tree)) == [
        (("It", "works", "."), 3),
        (("It",), 2),
        (("works", "."), 4),
        (("works",), 3),
        ((".",), 2),
    ]
    assert trees.parse("( 3 ( 2 It )(4 (3\tworks) (2 .) ) )") == tree


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "ends with 0 brackets open"),
        ("(3 (2 It)", "ends with 1 brackets open"),
        ("(3 It) x", "column 8: expected one tree"),
        ("(3 It))", "column 7: expected one tree"),
        (")", r"column 1: expected \( before"),
        ("It", r"column 1: expected \("),
        ("(5 It)", "label of 0 to 4"),
        ("(It)", "label of 0 to 4"),
        ("(² It)", "label of 0 to 4"),
        ("(", "found 'the end'"),
        ("(3)", "column 3: expected a word or a tree"),
        ("(3 two words)", "column 8"),
        ("(3 It (2 x))", r"expected \) after a word"),
        ("(3 (2 x) It)", "column 10"),
        ("(" + "9" * 5000 + " It)", "label of 0 to 4"),
    ],
)
def test_bad_trees(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem):
        trees.parse(text)
    path = tmp_path / "trees.txt"
    path.write_text(f"(1 fine)\n\n{text or '('}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"trees\.txt:3: "):
        trees.read_trees(path)


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_trees(tmp_path, content):
    (tmp_path / "trees.txt").write_text(content)
    with pytest.raises(InputError, match=r"trees\.txt: expected labelled trees, found"):
        trees.read_trees(tmp_path / "trees.txt")


def test_more_classes():
    assert trees.parse("(7 x)", classes=8).label == 7


def test_a_tree_deeper_than_the_stack():
    depth = 5_000
    text = "(1 " * depth + "x" + ")" * depth
    tree = trees.parse(text)
    assert str(tree) == text and tree == trees.parse(text)
    assert sum(1 for _ in trees.phrases(tree)) == depth


@given(st.binary() | st.text("()01 \nab").map(str.encode))
def test_random_bytes_raise_only_input_errors(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("trees") / "random.txt"
    path.write_bytes(content)
    try:
        read = trees.read_trees(path)
    except InputError as error:
        assert str(path) in str(error)
    else:
        assert [trees.parse(str(tree)) for tree in read] == read


@pytest.mark.data
def test_the_treebank():
    found = sources.locate("sst-trees")
    if found is None:
        pytest.skip("needs sst_trees/train.txt")
    read = {split: trees.read_trees(found.part(split)) for split in ("dev", "test")}
    assert [len(read["dev"]), len(read["test"])] == [1101, 2210]
    lines = found.part("dev").read_text(encoding="utf-8").splitlines()
    assert [str(tree) for tree in read["dev"]] == lines
    # A binary tree of n words has 2n - 1 nodes.
    for tree in read["test"]:
        assert sum(1 for _ in trees.phrases(tree)) == 2 * len(tree.tokens) - 1
    # Kim's SST-2 is SST-1 without the neutral sentences: the counts are published.
    labels = collections.Counter(tree.label for tree in read["test"])
    assert sum(labels[i] for i in (0, 1, 3, 4)) == 1821
