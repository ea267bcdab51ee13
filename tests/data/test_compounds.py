import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import compounds, sources
from jaxemb.data.compounds import Compound
from jaxemb.errors import InputError


def test_reddy_is_scored_as_a_whole(tmp_path):
    path = tmp_path / "reddy.csv"
    path.write_text("end\tuser\t3.8\t4.8\t4.25\nsnail\tmail\t0.6\t4.5\t1.31\n")
    assert compounds.read_reddy(path) == [
        Compound("end", "user", 4.25),
        Compound("snail", "mail", 1.31),
    ]


def test_farahmand_is_scored_by_the_share_of_judges(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text("air force,0,1,1,0\naction film,0,0,0,0\nboard game,1,x,1,1\n")
    found = compounds.read_farahmand(path)
    assert [c.score for c in found] == [0.5, 1.0, 0.0]
    assert found[0].joined == "air_force"


@pytest.mark.parametrize(
    "line", ["airforce,0,1", "air force", "air force,2,0", "a b c,1"]
)
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "judged.csv"
    path.write_text(f"air force,0\n{line}\n")
    with pytest.raises(InputError, match=r"judged.csv:2: expected two words, then"):
        compounds.read_farahmand(path)


@pytest.mark.parametrize("read", [compounds.read_reddy, compounds.read_farahmand])
def test_an_empty_file_is_refused(tmp_path, read):
    path = tmp_path / "none.csv"
    path.write_text("\n")
    with pytest.raises(InputError, match="found none"):
        read(path)


@given(st.binary(max_size=200))
def test_random_bytes_raise_only_the_documented_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "judged.csv"
    path.write_bytes(content)
    for read in (compounds.read_reddy, compounds.read_farahmand):
        try:
            assert read(path)
        except InputError:
            pass


def test_compounds_become_words():
    known = [Compound("swimming", "pool", 1), Compound("pool", "table", 1)]
    text = [
        ["the", "swimming", "pool", "table"],  # the first of two that overlap
        ["pool", "table", "pool", "table"],
        ["swimming"],
        ["a", "swimming", "Pool"],
        [],
    ]
    assert list(compounds.join_compounds(text, known)) == [
        ["the", "swimming_pool", "table"],
        ["pool_table", "pool_table"],
        ["swimming"],
        ["a", "swimming", "Pool"],
        [],
    ]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "part", "read", "count"),
    [
        ("compounds-reddy", "scores", compounds.read_reddy, 90),
        ("compounds-farahmand", "judgements", compounds.read_farahmand, 1042),
    ],
)
def test_the_real_lists(name, part, read, count):
    found = sources.locate(name)
    if found is None:
        pytest.skip(sources.missing(name))
    rated = read(found.part(part))
    assert len(rated) == len({c.joined for c in rated}) == count
    scores = [c.score for c in rated]
    assert min(scores) >= 0 and max(scores) <= 5 and len(set(scores)) > 4
