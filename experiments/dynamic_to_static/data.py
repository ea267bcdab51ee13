"""The text as words, the encoder's vectors of every place of it, and the tests."""

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from etils import epath

from experiments.common import encoders
from experiments.common.datasets import described, planted
from experiments.dynamic_to_static.config import ANALOGY, SIMILARITY, Config
from jaxemb import pretrained, static
from jaxemb.data import corpus, rows, sources, synthetic
from jaxemb.data.corpus import readers
from jaxemb.eval import kinds
from jaxemb.eval import sources as tests_lib
from jaxemb.train import results

PLANTED = 200  # sentences of the planted text
_SEED = 0  # of the order of sentences, the same for every run

Sentences = Sequence[Sequence[str]]


@dataclasses.dataclass(frozen=True, eq=False)
class Encoder:
    """What makes vectors of sentences."""

    name: str
    model: pretrained.Pretrained | None
    """None: the planted one."""
    layer: int
    data: results.Data | None = None

    def features(
        self, sentences: Sentences, folder: Path, progress: bool
    ) -> pretrained.FeatureCache:
        """A vector for every word of sentences, from the folder if it has them."""
        assert self.model is not None
        with recorded_unless(rows.is_finished(folder), folder):
            return pretrained.cache_features(
                folder, self.model, sentences, layer=self.layer, progress=progress
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Text:
    """What tables are trained on."""

    corpus: corpus.Corpus
    vectors: static.TokenVectors
    """The encoder's, of every known word."""
    input_table: Any
    """From words to the encoder's vectors of them outside any text."""
    encoder: Encoder
    identity: Mapping[str, Any]
    """Of the encoder's vectors, for the configs of runs."""
    read: int
    """Words and marks of the sentences, all of which the encoder reads."""
    folder: Path
    """Where what is made of the text is kept."""
    data: tuple[results.Data, ...]
    origins: tuple[Mapping[str, Any], ...]


def load(config: Config) -> Text:
    """Reads the text, encodes it, or finds both done."""
    if config.text == "planted":
        return _planted(config)
    every, parts = _sentences(config)
    chosen = every[: config.sentences]
    of_each = _of_each(parts, len(chosen))
    shared = Path(config.shared_folder)
    name = f"{config.lengths[0]}-{config.lengths[1]}-{len(chosen)}"
    text_folder = shared / f"text-{name}-{config.min_count}"
    made = shared / f"text-{name}-{config.min_count}-made"
    if not text_folder.exists():
        with results.recorded(made):
            corpus.build(
                (words_of(sentence) for sentence in chosen),
                text_folder,
                min_count=config.min_count,
                progress=config.run.progress,
            )
    text = corpus.open_corpus(text_folder)
    encoder = load_encoder(config)
    whole, own = (
        shared / f"features-{encoder.name}{encoder.layer:+d}-{len(s)}"
        for s in (every, chosen)
    )
    # The whole text's features begin with those of a part of it.
    if rows.is_finished(whole):
        features, folder = encoder.features(every, whole, False), whole
    else:
        features = encoder.features(chosen, own, config.run.progress)
        folder = own
    known = [w in text.index for s in chosen for w in s]
    where = np.flatnonzero(known)
    assert len(where) == len(text.tokens)
    return Text(
        corpus=text,
        vectors=static.TokenVectors(features.rows, where),
        input_table=lambda words: pretrained.token_table(encoder.model, words),
        encoder=encoder,
        identity={k: features.described[k] for k in ("weights", "layer", "pooling")},
        read=sum(map(len, chosen)),
        folder=shared / f"tables-{name}-{config.min_count}",
        data=(*_described(of_each, parts), *filter(None, [encoder.data])),
        origins=(results.origin(made), results.origin(folder)),
    )


def recorded_unless(
    finished: bool, folder: epath.PathLike
) -> contextlib.AbstractContextManager[None]:
    """Records who makes a part, and not who finds it made."""
    return contextlib.nullcontext() if finished else results.recorded(folder)


def words_of(sentence: Sequence[str]) -> list[str]:
    """The words of a sentence without its marks, which only the encoder reads."""
    return [word for word in sentence if any(map(str.isalnum, word))]


def load_encoder(config: Config) -> Encoder:
    """Reads the encoder that a config names."""
    if config.encoder == "planted":
        return Encoder("planted", None, -1)
    model, used = encoders.load(config.encoder)
    return Encoder(Path(config.encoder).name, model, config.layer, used)


def load_tests(config: Config) -> dict[str, tuple[kinds.Test, ...]]:
    """The paper's similarity lists and analogies, by the group they are averaged in."""
    if config.text == "planted":
        pairs = synthetic.planted_senses().pairs
        return {"mean similarity": (kinds.SimilarityTest("planted", pairs),)}
    found = {"mean similarity": tuple(tests_lib.find_tests(list(SIMILARITY)).tests)}
    if "similarity" in config.studies:
        found["mean analogy"] = tuple(tests_lib.find_tests(list(ANALOGY)).tests)
    return found


def _sentences(config: Config) -> tuple[list[list[str]], dict[str, int]]:
    """All sentences in an order of their own, and how many each source gave."""
    low, high = config.lengths
    cache = Path(config.shared_folder) / f"sentences-{low}-{high}.json"
    if cache.exists():
        kept = json.loads(cache.read_text())
        return kept["sentences"], kept["parts"]
    read = {
        "wikitext-2": readers.read_wikitext(lower=True, split=True),
        "brown": readers.read_brown(lower=True),
    }
    lists = {
        name: [list(s) for s in own if low <= len(s) <= high]
        for name, own in read.items()
    }
    every = list(itertools.chain.from_iterable(lists.values()))
    every = [every[i] for i in _order(len(every))]
    parts = {name: len(own) for name, own in lists.items()}
    cache.parent.mkdir(parents=True, exist_ok=True)
    part = cache.with_suffix(".part")
    part.write_text(json.dumps({"sentences": every, "parts": parts}))
    part.rename(cache)
    return every, parts


def _of_each(parts: Mapping[str, int], chosen: int) -> dict[str, int]:
    """How many of the first so many sentences, in their order, each source gave."""
    order = _order(sum(parts.values()))[:chosen]
    ends = np.cumsum(list(parts.values()))
    given = np.bincount(np.searchsorted(ends, order, side="right"), minlength=len(ends))
    return dict(zip(parts, given.tolist(), strict=True))


def _order(count: int) -> np.ndarray:
    return np.random.default_rng(_SEED).permutation(count)


def _described(
    of_each: Mapping[str, int], parts: Mapping[str, int]
) -> list[results.Data]:
    return [
        described(
            sources.get(name),
            size,
            name=f"{name}, "
            + ("all sentences" if size == parts[name] else "some sentences")
            + " of the lengths",
            kind="subset",
        )
        for name, size in of_each.items()
    ]


def _planted(config: Config) -> Text:
    world = synthetic.planted_senses(sentences=PLANTED)
    shared = Path(config.shared_folder)
    if not (shared / "text").exists():
        corpus.build(world.sentences, shared / "text", min_count=1, progress=False)
    text = corpus.open_corpus(shared / "text")
    return Text(
        corpus=text,
        vectors=static.TokenVectors(world.vectors, np.arange(len(text.tokens))),
        input_table=world.types.subset,
        encoder=load_encoder(config),
        identity={"weights": "planted"},
        read=sum(map(len, world.sentences)),
        folder=shared / "tables",
        data=(planted("planted senses", len(world.sentences)),),
        origins=(),
    )
