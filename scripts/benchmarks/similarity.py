"""Thirteen similarity lists with bootstrap intervals beside gensim without.

    python scripts/benchmarks/similarity.py

Both score the same table, which has every word of the lists among others, by turns in
one process, and look words up without their case: gensim puts all words of the table
in upper case for each list, we once, in the time that is told. Gensim reads lists from
files, which are small. The scores are compared before the times are.
"""

import json
import statistics
import tempfile
from pathlib import Path

import numpy as np
from ratios import by_turns, row

from jaxemb.data.vectors import WordVectors

ROWS, DIM = 50_000, 300
RESAMPLES = 1000
REPEATS = 5
TARGET = 1.0


def comparisons() -> list[dict]:
    """The ratio as `scripts/bench` shows it."""
    from jaxemb.data import pairs, sources
    from jaxemb.eval import similarity

    parts = sources.get("wordsim").parts
    lists = {name: pairs.read_pairs(path) for name, path in parts.items()}
    table = _table({w.lower() for own in lists.values() for p in own for w in p[:2]})
    keyed = table.to_gensim()

    with tempfile.TemporaryDirectory() as folder:
        for name, own in lists.items():
            lines = (f"{a}\t{b}\t{score}\n" for a, b, score in own)
            Path(folder, name).write_text("".join(lines))

        def ours() -> list[float]:
            fresh = WordVectors(table.words, table.matrix, unique=True)  # no index yet
            return [
                similarity.word_similarity(
                    fresh, own, case="ignore", resamples=RESAMPLES
                ).spearman
                for own in lists.values()
            ]

        def theirs() -> list[float]:
            return [
                keyed.evaluate_word_pairs(
                    Path(folder, name), restrict_vocab=len(table.words)
                )[1].statistic
                for name in lists
            ]

        if not np.allclose(ours(), theirs(), atol=1e-6):
            raise AssertionError("gensim scores otherwise")
        times = by_turns(ours, theirs, REPEATS)
    own, peer = (1e3 * statistics.median(t[i] for t in times) for i in (0, 1))
    scored = sum(map(len, lists.values()))
    note = f"{own:.0f} ms with {RESAMPLES} resamples (peer {peer:.0f} ms without)"
    work = f"similarity, {len(lists)} lists, {scored:,} pairs, {ROWS} × {DIM}"
    return [row(work, "gensim", times, TARGET, note)]


def _table(words: set[str]) -> WordVectors:
    """The words, and others up to `ROWS`."""
    others = (f"other{i}" for i in range(ROWS - len(words)))
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(ROWS, DIM)).astype(np.float32)
    return WordVectors((*sorted(words), *others), matrix)


if __name__ == "__main__":
    for found in comparisons():
        print(json.dumps(found, indent=1))
