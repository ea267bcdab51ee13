"""What a model costs: numbers it has, operations of its compiled program, time."""

import math
import re
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

_EXCHANGES = (
    "all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|"
    "collective-permute|collective-broadcast"
)
# Of one that is started and awaited apart, what is awaited is the result.
_EXCHANGE = re.compile(rf" = (.*?) ({_EXCHANGES})(?:-done)?\(")
_ARRAY = re.compile(r"\b[a-z]+(\d*)[a-z0-9]*\[([\d,]*)\]")  # pred has no digits


class Collective(NamedTuple):
    """An exchange between devices in a compiled program."""

    kind: str
    """As XLA calls it: all-reduce, all-gather …"""
    shapes: tuple[tuple[int, ...], ...]
    """Of the arrays that it gives each device."""
    bytes: int
    """Of these arrays together."""

    @property
    def numbers(self) -> int:
        """Of these arrays together."""
        return sum(map(math.prod, self.shapes))


class DeviceCost(NamedTuple):
    """What one device does in a run of a compiled program, by the compiler's count.

    The body of a loop counts once, however often it runs.
    """

    flops: float
    bytes: float
    """Read and written."""
    collectives: tuple[Collective, ...]


def device_cost(compiled: jax.stages.Compiled) -> DeviceCost:
    """Operations, memory traffic and exchanges of each device of a program's mesh."""
    counted = _counted(compiled)
    flops, traffic = (float(counted.get(n, 0)) for n in ("flops", "bytes accessed"))
    return DeviceCost(flops, traffic, tuple(collectives(compiled.as_text() or "")))


def collectives(program: str) -> list[Collective]:
    """Every exchange between devices in the text of a compiled program."""
    found = []
    for result, kind in _EXCHANGE.findall(program):
        arrays = [
            (
                max(1, int(bits or 8) // 8),
                tuple(map(int, filter(None, dims.split(",")))),
            )
            for bits, dims in _ARRAY.findall(result)
        ]
        size = sum(width * math.prod(shape) for width, shape in arrays)
        found.append(Collective(kind, tuple(shape for _, shape in arrays), size))
    return found


def count_params(tree: Any) -> int:
    """Numbers in a tree of arrays, or of their shapes (`jax.eval_shape`)."""
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(tree))


def count_flops(function: Callable[..., Any], *arguments: Any) -> float:
    """Floating-point operations of the program that XLA compiles of a function.

    A multiplication and an addition are two. The compiler counts the body of a loop
    once, however often it runs: see `flops_of_length`.

    Args:
      function: to be compiled.
      *arguments: arrays or their shapes.
    """
    return float(_counted(jax.jit(function).lower(*arguments).compile())["flops"])


def _counted(compiled: jax.stages.Compiled) -> Any:
    cost: Any = compiled.cost_analysis()
    return cost[0] if isinstance(cost, list) else cost


def flops_of_length(
    flops: Callable[[int], float], length: float | int, at: tuple[int, int] = (4, 8)
) -> float:
    """Operations at a length, in a line through two lengths at which they are counted.

    For recurrent models, whose work is the same for every word: give a function that
    counts those of a program whose loop is unrolled (`unroll=length` in `jaxemb.nn`).
    """
    first, second = at
    below, above = flops(first), flops(second)
    return below + (above - below) * (length - first) / (second - first)


def seconds_of(
    function: Callable[..., Any], *arguments: Any, repeats: int = 11
) -> float:
    """The median time of a call of a compiled function, its first calls left out."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - started)
    return statistics.median(times)
