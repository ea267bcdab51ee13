import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import optim, pretrained
from jaxemb.errors import InputError
from tests import encoders

HEADS = r"blocks/.*/(query|key|value)/(kernel|bias)|blocks/.*/output/kernel"
IDS = jnp.asarray(np.random.default_rng(0).integers(0, 9, (2, 5)), jnp.int32)
MASK = jnp.asarray(np.arange(5) < np.array([[5], [3]]))


@pytest.fixture(scope="module")
def four_heads():
    shape = {"dim": 8, "layers": 2, "inner": 8, "positions": 6}
    bert = encoders.tiny([f"w{i}" for i in range(9)], **shape)
    return dataclasses.replace(bert, config=dataclasses.replace(bert.config, heads=4))


def states(bert, ids=IDS):
    return bert.module().apply({"params": bert.params}, ids, MASK, deterministic=True)


def test_without_heads_it_computes_the_same(four_heads):
    masks = optim.keep_masks(
        four_heads.params, 0.625, where=HEADS, unit=optim.Heads(4), scope="global"
    )
    params = optim.delete_information(four_heads.params, masks)
    pruned = dataclasses.replace(four_heads, params=params)
    small = pretrained.without_heads(pruned)
    assert sum(small.config.kept_heads) == 3
    sizes = [
        sum(x.size for x in jax.tree.leaves(one.params)) for one in (pruned, small)
    ]
    # A head of 2: 8 x 2 in four matrices, and three biases of 2.
    assert sizes[0] - sizes[1] == 5 * (4 * 16 + 3 * 2)
    np.testing.assert_allclose(states(small).last, states(pruned).last, atol=1e-5)
    assert np.abs(states(small).last - states(four_heads).last).max() > 1e-3
    with pytest.raises(InputError, match="removed already"):
        pretrained.without_heads(small)
    with pytest.raises(InputError, match="heads are removed"):
        pretrained.save_hf("nowhere", small)


def test_a_layer_keeps_one_head_for_its_shape(four_heads):
    masks = optim.keep_masks(four_heads.params, 1.0, where=HEADS, unit=optim.Heads(4))
    params = optim.delete_information(four_heads.params, masks)
    pruned = dataclasses.replace(four_heads, params=params)
    small = pretrained.without_heads(pruned)
    assert small.config.kept_heads == (1, 1)
    np.testing.assert_allclose(states(small).last, states(pruned).last, atol=1e-5)


def test_without_rows_it_computes_the_same(four_heads):
    masks = optim.keep_masks(
        four_heads.params, 0.5, where="pieces/embedding", unit="rows"
    )
    params = optim.delete_information(four_heads.params, masks)
    pruned = dataclasses.replace(four_heads, params=params)
    small, numbers = pretrained.without_rows(pruned)
    assert small.config.vocab == 6 and len(numbers) == 9
    found = states(small, jnp.asarray(numbers)[IDS]).last
    np.testing.assert_allclose(found, states(pruned).last, atol=1e-6)
