"""The experiment on components: a user's own table, its mistakes, going on."""

import numpy as np
import pytest

from experiments.common import cli
from experiments.dimensional_properties import data, main, model
from experiments.dimensional_properties.config import PRESETS
from jaxemb.data import sources, synthetic, vectors
from jaxemb.errors import InputError
from jaxemb.eval import logistic
from jaxemb.train import results


def config_of(*arguments):
    return cli.parse("dimensional_properties", PRESETS, list(arguments))


@pytest.fixture(scope="module")
def world():
    return synthetic.planted_components()


@pytest.fixture
def own(world, tmp_path):
    path = tmp_path / "own.vec"
    vectors.write_word_vectors(path, world.vectors)
    return str(path)


def test_a_users_own_table_and_going_on(world, own, tmp_path, monkeypatch):
    last = world.vectors.matrix @ world.directions[:, -8:].astype(np.float32)
    narrow = vectors.WordVectors(world.vectors.words, last)
    vectors.write_word_vectors(tmp_path / "narrow.vec", narrow)
    planted = data.load_tests(config_of("smoke"))
    monkeypatch.setattr(data, "load_tests", lambda config: planted)
    config = config_of(
        *("custom", "--vectors", own, "--workdir", str(tmp_path / "run")),
        *("--folds", "3", "--resamples", "50", "--step", "12", "--no-progress"),
        *("--reduced", "2", "--swept", "0", "1"),
        *("--native", str(tmp_path / "narrow.vec")),
    )
    written = main.run(config)
    assert written == results.read(tmp_path / "run")
    assert written["config"]["dimensions"] == 24
    assert written["config"]["longest_gradient"] <= 1e-6
    rows = {(row["name"], row["metric"]): row for row in written["rows"]}
    planted_task = "planted (100.0 % of words)"
    assert rows["B", planted_task]["measured"] > 90
    assert rows["T", planted_task]["measured"] < 60
    assert rows["commonest class", planted_task]["measured"] == 50
    assert rows["one component", "planted probe, best component"]["measured"] == 21
    # The narrow table has the component that decides, and the first 8 have not.
    assert rows["trained at 8", planted_task]["measured"] > 90
    assert rows["PCA-8", planted_task]["measured"] < 60
    assert {d["name"] for d in written["data"]} >= {"own.vec", "narrow.vec"}
    shares = [rows[block, "share of the variance"]["measured"] for block in "TMB"]
    assert sum(shares) == pytest.approx(1, abs=1e-3)
    for shown in written["config"]["shown"]:
        assert ("full", shown) in rows
    claims = {claim["claim"]: claim["verdict"] for claim in written["claims"]}
    wins = "(b) a block of less variance beats one of more on some of the tasks"
    assert claims[wins] == "supported"
    less = "(a) PCA-8 is less than 1 point below trained at 8: mean accuracy (2 tasks)"
    assert claims[less] == "contradicted"
    drawn = {path.name for path in (tmp_path / "run" / "figures").glob("*.svg")}
    assert drawn == {
        *("cumulative-accuracy.svg", "cumulative-similarity.svg", "variance.svg"),
        *("single-components.svg", "single-components-standardised.svg"),
        *("blocks.svg", "post-processing.svg"),
    }

    def refuse(*arguments, **named):
        raise AssertionError("fitted again")

    monkeypatch.setattr(logistic, "fit", refuse)
    monkeypatch.setattr(logistic, "fit_each", refuse)
    again = main.run(config)
    assert again["rows"] == written["rows"]
    assert again["claims"] == written["claims"]


