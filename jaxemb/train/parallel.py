"""One step on many devices: `jit` over a mesh, or `pmap`, in one process or several."""

import itertools
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxemb import axes, optim
from jaxemb.errors import InputError
from jaxemb.train.state import State
from jaxemb.train.step import Metrics, Step

Mode = Literal["jit", "pmap"]

_PATIENCE_MS = 24 * 3600 * 1000
_BARRIERS = itertools.count()


def initialize() -> None:
    """Joins the other processes of a run, if any; call before any computation.

    On a cluster that jax detects (Cloud TPU, Slurm, Kubernetes …) nothing need be set.
    Elsewhere `JAX_COORDINATOR_ADDRESS`, `JAX_NUM_PROCESSES` and `JAX_PROCESS_ID` tell
    who is who, as `scripts/multihost.py` sets them.
    """
    if jax.distributed.is_initialized():
        return
    names = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
    address, count, index = (os.environ.get(name) for name in names)
    if address and count and index:
        jax.distributed.initialize(address, int(count), int(index))
        return
    if address or count or index:
        raise InputError(f"set all of {', '.join(names)}, or none of them")
    try:
        jax.distributed.initialize()
    except ValueError as error:
        # How jax says that it found no cluster; this process is then the only one.
        if "coordinator_address" not in str(error):
            raise


def make_mesh(devices: Sequence[Any] | None = None) -> Mesh:
    """All devices, or those given, on the one axis `data`."""
    devices = jax.devices() if devices is None else devices
    return jax.make_mesh(
        (len(devices),), (axes.DATA,), axis_types=(AxisType.Auto,), devices=devices
    )


class DataParallel:
    """A step over a mesh: the batch is split over its devices, the state is on each.

    Calling it takes a state and this process's part of the batch as numpy arrays.
    `place` puts a state where the step wants it, and must come first.
    """

    def __init__(
        self, step: Step, mesh: Mesh, mode: Mode = "jit", shard_rows: Sequence[str] = ()
    ):
        """See `data_parallel`."""
        if mode == "pmap" and shard_rows:
            raise InputError("pmap keeps whole tables on every device: use mode 'jit'")
        self.mesh = mesh
        self.mode = mode
        self._step = step
        self._shard_rows = tuple(shard_rows)
        self._batch_sharding = NamedSharding(mesh, PartitionSpec(axes.DATA))
        self._compiled: Callable | None = None

    def place(self, state: State | Callable[[], State]) -> State:
        """The state on the mesh's devices, in buffers that steps may consume.

        A function is computed there, each device making no more than its rows.
        """
        if not isinstance(state, State):
            shardings = self._state_shardings(jax.eval_shape(state))
            return jax.jit(state, out_shardings=shardings)()
        shardings = self._state_shardings(state)
        # A copy through the host: a step donates its state, the caller keeps theirs.
        return jax.tree.map(_from_host, state, shardings)

    def __call__(self, state: State, batch: Any) -> tuple[State, Metrics]:
        """One step."""
        with jax.set_mesh(self.mesh):  # for sharding constraints inside the step
            state, metrics = self._jitted(state)(state, self._place_batch(batch))
        if self.mode == "pmap" and jax.process_count() > 1:
            state = jax.tree.map(self._across_processes, state)
        return state, metrics

    def lower(self, state: State, batch: Any, **options: Any) -> Any:
        """The step's program before compilation, for its cost or another platform."""
        with jax.set_mesh(self.mesh):
            traced = self._jitted(state).trace(state, self._place_batch(batch))
            return traced.lower(**options)

    def _jitted(self, state: State) -> Any:
        if self._compiled is None:
            if self.mode == "pmap":
                self._compiled = jax.pmap(
                    self._step,
                    axis_name=axes.DATA,
                    in_axes=(None, 0),
                    out_axes=(None, None),
                    devices=list(self.mesh.devices.flat),
                    donate_argnums=0,
                )
            else:
                shardings = self._state_shardings(state)
                everywhere = NamedSharding(self.mesh, PartitionSpec())
                self._compiled = jax.jit(
                    self._step,
                    in_shardings=(shardings, self._batch_sharding),
                    out_shardings=(shardings, everywhere),
                    donate_argnums=0,
                )
        return self._compiled

    def _place_batch(self, batch: Any) -> Any:
        local_devices = len(self.mesh.local_devices)

        def place(x):
            if x.shape[0] % local_devices:
                raise InputError(
                    f"a batch of {x.shape[0]} examples cannot be split over "
                    f"{local_devices} devices: choose a multiple of {local_devices}"
                )
            if self.mode == "pmap":
                return x.reshape(local_devices, -1, *x.shape[1:])
            return jax.make_array_from_process_local_data(self._batch_sharding, x)

        return jax.tree.map(place, batch)

    def _across_processes(self, leaf: jax.Array) -> jax.Array:
        """What pmap returns on this process's devices, as one array on all of them."""
        everywhere = NamedSharding(self.mesh, PartitionSpec())
        shards = [shard.data for shard in leaf.addressable_shards]
        return jax.make_array_from_single_device_arrays(leaf.shape, everywhere, shards)

    def _state_shardings(self, state: State) -> State:
        def sharding(path, leaf):
            name = optim.path_name(path)
            by_rows = np.ndim(leaf) and any(
                re.search(p, name) for p in self._shard_rows
            )
            if by_rows and np.shape(leaf)[0] % self.mesh.size:
                raise InputError(
                    f"shard_rows: the {np.shape(leaf)[0]} rows of {name} cannot be "
                    f"spread over {self.mesh.size} devices; add empty rows"
                )
            spec = PartitionSpec(axes.DATA) if by_rows else PartitionSpec()
            return NamedSharding(self.mesh, spec)

        return jax.tree_util.tree_map_with_path(sharding, state)


