import jax
import numpy as np

from jaxemb import nn


def test_highway_is_its_definition():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    module = nn.Highway(layers=2)
    variables = module.init(jax.random.key(0), jax.numpy.array(x))
    expected = x.astype(np.float64)
    for i in range(2):
        gate, transform = (
            jax.tree.map(np.asarray, variables["params"][f"{n}_{i}"])
            for n in ("gate", "transform")
        )
        assert (gate["bias"] == -1).all()
        t = 1 / (1 + np.exp(-(expected @ gate["kernel"] + gate["bias"])))
        h = np.maximum(expected @ transform["kernel"] + transform["bias"], 0)
        expected = t * h + (1 - t) * expected
    output = module.apply(variables, jax.numpy.array(x))
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_a_closed_gate_is_the_identity():
    x = jax.random.normal(jax.random.key(1), (3, 4))
    module = nn.Highway(gate_bias=-1e4)
    output, _ = module.init_with_output(jax.random.key(0), x)
    np.testing.assert_array_equal(output, x)
