"""One HTML page from the folders that runs leave behind, with nothing to fetch."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from etils import epath

from jaxemb import storage
from jaxemb.analysis import checkpoint, figures, page, svg
from jaxemb.errors import InputError
from jaxemb.train import checkpoints, results

_REPEAT = re.compile(r"(fold|seed|repeat|run)[-_]?\d+")
_MOST_INTERVALS = 4  # metrics whose intervals are drawn; the rest is folded
_MOST_CURVES = 12  # metrics drawn of one run
_MOST_ARRAYS = 200  # rows of a parameter table


def write(runs: Sequence[epath.PathLike], out: epath.PathLike) -> epath.Path:
    """Writes the report of one or several runs.

    Args:
      runs: folders of runs (or of runs of runs), or `results.json` files. What a run
        lacks is left out of the page.
      out: the HTML file; replaced whole or not at all.

    Raises:
      InputError: for a path with nothing of a run in it.
    """
    sections = [_Section(epath.Path(run), number) for number, run in enumerate(runs)]
    if len(sections) == 1:
        title = sections[0].title
        body = f"<header><h1>{page.escape(title)}</h1></header>\n{sections[0].html()}"
    else:
        title = f"{len(sections)} runs"
        links = "".join(
            f'<li><a href="#run-{s.number}">{page.escape(s.title)}</a></li>'
            for s in sections
        )
        parts = "\n".join(
            f'<section id="run-{s.number}"><h2>{page.escape(s.title)}</h2>\n'
            f"{s.html()}</section>"
            for s in sections
        )
        body = (
            f"<header><h1>{page.escape(title)}</h1></header>\n"
            f"<nav><ul>{links}</ul></nav>\n{parts}"
        )
    return storage.write_text(out, page.document(title, body))


def histories(root: epath.PathLike) -> dict[str, list[list[dict[str, Any]]]]:
    """Metric lines of every run at or below a folder, by arm.

    `delta/fold-3` and `delta/fold-4` are two runs of the arm `delta`; folders named
    fold, seed, repeat or run with a number do not make an arm.
    """
    root = epath.Path(root)
    arms: dict[str, list[list[dict[str, Any]]]] = {}
    for run in checkpoints.runs_below(root):
        if lines := checkpoint.history(run):
            arms.setdefault(_arm(root, run), []).append(lines)
    return arms


class _Section:
    """One run's part of the page."""

    def __init__(self, path: epath.Path, number: int):
        self.number = number
        self.folder = path if path.is_dir() else None
        if self.folder is None and not path.exists():
            raise InputError(f"{path}: no such run")
        has_results = self.folder is None or (path / results.FILE).exists()
        self.results = results.read(path) if has_results else {}
        self.histories = self._in_order_of_rows(histories(path)) if self.folder else {}
        self.shown = checkpoint.newest(path) if self.folder else None
        self.drawings = _drawings(path / "figures") if self.folder else []
        self.config = self.results.get("config") or _read_json(path / "config.json")
        found = self.results or self.histories or self.shown or self.drawings
        if not found and not self.config:
            raise InputError(
                f"{path}: expected a run's folder (results.json, metrics.jsonl, "
                "checkpoints, figures), found none of these"
            )
        slug, preset = self.results.get("slug"), self.results.get("preset")
        name = path.absolute().name if "://" not in str(path) else path.name
        self.title = f"{slug} · {preset}" if slug else name
        self._drawn = 0

    def _in_order_of_rows(self, arms: dict[str, Any]) -> dict[str, Any]:
        """Arms as the results name them first, so that tables and curves agree."""
        names = [row["name"] for row in self.results.get("rows", [])]
        place = {name: names.index(name) for name in arms if name in names}
        ordered = sorted(arms, key=lambda arm: place.get(arm, len(names)))
        return {arm: arms[arm] for arm in ordered}

    def html(self) -> str:
        parts = [
            self._facts(), self._claims(), self._rows(), self._run_figures(),
            self._curves(), self._data(), self._parameters(), self._config(),
        ]  # fmt: skip
        return "\n".join(part for part in parts if part)

    def _facts(self) -> str:
        got = self.results
        versions = got.get("versions", {})
        pairs = [
            ("time", _duration(got["seconds"]) if "seconds" in got else None),
            ("devices", got.get("devices")),
            ("commit", (got.get("commit") or "not known")[:12] if got else None),
            ("software", ", ".join(f"{k} {v}" for k, v in versions.items() if v)),
        ]
        return page.facts((k, str(v)) for k, v in pairs if v)

    def _claims(self) -> str:
        claims = self.results.get("claims", [])
        body = "".join(
            f'<div class="claim">{page.tag(c["verdict"])}<div>'
            f"<p>{page.escape(c['claim'])}</p>"
            f'<p class="note">{page.escape(c["evidence"])}</p></div></div>'
            for c in claims
        )
        return f"<h3>Claims of the paper</h3>\n{body}" if claims else ""

    def _rows(self) -> str:
        rows = self.results.get("rows", [])
        if not rows:
            return ""
        by_metric: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            by_metric.setdefault(row["metric"], []).append(row)
        cells = []
        for metric, group in by_metric.items():
            digits = _digits(group)
            for row in group:
                low_high = row["interval"]
                low_high = low_high and [_number(b, digits) for b in low_high]
                cells.append(
                    [
                        page.escape(row["name"]),
                        page.escape(metric),
                        f"<b>{_number(row['measured'], digits)}</b>",
                        f"[{low_high[0]}, {low_high[1]}]" if low_high else "–",
                        str(len(row["values"])),
                        _number(row["published"], digits),
                        page.escape(row["source"] or "–"),
                    ]
                )
        heads = [
            "name", "metric", "measured", "95 % interval", "values", "published",
            "printed in",
        ]  # fmt: skip
        drawn = [
            self._figure(
                figures.to_svg(figures.intervals(group, metric)),
                figures.intervals_key(group),
            )
            for metric, group in by_metric.items()
            if 1 < len(group) <= 24
        ]
        few, more = drawn[:_MOST_INTERVALS], drawn[_MOST_INTERVALS:]
        rest = page.folded(f"{len(more)} more metrics", _grid(more)) if more else ""
        table = page.table(heads, cells, (2, 3, 4, 5))
        return f"<h3>Results</h3>\n{table}\n{_grid(few)}{rest}"

    def _run_figures(self) -> str:
        drawn = []
        for name, text, caption in self.drawings:
            try:
                drawn.append(self._figure(text, caption))
            except InputError as error:
                raise InputError(f"figures/{name}: {error}") from error
        return f"<h3>Figures</h3>\n{_grid(drawn)}" if drawn else ""

    def _curves(self) -> str:
        names: dict[str, None] = {}
        for runs in self.histories.values():
            for line in (line for lines in runs for line in lines):
                names.update(dict.fromkeys(k for k in line if k != "step"))
        drawn = [
            self._figure(figures.to_svg(figures.learning_curves(self.histories, name)))
            for name in list(names)[:_MOST_CURVES]
        ]
        left_out = list(names)[_MOST_CURVES:]
        note = f'<p class="note">Not drawn: {page.escape(", ".join(left_out))}.</p>'
        if not drawn:
            return ""
        return f"<h3>Learning curves</h3>\n{_grid(drawn)}{note if left_out else ''}"

    def _data(self) -> str:
        sets = self.results.get("data", [])
        rows = [
            [
                page.escape(x["name"]),
                page.tag(x["kind"]),
                page.escape(x["source"]),
                f"{x['size']:,}",
                f"<code>{page.escape(x['sha256'] or '–')}</code>",
            ]
            for x in sets
        ]
        heads = ["name", "kind", "source", "size", "sha256"]
        return f"<h3>Data</h3>\n{page.table(heads, rows, [3])}" if sets else ""

    def _parameters(self) -> str:
        if self.shown is None or self.folder is None:
            return ""
        place = checkpoints.find(self.shown)
        heading = "<h3>Parameters of the newest checkpoint</h3>"
        try:
            found = checkpoint.parameters(checkpoints.load_params(place))
        except InputError as error:  # one damaged file must not cost the whole page
            return f'{heading}\n<p class="note">{page.escape(error)}</p>'
        cells = [p.cells() for p in found[:_MOST_ARRAYS]]
        heads = list(cells[0]) if cells else []
        rows = [[page.escape(row[head]) for head in heads] for row in cells]
        step = f"step {place.name}" if place.name.isdigit() else place.name
        which = _relative(self.shown, self.folder)
        of = f"{which}, {step}" if which else step
        total = sum(p.count for p in found)
        name = f"{len(found)} arrays, {total:,} entries ({of})"
        table = page.folded(name, page.table(heads, rows, range(1, len(heads))))
        return f"{heading}\n{table}"

    def _config(self) -> str:
        rows = [
            [f"<code>{page.escape(k)}</code>", f"<code>{page.escape(v)}</code>"]
            for k, v in _flat(self.config)
        ]
        if not rows:
            return ""
        body = page.table(["field", "value"], rows)
        return f"<h3>Configuration</h3>\n{page.folded(f'{len(rows)} fields', body)}"

    def _figure(self, text: str, caption: str = "") -> str:
        self._drawn += 1
        prefix = f"r{self.number}f{self._drawn}-"
        return page.figure(svg.inline(text, prefix, page.COLOURS), caption)


