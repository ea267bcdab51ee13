"""The text as words, the encoder's vectors of every place of it, and the tests."""

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common.datasets import described, planted
from experiments.dynamic_to_static.config import ANALOGY, SIMILARITY, Config
from jaxemb import pretrained, static
from jaxemb.data import corpus, sources, synthetic
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
        with results.recorded(folder):
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
    shared = Path(config.shared_folder)
    name = f"{config.lengths[0]}-{config.lengths[1]}-{len(chosen)}"
    text_folder = shared / f"text-{name}-{config.min_count}"
    with results.recorded(shared / f"text-{name}-{config.min_count}-made"):
        if not text_folder.exists():
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
    if _finished(whole):
        features, folder = encoder.features(every, whole, False), whole
    else:
        features = encoder.features(chosen, own, config.run.progress)
        folder = own
    known = [w in text.index for s in chosen for w in s]
    where = np.flatnonzero(known)
    assert len(where) == len(text.tokens)
    made = shared / f"text-{name}-{config.min_count}-made"
    return Text(
        corpus=text,
        vectors=static.TokenVectors(features.rows, where),
        input_table=lambda words: pretrained.token_table(encoder.model, words),
        encoder=encoder,
        identity={k: features.described[k] for k in ("weights", "layer", "pooling")},
        folder=shared / f"tables-{name}-{config.min_count}-{encoder.name}",
        data=(*_described(parts, chosen, every), *filter(None, [encoder.data])),
        origins=(results.origin(made), results.origin(folder)),
    )


def words_of(sentence: Sequence[str]) -> list[str]:
    """The words of a sentence without its marks, which only the encoder reads."""
    return [word for word in sentence if any(map(str.isalnum, word))]


def load_encoder(config: Config) -> Encoder:
    """Reads the encoder that a config names."""
    if config.encoder == "planted":
        return Encoder("planted", None, -1)
    if config.encoder not in sources.DATA_SETS:
        name = Path(config.encoder).name
        model = pretrained.load_hf(config.encoder)
        used = results.Data(
            name=name, kind="real", source="a folder of weights", sha256=None, size=0
        )
        return Encoder(name, model, config.layer, used)
    found = sources.get(config.encoder)
    model = pretrained.load_hf(str(found.part("config").parent))
    return Encoder(config.encoder, model, config.layer, described(found))


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
    order = np.random.default_rng(_SEED).permutation(len(every))
    every = [every[i] for i in order]
    parts = {name: len(own) for name, own in lists.items()}
    cache.parent.mkdir(parents=True, exist_ok=True)
    part = cache.with_suffix(".part")
    part.write_text(json.dumps({"sentences": every, "parts": parts}))
    part.rename(cache)
    return every, parts


def _described(
    parts: Mapping[str, int], chosen: Sentences, every: Sentences
) -> list[results.Data]:
    whole = len(chosen) == len(every)
    return [
        described(
            sources.get(name),
            size,
            name=f"{name}, sentences that fit" + ("" if whole else ", all of them"),
            kind="subset",
        )
        for name, size in parts.items()
    ]


def _finished(folder: Path) -> bool:
    done = folder / "done.npy"
    return done.exists() and bool(np.load(done).all())


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
        folder=shared / "tables",
        data=(planted("planted senses", len(world.sentences)),),
        origins=(),
    )
