"""The paper's systems as the experiment assembles them, and checks of its card."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from experiments.common import cli
from experiments.subword_reconstruction import config as presets
from experiments.subword_reconstruction import data, main, model, reconstruct, tagging
from experiments.subword_reconstruction.config import Config
from jaxemb import nn as jnn
from jaxemb.data import batching, sources, synthetic, vocab
from jaxemb.errors import InputError
from jaxemb.losses import distances

SMOKE = presets.PRESETS["smoke"][1]


def config_of(*arguments):
    return cli.parse(presets.SLUG, presets.PRESETS, list(arguments))


@pytest.fixture(scope="module")
def teacher_and_tests():
    return data.load(SMOKE)


@pytest.fixture(scope="module")
def treebank(teacher_and_tests):
    return data.load_treebank(SMOKE, teacher_and_tests[0])


def taught(module, words, teacher, distance, steps=400):
    """Students of one teacher by full batches, for tests."""
    tx = optax.adam(1e-2)
    loss = model.reconstruction(module, distance)
    batch = {"characters": words, "teacher": teacher}

    @jax.jit
    def learn(params):
        def step(carry, _):
            params, state = carry
            key = jax.random.key(0)
            gradient = jax.grad(lambda p: loss({"params": p}, batch, key)[0])(params)
            updates, state = tx.update(gradient, state, params)
            return (optax.apply_updates(params, updates), state), None

        (params, _), _ = jax.lax.scan(step, (params, tx.init(params)), length=steps)
        return params

    return learn(model.initial(module, 0)["params"])


def test_a_student_knows_words_that_it_has_never_seen():
    """Check 9: held-out stems and suffixes, well above the permuted teacher's."""
    world = synthetic.planted_morphology(num_stems=12, num_suffixes=4, dim=6)
    characters = vocab.Vocab.build(world.vectors.words)
    spelled = {
        name: jnp.asarray(
            batching.Ragged.of([characters.encode(w) for w in words]).padded(
                np.arange(len(words)), max(map(len, world.vectors.words))
            )
        )
        for name, words in (("train", world.train), ("held out", world.held_out))
    }
    teacher = world.vectors.lookup(world.train)
    truth = jnp.asarray(world.vectors.lookup(world.held_out))
    module = jnn.CharBiLSTM(len(characters), 6, hidden=12, head="linear")
    cosine = {}
    orders = np.arange(len(teacher)), np.random.default_rng(0).permutation(len(teacher))
    for name, order in zip(("true", "permuted"), orders, strict=True):
        rows = jnp.asarray(teacher[order])
        params = taught(module, spelled["train"], rows, "D2")
        vectors = module.apply(
            {"params": params}, spelled["held out"], deterministic=True
        )
        cosine[name] = float(-jnp.mean(distances.d_cos(truth, vectors)))
    assert cosine["true"] > 0.6
    assert abs(cosine["permuted"]) < 0.35
    assert cosine["true"] > cosine["permuted"] + 0.3


def test_losses_stay_above_the_floor_while_a_relu_student_learns(teacher_and_tests):
    """Check 5, along the training of the experiment's own students."""
    teacher, tests = teacher_and_tests
    school = reconstruct.School(SMOKE, teacher, tests, "relu")
    for seed in range(2):
        table = school.embed(school.untaught(seed))
        scores = [school.nearness(table, d) for d in model.DISTANCES]
        assert all(score[reconstruct.FLOOR] > 0 for score in scores)
    x = teacher.vectors.matrix
    wanted = {
        "D1": np.maximum(-x, 0).sum(axis=1).mean(),
        "D2": (np.minimum(x, 0) ** 2).sum(axis=1).mean(),
    }
    for name, floor in wanted.items():
        found = school.nearness(table, name)["floor"]
        assert found == pytest.approx(floor, rel=1e-4)
    linear = reconstruct.School(SMOKE, teacher, tests, "linear")
    assert linear.nearness(table, "Dcos")["floor"] == -1
    assert linear.nearness(table, "D1")["floor"] == 0


