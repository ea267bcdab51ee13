"""The paper's systems as the experiment assembles them, on every kind of device."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from etils import epath
from jax.sharding import NamedSharding, PartitionSpec

from experiments.common import cli
from experiments.delta_embedding import (
    analyse,
    claims,
    data,
    finished,
    main,
    model,
    paper,
    task,
    tuned,
)
from experiments.delta_embedding import config as presets
from experiments.delta_embedding.config import Config, Model, arm
from jaxemb import nn, optim, train
from jaxemb.analysis import cost
from jaxemb.data import batching, sources, synthetic, vocab
from jaxemb.data.vectors import WordVectors, read_word_vectors
from jaxemb.errors import InputError
from jaxemb.train import results

VOCAB, DIM, BATCH = 40, 8, 16
KINDS = {
    "cnn": Config(model=Model(kind="cnn", maps=4), learning_rate=1.0),
    "lstm": Config(
        model=Model(kind="lstm", hidden=4, norm_limit=None),
        optimizer="adam",
        learning_rate=1e-2,
    ),
    "esim": Config(
        task="planted-pairs",
        model=Model(kind="esim", hidden=4, norm_limit=None),
        optimizer="adam",
        learning_rate=1e-2,
    ),
    "bidaf": Config(
        task="planted-questions",
        model=Model(kind="bidaf", hidden=4, norm_limit=None, ema=0.9),
        learning_rate=0.5,
    ),
}
WORDS = vocab.Vocab((vocab.PAD, vocab.UNK, *(f"w{i}" for i in range(2, VOCAB))))


def system(kind, name, **changes):
    config = KINDS[kind]
    config = dataclasses.replace(
        config, model=dataclasses.replace(config.model, **changes)
    )
    example = task.Task(WORDS, {}, (), classes=3 if kind == "esim" else 2)
    module = model.build(config, arm(name), example, DIM)
    table = np.random.default_rng(0).normal(size=(VOCAB, DIM)).astype(np.float32)
    table[0] = 0
    tx = model.optimizer(config, arm(name), 100)
    init_key, train_key = jax.random.split(jax.random.key(0))
    state = train.State.create(
        model.initializer(module, table)(init_key), tx, train_key
    )
    return module, train.make_step(model.loss_fn(module), tx), state


def batch(number, size=BATCH, kind="cnn"):
    """Of every kind of task: the columns that one does not know do no harm."""
    rng = np.random.default_rng(number)
    tokens = rng.integers(1, VOCAB, (size, 12)).astype(np.int32)
    tokens *= np.arange(12) < rng.integers(3, 12, (size, 1))  # right padding
    columns = {"tokens": tokens, "labels": rng.integers(0, 2, size).astype(np.int32)}
    if kind in ("cnn", "lstm"):
        return columns
    names = ("premise", "hypothesis") if kind == "esim" else ("context", "question")
    ends = {end: rng.integers(0, 3, size).astype(np.int32) for end in ("start", "end")}
    return {
        "labels": columns["labels"],
        **ends,
        names[0]: tokens,
        names[1]: tokens[:, :6],
    }


def run(step, state, mesh, mode="jit", steps=10, kind="cnn"):
    step = train.data_parallel(step, mesh, mode=mode)
    state = step.place(state)
    for number in range(steps):
        state, metrics = step(state, batch(number, kind=kind))
        jax.block_until_ready(metrics)
    return jax.device_get((state, metrics))


@pytest.mark.parametrize(
    ("kind", "name", "mode"),
    [
        ("cnn", "delta-1e-4", "jit"),
        ("cnn", "delta-1e-4", "pmap"),
        ("lstm", "prox-1e-4", "jit"),
        ("bidaf", "delta-1e-4", "jit"),
    ],
)
def test_eight_devices_equal_one(mesh, kind, name, mode):
    _, step, state = system(kind, name)
    steps = 3 if kind == "bidaf" else 10  # one after the other on virtual devices
    alone, alone_metrics = run(
        step, state, train.make_mesh(jax.devices()[:1]), steps=steps, kind=kind
    )
    spread, spread_metrics = run(step, state, mesh, mode, steps, kind)
    for one, other in [
        (alone.params, spread.params),
        (alone_metrics, spread_metrics),
        *zip(
            *(optim.all_ema_params(s.opt_state) for s in (alone, spread)), strict=True
        ),
    ]:
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=0), one, other
        )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("cnn", "finetune"),
        ("cnn", "delta-1e-4"),
        ("lstm", "fixed"),
        ("lstm", "prox-1e-4"),
        ("esim", "delta-1e-4"),
        ("bidaf", "prox-1e-4"),
    ],
)
def test_every_step_lowers_for_accelerators(kind, name):
    _, step, state = system(kind, name)
    step = train.data_parallel(step, train.make_mesh(jax.devices()[:1]))
    lowered = step.lower(
        step.place(state), batch(0, kind=kind), lowering_platforms=("tpu", "cuda")
    )
    assert "stablehlo.dot_general" in lowered.as_text()


@pytest.mark.parametrize("kind", ["cnn", "lstm"])
def test_only_gradients_and_metrics_travel(mesh, kind):
    _, step, state = system(kind, "delta-1e-4")
    step = train.data_parallel(step, mesh)
    state = step.place(state)
    text = step.lower(state, batch(0)).compile().as_text()
    gradients = sorted(sorted(leaf.shape) for leaf in jax.tree.leaves(state.params))
    found = cost.collectives(text)
    assert {one.kind for one in found} == {"all-reduce"}
    moved = [sorted(shape) for one in found for shape in one.shapes]
    assert sorted(shape for shape in moved if shape) == gradients
    assert moved.count([]) <= 3  # loss, task loss, accuracy


@pytest.mark.parametrize("kind", ["cnn", "lstm"])
def test_flops_fall_with_the_number_of_devices(kind):
    """Forward and backward, whose cost the examples share; the update is on each."""
    module, _, state = system(kind, "fixed")
    loss = model.loss_fn(module)

    def flops(count):
        mesh = train.make_mesh(jax.devices()[:count])
        whole = NamedSharding(mesh, PartitionSpec())
        gradient = jax.jit(
            jax.grad(lambda p, b: loss({**state.variables, "params": p}, b, KEY)[0]),
            in_shardings=(whole, NamedSharding(mesh, PartitionSpec("data"))),
            out_shardings=whole,
        )
        lowered = gradient.lower(state.params, batch(0, 512))
        return lowered.compile().cost_analysis()["flops"]

    assert 0.9 < 8 * flops(8) / flops(1) < 1.1


KEY = jax.random.key(0)


@pytest.mark.parametrize("kind", ["cnn", "lstm"])
def test_bfloat16_trains_in_float32_parameters(kind):
    _, step, state = system(kind, "delta-1e-4", dtype="bfloat16")
    exact = jax.jit(system(kind, "delta-1e-4")[1])(state, batch(0))[1]["loss"]
    state, metrics = jax.jit(step)(state, batch(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(state.params)} == {
        jnp.dtype("float32")
    }
    assert metrics["loss"].dtype == jnp.float32
    np.testing.assert_allclose(metrics["loss"], exact, rtol=0.05)


def test_arms_start_from_the_same_function():
    logits = {}
    for name in ("fixed", "finetune", "delta-1e-4"):
        module, _, state = system("cnn", name)
        tokens = {"tokens": jnp.asarray(batch(0)["tokens"])}
        logits[name] = module.apply(state.variables, tokens, deterministic=True)
    np.testing.assert_array_equal(logits["fixed"], logits["finetune"])
    np.testing.assert_array_equal(logits["fixed"], logits["delta-1e-4"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("cnn", "delta-1e-4"),
        ("lstm", "prox-1e-4"),
        ("esim", "prox-1e-4"),
        ("bidaf", "delta-1e-4"),
    ],
)
def test_the_base_table_and_unseen_rows_stay_as_they_were(kind, name):
    """Check 6 of the card."""
    module, step, state = system(kind, name)
    step = jax.jit(step)
    new, seen = state, {0}
    for number in range(3):
        examples = batch(number, kind=kind)
        for text in module.texts:
            examples[text] = np.minimum(examples[text], 20)
            seen |= set(examples[text].flat)
        new, _ = step(new, examples)
    base = new.frozen["frozen"]["embed"]["base"]
    np.testing.assert_array_equal(base, state.frozen["frozen"]["embed"]["base"])
    delta = np.asarray(new.params["embed"]["delta"])
    unseen = sorted(set(range(VOCAB)) - seen)
    assert unseen
    assert not delta[unseen].any()
    assert not delta[0].any()
    moved = np.abs(delta[sorted(seen - {0})]).max(axis=1)  # nan where any is
    assert np.isfinite(moved).all() and (moved > 0).all()


def trained(kind, name, steps=5):
    """The module and its state after some steps, and the metrics of the last one."""
    module, step, state = system(kind, name)
    step = jax.jit(step)
    for number in range(steps):
        state, metrics = step(state, batch(number, kind=kind))
    return module, state, metrics


def beside_the_table(state):
    return {name: of for name, of in state.params.items() if name != "embed"}


@pytest.mark.parametrize("kind", ["cnn", "lstm"])  # Adadelta, Adam
def test_a_penalty_of_no_weight_equals_finetuning(kind):
    """Check 3 of the card, in the penalty's form and with a real host."""
    _, delta, ours = trained(kind, "delta-0")
    _, finetune, theirs = trained(kind, "finetune")
    table = finetune.params["embed"]["table"]
    assert np.abs(np.asarray(delta.params["embed"]["delta"])).max() > 1e-3
    tuned_by_delta = nn.effective_table(delta.params, delta.frozen["frozen"])
    np.testing.assert_allclose(tuned_by_delta, table, rtol=1e-4, atol=1e-5)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
        *map(beside_the_table, (delta, finetune)),
    )
    for key in ("task_loss", "accuracy"):
        np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-4)


