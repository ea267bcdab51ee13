"""Words around an encoder's vectors: losses by loops, reductions, whole runs.

Of the checks in section 10 of card 03 these are here or elsewhere:

1. reduction to skip-gram          `test_one_context_is_plain_skip_gram`
2. Jensen                          tests/losses/test_noise_contrast.py
3. the loss and gradient at V = 0  `test_it_begins_with_coins`
4. PMI                             tests/static/test_trainer.py
5. the sampler                     tests/static/test_noise.py
6. windows                         tests/static/test_blocks.py, `test_no_word_…`
7. masks and pieces                tests/nn/test_pieces.py, tests/pretrained/,
                                   `test_words_that_fill_up_change_nothing`
8. the encoder's port              tests/pretrained/test_huggingface.py; frozen:
                                   tests/test_dynamic_to_static.py
9. the CRF                         tests/nn/test_crf.py
10. polysemy                       `test_senses_part_only_if_the_encoder_tells_them`
11. a small real run               experiments/dynamic_to_static/results/
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxemb import losses, static, train
from jaxemb.data import corpus, synthetic
from jaxemb.errors import InputError
from jaxemb.static import ContextToStatic, TokenVectors, contextual, descent
from jaxemb.static.blocks import Blocks
from jaxemb.static.objectives import SkipGram
from tests.static import corpora

WINDOW, VOCAB, DIM, WIDTH = 2, 12, 5, 7
SHAPE = GROUPS, GROUP = 3, 8
SHARED = 4


@pytest.fixture(scope="module")
def block():
    rng = np.random.default_rng(1)
    return corpora.random_block(
        *(rng, VOCAB, SHAPE, WINDOW, SHARED),
        vectors=jnp.array(rng.normal(size=(*SHAPE, WIDTH)), jnp.float32),
    )


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(2)
    shapes = {"output": (VOCAB, DIM), "projection": (WIDTH, DIM), "bias": (DIM,)}
    return {n: jnp.array(rng.normal(size=s), jnp.float32) for n, s in shapes.items()}


def rows_of(objective, tables, block):
    whole = {name: tables[name] for name in objective.whole}
    return {**descent.take(tables, objective.ids(block)), **whole}


def loss_of(objective, tables, block, **options):
    return objective.loss(rows_of(objective, tables, block), block, **options)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def windows(block, itself=False):
    """(group, centre, places of its neighbours), of centres that have one."""
    for g, c in np.ndindex(SHAPE):
        before, after = int(block.before[g, c]), int(block.after[g, c])
        here = c + WINDOW
        near = [j for j in range(here - before, here + after + 1) if j != here]
        if near:
            yield g, c, sorted([*near, here]) if itself else near


def by_loops(objective, tables, block):
    """The loss in float64, one pair at a time."""
    tables = {n: np.asarray(t, np.float64) for n, t in tables.items()}
    vectors = np.asarray(block.vectors, np.float64)
    total, words, share = 0.0, 0, objective.negatives / SHARED
    pairs = list(windows(block, objective.include_self))
    of_group = {}
    for g, c, near in pairs:
        u = vectors[g, c] @ tables["projection"]
        u += tables["bias"] if objective.bias else 0
        scores = np.array([u @ tables["output"][block.words[g, j]] for j in near])
        of_group.setdefault(g, []).append((c, u, scores))
    scale = DIM**-0.5 if objective.variant == "released_code" else 1.0
    for g, centres in of_group.items():
        joint = softmax(np.concatenate([scale * s for _, _, s in centres]))
        start = 0
        for _, u, scores in centres:
            a = softmax(scale * scores)
            if objective.over == "group":
                a = joint[start : start + len(scores)]
            if not objective.attention:
                a = np.full(len(scores), 1 / len(scores))
            start += len(scores)
            false = sum(
                share * np.logaddexp(0, u @ tables["output"][n])
                for n in np.asarray(block.noise[g])
            )
            words += 1
            if objective.variant == "paper":
                total += np.logaddexp(0, -a @ scores) + false
            else:
                total += np.logaddexp(0, -a * scores).sum() + len(scores) * false
    return total, words


@pytest.mark.parametrize("variant", ["paper", "released_code"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"attention": False},
        {"include_self": True, "bias": True},
        {"over": "group"},
    ],
    ids=str,
)
def test_the_loss_is_a_loop_over_centres(tables, block, variant, options):
    objective = ContextToStatic(window=WINDOW, variant=variant, **options)
    wanted, words = by_loops(objective, tables, block)
    loss = loss_of(objective, tables, block, every=1)
    assert loss.total == pytest.approx(wanted, rel=1e-5)
    assert loss.shown == pytest.approx(wanted, rel=1e-5)
    assert loss.words == words


def test_the_papers_loss_is_the_one_of_the_library(tables, block):
    """Noise words of all kinds, so that shared ones are each centre's own."""
    block = block._replace(noise=jnp.tile(jnp.arange(VOCAB), (GROUPS, 1)))
    objective = ContextToStatic(window=WINDOW, negatives=VOCAB)
    wanted = 0.0
    for g, c, near in windows(block):
        u = block.vectors[g, c] @ tables["projection"]
        context = tables["output"][block.words[g, jnp.array(near)]]
        wanted += float(losses.aggregated_sgns(u, context, tables["output"]))
    loss = loss_of(objective, tables, block)
    assert loss.total == pytest.approx(wanted, rel=1e-5)


