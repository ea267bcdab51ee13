"""Operations of compiled programs beside those counted by hand."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxemb.nn as jnn
from jaxemb.analysis import cost


def test_a_product_of_matrices_is_two_operations_a_term():
    """Table 3's LR: 2 * 36,308 * 90 = 6.5 million."""
    shape = jax.ShapeDtypeStruct
    words, kernel = shape((1, 36_308), jnp.float32), shape((36_308, 90), jnp.float32)
    found = cost.count_flops(lambda x, w: x @ w, words, kernel)
    assert found == 2 * 36_308 * 90
    assert round(found / 1e6, 1) == 6.5


def test_a_recurrent_model_is_counted_word_by_word():
    """8 h (d + h) products a word; what gates add is of the order of h, a twentieth."""
    hidden, dim, length = 256, 64, 100
    x = jax.ShapeDtypeStruct((1, 4, dim), jnp.float32)
    mask = jax.ShapeDtypeStruct((1, 4), jnp.bool_)
    variables = jax.eval_shape(jnn.BiLSTM(hidden).init, jax.random.key(0), x, mask)

    def flops(length, unroll=True):
        module = jnn.BiLSTM(hidden, unroll=length if unroll else 1)
        return cost.count_flops(
            lambda v, x, m: module.apply(v, x, m)[0],
            variables,
            jax.ShapeDtypeStruct((1, length, dim), jnp.float32),
            jax.ShapeDtypeStruct((1, length), jnp.bool_),
        )

    products = 2 * 8 * hidden * (dim + hidden) * length
    found = cost.flops_of_length(flops, length)
    assert products <= found < 1.2 * products
    np.testing.assert_allclose(found / length, flops(12) / 12, rtol=0.05)
    assert flops(12, unroll=False) < 0.7 * flops(12)  # a loop's body counts once


def test_parameters_of_arrays_and_of_shapes():
    tree = {"a": np.zeros((2, 3)), "b": {"c": jax.ShapeDtypeStruct((5,), jnp.float32)}}
    assert cost.count_params(tree) == 11
    assert cost.count_params({"scalar": np.zeros(())}) == 1


def test_time_is_the_median_of_calls():
    calls = []

    def call(x):
        calls.append(x)
        return jnp.ones(2)

    assert cost.seconds_of(call, 3, repeats=4) > 0
    assert calls == [3] * 5