@pytest.mark.parametrize("weight", ["1e30", "inf"])
def test_an_infinite_weight_with_prox_equals_fixed(weight):
    """Check 4 of the card: the delta stays at 0 and the numbers are those of fixed."""
    module, state, metrics = trained("cnn", "fixed")
    prox_module, prox_state, prox_metrics = trained("cnn", f"prox-{weight}")
    assert not np.asarray(prox_state.params["embed"]["delta"]).any()
    for key in ("loss", "accuracy"):
        assert metrics[key] == prox_metrics[key]
    jax.tree.map(
        np.testing.assert_array_equal,
        *map(beside_the_table, (state, prox_state)),
    )
    dev = {"tokens": jnp.asarray(batch(99)["tokens"])}  # logits decide its metrics
    np.testing.assert_array_equal(
        module.apply(state.variables, dev, deterministic=True),
        prox_module.apply(prox_state.variables, dev, deterministic=True),
    )


def test_a_rate_that_decays_ends_at_zero():
    config = dataclasses.replace(
        KINDS["lstm"], optimizer="sgd", decay="linear", learning_rate=1.0
    )
    params = {"embed": {"delta": jnp.full((1, 2), 2.0)}}
    gradient = jax.tree.map(jnp.ones_like, params)
    for name in ("delta-1", "prox-1"):
        tx = model.optimizer(config, arm(name), 4)
        state = tx.init(params)
        moved = []
        for _ in range(5):
            updates, state = tx.update(gradient, state, params)
            moved.append(float(-updates["embed"]["delta"][0, 0]))
        rates = np.array([1, 0.75, 0.5, 0.25, 0])
        # By prox also: the row 2 - rate is shortened by rate times c.
        shorter = rates / np.sqrt(2) if name == "prox-1" else 0
        np.testing.assert_allclose(moved, rates + shorter, atol=1e-6)


