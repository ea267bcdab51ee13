"""Loading word vectors beside gensim: rate, and peak memory as a multiple of the table.

    python scripts/benchmarks/load_vectors.py [ROWS [DIM]]

Every load happens in a fresh process, gensim's and jaxemb's by turns, on files that the
system has cached. Both must give the same words and, bit for bit, the same numbers.
"""

import functools
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from peak import peak_bytes, resident_bytes

LIBRARIES = "gensim", "jaxemb"
# In short rows the words take as much memory as the numbers.
SIZES = (100_000, 300), (400_000, 50)
KINDS = {"text": "vectors.txt", "binary": "vectors.bin"}
THREADS = {
    name: "2"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS")
}


def run(rows: int = 100_000, dim: int = 300, repeats: int = 3) -> dict:
    """Measures both libraries on a synthetic text and binary file.

    Returns:
      `rows`, `dim`, and per kind of file: `vectors_per_second` and `peak_over_matrix`
      of each library (one a repeat), and `ratio` (median, low, high).
    """
    result: dict = {"rows": rows, "dim": dim, "repeats": repeats}
    with tempfile.TemporaryDirectory() as folder:
        _write_files(Path(folder), rows, dim)
        for kind, name in KINDS.items():
            path = Path(folder) / name
            path.read_bytes()
            runs: dict[str, list[dict]] = {library: [] for library in LIBRARIES}
            for _ in range(repeats):
                for library in LIBRARIES:
                    runs[library].append(_in_a_process(library, kind, path))
            if len({one["digest"] for many in runs.values() for one in many}) != 1:
                raise AssertionError(f"{kind}: gensim and jaxemb read different values")
            result[kind] = _summary(runs, rows, dim)
    return result


def comparisons() -> list[dict]:
    """The ratios as `scripts/bench` shows them."""
    results = [run(*size) for size in SIZES]
    return [
        _comparison(result, kind, target)
        for result in results
        for kind, target in {"text": 10, "binary": 2}.items()
    ]


def _comparison(result: dict, kind: str, target: float) -> dict:
    ratio, peaks = result[kind]["ratio"], result[kind]["peak_over_matrix"]
    ours, theirs = max(peaks["jaxemb"]), max(peaks["gensim"])
    return {
        "work": f"load {result['rows']} × {result['dim']} word2vec {kind}",
        "peer": "gensim",
        "ratio": ratio["median"],
        "low": ratio["low"],
        "high": ratio["high"],
        "target": target,
        "note": f"peak memory {ours:.2f} × the matrix (target 1.6, peer {theirs:.2f})",
    }


def load(library: str, kind: str, path: str) -> dict:
    """Loads once, in this process, and measures it."""
    # Imports are not loading.
    if library == "gensim":
        from gensim.models import KeyedVectors

        read = functools.partial(
            KeyedVectors.load_word2vec_format, binary=kind == "binary"
        )
    else:
        from jaxemb.data.formats import text  # noqa: F401
        from jaxemb.data.vectors import read_word_vectors as read

    before = resident_bytes()
    start = time.perf_counter()
    table: Any = read(path)
    seconds = time.perf_counter() - start
    peak = peak_bytes() - before
    words, matrix = (
        (table.index_to_key, table.vectors)
        if library == "gensim"
        else (table.words, table.matrix)
    )
    digest = hashlib.sha256("\n".join(words).encode())
    digest.update(np.ascontiguousarray(matrix).data)
    return {"seconds": seconds, "peak": peak, "digest": digest.hexdigest()}


def _write_files(folder: Path, rows: int, dim: int) -> None:
    from jaxemb.data.vectors import WordVectors, write_word_vectors

    rng = np.random.default_rng(0)
    matrix = np.round(rng.normal(scale=0.3, size=(rows, dim)), 6).astype(np.float32)
    table = WordVectors(tuple(f"word{i:x}" for i in range(rows)), matrix)
    for name in KINDS.values():
        write_word_vectors(folder / name, table)


def _in_a_process(library: str, kind: str, path: Path) -> dict:
    command = [sys.executable, __file__, "--load", library, kind, str(path)]
    done = subprocess.run(
        command, env=os.environ | THREADS, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _summary(runs: dict[str, list[dict]], rows: int, dim: int) -> dict:
    rate = {n: [rows / one["seconds"] for one in many] for n, many in runs.items()}
    matrix = 4 * rows * dim
    peak = {n: [one["peak"] / matrix for one in many] for n, many in runs.items()}
    pairs = zip(rate["gensim"], rate["jaxemb"], strict=True)
    ratios = [ours / theirs for theirs, ours in pairs]
    ratio = {
        "median": statistics.median(ratios),
        "low": min(ratios),
        "high": max(ratios),
    }
    return {"vectors_per_second": rate, "peak_over_matrix": peak, "ratio": ratio}


def _print(result: dict) -> None:
    print(f"{result['rows']} x {result['dim']}, {result['repeats']} runs each")
    for kind in KINDS:
        ratio = result[kind]["ratio"]
        for library in LIBRARIES:
            rate = statistics.median(result[kind]["vectors_per_second"][library])
            peak = max(result[kind]["peak_over_matrix"][library])
            print(f"{kind:7}{library:8}{rate:>10,.0f} vectors/s, peak {peak:.2f} x")
        spread = f"{ratio['low']:.1f} to {ratio['high']:.1f}"
        print(f"{kind:7}ratio {ratio['median']:.1f} ({spread})")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        print(json.dumps(load(*sys.argv[2:])))
    else:
        _print(run(*map(int, sys.argv[1:])))
