"""CoNLL-U against the package conllu."""

import conllu as oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import conllu, sources
from jaxemb.errors import InputError

TEXT = """\
# sent_id = one
# text = don't stop_
# a comment
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tdo\tdo\tAUX\tVBP\tMood=Imp|Number=Sing\t3\taux\t3:aux\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t3:advmod\t_
3\tstop\tstop\tVERB\tVB\t_\t0\troot\t0:root\t_
3.1\tit\tit\tPRON\t_\t_\t_\t_\t3:obj\t_
4\t_\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_


# sent_id = two
1\tNew York\tNew York\tPROPN\t_\t_\t_\t_\t_\t_
"""


def line(*fields):
    return "\t".join([*fields, *["_"] * (10 - len(fields))])


def write(folder, text):
    path = folder / "a.conllu"
    path.write_text(text, encoding="utf-8")
    return path


def compare(read, text):
    """Every field against the oracle's, which has a list of lines of all kinds."""
    parsed = oracle.parse(text)
    assert len(read) == len(parsed)
    nothing = lambda x: None if x == "_" else x
    for ours, theirs in zip(read, parsed, strict=True):
        words = [t for t in theirs if isinstance(t["id"], int)]
        assert len(words) == len(ours.words)
        for word, token in zip(ours.words, words, strict=True):
            assert word.form == token["form"]
            if token["form"] != "_":
                assert word.lemma == nothing(token["lemma"])
            assert (word.upos, word.xpos) == (nothing(token["upos"]), token["xpos"])
            assert (word.head, word.deprel) == (token["head"], nothing(token["deprel"]))
            assert word.features == (token["feats"] or {})
        others = [t for t in theirs if not isinstance(t["id"], int)]
        ranges = [(t["id"][0], t["id"][2], t["form"]) for t in others if "-" in t["id"]]
        assert [tuple(t[:3]) for t in ours.tokens] == ranges
        empty = [(t["id"][0], t["id"][2], t["form"]) for t in others if "." in t["id"]]
        assert [(n.after, n.place, n.word.form) for n in ours.empty] == empty
        known = {k: v for k, v in theirs.metadata.items() if v is not None}
        assert {k: v for k, v in ours.metadata.items() if k in known} == known


def test_an_example(tmp_path):
    read = conllu.read_conllu(write(tmp_path, TEXT))
    compare(read, TEXT)
    first, second = read
    assert first.forms == ("do", "n't", "stop", "_")
    assert first.words[3].lemma == "_" and first.words[3].xpos is None
    assert first.tokens == (conllu.Token(1, 2, "don't", "SpaceAfter=No"),)
    assert first.metadata == {"sent_id": "one", "text": "don't stop_"}
    assert first.comments[2] == "a comment"
    assert second.words[0].head is None and second.forms == ("New York",)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("1\tx", "expected 10 columns parted by tabs, found 2"),
        (line("1", ""), "column 2 is empty"),
        (line("2", "x"), "expected word 1, found 2"),
        (line("0", "x"), "expected a number of a word, found '0'"),
        (line("x", "x"), "expected a number of a word, found 'x'"),
        (line("²", "x"), "expected a number of a word"),
        (line("9" * 5000, "x"), "expected a number of a word"),
        (line("2-3", "x"), "expected words from 1 on, found 2-3"),
        (line("2-1", "x"), "expected words from 1 on, found 2-1"),
        (line("1.1", "x"), r"expected empty node 0\.1, found 1\.1"),
        (line("0.2", "x"), r"expected empty node 0\.1, found 0\.2"),
        (line("0.1", "x", "_", "_", "_", "_", "1"), "an empty node has no head"),
        (
            line("1", "x", "_", "_", "_", "_", "y"),
            "expected the number of a head or _, found 'y'",
        ),
        (
            line("1", "x", "_", "_", "_", "_", "-1"),
            "expected the number of a head or _, found '-1'",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path, bad, problem):
    path = write(tmp_path, f"# fine\n{line('1', 'fine')}\n\n{bad}\n\n")
    with pytest.raises(InputError, match=rf"a\.conllu:4: {problem}"):
        conllu.read_conllu(path)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([line("1", "x"), "# late"], "2: expected a word, found a comment"),
        (["# alone"], "2: the sentence ends without a word"),
        ([line("1-2", "x"), line("1", "x")], "3: the token 1-2 needs more than 1"),
        (
            [line("1-2", "x"), line("1", "x"), line("2-3", "y")],
            "3: expected words from 3 on, found 2-3",
        ),
        (
            [line("1", "x", "_", "_", "_", "_", "2")],
            "2: word 1 cannot depend on 2",
        ),
        (
            [line("1", "x", "_", "_", "_", "_", "1")],
            "2: word 1 cannot depend on 1",
        ),
    ],
)
def test_a_bad_sentence_is_named(tmp_path, lines, problem):
    path = write(tmp_path, "\n".join([*lines, ""]) + "\n")
    with pytest.raises(InputError, match=rf"a\.conllu:{problem}"):
        conllu.read_conllu(path)


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_sentences(tmp_path, content):
    with pytest.raises(InputError, match="expected sentences in CoNLL-U, found none"):
        conllu.read_conllu(write(tmp_path, content))


@given(
    st.binary(max_size=80)
    | st.lists(
        st.lists(st.sampled_from(["1", "2", "_", "1-2", "1.1", "x", ""]), max_size=12)
        .map("\t".join)
        .map(lambda s: s if s.count("\t") > 6 else s + "\t_" * 9),
        max_size=4,
    ).map(lambda rows: "\n".join(rows).encode())
)
def test_random_bytes_raise_only_the_documented_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "a.conllu"
    path.write_bytes(content)
    try:
        read = conllu.read_conllu(path)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    else:
        assert all(sentence.words for sentence in read)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("ud-english-ewt", {"test": 2077}),
        ("ud-french-sequoia", {"dev": 412}),
        ("ud-finnish-tdt", {"dev": 1364}),
    ],
)
def test_treebanks_equal_the_oracle(name, sizes):
    found = sources.locate(name)
    if found is None:
        pytest.skip(f"needs the data set {name}")
    for part, size in sizes.items():
        read = conllu.read_conllu(found.part(part))
        assert len(read) == size
        few = found.part(part).read_text(encoding="utf-8").split("\n\n")[:60]
        compare(read[: len(few)], "\n\n".join(few) + "\n\n")
