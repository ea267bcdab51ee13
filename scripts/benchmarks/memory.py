"""The most memory that both sides hold, each in a process of its own.

    python scripts/benchmarks/memory.py

The resident peak with the interpreter and the libraries, beside what these held before
the work began. Loading tells its own peak (`load_vectors`).
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from peak import peak_bytes, resident_bytes

THREADS = {
    name: "2" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
}
Work = Callable[[], object]


def _skip_gram(side: str) -> Work:
    import train_vectors

    folder = tempfile.TemporaryDirectory()
    path, text = train_vectors.wikitext(Path(folder.name))
    if side == "jaxemb":
        from jaxemb import static

        objective = static.SkipGram(
            window=train_vectors.WINDOW, negatives=train_vectors.NEGATIVES
        )
        return lambda: train_vectors.Ours(text, objective).rate()
    return lambda: (folder, train_vectors.gensim_rate(path, 1, 2))


def _encoding(side: str) -> Work:
    if side == "jaxemb":
        import growth  # draws its own weights: torch is not in the process

        return growth.encoding(128)
    import encoder

    return encoder.Theirs().encode


def _tuning(side: str) -> Work:
    if side == "jaxemb":
        import perturbed

        from jaxemb import perturb

        step = perturbed.Step(perturb.plain())
        return lambda: [step.take() for _ in range(2)]
    import encoder

    theirs = encoder.Theirs()
    return lambda: [theirs.step() for _ in range(2)]


def _map(side: str) -> Work:
    import spaces

    languages = spaces.languages(spaces.LARGE)
    function = spaces.mapped if side == "jaxemb" else spaces.map_in_numpy
    return lambda: function(*languages)


def _translations(side: str) -> Work:
    import spaces

    languages = spaces.languages(spaces.WORDS)
    if side == "jaxemb":
        from jaxemb.spaces import retrieval

        return lambda: retrieval.csls(*spaces.mapped(*languages), spaces.TOP)
    return lambda: spaces.translate_in_numpy(*spaces.map_in_numpy(*languages))


WORK = {
    "train skip-gram on WikiText-2": (_skip_gram, "gensim"),
    "encode 32 × 128 pieces, MiniLM's shape": (_encoding, "transformers"),
    "two steps of tuning, MiniLM's shape, 32 × 128 pieces": (_tuning, "transformers"),
    "VecMap's supervised map, 200,000 words a side": (_map, "VecMap in numpy"),
    "the map and ten translations a word, 20,000 words a side": (
        _translations,
        "VecMap in numpy",
    ),
}


def rows() -> list[dict]:
    """The peaks of both sides of each work."""
    return [
        {
            "work": work,
            "peer": peer,
            "jaxemb": _in_a_process(work, "jaxemb"),
            "theirs": _in_a_process(work, "theirs"),
        }
        for work, (_, peer) in WORK.items()
    ]


def shown(row: dict) -> dict[str, str]:
    """A row as it is printed."""

    def told(side: dict) -> str:
        return f"{side['peak'] / 1e6:,.0f} ({side['before'] / 1e6:,.0f})"

    return {
        "work": row["work"],
        "jaxemb: peak MB (before)": told(row["jaxemb"]),
        "peer": row["peer"],
        "its peak MB (before)": told(row["theirs"]),
        "share": f"{row['jaxemb']['peak'] / row['theirs']['peak']:.2f}",
    }


def measured(work: str, side: str) -> dict:
    """Works in this process; bytes held before, and the most held."""
    run = WORK[work][0](side)
    before = resident_bytes()
    run()
    return {"before": before, "peak": peak_bytes()}


def _in_a_process(work: str, side: str) -> dict:
    command = [sys.executable, __file__, "--run", work, side]
    done = subprocess.run(
        command, env=os.environ | THREADS, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        print(json.dumps(measured(*sys.argv[2:])))
    else:
        from jaxemb import terminal

        terminal.print_table([shown(row) for row in rows()])
