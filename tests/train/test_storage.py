"""Folders that are full, remote or shared."""

import json
import os
import pathlib
import subprocess
import sys
import time

import fsspec
import pytest
from etils import epath
from fsspec.implementations.memory import MemoryFileSystem

from jaxemb import storage, train
from jaxemb.train import checkpoints, metrics, results

ROOT = pathlib.Path(__file__).parents[2]


class FakeStore(MemoryFileSystem):
    """Stands for an object store: no append, everything else in memory."""

    protocol = ("gcs", "gs")
    store = {}
    pseudo_dirs = [""]

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + str(path).removeprefix("gs:/").lstrip("/")

    def _open(self, path, mode="rb", **options):
        assert "a" not in mode, "object stores cannot append"
        return super()._open(path, mode, **options)


@pytest.fixture
def bucket():
    fsspec.register_implementation("gcs", FakeStore, clobber=True)
    FakeStore.store.clear()
    return epath.Path("gs://bucket/run")


def test_metrics_on_an_object_store(bucket):
    log = metrics.MetricsLog(bucket, lines=0)
    log.write(1, {"train/loss": 0.5})
    log.write(2, {"train/loss": 0.25})
    log.flush()
    assert [line["step"] for line in train.read_metrics(bucket)] == [1, 2]
    again = metrics.MetricsLog(bucket, lines=1)
    again.write(2, {"train/loss": 0.125})
    again.flush()
    assert [line["train/loss"] for line in train.read_metrics(bucket)] == [0.5, 0.125]


def test_results_on_an_object_store(bucket):
    origins = [{"commits": ["abc"], "seconds": 1.5}, {"commits": ["abc"], "seconds": 2}]
    arguments = {"slug": "x", "preset": "y", "config": {}, "origins": origins}
    row = results.Row(
        name="a", metric="m", measured=1.5, values=(1.0, 2.0), interval=(1.0, 2.0)
    )
    data = results.Data(name="d", kind="synthetic", source="s", sha256=None, size=1)
    written = results.write(bucket, **arguments, data=[data], rows=[row], claims=[])
    assert results.read(bucket) == written
    here = [results.commit()] if results.commit() else []
    assert written["commit"].split() == ["abc", *here]
    assert written["seconds"] == 3.5


def test_a_parts_origin_adds_up(tmp_path):
    for _ in range(2):
        with results.recorded(tmp_path):
            time.sleep(0.06)
    recorded = results.origin(tmp_path)
    assert recorded["commits"] == [results.commit()]
    assert 0.1 <= recorded["seconds"] < 5


def test_remote_paths_are_left_as_they_are(tmp_path):
    assert str(storage.absolute("gs://bucket/a/b")) == "gs://bucket/a/b"
    assert storage.absolute("a").is_absolute()


def test_a_remote_checkpoint_is_looked_for_where_it_is(bucket, monkeypatch):
    """Checkpoints on object stores need a real one; their paths do not."""
    asked = []
    handler = type("Handler", (), {"metadata": lambda self, path: asked.append(path)})
    monkeypatch.setattr(checkpoints.ocp, "StandardCheckpointHandler", handler)
    with pytest.raises(AttributeError):
        checkpoints._metadata(bucket / "checkpoints" / "3" / "params")
    assert [str(path) for path in asked] == ["gs://bucket/run/checkpoints/3/params"]


def test_text_is_replaced_whole(tmp_path):
    path = storage.write_text(tmp_path / "a" / "b.txt", "first")
    storage.write_text(path, "second")
    assert path.read_text() == "second"
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b.txt"]


@pytest.mark.parametrize("limit", [100, 20_000])
def test_a_disk_that_is_full_is_one_sentence(tmp_path, limit):
    """A limit on file sizes stands for the disk: writes fail half-way as there.

    The small one is reached by the first text file, the other by a checkpoint.
    """
    code = (
        "import resource, runpy, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "sys.argv[1:1] = 'smoke --arms finetune --no-progress --workdir'.split()\n"
        "runpy.run_module('experiments.delta_embedding', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "XLA_FLAGS": "", "JAX_ENABLE_COMPILATION_CACHE": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"delta_embedding: {tmp_path}")
    assert done.stderr.endswith("File too large\n")
    assert done.stderr.count("\n") == 1


def test_what_a_closed_loop_is_told_is_not_shown():
    code = (
        "import asyncio, tensorstore\n"
        "from jaxemb.train import runtime\n"
        "runtime.quiet_libraries()\n"
        "spec = {'driver': 'zarr', 'kvstore': {'driver': 'memory'}}\n"
        "async def begin():\n"
        "    opened = tensorstore.open(spec, create=True, dtype='int8', shape=[1])\n"
        "    next(opened.__await__())\n"
        "    return opened\n"
        "loop = asyncio.new_event_loop()\n"
        "opened = loop.run_until_complete(begin())\n"
        "loop.close()\n"
        "opened.result()\n"
        "class Other:\n"
        "    def __del__(self):\n"
        "        raise RuntimeError('of another kind')\n"
        "Other()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Event loop" not in done.stderr
    assert "of another kind" in done.stderr


def test_an_unwritable_file_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="b.txt: cannot be written: File exists"):
        storage.write_text(tmp_path / "file" / "b.txt", "text")


def test_compiled_programs_are_kept(tmp_path):
    code = (
        "import jax\n"
        "from jaxemb import train\n"
        "train.enable_compilation_cache()\n"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)\n"
        "jax.jit(lambda x: x * 2 + 1)(3.0)\n"
    )
    environment = {**os.environ, "JAXEMB_CACHE": str(tmp_path), "XLA_FLAGS": ""}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
    assert any((tmp_path / "xla").iterdir())


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", json.dumps({"step": "x"}), json.dumps({"loss": 1})]
)
def test_a_damaged_metrics_line_is_named(tmp_path, line):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n' + line + "\n")
    with pytest.raises(ValueError, match="metrics.jsonl:2: expected a JSON object"):
        train.read_metrics(tmp_path)


def test_a_torn_last_line_is_left_out(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2, "tr')
    assert train.read_metrics(tmp_path) == [{"step": 1}]
