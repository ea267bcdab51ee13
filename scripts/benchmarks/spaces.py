"""Closed forms over word spaces beside the programs that papers use for them.

    python scripts/benchmarks/spaces.py [--whole]

Geometric meta-embeddings: the closed form beside pymanopt's conjugate gradient, both
from the Gram matrices, timed until it is within 1e-4 of the minimum. Bilingual
lexicons: VecMap's supervised map of a table as small as those at hand and of one as
large as the paper's, and after it the ten best translations of every word
by CSLS, beside the same algorithms in plain numpy, results compared. With `--whole`:
CSLS of 200,000 words with 200,000 instead, in a process of its own, with its peak
memory.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np
from peak import peak_bytes
from ratios import by_turns, row, seconds

WORDS, DIM, PAIRS = 20_000, 300, 5_000
GEOMETRIC = {"words": 20_000, "dim": 100, "c": 50.0}
WITHIN = 1e-4  # of the minimum
PATIENCE = 120.0  # seconds that pymanopt gets
LARGE = 200_000  # words a side, as the paper has them
TOP = 10  # translations, and neighbours of CSLS
REPEATS = 3
LIMIT = 4.0  # GB


def comparisons() -> list[dict]:
    """The ratios as `scripts/bench` shows them."""
    return [_geometric(), _maps(WORDS), _maps(LARGE), _translations()]


class _Reached(Exception):
    """The peer is at the wanted objective."""


def _geometric() -> dict:
    from jaxemb.spaces import geometric, normalize

    rng = np.random.default_rng(0)
    words, dim, c = GEOMETRIC["words"], GEOMETRIC["dim"], GEOMETRIC["c"]
    latent = rng.normal(size=(words, dim)) / np.sqrt(np.arange(1, dim + 1))
    sources = [
        normalize.unit(
            latent @ np.linalg.qr(rng.normal(size=(dim, dim)))[0]
            + 0.2 * rng.normal(size=(words, dim))
        )
        for _ in range(2)
    ]
    grams = geometric.Grams.of(sources)
    best = geometric.closed_form(grams, c)
    lowest = geometric.objective(best, grams, c)
    pairs, reached = [], []
    for seed in range(REPEATS):
        ours = min(
            seconds(lambda: geometric.closed_form(grams, c)) for _ in range(REPEATS)
        )
        theirs, cost = _by_pymanopt(grams, c, lowest, seed)
        pairs.append((ours, theirs))
        reached.append(cost / lowest - 1)
    note = (
        f"{statistics.median(p[0] for p in pairs) * 1e3:.1f} ms; the peer ended "
        f"{max(reached):.1e} above the minimum at most, within {PATIENCE:g} s"
    )
    work = f"geometric meta-embedding, {words} words, two sources, {dim}-d"
    return row(work, "pymanopt", pairs, 100, note)


def _by_pymanopt(grams, c: float, lowest: float, seed: int) -> tuple[float, float]:
    """Seconds until it is near the minimum or out of time, and its objective."""
    import jax
    import pymanopt
    from pymanopt.manifolds import Product, Stiefel, SymmetricPositiveDefinite
    from pymanopt.optimizers import ConjugateGradient

    from jaxemb.spaces import geometric

    jax.config.update("jax_enable_x64", False)  # which importing pymanopt turns on
    gx, gz, gxz = grams.products[0][0], grams.products[1][1], grams.products[0][1]
    dim = len(gx)
    manifold = Product(
        [Stiefel(dim, dim), Stiefel(dim, dim), SymmetricPositiveDefinite(dim)]
    )
    costs = []
    constant = GEOMETRIC["words"]  # the identity's squared norm

    @pymanopt.function.numpy(manifold)
    def cost(u, v, b):
        w = u.T @ b @ v
        fit = np.sum((gx @ w) * (w @ gz)) - 2 * np.sum(w * gxz)
        costs.append(fit + constant + c * np.sum(b**2))
        if costs[-1] <= (1 + WITHIN) * lowest:
            raise _Reached
        return costs[-1]

    @pymanopt.function.numpy(manifold)
    def gradient(u, v, b):
        w = u.T @ b @ v
        slope = 2 * gx @ w @ gz - 2 * gxz
        return b @ v @ slope.T, b.T @ u @ slope, u @ slope @ v.T + 2 * c * b

    best = geometric.closed_form(grams, c)
    begin = geometric.random_start(grams, jax.random.key(seed), like=best)
    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient)
    optimizer = ConjugateGradient(
        max_time=PATIENCE, max_iterations=10**6, min_gradient_norm=1e-9, verbosity=0
    )
    start = time.perf_counter()
    try:
        optimizer.run(problem, initial_point=[*begin.rotations, begin.metric])
    except _Reached:
        pass
    return time.perf_counter() - start, min(costs)


def _maps(words: int) -> dict:
    source, target, seed = languages(words)
    expected, found = (f(source, target, seed) for f in (map_in_numpy, mapped))
    for ours, theirs in zip(found, expected, strict=True):
        # Rows of length 1; a column's sign is as good as the other.
        if not np.allclose(np.abs(ours), np.abs(theirs), atol=1e-3):
            raise AssertionError("numpy maps otherwise")
    del expected, found
    pairs = by_turns(
        lambda: mapped(source, target, seed),
        lambda: map_in_numpy(source, target, seed),
        REPEATS,
    )
    note = f"{statistics.median(p[0] for p in pairs) * 1e3:.0f} ms"
    work = f"VecMap's supervised map, {words} and {words} words, {DIM}-d, {PAIRS} pairs"
    return row(work, "VecMap's algorithm in numpy", pairs, 3, note)


def _translations() -> dict:
    from jaxemb.spaces import retrieval

    both = languages(WORDS)

    def ours():
        return retrieval.csls(*mapped(*both), TOP, own_penalty=False).rows

    def theirs():
        return translate_in_numpy(*map_in_numpy(*both))

    same = float(np.mean(ours() == theirs()))
    if same < 0.999:  # a few words have two translations as near as rounding tells
        raise AssertionError(f"numpy translates {1 - same:.2%} of the words otherwise")
    pairs = by_turns(ours, theirs, REPEATS)
    product = 2 * WORDS * WORDS * DIM / 1e9
    seconds = statistics.median(p[0] for p in pairs)
    note = (
        f"{seconds:.1f} s, {product / seconds:.0f} GFLOP/s of its one product; "
        f"{same:.2%} the same"
    )
    work = (
        f"VecMap's supervised map, then {TOP} translations a word by CSLS, "
        f"{WORDS} × {WORDS} words, {DIM}-d"
    )
    return row(work, "VecMap's algorithm in numpy", pairs, 3, note)


def languages(words: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two noisy rotations of one space, and the first words as a dictionary."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(words, DIM)) / np.sqrt(np.arange(1, DIM + 1))
    sides = [
        latent @ np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
        + 0.03 * rng.normal(size=(words, DIM))
        for _ in range(2)
    ]
    pairs = np.repeat(np.arange(PAIRS)[:, np.newaxis], 2, axis=1)
    source, target = (side.astype(np.float32) for side in sides)
    return source, target, pairs


def mapped(source, target, seed) -> tuple[np.ndarray, np.ndarray]:
    from jaxemb.spaces import align
    from jaxemb.spaces.normalize import UnitCenterUnit

    of_source, of_target = UnitCenterUnit.of(source), UnitCenterUnit.of(target)
    maps = align.advanced(
        of_source.rows(source[seed[:, 0]]), of_target.rows(target[seed[:, 1]])
    )
    return (
        align.map_rows(source, of_source, maps.source),
        align.map_rows(target, of_target, maps.target),
    )


def map_in_numpy(source, target, seed) -> tuple[np.ndarray, np.ndarray]:
    """The steps on all words one after the other, in 32 bits, as VecMap takes them."""

    def unit(rows):
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def root(matrix, sign):
        _, values, right = np.linalg.svd(matrix, full_matrices=False)
        return right.T @ np.diag(values**sign) @ right

    source, target = (unit(side) for side in (source, target))
    source, target = (unit(side - side.mean(axis=0)) for side in (source, target))
    x, z = source[seed[:, 0]], target[seed[:, 1]]
    white_x, white_z = root(x, -1.0), root(z, -1.0)
    left, values, right = np.linalg.svd((x @ white_x).T @ (z @ white_z))
    scale = np.sqrt(values)
    source, target = source @ white_x @ left * scale, target @ white_z @ right.T * scale
    source = source @ (left.T @ np.linalg.inv(white_x) @ left)
    target = target @ (right @ np.linalg.inv(white_z) @ right.T)
    return unit(source), unit(target)


def translate_in_numpy(source, target, batch: int = 1000) -> np.ndarray:
    """In batches, the ten largest one after the other, as VecMap's program does."""

    def largest(scores):
        each, found, places = np.arange(len(scores)), [], []
        for _ in range(TOP):
            best = scores.argmax(axis=1)
            found.append(scores[each, best].copy())
            places.append(best)
            scores[each, best] = -np.inf
        return np.stack(found, axis=1), np.stack(places, axis=1)

    def batches(rows):
        return (rows[start : start + batch] for start in range(0, len(rows), batch))

    penalty = np.concatenate(
        [largest(rows @ source.T)[0].mean(axis=1) for rows in batches(target)]
    )
    answers = [largest(2 * (rows @ target.T) - penalty)[1] for rows in batches(source)]
    return np.concatenate(answers)


def whole() -> dict:
    """All words of two large vocabularies by CSLS: seconds, and peak memory in GB."""
    from jaxemb.spaces import normalize, retrieval

    rng = np.random.default_rng(0)
    source = rng.standard_normal((LARGE, DIM), np.float32)
    target = source + 0.5 * rng.standard_normal((LARGE, DIM), np.float32)
    source, target = (normalize.unit(x).astype(np.float32) for x in (source, target))
    start = time.perf_counter()
    found = retrieval.csls(source, target)
    return {
        "words": LARGE,
        "dim": DIM,
        "seconds": time.perf_counter() - start,
        "peak_gigabytes": peak_bytes() / 1e9,
        "limit_gigabytes": LIMIT,
        "found": float(np.mean(found.rows[:, 0] == np.arange(LARGE))),
    }


def _whole_in_a_process() -> dict:
    command = [sys.executable, __file__, "--in-this-process"]
    done = subprocess.run(
        command, env=os.environ, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    if sys.argv[1:] == ["--in-this-process"]:
        print(json.dumps(whole()))
    elif sys.argv[1:] == ["--whole"]:
        print(json.dumps(_whole_in_a_process(), indent=1))
    else:
        for row in comparisons():
            print(json.dumps(row, indent=1))
