"""The readers of questions of common sense: files as released, and broken ones."""

import collections
import json

import pytest

from jaxemb.data import commonsense, sources
from jaxemb.errors import InputError

XML = """<?xml version="1.0" ?>
<data>
 <instance id="4"><text>We ate.
Then we left.</text>
  <questions>
   <question id="0" text="Who ate?" type="text">
    <answer correct="False" id="0" text="Nobody"/>
    <answer correct="True" id="1" text="We &amp; they"/>
   </question>
  </questions>
 </instance>
</data>
"""
COSMOS = "id,context,question,answer0,answer1,answer2,answer3,label\n"


def csqa(key="B", **changes):
    asked = {
        "stem": "Where?",
        "choices": [{"label": n, "text": n * 2} for n in "ABC"],
    }
    row = {"id": "x", "question": asked, "answerKey": key, **changes}
    return json.dumps({k: v for k, v in row.items() if v is not None}) + "\n"


def written(folder, text, name="file.txt"):
    path = folder / name
    path.write_text(text)
    return path


def test_mctaco(tmp_path):
    path = written(tmp_path, 'He "ran".\tHow long?\tan hour\tyes\tEvent Duration\n')
    [row] = commonsense.read_mctaco(path)
    assert row == ('He "ran".', "How long?", "an hour", 1, "Event Duration")
    assert row.group == ('He "ran".', "How long?")


def test_comve(tmp_path):
    path = written(tmp_path, 'id,sent0,sent1\n7,"A, b.",B\n9,c,d\n', "a.csv")
    answers = written(tmp_path, "7,1\n9,0\n", "b.csv")
    first, second = commonsense.read_comve(path, answers)
    assert first == ("7", "", "", ("A, b.", "B"), 1, None)
    assert (second.id, second.label) == ("9", 0)


def test_commonsenseqa_with_and_without_a_key(tmp_path):
    path = written(tmp_path, csqa() + csqa(key=None))
    first, second = commonsense.read_commonsenseqa(path)
    assert first == ("x", "", "Where?", ("AA", "BB", "CC"), 1, None)
    assert second.label is None


def test_cosmosqa_in_both_formats(tmp_path):
    row = ["i", "Two\nlines", "Why?", *"abcd"]
    text = COSMOS + 'i,"Two\nlines",Why?,a,b,c,d,3\n'
    [found] = commonsense.read_cosmosqa(written(tmp_path, text, "valid.csv"))
    assert found == ("i", "Two\nlines", "Why?", tuple("abcd"), 3, None)
    names = COSMOS.strip().split(",")[:-1]
    line = json.dumps(dict(zip(names, row, strict=True)))
    [found] = commonsense.read_cosmosqa(written(tmp_path, line, "test.jsonl"))
    assert found == ("i", "Two\nlines", "Why?", tuple("abcd"), None, None)


def test_mcscript(tmp_path):
    [found] = commonsense.read_mcscript(written(tmp_path, XML))
    assert found == (
        *("4-0", "We ate.\nThen we left.", "Who ate?"),
        *(("Nobody", "We & they"), 1, "text"),
    )


@pytest.mark.parametrize(
    ("reader", "text", "problem"),
    [
        ("mctaco", "a\tb\tc\tyes\n", ":1: expected 5 columns parted by tabs, found 4"),
        ("mctaco", "\na\tb\tc\tmaybe\td\n", ":2: expected a label of no, yes, found"),
        ("mctaco", "\n", "expected questions, found none"),
        ("commonsenseqa", "\n[]\n", ":2: expected a JSON object"),
        ("commonsenseqa", csqa(key="D"), ":1: expected a label of A, B, C, found 'D'"),
        ("commonsenseqa", csqa(question=None), ":1: expected a dict under 'question'"),
        ("cosmosqa", "id,text\n", ":1: expected a header id,context"),
        (
            "cosmosqa",
            COSMOS + "i,c,q,a,b,c,d,4\n",
            ":2: expected a label of 0, 1, 2, 3",
        ),
        ("cosmosqa", COSMOS + "i,c,q,a,b\n", ":2: expected 8 columns, found 5"),
        ("mcscript", XML.replace("</text>", ""), r":\d+: not XML \(mismatched tag\)"),
        ("mcscript", XML.replace("True", "False"), ":9: expected one right answer"),
        ("mcscript", XML.replace('"True"', '"ok"'), ":8: expected correct True or"),
        ("mcscript", XML.replace(' text="Who ate?"', ""), ":6: expected an attribute"),
        ("mcscript", "<data></data>", "expected questions, found none"),
    ],
)
def test_bad_files_are_named(tmp_path, reader, text, problem):
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=problem):
        getattr(commonsense, f"read_{reader}")(path)


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ("7,1\n", "b.csv:2: expected the answer of id 9"),
        ("9,1\n7,0\n", "b.csv:1: expected the answer of id 7"),
        ("7,1\n9,2\n", "b.csv:2: expected a label of 0, 1"),
        ("7,1\n9,1\n8,1\n", "b.csv:3: expected no more answers, found 8"),
    ],
)
def test_answers_that_do_not_fit_are_named(tmp_path, answers, problem):
    path = written(tmp_path, "id,sent0,sent1\n7,a,b\n9,c,d\n", "a.csv")
    with pytest.raises(InputError, match=problem):
        commonsense.read_comve(path, written(tmp_path, answers, "b.csv"))


def parts_of(name):
    found = sources.locate(name)
    if found is None:
        pytest.skip(f"needs {next(iter(sources.find(name).parts.values())).local[0]}")
    return found.parts


@pytest.mark.data
def test_the_whole_of_mctaco():
    # The counts that its readme tells.
    parts = {n: commonsense.read_mctaco(p) for n, p in parts_of("mctaco").items()}
    assert {name: len(rows) for name, rows in parts.items()} == {
        "dev": 3783,
        "test": 9442,
    }
    questions = {n: len({row.group for row in rows}) for n, rows in parts.items()}
    assert questions == {"dev": 561, "test": 1332}


@pytest.mark.data
def test_the_whole_of_comve():
    parts = parts_of("comve")
    for split, count in (("train", 10_000), ("dev", 997), ("test", 1000)):
        rows = commonsense.read_comve(parts[split], parts[f"{split}-answers"])
        assert len(rows) == count
        assert 0.45 < sum(row.label for row in rows) / count < 0.55


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts", "options"),
    [
        ("commonsenseqa", {"train": 9741, "dev": 1221, "test": 1140}, 5),
        ("cosmosqa", {"train": 25_262, "dev": 2985, "test": 6963}, 4),
        ("mcscript", {"train": 9731, "dev": 1411, "test": 2797}, 2),
        ("mcscript2", {"train": 14_191, "dev": 2020, "test": 3610}, 2),
    ],
)
def test_whole_sets_of_choices(name, counts, options):
    read = getattr(commonsense, f"read_{name.rstrip('2')}")
    for part, path in parts_of(name).items():
        rows = read(path)
        assert len(rows) == counts[part]
        assert collections.Counter(len(row.options) for row in rows) == {
            options: len(rows)
        }
        hidden = part == "test" and name in ("commonsenseqa", "cosmosqa")
        assert {row.label is None for row in rows} == {hidden}
