"""What every public module promises, as checks that any module's test may call.

A `Case` is a module with inputs; `ALL` are the checks. tests/nn/test_contracts.py runs
each check on each case, and fails when a module of `jaxemb.nn` has no case.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx, serialization, traverse_util
from jax.sharding import NamedSharding, PartitionSpec

EXTRA = 3  # words of padding that check_padding adds
TOLERANCE = dict(rtol=1e-5, atol=1e-5)


@dataclasses.dataclass(frozen=True)
class Case:
    """One module and a batch for it."""

    module: type[nn.Module]
    build: Callable[..., nn.Module]
    """From `dtype` to the module; a module without that field ignores it."""
    inputs: tuple[Any, ...]
    """Arrays with 8 examples each, length on the second axis."""
    pad: Callable[..., tuple[Any, ...]]
    """From the inputs to the same with `EXTRA` more words of padding."""
    low_precision: tuple[str, ...]
    """The dtypes documented for the output's leaves when `dtype` is bfloat16."""
    deterministic: bool | None = None
    """The argument of that name, where the module has one."""
    ignores_padding: bool = True
    """False where every position is an output of its own, padding included."""
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.module.__name__

    def start(self, **build: Any) -> tuple[nn.Module, Any]:
        """The module, and variables of its shapes, none of them 0 or 1.

        What a module has counted is positive, as variances are.
        """
        module = self.build(**build)
        kwargs = {} if self.deterministic is None else {"deterministic": True}
        shapes = jax.eval_shape(
            lambda: module.init(jax.random.key(0), *self.inputs, **kwargs)
        )
        rng = np.random.default_rng(0)
        draw = lambda p: jnp.array(0.5 * rng.normal(size=p.shape), p.dtype)
        shapes = {k: v for k, v in shapes.items() if k != "intermediates"}
        variables = jax.tree.map(draw, shapes)
        if counted := variables.get("batch_stats"):
            variables["batch_stats"] = jax.tree.map(jnp.abs, counted)
        return module, variables

    def run(self, module: nn.Module, variables: Any, *inputs: Any) -> Any:
        """The output and the gradient of the parameters, compiled once a shape."""
        return _run(module, self.deterministic, variables, *inputs)


def _apply(module, deterministic, variables, *inputs):
    kwargs = {} if deterministic is None else {"deterministic": deterministic}
    rngs = {"dropout": jax.random.key(1)}
    return module.apply(variables, *inputs, rngs=rngs, **kwargs)


# Most of the time here is the compiler's; the numbers are the same without its best.
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@functools.partial(jax.jit, static_argnums=(0, 1), compiler_options=FAST)
def _run(module, deterministic, variables, *inputs):
    def total(params):
        everything = {**variables, "params": params}
        output = _apply(module, deterministic, everything, *inputs)
        leaves = [y.astype(jnp.float32) for y in jax.tree.leaves(output)]
        return sum(jnp.sum(jnp.sin(y)) for y in leaves), output

    gradient, output = jax.grad(total, has_aux=True)(variables.get("params", {}))
    return output, gradient


def _close(actual: Any, expected: Any, **tolerance: float) -> None:
    jax.tree.map(
        lambda a, e: np.testing.assert_allclose(
            np.asarray(a, np.float32), np.asarray(e, np.float32), **tolerance
        ),
        actual,
        expected,
    )


def check_padding(case: Case) -> None:
    """More padding, with anything in it, changes nothing at the real words."""
    module, variables = case.start()
    short, short_gradient = case.run(module, variables, *case.inputs)
    long, long_gradient = case.run(module, variables, *case.pad(*case.inputs))

    def compare(long, short):
        if long.shape != short.shape:
            assert long.shape[1] == short.shape[1] + EXTRA
            long = long[:, :-EXTRA]
        np.testing.assert_allclose(long, short, rtol=1e-6, atol=1e-6)

    jax.tree.map(compare, long, short)
    if case.ignores_padding:
        _close(long_gradient, short_gradient, **TOLERANCE)


