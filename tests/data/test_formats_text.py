import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from jaxemb.data.formats import text
from jaxemb.data.vectors import WordVectors, read_word_vectors, write_word_vectors
from jaxemb.errors import InputError


def read(tmp_path, content, **options):
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    return read_word_vectors(path, **options)


@pytest.mark.parametrize(
    "content",
    [
        b"2 2\na 1 2\nb 3 4\n",
        b"a 1 2\nb 3 4\n",
        b"a 1 2\nb 3 4",
        b"a 1 2\r\nb 3 4\r\n",
        b"2 2\r\na 1 2\r\nb 3 4",
        b"a 1 2 \nb 3 4 \n",
        b"a 1 2 \r\nb 3 4 \r\n",
        b"2 2 \na 1 2 \nb 3 4 \n",
        b"a\t1\t2\nb\t3\t4\n",
        b"a\t1 2\nb\t3 4\n",
        b"a  1  2\nb   3 4\n",
        b"  a 1 2\nb 3 4\n",
        b"a 1 2\nb 3 4\n\n \n\r\n",
        b"\xef\xbb\xbfa 1 2\nb 3 4\n",
        b"\xef\xbb\xbf2 2\na 1 2\nb 3 4\n",
        b"a +1.0 2e0\nb 0.3E1 4.\n",
        b"a 1 2\nb 3 4\na 5 6\n",
    ],
)
def test_layouts_that_mean_the_same(tmp_path, content):
    table = read(tmp_path, content)
    assert table.words == ("a", "b")
    np.testing.assert_array_equal(table.matrix, [[1, 2], [3, 4]])
    assert table.report.duplicates == content.count(b"5 6")


