import pytest

from jaxemb.data.relatedness import RatedPair, read_sts
from jaxemb.errors import InputError

LINE = 'main-news\theadlines\t2013\t0001\t3.600\tHe said "no".\tShe said "no.'


def test_pairs_are_read_quotes_and_sources_included(tmp_path):
    path = tmp_path / "sts-test.csv"
    path.write_text(f"{LINE}\n{LINE}\tsource\tother\n\n", encoding="utf-8")
    pair = RatedPair('He said "no".', 'She said "no.', 3.6)
    assert read_sts(path) == [pair, pair]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{LINE}\na\tb\n", ":2: expected 7 columns"),
        (LINE.replace("3.600", "5.1"), ":1: expected a score from 0 to 5, found '5.1'"),
        (LINE.replace("3.600", "x"), ":1: expected a score"),
        ("", "expected pairs of sentences, found none"),
    ],
)
def test_what_is_no_pair_is_named(text, problem, tmp_path):
    path = tmp_path / "sts-test.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=problem):
        read_sts(path)
