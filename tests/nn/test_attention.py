import jax
import jax.numpy as jnp
import numpy as np

from jaxemb import nn
from tests.nn import loops

RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=(2, n, 4)).astype(np.float32) for n in (3, 5))


def test_trilinear_is_one_weight_on_the_concatenation():
    module = nn.Trilinear()
    variables = module.init(jax.random.key(0), jnp.array(X), jnp.array(Y))
    weight = np.asarray(variables["params"]["kernel"], np.float64).reshape(-1)
    scores = module.apply(variables, jnp.array(X), jnp.array(Y))
    for b in range(2):
        for i, x in enumerate(X[b]):
            for j, y in enumerate(Y[b]):
                expected = weight @ np.concatenate([x, y, x * y])
                np.testing.assert_allclose(scores[b, i, j], expected, atol=1e-6)


def test_attention_is_a_mean_over_real_keys():
    scores = RNG.normal(size=(2, 3, 5)).astype(np.float32)
    mask = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0]], bool)
    values = np.where(mask[..., None], Y, np.float32(1e30))  # whatever is in padding
    mixed, weights = nn.attend(*map(jnp.array, (scores, mask, values)))
    for q in range(3):
        real = np.flatnonzero(mask[0])
        expected = loops.mix([float(s) for s in scores[0, q, real]], Y[0, real], 4)
        np.testing.assert_allclose(mixed[0, q], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(weights[:, :, 2], 0)
    np.testing.assert_array_equal(mixed[1], 0)