def test_an_embedding_does_not_depend_on_its_batch(teacher_and_tests):
    """Check 7: buckets of any number give the same table."""
    teacher, tests = teacher_and_tests
    found = []
    for buckets in (1, 4):
        config = dataclasses.replace(SMOKE, buckets=buckets)
        school = reconstruct.School(config, teacher, tests, "highway")
        found.append(school.embed(school.untaught(0)).matrix)
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_every_word_is_spelled_and_placed(treebank):
    ids = np.arange(len(treebank.words))
    spelled = tagging.Spelled(treebank, ids, unknown=0.5)
    plan = batching.Shuffled(treebank.splits["train"], 8, seed=0)
    batch = plan(0)
    spelled.note(batch["types"])
    made = spelled.batch(batch)
    assert made["short"].shape[1] == 8 and len(made["short"]) % 64 == 0
    letters = [
        "".join(treebank.characters.decode(row))
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
    assert changed.sum() < treebank.singletons[batch["types"]].sum()


def test_long_words_keep_their_ends():
    letters = batching.Ragged.of([np.arange(1, 41), np.arange(1, 25)])
    cut = tagging._shortened(letters)
    assert cut.lengths.tolist() == [24, 24]
    assert cut.values[:24].tolist() == [*range(1, 13), *range(29, 41)]


def test_words_by_what_a_system_knows(teacher_and_tests, treebank, tmp_path):
    teacher, tests = teacher_and_tests
    school = reconstruct.School(SMOKE, teacher, tests, "relu")
    vectors = {w: teacher.vectors[w] for w in treebank.words if w in teacher.vectors}
    taggers = tagging.Taggers(SMOKE, treebank, teacher, vectors, school, tmp_path)
    systems = {s.name: s for s in tagging.systems(SMOKE)}
    assert list(systems) == ["FULL+EMB", "CHAR", "CHAR(Dcos)", "CHAR(Dcos, permuted)"]
    start = taggers.params(systems["FULL+EMB"], 0)
    word = treebank.words[5]
    np.testing.assert_array_equal(start["words"]["table"][5], vectors[word])
    full = taggers.stored(tagging.System("FULL", full=True))
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
    extra = len(treebank.characters) - 2 - len(letters)
    assert char["parameters"] == numbers - extra * SMOKE.hidden


def test_one_program_serves_every_rate(treebank):
    """The rate is in the optimiser's state: a step of another rate is another step."""
    params = {"w": jnp.ones(3)}
    tx = model.optimizer(0.0)
    moved = {}
    for rate in (0.0, 1e-3, 1e-2):
        state = model.optimizer(rate).init(params)
        updates, _ = tx.update({"w": jnp.ones(3)}, state, params)
        moved[rate] = float(updates["w"][0])
    assert moved[0.0] == 0
    assert moved[1e-3] == pytest.approx(-1e-3, rel=1e-3)
    assert moved[1e-2] == pytest.approx(-1e-2, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--epochs", "4", "2"), "--epochs .*: expected ascending"),
        (("--epochs", "0"), "--epochs .*: expected ascending"),
        (("--permuted", "D2"), "--permuted D2: not in --distances"),
    ],
)
def test_mistakes_are_named(arguments, problem, tmp_path):
    config = config_of("smoke", *arguments, "--workdir", str(tmp_path))
    with pytest.raises(InputError, match=problem):
        main.run(config)


def test_words_must_be_some():
    with pytest.raises(InputError, match="--words 0: expected 1 or more"):
        data.load(Config(words=0))


@pytest.mark.data
def test_the_treebank_has_the_tags_of_the_penn_treebank(teacher_and_tests):
    if sources.locate("ud-english-ewt") is None:
        pytest.skip("needs ud_english_ewt/en_ewt-ud-train.conllu")
    config = config_of(
        "tagging", "--tagging.sentences", "500", "--tagging.held-out", "50"
    )
    treebank = data.load_treebank(config, teacher_and_tests[0])
    assert {"NN", "NNP", "VBZ", "DT", "IN", "."} <= set(treebank.tags)
    assert len(treebank.splits["train"]["types"]) == 500
    assert treebank.data[0].kind == "subset"
