"""Runs that stop, break off and go on."""

import dataclasses
import json
import logging
import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxemb import optim, train
from jaxemb.errors import InputError
from jaxemb.train import checkpoints
from tests.train import small

ROOT = pathlib.Path(__file__).parents[2]
_PATIENCE = 900  # seconds that a process gets on a machine with other work to do


def fit(workdir, steps=40, **options):
    options = {
        "evaluate": small.evaluate,
        "evaluate_every": 20,
        "log_every": 7,
    } | options
    step = train.data_parallel(small.step(), train.make_mesh(jax.devices()[:1]))
    batches = options.pop("batches", small.batches())
    return train.fit(
        small.state(), step, batches, steps, workdir, progress=False, **options
    )


def assert_same_run(first, second):
    """Parameters, optimiser and metrics of two runs have the same bits."""
    for items in ("params", "opt_state", "counters"):
        left, right = (
            checkpoints.load_params(w, parts=[items]) for w in (first, second)
        )
        jax.tree.map(np.testing.assert_array_equal, left, right)
    best = [sorted(p.name for p in w.glob("best/*")) for w in (first, second)]
    assert best[0] == best[1]
    if best[0]:
        left, right = (checkpoints.load_params(w / "best") for w in (first, second))
        jax.tree.map(np.testing.assert_array_equal, left, right)
    metrics = [
        (pathlib.Path(w) / "metrics.jsonl").read_bytes() for w in (first, second)
    ]
    assert metrics[0] == metrics[1]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("unbroken")
    fit(workdir, save_every=10)
    return workdir


def test_metrics_hold_every_window_once(unbroken):
    lines = train.read_metrics(unbroken)
    trained = [line["step"] for line in lines if "train/loss" in line]
    assert trained == [7, 14, 21, 28, 35, 40]
    assert [x["step"] for x in lines if "dev/accuracy" in x] == [20, 40]
    step = jax.jit(small.step())
    state, losses = small.state(), []
    for number in range(7):
        state, metrics = step(state, small.batches()(number))
        losses.append(float(metrics["loss"]))
    assert lines[0]["train/loss"] == pytest.approx(np.mean(losses), rel=1e-6)


def counting_step(state, batch):
    """A loss of 2 for each of `step % 3` things, so of none at every third step."""
    count = (state.step % 3).astype(jnp.float32)
    loss = train.Mean(2 * count, count)
    return dataclasses.replace(state, step=state.step + 1), {"loss": loss, "one": count}


def test_means_of_steps_are_weighed_by_their_counts(tmp_path):
    step = train.data_parallel(counting_step, train.make_mesh(jax.devices()[:1]))
    train.fit(
        small.state(),
        step,
        small.batches(),
        7,
        tmp_path,
        log_every=1,
        progress=False,
    )
    lines = train.read_metrics(tmp_path)
    assert ["train/loss" in line for line in lines] == [i % 3 > 0 for i in range(7)]
    assert {line["train/loss"] for line in lines if "train/loss" in line} == {2.0}
    uneven = lambda state, batch: (
        dataclasses.replace(state, step=state.step + 1),
        {"loss": train.Mean(state.step * 10.0, 1.0 + 9 * state.step)},
    )
    train.fit(
        small.state(),
        train.data_parallel(uneven, step.mesh),
        small.batches(),
        2,
        tmp_path / "b",
        progress=False,
    )
    (line,) = train.read_metrics(tmp_path / "b")
    assert line["train/loss"] == pytest.approx(10 / 11)  # of the means: 1/2


def test_a_state_that_is_a_function_is_computed_where_it_belongs(tmp_path):
    made, initial = [], small.state()

    def make():
        made.append(True)
        return jax.tree.map(jnp.asarray, initial)

    options = {"progress": False, "log_every": 2}
    step = train.data_parallel(small.step(), train.make_mesh(jax.devices()[:1]))
    for name, state in (("a", small.state()), ("b", make)):
        train.fit(state, step, small.batches(), 4, tmp_path / name, **options)
    assert made
    assert_same_run(tmp_path / "a", tmp_path / "b")


def test_a_broken_off_run_goes_on_to_the_same_bits(unbroken, tmp_path):
    class Broken(RuntimeError):
        pass

    def breaking_at(limit):
        def batches(step):
            if step >= limit:
                raise Broken
            return small.batches()(step)

        return batches

    for limit in (3, 12, 25, 38):
        with pytest.raises(Broken):
            fit(tmp_path, batches=breaking_at(limit), save_every=10)
    fit(tmp_path, save_every=10)
    assert_same_run(unbroken, tmp_path)