def test_words_with_spaces_and_words_that_look_like_something_else(tmp_path):
    words = [". . .", "at name@domain.com", "route 66", "NaN", "null", "", "'", '"']
    words = [
        w for w in [*words, "1", "1.5", "\u0085", "\u00a0", "\u2028x", "a\u3000b"] if w
    ]
    content = "".join(f"{word} 0.5 -0.25\n" for word in words).encode()
    table = read(tmp_path, b"%d 2\n" % len(words) + content)
    assert table.words == tuple(words)
    assert (table.matrix == [0.5, -0.25]).all()
    kept = read(tmp_path, content, keep={"route 66", ". . .", "at"})
    assert kept.words == (". . .", "route 66")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"b 1", "expected a word and 2 numbers, found 2 fields"),
        (b"1 2", "expected a word and 2 numbers, found 2 fields"),
        (b" 1 2", "expected a word and 2 numbers, found 2 fields"),
        (b"", "found a blank line"),
        (b"b 1 2 3", "expected a word and 2 numbers, found more numbers"),
        (b"b 0.5 0.25 0.125", "expected a word and 2 numbers, found more numbers"),
        (b"b 1 x", "'x' is not a number"),
        (b"b 1_0 2", "'1_0' is not a number"),
        (b"b 1 0x2", "'0x2' is not a number"),
        (b"b 1 2,5", "'2,5' is not a number"),
        (b"b 1 \xff", "is not a number"),
        (b"b nan 2", "NaN or too large"),
        (b"b 1 -inf", "NaN or too large"),
        (b"b 1 1e39", "NaN or too large"),
        (b"b 1 1e999", "NaN or too large"),
        (b"\xff 1 2", "is not valid utf-8"),
        (b"\xed\xa0\x80 1 2", "is not valid utf-8"),
    ],
)
@pytest.mark.parametrize(("header", "many"), [(False, 8), (True, 8), (True, 4000)])
def test_a_bad_line_is_named_or_skipped(
    tmp_path, monkeypatch, line, problem, header, many
):
    monkeypatch.setattr(text, "_BLOCK", 256)
    before = b"".join(b"w%d 1 2\n" % i for i in range(1, many // 8 + 2))
    good = before.count(b"\n")
    content = before + line + b"\nz 7 8\n"
    if header:
        content = b"%d 2\n" % (good + 2) + content
    number = good + 1 + header
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert f"v.txt:{number}: " in str(caught.value)
    assert problem in str(caught.value)
    table = read(tmp_path, content, on_bad="skip")
    assert table.words[-1] == "z" and len(table) == good + 1
    assert table.report.skipped == 1
    assert table.report.problems == (str(caught.value),)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"\n \r\n", "the file is empty"),
        (b"word\n", "v.txt:1: expected a word and its numbers"),
        (b"3 2\na 1 2\n", "v.txt:1: the header promises 3 words, found 1"),
        (b"1 2\na 1 2\nb 1 2\n", "v.txt:1: the header promises 1 words, found 2"),
        (b"1 0\na\n", "v.txt:1: expected a dimension above 0"),
        (b"1 999999999\na 1\n", "v.txt:2: expected a word and 999999999 numbers"),
        (b"999999999999 3\na 1 2 3\n", "promises 999999999999 words, found 1"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, content, problem):
    with pytest.raises(InputError, match=problem):
        read(tmp_path, content)


def test_headers_by_request(tmp_path):
    content = b"5 1\n6 2\n"
    table = read(tmp_path, content, format="glove")
    assert table.words == ("5", "6")
    with pytest.raises(InputError, match="promises 5 words"):
        read(tmp_path, content)
    with pytest.raises(InputError, match="v.txt:1: expected a header"):
        read(tmp_path, b"a 1 2\n", format="word2vec")
    assert read(tmp_path, b"3 2\na 1 2\n", on_bad="skip").report.skipped == 1
    assert read(tmp_path, b"0 7\n").matrix.shape == (0, 7)


def test_keep_does_not_look_at_other_lines_and_stops_early(tmp_path):
    content = b"a 1 2\nbad\nb 3 4\nc 5 6\njunk\n"
    table = read(tmp_path, content, keep={"a", "b"}, format="glove")
    assert table.words == ("a", "b")
    with pytest.raises(InputError, match="v.txt:2: "):
        read(tmp_path, content, keep={"a", "bad"}, format="glove")


def test_values_round_as_through_float64(tmp_path):
    # Halfway between two float32 but for the 20th digit: direct rounding differs.
    number = "1.00000017881393432617187499"
    table = read(tmp_path, f"a {number} 0\n".encode())
    assert table.matrix[0, 0] == np.float32(float(number))
    rng = np.random.default_rng(0)
    exact = rng.normal(size=(50, 7)) * 10.0 ** rng.integers(-30, 30, (50, 7))
    lines = [
        f"w{i} " + " ".join(map(repr, row)) for i, row in enumerate(exact.tolist())
    ]
    table = read(tmp_path, "\n".join(lines).encode())
    np.testing.assert_array_equal(table.matrix, exact.astype(np.float32))


@pytest.mark.parametrize("word", ["", " a", "a ", "a\nb", "\t", "a 1.5", "a\x0b"])
def test_words_that_text_cannot_hold_are_refused(tmp_path, word):
    table = WordVectors((word,), np.full((1, 2), 0.5, np.float32))
    with pytest.raises(InputError, match="cannot be told from its numbers"):
        write_word_vectors(tmp_path / "v.txt", table)


def test_text_that_would_read_otherwise_is_refused(tmp_path):
    table = WordVectors(("7",), np.full((1, 1), 3, np.float32))
    with pytest.raises(InputError, match="reads as a header"):
        write_word_vectors(tmp_path / "v.txt", table, format="glove")
    surrogate = WordVectors(("\ud800",), np.ones((1, 1), np.float32))
    with pytest.raises(InputError, match="surrogate"):
        write_word_vectors(tmp_path / "v.txt", surrogate)


def test_glove_whose_dimension_cannot_be_told_is_refused(tmp_path):
    rows = np.full((3, 2), 0.5, np.float32)
    path = tmp_path / "v.txt"
    for words in [
        ("a b", "c", "d e"),
        ("a b", "c d", "e"),
        ("a b c", "d e f", "g h i"),
    ]:
        with pytest.raises(InputError, match="dimension.* write word2vec"):
            write_word_vectors(path, WordVectors(words, rows), format="glove")
    table = WordVectors(("a", "b c", "d"), rows)
    write_word_vectors(path, table, format="glove")
    assert read_word_vectors(path).words == table.words


def test_a_byte_order_mark_and_the_word_of_that_name(tmp_path):
    mark = "\ufeff"
    for content in ("{0} 1 2\na 3 4\n", "a 3 4\n{0} 1 2\n", "2 2\n{0} 1 2\na 3 4\n"):
        table = read(tmp_path, content.format(mark).encode())
        assert set(table.words) == {mark, "a"}
        assert table[mark].tolist() == [1, 2]
    first = WordVectors((f"{mark}a",), np.ones((1, 2), np.float32))
    with pytest.raises(InputError, match="byte order mark"):
        write_word_vectors(tmp_path / "v.txt", first, format="glove")


@pytest.mark.parametrize("header", [b"", b"2 3\n"])
def test_what_holds_no_vectors_does_not_pass_for_vectors(tmp_path, header):
    """Sentences hold none of the words to keep, so that no other line is looked at."""
    content = header + b"0 it is dull\n1 it is fine\n"
    place = f"v.txt:{1 + bool(header)}: 'it' is not a number"
    with pytest.raises(InputError, match=place):
        read(tmp_path, content, keep={"cat", "dog"})
    skipped = read(tmp_path, content, keep={"cat", "dog"}, on_bad="skip")
    assert len(skipped) == 0 and skipped.report.skipped == 1
    fine = read(tmp_path, b"a 1 2\nb 3 4\n", keep={"cat"})
    assert (len(fine), fine.dim) == (0, 2)


def test_shortest_text_of_every_kind_of_float32(tmp_path):
    bits = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values)][:190_000].reshape(-1, 10)
    table = WordVectors(tuple(f"w{i}" for i in range(len(values))), values)
    write_word_vectors(tmp_path / "v.txt", table)
    back = read_word_vectors(tmp_path / "v.txt")
    np.testing.assert_array_equal(back.matrix.view("u4"), values.view("u4"))
    line = (tmp_path / "v.txt").read_text().splitlines()[1].split()[1:]
    assert max(map(len, line)) <= 16


