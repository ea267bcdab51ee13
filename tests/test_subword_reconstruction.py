"""The paper's systems as the experiment assembles them, and checks of its card."""

import dataclasses
import itertools
import json
import pathlib
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from etils import epath

from experiments.common import cli
from experiments.common import treebank as treebanks
from experiments.common.datasets import planted
from experiments.common.findings import Findings
from experiments.subword_reconstruction import config as presets
from experiments.subword_reconstruction import (
    data,
    linear,
    main,
    model,
    reconstruct,
    students,
    tagged,
    tagging,
)
from experiments.subword_reconstruction.treebank import Texts, encode
from jaxemb import nn as jnn
from jaxemb import train
from jaxemb.data import batching, sources, synthetic, vocab
from jaxemb.data.analogies import Analogy
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.losses import distances

SMOKE = dataclasses.replace(
    presets.PRESETS["smoke"][1], run=cli.Run(progress=False), seeds=1
)

RESULTS = pathlib.Path(presets.__file__).parent / "results"
_PRINTED = ("mean similarity after 50 epochs", "D1", "random")
_ANALOGIES = (students.SYNTACTIC, students.SEMANTIC, students.OVERLAP)


def config_of(*arguments):
    return cli.parse(presets.SLUG, presets.PRESETS, list(arguments))


@pytest.fixture(scope="module")
def world():
    return data.load(SMOKE)


@pytest.fixture(scope="module")
def morphology():
    """A small planted world, its characters, and words spelled to one length."""
    made = synthetic.planted_morphology(num_stems=12, num_suffixes=4, dim=6)
    characters = vocab.Vocab.build(made.vectors.words)
    length = max(map(len, made.vectors.words))

    def spelled(words):
        rows = batching.Ragged.of([characters.encode(w) for w in words])
        return jnp.asarray(rows.padded(np.arange(len(words)), length))

    module = jnn.CharBiLSTM(len(characters), 6, hidden=12, head="linear")
    return made, module, spelled(made.train), spelled(made.held_out)


@pytest.fixture(scope="module")
def teach(morphology):
    """Full-batch training of a student, compiled once for each distance."""
    _, module, words, _ = morphology
    tx = optax.adam(1e-2)

    def learner(distance):
        loss = model.reconstruction(module, distance)

        @jax.jit
        def learn(params, teacher):
            batch = {"characters": words, "teacher": teacher}

            def step(carry, _):
                params, state = carry
                key = jax.random.key(0)
                value = lambda p: loss({"params": p}, batch, key)[0]
                updates, state = tx.update(jax.grad(value)(params), state, params)
                return (optax.apply_updates(params, updates), state), None

            carry = params, tx.init(params)
            (params, _), _ = jax.lax.scan(step, carry, length=400)
            return params

        return lambda teacher: learn(model.initial(module, 0), jnp.asarray(teacher))

    return {name: learner(name) for name in ("D1", "D2")}


def held_out(morphology, params):
    made, module, _, words = morphology
    vectors = module.apply({"params": params}, words, deterministic=True)
    return jnp.asarray(made.vectors.lookup(made.held_out)), vectors


def test_a_student_knows_words_that_it_has_never_seen(morphology, teach):
    """Check 9: held-out stems and suffixes, well above the permuted teacher's."""
    made = morphology[0]
    teacher = made.vectors.lookup(made.train)
    # The mean of all words can be learnt without knowing whose vector is whose.
    mean = teacher.mean(axis=0, keepdims=True)
    teacher = teacher - mean

    def cosine(order):
        truth, vectors = held_out(morphology, teach["D2"](teacher[order]))
        return float(-jnp.mean(distances.d_cos(truth - mean, vectors)))

    rng = np.random.default_rng(0)
    controls = [cosine(rng.permutation(len(teacher))) for _ in range(12)]
    assert cosine(np.arange(len(teacher))) > 0.6
    assert abs(np.mean(controls)) < 0.1
    assert max(controls) < 0.35


