"""Figures of runs and tables for a web page, in colours that all eyes tell apart.

Each function returns a matplotlib `Figure` that belongs to nobody else (no pyplot, no
global state); `save` writes the same bytes for the same figure. Ink and palette are
fixed colours that the HTML report turns into the page's own, light or dark.
"""

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from etils import epath
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from jaxemb import storage
from jaxemb.analysis.delta import NeighbourShift, NormHistogram
from jaxemb.eval import intervals as statistics

INK = "#24292f"
MUTED = "#6e7781"
# Okabe and Ito's palette without its yellow, which is lost on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
POSITIVE, NEGATIVE, NEUTRAL = PALETTE[0], PALETTE[1], MUTED

_STYLE: Any = {
    "svg.hashsalt": "jaxemb",  # ids in the file depend on it; a fixed one, fixed ids
    "svg.fonttype": "none",  # text stays text: small files, selectable, the page's font
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.unicode_minus": True,
}
_TITLE = 60  # characters in 6 inches, in any font that a page may have
_POINTS = 400  # a curve has no more: finer than a screen shows, and small files


def learning_curves(
    histories: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]], metric: str
) -> Figure:
    """One metric against the step: a line an arm, a band of 95 % over its seeds.

    Args:
      histories: arm to the metric lines of each of its seeds or folds.
      metric: the name to draw; lines without it are passed over.
    """
    figure, axes = plain_figure(6.0, 3.4)
    seeds = 0
    for i, (arm, runs) in enumerate(histories.items()):
        curves = [curve for run in runs if len((curve := _curve(run, metric))[0])]
        if not curves:
            continue
        seeds = max(seeds, len(curves))
        colour = PALETTE[i % len(PALETTE)]
        dashes = _dashes(i)
        steps, values = _on_one_grid(curves)
        mean = values.mean(axis=0)
        marker = "o" if len(steps) < 25 else None
        axes.plot(
            steps, mean, color=colour, linestyle=dashes, label=arm, lw=1.8, zorder=3,
            marker=marker, markersize=3.5,
        )  # fmt: skip
        if len(curves) > 1:
            bands = [statistics.t_interval(column) for column in values.T]
            low, high = [b.low for b in bands], [b.high for b in bands]
            axes.fill_between(steps, low, high, color=colour, alpha=0.15, lw=0)
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    band = f"mean and 95 % band of {seeds} runs" if seeds > 1 else ""
    put_title(figure, metric, band)
    if len(histories) > 1 or seeds > 1:
        _key_below(figure, axes, len(histories))
    return figure


def norm_histogram(
    histogram: NormHistogram, title: str = "row norms of delta"
) -> Figure:
    """How many rows moved how far; rows that are exactly zero are told in words."""
    figure, axes = plain_figure(6.0, 3.0)
    axes.stairs(
        histogram.counts, histogram.edges, fill=True, color=PALETTE[0], alpha=0.85
    )
    if histogram.counts.max(initial=0) > 50:
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(0, histogram.counts.max() * 2)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlim(left=0)
    axes.set_xlabel("norm of the row")
    axes.set_ylabel("words", color=INK)
    rows = f"{histogram.counts.sum():,} non-zero rows"
    put_title(figure, title, f"{rows}, {histogram.zeros:,} exactly zero")
    return figure


def neighbour_shift(shift: NeighbourShift) -> Figure:
    """Slope chart of a word's neighbours: left before, right after, nearest on top.

    A word on both sides is joined by a line. With a polarity lexicon positive words
    are blue with a plus, negative ones orange with a minus.
    """
    rows = max(len(shift.before), len(shift.after), 1)
    figure, axes = plain_figure(6.0, 0.9 + 0.27 * rows)
    signs = {1: "+ ", -1: "− ", 0: ""}
    colours = {1: POSITIVE, -1: NEGATIVE, 0: INK}
    left = {n.word: rank for rank, n in enumerate(shift.before)}
    right = {n.word: rank for rank, n in enumerate(shift.after)}
    for x, side, align, step in (
        (0.0, shift.before, "right", -1),
        (1.0, shift.after, "left", 1),
    ):
        other = right if step < 0 else left
        for rank, neighbour in enumerate(side):
            colour = colours[neighbour.side]
            alone = neighbour.word not in other
            axes.plot(
                [x], [rank], "o", color=colour, markersize=5,
                markerfacecolor="none" if alone and step < 0 else colour,
            )  # fmt: skip
            axes.annotate(
                signs[neighbour.side] + neighbour.word, (x, rank), (step * 10, 0),
                textcoords="offset points", ha=align, va="center", color=colour,
                fontweight="bold" if alone and step > 0 else "normal",
            )  # fmt: skip
            axes.annotate(
                f"{neighbour.cosine:.2f}".replace("-", "−"), (x, rank), (step * 118, 0),
                textcoords="offset points", ha=align, va="center", color=MUTED,
                fontsize=8.5,
            )  # fmt: skip
    for neighbour in shift.before:
        if neighbour.word in right:
            ends = [left[neighbour.word], right[neighbour.word]]
            colour = colours[neighbour.side] if neighbour.side else NEUTRAL
            axes.plot([0.0, 1.0], ends, color=colour, lw=1.4, alpha=0.6, zorder=1)
    for x, text in ((0.0, "before"), (1.0, "after")):
        axes.annotate(
            text, (x, -1), (0, 0), textcoords="offset points", ha="center",
            va="center", color=INK, fontweight="bold",
        )  # fmt: skip
    axes.set_xlim(-1.35, 2.35)
    axes.set_ylim(rows - 0.4, -1.5)
    axes.set_axis_off()
    put_title(figure, f"nearest words of “{shift.word}”", "cosine beside each")
    return figure


