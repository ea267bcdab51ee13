"""The training loop: iteration, logging, evaluation, saving and resuming."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import errno
import json
import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from etils import epath

from jaxemb import optim, storage
from jaxemb.errors import InputError
from jaxemb.train import checkpoints as checkpoints_lib
from jaxemb.train import instruments, parallel
from jaxemb.train.metrics import Mean, MetricsLog
from jaxemb.train.preemption import Preempted, Preemption
from jaxemb.train.progress import Progress
from jaxemb.train.state import State
from jaxemb.train.step import Step

_LOG = logging.getLogger(__name__)

# Steps sent to the device before the oldest one's loss is looked at.
_IN_FLIGHT = 2


class Diverged(RuntimeError):
    """The loss became NaN or infinite; the message names the step and a parameter."""


def fit(
    state: State | Callable[[], State],
    step: Step | parallel.DataParallel,
    batches: Callable[[int], Any],
    num_steps: int,
    workdir: epath.PathLike,
    *,
    evaluate: Callable[[State], Mapping[str, float]] | None = None,
    evaluate_every: int | None = None,
    keep_best: str | None = None,
    log_every: int = 50,
    save_every: int | None = None,
    keep: int = 2,
    config: Mapping[str, Any] | None = None,
    name: str = "training",
    tensorboard: bool = False,
    profile: tuple[int, int] | None = None,
    progress: bool = True,
) -> State:
    """Takes `num_steps` steps, going on from the newest checkpoint in `workdir`.

    A run that was killed and started again ends with the same bits, in its state and in
    `metrics.jsonl`, as one that was not.

    Args:
      state: at step 0; consumed by no one, so that it can start several runs. Or a
        function that computes it, which is then done where the state belongs.
      step: from state and batch to state and metrics; a plain function is compiled for
        all devices.
      batches: the step's batch, this process's part; a function of the step alone.
      num_steps: how many steps the finished run has.
      workdir: the run's folder, local or `gs://`.
      evaluate: from state to named scores, written as they are.
      evaluate_every: in steps; after the last step too. Only there if None.
      keep_best: a score of `evaluate`; the parameters at its first maximum are kept in
        `workdir/best`, and beside them, as the collection `ema`, their average where
        the optimiser has one (`optim.parameter_ema`).
      log_every: how many steps are averaged into a line of `metrics.jsonl`: each
        counts as one, or as its `train.Mean` tells.
      save_every: in steps; `evaluate_every` or the end if None.
      keep: how many checkpoints stay.
      config: written to `config.json`; a run with another one does not go on.
      name: shown before the progress bar.
      tensorboard: write event files beside `metrics.jsonl`.
      profile: first and last step of a `jax.profiler` trace in `workdir/profile`.
      progress: show a progress bar on standard error.

    Returns:
      The last state.

    Raises:
      Diverged: on a loss that is not finite.
      Preempted: after SIGTERM, with everything saved.
      InputError: where `workdir` cannot be written or holds another run.
    """
    workdir = epath.Path(workdir)
    evaluate_every = evaluate_every or num_steps
    save_every = save_every or evaluate_every
    if not isinstance(step, parallel.DataParallel):
        step = parallel.data_parallel(step)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_storage_errors(workdir))
        claim(workdir, config)
        checkpoints = checkpoints_lib.Checkpoints(
            workdir / checkpoints_lib.FOLDER, keep=keep
        )
        stack.callback(checkpoints.close)
        current = step.place(state)
        memory = _Memory()
        restored = checkpoints.restore(current)
        if restored is not None:
            current, saved = restored
            memory = _Memory(**saved)
            _LOG.info("%s: going on from step %d", workdir, _step_of(current))
        start = _step_of(current)
        if start > num_steps:
            raise InputError(
                f"{workdir}: holds a run of {start} steps, more than the {num_steps} "
                "asked for"
            )
        log = MetricsLog(workdir, memory.lines, write=parallel.is_primary())
        events = stack.enter_context(instruments.Events(workdir, start, tensorboard))
        bar = stack.enter_context(
            Progress(name, start, num_steps, show=progress and parallel.is_primary())
        )
        preemption = stack.enter_context(Preemption())
        trace = stack.enter_context(instruments.Trace(workdir, profile))
        feed = stack.enter_context(prefetched(batches, start, num_steps))
        pending: collections.deque[tuple[int, dict[str, Any]]] = collections.deque()
        # Queued steps starve the collectives of virtual devices on one CPU.
        in_flight = 0 if _virtual_devices(step.mesh) else _IN_FLIGHT

        def settle(limit: int = 0) -> None:
            """Takes in the metrics of all but the newest `limit` steps."""
            while len(pending) > limit:
                number, metrics = pending.popleft()
                values = _counted(jax.device_get(metrics))
                loss = values.get("loss", _NOTHING).total
                if not math.isfinite(loss):
                    raise Diverged(_divergence(number, loss, current))
                memory.add(values)
                bar.advance(number, _means(values))
                if _due(number, log_every, num_steps):
                    record(number, memory.take_means("train/"))

        def record(number: int, values: Mapping[str, float]) -> None:
            log.write(number, values)
            events.write(number, {**values, **bar.rates})

        def assess(number: int) -> None:
            """Evaluates; an evaluation that a notice prevents or ends is still owed."""
            assert evaluate is not None
            settle()
            memory.owes_evaluation = True
            if preemption.noticed:
                return
            scores = None
            with preemption.interrupting():
                scores = {k: float(v) for k, v in evaluate(current).items()}
            if scores is None:
                return
            if keep_best and _is_best(scores, keep_best, log.lines):
                _save_best(workdir, current, config or {})
            record(number, scores)
            memory.owes_evaluation = False
            bar.pause()

        def save() -> None:
            settle()
            log.flush()
            events.flush()
            memory.lines = len(log.lines)
            checkpoints.save(current, dataclasses.asdict(memory), config or {})
            bar.pause()

        def leave(number: int) -> None:
            """Ends the run where a notice has come; `save` has been called."""
            checkpoints.wait()
            raise Preempted(number, workdir)

        if memory.owes_evaluation and evaluate is not None:
            assess(start)
            log.flush()
            if preemption.reached(start):
                leave(start)
        for number, batch in enumerate(feed, start=start + 1):
            bar.saw(_batch_size(batch) * jax.process_count())
            with trace.step(number):
                current, metrics = step(current, batch)
                pending.append((number, metrics))
                settle(in_flight)
            if evaluate is not None and _due(number, evaluate_every, num_steps):
                assess(number)
            if preemption.reached(number):
                save()
                leave(number)
            if _due(number, save_every, num_steps):
                save()
        checkpoints.wait()
        if preemption.noticed:  # while the last step was saved
            leave(num_steps)
        return current


@dataclasses.dataclass
class _Memory:
    """What a checkpoint remembers of the loop beside the state."""

    sums: dict[str, float] = dataclasses.field(default_factory=dict)
    """Of the metrics since the last line; python's floats have 64 bits."""
    counts: dict[str, float] = dataclasses.field(default_factory=dict)
    lines: int = 0
    """Of `metrics.jsonl`, at this step."""
    owes_evaluation: bool = False
    """Whether the evaluation due at this step was not finished."""

    def add(self, values: Mapping[str, Mean]) -> None:
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value.total
            self.counts[name] = self.counts.get(name, 0.0) + value.count

    def take_means(self, prefix: str) -> dict[str, float]:
        sums = {n: Mean(s, self.counts[n]) for n, s in self.sums.items()}
        self.sums, self.counts = {}, {}
        return {prefix + name: mean for name, mean in _means(sums).items()}