@pytest.mark.parametrize(("kind", "eps"), [("cnn", 1e-6), ("bidaf", 1e-8)])
def test_adadelta_is_that_of_each_program(kind, eps):
    """Zeiler's algorithm 1, by hand."""
    bare = dataclasses.replace(KINDS[kind].model, norm_limit=None, ema=None)
    config = dataclasses.replace(KINDS[kind], model=bare)
    params = {"embed": {"delta": jnp.zeros((1, 3))}}
    tx = model.optimizer(config, arm("delta-0"), 100)
    state, rng = tx.init(params), np.random.default_rng(0)
    of_gradients, of_steps = np.zeros((2, 1, 3))
    for _ in range(4):
        gradient = 1e-3 * rng.normal(size=(1, 3))
        of_gradients = 0.95 * of_gradients + 0.05 * gradient**2
        wanted = -np.sqrt(of_steps + eps) / np.sqrt(of_gradients + eps) * gradient
        of_steps = 0.95 * of_steps + 0.05 * wanted**2
        tree = {"embed": {"delta": jnp.asarray(gradient, jnp.float32)}}
        updates, state = tx.update(tree, state, params)
        np.testing.assert_allclose(
            updates["embed"]["delta"], config.learning_rate * wanted, rtol=1e-4
        )


def test_folds_part_the_examples():
    tests = [set(task.fold(103, 10, i)[2]) for i in range(10)]
    assert set.union(*tests) == set(range(103))
    assert sum(map(len, tests)) == 103
    for index in range(10):
        train_rows, dev, test = map(set, task.fold(103, 10, index))
        assert train_rows | dev | test == set(range(103))
        assert len(train_rows) + len(dev) + len(test) == 103
        assert len(dev) == (103 - len(test)) // 10


def test_folds_keep_groups_together():
    groups = np.random.default_rng(0).integers(0, 40, 103)
    tests = []
    for index in range(5):
        parts = task.fold(103, 5, index, groups)
        assert sorted(np.concatenate(parts)) == list(range(103))
        names = [set(groups[part]) for part in parts]
        assert not names[0] & names[1] | names[0] & names[2] | names[1] & names[2]
        tests += parts[2].tolist()
    assert sorted(tests) == list(range(103))


@pytest.mark.parametrize(
    "name",
    ["", "delta", "delta-", "prox--1", "l2-3", "delta-x"]
    + ["delta-nan", "prox-nan", "delta-inf", "prox--inf"],
)
def test_unknown_arms_are_named(name):
    with pytest.raises(InputError, match=f"--arms {name}: expected"):
        arm(name)


def test_the_weight_of_a_proximal_step_may_be_infinite():
    assert arm("prox-inf").c == np.inf
    assert arm("prox-1e-4").other_form == "delta-1e-4"
    assert arm("delta-1e-4").other_form == "prox-1e-4"


