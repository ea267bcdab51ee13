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


def arrays(seed=0, contexts=3):
    rng = np.random.default_rng(seed)
    shapes = ((2, 4), (2, contexts, 4), (2, 5, 4))
    return [jnp.array(rng.normal(size=s), jnp.float32) for s in shapes]


@pytest.mark.parametrize("attention", [True, False])
def test_aggregated_contexts_are_a_loop_over_centres(attention):
    centre, context, noise = (np.asarray(x, np.float64) for x in arrays())
    mask = np.array([[True, False, True], [False, False, False]])
    near = context[0][mask[0]]
    scores = near @ centre[0]
    weights = np.exp(scores) / np.exp(scores).sum() if attention else [0.5, 0.5]
    wanted = np.logaddexp(0, -(weights @ near) @ centre[0])
    wanted += sum(np.logaddexp(0, centre[0] @ n) for n in noise[0])
    loss = losses.aggregated_sgns(*arrays(), mask=jnp.array(mask), attention=attention)
    np.testing.assert_allclose(loss, [wanted, 0], rtol=1e-5)


def test_aggregation_costs_no_more_than_its_parts():
    """Jensen: log s(sum a_j s_j) >= sum a_j log s(s_j), of any weights."""
    rng = np.random.default_rng(1)
    scores = jnp.array(rng.normal(scale=4, size=(200, 6)), jnp.float32)
    mask = jnp.array(rng.random((200, 6)) < 0.7)
    for scale in (0.3, 1.0):
        weights = losses.context_weights(scores, mask, scale=scale)
        whole = np.log(1 / (1 + np.exp(-np.sum(weights * scores, axis=1))))
        parts = np.sum(weights * -np.logaddexp(0, -np.asarray(scores)), axis=1)
        assert np.all(whole >= parts - 1e-5)
        assert np.mean(whole - parts) > 0.01  # and not for being equal
        total = np.sum(weights, axis=1)
        np.testing.assert_allclose(total[mask.any(axis=1)], 1, rtol=1e-5)
