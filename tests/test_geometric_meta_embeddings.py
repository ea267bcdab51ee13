"""The experiment on meta-embeddings: a user's files, unions of words, solvers."""

import numpy as np
import pytest

from experiments.common import cli
from experiments.common.trained import Trainer
from experiments.geometric_meta_embeddings import data, main, model
from experiments.geometric_meta_embeddings.config import PRESETS
from jaxemb.data import synthetic, vectors
from jaxemb.errors import InputError
from jaxemb.eval import kinds, similarity
from jaxemb.spaces import geometric, normalize
from jaxemb.train import results


def config_of(*arguments):
    return cli.parse("geometric_meta_embeddings", PRESETS, list(arguments))


@pytest.fixture
def world():
    return synthetic.planted_sources(num_words=300, tables=3)


@pytest.fixture
def files(world, tmp_path):
    """The second table is narrower, and each lacks some words of the others."""
    paths = []
    for number, table in enumerate(world.tables.values()):
        kept = [w for i, w in enumerate(world.words) if i % 10 != number]
        chosen = table.subset(kept)
        matrix = chosen.matrix[:, : 20 - 4 * (number == 1)]
        one = vectors.WordVectors(chosen.words, np.ascontiguousarray(matrix))
        paths.append(str(tmp_path / f"{number}.vec"))
        vectors.write_word_vectors(paths[-1], one)
    return paths


def test_a_users_own_files(files, world, tmp_path, monkeypatch):
    tests = data.Tests((kinds.SimilarityTest("planted", world.pairs),), ())
    monkeypatch.setattr(data, "load_tests", lambda config: tests)
    config = config_of(
        "custom",
        *("--sources", *files[:2], "--workdir", str(tmp_path / "run")),
        *("--resamples", "50", "--iterations", "20", "--no-progress"),
    )
    written = main.run(config)
    assert written == results.read(tmp_path / "run")
    assert written["config"]["vocabulary"] == 240
    assert written["config"]["widths"] == [20, 16]
    assert written["config"]["latent_width"] == 16
    table = vectors.read_word_vectors(tmp_path / "run" / "geo-avg.txt")
    assert (len(table), table.dim) == (240, 16)
    for name in ("metric-spectrum", "regularisation-path", "benchmark-differences"):
        assert (tmp_path / "run" / "figures" / f"{name}.svg").exists()


def test_tests_that_no_word_covers_are_named_and_left_out(
    files, world, tmp_path, monkeypatch
):
    foreign = tuple(pair._replace(first="xx", second="yy") for pair in world.pairs)
    known = kinds.SimilarityTest("planted", world.pairs)
    unknown = kinds.SimilarityTest("foreign", foreign)
    arguments = ("custom", "--sources", *files[:2], "--workdir", str(tmp_path / "run"))
    arguments += ("--resamples", "50", "--no-progress")
    monkeypatch.setattr(data, "load_tests", lambda _: data.Tests((known, unknown), ()))
    written = main.run(config_of(*arguments))
    assert written["config"]["tests without a covered item"] == ["foreign"]
    assert {one["name"] for one in written["data"]}.isdisjoint({"foreign"})
    assert np.isfinite([row["measured"] for row in written["rows"]]).all()
    monkeypatch.setattr(data, "load_tests", lambda _: data.Tests((unknown,), ()))
    with pytest.raises(InputError, match="cover no item of any test"):
        main.run(config_of(*arguments))


def test_the_union_of_words_has_a_row_for_each(files):
    config = config_of("custom", "--sources", *files, "--words", "union")
    sources = data.load_sources(config)
    assert len(sources.words) == 300
    for matrix in sources.matrices:
        np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1)


def test_inputs_as_the_authors_script_has_them(files):
    config = config_of("custom", "--sources", *files[:2], "--inputs", "code")
    sources = data.load_sources(config)
    np.testing.assert_allclose(np.linalg.norm(sources.matrices[0], axis=0), 1)
    raw = vectors.read_word_vectors(files[1]).lookup(sources.words)
    np.testing.assert_array_equal(sources.matrices[1], raw)


def test_both_solvers_agree_and_three_sources_need_the_second(files):
    equal = {}
    for count in (2, 3):
        config = config_of("custom", "--sources", *files[:count])
        equal[count] = model.equal_width(config, data.load_sources(config))
    closed = model.learn(config_of("custom"), equal[2], 5.0)
    other = config_of("custom", "--solver", "riemannian")
    descended = model.learn(other, equal[2], 5.0)
    assert descended.objective == pytest.approx(closed.objective, rel=1e-9)
    assert descended.iterations is not None
    with pytest.raises(InputError, match="--solver closed: for two sources, not 3"):
        model.learn(config_of("custom"), equal[3], 5.0)
    three = model.learn(other, equal[3], 5.0)
    grams = geometric.Grams.of(equal[3])
    start = geometric.start_for(grams, 5.0)
    assert three.objective <= geometric.objective(start, grams, 5.0)


def test_mistakes_are_named(files):
    with pytest.raises(InputError, match="expected two tables or more, found 1"):
        data.load_sources(config_of("custom", "--sources", files[0]))
    with pytest.raises(InputError, match="is named twice"):
        data.load_sources(config_of("custom", "--sources", files[0], files[0]))


def test_sources_trained_here_are_compared_over_seeds(tmp_path, monkeypatch):
    world = synthetic.planted_topics()
    tests = data.Tests((kinds.SimilarityTest("planted", world.pairs),), ())
    monkeypatch.setattr(data, "load_tests", lambda config: tests)

    def config(seeds):
        return config_of(
            *("trained", "--training.text", "planted", "--training.dim", "8"),
            *("--training.glove-epochs", "3", "--training.skipgram-epochs", "1"),
            *("--training.min-count", "1", "--iterations", "20", "--c", "1"),
            *("--training.seeds", str(seeds), "--workdir", str(tmp_path)),
            "--no-progress",
        )

    first = main.run(config(2))
    [avg] = [r for r in first["rows"] if (r["name"], r["metric"]) == MEAN_OF_AVG]
    assert len(avg["values"]) == 2
    # The figure is that of the two tables as they were left, averaged.
    trainer = Trainer(config(2).training, config(2).run, tmp_path)
    for seed, value in enumerate(avg["values"]):
        units = [normalize.unit(t.matrix) for t in trainer.tables(seed)]
        table = vectors.WordVectors(trainer.text.words, sum(units).astype(np.float32))
        score = similarity.word_similarity(table, world.pairs, resamples=0)
        np.testing.assert_allclose(value, 100 * score.spearman, atol=1e-3)
    kept = [tmp_path / f"seed-{seed}" / "scores.json" for seed in range(2)]
    times = [path.stat().st_mtime_ns for path in kept]
    second = main.run(config(3))
    assert [path.stat().st_mtime_ns for path in kept] == times
    assert len(second["rows"]) == len(first["rows"])
    gaps = [c for c in second["claims"] if c["claim"].startswith("Geo-AVG beats AVG")]
    assert "3 seeds" in gaps[0]["evidence"]
    assert (tmp_path / "figures" / "benchmark-differences.svg").exists()


MEAN_OF_AVG = "AVG", "mean similarity"