def test_parts_trained_before_rates_decayed_stay_valid():
    """The settings that a part of `bidaf` was claimed with before there was `decay`."""
    assert main._part_of(presets.BIDAF) == {
        "task": "squad2-half-dev",
        "protocol": "seeds",
        "epochs": 30,
        "batch_size": 30,
        "buckets": 4,
        "second_buckets": 1,
        "model": {
            "kind": "bidaf",
            "widths": [3, 4, 5],
            "maps": 100,
            "hidden": 32,
            "dropout": 0.2,
            "norm_limit": None,
            "ema": 0.99,
            "dtype": "float32",
        },
        "limits": {"sentence": 50, "context": 250, "question": 30, "answer": None},
        "optimizer": "adam",
        "learning_rate": 0.002,
        "accumulate": 1,
    }
    decaying = dataclasses.replace(presets.SICK, decay="linear")
    assert main._part_of(decaying)["decay"] == "linear"
    smaller = dataclasses.replace(presets.BIDAF, share=0.1)
    assert main._part_of(smaller)["share"] == 0.1


def written_parts(workdir, config, table, scores):
    """Parts as a run leaves them: arm to part to (dev, test) of its epochs."""
    for name, parts in scores.items():
        for part, epochs in enumerate(parts):
            folder = tuned.part_folder(config, workdir, table.name, name, part)
            folder.mkdir(parents=True)
            lines = [
                json.dumps({"step": 10 * n, "dev/accuracy": d, "test/accuracy": t})
                for n, (d, t) in enumerate(epochs, 1)
            ]
            (folder / "metrics.jsonl").write_text("".join(f"{x}\n" for x in lines))


def test_c_is_chosen_on_dev_in_each_part(tmp_path, monkeypatch, capsys):
    def unreachable(config):
        raise sources.FetchError("no index")

    monkeypatch.setattr(data, "load_polarity", unreachable)
    config = Config(
        task="kmr",
        arms=("fixed", "delta-1e-4", "delta-1e-5", "prox-1e-4"),
        protocol="seeds",
        parts=2,
        batch_size=1,
    )
    rows = np.arange(10), np.arange(10), np.arange(4)
    labels = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    made = {"source": "made up", "sha256": None, "size": 10}
    kind = results.Data(name="kmr", kind="subset", **made)
    examples = task.Task(WORDS, {"labels": labels}, (kind,), classes=2, splits=rows)
    glove = results.Data(name="glove-100d", kind="real", **made)
    table = tuned.Table(None, np.zeros((VOCAB, DIM)), glove)
    scores = {
        "fixed": [[(0.99, 0.1)], [(0.99, 0.1)]],
        # The first of two epochs of the same dev score counts.
        "delta-1e-4": [[(0.3, 0.2), (0.7, 0.5), (0.7, 0.9)], [(0.6, 0.6)]],
        "delta-1e-5": [[(0.6, 0.8)], [(0.8, 0.4)]],
        "prox-1e-4": [[(0.99, 0.1)], [(0.99, 0.1)]],
    }
    written_parts(tmp_path, config, table, scores)
    tests = data.Tests({}, None)
    run = finished.Finished(config, examples, [table], tests, epath.Path(tmp_path))
    assert run.chosen_on_dev(table) == pytest.approx([50, 40])
    assert run.chosen_epochs(table, "delta-1e-4") == [2, 1]
    assert run.claimed_arms == ["delta-1e-4", "delta-1e-5"]
    assert "no polarity lexicon, so no Table 5: no index" in capsys.readouterr().err
    # Most of train is 0, most of test is 1.
    assert run.of_majority(config.measures[0]) == [25, 25]
    own = dataclasses.replace(presets.KMR, arms=config.arms)
    real = dataclasses.replace(examples.data[0], kind="real")
    for settings, used, published in (
        (own, examples.data[0], None),
        (config, real, None),  # of other batches than the paper's run
        (own, real, 66.72),
    ):
        run.config, run.task = settings, dataclasses.replace(examples, data=(used,))
        row = analyse._score_rows(run, table, config.measures[0])[0]
        assert row.published == published
        assert (row.source is None) == (published is None)


def test_delta_is_held_against_the_better_of_both(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "load_polarity", lambda config: {})
    arms = ("fixed", "finetune", "delta-1e-4")
    config = dataclasses.replace(presets.KMR, parts=3, arms=arms, batch_size=1)
    table = tuned.Table(None, np.zeros((VOCAB, DIM)), GLOVE)
    examples = task.Task(WORDS, {}, (used("kmr"),))
    scores = {
        "fixed": [[(0.5, 0.50)], [(0.5, 0.52)], [(0.5, 0.54)]],
        "finetune": [[(0.5, 0.60)], [(0.5, 0.63)], [(0.5, 0.65)]],
        "delta-1e-4": [[(0.5, 0.59)], [(0.5, 0.62)], [(0.5, 0.64)]],
    }
    written_parts(tmp_path, config, table, scores)
    tests = data.Tests({}, None)
    run = finished.Finished(config, examples, [table], tests, epath.Path(tmp_path))
    claim = claims._beats_both(run, table, "delta-1e-4")
    assert claim.claim == (
        "delta-1e-4 is at least the better of fixed and finetune on kmr (glove-100d)"
    )
    assert claim.verdict == "contradicted"
    assert claim.evidence.startswith(
        "which is finetune: paired difference -1.00 points [-1.00, -1.00], 3 seeds"
    )


def used(name, kind="real"):
    return results.Data(name=name, kind=kind, source="", sha256=None, size=1)


