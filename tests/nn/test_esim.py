import jax
import jax.numpy as jnp
import numpy as np

from jaxemb import nn
from tests.nn import loops
from tests.nn.test_bidaf import DIM, HIDDEN, LENGTHS, inputs


def by_definition(params, premise, hypothesis):
    """The logits of one pair, from its real words alone."""
    width = 2 * HIDDEN
    a = loops.bilstm(params["premise"], premise)
    b = loops.bilstm(params["hypothesis"], hypothesis)
    e = [[float(x @ y) for y in b] for x in a]
    from_b = [loops.mix(row, b, width) for row in e]
    from_a = [loops.mix([row[j] for row in e], a, width) for j in range(len(b))]
    means, highest = [], []
    for own, other, name in (
        (a, from_b, "compose_premise"),
        (b, from_a, "compose_hypothesis"),
    ):
        enhanced = [
            np.concatenate([x, y, x - y, x * y])
            for x, y in zip(own, other, strict=True)
        ]
        states = loops.bilstm(params[name], enhanced)
        means.append(sum(states, np.zeros(width)) / max(len(states), 1))
        highest.append(np.max(states, axis=0) if states else np.zeros(width))
    features = np.tanh(loops.dense(params["mix"], np.concatenate(means + highest)))
    return loops.dense(params["output"], features)


def test_esim_is_its_definition():
    module, arrays = nn.ESIM(hidden=HIDDEN), inputs()
    shapes = jax.eval_shape(
        lambda: module.init(jax.random.key(0), *arrays, deterministic=True)
    )
    rng = np.random.default_rng(1)
    draw = lambda p: jnp.array(rng.normal(size=p.shape), jnp.float32)
    variables = {"params": jax.tree.map(draw, shapes["params"])}
    logits = jax.jit(lambda v, *x: module.apply(v, *x, deterministic=True))(
        variables, *arrays
    )
    premise, _, hypothesis, _ = map(np.asarray, arrays)
    for row, (words, others) in enumerate(LENGTHS):
        expected = by_definition(
            variables["params"], premise[row, :words], hypothesis[row, :others]
        )
        np.testing.assert_allclose(logits[row], expected, rtol=2e-4, atol=2e-5)


def test_nothing_is_shared_between_the_sentences_nor_projected():
    module, arrays = nn.ESIM(hidden=HIDDEN), inputs()
    shapes = jax.eval_shape(
        lambda: module.init(jax.random.key(0), *arrays, deterministic=True)
    )["params"]
    encoders = {"premise", "hypothesis", "compose_premise", "compose_hypothesis"}
    assert set(shapes) == encoders | {"mix", "output"}
    for name, width in (("premise", DIM), ("compose_premise", 8 * HIDDEN)):
        kernel = shapes[name]["forward"]["input"]["kernel"]
        assert kernel.shape == (width, 4 * HIDDEN)
    assert shapes["mix"]["kernel"].shape == (8 * HIDDEN, HIDDEN)
