"""What DocBERT's experiment is made of: documents, teacher, arms, costs."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from etils import epath

from experiments.docbert_distillation import (
    analyse,
    composed,
    costs,
    data,
    main,
    model,
    scores,
    students,
)
from experiments.docbert_distillation import teacher as teacher_lib
from experiments.docbert_distillation.config import MAIN, PRESETS, Composed, paper
from jaxemb import losses, optim, perturb, pretrained, train
from jaxemb.data import augment, rows, sources
from jaxemb.errors import InputError
from jaxemb.train import checkpoints, loop

SMOKE = PRESETS["smoke"][1]
QUIET = dataclasses.replace(SMOKE.run, progress=False)
CONFIG = dataclasses.replace(
    SMOKE,
    run=QUIET,
    students=dataclasses.replace(SMOKE.students, passes=0.3, evaluations=1),
)


@pytest.fixture(scope="module")
def task():
    return data.load(CONFIG)


@pytest.fixture(scope="module")
def inputs(task):
    return data.read_inputs(CONFIG, task)


@pytest.fixture(scope="module")
def logits(task, tmp_path_factory):
    """A teacher's of every document, at random."""
    ids = [d.id for own in task.documents.values() for d in own]
    drawn = np.random.default_rng(0).normal(size=(len(ids), task.classes))
    folder = tmp_path_factory.mktemp("logits")
    return rows.cache_by_id(
        folder, ids, lambda places: drawn[places], dim=task.classes, of="random"
    )


def test_copies_keep_labels_and_name_their_documents(task):
    train = {d.id: d for d in task.documents["train"]}
    copies = task.documents["copies"]
    assert 0 < len(copies) <= len(train) * (CONFIG.factor - 1)
    for copy in copies:
        source = train[copy.id.split("+")[0]]
        assert copy.classes == source.classes
        assert len(copy.words) == len(source.words)
        assert copy.sentences != source.sentences
    labels = task.labels(copies)
    assert labels.sum(axis=1).tolist() == [len(d.classes) for d in copies]


def test_arms_differ_by_copies_and_by_the_weight_of_the_teacher(
    task, inputs, logits, tmp_path
):
    system = students.System(CONFIG, task, inputs, logits, tmp_path, "LR")
    sizes = {
        (augmented, taught): system._training(augmented, taught)
        for augmented in (False, True)
        for taught in (False, True)
    }
    train = len(task.documents["train"])
    every = train + len(task.documents["copies"])
    for (augmented, taught), columns in sizes.items():
        count = every if augmented else train
        assert {len(column) for column in columns.values()} == {count}
        assert set(columns["weight"]) == {CONFIG.weight if taught else 0.0}
        assert columns["gold"].all()
        names = [d.id for d in (*task.documents["train"], *task.documents["copies"])]
        np.testing.assert_array_equal(columns["teacher"], logits[names[:count]])
    bare = dataclasses.replace(CONFIG, gold_for_copies=False)
    system = students.System(bare, task, inputs, logits, tmp_path, "LR")
    gold = system._training(True, True)["gold"]
    assert gold.tolist() == [True] * train + [False] * (every - train)
    assert system._training(True, False)["gold"].all()


@pytest.mark.parametrize("name", ["LR", "LSTM"])
def test_a_weight_of_0_trains_as_if_there_were_no_teacher(
    name, task, inputs, logits, tmp_path
):
    deaf = dataclasses.replace(CONFIG, weight=0.0)
    found = {}
    for config, arm in ((CONFIG, "plain"), (deaf, "KD"), (CONFIG, "KD")):
        folder = tmp_path / f"{arm}-{config.weight}"
        system = students.System(config, task, inputs, logits, folder, name)
        found[arm, config.weight] = system.fit(arm, 0).test
    np.testing.assert_array_equal(found["plain", 1.0], found["KD", 0.0])
    assert np.abs(found["plain", 1.0] - found["KD", 1.0]).max() > 1e-4


def test_the_other_direction_is_another_loss(task, inputs, logits, tmp_path):
    runs = [
        students.System(
            CONFIG, task, inputs, logits, tmp_path, "LR", other_way=way
        ).fit(MAIN, 0)
        for way in (False, True)
    ]
    assert runs[0].folder != runs[1].folder
    assert np.abs(runs[0].test - runs[1].test).max() > 1e-4


