"""The progress line of a training run."""

import time
from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

_QUIET_SECONDS = 30
_UNITS = "words", "entries"


class Progress:
    """A bar on a terminal, a line every half minute elsewhere; on standard error."""

    def __init__(self, name: str, start: int, total: int, *, show: bool):
        """Prepares the bar; entering the context shows it."""
        self._name = name
        self._total = total
        self._console = Console(stderr=True)
        self._show = show
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not (show and self._console.is_terminal),
        )
        self._task = self._bar.add_task(name, total=total, completed=start, note="")
        self._examples, self._unit = 0.0, "examples"
        self._step_seconds = 0.0
        self._last: float | None = None  # the first step compiles
        self._last_line = time.monotonic()

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        self._bar.stop()

    def saw(self, examples: int) -> None:
        """Tells how many examples a step has, over all processes."""
        self._examples = examples

    def pause(self) -> None:
        """Leaves the time until the next step out of the rates."""
        self._last = None

    def advance(self, step: int, values: Mapping[str, float]) -> None:
        """Shows that a step is done, with its loss.

        A step that counts its `words` or `entries` among its metrics is timed by these.
        """
        now = time.monotonic()
        for unit in _UNITS:
            if unit in values:
                self._examples, self._unit = values[unit], unit
        if self._last is not None:
            # A moving mean, because steps come in bursts.
            decay = 0.9 if self._step_seconds else 0.0
            seconds = now - self._last
            self._step_seconds = decay * self._step_seconds + (1 - decay) * seconds
        self._last = now
        loss = f"loss {values['loss']:.4f} · " if "loss" in values else ""
        note = f"{loss}{self.rate_text}"
        self._bar.update(self._task, completed=step, note=note)
        if self._show and not self._console.is_terminal:
            if now - self._last_line > _QUIET_SECONDS:
                self._last_line = now
                self._console.print(f"{self._name}: step {step}/{self._total} · {note}")

    @property
    def rates(self) -> dict[str, float]:
        """Seconds a step, and examples, words or entries a second, lately."""
        seconds = self._step_seconds
        examples = self._examples / seconds if seconds else 0.0
        return {"speed/step_seconds": seconds, f"speed/{self._unit}": examples}

    @property
    def rate_text(self) -> str:
        """The same, to read."""
        rates = self.rates
        return (
            f"{1e3 * rates['speed/step_seconds']:.1f} ms/step · "
            f"{rates[f'speed/{self._unit}']:,.0f} {self._unit}/s"
        )
