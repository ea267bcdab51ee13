"""Losses and steps of a block, against loops over pairs in float64."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import losses
from jaxemb.errors import InputError
from jaxemb.static import descent
from jaxemb.static.glove import GloVe
from jaxemb.static.objectives import CBOW, SkipGram, SubwordSkipGram
from jaxemb.static.trainer import Training
from tests.static import corpora

WINDOW, VOCAB, DIM = 2, 12, 5
SHAPE = GROUPS, GROUP = 3, 8


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


@pytest.fixture(scope="module")
def block():
    rng = np.random.default_rng(1)
    return corpora.random_block(
        *(rng, VOCAB, SHAPE, WINDOW),
        ngrams=jnp.array(rng.integers(0, 7, (GROUPS, 20))),
        owners=jnp.array(rng.integers(0, GROUP + 1, (GROUPS, 20))),
    )


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(2)
    rows = {"input": VOCAB, "output": VOCAB, "ngrams": 7}
    return {
        n: jnp.array(rng.normal(size=(r, DIM)), jnp.float32) for n, r in rows.items()
    }


def windows(block):
    """(group, centre, its word, its neighbours), by loops."""
    for g, c in np.ndindex(SHAPE):
        here = c + WINDOW
        low, high = here - int(block.before[g, c]), here + int(block.after[g, c])
        near = [int(block.words[g, j]) for j in range(low, high + 1) if j != here]
        yield g, c, int(block.words[g, here]), near


def skip_gram_by_loops(centre_vector, tables, block, negatives):
    output = np.asarray(tables["output"], np.float64)
    total, words = 0.0, 0
    for g, c, word, near in windows(block):
        vector = centre_vector(g, c, word)
        words += bool(near)
        for context in near:
            total -= log_sigmoid(vector @ output[context])
            for noise in np.asarray(block.noise[g]):
                share = negatives / block.noise.shape[1]
                total -= share * log_sigmoid(-vector @ output[noise])
    return total, words


def loss_of(objective, tables, block, **options):
    return objective.loss(descent.take(tables, objective.ids(block)), block, **options)


def test_skip_gram_is_a_loop_over_pairs(tables, block):
    inputs = np.asarray(tables["input"], np.float64)
    wanted, words = skip_gram_by_loops(lambda g, c, w: inputs[w], tables, block, 5)
    loss = loss_of(SkipGram(window=WINDOW), tables, block, every=1)
    assert loss.total == pytest.approx(wanted, rel=1e-5)
    assert loss.shown == pytest.approx(wanted, rel=1e-5)
    assert loss.words == words


def test_shown_is_the_loss_of_every_so_many_th_word(tables, block):
    objective = SkipGram(window=WINDOW)
    keep = (np.arange(GROUP) % 4 == 0)[None]
    fewer = block._replace(before=block.before * keep, after=block.after * keep)
    wanted = loss_of(objective, tables, fewer, every=1)
    loss = loss_of(objective, tables, block, every=4)
    assert loss.shown == pytest.approx(float(wanted.total), rel=1e-5)
    assert loss.words == wanted.words


def test_skip_gram_expects_what_noise_of_its_own_expects(tables, block):
    """Shared noise words, all of them equally often, are each pair's own on average."""
    every = block._replace(noise=jnp.tile(jnp.arange(VOCAB), (GROUPS, 1)))
    loss = loss_of(SkipGram(window=WINDOW, negatives=VOCAB), tables, every, every=1)
    wanted = 0.0
    for _, _, word, near in windows(block):
        if near:
            context = tables["output"][jnp.array(near)]
            noise = jnp.broadcast_to(tables["output"], (len(near), VOCAB, DIM))
            wanted += losses.sgns(tables["input"][word], context, noise)
    assert loss.total == pytest.approx(float(wanted), rel=1e-5)