_NOTHING = Mean(0.0, 0.0)


def _counted(values: Mapping[str, Any]) -> dict[str, Mean]:
    """In python floats; the seeds of a state that carries several are averaged."""

    def scalar(value: Any) -> float:
        return float(np.mean(value, dtype=np.float64))

    return {
        name: Mean(scalar(value.total), scalar(value.count))
        if isinstance(value, Mean)
        else Mean(scalar(value), 1.0)
        for name, value in values.items()
    }


def _means(values: Mapping[str, Mean]) -> dict[str, float]:
    """Of the metrics that count anything."""
    return {n: mean.total / mean.count for n, mean in values.items() if mean.count}


def _step_of(state: State) -> int:
    return int(np.ravel(jax.device_get(state.step))[0])


def _due(number: int, every: int, last: int) -> bool:
    return number % every == 0 or number == last


def _virtual_devices(mesh: jax.sharding.Mesh) -> bool:
    return mesh.size > 1 and mesh.devices.flat[0].platform == "cpu"


def _is_best(
    scores: Mapping[str, float], name: str, lines: list[dict[str, Any]]
) -> bool:
    """True for a score above all before it; one that is no number is below all."""
    if name not in scores:
        raise InputError(f"keep_best: no score {name!r} in {list(scores)}")
    before = [line[name] for line in lines if name in line]
    known = [score for score in before if not math.isnan(score)]
    return not before or scores[name] > max(known, default=-math.inf)


