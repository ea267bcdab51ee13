"""Answering analogies beside gensim: questions a second, and the same answers.

    python scripts/benchmarks/analogies.py [ROWS [DIM]]

Both answer the same questions in one process by turns, on a synthetic table in which
some offsets are planted. Compiling is not answering: jaxemb answers once before.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from jaxemb.data.analogies import Analogy
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import analogy

SIZE = 100_000, 300
QUESTIONS = {"gensim": 60, "jaxemb": 2048}  # of which gensim gets the first
TARGET = 6


def run(rows: int = SIZE[0], dim: int = SIZE[1], repeats: int = 3) -> dict:
    """Measures both, and compares their answers question by question.

    Returns:
      `rows`, `dim`, `questions_per_second` of each (one a repeat), `correct` answers
      among those that both gave, and `ratio` (median, low, high).
    """
    vectors, questions = _made(rows, dim)
    keyed = vectors.to_gensim()
    rates: dict[str, list[float]] = {"gensim": [], "jaxemb": []}
    correct = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "questions.txt"
        few = questions[: QUESTIONS["gensim"]]
        path.write_text("\n".join([": all", *map(" ".join, few)]) + "\n")
        analogy.answer(vectors, questions, case="ignore")
        keyed.evaluate_word_analogies(path, restrict_vocab=rows)  # fills its norms
        for _ in range(repeats):
            start = time.perf_counter()
            _, sections = keyed.evaluate_word_analogies(path, restrict_vocab=rows)
            rates["gensim"].append(len(few) / (time.perf_counter() - start))
            start = time.perf_counter()
            ours = analogy.answer(vectors, questions, case="ignore")
            rates["jaxemb"].append(len(questions) / (time.perf_counter() - start))
            hits = [q for q, right in zip(few, ours.correct, strict=False) if right]
            theirs = sections[-1]["correct"]
            if [tuple(w.upper() for w in q) for q in hits] != theirs:
                raise AssertionError("gensim and jaxemb answer differently")
            correct = len(theirs)
    pairs = zip(rates["jaxemb"], rates["gensim"], strict=True)
    ratios = [ours / theirs for ours, theirs in pairs]
    ratio = {"median": statistics.median(ratios), "low": min(ratios)}
    return {
        "rows": rows,
        "dim": dim,
        "questions_per_second": rates,
        "correct": correct,
        "ratio": {**ratio, "high": max(ratios)},
    }


def comparisons() -> list[dict]:
    """The ratio as `scripts/bench` shows it."""
    result = run()
    ratio, rates = result["ratio"], result["questions_per_second"]
    ours, theirs = (statistics.median(rates[name]) for name in ("jaxemb", "gensim"))
    return [
        {
            "work": f"analogies (3CosAdd), {result['rows']} × {result['dim']}",
            "peer": "gensim",
            "ratio": ratio["median"],
            "low": ratio["low"],
            "high": ratio["high"],
            "target": TARGET,
            "note": f"{ours:,.0f} questions/s (peer {theirs:,.0f}), same answers",
        }
    ]


def _made(rows: int, dim: int) -> tuple[WordVectors, list[Analogy]]:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(rows, dim)).astype(np.float32)
    words = tuple(f"word{i:x}" for i in range(rows))
    chosen = rng.choice(rows, (QUESTIONS["jaxemb"], 4), replace=False)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    planted = chosen[::2]
    target = unit[planted[:, 1]] - unit[planted[:, 0]] + unit[planted[:, 2]]
    matrix[planted[:, 3]] = target + 0.05 * rng.normal(size=target.shape)
    questions = [Analogy(*(words[row] for row in four)) for four in chosen]
    return WordVectors(words, matrix, unique=True), questions


def _print(result: dict) -> None:
    print(f"{result['rows']} x {result['dim']}")
    for name, rates in result["questions_per_second"].items():
        print(f"{name:8}{statistics.median(rates):>10,.1f} questions/s")
    ratio = result["ratio"]
    spread = f"{ratio['low']:.1f} to {ratio['high']:.1f}"
    print(f"ratio {ratio['median']:.1f} ({spread}); {result['correct']} right in both")


if __name__ == "__main__":
    _print(run(*map(int, sys.argv[1:])))