GLOVE = used("glove-100d")


@pytest.mark.parametrize("preset", ["rt-polarity", "kmr", "bidaf-squad"])
@pytest.mark.parametrize(
    ("changes", "text", "table"),
    [
        ({"epochs": 1}, "real", GLOVE),
        ({"parts": 2}, "real", GLOVE),
        ({"decay": "linear"}, "real", GLOVE),
        ({"model": Model(hidden=8)}, "real", GLOVE),
        ({"limits": presets.Limits(question=5)}, "real", GLOVE),
        ({}, "subset", GLOVE),
        ({}, "real", used("glove-100d-subset", "subset")),
        ({}, "real", used("glove-50d")),
        ({}, "real", used("mine-100d.txt")),
        ({"vectors": ("mine/glove-100d",)}, "real", GLOVE),
    ],
)
def test_the_papers_figures_stand_beside_its_own_run_only(preset, changes, text, table):
    own = presets.PRESETS[preset][1]
    # What does not decide the figures of a part may differ.
    beside = dataclasses.replace(own, preset="custom", arms=("fixed",), export=True)
    for config in (own, beside):
        assert paper.stands_beside(config, [used("texts")], GLOVE)
        changed = dataclasses.replace(config, **changes)
        assert not paper.stands_beside(changed, [used("texts", text)], table)


@pytest.mark.parametrize("name", ["esim", "esim-sick", "bidaf", "smoke", "demo"])
def test_presets_that_stand_in_have_no_published_figures(name):
    config = dataclasses.replace(presets.PRESETS[name][1], vectors=("glove-100d",))
    assert not paper.stands_beside(config, [used("texts")], GLOVE)


def test_tables_2_and_3_are_printed_beside_squads_table_only(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "load_polarity", lambda config: {})
    arms = ("fixed", "finetune", "delta-1e-4")
    config = dataclasses.replace(presets.SQUAD, arms=arms)
    examples = task.Task(WORDS, {}, (used("squad"),))
    table = tuned.Table(None, np.zeros((VOCAB, DIM)), GLOVE)
    scores = {"QVEC-CCA": 0.4, "Spearman on MC-30 (30 of 30 pairs)": 0.5, "QVEC": 0.1}

    def printed(config, *, whole=True):
        tests = data.Tests({}, None, whole)
        run = finished.Finished(config, examples, [table], tests, epath.Path(tmp_path))
        run.tuned.untuned = lambda table: scores
        run.tuned.tuned = lambda *_, **__: {m: [s, s] for m, s in scores.items()}
        return {
            (row.name.removeprefix("glove-100d/"), row.metric.split(" (")[0]): (
                row.published,
                row.source,
            )
            for row in analyse._table_rows(run, table)
            if row.published is not None
        }

    assert printed(config) == {
        ("untuned", "QVEC-CCA"): (0.37536, "Table 2"),
        ("finetune", "QVEC-CCA"): (0.37267, "Table 2"),
        ("delta-1e-4", "QVEC-CCA"): (0.37543, "Table 2"),
        ("untuned", "Spearman on MC-30"): (0.776, "Table 3, MC-30"),
        ("finetune", "Spearman on MC-30"): (0.764, "Table 3, MC-30"),
        ("delta-1e-4", "Spearman on MC-30"): (0.783, "Table 3, MC-30"),
    }
    assert not printed(config, whole=False)
    assert not printed(dataclasses.replace(config, epochs=1))
    assert not printed(dataclasses.replace(presets.RT_POLARITY, arms=arms))


def test_table_3_names_the_lists_of_the_catalogue():
    assert set(paper.PAPER_SIMILARITY) == set(sources.DATA_SETS["wordsim"].parts)
    signs = [
        np.sign(of["delta-1e-4"] - of["untuned"])
        for of in paper.PAPER_SIMILARITY.values()
    ]
    assert signs.count(-1) == 1  # RG-65, as the paper has it


def test_words_without_a_vector_are_named_by_their_share():
    texts = batching.Ragged.of([[2, 2, 3], [4, 2, 5, 3, 4]])
    examples = task.Task(WORDS, {"tokens": texts}, ())
    known = WordVectors(("w3", "w5"), np.ones((2, 2), np.float32))
    assert examples.tokens_without_vector(known) == 5 / 8
    assert examples.commonest_without_vector(known) == {"w2": 3 / 8, "w4": 2 / 8}
    assert list(examples.commonest_without_vector(known, 1)) == ["w2"]


@pytest.mark.data
def test_kmr_has_kaggles_phrases_split_by_sentence():
    if sources.locate("sst-trees") is None:
        pytest.skip("needs sst_trees/{train,dev,test}.txt in $JAXEMB_DATA")
    loaded = data.load(presets.KMR)
    train_rows, dev, test = loaded.splits
    tokens = loaded.columns["tokens"]
    assert abs(len(train_rows) - 156_060) / 156_060 < 0.01  # Kaggle's training phrases
    texts = {}
    for name, rows in (("train", train_rows), ("dev", dev), ("test", test)):
        offsets = tokens.offsets
        texts[name] = {
            tokens.values[offsets[r] : offsets[r + 1]].tobytes() for r in rows
        }
        assert len(texts[name]) == len(rows)
    assert not texts["train"] & (texts["dev"] | texts["test"])
    assert set(np.unique(loaded.columns["labels"])) == set(range(5))