def test_outliers_hurt_students_of_squares_more(morphology, teach):
    """Check 9, second half, for the LSTM, which the card expects without proof."""
    made = morphology[0]
    teacher = np.array(made.vectors.lookup(made.train))
    rng = np.random.default_rng(0)
    broken = rng.choice(len(teacher), len(teacher) // 10, replace=False)
    teacher[broken] += 30 * rng.normal(size=(len(broken), 6)).astype(np.float32)
    errors = {
        name: float(jnp.mean(distances.d1(*held_out(morphology, learn(teacher)))))
        for name, learn in teach.items()
    }
    assert errors["D1"] < 0.7 * errors["D2"]


@pytest.mark.parametrize("distance", ["D1", "D2"])
def test_training_comes_down_to_the_floor_and_no_further(morphology, distance):
    """Check 5: a student without negative coordinates that knows its words by heart."""
    made, _, words, _ = morphology
    module = jnn.CharBiLSTM(int(words.max()) + 1, 6, hidden=12, head="relu")
    x = jnp.asarray(made.vectors.lookup(made.train[:10]))
    batch = {"characters": words[:10], "teacher": x}
    loss, tx = model.reconstruction(module, distance), optax.adam(2e-2)

    @jax.jit
    def learn(params):
        def step(carry, _):
            params, state = carry
            value, gradient = jax.value_and_grad(
                lambda p: loss({"params": p}, batch, jax.random.key(0))[0]
            )(params)
            updates, state = tx.update(gradient, state, params)
            return (optax.apply_updates(params, updates), state), value

        (params, _), values = jax.lax.scan(step, (params, tx.init(params)), length=600)
        return params, values

    params, values = learn(model.initial(module, 0))
    measure = model.DISTANCES[distance]
    floor = float(jnp.mean(distances.nonnegative_floor(measure, x)))
    assert floor > 0
    assert values.min() >= floor * (1 - 1e-6)
    # Not all the way: a unit that is 0 for every word stays so.
    assert values[-1] - floor < 0.3 * (values[0] - floor)
    vectors = module.apply({"params": params}, words[:10], deterministic=True)
    assert (vectors @ vectors.T).min() >= 0


def test_losses_stay_above_the_floor(world):
    """Check 5, on the experiment's own students, and what the floor is."""
    school = reconstruct.School(SMOKE, world.teacher, "relu", world.tests)
    x = world.teacher.vectors.matrix
    table = school.embed(school.untaught(0))
    scores = {d: school.nearness(table, d, x) for d in model.DISTANCES}
    assert all(score[reconstruct.FLOOR] > 0 for score in scores.values())
    floors = {
        "D1": np.maximum(-x, 0).sum(axis=1).mean(),
        "D2": (np.minimum(x, 0) ** 2).sum(axis=1).mean(),
    }
    for name, floor in floors.items():
        found = scores[name][reconstruct.LOSS] - scores[name][reconstruct.FLOOR]
        assert found == pytest.approx(floor, rel=1e-4)
    free = reconstruct.School(SMOKE, world.teacher, "linear")
    for name, floor in (("D1", 0), ("Dcos", -1)):
        found = free.nearness(table, name, x)
        assert found[reconstruct.LOSS] - found[reconstruct.FLOOR] == floor
    some = table.copy()
    some[[2, 5, 7]] = 0
    assert school.nearness(some, "Dcos", x)[reconstruct.ZERO] == 3
    unit = [v / np.linalg.norm(v) if v.any() else v for v in some]
    cosines = [u @ v / np.linalg.norm(v) for u, v in zip(unit, x, strict=True)]
    found = school.nearness(some, "D1", x[::-1])[reconstruct.COSINE]
    assert found == pytest.approx(np.mean(cosines), rel=1e-4, abs=1e-6)


def test_the_way_is_from_the_best_constant_to_the_floor(world):
    """In per cent, against the median, the mean and the floor by hand."""
    x = world.teacher.vectors.matrix.astype(np.float64)
    squares = ((x - x.mean(axis=0)) ** 2).sum(axis=1).mean()
    free = reconstruct.School(SMOKE, world.teacher, "linear")
    losses = [squares, squares / 4, 0.0, 2 * squares]
    found = free.way(reconstruct.Taught("linear", "D2", 0), losses)
    np.testing.assert_allclose(found, [0, 75, 100, -100], atol=0.1)
    median = np.maximum(np.median(x, axis=0), 0)
    most, least = np.abs(x - median).sum(axis=1).mean(), np.maximum(-x, 0).sum(1).mean()
    relu = reconstruct.School(SMOKE, world.teacher, "relu")
    losses = [most, (most + least) / 2, least]
    found = relu.way(reconstruct.Taught("relu", "D1", 0), losses)
    np.testing.assert_allclose(found, [0, 50, 100], atol=0.5)


def test_a_word_of_zeros_has_cosine_0(world):
    """Section 5 of the card: such words are scored, not left out."""
    school = reconstruct.School(SMOKE, world.teacher, "relu", world.tests)
    table = world.teacher.vectors.matrix.copy()
    zero = world.tests.similarity["planted"][0][0]
    table[world.teacher.vectors.index[zero]] = 0
    words = WordVectors(world.teacher.vectors.words, table)
    cosines, human = [], []
    for a, b, score in world.tests.similarity["planted"]:
        u, v = words[a], words[b]
        size = np.linalg.norm(u) * np.linalg.norm(v)
        cosines.append(u @ v / size if size else 0.0)
        human.append(score)
    scipy_stats = pytest.importorskip("scipy.stats")
    expected = 100 * scipy_stats.spearmanr(cosines, human).statistic
    found = school.similarity(words)
    assert found["planted"] == pytest.approx(expected, abs=1e-3)
    assert found[reconstruct.SIMILARITY] == pytest.approx(expected, abs=1e-3)


def test_an_embedding_does_not_depend_on_its_batch(world):
    """Check 7: buckets of any number give the same table, in the teacher's order."""
    found = []
    for buckets in (1, 4):
        config = dataclasses.replace(SMOKE, buckets=buckets)
        school = reconstruct.School(config, world.teacher, "highway")
        found.append(school.embed(school.untaught(0)))
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)
    word = world.teacher.spelled.take(np.array([7]))
    alone = jnp.asarray(word.padded(np.array([0]), int(word.lengths[0])))
    params = {"params": school.untaught(0)}
    vector = school.module.apply(params, alone, deterministic=True)[0]
    np.testing.assert_allclose(found[0][7], vector, rtol=1e-5, atol=1e-6)


