"""Two processes on this machine, as two hosts would be."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from jaxemb import train
from tests.train import small

ROOT = pathlib.Path(__file__).parents[2]


def start(workdir, steps, *arguments):
    launcher = [sys.executable, str(ROOT / "scripts" / "multihost.py"), "2", "--"]
    worker = [sys.executable, "-m", "tests.train.worker", str(workdir), str(steps)]
    return subprocess.Popen(
        [*launcher, *worker, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "XLA_FLAGS": ""},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("mode", ["jit", "pmap"])
def test_two_processes_equal_one(tmp_path, mode):
    process = start(tmp_path, 10, mode)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    together = train.load_params(tmp_path)["params"]
    step = train.data_parallel(small.step(), train.make_mesh(jax.devices()[:1]))
    state = step.place(small.state())
    for number in range(10):
        state, _ = step(state, small.batches()(number))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=0),
        together,
        jax.device_get(state.params),
    )
    assert [line["step"] for line in train.read_metrics(tmp_path)] == [7, 10, 10]


def test_a_notice_to_one_process_stops_both_at_one_step(tmp_path):
    process = start(tmp_path, 100_000)
    while not (tmp_path / "checkpoints" / "15").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    stops = [line for line in output.splitlines() if "stopped by SIGTERM" in line]
    assert len({line.split("] ")[1] for line in stops}) == 1, output
    assert len(stops) == 2, output
    step = int(stops[0].split("at step ")[1].split(",")[0])
    assert (tmp_path / "checkpoints" / str(step)).is_dir()
