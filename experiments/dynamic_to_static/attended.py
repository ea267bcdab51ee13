"""Figure 7: what is attended to, in a sentence and by frequency."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.common.findings import Findings
from experiments.dynamic_to_static import data
from experiments.dynamic_to_static.config import OURS, SENTENCE, Config
from experiments.dynamic_to_static.model import Tables
from jaxemb import static
from jaxemb.analysis import contexts, figures

_SENTENCES = 1000  # whose attention is averaged


def study(
    config: Config, text: data.Text, tables: Tables, workdir: Path, findings: Findings
) -> None:
    """A heat map and a row a bin of words, of every system that attends."""
    counts = np.asarray(text.corpus.counts)
    edges = contexts.frequency_edges(counts)
    for system in config.systems:
        if not OURS.get(system, {"attention": False}).get("attention", True):
            continue
        own = tables.contextual(system, 0)
        words, vectors, ids = _sentence(config, text, workdir)
        inside = own.objective.around(len(ids))
        figures.save(
            figures.heat_map(
                np.where(inside, 100 * own.attention(vectors, ids), np.nan),
                words,
                words,
                f"what the row's word attends to (%), {system}",
            ),
            workdir / "figures" / f"attention-{system}.svg",
            "Weights of the words in the window of each row's word, first seed.",
        )
        bins = contexts.attention_by_frequency(_attended(text, own), counts, edges)
        for one in bins:
            if one.places:
                metric = f"attention over equal, words that occur {one.low}-{one.high}"
                findings.add(system, metric, [one.relative])


def _sentence(
    config: Config, text: data.Text, workdir: Path
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """A sentence's known words, the encoder's vectors of them, and their numbers."""
    index = text.corpus.index
    if config.text == "planted":
        ids = np.asarray(text.corpus.tokens[: text.corpus.starts[1]])
        places = np.arange(len(ids))
        return [text.corpus.words[i] for i in ids], text.vectors(places), ids
    words = SENTENCE.split()
    encoded = text.encoder.features([words], workdir / "sentence", False)[0]
    known = [i for i, word in enumerate(words) if word in index]
    ids = np.array([index[words[i]] for i in known])
    return [words[i] for i in known], encoded[known], ids


def _attended(
    text: data.Text, own: static.ContextTables
) -> Iterator[contexts.Attended]:
    starts = np.asarray(text.corpus.starts[: _SENTENCES + 1])
    for start, end in zip(starts, starts[1:], strict=False):
        if end - start > 1:
            ids = np.asarray(text.corpus.tokens[start:end])
            weights = own.attention(text.vectors(np.arange(start, end)), ids)
            yield contexts.Attended(weights, own.objective.around(len(ids)), ids)
