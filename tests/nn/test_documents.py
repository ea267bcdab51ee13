"""Classifiers of documents beside torch, loops and the sizes that the paper prints."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxemb.nn as jnn
from jaxemb import losses
from jaxemb.analysis import cost
from jaxemb.nn.documents import max_over_parts

RNG = np.random.default_rng(0)


def parameters(module, *shapes, part=None, **more):
    """How many a module has, from shapes alone."""
    inputs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    init = functools.partial(module.init, **more)
    params = jax.eval_shape(init, jax.random.key(0), *inputs)["params"]
    return cost.count_params(params if part is None else params[part])


WORDS = ((1, 4, 300), jnp.float32), ((1, 4), jnp.bool_)


@pytest.mark.parametrize(("hidden", "printed"), [(512, 3_334_144), (256, 1_142_784)])
def test_the_lstm_has_the_papers_parameters(hidden, printed):
    """8 (300 h + h^2 + 2 h), Table 3's 3.3 million: the paper's has two biases for each
    of the 8 h gates that are only ever added up, and here is their sum."""
    module = jnn.RegLSTM(90, hidden)
    found = parameters(module, *WORDS, part="encoder", deterministic=True)
    assert found + 8 * hidden == 8 * (300 * hidden + hidden**2 + 2 * hidden) == printed
    assert round(found / 1e6, 1) == round(printed / 1e6, 1)
    whole = parameters(module, *WORDS, deterministic=True)
    assert whole == found + 2 * hidden * 90 + 90


def test_the_other_students_have_the_papers_parameters():
    """Table 3: KimCNN .4 million, LR 3.3."""
    assert parameters(jnn.KimCNN(90), *WORDS, deterministic=True) == 387_390
    ids = ((1, 4), jnp.int32), ((1, 4), jnp.float32)
    assert parameters(jnn.TfidfLinear(90, 36_308), *ids) == 3_267_810


def test_bert_base_has_the_papers_parameters():
    """Table 3: 110 million, its tables of embeddings counted."""
    ids = ((1, 4), jnp.int32), ((1, 4), jnp.bool_)
    module = jnn.SequenceClassifier(90, jnn.TextConfig())
    found = parameters(module, *ids, deterministic=True)
    head = 90 * 768 + 90
    assert found - head == 109_482_240  # of bert-base-uncased with its pooler
    assert round(found / 1e7) == 11


@pytest.mark.parametrize("length", [1, 5, 8, 13, 24])
def test_parts_are_torchs_adaptive_pooling(length):
    torch = pytest.importorskip("torch", reason="the extra oracles has torch")
    maps = RNG.normal(size=(2, 24, 3)).astype(np.float32)
    lengths = jnp.full((2,), length)
    found = max_over_parts(jnp.asarray(maps), lengths, 8)
    real = torch.tensor(maps[:, :length].swapaxes(1, 2))
    wanted = torch.nn.functional.adaptive_max_pool1d(real, 8).numpy().swapaxes(1, 2)
    np.testing.assert_allclose(found, wanted)


def test_hierarchical_attention_is_that_of_loops():
    """Every sentence alone, then the sentences, by the formula."""
    module = jnn.HAN(3, hidden=2)
    vectors = jnp.asarray(RNG.normal(size=(2, 3, 4, 5)), jnp.float32)
    lengths = np.array([[4, 2, 0], [1, 3, 4]])
    mask = jnp.asarray(np.arange(4) < lengths[..., None])
    variables = module.init(jax.random.key(0), vectors, mask, deterministic=True)
    found = module.apply(variables, vectors, mask, deterministic=True)
    params = jax.tree.map(np.asarray, variables["params"])

    def pooled(level, states):
        own = params[f"{level}_attention"]
        hidden = np.tanh(states @ own["hidden"]["kernel"] + own["hidden"]["bias"])
        weights = np.exp(hidden @ own["context"])
        return (weights / weights.sum()) @ states

    def encoded(level, x):
        own = {"params": params[f"{level}_encoder"]}
        whole = jnp.ones((1, len(x)), bool)
        return np.asarray(jnn.BiGRU(2).apply(own, jnp.asarray(x)[None], whole)[0][0])

    for document in range(2):
        sentences = [
            pooled("word", encoded("word", np.asarray(vectors[document, s, :n])))
            for s, n in enumerate(lengths[document])
            if n
        ]
        text = pooled("sentence", encoded("sentence", np.stack(sentences)))
        wanted = text @ params["output"]["kernel"] + params["output"]["bias"]
        np.testing.assert_allclose(found[document], wanted, rtol=2e-5, atol=1e-5)


def test_weighted_words_are_a_product():
    module = jnn.TfidfLinear(3, 6)
    kernel, bias = RNG.normal(size=(6, 3)), RNG.normal(size=3)
    params = {"kernel": jnp.asarray(kernel), "bias": jnp.asarray(bias)}
    ids = jnp.asarray([[1, 6, 0], [3, 0, 0]])
    weights = jnp.asarray([[0.5, 2.0, 9.0], [1.0, jnp.nan, 1.0]])
    found = module.apply({"params": params}, ids, weights)
    dense = np.zeros((2, 6))
    dense[0, [0, 5]], dense[1, 2] = [0.5, 2.0], 1.0
    np.testing.assert_allclose(found, dense @ kernel + bias, rtol=1e-5)
    wrong = module.apply({"params": params}, jnp.asarray([[7], [-1]]), weights[:, :1])
    assert np.isnan(wrong).all()


def test_dropped_weights_are_the_same_for_every_word():
    """One mask a step: the states are those of an LSTM with one thinned kernel."""
    module = jnn.BiLSTM(6, weight_drop=(0.5, 0.0))
    x = jnp.asarray(RNG.normal(size=(2, 7, 3)), jnp.float32)
    mask = jnp.ones((2, 7), bool)
    variables = module.init(jax.random.key(0), x, mask)
    rngs = {"dropout": jax.random.key(5)}
    found, _ = module.apply(variables, x, mask, deterministic=False, rngs=rngs)
    plain, _ = module.apply(variables, x, mask)
    again, _ = module.apply(variables, x, mask, deterministic=True, rngs=rngs)
    np.testing.assert_array_equal(plain, again)  # off at evaluation
    np.testing.assert_array_equal(found[..., 6:], plain[..., 6:])  # forward only
    assert np.abs(found[..., :6] - plain[..., :6]).max() > 1e-3

    kernel = variables["params"]["forward"]["recurrent"]
    own = _key_of(module, variables, x, mask, rngs)
    thin = jnn.drop_weights(own, kernel, 0.5)
    assert set(np.unique(np.asarray(thin / kernel).round(4))) == {0.0, 2.0}
    params = {**variables["params"]}
    params["forward"] = {**params["forward"], "recurrent": thin}
    wanted, _ = jnn.BiLSTM(6).apply({"params": params}, x, mask)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def _key_of(module, variables, x, mask, rngs):
    """The key by which a kernel is thinned, seen on its way."""
    from jaxemb.nn import recurrent

    seen, drop = [], recurrent.drop_weights
    recurrent.drop_weights = lambda key, *rest: seen.append(key) or drop(key, *rest)
    try:
        module.apply(variables, x, mask, deterministic=False, rngs=rngs)
    finally:
        recurrent.drop_weights = drop
    [key] = seen
    return key


def test_whole_kinds_of_words_are_dropped():
    ids = jnp.asarray(RNG.integers(1, 400, size=(20, 50)))
    vectors = jnp.ones((20, 50, 2))
    module = jnn.TypeDropout(0.2)
    rngs = {"dropout": jax.random.key(1)}
    found = module.apply({}, vectors, ids, deterministic=False, rngs=rngs)
    kept = {}
    for word, value in zip(ids.ravel().tolist(), found[..., 0].ravel(), strict=True):
        kept.setdefault(word, set()).add(float(value))
    assert all(len(values) == 1 for values in kept.values())
    share = np.mean([values == {0.0} for values in kept.values()])
    assert abs(share - 0.2) < 3 * np.sqrt(0.2 * 0.8 / len(kept))
    assert {v for values in kept.values() for v in values} == {0.0, 1.25}
    off = module.apply({}, vectors, ids, deterministic=True)
    np.testing.assert_array_equal(off, vectors)


def test_penalties_of_states_are_loops():
    states = RNG.normal(size=(2, 4, 3)).astype(np.float32)
    lengths = [4, 2]
    mask = jnp.asarray(np.arange(4) < np.array(lengths)[:, None])
    size, change = losses.activation_penalty(jnp.asarray(states), mask)
    for row, length in enumerate(lengths):
        own = states[row, :length]
        wanted = np.mean([h @ h for h in own])
        np.testing.assert_allclose(size[row], wanted, rtol=1e-5)
        steps = [b - a for a, b in zip(own, own[1:], strict=False)]
        wanted = np.mean([d @ d for d in steps])
        np.testing.assert_allclose(change[row], wanted, rtol=1e-5)
