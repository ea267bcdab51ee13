"""Trees of constituents and the probing tasks made of them."""

import collections

import pytest

from jaxemb.data import probing, sources, treebank
from jaxemb.data.trees import Tree
from jaxemb.errors import InputError

TEXT = """
( (S
    (NP-SBJ-1 (DT The) (NN -LRB-dog-RRB-) )
    (, ,)
    (VP (VBD wanted)
      (S
        (NP-SBJ (-NONE- *-1) )
        (VP (TO to) (VP (VB bark) ))))
    (. .) ))
( (NP (NNP Yes) ))

(SBARQ (WHNP=2 (WP Who)) (SQ (VBZ is) (NP-PRD (PRP$ her))) (. ?))
"""


def height(tree):
    """Edges down to the words, by recursion."""
    return 1 + max(map(height, tree.children), default=0)


@pytest.fixture
def trees(tmp_path):
    path = tmp_path / "one.mrg"
    path.write_text(TEXT)
    return treebank.read_treebank(path)


def test_trees_over_several_lines(trees):
    assert [tree.label for tree in trees] == ["S", "NP", "SBARQ"]
    first = trees[0]
    assert [child.label for child in first.children] == ["NP-SBJ-1", ",", "VP", "."]
    assert first.tokens == (
        *("The", "-LRB-dog-RRB-", ",", "wanted", "*-1", "to", "bark", "."),
    )
    assert [treebank.category(c.label) for c in trees[2].children] == [
        *("WHNP", "SQ", "."),
    ]
    assert treebank.category("-LRB-") == "-LRB-"
    assert treebank.category("PRP$") == "PRP$"


def test_traces_and_what_has_only_those_are_taken_out(trees):
    heard = treebank.without_traces(trees[0])
    assert heard is not None
    assert heard.tokens == ("The", "-LRB-dog-RRB-", ",", "wanted", "to", "bark", ".")
    clause = heard.children[2].children[1]
    assert [child.label for child in clause.children] == ["VP"]
    silent = Tree("NP", None, (Tree("-NONE-", "*"),))
    assert treebank.without_traces(silent) is None


def test_depth_and_top_constituents(trees):
    for tree in trees:
        assert treebank.depth(tree) == height(tree)
    assert treebank.depth(trees[1]) == 2
    assert treebank.top_constituents(trees[0]) == ("NP", "VP", ".")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(S (NN a))\n(S (NN b)", ":2: the text ends with 1 brackets open"),
        ("(S\n(NN two words))", r":2: expected \( or \) here"),
        ("(S (NN a)))", r":1: expected \( before \)"),
        ("(S\n\n())", r":3: expected a label after \(, found '\)'"),
        ("( )", r":1: expected a label after \(, found '\)'"),
        ("a", r":1: expected \(, found 'a'"),
        ("\n", "expected trees in brackets, found none"),
    ],
)
def test_bad_files_are_named(tmp_path, text, problem):
    path = tmp_path / "bad.mrg"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        treebank.read_treebank(path)


def sentence(*labels):
    """A tree with these constituents, a word each."""
    return Tree("S", None, tuple(Tree(label, f"w{label}") for label in labels))


def test_tree_depth_leaves_other_depths_out(trees):
    task = probing.tree_depth({"one": trees[:2], "two": trees[2:]}, depths=[2, 4])
    assert task.classes == ("2", "4")
    assert [(e.label, e.document) for e in task.examples] == [(0, "one"), (1, "two")]
    assert task.examples[0].tokens == ("Yes",)
    assert task.majority == 0.5
    with pytest.raises(InputError, match="TreeDepth: no sentence"):
        probing.tree_depth({"one": trees}, depths=[99])


def test_the_commonest_sequences_have_classes_and_the_rest_is_other():
    documents = {
        "a": [sentence("NP-SBJ", "VP", "."), sentence("PP", ",", "NP", "VP", ".")],
        "b": [sentence("NP", "VP", "."), sentence("PP", "NP", "VP", ".")] * 2,
        "c": [sentence("X", "."), sentence("NP", "VP", ".")],
    }
    task = probing.top_constituents(documents, kinds=2)
    assert task.classes == ("NP_VP_.", "PP_NP_VP_.", "OTHER")
    labels = [example.label for example in task.examples]
    assert collections.Counter(labels) == {0: 4, 1: 3, 2: 1}
    assert task.examples[1].tokens == ("wPP", "w,", "wNP", "wVP", "w.")
    assert task.majority == 0.5
    drawn = probing.top_constituents(documents, kinds=2, most=2)
    assert collections.Counter(e.label for e in drawn.examples) == {0: 2, 1: 2, 2: 1}
    assert set(drawn.examples) <= set(task.examples)
    again = probing.top_constituents(documents, kinds=2, most=2)
    assert again == drawn


@pytest.mark.data
def test_the_sample_of_the_penn_treebank():
    found = sources.locate("ptb-sample")
    if found is None:
        pytest.skip("needs ptb_sample/combined/wsj_0001.mrg")
    assert len(found.parts) == 199 and found.whole
    documents = {n: treebank.read_treebank(p) for n, p in found.parts.items()}
    assert sum(map(len, documents.values())) == 3914
    depth = probing.tree_depth(documents)
    counts = collections.Counter(depth.classes[e.label] for e in depth.examples)
    assert counts["10"] == 424 and sum(counts.values()) == 2770
    for trees in list(documents.values())[:20]:
        for tree in trees:
            heard = treebank.without_traces(tree)
            assert heard is not None and treebank.depth(heard) == height(heard)
    top = probing.top_constituents(documents)
    assert len(top.examples) == 3914 and len(top.classes) == 20
    assert top.classes[:2] == ("NP_VP_.", "PP_NP_VP_.")
