#!/usr/bin/env python
"""Writes results and benchmarks into READMEs, and draws the results.

python scripts/results_table.py            rewrites the parts between the markers
python scripts/results_table.py RUN…       first takes in the results of finished runs
python scripts/results_table.py --check    exits 1 if one is stale

The project's README has a line for each experiments/*/results/*.json and each row of
scripts/benchmarks/results.json; the README of each experiment has numbers, claims and
figures: results/PRESET.svg is drawn here, from the file's main metric, and
results/PRESET/*.svg are those of the run, copied from its work directory with their
captions. A RUN is a work directory; one of uncommitted code is refused.
"""

import argparse
import hashlib
import importlib
import itertools
import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from jaxemb.errors import InputError  # noqa: E402
from jaxemb.train import results as results_lib  # noqa: E402

BENCHMARKS = ROOT / "scripts" / "benchmarks" / "results.json"
_MARKS = {"supported": "✓", "contradicted": "✗", "inconclusive": "·"}
_MOST = 10  # metrics side by side
_OPEN = 12  # claims; where there are more, a reader opens their list
_DRAWN = 40  # systems in a figure: the best of them


def figure(row: dict) -> str:
    value = row["measured"]
    digits = 3 if abs(value) < 1.5 else 2 if abs(value) < 1000 else 0
    text = f"{value:,.{digits}f}"
    if row["interval"]:
        low, high = row["interval"]
        text += f" [{low:,.{digits}f}, {high:,.{digits}f}]"
    return text


def marks(claims: list[dict]) -> str:
    verdicts = [claim["verdict"] for claim in claims]
    return " ".join(
        f"{mark} {verdicts.count(name)}"
        for name, mark in _MARKS.items()
        if name in verdicts
    )


def data_sets(entries: list[dict], limit: int | None = None) -> str:
    """What was read; how many more there are beyond `limit`."""
    shown = [f"{entry['name']} ({entry['kind']})" for entry in entries[:limit]]
    if more := len(entries) - len(shown):
        shown.append(f"{more} more")
    return ", ".join(shown)


def config_of(results: dict):
    return importlib.import_module(f"experiments.{results['slug']}.config")


def is_lower_better(results: dict, metric: str) -> bool:
    return metric in getattr(config_of(results), "LOWER_IS_BETTER", ())


def main_rows(results: dict) -> tuple[str, list[dict]]:
    """The main metric, which is that of the first row, and its rows."""
    metric = results["rows"][0]["metric"]
    return metric, [row for row in results["rows"] if row["metric"] == metric]


def line(path: pathlib.Path) -> str:
    """One results file in a line: its data, its systems, the verdicts counted."""
    results = json.loads(path.read_text())
    metric, rows = main_rows(results)
    slug, preset = results["slug"], results["preset"]
    absent = getattr(config_of(results), "NOT_HERE", None)  # a part of the paper
    lower = is_lower_better(results, metric)
    best = (min if lower else max)(rows, key=lambda row: row["measured"])
    end = "lowest" if lower else "highest"
    cells = (
        f"[{slug}](experiments/{slug}/README.md) · {preset}"
        + (f" (without {absent})" if absent else ""),
        data_sets(results["data"], 3),
        f"{metric}, {len(rows)} systems: {end} {best['name']}, {figure(best)}",
        marks(results["claims"]),
    )
    return f"| {' | '.join(cells)} |"


def section(path: pathlib.Path) -> list[str]:
    """One results file: systems by metrics as a table, its claims as a list."""
    results = json.loads(path.read_text())
    data = data_sets(results["data"])
    link = f"results/{path.name}"
    cells: dict[str, dict[str, dict]] = {}
    for row in results["rows"]:
        cells.setdefault(row["metric"], {})[row["name"]] = row
    metrics = [metric for metric, by_name in cells.items() if len(by_name) > 1]
    if not 1 <= len(metrics) <= _MOST:
        metrics = leading(cells)
    metrics = results["config"].get("shown", metrics)  # a run may say which
    names = dict.fromkeys(name for metric in metrics for name in cells[metric])
    published = any(
        row["published"] is not None for m in metrics for row in cells[m].values()
    )
    heads = ["", *metrics] + (["published"] if published else [])
    lines = [f"**[{results['preset']}]({link})**, on {data}", ""]
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in names:
        found = [cells[metric].get(name) for metric in metrics]
        shown = [name, *("–" if row is None else figure(row) for row in found)]
        if published:
            known = [row["published"] for row in found if row and row["published"]]
            shown.append(", ".join(f"{value:.2f}" for value in known) or "–")
        lines.append(f"| {' | '.join(shown)} |")
    for metric in (m for m in cells if m not in metrics):
        if len(cells[metric]) == 1:
            [(name, row)] = cells[metric].items()
            lines += ["", f"{name}, {metric}: {figure(row)}"]
    shown_words = neighbours(results["config"].get("neighbours", {}))
    drawings = drawings_of(path, results)
    return [*lines, "", *drawings, *listed(results["claims"]), "", *shown_words]