def test_systems_are_what_they_are_called(world):
    config = config_of("smoke")
    tests = data.load_tests(config)
    table = data.load_table(config, tests.words)
    spaces = dict(model.systems(config, table))
    widths = {name: space.shape[1] for name, space in spaces.items()}
    assert widths["PCA-16"] == 16 and widths["PPA-PCA-12"] == 12
    assert {widths[b] for b in "TMB"} == {8}
    whole = world.vectors.matrix.astype(np.float64)
    order = [world.vectors.index[w] for w in table.vectors.words]
    mean = whole.mean(axis=0, keepdims=True)
    np.testing.assert_allclose(spaces["mean only"], (whole - mean)[order], atol=1e-9)
    scalar = spaces["PPA-5, scalar mean"] - spaces["PPA-5"]
    assert np.abs(scalar - scalar[:1]).max() < 1e-9  # one shift of all rows
    assert np.abs(scalar).max() > 0.01
    every = np.concatenate([spaces[b] for b in "TMB"], axis=1)
    np.testing.assert_allclose(
        every @ every.T, spaces["mean only"] @ spaces["mean only"].T, atol=1e-9
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["custom"], "--vectors: expected a file of word vectors or a data set"),
        (["custom", "--tasks", "MRR"], "--tasks MRR: expected some of MR, CR"),
        (["smoke", "--step", "-1"], "--step -1: expected 0 or more"),
        (["smoke", "--folds", "1"], "--folds 1: expected 2 or more"),
        (["smoke", "--most", "0"], "--most 0: expected 1 or more"),
        (["smoke", "--removed", "25"], "24 dimensions are fewer than --removed"),
        (["smoke", "--reduced", "13"], "24 dimensions are fewer than"),
    ],
)
def test_mistakes_are_named(arguments, problem, tmp_path):
    config = config_of(*arguments, "--workdir", str(tmp_path))
    with pytest.raises(InputError, match=problem):
        main.run(config)


def test_a_table_without_any_word_of_the_tests(tmp_path):
    table = vectors.WordVectors(("qqq", "zzz"), np.eye(2, 4, dtype=np.float32))
    path = tmp_path / "none.vec"
    vectors.write_word_vectors(path, table)
    config = config_of("custom", "--vectors", str(path))
    with pytest.raises(InputError, match="holds no word of any test"):
        data.load_table(config, {"a", "b"})


def test_a_narrower_table_has_to_be_narrower_and_have_the_words(world, own, tmp_path):
    words = set(world.vectors.words)
    config = config_of("custom", "--vectors", own, "--native", own)
    with pytest.raises(InputError, match="holds 600 of 600 words at 24 dimensions"):
        data.load_table(config, words)
    few = vectors.WordVectors(
        world.vectors.words[:9], world.vectors.matrix[:9, :3].copy()
    )
    vectors.write_word_vectors(tmp_path / "few.vec", few)
    config = config_of(
        *("custom", "--vectors", own, "--native", str(tmp_path / "few.vec"))
    )
    with pytest.raises(InputError, match="holds 9 of 600 words at 3 dimensions"):
        data.load_table(config, words)


def test_lists_of_which_too_little_is_known_are_left_out(world, capsys):
    config = config_of("smoke")
    tests = data.load_tests(config)
    table = data.load_table(config, set(world.vectors.words[:20]))
    assert data.covered(tests, table).similarity == ()
    assert "planted pairs: left out" in capsys.readouterr().err


@pytest.mark.data
def test_tasks_of_the_paper():
    config = config_of("glove-100d", "--folds", "3")
    for name in config.data_sets:
        if sources.locate(name) is None:
            pytest.skip(f"needs the data set {name}")
    tests = data.load_tests(config)
    sizes = {test.name: len(test.labels) for test in tests.sentences}
    assert sizes == {
        **{"MR": 10662, "CR": 3775, "SUBJ": 10000, "MPQA": 10606, "SST2": 9613},
        **{"SST5": 11855, "TREC": 5952, "SICK-E": 9927, "MRPC": 5801},
    }
    classes = {test.name: test.classes for test in (*tests.sentences, *tests.probes)}
    assert classes["TREC"] == 6 and classes["SST5"] == 5 and classes["SICK-E"] == 3
    assert classes["TreeDepth"] == 8 and classes["TopConst"] == 20
    assert len(tests.similarity) == 13
    rounds = {test.name: len(test.plan.rounds) for test in tests.sentences}
    assert rounds["MR"] == 3 and rounds["TREC"] == rounds["SST2"] == 1
    tested = {t.name: int(t.plan.rounds[0].test.sum()) for t in tests.sentences}
    assert (tested["TREC"], tested["MRPC"], tested["SICK-E"]) == (500, 1725, 4927)
