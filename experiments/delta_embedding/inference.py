"""Sentence pairs by entailment: the paper's MultiNLI, and what stands in for it."""

from collections.abc import Sequence

import numpy as np

from experiments.common.datasets import described, planted
from experiments.delta_embedding.config import Config
from experiments.delta_embedding.task import Task, counted, ends, fold, numbered
from jaxemb.data import batching, nli, sources, synthetic, tokenize, vocab
from jaxemb.data.nli import SentencePair, SentencePairs
from jaxemb.train import results

_GENRE = "fiction"  # the one that the paper trains on


def load(config: Config) -> Task:
    """Reads the pairs of a task, and those of the sets that it transfers to."""
    if config.planted:
        world = synthetic.planted_inference()
        pairs = [*world.train, *world.test]
        return _encode(config, pairs, (planted("planted pairs", len(pairs)),))
    if config.task == "sick":
        return _sick(config)
    if config.task == "multinli-fiction":
        return _multinli(config)
    found = sources.get("mnli-dev-matched")
    pairs = _read(found, "validation").pairs
    snli, data = _snli(config)
    # Three hypotheses share a premise: they stay in one fold.
    return _encode(
        config,
        pairs,
        (described(found, len(pairs)), data),
        groups=numbered([pair.premise.lower() for pair in pairs]),
        others={"snli": snli},
        notes={"folds_by": "premise: its hypotheses are in one fold"},
    )


def _sick(config: Config) -> Task:
    found = sources.get("sick")
    parts = [_read(found, part).pairs for part in ("train", "validation", "test")]
    pairs = [pair for part in parts for pair in part]
    data = counted(found, len(pairs))
    train, _, test = (
        [(pair.premise.lower(), pair.hypothesis.lower()) for pair in part]
        for part in parts
    )
    seen = set(train)
    again = sum(texts in seen for texts in test)
    return _encode(
        config,
        pairs,
        (data,),
        splits=ends(*map(len, parts)),
        notes={"test_pairs_that_are_in_training": again},
    )


def _multinli(config: Config) -> Task:
    """Trained on a genre, of which a tenth is dev; tested as Table 1 is."""
    found = sources.get("multinli")
    train, matched, mismatched = (_read(found, part) for part in found.data_set.parts)
    labelled = sum(len(part.pairs) for part in (train, matched, mismatched))
    own, genre = train.of_genre(_GENRE), matched.of_genre(_GENRE)
    groups = numbered([pair.premise.lower() for pair in own.pairs])
    # A fold of ten as dev, so that what chooses the epoch is not what is reported.
    rest, chosen, held_out = fold(len(groups), 10, 0, groups)
    test = np.arange(len(genre.pairs)) + len(own.pairs)
    snli, data = _snli(config)
    return _encode(
        config,
        [*own.pairs, *genre.pairs],
        (counted(found, labelled), data),
        splits=(np.concatenate([rest, chosen]), held_out, test),
        others={
            "matched": matched.pairs,
            "mismatched": mismatched.pairs,
            "snli": snli,
        },
        notes={
            "dev": f"a tenth of the {_GENRE} pairs to train on, by premise",
            "unlabelled": matched.unlabelled + mismatched.unlabelled,
        },
    )


def _snli(config: Config) -> tuple[Sequence[SentencePair], results.Data]:
    found = sources.get(config.texts[-1])
    pairs = _read(found, "test").pairs
    return pairs, described(found, len(pairs), kind=_kind_of_test(found))


def _kind_of_test(found: sources.Found) -> str:
    """SNLI's test set is whole in each of its sources."""
    return "real" if found.whole else "subset"


def _read(found: sources.Found, part: str) -> SentencePairs:
    if not found.parts:  # prepared by TFDS
        from jaxemb.data import builders  # TFDS is slow to import

        return builders.sentence_pairs(builders.read(found.data_set.name, part))
    if part in found.parts:
        return nli.read_nli(found.part(part))
    sides = ("premises", "hypotheses", "labels")
    return nli.read_lines_apart(*(found.part(f"{part}-{side}") for side in sides))


def _encode(
    config: Config,
    pairs: Sequence[SentencePair],
    data: tuple[results.Data, ...],
    *,
    others: dict[str, Sequence[SentencePair]] | None = None,
    **more,
) -> Task:
    sets = {"": pairs, **(others or {})}
    cut = {
        name: {
            "premise": [_words(config, pair.premise) for pair in of],
            "hypothesis": [_words(config, pair.hypothesis) for pair in of],
        }
        for name, of in sets.items()
    }
    texts = (text for sides in cut.values() for side in sides.values() for text in side)
    words = vocab.Vocab.build(texts)

    def columns(name: str) -> batching.Columns:
        labels = np.array([pair.label for pair in sets[name]], np.int32)
        sides = {
            side: batching.Ragged.of([words.encode(text) for text in of])
            for side, of in cut[name].items()
        }
        return {**sides, "labels": labels}

    return Task(
        vocab=words,
        columns=columns(""),
        data=data,
        classes=len(nli.LABELS),
        others={name: columns(name) for name in others or ()},
        **more,
    )


def _words(config: Config, text: str) -> tuple[str, ...]:
    return tokenize.english(text)[: config.limits.sentence]
