"""The paper's systems as the experiment assembles them, and checks of its card.

Where each check of section 10 is, tests/static/test_contextual.py tells.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.common import cli
from experiments.dynamic_to_static import config as presets
from experiments.dynamic_to_static import data, main, model, similarity, tagged, tagging
from jaxemb import pretrained, static
from jaxemb.data import batching, sources
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.train import results
from tests import encoders

_SENTENCES = [["a", "cat", ",", "sat", "."], ["the", "cat", "ran", "."]] * 4


def config_of(preset, *arguments):
    return cli.parse(presets.SLUG, presets.PRESETS, [preset, *arguments])


def encoder_of(kind, folder):
    """A tiny encoder of random weights, written as others would and read again."""
    pieces = ["[UNK]", "a", "cat", "sat", "the", "ran"]
    made = encoders.tiny(pieces, kind, dim=8, layers=1, inner=8, positions=16)
    pretrained.save_hf(folder, made)
    return pretrained.load_hf(folder)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A run over eight sentences with an encoder of the user's."""
    texts = {"read_wikitext": _SENTENCES, "read_brown": [["the", "cat", "sat"]]}
    for name, own in texts.items():
        monkeypatch.setattr(
            data.readers, name, lambda own=own, **options: own, raising=True
        )
    monkeypatch.setattr(
        data, "_described", lambda parts, chosen, every: [results.Data(
            name="x", kind="synthetic", source="x", sha256=None, size=len(chosen)
        )],
    )  # fmt: skip

    def make(kind, *arguments):
        folder = tmp_path / kind
        encoder_of(kind, folder)
        return config_of(
            "custom", "--encoder", str(folder), "--workdir", str(tmp_path / "run"),
            "--lengths", "3", "5", "--min-count", "1", "--dim", "4", "--epochs", "1",
            "--groups", "8", "--baseline-groups", "8", "--sample", "0",
            "--no-progress", *arguments,
        )  # fmt: skip

    return make


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_vectors_belong_to_their_words(small, kind, tmp_path):
    """Every known word of the text has the state of its own place in its sentence."""
    config = small(kind)
    text = data.load(config)
    assert set(text.corpus.words) == {"a", "cat", "sat", "the", "ran"}  # no marks
    assert len(text.corpus) == 9
    loaded = pretrained.load_hf(tmp_path / kind)
    before = jax.tree.map(np.copy, loaded.params)
    every, _ = data._sentences(config)
    cutter = pretrained.Cutter.of(loaded)
    wanted = []
    for sentence in every:
        [(ids, _)] = cutter.bare([sentence])
        ids = jnp.asarray([ids])
        encoded = loaded.module().apply(
            {"params": loaded.params}, ids, ids >= 0, deterministic=True
        )
        states = encoded.states[-1][0]
        wanted += [s for s, w in zip(states, sentence, strict=True) if w.isalnum()]
    found = text.vectors(np.arange(len(text.corpus.tokens)))
    np.testing.assert_allclose(found, np.array(wanted), rtol=2e-3, atol=2e-3)
    # Training leaves the encoder as it was, to the bit.
    tables = model.Tables(config, text)
    own = tables.contextual("ours, itself", 0)
    assert np.abs(own.output).max() > 0
    encoder = text.encoder.model
    jax.tree.map(np.testing.assert_array_equal, encoder.params, before)


def test_a_part_of_the_text_has_the_features_of_the_whole(small):
    config = small("bert")
    whole = data.load(config)
    part = data.load(dataclasses.replace(config, sentences=3))
    assert len(part.corpus) == 3 < len(whole.corpus)
    folders = [text.vectors.rows.filename for text in (whole, part)]
    assert folders[0] == folders[1]
    count = len(part.corpus.tokens)
    places = np.arange(count)
    np.testing.assert_array_equal(part.vectors(places), whole.vectors(places))
    words = [part.corpus.words[t] for t in part.corpus.tokens]
    assert words == [whole.corpus.words[t] for t in whole.corpus.tokens[:count]]


def test_every_system_has_the_same_words(small):
    config = small("bert", "--window", "2")
    text = data.load(config)
    tables = model.Tables(config, text)
    found = {s: tables.table(s, 0) for s in ("SG", "input table", "average", "ours")}
    assert {table.words for table in found.values()} == {text.corpus.words}
    pca = tables.table("average, PCA", 0).matrix
    assert pca.shape[1] == config.dim
    # Projections onto the first components keep as much of the products as can be.
    average = found["average"].matrix.astype(np.float64)
    centred = average - average.mean(axis=0)
    kept = np.linalg.svd(centred, compute_uv=False)[: config.dim]
    np.testing.assert_allclose(
        np.linalg.svd(pca, compute_uv=False)[: len(kept)], kept, atol=1e-3
    )
    assert len(tables.origins()) == 2  # of what is trained


