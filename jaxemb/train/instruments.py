"""What watches a training run: TensorBoard's event files and the profiler."""

import contextlib
import logging
from collections.abc import Iterator, Mapping

import jax
from etils import epath

from jaxemb.errors import InputError
from jaxemb.train import parallel

_LOG = logging.getLogger(__name__)


class Events:
    """Event files for TensorBoard, if they are wanted."""

    def __init__(self, workdir: epath.Path, start: int, wanted: bool):
        """Opens them for a run that goes on from step `start`."""
        self._writer = None
        if not (wanted and parallel.is_primary()):
            return
        try:
            import tensorboardX
        except ImportError as error:
            raise InputError(
                "--tensorboard needs tensorboardX: pip install 'jaxemb[tensorboard]'"
            ) from error
        # TensorBoard then hides what a broken-off run wrote of later steps.
        self._writer = tensorboardX.SummaryWriter(
            str(workdir / "tensorboard"), purge_step=start + 1
        )

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, *_) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, number: int, values: Mapping[str, float]) -> None:
        """Adds the scalars of a step."""
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, number)

    def flush(self) -> None:
        """Brings what was added to the disk."""
        if self._writer is not None:
            self._writer.flush()


class Trace:
    """A profiler trace of some of the steps."""

    def __init__(self, workdir: epath.Path, steps: tuple[int, int] | None):
        """Prepares to trace from the first to the last of `steps`."""
        self._folder = str(workdir / "profile")
        self._first, self._last = steps or (0, -1)
        self._running = self._done = False

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_) -> None:
        if self._running:
            self._stop()
        elif self._first <= self._last and not self._done:
            _LOG.warning(
                "--profile %d:%d: no such step was taken", self._first, self._last
            )

    def _stop(self) -> None:
        jax.effects_barrier()
        jax.profiler.stop_trace()
        self._running, self._done = False, True

    @contextlib.contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Around each step; traces it if it is one of those wanted."""
        if not self._first <= number <= self._last:
            yield
            return
        if not self._running:
            jax.profiler.start_trace(self._folder)
            self._running = True
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            yield
        if number == self._last:
            self._stop()
