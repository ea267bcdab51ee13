import collections

import pytest

from jaxemb.data import sentence_pairs, sources
from jaxemb.errors import InputError

SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
MRPC = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"


def test_sick(tmp_path):
    path = tmp_path / "sick.txt"
    path.write_text(f"{SICK}7\tA man runs\tNo man  runs\t3.5\tCONTRADICTION\r\n")
    [pair] = sentence_pairs.read_sick(path)
    assert pair == (("A", "man", "runs"), ("No", "man", "runs"), 0, 3.5)


def test_mrpc_has_quotes_that_quote_nothing(tmp_path):
    path = tmp_path / "mrpc.txt"
    path.write_text(f'{MRPC}1\t2\t3\t"We\'re in, he said\tHe said "yes" .\n')
    [pair] = sentence_pairs.read_mrpc(path)
    assert pair.first == ("We", "'re", "in", ",", "he", "said")
    assert pair.second == ("He", "said", "yes")
    assert (pair.label, pair.score) == (1, None)


@pytest.mark.parametrize(
    ("read", "text", "problem"),
    [
        ("sick", SICK, "expected pairs of sentences, found none"),
        ("sick", f"{SICK}7\ta\tb\thigh\tNEUTRAL\n", ":2: expected a score of relate"),
        ("sick", f"{SICK}7\ta\tb\t3.5\tMAYBE\n", ":2: expected a label of CONTRA"),
        ("sick", f"{SICK}7\ta\tb\n", ":2: expected 5 columns, found 3"),
        ("sick", "a\tb\n", "expected a column 'sentence_A'"),
        ("mrpc", f"{MRPC}2\t2\t3\ta\tb\n", ":2: expected a label of 0, 1"),
        ("mrpc", MRPC, "expected pairs of sentences, found none"),
    ],
)
def test_bad_files_are_named(tmp_path, read, text, problem):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    readers = {"sick": sentence_pairs.read_sick, "mrpc": sentence_pairs.read_mrpc}
    with pytest.raises(InputError, match=problem):
        readers[read](path)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("sick", {"train": 4500, "dev": 500, "test": 4927}),
        ("mrpc", {"train": 4076, "test": 1725}),
    ],
)
def test_the_whole_sets(name, counts):
    found = sources.locate(name)
    if found is None:
        pytest.skip(f"needs {sources.find(name).parts['train'].local[0]}")
    read = {"sick": sentence_pairs.read_sick, "mrpc": sentence_pairs.read_mrpc}[name]
    parts = {part: read(place) for part, place in found.parts.items()}
    assert {part: len(rows) for part, rows in parts.items()} == counts
    labels = collections.Counter(row.label for row in parts["test"])
    # The shares that their authors print.
    assert dict(labels) == (
        {0: 720, 1: 2793, 2: 1414} if name == "sick" else {0: 578, 1: 1147}
    )
    assert all(row.first and row.second for rows in parts.values() for row in rows)
