"""The paper's systems as the experiment assembles them, and checks of its card.

Where each check of section 10 is, tests/static/test_contextual.py tells.
"""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.common import cli
from experiments.common.findings import Findings
from experiments.dynamic_to_static import (
    attended,
    data,
    main,
    model,
    similarity,
    tagged,
    tagging,
    windows,
)
from experiments.dynamic_to_static import config as presets
from jaxemb import pretrained, static
from jaxemb.analysis import contexts
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
        data, "_described", lambda of_each, parts: [results.Data(
            name=name, kind="synthetic", source="x", sha256=None, size=size
        ) for name, size in of_each.items()],
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
    """Ten rows, ours best on seven of nine; the stated gains over the best baseline."""
    columns = [*presets.SIMILARITY.values(), *presets.ANALOGY.values()]
    gains = {}
    for column in columns:
        own = presets.PAPER[column]
        assert len(own) == 10
        best = max(value for name, value in own.items() if name != "ours")
        gains[column] = 100 * (own["ours"] / best - 1)
    assert [c for c in columns if gains[c] <= 0] == ["MSR", "SemEval"]
    stated = {"WS353": 6.5, "WS353R": 8.1, "RW": 13.4, "Google": 4.2}
    for column, gain in stated.items():
        assert gains[column] == pytest.approx(gain, abs=0.15)
    assert max(presets.PAPER["MSR"], key=presets.PAPER["MSR"].get) == "average"
    assert max(presets.PAPER["SemEval"], key=presets.PAPER["SemEval"].get) == "SynGCN"
    assert presets.PAPER["mean similarity"]["SG"] == pytest.approx(54.1, abs=0.01)


def test_sources_are_counted_in_what_was_drawn(small):
    config = dataclasses.replace(small("bert"), sentences=4)
    every, parts = data._sentences(config)
    assert parts == {"wikitext-2": 8, "brown": 1}
    brown = ["the", "cat", "sat"]
    for count in range(1, 10):
        wanted = sum(s == brown for s in every[:count])
        found = data._of_each(parts, count)
        assert found == {"wikitext-2": count - wanted, "brown": wanted}
    text = data.load(config)
    assert sum(one.size for one in text.data[:2]) == 4
    assert text.read == sum(map(len, every[:4]))  # with marks


SMALL = ("--studies", "similarity", "--systems", "SG", "input table", "ours")


def test_a_workdir_keeps_scores_of_one_choice_of_settings(tmp_path, monkeypatch):
    """Other settings are refused, and make tables beside the others; no time twice."""

    def run(*arguments):
        config = config_of(
            "smoke", "--shared", str(tmp_path / "shared"), "--no-progress", *arguments
        )
        return main.run(config)

    inside, recorded = [], results.recorded

    @contextlib.contextmanager
    def alone(folder):
        assert not inside, f"{folder} inside {inside}"
        inside.append(folder)
        with recorded(folder):
            yield
        inside.pop()

    monkeypatch.setattr(results, "recorded", alone)
    first = run(*SMALL, "--workdir", str(tmp_path / "one"), "--seeds", "1")
    with pytest.raises(InputError, match="holds a run with epochs = 2, not 3"):
        run(*SMALL, "--workdir", str(tmp_path / "one"), "--epochs", "3")
    made = sorted(tmp_path.glob("shared/tables/*/*/seed-0"))
    assert len(made) == 2
    origins = [results.origin(folder) for folder in made]
    spent = sum(part["seconds"] for part in origins)
    spent += results.origin(tmp_path / "one")["seconds"]
    assert first["seconds"] == pytest.approx(spent, abs=0.2)

    # What is finished is found, and is not of the commit that found it.
    monkeypatch.setattr(results, "commit", lambda: "later")
    again = run(*SMALL[:-1], "--workdir", str(tmp_path / "two"), "--seeds", "1")
    assert [results.origin(folder) for folder in made] == origins
    rows = {(r["name"], r["metric"]): r["measured"] for r in again["rows"]}
    assert (
        rows.items()
        <= {(r["name"], r["metric"]): r["measured"] for r in first["rows"]}.items()
    )
    run("--studies", "similarity", "--systems", "SG", "--epochs", "3", "--seeds", "1",
        "--workdir", str(tmp_path / "three"))  # fmt: skip
    assert len(sorted(tmp_path.glob("shared/tables/SG/*/seed-0"))) == 2


def test_claims_are_the_papers():
    """Of all that was measured, each in the direction that the paper has it."""
    wanted = list(similarity.claimed())
    assert len(wanted) == len(set(wanted))
    columns = [*presets.SIMILARITY.values(), "Google"]
    others = {*presets.TRAINED, *presets.UNTRAINED, *presets.LOADED}
    for ours in ("ours", "ours, itself"):
        assert {(c, ours, o) for c in columns for o in others} <= set(wanted)
    printed = presets.PAPER
    for metric, better, worse in wanted:
        if {better, worse} <= set(printed.get(metric, ())):
            assert printed[metric][better] > printed[metric][worse]
    systems = {name for _, *both in wanted for name in both}
    assert systems <= set(presets.Config().systems)