def _batch_size(batch: Any) -> int:
    return jax.tree.leaves(batch)[0].shape[0]


def _save_best(workdir: epath.Path, state: State, config: Mapping[str, Any]) -> None:
    best = checkpoints_lib.Checkpoints(workdir / checkpoints_lib.BEST, keep=1)
    frozen = dict(state.frozen)
    for average in optim.all_ema_params(state.opt_state)[:1]:
        frozen["ema"] = average
    best.save(dataclasses.replace(state, opt_state=(), frozen=frozen), {}, config)
    best.close()


def _divergence(number: int, loss: float, state: State) -> str:
    """Says where the numbers went wrong, from the parameters as they are now."""
    leaves = [
        (
            optim.path_name(path),
            np.asarray(leaf, np.float64),
        )
        for path, leaf in jax.tree_util.tree_leaves_with_path(
            jax.device_get(state.params)
        )
    ]
    broken = [(int((~np.isfinite(x)).sum()), x.size, name) for name, x in leaves]
    count, size, name = max(broken)
    if count:
        where = f"most in {name}: {count} of {size} numbers are not finite"
    else:
        largest, name = max(
            (float(np.abs(x).max(initial=0)), name) for name, x in leaves
        )
        where = f"all parameters are finite, the largest is {largest:.3g} in {name}"
    return f"the loss is {loss} at step {number}; {where}"


def claim(workdir: epath.Path, config: Mapping[str, Any] | None) -> None:
    """Writes `config.json`, or checks that the one there is the same.

    Raises:
      InputError: naming the first setting that differs.
    """
    if parallel.is_primary():
        workdir.mkdir(parents=True, exist_ok=True)
    parallel.wait_for_all("workdir")
    if config is None:
        return
    here: dict[str, Any] = json.loads(json.dumps(config))
    path = workdir / "config.json"
    if path.exists():
        try:
            there = json.loads(path.read_text())
        except ValueError as error:
            raise InputError(
                f"{path}: not JSON; remove the run and start again"
            ) from error
        differing = [k for k in {**there, **here} if there.get(k) != here.get(k)]
        if differing:
            field = differing[0]
            raise InputError(
                f"{workdir}: holds a run with {field} = {there.get(field)!r}, not "
                f"{here.get(field)!r}; name another --workdir or remove that one"
            )
    elif parallel.is_primary():
        storage.write_text(path, json.dumps(here, indent=2) + "\n")
    parallel.wait_for_all("config")


@contextlib.contextmanager
def prefetched(
    batches: Callable[[int], Any], start: int, stop: int, depth: int = 2
) -> Iterator[Iterator[Any]]:
    """Makes the next batches in a thread while the device works."""

    def in_order(pool):
        waiting = collections.deque()
        for step in range(start, stop):
            waiting.append(pool.submit(batches, step))
            if len(waiting) > depth:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    with concurrent.futures.ThreadPoolExecutor(1, "batches") as pool:
        try:
            yield in_order(pool)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_DISK = {errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def _storage_errors(workdir: epath.Path) -> Iterator[None]:
    """One sentence for a folder that cannot be written; other errors stay theirs."""
    try:
        yield
    except OSError as error:
        below = str(workdir) in str(error.filename or "")
        if not below and error.errno not in _DISK:
            raise
        reason = error.strerror or error
        raise InputError(f"{workdir}: cannot write there: {reason}") from error
    except ValueError as error:  # how tensorstore reports a full disk
        for reason in map(os.strerror, (*_DISK, errno.EACCES)):
            if reason in str(error) and not isinstance(error, InputError):
                raise InputError(f"{workdir}: cannot write there: {reason}") from error
        raise