class Curve(NamedTuple):
    """A line, and a band around it where `low` and `high` are given."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


def banded(
    x: Sequence[float] | Sequence[int],
    values: Sequence[Sequence[float]] | Float[np.ndarray, "points seeds"],
) -> Curve:
    """A line of means with 95 % bands; `values` has those of all seeds at each x."""
    bands = [statistics.t_interval(point) for point in values]
    means = [band.mean for band in bands]
    if not all(band.known for band in bands):
        return Curve(list(x), means)
    return Curve(list(x), means, [b.low for b in bands], [b.high for b in bands])


def curves(
    lines: Mapping[str, Curve],
    title: str,
    *,
    x_label: str,
    log_x: bool = False,
    log_y: bool = False,
    joined: bool = True,
    levels: Mapping[str, float] | None = None,
    mark_x: float | None = None,
) -> Figure:
    """Lines with their bands over one axis; a key names them if there are several.

    Args:
      lines: name to line; beyond six they differ by their dashes, too.
      title: above the figure.
      x_label: below it.
      log_x: whether the axis is logarithmic.
      log_y: likewise.
      joined: whether points are joined, or stand alone.
      levels: values that do not depend on x, as dotted lines: in the colour of the line
        of the same name, else grey and named in the key.
      mark_x: where an upright line stands.
    """
    many = len(lines) > len(PALETTE)
    figure, axes = plain_figure(6.0, 3.4 + 0.06 * len(lines) * many)
    colours = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(lines)}
    for name, level in (levels or {}).items():
        axes.axhline(
            level,
            color=colours.get(name, MUTED),
            label=None if name in lines else name,
            linestyle=(0, (1, 1.5)),
            lw=1.5,
        )
    for i, (name, line) in enumerate(lines.items()):
        colour = colours[name]
        mark = "o" if len(line.x) <= 40 or not joined else ""
        axes.plot(
            line.x, line.y, marker=mark, markersize=4 if joined else 2.5, lw=1.8,
            color=colour, label=name, linestyle=_dashes(i) if joined else "",
        )  # fmt: skip
        if line.low is not None and line.high is not None:
            axes.fill_between(
                line.x, line.low, line.high, color=colour, alpha=0.18, lw=0
            )
    if mark_x is not None:
        axes.axvline(mark_x, color=MUTED, lw=1.0, linestyle=(0, (4, 2)))
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    axes.set_xlabel(x_label)
    named = len(axes.get_legend_handles_labels()[1])
    if many:
        _key_below(figure, axes, named)
    elif named > 1:
        axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    put_title(figure, title)
    return figure


def heat_map(
    values: Float[np.ndarray, "rows columns"],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    *,
    x_label: str = "",
    y_label: str = "",
) -> Figure:
    """A table of numbers in shades, each written into its field; NaN stays empty."""
    figure, axes = plain_figure(6.0, 1.4 + 0.42 * len(rows))
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    axes.imshow(values, cmap="Blues", aspect="auto", vmin=low, vmax=high)
    for (i, j), value in np.ndenumerate(values):
        if np.isnan(value):
            continue
        dark = value > (low + high) / 2
        axes.text(
            *(j, i, f"{value:.1f}"),
            ha="center",
            va="center",
            fontsize=8,
            color="white" if dark else "black",
        )
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label, color=INK)
    axes.grid(visible=False)
    put_title(figure, title)
    return figure


def joined_words(
    places: Mapping[str, Float[np.ndarray, " two"]],
    pairs: Sequence[tuple[str, str]],
    title: str,
) -> Figure:
    """Words on a plane without scales, those of a pair joined by a line."""
    figure, axes = plain_figure(6.0, 4.6)
    for first, second in pairs:
        ends = np.array([places[first], places[second]])
        axes.plot(*ends.T, color=MUTED, lw=1.0, alpha=0.7, zorder=1)
    for side, (colour, marker) in enumerate(zip(PALETTE, "os", strict=False)):
        for pair in pairs:
            place = tuple(places[pair[side]])
            axes.plot(*place, marker, color=colour, markersize=4.5)
            axes.annotate(
                pair[side], place, (4, 3), textcoords="offset points",
                color=colour, fontsize=8.5,
            )  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.12)
    put_title(figure, title)
    return figure


def boxes(spreads: Mapping[str, Sequence[float]], title: str) -> Figure:
    """Box plots of five numbers each: whisker, quartile, median, quartile, whisker."""
    figure, axes = plain_figure(6.0, 1.0 + 0.4 * max(1, len(spreads)))
    for y, (low, first, median, third, high) in enumerate(spreads.values()):
        axes.plot([low, high], [y, y], color=MUTED, lw=1.2, zorder=1)
        axes.barh(y, third - first, 0.5, first, color=PALETTE[0], alpha=0.45, lw=0)
        axes.plot([median, median], [y - 0.25, y + 0.25], color=PALETTE[1], lw=2.2)
    axes.set_yticks(range(len(spreads)), list(spreads))
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.set_ylim(len(spreads) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    put_title(figure, title)
    return figure


def intervals(rows: Sequence[Mapping[str, Any]], title: str = "") -> Figure:
    """Measured values with their 95 % intervals, one line an arm; see `intervals_key`.

    Args:
      rows: as in `results.json`: name, measured, interval, published. A published
        value that is not None is an upright tick.
      title: above the figure; the metric of the rows unless given.
    """
    figure, axes = plain_figure(6.0, 1.0 + 0.34 * max(1, len(rows)))
    for y, row in enumerate(rows):
        colour = PALETTE[0]
        low_high = row.get("interval")
        if low_high and all(b is not None and math.isfinite(b) for b in low_high):
            axes.plot(low_high, [y, y], color=colour, lw=2.5, alpha=0.45)
            axes.plot(low_high, [y, y], "|", color=colour, markersize=9, mew=1.8)
        if row.get("measured") is not None:
            axes.plot([row["measured"]], [y], "o", color=colour, markersize=6.5)
        if row.get("published") is not None:
            axes.plot(
                [row["published"]], [y], "|", color=NEGATIVE, markersize=17, mew=2.6
            )
    axes.set_yticks(range(len(rows)), [str(row.get("name", "")) for row in rows])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.margins(x=0.08)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    put_title(figure, title or str(rows[0].get("metric", "") if rows else ""))
    return figure


def intervals_key(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the marks of `intervals` mean, for its caption."""
    published = any(row.get("published") is not None for row in rows)
    tick = "; upright tick: published" if published else ""
    return f"Dot and bar: measured, with its 95 % interval{tick}."


