"""The paper's systems as the experiment assembles them, on every kind of device."""

import dataclasses
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from experiments.common import cli
from experiments.delta_embedding import config as presets
from experiments.delta_embedding import data, main, model, task
from experiments.delta_embedding.config import Config, Model, arm
from jaxemb import optim, train
from jaxemb.data import batching, sources, synthetic, vocab
from jaxemb.data.vectors import read_word_vectors
from jaxemb.errors import InputError

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
    tx = model.optimizer(config, arm(name))
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


COLLECTIVES = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"


@pytest.mark.parametrize("kind", ["cnn", "lstm"])
def test_only_gradients_and_metrics_travel(mesh, kind):
    _, step, state = system(kind, "delta-1e-4")
    step = train.data_parallel(step, mesh)
    state = step.place(state)
    text = step.lower(state, batch(0)).compile().as_text()
    gradients = sorted(sorted(leaf.shape) for leaf in jax.tree.leaves(state.params))
    moved = []
    for result, kind_moved in re.findall(
        rf"= (.*?) ({COLLECTIVES})(?:-start)?\(", text
    ):
        assert kind_moved == "all-reduce"
        for dims in re.findall(r"[a-z0-9]+\[([\d,]*)\]", result):
            moved.append(sorted(map(int, dims.split(","))) if dims else [])
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


def test_the_base_table_and_unseen_rows_stay_as_they_were():
    _, step, state = system("cnn", "delta-1e-4")
    step = jax.jit(step)
    new, seen = state, {0}
    for number in range(3):
        examples = batch(number)
        examples["tokens"] = np.minimum(examples["tokens"], 20)
        seen |= set(examples["tokens"].flat)
        new, _ = step(new, examples)
    base = new.frozen["frozen"]["embed"]["base"]
    np.testing.assert_array_equal(base, state.frozen["frozen"]["embed"]["base"])
    delta = np.asarray(new.params["embed"]["delta"])
    unseen = sorted(set(range(VOCAB)) - seen)
    assert unseen
    assert not delta[unseen].any()
    assert not delta[0].any()
    assert delta[sorted(seen - {0})].any(axis=1).all()


def test_an_infinite_weight_with_prox_equals_fixed():
    """Check 4 of the card: the delta stays at 0 and the numbers are those of fixed."""
    runs = {}
    for name in ("fixed", "prox-1e30"):
        _, step, state = system("cnn", name)
        for number in range(5):
            state, metrics = jax.jit(step)(state, batch(number))
        runs[name] = state, metrics
    assert not np.asarray(runs["prox-1e30"][0].params["embed"]["delta"]).any()
    for key in ("loss", "accuracy"):
        assert runs["fixed"][1][key] == runs["prox-1e30"][1][key]


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


@pytest.mark.parametrize("name", ["", "delta", "delta-", "prox--1", "l2-3", "delta-x"])
def test_unknown_arms_are_named(name):
    with pytest.raises(InputError, match=f"--arms {name}: expected"):
        arm(name)


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


def smoke(preset, workdir, *more):
    """One arm, in batches that one device takes: compiling is what costs here."""
    arguments = [preset, "--workdir", str(workdir), "--no-progress"]
    arguments += ["--arms", "delta-1e-4", "--batch-size", "25", *more]
    return main.run(cli.parse("delta_embedding", presets.PRESETS, arguments))


def of(written, metric):
    return {r["name"]: r["measured"] for r in written["rows"] if metric in r["metric"]}


def test_inference_from_training_to_claims(tmp_path):
    written = smoke("smoke-esim", tmp_path)
    assert 0 < min(of(written, "test accuracy").values()) <= 100
    metrics = {row["metric"].split(" (")[0] for row in written["rows"]}
    assert {"QVEC-CCA", "Spearman on planted", "change of planted"} <= metrics
    assert {"positive among the polar neighbours of not", "rows moved"} <= metrics
    norms = of(written, "norm of the row")
    assert len(norms) == 20 and list(norms.values()) == sorted(norms.values())[::-1]
    figures = {path.name for path in (tmp_path / "figures").glob("*.svg")}
    for name in ("neighbours", "moved-words", "delta-norms", "delta-1e-4-intrinsic"):
        assert f"planted vectors-{name}.svg" in figures
    claims = {claim["claim"]: claim["evidence"] for claim in written["claims"]}
    assert all("trained on 540 sentence pairs" in e for e in claims.values())
    assert {claim.split(" (")[0].removeprefix("delta-1e-4 ") for claim in claims} == {
        "leaves the majority of words intact",
        "raises mean similarity",
        "raises QVEC-CCA",
        "the words of the paper's Table 4 move farther than others of like frequency "
        "under delta-1e-4",
        "leaves fewer positive words around “not”",
    }
    again = smoke("smoke-esim", tmp_path)  # finds everything done
    assert again == written


def test_reading_from_training_to_exported_tables(tmp_path):
    written = smoke("smoke-bidaf", tmp_path)
    f1, exact = of(written, "F1 (%)"), of(written, "exact match (%)")
    name = "planted vectors/delta-1e-4"
    assert 0 <= exact[name] <= f1[name] <= 100
    assert f"{name}, not averaged" in of(written, "QVEC-CCA")
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
