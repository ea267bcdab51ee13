import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import nli, sources
from jaxemb.data.nli import SentencePair
from jaxemb.errors import InputError

# The columns of the official releases, in their order.
MULTINLI = (
    "gold_label sentence1_binary_parse sentence2_binary_parse sentence1_parse "
    "sentence2_parse sentence1 sentence2 promptID pairID genre label1 label2 label3 "
    "label4 label5"
).split()
SICK = "pair_ID sentence_A sentence_B relatedness_score entailment_judgment".split()


def columns(header, *rows):
    lines = [header, *([row.get(name, "x") for name in header] for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def mnli(premise, hypothesis, label, genre):
    return {
        "sentence1": premise,
        "sentence2": hypothesis,
        "gold_label": label,
        "genre": genre,
    }


ROWS = [
    mnli("He came.", 'She "left". ', "neutral", "fiction"),
    mnli("It rains.", "It is wet.", "-", "fiction"),
    mnli("It rains.", "It's dry.", "contradiction", "travel"),
]
PAIRS = (
    SentencePair("He came.", 'She "left".', 1, "fiction"),
    SentencePair("It rains.", "It's dry.", 2, "travel"),
)


@pytest.mark.parametrize("kind", ["jsonl", "txt", "tsv", "jsonl.gz"])
def test_the_official_formats_of_multinli(tmp_path, kind):
    path = tmp_path / f"multinli_1.0_dev_matched.{kind}"
    if kind.startswith("jsonl"):
        content = "".join(json.dumps({**row, "pairID": "1"}) + "\n" for row in ROWS)
    else:
        content = columns(MULTINLI, *ROWS)
    data = content.encode()
    path.write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    read = nli.read_nli(path)
    assert read.pairs == PAIRS
    assert read.unlabelled == 1
    assert read.of_genre("travel").pairs == PAIRS[1:]
    with pytest.raises(InputError, match="'slate'; there are fiction, travel"):
        read.of_genre("slate")


def test_columns_left_out_at_the_end_of_a_line(tmp_path):
    path = tmp_path / "train.txt"
    header, *lines = columns(MULTINLI, *ROWS).splitlines()
    short = ["\t".join(line.split("\t")[:11]) for line in lines]
    path.write_text("\n".join([header, *short]))
    assert nli.read_nli(path).pairs == PAIRS


def test_sick_has_capital_labels_and_no_genre(tmp_path):
    path = tmp_path / "SICK_train.txt"
    row = {
        "sentence_A": "A dog runs",
        "sentence_B": "An animal runs",
        "entailment_judgment": "ENTAILMENT",
    }
    path.write_text(columns(SICK, row))
    read = nli.read_nli(path)
    assert read.pairs == (SentencePair("A dog runs", "An animal runs", 0, None),)
    with pytest.raises(InputError, match="they have none"):
        read.of_genre("fiction")


def test_lines_apart(tmp_path):
    sides = {
        "s1": "a\nb \nc\n",
        "s2": "x\ny\nz\n",
        "labels": "neutral\n-\nentailment\n",
    }
    for name, content in sides.items():
        (tmp_path / name).write_text(content)
    places = [tmp_path / name for name in sides]
    read = nli.read_lines_apart(*places)
    assert read.pairs == (SentencePair("a", "x", 1), SentencePair("c", "z", 0))
    assert read.unlabelled == 1
    (tmp_path / "s2").write_text("x\ny\n")
    with pytest.raises(InputError, match="s2:3: the file ends"):
        nli.read_lines_apart(*places)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", "", ":1: expected a column sentence1 or premise or sentence_A"),
        ("a.txt", "sentence1\tsentence2\n", ":1: expected a column gold_label"),
        ("a.txt", columns(MULTINLI), "no labelled pair"),
        ("a.txt", columns(MULTINLI, ROWS[1]), "no labelled pair"),
        ("a.txt", columns(MULTINLI) + "-\tx\n", ":2: expected 15 columns, found 2"),
        ("a.txt", columns(SICK, {}), ":2: expected one of entailment, .* found 'x'"),
        ("a.txt", columns(SICK, {}).rstrip("\n") + "\tx", ":2: expected 5 columns, f"),
        ("a.jsonl", "[]\n", ":1: expected a JSON object"),
        ("a.jsonl", '{"gold_label": "-"', ":1: expected a JSON object"),
        ("a.jsonl", '\n{"sentence1": "a"}', ":2: expected a string under 'sentence2'"),
    ],
)
def test_bad_files(tmp_path, name, content, problem):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=problem):
        nli.read_nli(path)


@given(
    st.binary()
    | st.text('{}":,sentence12gold_label\t\n-').map(str.encode)
    | st.text("ab\t-\nneutral").map(lambda t: columns(SICK).encode() + t.encode()),
    st.sampled_from(["x.jsonl", "x.txt"]),
)
def test_random_bytes_raise_only_input_errors(tmp_path_factory, content, name):
    path = tmp_path_factory.mktemp("nli") / name
    path.write_bytes(content)
    try:
        assert nli.read_nli(path).pairs
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("mnli-dev-matched", {"validation": (3479, 3123, 3213)}),
        (
            "sick",
            {
                "train": (1299, 2536, 665),
                "validation": (144, 282, 74),
                "test": (1414, 2793, 720),
            },
        ),
    ],
)
def test_the_real_files(name, counts):
    found = sources.locate(name)
    if found is None:
        first = next(iter(sources.DATA_SETS[name].parts.values()))
        pytest.skip(f"needs {first.local[0]}")
    for part, expected in counts.items():
        read = nli.read_nli(found.part(part))
        labels = [pair.label for pair in read.pairs]
        assert tuple(map(labels.count, range(3))) == expected
        assert read.unlabelled == 0


@pytest.mark.data
def test_snli_as_e_snli_has_it():
    found = sources.locate("snli-esnli")
    if found is None:
        pytest.skip("needs snli_esnli/s1.dev and others")
    sides = (found.part(f"test-{s}") for s in ("premises", "hypotheses", "labels"))
    read = nli.read_lines_apart(*sides)
    assert len(read.pairs) == 9824  # SNLI's labelled test pairs