def smoke(preset, workdir, *more, arms=("delta-1e-4",)):
    """Few arms, in batches that one device takes: compiling is what costs here."""
    arguments = [preset, "--workdir", str(workdir), "--no-progress"]
    arguments += ["--arms", *arms, "--batch-size", "25", *more]
    return main.run(cli.parse("delta_embedding", presets.PRESETS, arguments))


def of(written, metric):
    return {r["name"]: r["measured"] for r in written["rows"] if metric in r["metric"]}


@pytest.mark.slow
def test_inference_from_training_to_claims(tmp_path):
    arms = ("finetune", "fixed", "delta-1e-4", "delta-1e-5", "prox-1e-4")
    written = smoke("smoke-esim", tmp_path, arms=arms)
    accuracies = of(written, "test accuracy")
    assert 0 < min(accuracies.values()) <= 100
    assert {"majority class", "planted vectors/delta, c chosen on dev"} < {*accuracies}
    metrics = {row["metric"].split(" (")[0] for row in written["rows"]}
    assert {"QVEC", "QVEC-CCA", "Spearman on planted", "change of planted"} <= metrics
    assert {"positive among the polar neighbours of not", "rows moved"} <= metrics
    tuning = {f"planted vectors/{name}" for name in arms if name != "fixed"}
    for metric in ("change of QVEC-CCA", "L2,1 norm", "rows exactly at zero"):
        assert set(of(written, metric)) == tuning
    norms = of(written, "L2,1 norm")
    assert 0 < norms["planted vectors/delta-1e-4"] < norms["planted vectors/finetune"]
    words = of(written, "norm of the row")
    assert len(words) == 20 and list(words.values()) == sorted(words.values())[::-1]
    lists = written["config"]["neighbours_of_not"]
    assert set(lists) == {f"planted vectors/{x}" for x in ("untuned", "delta-1e-4")}
    assert all(word[0] in "+-" for of in lists.values() for word in of.split())
    figures = {path.name for path in (tmp_path / "figures").glob("*.svg")}
    for name in ("neighbours", "moved-words", "delta-norms", "delta-1e-4-intrinsic"):
        assert f"planted vectors-{name}.svg" in figures
    claims = {claim["claim"]: claim["evidence"] for claim in written["claims"]}
    assert all("trained on 540 sentence pairs" in e for e in claims.values())
    on_tables = [
        c for c in claims if "raises" in c or "lowers" in c or "finetune:" in c
    ]
    assert len(on_tables) == 4
    assert all("the paper's Tables 2 and 3 are of its BiDAF" in c for c in on_tables)
    assert {
        claim.split(" (")[0].removesuffix(" on planted-pairs") for claim in claims
    } == {
        "delta-1e-4 beats fixed",
        "delta-1e-4 beats finetune",
        "delta-1e-4 is at least the better of fixed and finetune",
        "fixed beats finetune",
        "delta with c chosen on dev beats fixed",
        "delta with c chosen on dev beats finetune",
        "prox-1e-4 beats delta-1e-4",
        "prox-1e-4 leaves the majority of words intact",
        "prox-1e-4 leaves most rows exactly at zero",
        "delta-1e-4 raises mean similarity",
        "delta-1e-4 raises QVEC-CCA",
        "finetune lowers QVEC-CCA",
        "delta-1e-4 beats finetune: mean similarity",
        "the words of the paper's Table 4 move farther than others of like frequency "
        "under delta-1e-4",
        "delta-1e-4 leaves fewer positive words around “not”",
    }
    again = smoke("smoke-esim", tmp_path, arms=arms)  # finds everything done
    assert again == written
    with pytest.raises(InputError, match="holds a run with learning_rate = 0.01, not"):
        smoke("smoke-esim", tmp_path, "--learning-rate", "0.5", arms=arms)


def test_reading_from_training_to_exported_tables(tmp_path):
    written = smoke("smoke-bidaf", tmp_path)
    f1, exact = of(written, "F1 (%)"), of(written, "exact match (%)")
    name = "planted vectors/delta-1e-4"
    assert 0 <= exact[name] <= f1[name] <= 100
    assert f"{name}, not averaged" in of(written, "QVEC-CCA")
    assert set(of(written, "rows exactly at zero")) == {name}
    claims = [claim["claim"] for claim in written["claims"]]
    assert f"delta-1e-4 raises QVEC-CCA ({name.split('/')[0]})" in claims
    assert "0 are not where they say" in written["config"]["answers_to_train_on"]
    base = synthetic.planted_questions().vectors
    tables = [
        read_word_vectors(
            tmp_path / "tables" / f"planted vectors-delta-1e-4{s}.safetensors"
        )
        for s in ("", "-raw")
    ]
    folder = tmp_path / "planted vectors" / "delta-1e-4" / "seed-0" / "best"
    saved = train.load_params(folder)
    words = (tmp_path / "words.txt").read_text().split("\n")
    for table, part in zip(tables, ("ema", "params"), strict=True):
        assert table.words == base.words
        change = table.matrix - base.matrix
        assert np.abs(change).max() > 1e-4
        row = words.index("what")
        expected = saved[part]["embed"]["delta"][row]
        np.testing.assert_allclose(
            change[base.index["what"]], expected, rtol=1e-4, atol=1e-6
        )
    assert not np.array_equal(tables[0].matrix, tables[1].matrix)


