import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import conll, files, sources, wheels
from jaxemb.errors import InputError

TEXT = """-DOCSTART- -X- -X- O

EU NNP I-NP I-ORG
rejects\tVBZ  I-VP O
 German JJ I-NP I-MISC\x20

\xa0 NN I-NP O
-DOCSTART- -X- O O
calls NNS I-NP O
"""
ENTRY = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=" \ufeff"),
    min_size=1,
    max_size=4,
).filter(lambda s: s != "-DOCSTART-")


def write(folder, text):
    path = folder / "columns.txt"
    path.write_bytes(text.encode())
    return path


def test_an_example(tmp_path):
    read = conll.read_conll(write(tmp_path, TEXT), conll.CONLL2003)
    assert [s["words"] for s in read] == [
        ("EU", "rejects", "German"),
        ("\xa0",),
        ("calls",),
    ]
    assert read[0]["entities"] == ("I-ORG", "O", "I-MISC")
    crlf = write(tmp_path, TEXT.replace("\n", "\r\n"))
    assert conll.read_conll(crlf, conll.CONLL2003) == read


@given(st.lists(st.lists(st.tuples(ENTRY, ENTRY), min_size=1), min_size=1))
def test_round_trip(tmp_path_factory, rows):
    text = "\n\n".join("\n".join(map(" ".join, sentence)) for sentence in rows)
    path = write(tmp_path_factory.mktemp("columns"), text)
    read = conll.read_conll(path, ("words", "tags"))
    assert [list(zip(s["words"], s["tags"], strict=True)) for s in read] == rows


def test_a_bad_line_is_named(tmp_path):
    path = write(tmp_path, "a b c\nd e\n")
    problem = r"columns\.txt:2: expected 3 columns \(words, pos, chunks\), found 2"
    with pytest.raises(InputError, match=problem):
        conll.read_conll(path, conll.CONLL2000)
    with pytest.raises(InputError, match="expected words in columns, found none"):
        conll.read_conll(write(tmp_path, "\n-DOCSTART- O\n"), ("words", "tags"))


def test_a_column_named_twice_is_refused(tmp_path):
    path = write(tmp_path, "a b c\n")
    problem = r"columns\.txt: expected each column named once, found words, _, _$"
    with pytest.raises(InputError, match=problem):
        conll.read_conll(path, ("words", "_", "_"))


@given(st.binary(max_size=80) | st.text("ab -\t\n\xa0").map(str.encode))
def test_random_bytes_raise_only_the_documented_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "a.txt"
    path.write_bytes(content)
    try:
        read = conll.read_conll(path, ("words", "tags"))
    except InputError as error:
        assert str(path) in str(error)
    else:
        assert all(s["words"] and len(s["words"]) == len(s["tags"]) for s in read)


SIZES = {
    "conll2000": (conll.CONLL2000, {"train": 8936, "test": 2012}),
    "conll2002": (conll.CONLL2002, {"esp-train": 8323, "ned-testb": 5195}),
    "conll2003": (conll.CONLL2003, {"train": 14041, "dev": 3250, "test": 3453}),
    "scitech-ner": (("words", "entities"), {"test": 2000}),
}


@pytest.mark.data
@pytest.mark.parametrize("name", SIZES)
def test_the_shared_tasks_are_whole(name):
    found = sources.locate(name)
    if found is None:
        pytest.skip(f"needs the data set {name}")
    columns, sizes = SIZES[name]
    for part, size in sizes.items():
        assert len(conll.read_conll(found.part(part), columns)) == size


@pytest.mark.data
def test_the_wheel_and_the_folder_have_the_same_sentences():
    data_set, local = sources.DATA_SETS["conll2003"], sources.locate("conll2003")
    path = wheels.cached(data_set.wheel)
    if path is None or local is None or local.source != "local folder":
        pytest.skip("needs conll2003 as a folder and as a wheel")
    for part in ("dev", "test"):
        place = wheels.member(path, data_set.parts[part].member)
        sides = [
            conll.read_conll(place, conll.CONLL2003),
            conll.read_conll(files.resolve(local.part(part)), conll.CONLL2003),
        ]
        assert [s["words"] for s in sides[0]] == [s["words"] for s in sides[1]]