def test_a_finished_run_is_left_as_it_is(unbroken):
    before = (unbroken / "metrics.jsonl").read_bytes()
    state = fit(unbroken, save_every=10)
    assert int(state.step) == 40
    assert (unbroken / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("damage", ["truncate", "remove"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    unbroken, tmp_path, damage, caplog
):
    fit(tmp_path, save_every=10)
    params = tmp_path / "checkpoints" / "40" / "params"
    damaged = [p for p in params.rglob("*") if p.is_file()]
    for path in damaged:
        if damage == "truncate":
            os.truncate(path, path.stat().st_size // 2)
        else:
            path.unlink()
    with caplog.at_level(logging.WARNING, "jaxemb"):
        fit(tmp_path, save_every=10)
    assert "checkpoint 40 cannot be read" in caplog.text
    assert [p.name for p in (tmp_path / "checkpoints.damaged").iterdir()] == ["40-0"]
    assert_same_run(unbroken, tmp_path)


def test_a_checkpoint_of_another_model_is_named_and_kept(tmp_path):
    fit(tmp_path, 2)
    other = small.state()
    other.params["classify"]["kernel"] = jnp.zeros([3, 2])
    saved = checkpoints.Checkpoints(tmp_path / "checkpoints", keep=2)
    with pytest.raises(InputError, match=r"classify/kernel is float32\(8, 2\), not"):
        saved.restore(other)
    assert (tmp_path / "checkpoints" / "2").is_dir()


def test_another_optimiser_does_not_go_on_and_removes_nothing(tmp_path):
    fit(tmp_path, 4)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    tx = optax.sgd(0.1, momentum=0.9)
    state = train.State.create(small.state().variables, tx, jax.random.key(0))
    with pytest.raises(InputError, match="opt_state: of another model or optimiser"):
        train.fit(
            state,
            train.make_step(small.loss_fn, tx),
            small.batches(),
            8,
            tmp_path,
            progress=False,
        )
    assert (tmp_path / "checkpoints" / "4").is_dir()
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_fewer_steps_than_were_taken_are_refused(tmp_path):
    fit(tmp_path, 4)
    with pytest.raises(InputError, match="a run of 4 steps, more than the 2 asked for"):
        fit(tmp_path, 2)


def test_errors_of_the_users_own_code_stay_theirs(tmp_path):
    def evaluate(state):
        raise FileNotFoundError(2, "No such file", "somewhere/else")

    with pytest.raises(FileNotFoundError, match="somewhere/else"):
        fit(tmp_path, 2, evaluate=evaluate)


def best_step(workdir, scores):
    """Trains with these scores, one every other step; the steps kept as best."""
    scores = iter(scores)
    fit(
        workdir,
        8,
        evaluate=lambda state: {"dev/score": next(scores)},
        evaluate_every=2,
        keep_best="dev/score",
    )
    return [p.name for p in (workdir / "best").iterdir() if p.is_dir()]


def test_a_score_that_is_no_number_is_never_best(tmp_path):
    assert best_step(tmp_path, [np.nan, 0.5, np.nan, 0.4]) == ["4"]


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    def loss_fn(variables, batch, key):
        loss, _ = small.loss_fn(variables, batch, key)
        return loss * jnp.sqrt(jnp.max(batch["fuse"])), {}

    def batches(step):
        fuse = np.full(16, -1.0 if step == 4 else 1.0, np.float32)
        return small.batches()(step) | {"fuse": fuse}

    with pytest.raises(train.Diverged, match="nan at step 5; most in embed/embedding"):
        train.fit(
            small.state(),
            train.make_step(loss_fn, small.TX),
            batches,
            20,
            tmp_path,
            progress=False,
        )


def test_another_config_does_not_go_on(tmp_path):
    fit(tmp_path, 2, config={"dim": 3, "rate": 0.5})
    fit(tmp_path, 2, config={"dim": 3, "rate": 0.5})
    with pytest.raises(InputError, match="holds a run with rate = 0.5, not 0.25"):
        fit(tmp_path, 2, config={"dim": 3, "rate": 0.25})
    assert json.loads((tmp_path / "config.json").read_text())["dim"] == 3
    assert train.load_config(tmp_path) == {"dim": 3, "rate": 0.5}


def test_the_best_parameters_are_kept(tmp_path):
    assert best_step(tmp_path, [0.1, 0.7, 0.3, 0.7]) == ["4"]
    step = jax.jit(small.step())
    state = small.state()
    for number in range(4):
        state, _ = step(state, small.batches()(number))
    best = train.load_params(tmp_path / "best")["params"]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), best, state.params
    )


def test_killed_before_the_old_best_was_removed_one_best_stays(tmp_path):
    state = small.state()
    later = dataclasses.replace(state, step=state.step + 4)
    unfinished = checkpoints.Checkpoints(tmp_path, keep=2)
    unfinished.save(state, {}, {})
    unfinished.save(later, {}, {})
    unfinished.close()
    best = checkpoints.Checkpoints(tmp_path, keep=1)
    best.save(later, {}, {})
    best.close()
    assert [p.name for p in tmp_path.iterdir()] == ["4"]


def test_event_files_and_profile_are_written(tmp_path):
    fit(tmp_path, 6, tensorboard=True, profile=(3, 4))
    assert list((tmp_path / "tensorboard").glob("events*"))
    assert list((tmp_path / "profile").rglob("*.xplane.pb"))


def test_an_unwritable_workdir_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file/run: cannot write there: Not a dir"):
        fit(tmp_path / "file" / "run", 2)


def start(workdir, steps, *arguments):
    command = [sys.executable, "-m", "tests.train.worker", str(workdir), str(steps)]
    environment = {**os.environ, "XLA_FLAGS": ""}
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def stop_in_evaluation(workdir, steps):
    """Sends SIGTERM while the worker evaluates; returns what it printed."""
    process = start(workdir, steps, "jit", 600)
    for line in process.stdout:
        if "evaluating" in line:
            break
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=_PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM
    return output


def finish(workdir, steps):
    process = start(workdir, steps)
    output, _ = process.communicate(timeout=_PATIENCE)
    assert process.returncode == 0, output
    assert f"done {steps}" in output


def progress_of(workdir):
    """Steps that have reached the disk, by a cheap look from outside."""
    steps = [int(p.name) for p in workdir.glob("checkpoints/*") if p.name.isdigit()]
    return max(steps, default=0)


def killed_again_and_again(workdir, steps, kills, generator):
    """Kills at random moments between starting up and the end."""
    killed = 0
    while killed < kills:
        before = progress_of(workdir)
        process = start(workdir, steps)
        # Half of the kills hit start-up or resuming, half the middle of the training.
        if generator.random() < 0.5:
            time.sleep(generator.uniform(0.5, 4))
        else:
            while progress_of(workdir) == before and process.poll() is None:
                time.sleep(0.005)
            time.sleep(generator.uniform(0, 0.3))
        process.kill()
        process.communicate()
        if process.returncode == -signal.SIGKILL:
            killed += 1
        elif progress_of(workdir) == steps:
            break
    return killed


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_any_moment_a_run_ends_with_the_same_bits(tmp_path, kills):
    steps = 120 * kills
    finish(tmp_path / "unbroken", steps)
    seed = int(time.time())
    print("seed of the moments:", seed)
    generator = np.random.default_rng(seed)
    killed = killed_again_and_again(tmp_path / "killed", steps, kills, generator)
    assert killed >= kills // 2
    finish(tmp_path / "killed", steps)
    assert_same_run(tmp_path / "unbroken", tmp_path / "killed")


def test_sigterm_saves_and_leaves_even_from_an_evaluation(tmp_path):
    stopped = tmp_path / "stopped"
    assert "stopped by SIGTERM at step 20" in stop_in_evaluation(stopped, 40)
    assert progress_of(stopped) == 20
    # Stopped once more in the evaluation that it owes, it still owes it.
    assert "stopped by SIGTERM at step 20" in stop_in_evaluation(stopped, 40)
    finish(stopped, 40)
    finish(tmp_path / "unbroken", 40)
    assert_same_run(tmp_path / "unbroken", stopped)


def test_the_average_of_the_parameters_is_kept_with_the_best(tmp_path):
    tx = optax.chain(optax.adam(1e-2), optim.parameter_ema(0.9))
    state = small.state()
    state = dataclasses.replace(state, opt_state=tx.init(state.params))
    step = train.make_step(small.loss_fn, tx)
    step = train.data_parallel(step, train.make_mesh(jax.devices()[:1]))
    kept = {}

    def evaluate(state):
        kept[int(state.step)] = jax.device_get(optim.ema_params(state.opt_state))
        return {"dev/score": -abs(int(state.step) - 8)}

    options = {"evaluate": evaluate, "evaluate_every": 4, "keep_best": "dev/score"}
    train.fit(state, step, small.batches(), 12, tmp_path, progress=False, **options)
    best = train.load_params(tmp_path / checkpoints.BEST)
    jax.tree.map(np.testing.assert_array_equal, best["ema"], kept[8])
    kernels = (best[part]["classify"]["kernel"] for part in ("ema", "params"))
    assert not np.array_equal(*kernels)


def test_the_best_evaluation_is_the_first_of_the_highest_score(tmp_path):
    lines = [
        {"step": 1, "train/loss": 3.0},
        {"step": 1, "dev/f1": 0.2},
        {"step": 2, "dev/f1": 0.7, "test/f1": 0.1},
        {"step": 3, "dev/f1": 0.7, "test/f1": 0.9},
        {"step": 4, "dev/f1": 0.5},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "metrics.jsonl").write_text(text)
    assert train.evaluations(tmp_path, "dev/f1") == lines[1:]
    assert train.best_evaluation(tmp_path, "dev/f1") == lines[2]
