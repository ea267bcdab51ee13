"""What all trainers share: how a run is carried out, and what identifies its text."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from etils import epath

from jaxemb.data.corpus import Corpus
from jaxemb.static.settings import check_at_least
from jaxemb.static.tables import write_words
from jaxemb.train import loop, parallel
from jaxemb.train.state import State
from jaxemb.train.step import Step


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is carried out; nothing here changes what it computes."""

    mesh: jax.sharding.Mesh | None = None
    """The devices; all of them if None."""
    mode: parallel.Mode = "jit"
    """How a step is spread over them: "jit" or "pmap"."""
    shard_rows: bool = False
    """Spread the rows of the tables over the devices, 512 or fewer of them, instead of
    a copy on each; needs "jit"."""
    save_every: int | None = None
    """Steps between checkpoints; those of an epoch if None."""
    name: str = "word vectors"
    """Shown before the progress bar."""
    progress: bool = True
    """Show one."""
    tensorboard: bool = False
    """Write event files beside `metrics.jsonl`."""
    profile: tuple[int, int] | None = None
    """First and last step of a `jax.profiler` trace."""

    def __post_init__(self):
        if self.save_every is not None:
            check_at_least(1, self, "save_every")

    @property
    def devices(self) -> jax.sharding.Mesh:
        """The mesh, all devices unless one was given."""
        return parallel.make_mesh() if self.mesh is None else self.mesh


def corpus_identity(corpus: Corpus) -> dict[str, Any]:
    """What a run's config tells of its text: no other text goes on with the run."""
    return {
        "words": int(corpus.raw[-1]),
        "vocabulary": len(corpus.words),
        "sha256": corpus.sha256,
    }


def run(
    make_state: Callable[[], State],
    step: Step,
    batches: Callable[[int], Any],
    workdir: epath.PathLike,
    options: RunOptions,
    *,
    epochs: int,
    steps_an_epoch: int,
    words: tuple[str, ...],
    config: Mapping[str, Any],
    learning_rate: float,
    tables: Sequence[str] = ("",),
    evaluate: Callable[[State], Mapping[str, float]] | None = None,
) -> dict[str, np.ndarray]:
    """Takes the steps of all epochs, going on from the newest checkpoint.

    Args:
      make_state: computes the state at step 0.
      step: of one chunk.
      batches: the chunk of a step, this process's part.
      workdir: the run's folder.
      options: how it is carried out.
      epochs: how many.
      steps_an_epoch: after which the run is evaluated and, unless told otherwise,
        saved.
      words: names of the tables' rows.
      config: all that the vectors depend on.
      learning_rate: what to lower if the run diverges.
      tables: beginnings of the names of the parameters that `shard_rows` spreads.
      evaluate: from state to named scores.

    Returns:
      The tables, with the rows that fill up.

    Raises:
      Diverged: naming the learning rate, where the loss is not finite, or so large that
        nothing is learnt.
    """
    parallel_step = parallel.data_parallel(
        step,
        options.devices,
        mode=options.mode,
        shard_rows=[
            f"^{part}/{name}" for part in ("params", "opt_state") for name in tables
        ]
        if options.shard_rows
        else (),
    )
    write_words(epath.Path(workdir), words)
    try:
        state = loop.fit(
            make_state,
            parallel_step,
            batches,
            epochs * steps_an_epoch,
            workdir,
            evaluate=evaluate,
            evaluate_every=steps_an_epoch,
            save_every=options.save_every or steps_an_epoch,
            config=config,
            name=options.name,
            progress=options.progress,
            tensorboard=options.tensorboard,
            profile=options.profile,
        )
    except loop.Diverged as error:
        raise loop.Diverged(
            f"{error}; choose a learning rate below {learning_rate}"
        ) from error
    return parallel.to_host(state.params)
