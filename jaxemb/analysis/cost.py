"""What a model costs: numbers it has, operations of its compiled program, time."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np


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
    compiled = jax.jit(function).lower(*arguments).compile()
    cost: Any = compiled.cost_analysis()
    return float((cost[0] if isinstance(cost, list) else cost)["flops"])


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