def test_cbow_is_a_loop_over_words(tables, block):
    inputs, output = (np.asarray(tables[n], np.float64) for n in ("input", "output"))
    wanted, words = 0.0, 0
    for g, _, word, near in windows(block):
        if not near:
            continue
        words += 1
        mean = inputs[near].mean(axis=0)
        wanted -= log_sigmoid(mean @ output[word])
        for noise in np.asarray(block.noise[g]):
            wanted -= 5 / block.noise.shape[1] * log_sigmoid(-mean @ output[noise])
    loss = loss_of(CBOW(window=WINDOW), tables, block, every=1)
    assert loss.total == pytest.approx(wanted, rel=1e-5)
    assert loss.words == words


def test_cbow_steps_as_word2vec_or_by_the_gradient(tables, block):
    def steps(**options):
        objective = CBOW(window=WINDOW, **options)
        return jax.grad(lambda t: loss_of(objective, t, block).total)(tables)

    share, whole = steps(whole_step=False), steps(whole_step=True)
    np.testing.assert_allclose(share["output"], whole["output"], rtol=1e-5)
    # The gradient indeed, by differences; and the whole step by loops.
    epsilon, direction = 1e-2, np.random.default_rng(0).normal(size=(VOCAB, DIM))
    up, down = (
        loss_of(
            CBOW(window=WINDOW),
            {**tables, "input": tables["input"] + sign * epsilon * direction},
            block,
        ).total
        for sign in (1, -1)
    )
    slope = np.sum(np.asarray(share["input"]) * direction)
    assert slope == pytest.approx(float(up - down) / (2 * epsilon), rel=1e-2)
    inputs, output = (np.asarray(tables[n], np.float64) for n in ("input", "output"))
    wanted = np.zeros((VOCAB, DIM))
    for g, _, word, near in windows(block):
        if near:
            mean = inputs[near].mean(axis=0)
            error = -output[word] / (1 + np.exp(mean @ output[word]))
            for noise in np.asarray(block.noise[g]):
                weight = 5 / block.noise.shape[1]
                error += weight * output[noise] / (1 + np.exp(-mean @ output[noise]))
            for neighbour in near:
                wanted[neighbour] += error
    np.testing.assert_allclose(whole["input"], wanted, atol=1e-4)


def test_subwords_are_means_of_their_rows(tables, block):
    inputs, ngrams = (np.asarray(tables[n], np.float64) for n in ("input", "ngrams"))

    def composed(g, c, word):
        own = [
            int(r)
            for r, o in zip(block.ngrams[g], block.owners[g], strict=True)
            if o == c
        ]
        return (inputs[word] + ngrams[own].sum(axis=0)) / (1 + len(own))

    wanted, words = skip_gram_by_loops(composed, tables, block, 5)
    objective = SubwordSkipGram(window=WINDOW)
    loss = loss_of(objective, tables, block, every=1)
    assert loss.total == pytest.approx(wanted, rel=1e-5)
    assert loss.words == words
    # n-grams that fill up change nothing.
    filler = jax.grad(lambda t: loss_of(objective, t, block).total)(
        {**tables, "ngrams": tables["ngrams"]}
    )
    owned = {
        int(r)
        for g in range(GROUPS)
        for r, o in zip(block.ngrams[g], block.owners[g], strict=True)
        if o < GROUP
    }
    for row in set(range(7)) - owned:
        np.testing.assert_array_equal(filler["ngrams"][row], 0)


@pytest.mark.parametrize(
    "objective", [SkipGram(window=2), CBOW(window=2), SubwordSkipGram(window=2)]
)
def test_a_step_on_rows_is_one_on_tables(objective, tables, block):
    used = {n: tables[n] for n in objective.ids(block)}
    dense = jax.grad(lambda t: loss_of(objective, t, block).total)(used)
    moved, loss = descent.descend(
        used,
        objective.ids(block),
        lambda rows: objective.loss(rows, block),
        jnp.float32(0.1),
    )
    for name, table in used.items():
        np.testing.assert_allclose(
            moved[name], table - 0.1 * dense[name], rtol=1e-4, atol=1e-5
        )
    assert loss.total == pytest.approx(float(loss_of(objective, used, block).total))