def leading(cells: dict[str, dict[str, dict]]) -> list[str]:
    """The first metrics, as long as they have the systems of the main one but one."""
    systems = set(next(iter(cells.values())))

    def alike(metric: str) -> bool:
        own = set(cells[metric])
        return own <= systems and len(systems - own) <= 1

    return list(itertools.takewhile(alike, cells))[:_MOST]


def drawings_of(path: pathlib.Path, results: dict) -> list[str]:
    """The figure of the main metric, and those that the run drew, folded."""
    metric, _ = main_rows(results)
    preset = results["preset"]
    lines = [f"![{metric} of {preset}](results/{preset}.svg)", ""]
    if runs := sorted(path.with_suffix("").glob("*.svg")):
        lines += ["<details>", f"<summary>figures of {preset}</summary>", ""]
        for file in runs:
            note = file.with_suffix(".txt")
            caption = note.read_text().strip() if note.exists() else ""
            link = f"results/{preset}/{file.name}"
            lines += [f"![{file.stem.replace('-', ' ')}]({link})", ""]
            lines += [caption, ""] if caption else []
        lines += ["</details>", ""]
    return lines


def selected(results: dict) -> tuple[str, list[dict]]:
    """What is drawn of the main metric: a title, and rows in the order of the file."""
    metric, rows = main_rows(results)
    if len(rows) <= _DRAWN:
        return metric, rows
    sign = 1 if is_lower_better(results, metric) else -1
    best = sorted(rows, key=lambda row: sign * row["measured"])[:_DRAWN]
    return f"{metric}, the best {_DRAWN} of {len(rows)} systems", best


def digest(results: dict) -> str:
    """A line at the end of the drawing that tells whether it is of these rows.

    Drawings themselves differ from one release of matplotlib to the next.
    """
    text = json.dumps(selected(results), sort_keys=True)
    return f"<!-- rows: {hashlib.sha256(text.encode()).hexdigest()} -->\n"


def draw(results: dict) -> str:
    """The main metric of a results file as SVG."""
    from jaxemb.analysis import figures

    title, rows = selected(results)
    return figures.to_svg(figures.intervals(rows, title)) + digest(results)


def neighbours(groups: dict[str, dict[str, dict[str, list[str]]]]) -> list[str]:
    """Nearest words, a line a word of each group, a column a system; folded."""
    if not groups:
        return []
    systems = dict.fromkeys(
        s for words in groups.values() for w in words for s in words[w]
    )
    heads = ["", *systems]
    lines = ["<details>", "<summary>nearest neighbours</summary>", ""]
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for group, words in groups.items():
        for word, by in words.items():
            found = [" ".join(by.get(system, ["–"])) for system in systems]
            lines.append(f"| {' | '.join([f'{group}: {word}', *found])} |")
    return [*lines, "", "</details>", ""]


def listed(claims: list[dict]) -> list[str]:
    """Claims as a list; a long one is folded behind its count."""
    lines = [
        f"- {_MARKS[claim['verdict']]} {claim['verdict']}: {claim['claim']}; "
        f"{claim['evidence']}"
        for claim in claims
    ]
    if len(claims) <= _OPEN:
        return lines
    summary = f"<summary>{len(claims)} claims: {marks(claims)}</summary>"
    return ["<details>", summary, "", *lines, "", "</details>"]


