"""Students of a teacher's vectors: what the card says cannot be faked."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from experiments.subword_reconstruction import linear, model, reconstruct
from jaxemb import nn as jnn
from jaxemb.data import batching, synthetic, vocab
from jaxemb.data.analogies import Analogy
from jaxemb.data.vectors import WordVectors
from jaxemb.losses import distances
from tests.subword_reconstruction.shared import SMOKE


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
    assert reconstruct.answered(table, {"all": right}) == 100
    assert reconstruct.answered(table, {"all": wrong}) == 0
    assert reconstruct.answered(table, {"all": [*right, *wrong[:20]]}) == 75
    assert tempted  # by words that are asked with, were they not left out


def test_a_share_of_the_fitted_is_noise():
    vectors = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    sample = linear.Sample.of(vectors, 40, 0.1, seed=1)
    assert sorted([*sample.fitted, *sample.held_out]) == list(range(40))
    broken = np.flatnonzero((sample.noisy != sample.clean).any(axis=1))
    assert len(broken) == 2 and set(broken) <= set(sample.fitted)
