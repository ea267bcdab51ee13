"""Word vectors trained by two processes on this machine, as by two hosts."""

import jax
import numpy as np
import pytest

from jaxemb import train
from jaxemb.data import cooccurrence
from tests import processes
from tests.static import corpora, worker


def test_two_processes_equal_one(tmp_path):
    text = corpora.build(tmp_path / "c", held_out=10)
    counts = cooccurrence.count(text, tmp_path / "x", window=3, progress=False)
    two = tmp_path / "two"
    output = processes.finish(
        processes.start_two("tests.static.worker", text.folder, counts.folder, two), 400
    )
    assert output.count("done") == 2
    alone = train.make_mesh(jax.devices()[:1])
    tables = worker.train_all(text, counts, tmp_path / "one", mesh=alone)
    for name, one in tables.items():
        together = train.load_params(two / name)["params"]
        vocab = len(text.words)
        for table in ("input", "output"):
            wanted = getattr(one, table)
            assert np.abs(wanted).max() > 0.01
            np.testing.assert_allclose(together[table][:vocab], wanted, atol=1e-5)
        lines = [train.read_metrics(tmp_path / n / name) for n in ("one", "two")]
        assert lines[0][-1]["step"] >= 10 and "held_out/loss" in lines[0][-1]
        for left, right in zip(*lines, strict=True):
            assert left == pytest.approx(right, rel=1e-4)
