"""What DocBERT's experiment is made of: documents, teacher, arms, costs."""

import dataclasses

import jax
import numpy as np
import pytest

from experiments.docbert_distillation import (
    composed,
    costs,
    data,
    main,
    model,
    scores,
    students,
)
from experiments.docbert_distillation import teacher as teacher_lib
from experiments.docbert_distillation.config import MAIN, PRESETS, Composed
from jaxemb import train
from jaxemb.data import augment, rows, sources
from jaxemb.errors import InputError

SMOKE = PRESETS["smoke"][1]
QUIET = dataclasses.replace(SMOKE.run, progress=False)
CONFIG = dataclasses.replace(
    SMOKE,
    run=QUIET,
    students=dataclasses.replace(SMOKE.students, steps=3, evaluations=1),
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


def test_shuffled_sentences_change_what_an_encoder_says(task, tmp_path):
    """While tf-idf stays the same, as tests/data/test_augment.py has it."""
    loaded = teacher_lib.load(CONFIG, task)
    teacher = teacher_lib.Teacher(CONFIG, task, loaded, tmp_path)
    from jaxemb import pretrained

    variables = pretrained.variables_above(
        loaded.model, teacher.module, jax.random.key(0)
    )
    documents = task.documents["test"][:4]
    turned = [d._replace(sentences=d.sentences[::-1]) for d in documents]
    first, second = (teacher._logits(variables, d, 24) for d in (documents, turned))
    assert np.abs(first - second).max(axis=1).min() > 1e-4
    again = teacher._logits(variables, documents[::-1], 24)[::-1]
    np.testing.assert_allclose(first, again, atol=1e-5)


def test_scores_are_those_of_sets(task):
    documents = task.documents["test"][:6]
    gold = scores.right(task, documents)
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


def test_berts_size_is_the_one_that_table_3_prints():
    bert = costs.of_paper()["BERT-base"]
    parameters, operations = costs.published("BERT-base")
    assert round(bert.parameters / 1e6) == parameters
    assert bert.flops / 1e6 == pytest.approx(operations, rel=0.1)  # "about 30,000"


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


@pytest.mark.slow
def test_a_teacher_pruning_and_adversarial_training_compose(tmp_path):
    config = dataclasses.replace(
        SMOKE,
        study="composed",
        run=dataclasses.replace(QUIET, workdir=str(tmp_path)),
        students=dataclasses.replace(SMOKE.students, steps=80, evaluations=4),
        composed=Composed(sparsity=0.75, epsilon=0.5, period=2, radii=(0.5, 500.0)),
        factor=1,
    )
    written = main.run(config)
    table = {(row["name"], row["metric"]): row["measured"] for row in written["rows"]}
    names = [composed.named(cell) for cell in composed.CELLS]
    assert len(set(names)) == 8
    scored = [
        train.evaluations(p.parent, students.DEV)[0]["step"]
        for p in tmp_path.rglob("attacked.npy")
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
    mtimes = {p: p.stat().st_mtime for p in tmp_path.rglob("attacked.npy")}
    assert len(mtimes) == 16
    main.run(config)
    assert {p: p.stat().st_mtime for p in mtimes} == mtimes


def test_students_are_not_scored_before_they_are_pruned():
    late = dataclasses.replace(
        CONFIG,
        study="composed",
        students=dataclasses.replace(CONFIG.students, steps=20, evaluations=4),
        composed=Composed(gradual=0.3),
    )
    with pytest.raises(InputError, match="gradual 0.3: expected above 0 and at most"):
        late.check()