def to_svg(figure: Figure) -> str:
    """The figure as SVG text, the same for the same figure: no date, fixed ids.

    On white wherever it is shown by itself; the report has the page's own background.
    """
    stream = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        FigureCanvasSVG(figure).print_svg(
            stream, metadata={"Date": None, "Creator": None}
        )
    return stream.getvalue().replace("<svg ", '<svg style="background: white" ', 1)


def save(figure: Figure, path: epath.PathLike, caption: str = "") -> epath.Path:
    """Writes the SVG, and its caption as `NAME.txt` beside it for the report."""
    path = storage.write_text(path, to_svg(figure))
    if caption:
        storage.write_text(path.with_suffix(".txt"), caption.strip() + "\n")
    return path


def plain_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of so many inches with empty axes, in the style of all."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(MUTED)
    axes.tick_params(colors=MUTED, labelsize=9)
    axes.xaxis.label.set_color(INK)
    axes.grid(color=MUTED, alpha=0.22, lw=0.7)
    axes.set_axisbelow(True)
    return figure, axes


def _dashes(number: int) -> Any:
    """How the line of that number is drawn, once all colours are taken."""
    return ("-", (0, (4, 1.5)), (0, (1, 1)))[number // len(PALETTE) % 3]


def _key_below(figure: Figure, axes: Axes, lines: int) -> None:
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center",
        ncols=min(lines, 3), frameon=False, labelcolor=INK, fontsize=9,
    )  # fmt: skip


def put_title(figure: Figure, name: str, rest: str = "") -> None:
    """A title over the whole width, in as many lines as it needs."""
    lines = [f"{name} · {rest}" if rest else name]
    if len(lines[0]) > _TITLE:
        lines = [line for text in (name, rest) for line in textwrap.wrap(text, _TITLE)]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=10, color=INK)


def _curve(run: Sequence[Mapping[str, Any]], metric: str):
    points = [
        (line["step"], line[metric])
        for line in run
        if isinstance(line.get(metric), int | float) and math.isfinite(line[metric])
    ]
    steps, values = np.array(sorted(points), np.float64).reshape(-1, 2).T
    return steps, values


def _on_one_grid(curves: Sequence[tuple[np.ndarray, np.ndarray]]):
    """Curves at common steps, over the range that all of them have."""
    first = max(steps[0] for steps, _ in curves)
    last = min(steps[-1] for steps, _ in curves)
    grid = np.unique(np.concatenate([steps for steps, _ in curves]))
    inside = grid[(grid >= first) & (grid <= last)]
    grid = inside if inside.size else grid[:1]
    if len(grid) > _POINTS:
        grid = grid[np.linspace(0, len(grid) - 1, _POINTS).astype(int)]
    return grid, np.stack([np.interp(grid, *curve) for curve in curves])
