"""Makes the text's features and the tables, runs the studies of a preset."""

from pathlib import Path

import jax
from etils import epath

from experiments.common.datasets import described
from experiments.common.findings import Findings
from experiments.common.names import at_hand, similarity_lists
from experiments.dynamic_to_static import data, similarity, tagging, windows
from experiments.dynamic_to_static.config import LOADED, PAPER, Config
from experiments.dynamic_to_static.model import Tables
from jaxemb import terminal
from jaxemb.data import sources
from jaxemb.errors import InputError
from jaxemb.train import loop, results


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    config.check()
    if jax.process_count() > 1:
        raise InputError("this experiment runs in one process")
    workdir = Path(config.workdir)
    findings = Findings(paper={} if config.text == "planted" else PAPER)
    text = data.load(config)
    terminal.say(
        f"{len(text.corpus):,} sentences, {len(text.corpus.tokens):,} known words of "
        f"{len(text.corpus.words):,} kinds"
    )
    loop.claim(epath.Path(workdir), _deciding(config, text))
    tables = Tables(config, text)
    parts = [workdir]
    used = [*text.data]
    if "similarity" in config.studies:
        loaded = [name for name in LOADED if name in config.systems]
        used += [described(sources.get(at_hand(name))) for name in loaded]
        similarity.study(config, text, tables, workdir, findings)
    if "windows" in config.studies:
        windows.study(config, text, tables, workdir, findings)
    if "tagging" in config.studies:
        tagged = tagging.study(config, text, tables, workdir, findings)
        parts += tagged.folders
        used += tagged.data
    return findings.publish(
        workdir,
        config,
        _told(config, text),
        [*text.origins, *tables.origins(), *map(results.origin, parts)],
        list({one.name: one for one in used}.values()),
    )


def _deciding(config: Config, text: data.Text) -> dict:
    """What decides the scores that a workdir keeps.

    Not which systems, widths and seeds are scored: each has a file of its own. Taggers
    have folders with configs of their own.
    """
    settings = results.as_json(config)
    for name in ("preset", "run", "studies", "systems", "widths", "kinds", "seeds"):
        del settings[name]
    for name in ("shared", "tagging"):
        del settings[name]
    planted = config.text == "planted"
    return {
        **settings,
        "corpus": text.corpus.sha256,
        "vectors": dict(text.identity),
        "lists": None if planted else similarity_lists(),
    }


def _told(config: Config, text: data.Text) -> dict:
    """What a reader must know of the protocol."""
    return {
        "sentences read": len(text.corpus),
        "words and marks read by the encoder": text.read,
        "words trained on": len(text.corpus.tokens),
        "vocabulary": len(text.corpus.words),
        "encoder width": text.vectors.dim,
        "interval": f"95 %: Student t over {config.seeds} seeds, for claims over "
        "differences paired by seed; one text and one set of tests, whose sampling is "
        "not in it. What is not trained is one figure for all seeds",
    }
