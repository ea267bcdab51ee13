"""Saved states, written whole or not at all, and readable without the model's code."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from etils import epath
from jax.experimental import multihost_utils

from jaxemb import optim, storage
from jaxemb.errors import InputError
from jaxemb.train.state import State

FOLDER = "checkpoints"
BEST = "best"

_LOG = logging.getLogger(__name__)


class Checkpoints:
    """The checkpoints of one run: `<folder>/<step>/<part>`.

    A part is a collection of the model's variables, `params` first, or one of
    `opt_state`, `counters` (step and key), `loop` and `config`.
    """

    def __init__(self, folder: epath.PathLike, *, keep: int):
        """Opens or creates the folder.

        Args:
          folder: where the numbered checkpoints are.
          keep: how many of the newest stay.
        """
        self._folder = storage.absolute(folder)
        self._keep = keep
        self._manager = ocp.CheckpointManager(
            self._folder,
            options=ocp.CheckpointManagerOptions(
                max_to_keep=keep, create=True, cleanup_tmp_directories=True
            ),
        )

    def save(self, state: State, loop: Mapping[str, Any], config: Mapping[str, Any]):
        """Starts to save; the state may be consumed at once, `wait` waits for the disk.

        Args:
          state: of the step that names the checkpoint.
          loop: what the training loop itself must remember, as JSON.
          config: of the run, as JSON, so that a checkpoint explains itself.
        """
        step = int(np.ravel(jax.device_get(state.step))[0])
        trees = _parts(state)
        items = {
            **{name: ocp.args.StandardSave(tree) for name, tree in trees.items()},
            "loop": ocp.args.JsonSave(dict(loop)),
            "config": ocp.args.JsonSave(dict(config)),
        }
        steps = self._manager.all_steps()
        if step in steps:
            # A run that was killed between writing this one and removing the old ones.
            for old in sorted(steps)[: -self._keep]:
                self._manager.delete(old)
            return
        self._manager.save(step, args=ocp.args.Composite(**items), force=True)

    def restore(self, like: State) -> tuple[State, dict[str, Any]] | None:
        """The newest state that can be read, with what the loop remembered.

        A damaged checkpoint is reported and set aside, and the one before it taken.

        Args:
          like: a state of the shapes, dtypes and devices wanted.

        Raises:
          InputError: where the newest checkpoint is of another model or optimiser.
        """
        for step in sorted(self._manager.all_steps(), reverse=True):
            restored, problem = None, ""
            try:
                self._check_model(step, like)
                restored = self._restore_step(step, like)
            except (InputError, MemoryError, PermissionError):
                raise
            except Exception as error:  # orbax raises many kinds for a damaged file
                problem = _first_line(error)
            if _in_every_process(restored is not None):
                return restored
            _LOG.warning(
                "%s: checkpoint %d cannot be read (%s); taking the one before, if any",
                self._folder,
                step,
                problem or "in another process",
            )
            self._set_aside(step)
        return None

    def _restore_step(self, step: int, like: State) -> tuple[State, dict[str, Any]]:
        items = {
            name: ocp.args.StandardRestore(
                jax.tree.map(ocp.utils.to_shape_dtype_struct, tree)
            )
            for name, tree in _parts(like).items()
        }
        restored = self._manager.restore(
            step, args=ocp.args.Composite(loop=ocp.args.JsonRestore(), **items)
        )
        frozen = {name: restored.get(name, tree) for name, tree in like.frozen.items()}
        return State(
            **restored["counters"],
            params=restored.get("params", like.params),
            opt_state=restored.get("opt_state", like.opt_state),
            frozen=frozen,
        ), restored["loop"]

    def _check_model(self, step: int, like: State) -> None:
        """One of another model is an error, where a damaged one is set aside."""
        for part, tree in _parts(like).items():
            folder = self._folder / str(step) / part
            saved, wanted = _described(_metadata(folder)), _described(tree)
            if saved != wanted:
                name = min(saved.items() ^ wanted.items())[0]
                raise InputError(
                    f"{folder}: of another model or optimiser: {name} is "
                    f"{saved.get(name, 'absent')}, not {wanted.get(name, 'absent')}"
                )

    def _set_aside(self, step: int) -> None:
        if jax.process_index() == 0:
            damaged = self._folder.with_name(f"{self._folder.name}.damaged")
            damaged.mkdir(parents=True, exist_ok=True)
            number = sum(1 for _ in damaged.iterdir())
            (self._folder / str(step)).rename(damaged / f"{step}-{number}")
        _in_every_process(True)
        self._manager.reload()

    def wait(self) -> None:
        """Returns when everything is on disk."""
        self._manager.wait_until_finished()

    def close(self) -> None:
        """Waits, then lets go of the folder."""
        self._manager.close()


def find(path: epath.PathLike, step: int | None = None) -> epath.Path:
    """The folder of one checkpoint, given it, its parent or a run's folder.

    Raises:
      InputError: where there is none.
    """
    path = epath.Path(path)
    if (path / "params").is_dir():
        if step is not None and path.name != str(step):
            raise InputError(f"{path}: is one checkpoint, not that of step {step}")
        return path
    for folder in (path / FOLDER, path):
        steps = [int(p.name) for p in _children(folder) if p.name.isdigit()]
        steps = [s for s in steps if (folder / str(s) / "params").is_dir()]
        if step is not None and steps and step not in steps:
            raise InputError(
                f"{folder}: no checkpoint of step {step}, only {sorted(steps)}"
            )
        if steps:
            return folder / str(max(steps) if step is None else step)
    raise InputError(f"{path}: there is no checkpoint here")


def load_params(
    path: epath.PathLike,
    step: int | None = None,
    parts: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Reads a checkpoint on one device, whatever mesh wrote it and without its code.

    What it returns is the argument of the model's `apply`:
    `model.apply(load_params("runs/mine"), …)`.

    Args:
      path: a run's folder, a folder of checkpoints, or one checkpoint.
      step: the newest unless given.
      parts: the model's variables, `params` and any other collection, unless given.

    Returns:
      Part to nested dicts of numpy arrays.
    """
    folder = find(path, step)
    here = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    loaded = {}
    with _local_checkpointer() as checkpointer:
        for item in _variables(folder) if parts is None else parts:
            try:
                target = jax.tree.map(
                    lambda leaf: jax.ShapeDtypeStruct(
                        leaf.shape, leaf.dtype, sharding=here
                    ),
                    _metadata(folder / item),
                )
                tree = checkpointer.restore(storage.absolute(folder / item), target)
            except Exception as error:  # orbax raises many kinds for a damaged file
                problem = _first_line(error)
                raise InputError(
                    f"{folder / item}: cannot be read ({problem})"
                ) from error
            loaded[item] = jax.tree.map(np.asarray, tree)
    return loaded