def one_each(block):
    """The same centres with one neighbour, the word after."""
    return block._replace(before=0 * block.before, after=0 * block.after + 1)


@pytest.mark.parametrize("variant", ["paper", "released_code"])
def test_one_context_is_plain_skip_gram(tables, block, variant):
    """Encoder a lookup table, U = I, one word around: loss and gradients of SGNS."""
    block = one_each(block)
    words = {"input": jax.random.normal(jax.random.key(0), (VOCAB, DIM))}
    words["output"] = tables["output"]
    plain, ours = (
        SkipGram(window=WINDOW),
        ContextToStatic(window=WINDOW, variant=variant, scaled=False),
    )

    def ours_of(words):
        looked_up = block._replace(vectors=words["input"][block.centres])
        parts = {"output": words["output"], "projection": jnp.eye(DIM)}
        return loss_of(ours, parts, looked_up).total

    def plain_of(words):
        return plain.loss(descent.take(words, plain.ids(block)), block).total

    wanted, gradients = jax.value_and_grad(plain_of)(words)
    found, own = jax.value_and_grad(ours_of)(words)
    assert found == pytest.approx(float(wanted), rel=1e-5)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(own[name], gradient, rtol=1e-4, atol=1e-5)


def test_variants_part_with_two_contexts(tables, block):
    def both(block):
        return [
            float(loss_of(objective, tables, block).total)
            for objective in (
                ContextToStatic(window=WINDOW),
                ContextToStatic(window=WINDOW, variant="released_code", scaled=False),
            )
        ]

    one, other = both(one_each(block))
    assert one == pytest.approx(other, rel=1e-5)
    two = one_each(block)._replace(before=0 * block.before + 1)
    one, other = both(two)
    assert abs(one - other) > 0.01 * one


@pytest.mark.parametrize("variant", ["paper", "released_code"])
def test_it_begins_with_coins(tables, block, variant):
    """V = 0: log 2 a choice, equal weights, no gradient for U and some for V."""
    objective = ContextToStatic(window=WINDOW, variant=variant)
    start = {**tables, "output": jnp.zeros((VOCAB, DIM))}
    loss = loss_of(objective, start, block, every=1)
    sizes = [len(near) for _, _, near in windows(block)]
    predictions = len(sizes) if variant == "paper" else sum(sizes)
    wanted = predictions * (1 + objective.negatives) * np.log(2)
    assert loss.total == pytest.approx(wanted, rel=1e-6)
    gradient = jax.grad(lambda t: loss_of(objective, t, block).total)(start)
    np.testing.assert_array_equal(gradient["projection"], 0)
    assert np.abs(gradient["output"]).max() > 0.1
    near = block.neighbours()
    weights = objective.weights(jnp.zeros(near.shape), near, DIM)
    even = np.asarray(near) / np.maximum(near.sum(axis=-1, keepdims=True), 1)
    np.testing.assert_allclose(weights, even, rtol=1e-6)
    whole = one_each(block)._replace(
        before=jnp.full(SHAPE, WINDOW), after=jnp.full(SHAPE, WINDOW)
    )
    loss = loss_of(objective, start, whole, every=1)
    assert loss.total / loss.words == pytest.approx(objective.untrained, rel=1e-6)


def test_weights_that_are_given_take_no_gradient(tables, block):
    """The gradient is that of the same loss with the weights as numbers."""
    objective = ContextToStatic(window=WINDOW, stop_gradient=True)
    near = block.neighbours()
    centres = contextual.project(block.vectors, tables["projection"])

    def scores_of(output):
        return jnp.einsum("gcd,gad->gca", centres, output[block.words])

    fixed = objective.weights(scores_of(tables["output"]), near, DIM)

    def with_numbers(output):
        total = jnp.sum(fixed * scores_of(output), axis=-1)
        noise = jnp.einsum("gcd,gnd->gcn", centres, output[block.noise])
        each = jax.nn.softplus(-total)
        each += jnp.sum(jax.nn.softplus(noise), axis=-1) * 5 / SHARED
        return jnp.sum(jnp.where(near.any(axis=-1), each, 0))

    def own(output, objective=objective):
        return loss_of(objective, {**tables, "output": output}, block).total

    wanted, found = (jax.grad(f)(tables["output"]) for f in (with_numbers, own))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    flowing = dataclasses.replace(objective, stop_gradient=False)
    through = jax.grad(lambda o: own(o, flowing))(tables["output"])
    assert np.abs(through - wanted).max() > 0.01


