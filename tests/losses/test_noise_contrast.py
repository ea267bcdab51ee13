"""Skip-gram with negative sampling, against loops."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import losses


def test_sgns_is_a_loop_over_pairs():
    rng = np.random.default_rng(0)
    centre, context, noise = (
        rng.normal(size=shape) for shape in ((2, 4), (2, 3, 4), (2, 3, 5, 4))
    )
    mask = np.array([[True, False, True], [True, True, True]])
    wanted = np.zeros(2)
    for b, c in np.ndindex(2, 3):
        if mask[b, c]:
            wanted[b] += np.logaddexp(0, -centre[b] @ context[b, c])
            wanted[b] += sum(np.logaddexp(0, centre[b] @ n) for n in noise[b, c])
    arrays = (jnp.array(x, jnp.float32) for x in (centre, context, noise))
    loss = losses.sgns(*arrays, mask=jnp.array(mask))
    np.testing.assert_allclose(loss, wanted, rtol=1e-5)


def test_sgns_of_zeros_is_a_coin_for_every_choice():
    loss = losses.sgns(jnp.zeros(4), jnp.zeros((1, 4)), jnp.zeros((1, 5, 4)))
    assert float(loss) == pytest.approx(6 * np.log(2))