def check_batch_order(case: Case) -> None:
    """The output of an example depends neither on its place nor on its neighbours."""
    off = None if case.deterministic is None else True
    case = dataclasses.replace(case, deterministic=off)
    module, variables = case.start()
    whole, _ = case.run(module, variables, *case.inputs)
    for order in ([3, 1, 0, 7, 6, 2, 5, 4], [2] * 8):
        rows = np.array(order)
        mixed, _ = case.run(module, variables, *[x[rows] for x in case.inputs])
        _close(mixed, jax.tree.map(lambda y, rows=rows: y[rows], whole), **TOLERANCE)


def check_jit(case: Case) -> None:
    """`jit` equals eager."""
    module, variables = case.start()
    compiled, _ = case.run(module, variables, *case.inputs)
    eager = _apply(module, case.deterministic, variables, *case.inputs)
    _close(compiled, eager, **TOLERANCE)


def check_low_precision(case: Case) -> None:
    """bfloat16 gives finite outputs and gradients, near float32, of known dtypes."""
    exact, variables = case.start()
    module, start = case.start(dtype=jnp.bfloat16)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(start)} <= {"float32"}
    inputs = case.inputs
    if not any(field.name == "dtype" for field in dataclasses.fields(module)):
        low = lambda x: x.astype(jnp.bfloat16) if x.dtype == jnp.float32 else x
        inputs = tuple(low(x) for x in inputs)
    output, gradient = case.run(module, variables, *inputs)
    assert tuple(str(y.dtype) for y in jax.tree.leaves(output)) == case.low_precision
    _close(output, case.run(exact, variables, *case.inputs)[0], rtol=0.1, atol=0.1)
    for leaf in jax.tree.leaves(gradient):
        assert leaf.dtype == jnp.float32 and jnp.isfinite(leaf).all()


def check_round_trip(case: Case) -> None:
    """Variables written and read back give the same numbers."""
    module, variables = case.start()
    target = jax.tree.map(jnp.zeros_like, variables)
    restored = serialization.from_bytes(target, serialization.to_bytes(variables))
    jax.tree.map(np.testing.assert_array_equal, restored, variables)
    expected, _ = case.run(module, variables, *case.inputs)
    _close(case.run(module, restored, *case.inputs)[0], expected, rtol=0, atol=0)


def check_devices(case: Case) -> None:
    """Eight devices, each with one example, equal one: outputs and gradients."""
    module, variables = case.start()
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((8,), ("data",), axis_types=auto)
    spread = NamedSharding(mesh, PartitionSpec("data"))
    inputs = [jax.device_put(x, spread) for x in case.inputs]
    copies = jax.device_put(variables, NamedSharding(mesh, PartitionSpec()))
    eight = case.run(module, copies, *inputs)
    for leaf in jax.tree.leaves(eight):
        assert len(leaf.sharding.device_set) == 8
    _close(eight, case.run(module, variables, *case.inputs), **TOLERANCE)


def check_nnx(case: Case) -> None:
    """The module works, with the same numbers, inside an NNX model."""
    kwargs = {} if case.deterministic is None else {"deterministic": True}
    module, variables = case.start()

    def abstract():
        wrapped = nnx.bridge.ToNNX(module)
        wrapped.lazy_init(*case.inputs, rngs=nnx.Rngs(0), **kwargs)
        return wrapped

    wrapped = nnx.eval_shape(abstract)
    for (_, *path, last), value in traverse_util.flatten_dict(variables).items():
        holder = vars(wrapped)
        for name in path:
            holder = holder[name]
        assert holder[last].shape == value.shape
        holder[last].set_value(value)
    output = nnx.jit(lambda wrapped, *x: wrapped(*x, **kwargs))(wrapped, *case.inputs)
    off = None if case.deterministic is None else True
    expected, _ = _run(module, off, variables, *case.inputs)
    _close(output, expected, **TOLERANCE)


def check_lowering(case: Case) -> None:
    """Output and gradient compile down to what TPU and CUDA take."""
    module, variables = case.start(dtype=jnp.bfloat16)
    traced = _run.trace(module, case.deterministic, variables, *case.inputs)
    lowered = traced.lower(lowering_platforms=("tpu", "cuda"))
    assert "func.func public @main" in lowered.as_text()


ALL = (
    check_padding,
    check_batch_order,
    check_jit,
    check_low_precision,
    check_round_trip,
    check_devices,
    check_nnx,
    check_lowering,
)
