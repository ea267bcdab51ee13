"""What every experiment's command line shares."""

import dataclasses
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import tyro

from jaxemb import terminal
from jaxemb.errors import InputError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """How a run is carried out; nothing here changes what it computes."""

    workdir: str | None = None
    """Folder of the run, local or gs://; runs/<paper>/<preset> unless given. A run that
    was stopped goes on from there."""
    parallel: Literal["jit", "pmap"] = "jit"
    """How a step is spread over the devices; both give the same numbers."""
    tensorboard: bool = False
    """Write TensorBoard event files beside metrics.jsonl."""
    profile: str | None = None
    """FIRST:LAST, the steps of which a jax.profiler trace is written."""
    progress: bool = True
    """Show a progress bar."""

    @property
    def profile_steps(self) -> tuple[int, int] | None:
        """The first and last step to trace."""
        if self.profile is None:
            return None
        first, colon, last = self.profile.partition(":")
        numbers = colon and first.isdigit() and last.isdigit()
        if not numbers or not 1 <= int(first) <= int(last):
            raise InputError(f"--profile {self.profile}: expected FIRST:LAST, as 10:20")
        return int(first), int(last)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """What the config of every experiment holds."""

    slug: ClassVar[str]
    preset: tyro.conf.Suppress[str] = "custom"
    run: Annotated[Run, tyro.conf.OmitArgPrefixes] = Run()

    @property
    def workdir(self) -> str:
        """Where the run is kept."""
        return self.run.workdir or f"runs/{self.slug}/{self.preset}"


Presets = Mapping[str, tuple[str, Any]]  # name to a line about it and its config


def parse(slug: str, presets: Presets, arguments: list[str] | None = None) -> Any:
    """The config that `PRESET [--field value …]` names."""
    return tyro.extras.overridable_config_cli(
        presets,
        prog=f"python -m experiments.{slug}",
        args=arguments,
    )


def main(slug: str, run: Callable[[Any], Any], presets: Presets) -> None:
    """Runs what the command line asks for; a user's mistake is one sentence."""
    with terminal.until_the_reader_leaves():
        config = parse(slug, presets)  # which prints the help, too
    from jaxemb import train  # after parsing, so that --help answers at once
    from jaxemb.train import runtime

    logging.basicConfig(format="%(message)s", force=True)
    logging.getLogger("jaxemb").setLevel(logging.INFO)
    runtime.quiet_libraries()
    runtime.keep_freed_memory()
    try:
        train.initialize()
        train.enable_compilation_cache()
        run(config)
    except InputError as error:
        print(f"{slug}: {error}", file=sys.stderr)
        sys.exit(2)
    except train.Diverged as error:
        print(f"{slug}: {error}", file=sys.stderr)
        sys.exit(1)
    except train.Preempted as stop:
        print(f"{slug}: {stop}", file=sys.stderr)
        raise
    except KeyboardInterrupt:
        print(f"{slug}: stopped; the same command goes on", file=sys.stderr)
        sys.exit(130)
