"""Lines of bits and texts, and what is said of lines that are something else."""

import pytest

from jaxemb.data import hedwig, sources
from jaxemb.errors import InputError


def file_of(folder, *lines):
    path = folder / "train.tsv"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_bits_are_classes_and_tabs_in_a_text_stay(tmp_path):
    path = file_of(tmp_path, "0110\toil and\tgrain", "0000\tnothing", "1000\tcafé")
    found = hedwig.read_hedwig(path)
    assert [d.classes for d in found] == [(1, 2), (), (0,)]
    assert [d.text for d in found] == ["oil and\tgrain", "nothing", "café"]
    assert {d.bits for d in found} == {4}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["01\ta", "2\tb"], ":2: expected bits, a tab and a text, found '2"),
        (["01 a"], ":1: .*found '01 a'"),
        (["\ta"], ":1: expected bits"),
        (["01\ta", "011\tb"], ":2: 3 bits; the first line has 2"),
        (["01\ta", "11\tb"], ":2: 2 classes; expected one"),
        ([], "no documents"),
    ],
)
def test_other_lines_are_named(tmp_path, lines, problem):
    with pytest.raises(InputError, match=problem):
        hedwig.read_hedwig(file_of(tmp_path, *lines), single=True)


def test_collections_are_found_in_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path))
    for name, folder in (("hedwig-aapd", "AAPD"), ("hedwig-imdb", "IMDB")):
        place = tmp_path / "hedwig-data" / "datasets" / folder
        place.mkdir(parents=True)
        for part in ("train", "dev", "test"):
            (place / f"{part}.tsv").write_text(f"10\t{part} of {name}\n")
        found = sources.locate(name)
        assert found is not None
        read = hedwig.read_hedwig(found.part("dev"))
        assert read == [((0,), f"dev of {name}", 2)]