def test_no_word_is_its_own_neighbour_unless_asked(block):
    apart, with_it = block.neighbours(), block.neighbours(itself=True)
    places = {(g, c): set(near) for g, c, near in windows(block)}
    for g, c in np.ndindex(SHAPE):
        own = set(np.flatnonzero(apart[g, c]))
        assert own == places.get((g, c), set())
        here = {c + WINDOW} if own else set()  # nothing of a word that stands alone
        assert set(np.flatnonzero(with_it[g, c])) == own | here


def test_words_that_fill_up_change_nothing(tables, block):
    objective = ContextToStatic(window=WINDOW, include_self=True)
    filled = block._replace(
        words=jnp.concatenate([block.words, jnp.full_like(block.words, VOCAB)]),
        before=jnp.concatenate([block.before, 0 * block.before]),
        after=jnp.concatenate([block.after, 0 * block.after]),
        noise=jnp.concatenate([block.noise, jnp.full_like(block.noise, VOCAB)]),
        vectors=jnp.concatenate([block.vectors, 9 + block.vectors]),
    )
    moved = []
    for one in (block, filled):
        parts, _ = descent.descend(
            {n: tables[n] for n in ("output", "projection")},
            objective.ids(one),
            lambda rows, one=one: objective.loss(rows, one),
            jnp.float32(0.1),
            3.0,
            whole=objective.whole,
            examples=jnp.sum(one.before + one.after > 0, dtype=jnp.float32),
            clip_norm=0.1,
        )
        moved.append(parts)
    for name, table in moved[0].items():
        np.testing.assert_allclose(moved[1][name], table, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("clip_norm", [None, 100.0, 0.01])
def test_a_step_is_one_of_the_whole_tables(tables, block, clip_norm):
    """Against dense gradients and optax's clipping of their mean over centres."""
    objective = ContextToStatic(window=WINDOW, bias=True)
    examples = float(jnp.sum(block.before + block.after > 0))
    dense = jax.grad(lambda t: loss_of(objective, t, block).total)(tables)
    wanted = dense
    if clip_norm is not None:
        mean = jax.tree.map(lambda g: g / examples, dense)
        clipped, _ = optax.clip_by_global_norm(clip_norm).update(
            mean, optax.EmptyState()
        )
        wanted = jax.tree.map(lambda g: g * examples, clipped)
    moved, _ = descent.descend(
        tables,
        objective.ids(block),
        lambda rows: objective.loss(rows, block),
        jnp.float32(0.1),
        whole=objective.whole,
        examples=jnp.float32(examples),
        clip_norm=clip_norm,
    )
    for name, table in tables.items():
        np.testing.assert_allclose(
            moved[name], table - 0.1 * wanted[name], rtol=1e-4, atol=1e-5
        )
    if clip_norm == 0.01:
        assert np.abs(wanted["output"]).max() < np.abs(dense["output"]).max() / 2


# Whole runs

LAYOUT = static.Layout(chunk=200, groups=8, group=8)
TRAINING = static.Training(
    dim=8, epochs=2, layout=LAYOUT, learning_rate=0.1, sample=0.0, dynamic=False
)
OBJECTIVE = ContextToStatic(window=2, shared=4, bias=True)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return corpora.build(tmp_path_factory.mktemp("corpus") / "c")


@pytest.fixture(scope="module")
def encoded(text):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(len(text.tokens) + 5, WIDTH)).astype(np.float16)
    return TokenVectors(rows, rng.permutation(len(rows))[: len(text.tokens)])


def test_vectors_are_laid_out_with_their_words(text):
    """Row i holds i and the word at place i: both come out beside that word."""
    count = len(text.tokens)
    rows = np.stack([np.arange(count), text.tokens], axis=1)
    blocks = Blocks(
        text,
        LAYOUT,
        window=2,
        sample=1e-2,
        vectors=TokenVectors(rows, np.arange(count)),
    )
    for step in range(2 * blocks.num_chunks):
        batch = blocks(step)
        centres = batch["words"][..., 2:-2]
        real = centres < len(text.words)
        found = batch["vectors"][real]
        np.testing.assert_array_equal(found[:, 1], centres[real])
        assert len(np.unique(found[:, 0])) == real.sum()