def data_parallel(
    step: Step,
    mesh: Mesh | None = None,
    *,
    mode: Mode = "jit",
    shard_rows: Sequence[str] = (),
) -> DataParallel:
    """Compiles a step for every device of a mesh.

    Both modes give the same numbers: `jit` lets the compiler split one program, `pmap`
    runs the step on each device's examples and averages the gradients.

    Args:
      step: as `make_step` builds it. One of your own calls `axes.mean_over_devices` on
        its gradients and metrics, which is what `pmap` needs.
      mesh: all devices unless given.
      mode: "jit" or "pmap".
      shard_rows: patterns of state paths (`embed/table`) whose rows, a multiple of the
        number of devices, are spread over the devices instead of copied to each. This
        divides the memory of a table and its optimiser state between steps; the
        compiler decides how a step gathers the rows it needs.
    """
    return DataParallel(step, make_mesh() if mesh is None else mesh, mode, shard_rows)


def everywhere(function: Callable) -> Callable:
    """Compiles `function(variables, batch)` for the devices that the variables are on.

    For evaluation: the batch, whole and the same in every process, is split over the
    devices; what is returned is whole on every device.
    """
    compiled = jax.jit(function)

    def call(variables: Any, batch: Any) -> Any:
        mesh = _mesh_of(variables)

        def place(x):
            spec = (
                PartitionSpec() if x.shape[0] % mesh.size else PartitionSpec(axes.DATA)
            )
            return _from_host(x, NamedSharding(mesh, spec))

        return compiled(variables, jax.tree.map(place, batch))

    return call


def _mesh_of(tree: Any) -> Mesh:
    devices = jax.tree.leaves(tree)[0].sharding.device_set
    return make_mesh(sorted(devices, key=lambda device: device.id))


def _from_host(x: Any, sharding: NamedSharding) -> jax.Array:
    """The array on a mesh, from the whole of it in every process."""
    x = np.array(x)
    return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])


def to_host(tree: Any) -> Any:
    """Whole numpy arrays in every process, wherever their rows are."""

    def gather(x):
        if not isinstance(x, jax.Array) or x.is_fully_addressable:
            return np.asarray(x)
        if x.is_fully_replicated:
            return np.asarray(x.addressable_data(0))
        return multihost_utils.process_allgather(x, tiled=True)

    return jax.tree.map(gather, tree)


def is_primary() -> bool:
    """True in the one process that writes results."""
    return jax.process_index() == 0


def wait_for_all(name: str) -> None:
    """Returns once every process has come to the same point, for a day if need be.

    Not by a collective of the devices: on CPU these give up after half a minute, where
    one process may be reading a corpus for much longer.
    """
    if jax.process_count() > 1:
        wait = ocp.multihost.get_barrier_sync_fn()
        wait(key=f"{name} {next(_BARRIERS)}", timeout_ms=_PATIENCE_MS)
