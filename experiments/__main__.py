"""Lists every paper: presets, the data each needs and whether it is here, results."""

import importlib
import json
import pathlib

from jaxemb import terminal
from jaxemb.data import sources

_HERE = pathlib.Path(__file__).parent


def papers() -> list[str]:
    """The folders that hold an experiment."""
    return sorted(path.parent.name for path in _HERE.glob("*/config.py"))


def _data(names: tuple[str, ...]) -> str:
    """The data sets by name; in brackets, how one that is missing would be got."""
    shown = []
    for name in names:
        if name not in sources.DATA_SETS or sources.locate(name):
            shown.append(name)
        elif sources.find(name).wheel:
            shown.append(f"{name} (fetched: {_size(name)})")
        else:
            shown.append(f"{name} (missing)")
    return ", ".join(shown)


def _size(name: str) -> str:
    return terminal.file_size(sources.find(name).size)


def _result(slug: str, preset: str) -> str:
    """The verdicts of the committed results, counted."""
    path = _HERE / slug / "results" / f"{preset}.json"
    if not path.exists():
        return "–"
    verdicts = [claim["verdict"] for claim in json.loads(path.read_text())["claims"]]
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def main() -> None:
    """Prints the list."""
    for slug in papers():
        config = importlib.import_module(f"experiments.{slug}.config")
        print(f"{slug}: {config.TITLE}")
        terminal.print_table(
            [
                {
                    "preset": name,
                    "what": title,
                    "data": _data(preset.data_sets)
                    or ("yours" if name == "custom" else "none: synthetic"),
                    "claims in committed results": _result(slug, name),
                }
                for name, (title, preset) in config.PRESETS.items()
            ]
        )
        print()
    terminal.say(
        "Run one with `python -m experiments.SLUG PRESET`; `--help` after it shows "
        "every setting. `jaxemb data where NAME` says where missing data belong."
    )


if __name__ == "__main__":
    with terminal.until_the_reader_leaves():
        main()