def test_shuffled_sentences_change_an_encoder_and_not_tf_idf(task, inputs, tmp_path):
    """Card, check 7: both of the same documents."""
    loaded = teacher_lib.load(CONFIG, task)
    teacher = teacher_lib.Teacher(CONFIG, task, loaded, tmp_path)
    variables = pretrained.variables_above(
        loaded.model, teacher.module, jax.random.key(0)
    )
    documents = task.documents["test"][:4]
    turned = [d._replace(sentences=d.sentences[::-1]) for d in documents]
    first, second = (teacher._logits(variables, d, 24) for d in (documents, turned))
    assert np.abs(first - second).max(axis=1).min() > 1e-4
    for one, other in zip(documents, turned, strict=True):
        shuffled = augment.shuffle_sentences(one.sentences, np.random.default_rng(1))
        assert sorted(shuffled) == sorted(one.sentences) == sorted(other.sentences)
        assert one.sentences != other.sentences
        both = [data.content_words(d.words) for d in (one, other)]
        (ids, values), (others, same) = (
            inputs.tfidf.transform([words]) for words in both
        )
        np.testing.assert_array_equal(ids.values, others.values)
        np.testing.assert_array_equal(values.values, same.values)
    again = teacher._logits(variables, documents[::-1], 24)[::-1]
    np.testing.assert_allclose(first, again, atol=1e-5)


def test_scores_are_those_of_sets(task):
    documents = task.documents["test"][:6]
    gold = task.right(documents)
    assert [tuple(np.flatnonzero(row)) for row in gold] == [
        d.classes for d in documents
    ]
    logits = np.where(gold, 1.0, -1.0)
    assert scores.score(task, logits, documents) == 1
    assert scores.agreement(task, logits, logits) == 1
    worse = logits.copy()
    worse[0] *= -1
    assert scores.agreement(task, logits, worse) == 5 / 6
    statistic = scores.resampled(task, worse, documents)
    whole = statistic(np.arange(6)[None])[0]
    np.testing.assert_allclose(whole, 100 * scores.score(task, worse, documents))
    single = dataclasses.replace(task, multi_label=False)
    assert scores.predicted(single, worse).sum(axis=1).tolist() == [1] * 6


def test_macro_f1_is_that_of_the_classes_that_there_are(task):
    """As scikit-learn has it for the labels that occur."""
    metrics = pytest.importorskip("sklearn.metrics")
    single = dataclasses.replace(task, multi_label=False)
    documents = [d._replace(classes=(i % 3,)) for i, d in enumerate(
        task.documents["test"][:12]
    )]  # fmt: skip
    logits = np.random.default_rng(0).normal(size=(12, 4))
    found = scores.macro_f1(single, logits, documents)
    gold = [d.classes[0] for d in documents]
    wanted = metrics.f1_score(
        gold, logits.argmax(1), labels=[0, 1, 2], average="macro", zero_division=0
    )
    assert (logits.argmax(1) == 3).any()  # a class that no document has, predicted
    assert found == pytest.approx(wanted)
    assert np.isnan(scores.class_scores(single, logits, documents)[3])


def test_table_3_is_counted_as_the_paper_counts():
    found = costs.of_paper()
    bert = found["BERT-base"]
    parameters, operations = costs.published("BERT-base")
    assert round(bert.parameters / 1e6) == parameters
    assert bert.flops / 1e6 == pytest.approx(operations, rel=0.1)  # "about 30,000"
    # 8 (300 h + h^2 + 2 h), less one of torch's two biases; the output layer not.
    assert found["LSTM"].parameters == 8 * (300 * 512 + 512**2 + 512) == 3_330_048
    for system in ("LSTM", "KimCNN", "LR"):
        printed = costs.published(system)[0]
        assert round(found[system].parameters / 1e6, 1) == printed
    findings = analyse.Findings()
    analyse._add_paper_costs(found, ("parameters (M)", "FLOPs (M)"), findings)
    rows = {(r.name, r.metric): r for r in findings.rows}
    for system in found:
        row = rows[system, "FLOPs, BERT base's over its own, at the paper's sizes"]
        assert row.measured == pytest.approx(bert.flops / found[system].flops, rel=1e-3)
        assert row.published == costs.RATIOS[system]
    assert {r.metric for r in findings.rows} <= set(findings.shown)
    verdicts = {c.claim[-30:]: c.verdict for c in findings.claims}
    assert len(verdicts) == 2
    share = found["LSTM"].parameters / bert.parameters
    assert (findings.claims[0].verdict == "supported") == (round(100 * share) <= 3)