def run(text, encoded, mesh, steps=10, **options):
    prepared = contextual._Prepared(text, OBJECTIVE, TRAINING, encoded)
    made = static.make_step(
        OBJECTIVE, TRAINING, 20, whole=OBJECTIVE.whole, clip_norm=5.0
    )
    step = train.data_parallel(made, mesh, **options)
    state = step.place(prepared.state)
    for number in range(steps):
        state, metrics = step(state, prepared.batches(number))
    loss = jax.device_get(metrics["loss"])
    return jax.device_get(state.params), float(loss.total / loss.count)


@pytest.mark.parametrize(
    "options",
    [{}, {"mode": "pmap"}, {"shard_rows": ["^params/output"]}],
    ids=["jit", "pmap", "sharded"],
)
def test_eight_devices_equal_one(text, encoded, mesh, options):
    params, loss = run(text, encoded, mesh, **options)
    alone, alone_loss = run(text, encoded, train.make_mesh(jax.devices()[:1]))
    for name, table in alone.items():
        np.testing.assert_allclose(params[name], table, atol=1e-5)
    assert loss == pytest.approx(alone_loss, abs=1e-5)
    assert np.abs(alone["output"]).max() > 0.01  # something was learnt


def test_a_run_leaves_the_encoders_vectors_alone(text, encoded, tmp_path):
    before = encoded.rows.tobytes()
    options = {"progress": False, "mesh": train.make_mesh(jax.devices()[:1])}
    folder = tmp_path / "run"
    first = static.train_contextual(
        text, encoded, OBJECTIVE, TRAINING, folder, **options
    )
    again = static.train_contextual(
        text, encoded, OBJECTIVE, TRAINING, folder, **options
    )
    assert encoded.rows.tobytes() == before
    np.testing.assert_array_equal(first.output, again.output)
    assert first.output.shape == (len(text.words), TRAINING.dim)
    assert first.vectors().words == text.words
    with pytest.raises(InputError, match="encoder"):
        static.train_contextual(
            text, encoded, OBJECTIVE, TRAINING, folder, encoder={"layer": 3}, **options
        )
    # Attention of a sentence, by loops.
    ids = np.asarray(text.tokens[:6])
    vectors = encoded(np.arange(6)).astype(np.float64)
    weights = first.attention(vectors, ids)
    for i in range(6):
        near = [j for j in range(6) if 0 < abs(i - j) <= OBJECTIVE.window]
        u = vectors[i] @ first.projection + first.bias
        wanted = softmax(np.array([u @ first.output[ids[j]] for j in near]))
        np.testing.assert_allclose(weights[i, near], wanted, rtol=1e-4)
        assert weights[i].sum() == pytest.approx(1, rel=1e-5)


def test_vectors_of_another_text_are_refused(text, encoded, tmp_path):
    fewer = TokenVectors(encoded.rows, encoded.where[:-1])
    with pytest.raises(InputError, match="the text has"):
        static.train_contextual(text, fewer, OBJECTIVE, TRAINING, tmp_path / "r")


def test_steps_lower_for_accelerators(text, encoded):
    prepared = contextual._Prepared(text, OBJECTIVE, TRAINING, encoded)
    made = static.make_step(
        OBJECTIVE, TRAINING, 20, whole=OBJECTIVE.whole, clip_norm=5.0
    )
    step = train.data_parallel(made, train.make_mesh(jax.devices()[:1]))
    state = step.place(prepared.state)
    lowered = step.lower(state, prepared.batches(0), lowering_platforms=("tpu", "cuda"))
    assert "stablehlo.scatter" in lowered.as_text()


def cross_sense(table, world):
    """Mean cosine between the neighbours of the two senses of a homograph."""
    unit = table.normalised()
    means = [
        (unit.lookup(first) @ unit.lookup(second).T).mean()
        for first, second in world.neighbours.values()
    ]
    return float(np.mean(means))


def test_senses_part_only_if_the_encoder_tells_them(tmp_path):
    world = synthetic.planted_senses()
    text = corpus.build(world.sentences, tmp_path / "c", min_count=1, progress=False)
    places = np.arange(len(text.tokens))
    types = world.types.lookup(text.words)
    encoders = {
        "senses": TokenVectors(world.vectors, places),
        "shuffled": TokenVectors(world.shuffled, places),
        "types": TokenVectors(types, np.asarray(text.tokens)),
    }
    training = static.Training(
        dim=16, epochs=6, learning_rate=0.05, sample=0.0, dynamic=False,
        layout=static.Layout(chunk=4000, groups=8),
    )  # fmt: skip
    objective = ContextToStatic(window=2, attention=False)
    found = {}
    for name, vectors in encoders.items():
        tables = static.train_contextual(
            text, vectors, objective, training, tmp_path / name, progress=False,
            mesh=train.make_mesh(jax.devices()[:1]),
        )  # fmt: skip
        found[name] = cross_sense(tables.vectors(), world)
    assert found["senses"] < found["types"] - 0.2, found
    assert abs(found["shuffled"] - found["types"]) < 0.1, found
