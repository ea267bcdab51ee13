"""Runs the comparisons and prints ratios; a figure is a ratio within one run."""

import json
import os
import pathlib
import platform
import sys

import analogies
import bilstm
import char_bilstm
import crf
import encoder
import growth
import kim_cnn
import load_vectors
import memory
import perturbed
import pruning
import scaling
import similarity
import spaces
import startup
import tagger
import train_vectors

from jaxemb import terminal
from jaxemb.train import results, runtime

KEPT = pathlib.Path(__file__).parent / "results.json"
COMPARISONS = {
    "load_vectors": load_vectors.comparisons,
    "train_vectors": train_vectors.comparisons,
    "analogies": analogies.comparisons,
    "similarity": similarity.comparisons,
    "spaces": spaces.comparisons,
    "bilstm": bilstm.comparisons,
    "crf": crf.comparisons,
    "tagger": tagger.comparisons,
    "kim_cnn": kim_cnn.comparisons,
    "char_bilstm": char_bilstm.comparisons,
    "encoder": encoder.comparisons,
    "perturbed": perturbed.comparisons,
    "pruning": pruning.comparisons,
    "startup": startup.comparisons,
}
COUNTED = {
    "memory": memory,
    "growth": growth,
    "scaling": scaling,
}  # tables of their own, without a peer
NAMES = *COMPARISONS, *COUNTED


def judged(row: dict) -> dict:
    """Adds whether the spread of ratios lies at or above the target."""
    if row["low"] >= row["target"]:
        verdict = "met"
    elif row["high"] < row["target"]:
        verdict = "missed"
    else:
        verdict = "inconclusive"
    return {**row, "verdict": verdict}


def measured(name: str) -> list[dict]:
    """The rows of one of `NAMES`."""
    if name in COUNTED:
        return COUNTED[name].rows()
    return [judged(row) for row in COMPARISONS[name]()]


def shown(row: dict) -> dict[str, str]:
    return {
        "work": row["work"],
        "peer": row["peer"],
        "times the peer": f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
        "target": f"{row['target']:g}",
        "": row["verdict"],
        "note": row["note"],
    }


def cpu() -> str:
    info = pathlib.Path("/proc/cpuinfo")
    names = info.read_text().splitlines() if info.exists() else []
    models = [line.split(": ")[1] for line in names if line.startswith("model name")]
    return f"{os.cpu_count()} × {models[0] if models else platform.processor()}"


def main() -> None:
    wanted = sys.argv[1:] or list(NAMES)
    if wanted == ["--list"]:
        print("\n".join(NAMES))
        return
    for name in wanted:
        if name not in NAMES:
            sys.exit(f"bench: no comparison {name!r}; there are {', '.join(NAMES)}")
    runtime.keep_freed_memory()  # as every experiment does
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in wanted:
        terminal.say(f"measuring {name} …")
        kept[name] = {
            "cpu": cpu(),
            "commit": results.commit(),
            **results.environment(),
            "rows": measured(name),
        }
        kept = {name: kept[name] for name in NAMES if name in kept}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    rows = [shown(r) for n in wanted if n in COMPARISONS for r in kept[n]["rows"]]
    tables = [
        [COUNTED[n].shown(r) for r in kept[n]["rows"]] for n in wanted if n in COUNTED
    ]
    for place, table in enumerate(filter(None, [rows, *tables])):
        if place:
            print()
        terminal.print_table(table)


if __name__ == "__main__":
    main()