def test_han_is_counted_at_the_sentences_that_there_are():
    sizes = {"classes": 4, "words": 10, "dim": 8, "length": 8}
    short, whole = (
        costs.of_student(CONFIG, "HAN", **sizes, sentences=s).flops
        for s in ((2, 4), None)
    )
    assert short < 0.5 * whole
    assert costs.width_parameters(CONFIG, 6, classes=4, dim=8) > 0


def test_table_3_at_the_papers_sizes():
    config = PRESETS["reuters-paper"][1]
    sizes = {
        "classes": costs.PAPER_CLASSES,
        "words": costs.PAPER_TFIDF,
        "dim": costs.PAPER_DIM,
        "length": 8,
    }
    found = {s: costs.of_student(config, s, **sizes) for s in ("KimCNN", "LR")}
    assert found["KimCNN"].parameters == 387_390
    assert found["LR"].parameters == 3_267_810
    for system, cost in found.items():
        assert round(cost.parameters / 1e6, 1) == costs.published(system)[0]
    assert round(found["LR"].flops / 1e6, 1) == costs.published("LR")[1]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"seeds": 0}, "--seeds 0: expected 1 or more"),
        ({"factor": 0}, "--factor 0: expected 1 or more"),
        ({"documents": (5, 0, 5)}, "expected 1 or more of each"),
        ({"data": "imdb", "documents": (25_000, 1, 5)}, "at most 25,000"),
        (
            {"teacher": dataclasses.replace(SMOKE.teacher, epoch_sweep=(4,))},
            "epoch-sweep .*: expected 1 or more, fewer than the 4",
        ),
        (
            {"students": dataclasses.replace(SMOKE.students, passes=0.0)},
            "--students.passes 0.0",
        ),
    ],
)
def test_settings_that_make_no_run_are_named(changes, problem):
    with pytest.raises(InputError, match=problem):
        dataclasses.replace(CONFIG, **changes).check()


def test_every_system_reads_what_its_module_takes(task, inputs):
    for system in ("LSTM", "KimCNN", "LR", "XML-CNN", "HAN", "SVM"):
        columns = model.columns_of(system, inputs.columns["dev"])
        batch = {
            name: column.padded(np.arange(3), 32)
            if hasattr(column, "padded")
            else column
            for name, column in columns.items()
        }
        given = model.inputs_of(system, batch, inputs)
        wanted = model.example_of(CONFIG, system, inputs.table.shape[1], 32)
        assert set(given) == set(wanted)
        for name, shape in wanted.items():
            assert given[name].shape[1:] == shape.shape[1:]
            assert given[name].dtype == shape.dtype
    assert augment.MASK not in inputs.tfidf.index
    assert not inputs.table[:2].any()


@pytest.mark.data
def test_parts_of_reuters_are_as_large_as_the_authors():
    for name in ("reuters-21578", "ud-english-ewt"):
        if sources.locate(name) is None:
            pytest.skip(f"the data set {name} is not here")
    config = dataclasses.replace(PRESETS["reuters"][1], factor=1)
    found = data.load(config)
    sizes = {part: len(own) for part, own in found.documents.items()}
    assert sizes == {"train": 5827, "dev": 1943, "test": 3019, "copies": 0}
    assert found.classes == 90
    ids = [d.id for own in found.documents.values() for d in own]
    assert len(set(ids)) == 10_789
    assert all(d.words and d.classes for own in found.documents.values() for d in own)
    assert found.data[0].kind == "real"


def test_effects_and_interactions_are_those_of_a_linear_model():
    rng = np.random.default_rng(0)
    cells = np.array(composed.CELLS)
    signs = 2.0 * cells - 1
    several = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    design = np.stack([np.ones(8), *(np.prod(signs[:, f], axis=1) for f in several)], 1)
    values = rng.normal(size=(8, 3))
    wanted = np.linalg.lstsq(design, values)[0][1:]
    table = dict(zip(composed.CELLS, values.tolist(), strict=True))
    for factors, coefficients in zip(several, wanted, strict=True):
        more, less = composed.effect(table, factors)
        np.testing.assert_allclose((more - less) / 2, coefficients, atol=1e-12)


def test_another_run_is_not_taken_for_this_one(task, inputs, logits, tmp_path):
    def system(config, of=task, words=inputs):
        return students.System(config, of, words, logits, tmp_path, "LR")

    first = system(CONFIG).fit("KD", 0)
    again = system(CONFIG).fit("KD", 0)
    np.testing.assert_array_equal(first.test, again.test)
    heavier = dataclasses.replace(CONFIG, weight=2.0)
    with pytest.raises(InputError, match="holds a run with settings"):
        system(heavier).fit("KD", 0)
    turned = dataclasses.replace(  # other labels of the same documents
        task, documents={p: [d._replace(classes=(0,)) for d in own]
                         for p, own in task.documents.items()}
    )  # fmt: skip
    with pytest.raises(InputError, match="holds a run with documents"):
        system(CONFIG, turned).fit("KD", 0)


