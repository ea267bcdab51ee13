"""How a score depends on the size of the vocabulary that it is taken over.

A table cut to its most frequent words covers fewer pairs of a similarity list, and the
easier ones: its score rises while its coverage falls.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from jaxemb.analysis import figures
from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors
from jaxemb.eval import lookup, similarity


class SizedScore(NamedTuple):
    """A score of the first rows of a table."""

    rows: int
    score: similarity.Similarity


def sizes_up_to(rows: int) -> list[int]:
    """Numbers of rows for a logarithmic axis: …, 1000, 2000, 4000, 10000, … and all.

    None is less than a hundredth of the table, which covers next to nothing of a list.
    """
    least, steps = max(2, rows // 100), []
    for power in range(len(str(rows))):
        steps += [step * 10**power for step in (1, 2, 4)]
    return [*(size for size in steps if least <= size < rows), rows]


def similarity_by_size(
    vectors: WordVectors,
    pairs: Sequence[WordPair],
    sizes: Sequence[int],
    *,
    case: lookup.Case = "fallback",
    resamples: int = 1000,
    seed: int = 0,
) -> list[SizedScore]:
    """Scores the first rows of a table, for each number of rows.

    Args:
      vectors: a table in order of frequency, as most files are.
      pairs: two words and a human score each.
      sizes: numbers of rows; one beyond the table means all of it.
      case: how words are looked up; see `Case`.
      resamples: of the bootstrap that gives the interval; 0 for none.
      seed: of the resamples.
    """
    found = []
    for size in sizes:
        table = lookup.first_rows(vectors, size)
        score = similarity.word_similarity(
            table, pairs, case=case, resamples=resamples, seed=seed
        )
        found.append(SizedScore(len(table), score))
    return found


def score_by_vocabulary(
    curves: Mapping[str, Sequence[SizedScore]],
    published: Mapping[str, float] | None = None,
    title: str = "Spearman against vocabulary",
) -> Figure:
    """Draws scores against numbers of rows: a line a set, its band the 95 % interval.

    Beside each name stands the coverage at the smallest and at the largest size.

    Args:
      curves: name of a set to its scores; those without a value are passed over.
      published: name of a set to the figure printed elsewhere, drawn as a dashed line.
      title: over the figure.
    """
    figure, axes = figures.plain_figure(6.0, 3.8)
    for i, (name, points) in enumerate(curves.items()):
        points = [p for p in points if not math.isnan(p.score.spearman)]
        if not points:
            continue
        colour = figures.PALETTE[i % len(figures.PALETTE)]
        marker = "os^D"[i // len(figures.PALETTE) % 4]
        rows = [p.rows for p in points]
        ends = [f"{p.score.covered}/{p.score.total}" for p in (points[0], points[-1])]
        axes.plot(
            rows, [p.score.spearman for p in points], color=colour, lw=1.8, zorder=3,
            marker=marker, markersize=3.5, label=f"{name} ({' to '.join(ends)} pairs)",
        )  # fmt: skip
        low, high = [p.score.low for p in points], [p.score.high for p in points]
        axes.fill_between(rows, low, high, color=colour, alpha=0.12, lw=0)
        if published and name in published:
            axes.axhline(published[name], color=colour, lw=1.2, linestyle=(0, (4, 2)))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 4.0)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("most frequent words of the table")
    figures.put_title(figure, title, "dashed: published" if published else "")
    if axes.get_legend_handles_labels()[0]:
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=1,
            frameon=False, labelcolor=figures.INK, fontsize=9,
        )  # fmt: skip
    return figure
