"""Two processes on this machine, as two hosts would be."""

import os
import signal
import time

import jax
import numpy as np
import pytest

from jaxemb import train
from tests import processes
from tests.train import small
from tests.train.test_loop import assert_same_run


def start(*arguments):
    return processes.start_two("tests.train.worker", *arguments)


@pytest.mark.parametrize("mode", ["jit", "pmap"])
def test_two_processes_equal_one(tmp_path, mode):
    processes.finish(start(tmp_path, 10, mode))
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


def finish(workdir, steps):
    return processes.finish(start(workdir, steps))


def test_a_notice_to_one_process_stops_both_at_one_step(tmp_path):
    steps = 2000
    process = start(tmp_path / "stopped", steps)
    worker = int(process.stdout.readline().split("pid ")[1])
    while not (tmp_path / "stopped" / "checkpoints" / "15").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.kill(worker, signal.SIGTERM)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 128 + signal.SIGTERM
    stops = [line for line in output.splitlines() if "stopped by SIGTERM" in line]
    assert len({line.split("] ")[1] for line in stops}) == 1, output
    assert len(stops) == 2, output
    step = int(stops[0].split("at step ")[1].split(",")[0])
    assert 15 <= step < steps
    finish(tmp_path / "stopped", step + 5)
    finish(tmp_path / "unbroken", step + 5)
    assert_same_run(tmp_path / "unbroken", tmp_path / "stopped")


def test_two_processes_agree_to_set_a_damaged_checkpoint_aside(tmp_path):
    finish(tmp_path, 30)
    for path in (tmp_path / "checkpoints" / "30" / "params").rglob("*"):
        if path.is_file():
            os.truncate(path, path.stat().st_size // 2)
    output = finish(tmp_path, 30)
    assert output.count("checkpoint 30 cannot be read") == 2
    assert [p.name for p in (tmp_path / "checkpoints.damaged").iterdir()] == ["30-0"]
    assert (tmp_path / "checkpoints" / "30").is_dir()