def test_another_teacher_is_not_taken_for_this_one(task, tmp_path):
    loaded = teacher_lib.load(CONFIG, task)
    teacher = teacher_lib.Teacher(CONFIG, task, loaded, tmp_path)
    loop.claim(epath.Path(teacher.folder), {"documents": "of something else"})
    steps = CONFIG.teacher.epochs * 4  # 64 documents in batches of 16
    (teacher.folder / checkpoints.FOLDER / str(steps)).mkdir(parents=True)
    with pytest.raises(InputError, match="holds a run with documents"):
        teacher.tune()


def test_attacks_are_kept_by_their_radius(task, inputs, logits, tmp_path):
    config = dataclasses.replace(CONFIG, study="composed")
    single = dataclasses.replace(
        task, multi_label=False,
        documents={p: [d._replace(classes=d.classes[:1]) for d in own]
                   for p, own in task.documents.items()},
    )  # fmt: skip
    words = data.read_inputs(config, single)
    system = students.System(config, single, words, logits, tmp_path, "KimCNN")
    run = system.fit("plain", 0)
    small, large = (system.attacked(run, radius) for radius in (0.1, 50.0))
    assert np.abs(large - small).max() > 1e-2
    np.testing.assert_array_equal(system.attacked(run, 0.1), small)


def test_the_average_of_a_pruned_lstm_is_of_pruned_weights():
    """And what is removed is 0 in what is tested, too."""
    config = dataclasses.replace(CONFIG, composed=Composed(sparsity=0.75, period=1))
    steps = 20
    tx = model.optimizer(config, "LSTM", pruned_over=steps)
    rng = np.random.default_rng(0)
    params = {"recurrent": jnp.asarray(rng.normal(size=(4, 5)), jnp.float32)}
    state, average = tx.init(params), np.zeros((4, 5))
    decay, total = config.students.ema, 0.0
    update = jax.jit(tx.update)
    for _ in range(steps):
        gradient = {"recurrent": jnp.asarray(rng.normal(size=(4, 5)), jnp.float32)}
        updates, state = update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        average = decay * average + (1 - decay) * np.asarray(params["recurrent"])
        total = decay * total + (1 - decay)
    [found] = optim.all_ema_params(state)
    np.testing.assert_allclose(found["recurrent"], average / total, rtol=1e-4)
    removed = np.asarray(params["recurrent"]) == 0
    assert removed.sum() == 15
    tested = np.asarray(model.params_of(params, found)["recurrent"])
    np.testing.assert_array_equal(tested == 0, removed)
    np.testing.assert_array_equal(
        tested[~removed], np.asarray(found["recurrent"])[~removed]
    )
    np.testing.assert_array_equal(
        model.params_of(params, None)["recurrent"], params["recurrent"]
    )


def test_adversarial_students_keep_the_penalties_of_their_states(task, inputs):
    """An objective without changes is the plain loss, whatever is added to it."""
    heavy = dataclasses.replace(
        CONFIG.students, activation=0.5, temporal=0.25, dropout=0.0, type_dropout=0.0,
        weight_drop=(0.0, 0.0),
    )  # fmt: skip
    config = dataclasses.replace(CONFIG, students=heavy)
    module = model.build(config, "LSTM", task.classes, 1)
    columns = model.columns_of("LSTM", inputs.columns["dev"])
    taken = {"words": columns["words"].padded(np.arange(4), 32)}
    given = model.inputs_of("LSTM", taken, inputs)
    batch = {
        "inputs": jax.tree.map(jnp.asarray, given),
        "labels": jnp.asarray(columns["labels"][:4]),
        "teacher": jnp.zeros((4, task.classes)),
        "weight": jnp.zeros(4),
        "gold": jnp.ones(4, bool),
    }
    variables = module.init(jax.random.key(0), **batch["inputs"], deterministic=True)
    variables = {"params": variables["params"]}
    values = {}
    for name, objective in (("plain", None), ("changed", perturb.plain())):
        loss = model.loss_fn(config, "LSTM", module, "student_teacher", objective)
        values[name] = float(jax.jit(loss)(variables, batch, jax.random.key(1))[0])
    assert values["changed"] == pytest.approx(values["plain"], rel=1e-5)
    _, kept = module.apply(
        variables, **batch["inputs"], deterministic=True, mutable="intermediates"
    )
    size, change = losses.activation_penalty(
        kept["intermediates"]["states"][0], batch["inputs"]["mask"]
    )
    light = dataclasses.replace(
        config, students=dataclasses.replace(heavy, activation=0.0, temporal=0.0)
    )
    loss = model.loss_fn(light, "LSTM", module, "student_teacher", perturb.plain())
    bare = float(jax.jit(loss)(variables, batch, jax.random.key(1))[0])
    more = float((0.5 * size + 0.25 * change).mean())
    assert values["changed"] == pytest.approx(bare + more, rel=1e-5)


