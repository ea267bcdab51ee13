import bz2
import contextlib
import gzip
import lzma
import os
import random
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import files
from jaxemb.errors import InputError

CONTENT = "naïve\r\nline\u2028 two\x85\n\nlast".encode()
LINES = ["naïve", "line\u2028 two\x85", "", "last"]
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, "": bytes}


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("suffix", PACK)
def test_plain_compressed_and_zipped(tmp_path, suffix):
    packed = PACK[suffix](CONTENT)
    plain = tmp_path / f"a.txt{suffix}"
    plain.write_bytes(packed)
    archive = zipped(tmp_path / "b.zip", **{f"in/a.txt{suffix}": packed, "c": b""})
    single = zipped(tmp_path / "one.zip", **{f"a.txt{suffix}": packed})
    places = [plain, str(plain), archive / f"in/a.txt{suffix}", single]
    places.append(zipfile.Path(archive, f"in/a.txt{suffix}"))
    for place in places:
        assert list(files.read_lines(place)) == LINES
        with files.open_bytes(place) as stream:
            assert stream.read() == CONTENT
    with contextlib.closing(files.read_lines(plain)) as lines:
        assert next(lines) == LINES[0]


def test_a_zip_of_several_needs_a_member(tmp_path):
    archive = zipped(tmp_path / "a.zip", a=b"", b=b"")
    with pytest.raises(InputError, match="holds 2 files; name one as"):
        list(files.read_lines(archive))
    with pytest.raises(InputError, match="no such file"):
        list(files.read_lines(archive / "c"))


def test_what_is_no_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        list(files.read_lines(tmp_path / "absent"))
    with pytest.raises(InputError, match="found a folder"):
        list(files.read_lines(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be read"):
        list(files.read_lines(tmp_path / "file" / "below"))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zip"])
@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "other"])
def test_damaged_archives(tmp_path, suffix, damage):
    content = random.Random(0).randbytes(20_000)
    if suffix == ".zip":
        packed = zipped(tmp_path / "good.zip", a=content).read_bytes()
    else:
        packed = PACK[suffix](content)
    middle = len(packed) // 2
    damaged = {
        "truncated": packed[:middle],
        "changed": packed[:middle] + bytes(64) + packed[middle + 64 :],
        "empty": b"",
        "other": b"plain text\n" * 10,
    }[damage]
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(damaged)
    try:
        with files.open_bytes(path) as stream:
            read = stream.read()
    except InputError as error:
        assert str(path) in str(error)
    else:
        # An empty gzip or bz2 is a file of no bytes; a broken zip is no zip.
        assert (
            read == b"" if damage == "empty" else suffix == ".zip" and read == damaged
        )


def test_an_error_of_the_reader_stays_its_own(tmp_path):
    (tmp_path / "a").write_text("x")
    with pytest.raises(OSError, match="disk") as caught:
        with files.open_bytes(tmp_path / "a"):
            raise OSError(28, "disk full")
    assert not isinstance(caught.value, InputError)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\n\ufefftwo\n".encode())
    assert list(files.read_lines(path)) == ["one", "\ufefftwo"]


def test_invalid_utf8_names_its_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine\n\xff\n")
    with pytest.raises(InputError, match=r"a\.txt:2: not valid UTF-8"):
        list(files.read_lines(tmp_path / "a.txt"))


@given(st.binary(), st.sampled_from([".gz", ".bz2", ".xz", ".zip", ".txt"]))
def test_random_bytes_raise_only_input_errors(tmp_path_factory, content, suffix):
    path = tmp_path_factory.mktemp("files") / f"a{suffix}"
    path.write_bytes(content)
    try:
        lines = list(files.read_lines(path))
    except InputError as error:
        assert str(path) in str(error)
    else:
        assert "\n".join(lines).count("\n") <= content.count(b"\n") or suffix != ".txt"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))))
def test_lines_are_those_of_text_io(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    with open(path, encoding="utf-8-sig", newline="\n") as stream:
        assert list(files.read_lines(path)) == [line[:-1] for line in stream]


def test_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "a.txt.gz"
    with files.write_atomically(path) as part:
        assert part.parent == path.parent and part.suffix == ".gz"
        part.write_text("first")
        assert not path.exists()
    with pytest.raises(KeyboardInterrupt):
        with files.write_atomically(path) as part:
            part.write_text("half of the sec")
            raise KeyboardInterrupt
    assert path.read_text() == "first"
    assert os.listdir(path.parent) == [path.name]


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("JAXEMB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert files.cache_dir() == tmp_path / "xdg" / "jaxemb"
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path))
    assert files.cache_dir() == tmp_path
