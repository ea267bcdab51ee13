import jax
import jax.numpy as jnp
import numpy as np

from jaxemb import nn
from tests.nn import loops

DIM, HIDDEN = 4, 3
LENGTHS = [(6, 3), (4, 4), (1, 1), (3, 0)]  # words of context and question
LOWEST = np.finfo(np.float32).min


def inputs():
    rng = np.random.default_rng(0)
    sides = []
    for column, longest in ((0, 6), (1, 4)):
        lengths = np.array([pair[column] for pair in LENGTHS])
        vectors = rng.normal(size=(len(LENGTHS), longest, DIM))
        mask = np.arange(longest) < lengths[:, None]
        sides += [jnp.array(vectors, jnp.float32), jnp.array(mask)]
    return sides


def system():
    module = nn.BiDAF(HIDDEN, dropout_rate=0.3)
    arrays = inputs()
    shapes = jax.eval_shape(
        lambda: module.init(jax.random.key(0), *arrays, deterministic=True)
    )
    rng = np.random.default_rng(1)
    draw = lambda p: jnp.array(rng.normal(size=p.shape), jnp.float32)
    return module, {"params": jax.tree.map(draw, shapes["params"])}, arrays


def by_definition(params, context, question):
    """The logits of one example, from its real words alone."""
    sides = [
        loops.bilstm(
            params["contextual"],
            [loops.highway(params["highway"], word, 2) for word in words],
        )
        for words in (context, question)
    ]
    h, u = sides
    weight = np.asarray(params["similarity"]["kernel"], np.float64).reshape(-1)
    s = [[float(weight @ np.concatenate([a, b, a * b])) for b in u] for a in h]
    to_query = [loops.mix(row, u, 2 * HIDDEN) for row in s]
    # Without a question every maximum is the same, and the mean is over all words.
    to_context = loops.mix([max(row, default=0.0) for row in s], h, 2 * HIDDEN)
    g = [
        np.concatenate([a, c, a * c, a * to_context])
        for a, c in zip(h, to_query, strict=True)
    ]
    m = loops.bilstm(params["modeling_0"], g)
    m = loops.bilstm(params["modeling_1"], m)
    m_end = loops.bilstm(params["end_encoder"], m)
    features = {
        "start": zip(g, m, strict=True),
        "end": zip(g, m_end, strict=True),
    }
    return [
        [float(loops.dense(params[name], np.concatenate(pair))[0]) for pair in pairs]
        for name, pairs in features.items()
    ]


def test_bidaf_is_its_definition():
    module, variables, arrays = system()
    apply = jax.jit(lambda v, *x: module.apply(v, *x, deterministic=True))
    logits = apply(variables, *arrays)
    context, _, question, _ = map(np.asarray, arrays)
    for row, (words, asked) in enumerate(LENGTHS):
        expected = by_definition(
            variables["params"], context[row, :words], question[row, :asked]
        )
        for found, wanted in zip(logits, expected, strict=True):
            assert found.dtype == jnp.float32
            np.testing.assert_allclose(found[row, :words], wanted, rtol=2e-4, atol=2e-5)
            np.testing.assert_array_equal(found[row, words:], LOWEST)


def test_one_contextual_network_reads_both_texts():
    _, variables, _ = system()
    names = {"highway", "contextual", "similarity", "modeling_0", "modeling_1"}
    assert set(variables["params"]) == names | {"end_encoder", "start", "end"}
    assert variables["params"]["similarity"]["kernel"].shape == (3, 2 * HIDDEN)
    for name in ("start", "end"):
        assert variables["params"][name]["kernel"].shape == (10 * HIDDEN, 1)