def test_programs_are_few():
    """Shapes of batches: the product of the buckets bounds how many are compiled."""
    config = dataclasses.replace(presets.SMOKE_ESIM, buckets=3, second_buckets=2)
    loaded = data.load(config)
    buckets = loaded.buckets(config)
    assert {name: len(of) for name, of in buckets.items()} == {
        "premise": 3,
        "hypothesis": 2,
    }
    plan = batching.Shuffled(loaded.split(config, 0).train, 32, 0, buckets)
    shapes = {
        tuple(plan(i)[name].shape for name in buckets)
        for i in range(3 * plan.steps_per_epoch)
    }
    assert len(shapes) <= 6


@pytest.mark.parametrize(
    ("preset", "changes", "problem"),
    [
        ("smoke-esim", ["--model.kind", "cnn"], "planted-pairs takes esim"),
        ("smoke", ["--model.kind", "bidaf"], "planted takes cnn or lstm"),
        ("smoke-bidaf", ["--protocol", "folds"], "has a split of its own"),
        ("smoke-bidaf", ["--share", "0"], "--share 0.0: expected more than 0"),
        ("smoke-esim", ["--share", "0.1"], "planted-pairs has no paragraphs"),
        ("smoke-esim", ["--protocol", "seeds"], "planted-pairs has no split"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path, preset, changes, problem):
    with pytest.raises(InputError, match=problem):
        smoke(preset, tmp_path, *changes)


@pytest.mark.parametrize(
    ("preset", "name", "file"),
    [
        ("bidaf-squad", "squad", "squad/train-v1.1.json"),
        ("esim-multinli", "multinli", "multinli_1.0/multinli_1.0_train.jsonl"),
    ],
)
def test_without_the_official_data(tmp_path, monkeypatch, preset, name, file):
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path))
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))

    def refuse(address, timeout):
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr("socket.create_connection", refuse)
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    assert name in presets.PRESETS[preset][1].data_sets
    with pytest.raises(InputError, match=rf"^{name} \(.* is not on this .*{file}") as e:
        smoke(preset, tmp_path / "run")
    assert "\n" not in str(e.value)


def official(folder, name, *rows):
    folder.mkdir(exist_ok=True)
    lines = (json.dumps(dict(row)) for row in rows)
    (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def test_multinli_is_trained_on_one_genre_and_tested_on_four_sets(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path))
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))

    def pair(premise, genre, label="neutral"):
        return {
            "sentence1": premise,
            "sentence2": "He ran.",
            "gold_label": label,
            "genre": genre,
        }

    train_pairs = [pair(f"p{i // 3}", "fiction") for i in range(60)]
    train_pairs += [pair("other", "travel")] * 5
    folder = tmp_path / "multinli_1.0"
    official(folder, "multinli_1.0_train", *train_pairs)
    matched = [pair("m", "fiction"), pair("n", "slate"), pair("o", "slate", "-")]
    official(folder, "multinli_1.0_dev_matched", *matched)
    official(folder, "multinli_1.0_dev_mismatched", pair("q", "verbatim"))
    for split in ("train", "dev", "test"):
        official(tmp_path / "snli_1.0", f"snli_1.0_{split}", pair("s", None))
    config = presets.MULTINLI
    assert config.texts == ("multinli", "snli")
    loaded = data.load(config)
    split = loaded.split(config, 0)
    sizes = [len(part["labels"]) for part in (split.train, split.dev, split.test)]
    assert sizes == [54, 6, 1]
    premises = [
        {tuple(x) for x in part["premise"].padded(np.arange(n), 1)}
        for part, n in zip((split.train, split.dev), sizes, strict=False)
    ]
    assert not premises[0] & premises[1]
    others = {name: len(columns["labels"]) for name, columns in loaded.others.items()}
    assert others == {"matched": 2, "mismatched": 1, "snli": 1}
    assert loaded.data[0].kind == "subset"  # not as many as the paper's
    assert loaded.notes["unlabelled"] == 1


def squad_file(folder, name, articles):
    """SQuAD 1.1 as its authors write it: (paragraph, [(question, answers)])."""
    made = [
        {
            "title": f"{name} {number}",
            "paragraphs": [
                {
                    "context": context,
                    "qas": [
                        {
                            "id": f"{name}-{number}-{i}",
                            "question": question,
                            "answers": [
                                {"text": a, "answer_start": context.index(a)}
                                for a in answers
                            ],
                        }
                        for i, (question, answers) in enumerate(asked)
                    ],
                }
            ],
        }
        for number, (context, asked) in enumerate(articles)
    ]
    folder.mkdir(exist_ok=True)
    content = {"data": made, "version": "1.1"}
    (folder / f"{name}-v1.1.json").write_text(json.dumps(content))