def benchmarks() -> str:
    """The measured ratios to peers, and what a device does as devices are added."""
    kept = json.loads(BENCHMARKS.read_text())
    lines = [
        "| work | peer | times the peer's speed | target | |",
        "|---" * 5 + "|",
    ]
    rows = [row for name in kept for row in kept[name]["rows"] if "ratio" in row]
    for row in rows:
        ratio = f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        met = f"{row['verdict']}; {row['note']}"
        cells = row["work"], row["peer"], ratio, f"{row['target']:g}", met
        lines.append(f"| {' | '.join(cells)} |")
    processors = dict.fromkeys(kept[name]["cpu"] for name in kept)
    return "\n".join([*lines, "", f"On {', '.join(processors)}."]) + "\n"


def counted(name: str) -> str:
    """The table of a benchmark that has no peer."""
    rows = json.loads(BENCHMARKS.read_text()).get(name, {"rows": []})["rows"]
    if not rows:
        return "Not measured yet.\n"
    sys.path.insert(0, str(BENCHMARKS.parent))
    cells = [importlib.import_module(name).shown(row) for row in rows]
    heads = list(cells[0])
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [f"| {' | '.join(cell.values())} |" for cell in cells]
    return "\n".join(lines) + "\n"


def between(text: str, name: str, new: str) -> str:
    """A text with what stands between the markers of that name exchanged."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{new}{end}{after}"


def generated() -> dict[pathlib.Path, dict[str, str]]:
    """README to what stands between its markers, by their name."""
    overview = [
        "| experiment · preset | data | main metric | claims |",
        "|---" * 4 + "|",
    ]
    texts = {}
    for folder in sorted(ROOT.glob("experiments/*/README.md")):
        paths = sorted(folder.parent.glob("results/*.json"))
        overview += [line(path) for path in paths]
        sections = [one for path in paths for one in section(path)]
        whole = "\n".join(sections or ["None committed yet."]).rstrip() + "\n"
        texts[folder] = {"results": whole}
    texts[ROOT / "README.md"] = {
        "results": "\n".join(overview) + "\n",
        "benchmarks": benchmarks(),
    }
    texts[BENCHMARKS.parent / "README.md"] = {
        name: counted(name) for name in ("memory", "growth", "scaling")
    }
    return texts


def take(run: pathlib.Path, experiments: pathlib.Path) -> pathlib.Path:
    """Copies a run's results and figures to where they are committed."""
    found = results_lib.read(run)
    if any(commit.endswith("+changes") for commit in found["commit"].split()):
        raise InputError(f"{run}: ran on uncommitted code; commit it, and run anew")
    folder = experiments / found["slug"] / "results"
    path = folder / f"{found['preset']}.json"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(run / results_lib.FILE, path)
    shutil.rmtree(folder / found["preset"], ignore_errors=True)
    if (run / "figures").is_dir():
        shutil.copytree(run / "figures", folder / found["preset"])
    return path


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Writes results and benchmarks into READMEs, and draws the results."
    )
    parser.add_argument(
        "runs", nargs="*", type=pathlib.Path, metavar="RUN",
        help="work directories of finished runs, whose results are taken in first",
    )  # fmt: skip
    parser.add_argument("--check", action="store_true", help="exit 1 if one is stale")
    asked = parser.parse_args()
    for run in asked.runs:
        try:
            print(take(run, ROOT / "experiments").relative_to(ROOT))
        except InputError as error:
            print(error, file=sys.stderr)
            return 2
    return regenerate(check=asked.check)


def regenerate(*, check: bool) -> int:
    """Writes what is stale, or only tells of it; whether something is."""
    stale = 0
    for path in sorted(ROOT.glob("experiments/*/results/*.json")):
        results = json.loads(path.read_text())
        drawing = path.with_suffix(".svg")
        if drawing.exists() and drawing.read_text().endswith(digest(results)):
            continue
        if check:
            name = drawing.relative_to(ROOT)
            print(f"{name} is stale: run python scripts/results_table.py")
            stale = 1
        else:
            drawing.write_text(draw(results))
    for path, texts in generated().items():
        new = old = path.read_text()
        for name, text in texts.items():
            new = between(new, name, text)
        if not check:
            path.write_text(new)
        elif new != old:
            name = path.relative_to(ROOT)
            print(f"{name} is stale: run python scripts/results_table.py")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
