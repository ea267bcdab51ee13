import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import nn
from jaxemb.errors import InputError

KEY = {"dropout": jax.random.key(0)}


def drop(x, rate=0.3, key=KEY, **fields):
    module = nn.Dropout(rate, **fields)
    apply = lambda x: module.apply({}, x, deterministic=False, rngs=key)
    return jax.jit(apply)(x)


def test_rate_scale_and_expectation():
    x = jnp.full((64, 50, 8), 2.0)
    y = np.asarray(drop(x))
    kept = y != 0
    # The rate is rounded to 16 bits.
    np.testing.assert_allclose(y[kept], 2 / (round(0.7 * 2**16) / 2**16), rtol=1e-6)
    standard_error = np.sqrt(0.3 * 0.7 / y.size)
    assert abs(kept.mean() - 0.7) < 5 * standard_error
    # Neighbouring examples and positions are drawn independently.
    for other in (np.roll(kept, 1, axis=0), np.roll(kept, 1, axis=1)):
        assert abs((kept & other).mean() - 0.49) < 5 * standard_error
    # So are those that share a random word.
    first, second = np.moveaxis(kept.reshape(64, -1, 2), -1, 0)
    assert abs((first & second).mean() - 0.49) < 5 * standard_error * 2**0.5


@pytest.mark.parametrize("shape", [(400,), (80, 5), (16, 5, 5)])
def test_odd_numbers_of_entries_are_all_drawn(shape):
    kept = np.asarray(drop(jnp.ones(shape), rate=0.5) != 0)
    assert abs(kept.mean() - 0.5) < 5 * np.sqrt(0.25 / kept.size)
    if len(shape) > 1:
        each = kept.mean(axis=0)
        assert ((each > 0) & (each < 1)).all()


def test_an_example_keeps_its_mask_in_any_batch():
    x = jnp.ones((6, 5, 4))
    np.testing.assert_array_equal(drop(x)[:2], drop(x[:2]))


def test_a_longer_example_keeps_the_mask_of_its_beginning():
    np.testing.assert_array_equal(
        drop(jnp.ones((6, 8, 5)))[:, :5], drop(jnp.ones((6, 5, 5)))
    )


def test_a_key_gives_a_mask():
    x = jnp.ones((6, 20))
    assert (drop(x) != drop(x, key={"dropout": jax.random.key(1)})).any()


def test_broadcast_shares_the_mask_along_an_axis():
    kept = np.asarray(drop(jnp.ones((7, 5, 9)), rate=0.5, broadcast=(1,)) != 0)
    assert (kept == kept[:, :1]).all()
    assert len(np.unique(kept[:, 0], axis=0)) > 1


@pytest.mark.filterwarnings("ignore:.*pmap.*:DeprecationWarning")
def test_pmap_draws_the_masks_of_jit():
    x = jnp.ones((16, 3, 4))
    mapped = jax.pmap(drop, axis_name="data")(x.reshape(8, 2, 3, 4))
    np.testing.assert_array_equal(mapped.reshape(x.shape), drop(x))


def test_switched_off():
    x = jax.random.normal(jax.random.key(2), (3, 4))
    np.testing.assert_array_equal(nn.Dropout(0.5).apply({}, x, deterministic=True), x)
    np.testing.assert_array_equal(nn.Dropout(0.5, deterministic=True).apply({}, x), x)
    np.testing.assert_array_equal(drop(x, rate=0.0), x)
    np.testing.assert_array_equal(drop(x, rate=1.0), jnp.zeros_like(x))


def test_mistakes_are_named():
    x = jnp.ones((3, 4))
    with pytest.raises(InputError, match="rate is 1.5"):
        drop(x, rate=1.5)
    with pytest.raises(InputError, match="broadcast"):
        drop(x, broadcast=(0,))
    with pytest.raises(InputError, match="broadcast"):
        drop(x, broadcast=(2,))
