"""SIGTERM, the notice that a machine is about to be taken away."""

import contextlib
import signal
import threading
from collections.abc import Iterator

import jax
from etils import epath
from jax.experimental import multihost_utils


class Preempted(SystemExit):
    """Leaves the program with the exit code of SIGTERM, after everything was saved."""

    def __init__(self, step: int, workdir: epath.PathLike):
        """Says at which step the run stopped and how it goes on."""
        super().__init__(128 + signal.SIGTERM)
        self.message = (
            f"stopped by SIGTERM at step {step}, saved in {workdir}; "
            "the same command goes on from there"
        )

    def __str__(self) -> str:
        return self.message


class _Interrupt(BaseException):
    """Ends an evaluation from inside the signal handler."""


class Preemption:
    """Notices SIGTERM between steps, at the same step in every process."""

    def __init__(self):
        """Nothing is watched until the context is entered."""
        self._noticed = False
        self._interrupting = False
        self._watching = False
        self._previous = None

    def __enter__(self) -> "Preemption":
        # With several processes jax's own service watches for the signal.
        self._watching = jax.process_count() == 1 and _in_main_thread()
        if self._watching:
            self._previous = signal.signal(signal.SIGTERM, self._notice)
        return self

    def __exit__(self, *_) -> None:
        if self._watching:
            signal.signal(signal.SIGTERM, self._previous or signal.SIG_DFL)

    def _notice(self, *_) -> None:
        self._noticed = True
        if self._interrupting:
            raise _Interrupt

    @property
    def noticed(self) -> bool:
        """True once a notice has come; with several processes only `reached` knows."""
        return self._noticed

    def reached(self, step: int) -> bool:
        """True at the step after which every process is to save and leave."""
        if jax.process_count() > 1:
            return multihost_utils.reached_preemption_sync_point(step)
        return self._noticed

    @contextlib.contextmanager
    def interrupting(self) -> Iterator[None]:
        """A block that a notice ends at once: nothing in it must be finished.

        With several processes the block is finished: they must leave together.
        """
        try:
            try:
                self._interrupting = True
                yield
            finally:
                self._interrupting = False
        except _Interrupt:
            pass


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