@pytest.fixture
def official_squad(tmp_path, monkeypatch):
    """Forty questions to train on and two, with several answers, to test on."""
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path))
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "squad"
    articles = [
        (
            f"Ann lives in Town{i}. She is {i + 20} years old.",
            [("Where does Ann live?", [f"Town{i}"]), ("How old?", [f"{i + 20}"])],
        )
        for i in range(20)
    ]
    squad_file(folder, "train", articles)
    tested = "Bob's house, built in 1990, is red."
    asked = [
        ("When was it built?", ["1990", "in 1990", "1990"]),
        ("Whose house is it?", ["Bob", "Bob's house"]),
    ]
    squad_file(folder, "dev", [(tested, asked)])
    return folder


def test_squad_from_its_official_files(official_squad):
    loaded = data.load(presets.SQUAD)
    train_rows, dev, test = loaded.splits
    assert [len(rows) for rows in loaded.splits] == [36, 4, 2]
    assert sorted([*train_rows, *dev]) == list(range(40))
    contexts = [
        {loaded.questions[row].source.context for row in rows} for rows in loaded.splits
    ]
    assert [len(of) for of in contexts] == [18, 2, 1]
    assert not contexts[0] & contexts[1]
    asked = [loaded.questions[row].source for row in test]
    assert [q.id for q in asked] == ["dev-0-0", "dev-0-1"]
    assert [[a.text for a in q.answers] for q in asked] == [
        ["1990", "in 1990", "1990"],
        ["Bob", "Bob's house"],
    ]
    for row in range(42):
        question = loaded.questions[row]
        start, end = (int(loaded.columns[name][row]) for name in ("start", "end"))
        span = type(question.spans[0])(start, end)
        assert question.text(span) == question.source.answers[0].text
    assert loaded.columns["number"].tolist() == list(range(42))
    (described,) = loaded.data
    assert (described.name, described.size) == ("squad", 42)
    assert described.kind == "subset"  # of 98,169
    assert loaded.notes["answers_to_test_on"].startswith("2 questions with 5 answers")


def test_whole_squad_is_real_and_a_share_of_it_a_subset(official_squad, monkeypatch):
    whole = dataclasses.replace(sources.DATA_SETS["squad"], rows=42)
    monkeypatch.setattr(sources, "DATA_SETS", {**sources.DATA_SETS, "squad": whole})
    assert data.load(presets.SQUAD).data[0].kind == "real"
    fifth = dataclasses.replace(presets.SQUAD, share=0.2)
    loaded, again = data.load(fifth), data.load(fifth)
    assert (loaded.data[0].kind, loaded.data[0].size) == ("subset", 10)
    assert [len(rows) for rows in loaded.splits] == [6, 2, 2]  # of four paragraphs
    assert loaded.questions == again.questions
    least = data.load(dataclasses.replace(presets.SQUAD, share=0.01))
    assert [len(rows) for rows in least.splits] == [2, 2, 2]


@pytest.mark.data
def test_pairs_of_one_premise_are_in_one_fold():
    if not all(map(sources.locate, ("mnli-dev-matched", "snli-esnli"))):
        pytest.skip("needs mnli_dev_matched and snli_esnli in $JAXEMB_DATA")
    config = presets.ESIM
    loaded = data.load(config)
    assert len(loaded.columns["labels"]) == 9815
    assert len(loaded.others["snli"]["labels"]) == 9824
    premises = loaded.columns["premise"]
    for part in range(config.parts):
        rows = task.fold(9815, config.parts, part, loaded.groups)
        assert abs(len(rows[2]) - 9815 / 5) < 100
        texts = [
            {premises.padded(np.array([r]), 50).tobytes() for r in part}
            for part in rows
        ]
        # Two premises may be the same once cut and lower-cased; whole ones are not.
        assert len(texts[0] & texts[2]) < 5


@pytest.mark.data
def test_no_paragraph_is_trained_on_and_tested():
    if not all(map(sources.locate, ("squad2-half-dev", "xquad"))):
        pytest.skip("needs squad2_half_dev and xquad in $JAXEMB_DATA")
    loaded = data.load(presets.BIDAF)
    assert loaded.notes["answerable_questions"] == 2910
    assert loaded.notes["questions_whose_paragraph_is_in_test"] == 335
    contexts = [
        {loaded.questions[row].source.context for row in rows} for rows in loaded.splits
    ]
    assert [len(rows) for rows in loaded.splits][2] == 1190
    assert not contexts[0] & contexts[1] | contexts[0] & contexts[2]
    assert not contexts[1] & contexts[2]
    for row in loaded.splits[0]:
        question = loaded.questions[row]
        start, end = (int(loaded.columns[name][row]) for name in ("start", "end"))
        text = question.text(type(question.spans[0])(start, end))
        assert text in {answer.text.strip() for answer in question.source.answers}
