"""Pruning a small encoder while it is pretrained, tuning it, what presets can be."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.compressing_bert import config as config_lib
from experiments.compressing_bert import data, published, saving, tuned_figures
from experiments.compressing_bert.config import PRESETS, PRUNED
from experiments.compressing_bert.model import (
    BURN_IN,
    DENSE,
    Pretrainer,
    Removal,
    flattened,
)
from experiments.compressing_bert.tuned import best_rate
from experiments.compressing_bert.tuning import (
    UNPRUNED,
    Cell,
    Tuner,
    cells,
    scaled_by_line,
)
from jaxemb import nn, optim, pretrained
from jaxemb.data import sources
from jaxemb.errors import InputError
from jaxemb.optim import masks as masks_lib
from tests import encoders

SMOKE = PRESETS["smoke"][1]
RATE = 1e-3


def test_the_matrices_that_are_pruned_are_those_of_the_paper():
    """72 of the layers and the table of pieces; the pooler is left whole."""
    encoder = nn.TextConfig()  # BERT base
    model = nn.MaskedLM(encoder)
    ids = jnp.ones((1, 2), jnp.int32)
    params = jax.eval_shape(
        lambda: model.init(jax.random.key(0), ids, ids > 0, deterministic=True)
    )["params"]
    chosen = jax.tree.leaves(optim.by_path(PRUNED)(params))
    assert sum(chosen) == 73
    sizes = [x.size for x, c in zip(jax.tree.leaves(params), chosen, strict=True) if c]
    assert sum(sizes) == 12 * (4 * 768**2 + 2 * 768 * 3072) + 30522 * 768


def test_cells_name_the_encoders_they_begin_with():
    found = cells(SMOKE)
    assert [c.label for c in found[:4]] == [
        "pruned 0 %",
        "pruned 60 %",
        "longer 0 %",
        "downstream 0 %",
    ]
    folders = {c.arm: c.encoder.folder for c in found if c.percent}
    assert folders == {
        "pruned": "magnitude-60",
        "deletion": "magnitude-60",
        "longer": "magnitude-60",
        "matched": "magnitude-60",
        "downstream": "dense",
        "random": "random-60",
    }
    assert found[-1].label == "downstream 60 %, after 0 epochs"
    assert UNPRUNED.encoder.folder == Removal("random", 0).folder == "dense"
    short = dataclasses.replace(SMOKE, arms=("random",), dense_epochs=())
    assert {c.arm for c in cells(short)} == {"pruned", "random"}


def test_lines_begin_with_nothing_removed_and_as_many_epochs():
    drawn = tuned_figures.lines(dict.fromkeys(cells(SMOKE), []))
    first = {arm: own[0] for arm, own in drawn.items()}
    longest = Cell("longer", 0)
    assert first == {
        "pruned": UNPRUNED,
        "deletion": longest,
        "longer": longest,
        "matched": longest,
        "downstream": Cell("downstream", 0),
        "random": UNPRUNED,
    }
    assert all(len(own) == 2 for own in drawn.values())


def test_epochs_of_the_paper():
    settings = PRESETS["paper"][1].tuning
    found = {
        cell.label: cell.epochs(settings)
        for cell in (
            Cell("pruned", 90),
            Cell("deletion", 60),
            Cell("longer", 70),
            Cell("downstream", 70),
            Cell("downstream", 80),
        )
    }
    assert list(found.values()) == [3, 13, 15, 5, 7]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"sparsities": (0, 100)}, "--sparsities 100: expected 0 to 99"),
        ({"random_sparsities": (-1,)}, "--random-sparsities -1: expected 0 to 99"),
        ({"sparsities": (10,)}, "expected 0 among them"),
        ({"tasks": ("wnli",), "text": "wikitext-2"}, "--tasks wnli: expected one of"),
        ({"seeds": 0}, "--seeds 0"),
    ],
)
def test_settings_that_make_no_run_are_named(change, problem):
    with pytest.raises(InputError, match=problem):
        dataclasses.replace(SMOKE, **change).check()
    config_lib.PRESETS["paper"][1].check()


def test_figures_of_the_paper_are_by_task():
    """AVG is the mean of the five, in all 40 rows, to what was rounded away."""
    found = published.accuracy()
    average = found.pop("average")
    assert len(average) == 40
    whole = [column for name, column in found.items() if name.startswith("glue-")]
    for name, wanted in average.items():
        mean = np.mean([column[name] for column in whole])
        assert mean == pytest.approx(wanted, abs=0.11), name
    assert found["sst-2"] == found["glue-sst-2"]
    assert set(found) == {*(f"glue-{task}" for task in published.TASKS), "sst-2"}


def test_a_rate_in_the_state_is_that_of_warmup_linear():
    for peak, steps in ((0.3, 25), (2.0, 5)):
        tx, state = scaled_by_line(peak, steps), None
        # Any instance's update serves: the numbers are in the state.
        other = jax.jit(scaled_by_line(9.0, 1).update)
        state = tx.init(None)
        wanted = optim.warmup_linear(peak, steps // 10, steps)
        for number in range(steps + 2):
            scaled, state = other({"w": jnp.ones(2)}, state)
            np.testing.assert_allclose(scaled["w"], wanted(number), rtol=1e-6)


def test_the_best_rate_is_that_of_the_best_mean():
    scores = {1e-5: (50.0, 60.0), 3e-5: (90.0, 40.0), 5e-5: (64.0, 64.0)}

    class Given:
        def score(self, cell, seed, rate):
            return {"score": scores[rate][seed]}

    tuning = dataclasses.replace(SMOKE.tuning, learning_rates=tuple(scores))
    config = dataclasses.replace(SMOKE, tuning=tuning)
    found = best_rate(Given(), UNPRUNED, config)
    assert [one["score"] for one in found] == [90.0, 40.0]
    assert {one["learning rate"] for one in found} == {3e-5}


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """Of the smoke preset, burned in until it has learned something."""
    folder = tmp_path_factory.mktemp("shared")
    # Batches that several devices cannot share: one compiles and runs much faster.
    one = {"batch_size": 31}
    pretraining = dataclasses.replace(
        SMOKE.pretraining, burn_in=400, held_out=465, **one
    )
    return dataclasses.replace(
        SMOKE,
        pretraining=pretraining,
        tuning=dataclasses.replace(SMOKE.tuning, **one),
        run=dataclasses.replace(SMOKE.run, progress=False),
        shared=str(folder),
    )


@pytest.fixture(scope="module")
def pretrainer(config):
    return Pretrainer(config, data.load(config))


@pytest.fixture(scope="module")
def tuner(config, pretrainer, tmp_path_factory):
    world = data.load(config)
    task = data.load_task(config, world, "planted")
    return Tuner(config, world, task, pretrainer, tmp_path_factory.mktemp("tuning"))


def with_head(world, params):
    """The same world, its encoder with these weights and a head that came with them."""
    names = {
        "transform.dense.weight": params["transform"]["kernel"].T,
        "transform.dense.bias": params["transform"]["bias"],
        "transform.LayerNorm.weight": params["transform_norm"]["scale"],
        "transform.LayerNorm.bias": params["transform_norm"]["bias"],
        "bias": params["bias"],
    }
    rest = {f"cls.predictions.{n}": np.asarray(value) for n, value in names.items()}
    given = jax.tree.map(np.asarray, params["encoder"])
    encoder = dataclasses.replace(world.encoder, params=given, rest=rest)
    digest = data.digest_of_weights(encoder)
    return dataclasses.replace(world, encoder=encoder, digest=digest)


@pytest.mark.slow
def test_magnitude_loses_less_than_chance_at_every_sparsity(
    pretrainer, config, tmp_path
):
    """Check 9, its first half, by the path that the experiment takes.

    At a rate at which recovery is little: what is still learned would hide what was
    removed.
    """
    world = with_head(data.load(config), pretrainer.trained(BURN_IN).params)
    little = dataclasses.replace(
        config.pretraining,
        burn_in=1,
        gradual=10,
        recovery=5,
        period=5,
        learning_rate=1e-4,
    )
    own = dataclasses.replace(config, pretraining=little, shared=str(tmp_path))
    pruner = Pretrainer(own, world)
    learned = pruner.loss(BURN_IN)
    assert learned < np.log(world.encoder.config.vocab) - 0.5
    for percent in (30, 60, 90):
        losses = {}
        for criterion in ("magnitude", "random"):
            removal = Removal(criterion, percent)
            losses[criterion] = pruner.loss(removal)
            for mask in pruner.trained(removal).masks.values():
                assert (~mask).sum() == int(mask.size * percent / 100 + 1e-3)
        assert losses["magnitude"] <= losses["random"], percent


def test_an_encoder_of_other_settings_is_not_taken(pretrainer, config):
    assert pretrainer.loss(DENSE) > 0
    world = data.load(config)
    other = dataclasses.replace(config.pretraining, gradual=25)
    changed = dataclasses.replace(config, pretraining=other)
    with pytest.raises(InputError, match="gradual = 20, not 25"):
        Pretrainer(changed, world).loss(DENSE)
    weights = jax.tree.map(lambda x: x + 1, world.encoder.params)
    encoder = dataclasses.replace(world.encoder, params=weights)
    digest = data.digest_of_weights(encoder)
    moved = dataclasses.replace(world, encoder=encoder, digest=digest)
    with pytest.raises(InputError, match="holds a run with encoder = "):
        Pretrainer(config, moved).trained(DENSE)


def test_cut_text_belongs_to_its_tokenizer(tmp_path, monkeypatch):
    """Two folders of one name whose tokenizers differ."""
    monkeypatch.setattr(
        data.readers, "read_wikitext", lambda *_, **__: [["a", "b", "c"] * 40]
    )
    found = types.SimpleNamespace(part=lambda name: name)
    monkeypatch.setattr(data.sources, "get", lambda name: found)
    monkeypatch.setattr(data, "described", lambda *_, **__: None)
    texts, shape = [], {"dim": 8, "layers": 1, "inner": 8, "positions": 32}
    for folder, words in (("one", "abc"), ("two", "cba")):
        place = tmp_path / folder / "encoder"
        pretrained.save_hf(place, encoders.tiny(list(words), **shape))
        shared = {"shared": str(tmp_path / "shared"), "text": "wikitext-2"}
        own = dataclasses.replace(SMOKE, encoder=str(place), **shared)
        texts.append(data.load(own).train)
    assert texts[0].shape == texts[1].shape
    assert (texts[0] != texts[1]).any()
    assert len(list((tmp_path / "shared").glob("text-*.npz"))) == 2


def zeros_of(params):
    chosen = masks_lib.selected(params, PRUNED)
    return {path: np.asarray(value) == 0 for path, value in chosen.items()}


@pytest.mark.parametrize("arm", ["pruned", "longer", "random", "downstream"])
def test_zeros_stay_where_weights_were_removed(tuner, pretrainer, arm):
    cell = Cell(arm, 60)
    params, found = tuner.tuned(cell, 0, RATE)
    zeros = zeros_of(params)
    if arm == "downstream":
        removed = {path: int(0.6 * own.size + 1e-3) for path, own in zeros.items()}
        assert {path: int(own.sum()) for path, own in zeros.items()} == removed
        assert set(found["masks by matrix"]) == set(zeros)
        assert all(0 < x < 48 for x in found["masks by matrix"].values())
    else:
        kept = pretrainer.trained(cell.encoder).masks
        for path, own in zeros.items():
            np.testing.assert_array_equal(own, ~kept[path])
    start, end = (flattened(p) for p in (tuner.start(cell, 0), params))
    assert (start["output/kernel"] != end["output/kernel"]).all()


@pytest.mark.parametrize("arm", ["deletion", "matched"])
def test_zeros_are_filled_where_information_was_deleted(tuner, pretrainer, arm):
    """Check 7, of the arm: it begins as the masked model and ends without zeros."""
    cell = Cell(arm, 60)
    start = tuner.start(cell, 0)
    dense = tuner.start(UNPRUNED, 0)
    kept = pretrainer.trained(Removal("magnitude", 60)).masks
    for path, zeros in zeros_of(start).items():
        np.testing.assert_array_equal(zeros, ~kept[path])
    logits = tuner._passed(start, "held out")[0]
    masked = optim.delete_information(start, kept)
    np.testing.assert_array_equal(logits, tuner._passed(masked, "held out")[0])
    assert (logits != tuner._passed(dense, "held out")[0]).any()
    params, found = tuner.tuned(cell, 0, RATE)
    for path, zeros in zeros_of(params).items():
        if "pieces" not in path:  # of which those that no text has stay
            assert zeros.mean() < 0.01, path
    if arm == "matched":
        assert 1 <= found["epochs"] <= SMOKE.tuning.more_epochs
        wanted = tuner.score(UNPRUNED, 0, RATE)["train loss"]
        assert found["matched"] == (found["train loss"] <= wanted)


def test_matched_stops_with_the_epoch_that_matches(tuner, monkeypatch):
    losses = iter([0.9, 0.4, 0.4])  # after two epochs, and of what is told
    monkeypatch.setattr(tuner, "_train_loss", lambda params: next(losses))
    monkeypatch.setattr(tuner, "score", lambda *_: {"train loss": 0.5})
    found = tuner.tuned(Cell("matched", 60), 0, RATE)[1]
    assert found["epochs"] == 2 and found["matched"]


def test_downstream_goes_on_from_the_dense_run_of_its_seed(tuner):
    """The kept parameters are those that training again gives, bit by bit."""
    tuner.score(UNPRUNED, 0, RATE)
    kept = tuner._dense_file(0, RATE)
    assert kept.exists()
    first = flattened(tuner.tuned(Cell("downstream", 0), 0, RATE)[0])
    kept.unlink()
    again = flattened(tuner.tuned(Cell("downstream", 0), 0, RATE)[0])
    assert kept.exists()
    for path, value in first.items():
        np.testing.assert_array_equal(value, again[path])


def test_tuning_leaves_the_order_of_weights(tuner):
    """Check 9, its second half: masks change far less than by chance."""
    found = tuner.tuned(UNPRUNED, 1, 1e-4)[1]
    for percent in (30, 60, 90):
        chance = 200 * percent / 100 * (1 - percent / 100)
        assert 0 < found[f"mask difference {percent}"] < chance / 5
    assert 0 < found["movement"] < 100 / 3 / 5
    assert np.mean(found["movement by start"]) == pytest.approx(
        np.mean(found["movement by end"]), rel=1e-3
    )  # but for parts that differ by one weight
    by_epoch = found["movement by epoch"]
    assert len(by_epoch) == SMOKE.tuning.epochs
    assert by_epoch[-1] == pytest.approx(found["movement"])


def test_a_head_that_came_with_the_weights_is_used(config):
    world = data.load(config)
    given = pretrained.variables_above(
        world.encoder, nn.MaskedLM(world.encoder.config), jax.random.key(3)
    )["params"]
    given = jax.tree.map(np.asarray, given)
    own = Pretrainer(config, with_head(world, given))
    start, wanted = flattened(own._start(DENSE)), flattened(given)
    assert set(start) == set(wanted)
    for path, value in wanted.items():
        np.testing.assert_array_equal(start[path], value)


def test_the_majority_is_that_of_training(tuner):
    train, held_out = (tuner.task.parts[p]["labels"] for p in ("train", "held out"))
    values, counts = np.unique(train, return_counts=True)
    most = values[counts.argmax()]
    assert tuner.task.majority == pytest.approx(
        100 * sum(x == most for x in held_out) / len(held_out)
    )


def test_smaller_encoders_compute_what_zeros_do(config):
    encoder = data.load(config).encoder
    ids = np.array([[2, 7, 9, 3]], np.int32)

    def states(params, one, given):
        given = jnp.asarray(given)
        how = {"deterministic": True}
        return one.module().apply({"params": params}, given, given >= 0, **how).last

    heads = saving.without_heads(encoder, 50)
    assert heads.encoder.config.kept_heads == (2,)
    words = saving.without_words(encoder, 50)
    assert words.encoder.config.vocab == -(-encoder.config.vocab // 2) + 1
    for small, given in ((heads, ids), (words, words.numbers[ids])):
        found = states(small.encoder.params, small.encoder, given)
        np.testing.assert_allclose(found, states(small.zeros, encoder, ids), atol=1e-5)


@pytest.mark.data
def test_tasks_at_hand_are_read_and_cut():
    names = ("minilm", "sst-2", "mrpc", "sts-benchmark", "rte")
    missing = [name for name in names if sources.locate(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    config = PRESETS["sst-2"][1]
    found = sources.get("minilm")
    encoder = pretrained.load_hf(str(found.part("config").parent))
    none = np.zeros((0, 0))
    world = data.World(encoder, none, none, 103, (), (), "digest")
    held_out = {}
    for name in config_lib.HERE:
        task = data.load_task(config, world, name)
        assert len(task.parts["train"]["labels"]) == 500
        assert task.parts["train"]["ids"].lengths.max() <= 64
        held_out[name] = len(task.parts["held out"]["labels"])
        labels = task.parts["train"]["labels"]
        assert labels.min() == 0 and labels.max() == 1
    assert held_out == {"sst-2": 400, "mrpc": 400, "sts-b": 400, "rte": 277}
