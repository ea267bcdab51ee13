"""Pruning a small encoder while it is pretrained, and what its presets can be."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from experiments.compressing_bert import config as config_lib
from experiments.compressing_bert import data
from experiments.compressing_bert.config import PRESETS, PRUNED
from experiments.compressing_bert.model import Arm, Trained
from experiments.compressing_bert.tuning import Cell, Tuner, cells
from jaxemb import losses, nn, optim, pretrained, train
from jaxemb.data import batching, sources
from jaxemb.errors import InputError

SMOKE = PRESETS["smoke"][1]


def test_the_matrices_that_are_pruned_are_those_of_the_paper():
    """72 of the layers, the table of pieces and the pooler: 74, and nothing else."""
    encoder = nn.TextConfig()  # BERT base
    model = nn.MaskedLM(encoder)
    ids = jnp.ones((1, 2), jnp.int32)
    params = jax.eval_shape(
        lambda: model.init(jax.random.key(0), ids, ids > 0, deterministic=True)
    )["params"]
    chosen = jax.tree.leaves(optim.by_path(PRUNED)(params))
    assert sum(chosen) == 74
    sizes = [x.size for x, c in zip(jax.tree.leaves(params), chosen, strict=True) if c]
    assert sum(sizes) == 12 * (4 * 768**2 + 2 * 768 * 3072) + 30522 * 768 + 768**2


def test_cells_name_the_encoders_they_begin_with():
    found = cells(SMOKE)
    assert [c.label for c in found[:2]] == ["pruned 0 %", "pruned 60 %"]
    folders = {c.arm: c.encoder.folder for c in found if c.percent}
    assert folders == {
        "pruned": "magnitude-60",
        "deletion": "magnitude-60",
        "longer": "magnitude-60",
        "downstream": "dense",
        "random": "random-60",
    }
    assert Cell("pruned", 0).encoder.folder == Arm("random", 0).folder == "dense"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"sparsities": (0, 100)}, "--sparsities 100: expected 0 to 99"),
        ({"sparsities": (10,)}, "expected 0 among them"),
        ({"tasks": ("wnli",), "text": "wikitext-2"}, "--tasks wnli: expected one of"),
        ({"seeds": 0}, "--seeds 0"),
    ],
)
def test_settings_that_make_no_run_are_named(change, problem):
    with pytest.raises(InputError, match=problem):
        dataclasses.replace(SMOKE, **change).check()
    config_lib.PRESETS["paper"][1].check()


@pytest.fixture(scope="module")
def burned_in():
    """A small encoder that has learned a planted text, and how a step is made."""
    world = data.load(SMOKE)
    module = nn.MaskedLM(world.encoder.config)

    def each(variables, ids, key):
        mask = jnp.ones(ids.shape, bool)
        hidden = pretrained.mlm_mask(
            key, ids, mask, vocab=world.encoder.config.vocab, mask_id=world.mask_id,
            special_ids=world.special_ids,
        )  # fmt: skip
        logits = module.apply(variables, hidden.ids, mask, deterministic=True)
        loss = losses.softmax_cross_entropy(logits, ids, mask=hidden.chosen)
        return jnp.sum(loss) / jnp.sum(hidden.chosen)

    def loss(variables, batch, key):
        return each(variables, batch["ids"], key), {}

    plan = batching.Shuffled({"ids": world.train}, 64, seed=0)
    tx = optim.keep_zeros(optax.adam(3e-3), where=PRUNED)
    step = jax.jit(train.make_step(loss, tx))

    def run(params, steps):
        state = train.State.create({"params": params}, tx, jax.random.key(1))
        for number in range(steps):
            state, _ = step(state, plan(number))
        return state.params

    held_out = jnp.asarray(world.held_out)
    judge = jax.jit(
        lambda params: each({"params": params}, held_out, jax.random.key(5))
    )
    start = pretrained.variables_above(world.encoder, module, jax.random.key(0))
    return world, run(start["params"], 200), run, judge


def test_magnitude_loses_less_than_chance_at_every_sparsity(burned_in):
    """Check 9, its first half."""
    _, params, run, judge = burned_in
    world = burned_in[0]
    assert judge(params) < np.log(world.encoder.config.vocab) - 0.5  # it has learned
    for share in (0.3, 0.6, 0.9):
        found = {}
        for criterion in ("magnitude", "random"):
            masks = optim.keep_masks(
                params, share, where=PRUNED, criterion=criterion, seed=2
            )
            pruned = run(optim.delete_information(params, masks), 20)
            found[criterion] = float(judge(pruned))
            kept = Trained(pruned, (0.0,)).masks
            for path, mask in masks.items():
                np.testing.assert_array_equal(kept[path], mask)
        assert found["magnitude"] <= found["random"], share


def test_tuning_leaves_the_order_of_weights(burned_in):
    """Check 9, its second half: masks change far less than by chance."""
    world, params, *_ = burned_in
    config = dataclasses.replace(
        SMOKE, tuning=dataclasses.replace(SMOKE.tuning, learning_rate=1e-4)
    )
    tuner = Tuner(config, world, data.load_task(config, world, "planted"))

    class Given:
        def trained(self, arm):
            return Trained(params, (1.0,))

    found = tuner._tuned(Cell("pruned", 0), 0, Given())
    for percent in (30, 60, 90):
        chance = 200 * percent / 100 * (1 - percent / 100)
        assert 0 < found[f"mask difference {percent}"] < chance / 5
    assert 0 < found["movement"] < 100 / 3 / 5
    assert np.mean(found["movement by start"]) == pytest.approx(
        np.mean(found["movement by end"]), rel=1e-3
    )  # but for parts that differ by one weight


@pytest.mark.data
def test_tasks_at_hand_are_read_and_cut():
    names = ("minilm", "sst-2", "mrpc", "sts-benchmark", "rte")
    missing = [name for name in names if sources.locate(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    config = PRESETS["sst-2"][1]
    found = sources.get("minilm")
    encoder = pretrained.load_hf(str(found.part("config").parent))
    world = data.World(encoder, np.zeros((0, 0)), np.zeros((0, 0)), 103, (), ())
    held_out = {}
    for name in config_lib.HERE:
        task = data.load_task(config, world, name)
        assert len(task.parts["train"]["labels"]) == 500
        assert task.parts["train"]["ids"].lengths.max() <= 64
        held_out[name] = len(task.parts["held out"]["labels"])
        labels = task.parts["train"]["labels"]
        assert labels.min() == 0 and labels.max() == 1
    assert held_out == {"sst-2": 400, "mrpc": 400, "sts-b": 400, "rte": 277}
