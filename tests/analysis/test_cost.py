"""Operations of compiled programs beside those counted by hand."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

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


def test_every_part_of_an_exchange_is_counted():
    program = """
      %a = (f32[8,4]{1,0}, bf16[100]{0}, s32[7]{0}) all-reduce(%x, %y, %z)
      %b = f32[16,8]{1,0:T(8,128)} all-gather(%x)
      %c = f32[] all-reduce-start(%x), to_apply=%sum
      ROOT %e = f32[] all-reduce-done(%c)
      %g = (f32[2,4]{1,0}, f32[16,4]{1,0}) all-gather-start(%x)
      %h = f32[16,4]{1,0} all-gather-done(%g)
      %p = pred[24]{0} collective-permute(%x)
      %r = f32[9]{0} ragged-all-to-all(%x)
      %d = f32[999]{0} add(%x, %y)
    """
    found = cost.collectives(program)
    assert [(one.kind, one.numbers, one.bytes) for one in found] == [
        ("all-reduce", 139, 4 * 32 + 2 * 100 + 4 * 7),
        ("all-gather", 128, 4 * 128),
        ("all-reduce", 1, 4),
        ("all-gather", 64, 4 * 64),
        ("collective-permute", 24, 24),
        ("ragged-all-to-all", 9, 4 * 9),
    ]
    assert found[0].shapes == ((8, 4), (100,), (7,))


def test_each_device_multiplies_its_rows_and_all_sum(mesh):
    split, whole = (NamedSharding(mesh, PartitionSpec(*a)) for a in (["data"], []))
    program = jax.jit(
        lambda x, w: jnp.sum(jax.nn.relu(x @ w), axis=0),
        in_shardings=(split, whole), out_shardings=whole,
    )  # fmt: skip
    x, w = jnp.ones((64, 32)), jnp.ones((32, 16))
    found = cost.device_cost(program.lower(x, w).compile())
    products = 2 * 8 * 32 * 16
    assert products <= found.flops < 1.1 * products
    assert found.bytes >= 4 * (8 * 32 + 32 * 16 + 16)
    assert [(one.kind, one.shapes) for one in found.collectives] == [
        ("all-reduce", ((16,),))
    ]