tricky_line = st.lists(
    st.sampled_from(
        [
            b"a",
            b"b",
            b"1",
            b"0.5",
            b"nan",
            b" ",
            b"\t",
            b"\r",
            b"\x0b",
            b"\xff",
            b"\xef\xbb\xbf",
            b"\xc3\xa9",
            b"1e999",
            b"-",
            b",",
            b'"',
            b"\0",
        ]
    ),
    max_size=9,
).map(b"".join)


@hypothesis.settings(max_examples=300)
@hypothesis.given(
    st.lists(tricky_line | st.sampled_from([b"x 1 0.5", b"y 2 3"]), max_size=6)
)
def test_a_line_means_the_same_in_any_company(tmp_path_factory, lines):
    # Many lines at once go the fast way, if they can; single ones on their own merits.
    hypothesis.assume(any(line.strip() for line in lines))
    while not lines[-1].strip():
        lines.pop()
    path = tmp_path_factory.mktemp("lines") / "v.txt"
    path.write_bytes(b"%d 2\n" % len(lines) + b"\n".join(lines))
    together = read_word_vectors(path, on_bad="skip", format="word2vec")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text._BlockParser, "_regular", lambda *_: ([], None))
        slowly = read_word_vectors(path, on_bad="skip", format="word2vec")
        patch.setattr(text, "_floats", lambda *_: None)
        slowest = read_word_vectors(path, on_bad="skip", format="word2vec")
    for other in (slowly, slowest):
        assert together.words == other.words
        np.testing.assert_array_equal(together.matrix, other.matrix)
        assert together.report == other.report


@pytest.mark.parametrize("size", [1, 7, 64])
def test_blocks_of_any_size_give_the_same(tmp_path, monkeypatch, size):
    content = b"3 2\r\nab 1 2\n\xc3\xa9 3 4 \nlong word here 0.5 6\n\n\n"
    whole = read(tmp_path, content)
    monkeypatch.setattr(text, "_BLOCK", size)
    parts = read(tmp_path, content)
    assert parts.words == whole.words == ("ab", "é", "long word here")
    np.testing.assert_array_equal(parts.matrix, whole.matrix)