def test_a_row_takes_no_more_than_so_many_gradients(tables, block):
    objective = SkipGram(window=2)
    used = {n: tables[n] for n in ("input", "output")}
    ids = objective.ids(block)
    step = lambda **options: descent.descend(
        used, ids, lambda rows: objective.loss(rows, block), jnp.float32(0.1), **options
    )[0]
    whole, capped = step(), step(most=3.0)
    for name, table in used.items():
        places = np.bincount(np.ravel(ids[name]), minlength=VOCAB)
        assert places.min() <= 3 < places.max()
        factor = np.minimum(1, 3 / np.maximum(places, 1))[:, None]
        np.testing.assert_allclose(
            capped[name] - table, factor * (whole[name] - table), atol=1e-5
        )


def test_words_that_fill_up_move_and_slow_no_row(tables, block):
    """Twice as many groups, the second half of filling: the same step, to the bit."""
    objective = SkipGram(window=2)
    used = {n: tables[n] for n in ("input", "output")}
    filled = block._replace(
        words=jnp.concatenate([block.words, jnp.full_like(block.words, VOCAB)]),
        before=jnp.concatenate([block.before, 0 * block.before]),
        after=jnp.concatenate([block.after, 0 * block.after]),
        noise=jnp.concatenate([block.noise, jnp.full_like(block.noise, VOCAB)]),
    )
    first, second = (
        descent.descend(
            used,
            objective.ids(one),
            lambda rows, one=one: objective.loss(rows, one),
            jnp.float32(0.1),
            3.0,
        )[0]
        for one in (block, filled)
    )
    for name in used:
        np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.parametrize("make", [SkipGram, CBOW, SubwordSkipGram])
def test_an_untrained_word_costs_its_coins(tables, block, make):
    """At most, in the widest window; here every window is the widest."""
    whole = block._replace(
        before=jnp.full(SHAPE, WINDOW), after=jnp.full(SHAPE, WINDOW)
    )
    zeros = jax.tree.map(jnp.zeros_like, tables)
    objective = make(window=WINDOW)
    loss = loss_of(objective, zeros, whole, every=1)
    assert loss.total / loss.words == pytest.approx(objective.untrained, rel=1e-5)


def test_nothing_to_learn_gives_nothing(tables, block):
    empty = block._replace(before=block.before * 0, after=block.after * 0)
    for objective in (SkipGram(window=2), CBOW(window=2)):
        loss = loss_of(objective, tables, empty)
        assert (float(loss.total), float(loss.words)) == (0, 0)
        grads = jax.grad(lambda t, o=objective: loss_of(o, t, empty).total)(tables)
        assert all(not np.any(g) for g in jax.tree.leaves(grads))


@pytest.mark.parametrize(
    ("make", "field", "value"),
    [
        (SkipGram, "shared", 0),
        (SkipGram, "negatives", 0),
        (CBOW, "window", 0),
        (SubwordSkipGram, "minn", 0),
        (SubwordSkipGram, "maxn", 2),
        (SubwordSkipGram, "buckets", 2**33),
        (Training, "epochs", 0),
        (Training, "dim", 0),
        (Training, "seed", -1),
        (Training, "learning_rate", -1.0),
        (GloVe, "epochs", 0),
        (GloVe, "chunk", 0),
        (GloVe, "cap", 0.0),
    ],
)
def test_settings_that_cannot_be(make, field, value):
    with pytest.raises(InputError, match=f"{make.__name__}: {field} is "):
        make(**{field: value})


def test_objectives_are_settings():
    assert hash(SkipGram()) == hash(SkipGram())
    assert dataclasses.asdict(CBOW())["whole_step"]