def test_claims_compare_seeds_with_what_has_none():
    values = {
        "ours": {"SimLex": [3.0, 4.0, 5.0], "MSR": [1.0, 1.1, 0.9]},
        "SG": {"SimLex": [3.1, 3.9, 5.1]},
        "average": {"SimLex": [9.0], "MSR": [2.0]},
    }
    findings = Findings(paper=presets.PAPER)
    similarity._claims(values, findings)
    found = {one.claim: one for one in findings.claims}
    assert {claim: one.verdict for claim, one in found.items()} == {
        "ours beats SG: SimLex": "inconclusive",
        "ours beats average: SimLex": "contradicted",
        "average beats ours: MSR": "supported",
    }
    evidence = found["ours beats average: SimLex"].evidence
    assert evidence.startswith("paired difference -5 [")
    assert evidence.endswith("3 seeds; in the paper 49.4 against 46.8")


def test_taggers_are_claimed_to_be_equal_and_below_the_encoder():
    scores = {
        "SG": [93.0, 93.1, 93.2],
        "ours": [93.1, 93.3, 93.2],
        "encoder": [94.0, 94.1, 94.2],
    }
    findings = Findings(paper=presets.PAPER)
    tagging._claims("chunking", scores, findings)
    metric = tagging.METRICS["chunking"]
    assert {one.claim: one.verdict for one in findings.claims} == {
        f"encoder beats ours: {metric}": "supported",
        f"ours is less than 0.64 points below SG: {metric}": "supported",
        f"SG is less than 0.64 points below ours: {metric}": "supported",
    }
    scores["ours"] = [96.0, 96.2, 96.1]
    findings = Findings(paper=presets.PAPER)
    tagging._claims("chunking", scores, findings)
    verdicts = [one.verdict for one in findings.claims]
    assert verdicts == ["contradicted", "supported", "contradicted"]


def test_windows_are_compared_in_order_and_by_cost():
    config = config_of("windows", "--widths", "1", "5", "8")
    values = {
        (arm, width): {
            "WS353": [width + gap, width + gap + 0.1],
            windows.SECONDS: [10.0 * width, 11.0 * width],
        }
        for arm, gap in (("attention", 0.5), ("uniform", 0.0), ("scaled", 0.7))
        for width in (1, 5, 8)
    }
    findings = Findings()
    windows._claims(config, values, "WS353", findings)
    windows._costs(values, findings)
    found = [(one.claim, one.verdict) for one in findings.claims]
    assert found == [
        ("a window of 5 beats one of 1: WS353", "supported"),
        ("a window of 8 beats one of 5: WS353", "supported"),
        *(
            (f"attention beats equal weights in a window of {w}: WS353", "supported")
            for w in (1, 5, 8)
        ),
        ("attention beats it with scaled: WS353", "contradicted"),
        (
            "a window of 8 takes 2 times the time of one of 5, or more: the ratio less "
            "that",
            "contradicted",
        ),
    ]  # fmt: skip


def test_what_attends_is_drawn_over_its_window(tmp_path):
    """Systems of equal weights are left out; bins are the same for all others."""
    config = config_of(
        "smoke", "--workdir", str(tmp_path), "--no-progress", "--seeds", "1",
        "--epochs", "1", "--systems", "SG", "ours", "ours, uniform, itself",
    )  # fmt: skip
    text = data.load(config)
    findings = Findings()
    tables = model.Tables(config, text)
    attended.study(config, text, tables, tmp_path, findings)
    drawn = [path.name for path in (tmp_path / "figures").glob("*.svg")]
    assert drawn == ["attention-ours.svg"]
    edges = contexts.frequency_edges(np.asarray(text.corpus.counts))
    assert {row.name for row in findings.rows} == {"ours"}
    assert [int(row.metric.split("-")[-1]) for row in findings.rows] == edges.tolist()


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
        "smoke", "--workdir", str(tmp_path), "--no-progress", "--tagging.epochs", "24",
        "--tagging.learning-rate", "0.03", "--tagging.dropout", "0.0",
    )  # fmt: skip
    taggers = tagging.Taggers(config, "chunking", tmp_path)
    text = data.load(config)
    told = tagging._encoded(config, text, taggers.corpus, "chunking")
    best = taggers.fit("encoder", tagging.Source(told, True, 1.0), 0)
    assert best[tagging.TEST] > 0.9
    assert 1 <= best["epoch"] <= 24
    # Other vectors under the same name do not find this tagger.
    with pytest.raises(InputError, match="holds a run with vectors"):
        taggers.fit("encoder", tagging.Source(told[:, ::-1], True, 1.0), 0)


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
    names = set(presets.OURS)
    names |= {*presets.TRAINED, *presets.UNTRAINED, *presets.LOADED}
    for _, config in presets.PRESETS.values():
        assert set(config.systems) <= names
        assert set(config.kinds) <= set(presets.OURS)
    run = {*presets.PRESETS["similarity"][1].systems}
    assert run | {*presets.PRESETS["windows"][1].kinds} == names
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