def _drawings(folder: epath.Path) -> list[tuple[str, str, str]]:
    """Name, text and caption of each figure in a folder."""
    if not folder.is_dir():
        return []
    found = []
    for file in sorted(f for f in folder.iterdir() if f.name.endswith(".svg")):
        beside = folder / f"{file.name.removesuffix('.svg')}.txt"
        caption = checkpoint.read_text(beside).strip() if beside.exists() else ""
        found.append((file.name, checkpoint.read_text(file), caption))
    return found


def _arm(root: epath.Path, run: epath.Path) -> str:
    parts = [p for p in _relative(run, root).split("/") if not _REPEAT.fullmatch(p)]
    return "/".join(p for p in parts if p) or root.name or "run"


def _relative(path: epath.Path, root: epath.Path) -> str:
    relative = path.relative_to(root).as_posix()
    return "" if relative == "." else relative


def _read_json(path: epath.Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from error


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, child in value.items():
            yield from _flat(child, f"{name}.{key}" if name else str(key))
    elif name:
        yield name, value if isinstance(value, str) else json.dumps(value, default=str)


def _grid(drawn: Sequence[str]) -> str:
    return f'<div class="figures">{"".join(drawn)}</div>' if drawn else ""


def _digits(rows: Sequence[Mapping[str, Any]]) -> int:
    return 2 if max(abs(row["measured"]) for row in rows) >= 2 else 4


def _number(value: float | None, digits: int) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.{digits}f}".replace("-", "−")


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