def test_the_papers_table_is_read_as_it_is_printed():
    """Best on seven of nine; the stated gains over the best baseline."""
    columns = [*presets.SIMILARITY.values(), *presets.ANALOGY.values()]
    gains = {}
    for column in columns:
        own = presets.PAPER[column]
        best = max(value for name, value in own.items() if name != "ours")
        gains[column] = 100 * (own["ours"] / best - 1)
    assert gains["WS353"] == pytest.approx(6.5, abs=0.15)
    assert gains["WS353R"] == pytest.approx(8.1, abs=0.15)
    assert gains["RW"] == pytest.approx(13.4, abs=0.15)
    assert presets.PAPER["mean similarity"]["SG"] == pytest.approx(54.1, abs=0.01)


def test_scores_are_in_per_cent_with_means_of_their_groups():
    table = WordVectors(
        ("a", "b", "c"), np.array([[1, 0], [1, 0.1], [0, 1]], np.float32)
    )

    class Test:
        kind = "similarity"

        def __init__(self, name, value, covered):
            self.name, self._fields = name, {"spearman": value, "covered": covered}

        def score(self, vectors, settings, tables):
            fields = {**self._fields, "total": 9}
            return similarity.kinds.Outcome(fields, [])

    tests = {
        "mean similarity": [
            Test("EN-WS-353-ALL", 0.5, 4),
            Test("SIMLEX-999", 0.3, 2),
            Test("RW-STANFORD", float("nan"), 0),
        ]
    }
    found, covered = similarity.score(tests, table)
    assert found == pytest.approx(
        {"WS353": 50.0, "SimLex": 30.0, "mean similarity": 40.0}
    )
    assert covered["RW"] == "0 of 9"


def test_the_tagger_reads_what_it_is_given():
    """Rows by type and by place; words without a vector are 0, lengths 5 on average."""
    config = config_of("smoke")
    corpus = tagged.read(config, "chunking")
    known = corpus.words[:5]
    rng = np.random.default_rng(0)
    table = WordVectors(known, rng.normal(size=(5, 3)).astype(np.float32))
    rows, covered = tagged.rows_of(corpus, table)
    assert not rows[0].any() and not rows[6:].any()
    lengths = np.linalg.norm(rows[1:6], axis=1)
    assert lengths.mean() == pytest.approx(5)
    np.testing.assert_allclose(
        lengths / lengths[0], np.linalg.norm(table.matrix, axis=1) /
        np.linalg.norm(table.matrix[0]), rtol=1e-5,
    )  # fmt: skip
    words = [w for own, _ in corpus.parts["test"] for w in own]
    assert covered == pytest.approx(np.mean([w in known for w in words]))
    places = [corpus.columns[p]["places"] for p in ("train", "dev", "test")]
    assert all(isinstance(p, batching.Ragged) for p in places)
    every = np.concatenate([p.values for p in places])
    np.testing.assert_array_equal(every, np.arange(len(every)))


def test_tags_that_the_vectors_tell_are_learnt(tmp_path):
    config = config_of(
        "smoke", "--workdir", str(tmp_path), "--no-progress", "--tagging.epochs", "12",
        "--tagging.learning-rate", "0.03", "--tagging.dropout", "0.0",
    )  # fmt: skip
    taggers = tagging.Taggers(config, "chunking", tmp_path)
    text = data.load(config)
    told = tagging._encoded(config, text, taggers.corpus, "chunking")
    best = taggers.fit("encoder", tagging.Source(told, True, 1.0), 0)
    assert best[tagging.TEST] > 0.9


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--seeds", "0"), "--seeds 0: expected 1 or more"),
        (("--lengths", "9", "3"), "--lengths .*: expected two, ascending"),
        (("--widths", "0"), "--widths .*: expected windows of 1"),
    ],
)
def test_mistakes_are_named(arguments, problem, tmp_path):
    config = config_of("smoke", *arguments, "--workdir", str(tmp_path))
    with pytest.raises(InputError, match=problem):
        main.run(config)


def test_presets_train_what_they_name():
    names = set(presets.OURS) | {*presets.TRAINED, *presets.UNTRAINED}
    for _, config in presets.PRESETS.values():
        assert set(config.systems) <= names
    for settings in presets.OURS.values():
        static.ContextToStatic(**settings)


@pytest.mark.data
def test_the_text_has_a_hundred_thousand_sentences(tmp_path):
    for name in ("wikitext-2", "brown"):
        if sources.locate(name) is None:
            pytest.skip(sources.missing(name))
    config = config_of("custom", "--workdir", str(tmp_path))
    every, parts = data._sentences(config)
    assert len(every) == sum(parts.values()) == 103_586
    assert {10 <= len(s) <= 40 for s in every} == {True}
    again, _ = data._sentences(config)
    assert again == every  # from the file