def load_config(path: epath.PathLike, step: int | None = None) -> dict[str, Any]:
    """The configuration that was saved with a checkpoint; empty if none was."""
    file = find(path, step) / "config" / "metadata"  # the name that orbax gives JSON
    return json.loads(file.read_text()) if file.exists() else {}


def runs_below(path: epath.PathLike) -> Iterator[epath.Path]:
    """Every run folder at or below a path: those that hold metrics or checkpoints."""
    path = epath.Path(path)
    if (path / FOLDER).is_dir() or (path / "metrics.jsonl").exists():
        yield path
    for child in _children(path):
        if child.is_dir() and child.name not in (FOLDER, BEST, "figures", "profile"):
            yield from runs_below(child)


def _parts(state: State) -> dict[str, Any]:
    """What is saved of a state, by name; orbax refuses trees without arrays."""
    trees = {
        **state.frozen,
        "params": state.params,
        "opt_state": state.opt_state,
        "counters": {"step": state.step, "key": state.key},
    }
    return {name: tree for name, tree in trees.items() if jax.tree.leaves(tree)}


def _variables(folder: epath.Path) -> list[str]:
    """The collections of a model's variables in one checkpoint, `params` first."""
    others = ("params", "opt_state", "counters", "loop", "config")
    names = [p.name for p in _children(folder) if p.is_dir() and p.name not in others]
    return ["params", *names]


def _metadata(folder: epath.Path) -> Any:
    return ocp.StandardCheckpointHandler().metadata(storage.absolute(folder)).tree


def _local_checkpointer() -> ocp.StandardCheckpointer:
    """One that does not wait for the other processes of a run."""
    here = jax.process_index()
    return ocp.StandardCheckpointer(
        multiprocessing_options=ocp.options.MultiprocessingOptions(
            primary_host=here,
            active_processes={here},
            barrier_sync_key_prefix=f"process-{here}",
        )
    )


def _in_every_process(success: bool) -> bool:
    """True in all processes if it is in each; returns when all have come here."""
    if jax.process_count() == 1:
        return success
    return bool(multihost_utils.process_allgather(np.array(success)).all())


def _described(tree: Any) -> dict[str, str]:
    """Path to dtype and shape of every array."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {
        optim.path_name(path): (f"{np.dtype(leaf.dtype)}{tuple(leaf.shape)}")
        for path, leaf in leaves
    }


def _children(folder: epath.Path) -> list[epath.Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
