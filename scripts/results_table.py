#!/usr/bin/env python
"""Writes the README's results from experiments/*/results/*.json.

python scripts/results_table.py            rewrites the part between the markers
python scripts/results_table.py --check    exits 1 if it is stale
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
_MARKS = {"supported": "✓", "contradicted": "✗", "inconclusive": "·"}


def figure(row: dict) -> str:
    digits = 3 if abs(row["measured"]) < 1.5 else 2
    text = f"{row['measured']:.{digits}f}"
    if row["interval"]:
        low, high = row["interval"]
        text += f" [{low:.{digits}f}, {high:.{digits}f}]"
    return text


def section(path: pathlib.Path) -> list[str]:
    """One results file: its main metric as a table, its claims as a list."""
    results = json.loads(path.read_text())
    data = ", ".join(f"{d['name']} ({d['kind']})" for d in results["data"])
    name = f"{results['slug']} · {results['preset']}"
    link = path.relative_to(ROOT).as_posix()
    metric = results["rows"][0]["metric"]
    lines = [f"**[{name}]({link})**, on {data}", ""]
    lines += [f"| | {metric}, 95 % interval | published |", "|---|---|---|"]
    for row in results["rows"]:
        if row["metric"] == metric:
            published = "–" if row["published"] is None else f"{row['published']:.2f}"
            lines.append(f"| {row['name']} | {figure(row)} | {published} |")
    lines.append("")
    for claim in results["claims"]:
        mark = _MARKS[claim["verdict"]]
        lines.append(
            f"- {mark} {claim['verdict']}: {claim['claim']}; {claim['evidence']}"
        )
    return [*lines, ""]


def generated() -> str:
    paths = sorted(ROOT.glob("experiments/*/results/*.json"))
    if not paths:
        return "No results are committed yet.\n"
    return "\n".join(line for path in paths for line in section(path))


def main() -> int:
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    new = f"{before}{BEGIN}\n{generated()}{END}{after}"
    if "--check" in sys.argv[1:]:
        if new != text:
            print("README.md is stale: run python scripts/results_table.py")
        return int(new != text)
    README.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
