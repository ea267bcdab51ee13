"""Wires of Reuters-21578, and the split that papers use."""

import pytest

from jaxemb.data import builders, reuters, sources
from jaxemb.errors import InputError

WIRE = """<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" CGISPLIT="X" NEWID="{id}">
<TOPICS>{d}</TOPICS>
<PLACES><D>usa</D></PLACES>
<TEXT{kind}>&#2;
{text}
&#3;</TEXT>
</REUTERS>
"""
TEXT = "<TITLE>A &lt;B> RISES</TITLE>\n<DATELINE> X, Feb 26 - </DATELINE><BODY>It rose."


def wire(number, split="TRAIN", topics="YES", d=("grain",), kind="", text=None):
    text = f"{TEXT}\n REUTER\n</BODY>" if text is None else text
    tags = "".join(f"<D>{topic}</D>" for topic in d)
    return WIRE.format(
        id=number, split=split, topics=topics, d=tags, kind=kind, text=text
    )


def write(path, *wires):
    path.write_bytes(("<!DOCTYPE lewis>\n" + "".join(wires)).encode("latin-1"))
    return path


def test_titles_bodies_topics_and_splits(tmp_path):
    first = write(
        tmp_path / "a.sgm",
        wire(1, d=("wheat", "grain", "wheat")),
        wire(2, "TEST", kind=' TYPE="UNPROC"', text="Only \xfc text &amp;\nmore"),
        wire(3, "NOT-USED"),
    )
    second = write(
        tmp_path / "b.sgm",
        wire(4, topics="NO"),
        wire(5, d=(), kind=' TYPE="BRIEF"', text="<TITLE>BRIEF</TITLE>"),
    )
    found = reuters.read_reuters([first, second])
    assert found == [
        reuters.Wire(1, "A <B> RISES", "It rose.", ("grain", "wheat"), "train"),
        reuters.Wire(2, "", "Only \xfc text &\nmore", ("grain",), "test"),
        reuters.Wire(3, "A <B> RISES", "It rose.", ("grain",), "unused"),
        reuters.Wire(4, "A <B> RISES", "It rose.", ("grain",), "unused"),
        reuters.Wire(5, "BRIEF", "", (), "train"),
    ]
    cut = reuters.modapte_90(found)
    assert cut.topics == ("grain",)
    assert [(w.id, w.topics) for w in cut.train] == [(1, ("grain",))]
    assert [w.id for w in cut.test] == [2]


def test_what_is_no_wire_is_refused(tmp_path):
    with pytest.raises(InputError, match="found none"):
        reuters.read_reuters([write(tmp_path / "a.sgm")])
    with pytest.raises(InputError, match=r"b\.sgm:2: expected a wire with a NEWID"):
        reuters.read_reuters([write(tmp_path / "b.sgm", wire("x"))])


def test_the_builder_has_the_split_of_the_reader(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path))
    folder = tmp_path / "reuters21578"
    folder.mkdir()
    other = wire(99, "TEST", d=("grain", "tea"))
    places = [
        write(folder / f"reut2-{number:03d}.sgm", wire(number), other)
        for number in range(22)
    ]
    cut = reuters.modapte_90(reuters.read_reuters(places))
    for split, wanted in (("train", cut.train), ("test", cut.test)):
        rows = builders.read("reuters-21578", split)
        assert len(rows) == len(wanted) == 22
        for row, one in zip(rows, wanted, strict=True):
            assert int(row["id"]) == one.id
            assert (row["title"].decode(), row["body"].decode()) == one[1:3]
            assert tuple(topic.decode() for topic in row["topics"]) == ("grain",)


@pytest.mark.data
def test_the_counts_of_the_collection_and_of_docbert():
    """21,578 wires; ModApte 9,603 and 3,299; of 90 topics 7,770 (5,827 and 1,943 in
    the authors' files) and 3,019, which are the paper's 10,789."""
    found = sources.locate("reuters-21578")
    if found is None:
        pytest.skip("reuters21578/reut2-000.sgm is not here")
    assert found.kind == "real"
    wires = reuters.read_reuters(found)
    assert [wire.id for wire in wires] == list(range(1, 21_579))
    splits = [wire.split for wire in wires]
    assert (splits.count("train"), splits.count("test")) == (9_603, 3_299)
    with_topics = [wire.split for wire in wires if wire.topics]
    assert (with_topics.count("train"), with_topics.count("test")) == (7_775, 3_019)
    cut = reuters.modapte_90(wires)
    assert len(cut.topics) == 90
    assert (len(cut.train), len(cut.test)) == (5_827 + 1_943, 3_019)
    assert len(cut.train) + len(cut.test) == 10_789
    assert all(wire.title or wire.body for wire in cut.train + cut.test)
