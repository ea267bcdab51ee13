import collections

import pytest

from jaxemb.data import paraphrases, sources
from jaxemb.errors import InputError

HEADER = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"


def test_mrpc_has_quotes_that_quote_nothing(tmp_path):
    path = tmp_path / "mrpc.txt"
    path.write_text(f'{HEADER}1\t2\t3\t"We\'re in, he said\tHe said "yes" .\n')
    [pair] = paraphrases.read_mrpc(path)
    assert pair == ("\"We're in, he said", 'He said "yes" .', 1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{HEADER}2\t2\t3\ta\tb\n", ":2: expected a label of 0, 1"),
        (f"{HEADER}1\ta\tb\n", ":2: expected 5 columns, found 3"),
        (HEADER, "expected pairs of sentences, found none"),
        ("a\tb\n", "expected a column 'Quality'"),
    ],
)
def test_bad_files_are_named(tmp_path, text, problem):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        paraphrases.read_mrpc(path)


@pytest.mark.data
def test_the_whole_set():
    found = sources.locate("mrpc")
    if found is None:
        pytest.skip(f"needs {sources.find('mrpc').parts['train'].local[0]}")
    parts = {part: paraphrases.read_mrpc(p) for part, p in found.parts.items()}
    assert {name: len(rows) for name, rows in parts.items()} == {
        "train": 4076,
        "test": 1725,
    }
    # The counts that its authors print.
    labels = collections.Counter(row.label for row in parts["test"])
    assert labels == {0: 578, 1: 1147}
    assert all(row.first and row.second for rows in parts.values() for row in rows)