def test_the_control_has_the_same_vectors_and_updates(world, tmp_path):
    """Section 9.10 of the card: only whose vector is whose differs."""
    school = reconstruct.School(SMOKE, world.teacher, "relu")
    pair = [reconstruct.Taught("relu", "D1", 0, permuted) for permuted in (0, 1)]
    true, shuffled = (school.targets(one) for one in pair)
    assert (true != shuffled).any(axis=1).mean() > 0.9
    by_row = lambda x: x[np.lexsort(x.T)]
    np.testing.assert_array_equal(by_row(true), by_row(shuffled))
    ends = []
    for one in pair:
        params = school.teach(one, tmp_path / one.name)
        lines = reconstruct.history(tmp_path / one.name)
        ends.append((lines[-1]["step"], jax.tree.map(np.shape, params)))
        # Going on from the end trains no more.
        again = school.teach(one, tmp_path / one.name)
        jax.tree.map(np.testing.assert_array_equal, params, again)
    assert ends[0] == ends[1]
    assert ends[0][0] == SMOKE.epochs[-1] * -(-125 // SMOKE.batch_size)


def test_3cosmul_of_a_table_is_a_loop():
    """Check 10: 50 words, shifted cosines, epsilon, words asked with left out."""
    rng = np.random.default_rng(0)
    words = tuple(f"w{i}" for i in range(50))
    matrix = rng.normal(size=(50, 6)).astype(np.float32)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    right, wrong, tempted = [], [], 0
    for _ in range(60):
        asked = rng.choice(50, 3, replace=False)
        from_a, from_b, from_c = ((1 + unit @ unit[row]) / 2 for row in asked)
        score = from_b * from_c / (from_a + 1e-3)
        tempted += int(score.argmax()) in asked
        score[asked] = -np.inf
        best, second = np.argsort(-score)[:2]
        right.append(Analogy(*(words[row] for row in (*asked, best))))
        wrong.append(Analogy(*(words[row] for row in (*asked, second))))
    # A question counts if and only if its answer is the loop's: so all answers are.
    table = WordVectors(words, matrix)
    assert students._answered(table, {"all": right}) == 100
    assert students._answered(table, {"all": wrong}) == 0
    assert students._answered(table, {"all": [*right, *wrong[:20]]}) == 75
    assert tempted  # by words that are asked with, were they not left out


def test_every_word_is_spelled_and_placed(world):
    treebank, characters = world.treebank, world.teacher.characters
    ids = np.arange(len(treebank.words))
    spelled = tagging.Spelled(treebank, ids, unknown=0.5)
    plan = batching.Shuffled(treebank.splits["train"], 8, seed=0)
    batch = plan(0)
    spelled.note(batch["types"])
    made = spelled.batch(batch)
    assert made["short"].shape[1] == 8 and len(made["short"]) % 64 == 0
    letters = [
        "".join(characters.decode(row))
        for half in (made["short"], made["long"])
        for row in half
    ]
    for sentence, types in zip(made["place"], batch["types"], strict=True):
        for place, number in zip(sentence, types, strict=True):
            word = treebank.words[number] if number else ""
            assert letters[place] == word
    np.testing.assert_array_equal(made["ids"], batch["types"])
    hidden = spelled.batch(batch, np.random.default_rng(0))["ids"]
    changed = hidden != made["ids"]
    assert (hidden[changed] == vocab.UNK_ID).all()
    assert treebank.singletons[batch["types"][changed]].all()
    assert 0 < changed.sum() < treebank.singletons[batch["types"]].sum()


def test_long_words_keep_their_ends():
    letters = batching.Ragged.of([np.arange(1, 41), np.arange(1, 25)])
    cut = treebanks.shortened(letters, 24)
    assert cut.lengths.tolist() == [24, 24]
    assert cut.values[:24].tolist() == [*range(1, 13), *range(29, 41)]


def test_unseen_words_are_looked_up_only_where_the_teacher_has_them():
    """FULL knows the training part; FULL+EMB what the whole teacher has beside it."""
    sentence = lambda *words: treebanks.Sentence(words, ("N",) * len(words))
    parts = {
        "train": [sentence("the", "dog", "the")],
        "dev": [sentence("The", "cat", "dgo")],
        "test": [sentence("Cat", "dog", "cow")],
    }
    whole = WordVectors(("the", "cat", "cow"), np.eye(3, dtype=np.float32))
    texts = Texts(parts, planted("made up", 3))
    every = vocab.Vocab.build("the dog The cat dgo Cat cow".split())
    encoded = encode(texts, every, whole)
    spelled = batching.Ragged.of([every.encode(word) for word in ("the", "cat")])
    taught = data.Teacher(
        whole.subset(("the", "cat")), every, spelled, 3, planted("table", 3)
    )
    world = data.World(taught, data.Tests(), encoded)
    built = tagging.Taggers(SMOKE, world, epath.Path("unused"))
    known = {False: {"the", "dog"}, True: {"the", "dog", "The", "cat", "Cat", "cow"}}
    assert len(encoded.words) == 2 + len(known[True]) + 1
    for pretrained, words in known.items():
        for split in ("dev", "test"):
            for batch in built._held_out(split):
                ids = built._spelled[pretrained].batch(batch)["ids"]
                for row, looked_up in zip(batch["types"], ids, strict=True):
                    for type_, found in zip(row, looked_up, strict=True):
                        own = type_ == vocab.PAD_ID or encoded.words[type_] in words
                        assert found == (type_ if own else vocab.UNK_ID)
    # "dog" is in the treebank, but not in the teacher: one of three words.
    assert encoded.share_without_vector == pytest.approx(1 / 3)


@pytest.fixture(scope="module")
def taggers(world, tmp_path_factory):
    return tagging.Taggers(SMOKE, world, tmp_path_factory.mktemp("tagging"))


def test_words_by_what_a_system_knows(world, taggers):
    """FULL+EMB starts from the teacher; entries and parameters are as shipped."""
    treebank, teacher = world.treebank, world.teacher
    systems = {s.name: s for s in tagged.systems(SMOKE)}
    spelled = ("", "(D1)", "(D2)", "(Dcos)", "(D1, permuted)")
    assert list(systems) == ["FULL", "FULL+EMB", *(f"CHAR{name}" for name in spelled)]
    start = taggers.params(systems["FULL+EMB"], 0)
    vector = teacher.vectors[treebank.words[5]]
    np.testing.assert_array_equal(start["words"]["table"][5], vector)
    full = taggers.stored(tagging.FULL)
    emb, char = (taggers.stored(systems[n]) for n in ("FULL+EMB", "CHAR"))
    letters = set("".join(treebank.words[2 : treebank.known]))
    assert char["lookup entries"] == len(letters)
    assert full["lookup entries"] == len(letters) + treebank.known - 2
    known = set(treebank.words[2 : treebank.known]) | set(teacher.vectors.words)
    assert emb["lookup entries"] == len(letters) + len(known)
    dim = teacher.vectors.dim
    gap = emb["parameters"] - full["parameters"]
    assert gap == dim * (emb["lookup entries"] - full["lookup entries"])
    params = taggers.params(systems["CHAR"], 0)
    numbers = sum(x.size for x in jax.tree.leaves(params))
    extra = len(teacher.characters) - 2 - len(letters)
    assert char["parameters"] == numbers - extra * SMOKE.hidden


def test_a_tagger_begins_with_the_student_and_fresh_moments(world, taggers):
    """Sections 2 and 9.9: stage 2 takes over the characters, not Adam's state."""
    system = {s.name: s for s in tagged.systems(SMOKE)}["CHAR(D1)"]
    params = taggers.params(system, 0)
    one = reconstruct.Taught("relu", "D1", 0)
    saved = train.load_params(one.folder(taggers._workdir))["params"]
    jax.tree.map(np.testing.assert_array_equal, params["char"], saved)
    state = train.State.create(
        {"params": params}, model.optimizer(1e-3, 5), jax.random.key(0)
    )
    moments = [x for x in jax.tree.leaves(state.opt_state) if np.ndim(x) > 0]
    assert moments and not any(np.any(x) for x in moments)


def test_accuracy_counts_real_words_once(world, taggers):
    """Against a loop over sentences, one at a time and without padding."""
    program = taggers._program(False, 0.1)
    treebank = world.treebank
    params = {"params": taggers.params(tagging.System("CHAR"), 3)}
    params = jax.tree.map(jnp.asarray, params)
    spelled = taggers._spelled[False]
    counts = [
        program.hits(params, spelled.batch(batch)) for batch in taggers._held_out("dev")
    ]
    found = sum(counts[1:], start=counts[0])
    columns = treebank.splits["dev"]
    right = total = 0
    length = taggers._buckets[-1]
    for row in range(len(columns["types"])):
        own = {n: c.padded(np.array([row]), length) for n, c in columns.items()}
        batch = spelled.batch(own)
        inputs = [jnp.asarray(batch[n]) for n in ("short", "long", "place", "ids")]
        logits = program.module.apply(params, *inputs, deterministic=True)
        size = int(columns["types"].lengths[row])
        best = np.asarray(logits)[0, :size].argmax(axis=1)
        right += int(np.sum(best == own["tags"][0, :size]))
        total += size
    assert float(found.value) == pytest.approx(right / total)


@pytest.fixture(scope="module")
def full(world, taggers):
    """FULL without dropout, numbers for it, and a batch with padding."""
    module = taggers._program(True, 0.0).module
    params = taggers.params(tagging.FULL, 3)
    batch = taggers._spelled[False].batch(taggers._plan(0)(0))
    assert (batch["ids"] == vocab.PAD_ID).any()
    return module, {"params": jax.tree.map(jnp.asarray, params)}, batch


def test_words_are_looked_up_and_spelled_side_by_side(world, full):
    """FULL's input is e_w and h^w of each word, one word at a time."""
    module, variables, batch = full
    params, dim = variables["params"], module.dim
    char = jnn.CharBiLSTM(module.characters, dim, module.hidden)
    spell = jax.jit(
        lambda x: char.apply({"params": params["char"]}, x, deterministic=True)
    )
    short = len(batch["short"])
    assert batch["place"].max() >= short  # some word is among the long ones
    vectors = np.zeros((*batch["ids"].shape, 2 * dim), np.float32)
    for row, column in np.argwhere(batch["ids"] != vocab.PAD_ID):
        at = batch["place"][row, column]
        one = batch["short"][at] if at < short else batch["long"][at - short]
        letters = np.pad(one, (0, batch["long"].shape[1] - len(one)))
        e = params["words"]["table"][batch["ids"][row, column]]
        vectors[row, column] = np.concatenate([e, spell(letters[None])[0]])
    mask = jnp.asarray(batch["ids"] != vocab.PAD_ID)
    own = {"params": params["tagger"]}
    expected = module.tagger.apply(own, jnp.asarray(vectors), mask, deterministic=True)
    inputs = [jnp.asarray(batch[n]) for n in ("short", "long", "place", "ids")]
    found = module.apply(variables, *inputs, deterministic=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_loss_of_a_tagger_is_that_of_its_words(full):
    """Minus the log-likelihood of the right tag, a word at a time, averaged."""
    module, variables, batch = full
    inputs = [jnp.asarray(batch[n]) for n in ("short", "long", "place", "ids")]
    scores = np.asarray(module.apply(variables, *inputs, deterministic=True))
    losses = [
        np.log(np.exp(scores[place]).sum()) - scores[place][batch["tags"][place]]
        for place in map(tuple, np.argwhere(batch["ids"] != vocab.PAD_ID))
    ]
    given = jax.tree.map(jnp.asarray, batch)
    found, _ = model.tagging_loss(module)(variables, given, jax.random.key(0))
    assert float(found) == pytest.approx(np.mean(losses), rel=1e-5)


def test_the_best_cell_of_full_is_that_of_every_system(monkeypatch, tmp_path):
    """A made-up grid of 2 × 2, whose best cell is in no corner by order."""
    rates, dropouts = (1e-3, 2e-3), (0.1, 0.5)
    accuracy = {
        tagging.Cell(1e-3, 0.1): 0.4,
        tagging.Cell(2e-3, 0.1): 0.9,
        tagging.Cell(1e-3, 0.5): 0.8,
        tagging.Cell(2e-3, 0.5): 0.3,
    }
    fitted = []

    class Outcomes:
        treebank = SimpleNamespace(tags=("N",), share_without_vector=0.25)

        def __init__(self, *_):
            pass

        def fit(self, system, cell, seed):
            fitted.append((system.name, cell, seed))
            # What FULL has on test would choose another cell.
            return {tagging.DEV: accuracy[cell], tagging.TEST: 1 - accuracy[cell]}

        def stored(self, system):
            return {"lookup entries": 1, "parameters": 2}

        def folder(self, system, cell, seed):
            return accuracy[cell]

    monkeypatch.setattr(tagged, "Taggers", Outcomes)
    monkeypatch.setattr(
        tagged.train, "evaluations", lambda at, _: [{"step": 1, tagging.DEV: at}]
    )
    settings = dataclasses.replace(
        SMOKE.tagging, learning_rates=rates, dropouts=dropouts
    )
    config = dataclasses.replace(SMOKE, tagging=settings, seeds=2)
    findings = Findings()
    tagged.study(config, None, epath.Path(tmp_path), findings)
    best = tagging.Cell(2e-3, 0.1)
    assert findings.notes["cell"] == dataclasses.asdict(best)
    assert [x for x in findings.notes.values() if x == 25.0]
    assert {(name, seed) for name, _, seed in fitted[:4]} == {("FULL", 0)}
    assert {cell for _, cell, _ in fitted[:4]} == set(accuracy)
    names = [system.name for system in tagged.systems(config)]
    assert fitted[4:] == [(name, best, seed) for name in names for seed in (0, 1)]
    rows = {(row.name, row.metric): row.values for row in findings.rows}
    assert all(rows[name, tagged.ACCURACY] == (10.0, 10.0) for name in names)
    for cell, value in accuracy.items():
        assert rows[str(cell), tagged.GRID] == (100 * value,)


def test_one_program_serves_every_rate():
    """A rate is in the optimiser's state; the first step of Adam is as long as it."""
    params = {"w": jnp.ones(3)}
    tx = model.optimizer(0.0, 4)
    for rate in (0.0, 1e-3, 1e-2):
        state, moved = model.optimizer(rate, 4).init(params), []
        for _ in range(5):
            updates, state = tx.update({"w": jnp.ones(3)}, state, params)
            moved.append(float(updates["w"][0]))
        # A gradient that stays is followed by the rate, which falls to 0.
        falling = [-rate * share for share in (1, 0.75, 0.5, 0.25, 0)]
        np.testing.assert_allclose(moved, falling, rtol=1e-3, atol=1e-9)


def test_a_share_of_the_fitted_is_noise():
    vectors = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    sample = linear.Sample.of(vectors, 40, 0.1, seed=1)
    assert sorted([*sample.fitted, *sample.held_out]) == list(range(40))
    broken = np.flatnonzero((sample.noisy != sample.clean).any(axis=1))
    assert len(broken) == 2 and set(broken) <= set(sample.fitted)


def test_verdicts_are_of_paired_differences():
    """By hand: t of two degrees of freedom at 97.5 % is 4.3027."""
    findings = Findings(paper=presets.PAPER)
    better, worse = [3.0, 4.0, 6.0], [1.0, 2.0, 3.0]
    findings.beats("a", better, worse, printed=_PRINTED)
    findings.beats("b", worse, better)
    findings.beats("c", worse, better, margin=5.0)
    verdicts = [claim.verdict for claim in findings.claims]
    assert verdicts == ["supported", "contradicted", "supported"]
    half = 4.3027 * np.std([2, 2, 3], ddof=1) / np.sqrt(3)
    low, high = 7 / 3 - half, 7 / 3 + half
    evidence = findings.claims[0].evidence
    assert f"[{low:.3g}, {high:.3g}], 3 seeds" in evidence
    assert evidence.endswith("in the paper 13 against 3")
    planted = Findings()
    planted.beats("a", better, worse, printed=_PRINTED)
    assert "paper" not in planted.claims[0].evidence


def test_the_papers_figures_stand_beside_its_own_size_only():
    names = ("similarity", "analogies", "tagging", "narrow", "smoke")
    own = [name for name in names if presets.PRESETS[name][1].is_near_the_paper]
    assert own == ["similarity", "analogies", "tagging"]
    assert config_of("custom").is_near_the_paper
    assert not config_of("custom", "--teacher", "my.vec").is_near_the_paper


def test_a_claim_tells_the_papers_epochs_where_they_are_others():
    """Its figures of analogies are of students of 10 epochs."""

    def claim(config, head):
        school = students.Students.__new__(students.Students)
        school._config, school._head = config, head
        school._findings = Findings(paper=presets.PAPER)
        metric = students.SYNTACTIC
        scores = {"D1": {metric: [1.0, 2.0]}, "random": {metric: [3.0, 5.0]}}
        school._beats(metric, scores, "random", "D1")
        (found,) = school._findings.claims
        return found.claim.partition("(%) ")[2], "65.21" in found.evidence

    twenty = dataclasses.replace(SMOKE, epochs=(20,))
    ten = dataclasses.replace(SMOKE, epochs=(10,))
    more = "(highway head, 20 epochs; the paper's 10)"
    assert claim(twenty, "highway") == (more, True)
    assert claim(ten, "highway") == ("(highway head, 10 epochs)", True)
    assert claim(twenty, "relu") == ("(relu head, 20 epochs)", False)


def test_the_row_of_an_epoch_is_the_score_after_it(world, tmp_path):
    """Against students that stop there, scored from outside."""
    wanted = {
        "studies": ("similarity",),
        "heads": ("relu",),
        "distances": ("D1",),
        "permuted": (),
        "seeds": 2,
    }
    config = dataclasses.replace(SMOKE, **wanted)
    findings = Findings()
    workdir = epath.Path(tmp_path)
    own = students.Students(config, world, "relu", workdir, findings)
    own.measure()
    x = world.teacher.vectors.matrix
    metrics = reconstruct.LOSS, reconstruct.FLOOR, reconstruct.COSINE
    rows = {(row.name, row.metric): row.values for row in findings.rows}
    for epoch in (0, 2, 4):
        scores = []
        for seed in range(2):
            stopped = dataclasses.replace(config, epochs=(epoch,))
            school = reconstruct.School(stopped, world.teacher, "relu", world.tests)
            one = reconstruct.Taught("relu", "D1", seed)
            place = workdir / f"{epoch}-{seed}"
            params = school.teach(one, place) if epoch else school.untaught(seed)
            table = school.embed(params)
            scores.append(school.nearness(table, "D1", x))
        for metric in metrics:
            values = [score[metric] for score in scores]
            np.testing.assert_allclose(own._at("D1", epoch, metric), values, rtol=1e-5)
            found = rows["D1", f"{metric} after {epoch} epochs"]
            np.testing.assert_allclose(found, values, atol=1e-4)
    floor = np.maximum(-x, 0).sum(axis=1).mean()
    assert rows["D1", reconstruct.LEAST] == (pytest.approx(floor, abs=1e-3),)
    assert rows["D1", reconstruct.FLOOR] == rows["D1", f"{metrics[1]} after 4 epochs"]
    # The README has the last epoch only.
    curves = {
        reconstruct.LEAST,
        *(f"{m} after {e} epochs" for m in metrics for e in (0, 2, 4)),
    }
    assert curves <= {row.metric for row in findings.rows}
    assert not curves & set(findings.shown)
    assert (workdir / "figures" / "relu-reconstruction.svg").exists()


def predicted(settings):
    """Claims of check 11, each with the rows that it is of."""
    distances, epochs = settings["distances"], settings["epochs"]
    if settings["preset"] == "similarity":
        metric = "mean similarity"
        for epoch in epochs:
            after = "" if epoch == epochs[-1] else f" after {epoch} epochs"
            where = f"{metric} (relu head, {epoch} epochs"
            for name in distances:
                one, other = (name, metric + after), ("random", metric)
                yield f"{name} beats random: {where}", one, other
            one, other = (("D1" + kind, metric + after) for kind in ("", ", permuted"))
            yield f"D1 beats D1, permuted: {where}", one, other
    if settings["preset"] == "analogies":
        pairs = [("random", name, "syntactic analogies (%)") for name in distances]
        pairs += [("D1", "D1, permuted", metric) for metric in _ANALOGIES]
        for better, worse, metric in pairs:
            claim = (
                f"{better} beats {worse}: {metric} (highway head, {epochs[-1]} epoch"
            )
            one, other = ((f"highway/{name}", metric) for name in (better, worse))
            yield claim, one, other
    if settings["preset"] == "tagging":
        metric = "test accuracy (%)"
        control = "CHAR(D1, permuted)"
        pairs = [(f"CHAR({distance})", "CHAR") for distance in distances]
        for better, worse in [*pairs, ("CHAR(D1)", control), (control, "CHAR")]:
            claim = f"{better} beats {worse}: {metric}"
            yield claim, (better, metric), (worse, metric)


@pytest.mark.parametrize("preset", ["similarity", "analogies", "tagging"])
def test_committed_results_answer_every_prediction(preset):
    """Check 11: whatever the verdict, it is told, and it is that of the rows.

    So are those on the control. Claims begin as predicted: what they tell of the paper
    may follow.
    """
    scipy_stats = pytest.importorskip("scipy.stats")
    found = json.loads((RESULTS / f"{preset}.json").read_text())
    rows = {(r["name"], r["metric"]): r["values"] for r in found["rows"]}
    verdicts = {c["claim"]: c["verdict"] for c in found["claims"]}
    wanted = list(predicted(found["config"]))
    assert len(wanted) >= 6
    for claim, better, worse in wanted:
        gap = scipy_stats.ttest_rel(rows[better], rows[worse]).confidence_interval()
        says = "supported" if gap.low > 0 else "contradicted" if gap.high < 0 else ""
        told = [verdict for full, verdict in verdicts.items() if full.startswith(claim)]
        assert told == [says or "inconclusive"], claim


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--epochs", "4", "2"), "--epochs .*: expected ascending"),
        (("--epochs", "0"), "--epochs .*: expected ascending"),
        (("--curve-every", "3"), "--curve-every 3: expected to divide"),
        (("--permuted", "Dinf"), "--permuted Dinf: not in --distances"),
        (("--words", "0"), "--words 0: expected 1 or more"),
        (("--outliers", "1"), "--outliers 1.0: expected 0 to below 1"),
        (("--distances",), "--distances : expected one or more"),
        (("--distances", "D1", "D1"), "--distances D1 D1: .* each once"),
        (("--heads",), "--heads : expected one or more"),
        (("--heads", "highway"), "--heads highway: expected relu, for tagging"),
        (
            ("--studies", "outliers", "--heads", "relu", "linear"),
            "--heads relu linear: expected one, for outliers",
        ),
        (("--tagging.epochs", "0"), "--tagging.epochs 0: expected 1 or more"),
        (("--tagging.held-out", "0"), "--tagging.held-out 0: expected 1 or more"),
        (("--tagging.sentences", "0"), "--tagging.sentences 0: expected 1 or more"),
        (("--batch-size", "0"), "--batch-size 0: expected 1 or more"),
        (
            ("--linear-words", "0"),
            "--linear-words 0: expected 36 or more, as --hidden is 8",
        ),
        (
            ("--linear-words", "403", "--hidden", "100"),
            "--linear-words 403: expected 404 or more, as --hidden is 100",
        ),
        (
            ("--hidden", "100", "--linear-words", "404"),
            "--words 20000: expected 404 or more words .*, found 125",
        ),
        (("--tagging.dropouts",), "--tagging.dropouts : expected one or more"),
    ],
)
def test_mistakes_are_named(arguments, problem, tmp_path):
    config = config_of("smoke", *arguments, "--workdir", str(tmp_path))
    with pytest.raises(InputError, match=problem):
        main.run(config)


@pytest.mark.data
def test_the_treebank_has_the_tags_of_the_penn_treebank():
    for name in ("ud-english-ewt", "glove-100d-subset"):
        if sources.locate(name) is None:
            pytest.skip(f"needs {name}: jaxemb data where {name}")
    config = config_of(
        *("tagging", "--tagging.sentences", "500", "--tagging.held-out", "50"),
        *("--words", "1000"),
    )
    world = data.load(config)
    treebank = world.treebank
    assert {"NN", "NNP", "VBZ", "DT", "IN", "."} <= set(treebank.tags)
    assert len(treebank.splits["train"]["types"]) == 500
    assert treebank.data.kind == "subset"
    # The teacher writes no capitals: a word that has some is found without them, and
    # both forms are entries of FULL+EMB's table.
    the = [treebank.words.index(form) for form in ("The", "the")]
    np.testing.assert_array_equal(*treebank.vectors[the])
    assert treebank.has_vector[the].all()
    assert treebank.words_with_teacher > world.teacher.size + 1
    characters = set(itertools.chain(*treebank.words[2 : treebank.known]))
    assert treebank.own_characters == len(characters)
    assert characters <= set(world.teacher.characters.words)
