"""The look of the HTML report, and the few elements it is made of."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

from jaxemb.analysis import figures

STYLE = """
:root { color-scheme: light dark;
  --paper: #fff; --panel: #f6f8fa; --line: #d8dee4; --ink: #24292f; --muted: #5d6670;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b8578e; --c4: #c98500;
  --c5: #2b8fc9;
  --good: #116329; --good-bg: #dafbe1; --bad: #a40e26; --bad-bg: #ffebe9;
  --open: #7d4e00; --open-bg: #fff3d1; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #0f1318; --panel: #171c23; --line: #323b46; --ink: #e3e8ee; --muted: #9aa5b1;
  --c0: #58acec; --c1: #f28a44; --c2: #3bc79e; --c3: #dd94bd; --c4: #efb442;
  --c5: #8accf2;
  --good: #7ee2a0; --good-bg: #12351f; --bad: #ff9a94; --bad-bg: #45191b;
  --open: #f2cc7d; --open-bg: #3a2c0c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1.1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .4rem 0 .2rem; }
h2 { font-size: 1.4rem; margin: 3rem 0 .2rem; padding-top: 1.2rem;
  border-top: 2px solid var(--line); overflow-wrap: anywhere; }
h3 { font-size: 1.02rem; margin: 2rem 0 .6rem; }
p { margin: .3rem 0 .8rem; } .note { color: var(--muted); font-size: .9rem; }
a { color: var(--c0); } nav ul { padding-left: 1.2rem; margin: .4rem 0; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { padding: .42rem .75rem; text-align: left; vertical-align: baseline;
  border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; } thead th { background: var(--panel);
  font-weight: 600; color: var(--muted); white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n, td:first-child, td code { white-space: nowrap; }
code, .mono { font: .86em/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr));
  gap: .6rem; margin: 1rem 0; }
.facts div { background: var(--panel); border-radius: 8px; padding: .55rem .8rem; }
.facts dt { color: var(--muted); font-size: .78rem; } .facts dd { margin: 0;
  overflow-wrap: anywhere; }
.claim { display: flex; gap: .8rem; align-items: baseline; padding: .6rem 0;
  border-bottom: 1px solid var(--line); } .claim:last-of-type { border-bottom: 0; }
.claim p { margin: 0; } .claim .note { margin-top: .1rem; }
.tag { flex: none; border-radius: 99px; padding: .1rem .65rem; font-size: .8rem;
  font-weight: 600; white-space: nowrap;
  background: var(--open-bg); color: var(--open); }
.claim .tag { min-width: 7.6rem; text-align: center; }
.tag.supported, .tag.real { background: var(--good-bg); color: var(--good); }
.tag.contradicted { background: var(--bad-bg); color: var(--bad); }
.figures { display: grid; gap: 1rem; margin-top: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); }
figure { margin: 0; padding: .8rem .8rem .5rem; border: 1px solid var(--line);
  border-radius: 8px; min-width: 0; }
figure svg { display: block; width: 100%; max-width: 44rem; height: auto;
  margin: 0 auto; }
figcaption { color: var(--muted); font-size: .88rem; margin-top: .4rem; }
details { border: 1px solid var(--line); border-radius: 8px; margin: .6rem 0; }
summary { cursor: pointer; padding: .5rem .8rem; font-weight: 600; }
details .figures { margin: 0 .8rem .8rem; }
details .scroll { border: 0; border-top: 1px solid var(--line); border-radius: 0; }
@media (max-width: 36rem) { .claim { flex-direction: column; gap: .3rem; }
  th, td { padding: .35rem .5rem; } main { padding: 1rem .8rem 3rem; } }
@media print { details > * { display: block; } figure, tr { break-inside: avoid; } }
"""

# The figures' own colours, each as the page's variable: so they follow light and dark.
COLOURS = {
    figures.INK: "var(--ink)",
    figures.MUTED: "var(--muted)",
    **{colour: f"var(--c{i})" for i, colour in enumerate(figures.PALETTE)},
}


def escape(value: Any) -> str:
    """Text safe in an element and in an attribute."""
    return html.escape(str(value), quote=True)


def document(title: str, body: str) -> str:
    """A whole page that asks nothing of the network."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()
) -> str:
    """A table that scrolls sideways on a narrow screen.

    Args:
      heads: of the columns, as text.
      rows: of cells that are HTML already.
      numbers: the columns to align right.
    """
    right = set(numbers)

    def cells(tag: str, values: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if i in right else ''}>{value}</{tag}>"
            for i, value in enumerate(values)
        )

    head = cells("th", [escape(h) for h in heads])
    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Small labelled boxes; a pair of label and text each."""
    boxes = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in pairs
    )
    return f'<dl class="facts">{boxes}</dl>' if boxes else ""


def tag(text: str) -> str:
    """A coloured word: a verdict or the kind of a data set."""
    return f'<span class="tag {escape(text)}">{escape(text)}</span>'


def figure(svg: str, caption: str = "") -> str:
    """A figure with its caption, the SVG already made safe by `svg.inline`."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{svg}{below}</figure>"


def folded(summary: str, body: str) -> str:
    """Something long that opens on a click."""
    return f"<details><summary>{escape(summary)}</summary>{body}</details>"