def test_hedwigs_files_are_read_from_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path))
    place = tmp_path / "hedwig-data" / "datasets" / "AAPD"
    place.mkdir(parents=True)
    for part, count in (("train", 3), ("dev", 2), ("test", 2)):
        lines = [f"01{i % 2}\tOn {part}. Of {i}." for i in range(count)]
        (place / f"{part}.tsv").write_text("\n".join(lines) + "\n")
    config = PRESETS["aapd-paper"][1]
    names, parts, used = data._hedwig(config)
    assert names == ("class 0", "class 1", "class 2")
    assert {part: len(own) for part, own in parts.items()} == {
        "train": 3,
        "dev": 2,
        "test": 2,
    }
    assert [d.classes for d in parts["train"]] == [(1,), (1, 2), (1,)]
    assert len(parts["train"][0].sentences) == 2
    assert used.name == "hedwig-aapd"
    _, few, used = data._hedwig(dataclasses.replace(config, documents=(1, 1, 1)))
    assert {len(own) for own in few.values()} == {1}
    assert used.kind == "subset"


def test_figures_of_the_paper_are_of_the_same_classes():
    assert paper(PRESETS["reuters"][1])["F1 (%)"]["teacher"] == 90.7
    for name in ("imdb", "imdb-binary", "composed"):
        assert paper(PRESETS[name][1]) == {}
    assert paper(PRESETS["imdb-paper"][1])["accuracy (%)"]["KD-LSTM"] == 53.7
    folders = [config.workdir for _, config in PRESETS.values()]
    assert len(set(folders)) == len(folders)


@pytest.mark.slow
def test_a_teacher_pruning_and_adversarial_training_compose(tmp_path):
    config = dataclasses.replace(
        SMOKE,
        study="composed",
        run=dataclasses.replace(QUIET, workdir=str(tmp_path)),
        students=dataclasses.replace(SMOKE.students, passes=20.0, evaluations=4),
        composed=Composed(sparsity=0.75, epsilon=0.5, period=2, radii=(0.5, 500.0)),
        factor=1,
    )
    written = main.run(config)
    table = {(row["name"], row["metric"]): row["measured"] for row in written["rows"]}
    names = [composed.named(cell) for cell in composed.CELLS]
    assert len(set(names)) == 8
    scored = [
        train.evaluations(p.parent, students.DEV)[0]["step"]
        for p in tmp_path.rglob("attacked-0.5.npy")
    ]
    assert set(scored) == {20}  # when pruning is over
    zeros = {name: table[name, "parameters that are 0 (%)"] for name in names}
    for name, share in zeros.items():
        assert 70 < share < 76 if "pruned" in name else share < 10
    assert len(written["claims"]) == 3 * 7
    bytes_of = {name: table[name, "kilobytes on disk"] for name in names}
    assert bytes_of["pruned"] < 0.6 * bytes_of["plain"]
    clean = [table[n, config.metric] for n in names]
    changed = [table[n, f"{config.metric} under changes of length 500"] for n in names]
    assert np.mean(clean) > 40  # of four classes
    assert np.mean(changed) < np.mean(clean) - 20
    assert (tmp_path / "figures" / "composed.svg").exists()
    mtimes = {p: p.stat().st_mtime for p in tmp_path.rglob("attacked-*.npy")}
    assert len(mtimes) == 32
    main.run(config)
    assert {p: p.stat().st_mtime for p in mtimes} == mtimes


def test_students_are_not_scored_before_they_are_pruned():
    late = dataclasses.replace(
        CONFIG,
        study="composed",
        students=dataclasses.replace(CONFIG.students, passes=3.0, evaluations=4),
        composed=Composed(gradual=0.3),
    )
    with pytest.raises(InputError, match="gradual 0.3: expected above 0 and at most"):
        late.check()
