import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxemb import optim
from jaxemb.errors import InputError

DECAY, STEPS = 0.9, 12


def train(transform):
    """The parameters after every update, and the last state."""
    params = {"w": jnp.array([2.0, -1.0])}
    state = transform.init(params)
    seen = [params["w"]]

    @jax.jit
    def step(params, state):
        gradients = jax.tree.map(jnp.sin, params)
        updates, state = transform.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    for _ in range(STEPS):
        params, state = step(params, state)
        seen.append(params["w"])
    return np.asarray(seen, np.float64), state


def test_debiased_average_is_the_weighted_mean_of_the_updated_parameters():
    transform = optax.chain(optax.adam(0.1), optim.parameter_ema(DECAY))
    seen, state = train(transform)
    weights = DECAY ** np.arange(STEPS)[::-1]
    expected = (weights[:, None] * seen[1:]).sum(axis=0) / weights.sum()
    np.testing.assert_allclose(optim.ema_params(state)["w"], expected, rtol=1e-5)


def test_plain_average_starts_at_the_first_parameters():
    transform = optax.chain(optax.sgd(0.1), optim.parameter_ema(DECAY, debias=False))
    seen, state = train(transform)
    expected = seen[0]
    for params in seen[1:]:
        expected = DECAY * expected + (1 - DECAY) * params
    np.testing.assert_allclose(optim.ema_params(state)["w"], expected, rtol=1e-5)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.999, 0.999999])
def test_after_one_update_the_debiased_average_is_the_parameter(decay):
    transform = optax.chain(optax.sgd(0.1), optim.parameter_ema(decay))
    params = {"w": jnp.array([2.0, -1.0])}
    state = transform.init(params)
    np.testing.assert_array_equal(optim.ema_params(state)["w"], params["w"])
    updates, state = transform.update({"w": jnp.ones(2)}, state, params)
    expected = optax.apply_updates(params, updates)["w"]
    np.testing.assert_allclose(optim.ema_params(state)["w"], expected, rtol=1e-6)


@pytest.mark.parametrize("decay", [0.0, 0.9, 0.99, 0.999999])
def test_the_average_of_what_does_not_move_is_what_it_is(decay):
    """From the first update on, and at every one after it."""
    tx = optim.parameter_ema(decay)
    params = {"w": jnp.array([2.0, -1.0, 0.5]), "b": jnp.full((2, 2), 7.0)}
    state = tx.init(jax.tree.map(lambda p: p + 1.0, params))  # it starts elsewhere
    still = jax.tree.map(jnp.zeros_like, params)
    for _ in range(6):
        _, state = tx.update(still, state, params)
        for name, average in optim.ema_params(state).items():
            np.testing.assert_allclose(average, params[name], rtol=2e-6)


def test_the_average_equals_optax():
    transform = optax.chain(optax.sgd(0.1), optim.parameter_ema(DECAY))
    seen, state = train(transform)
    theirs = optax.ema(DECAY, debias=True)
    their_state = theirs.init(jnp.array(seen[0], jnp.float32))
    for params in seen[1:]:
        average, their_state = theirs.update(
            jnp.array(params, jnp.float32), their_state
        )
    np.testing.assert_allclose(optim.ema_params(state)["w"], average, rtol=1e-5)


def test_all_averages_of_a_state():
    params = {"w": jnp.ones(2)}
    chain = optax.chain(optim.parameter_ema(0.5), optim.parameter_ema(0.9))
    found = optim.all_ema_params(chain.init(params))
    assert len(found) == 2
    np.testing.assert_array_equal(found[0]["w"], params["w"])
    assert optim.all_ema_params(optax.adam(0.1).init(params)) == []


def test_mistakes_are_named():
    with pytest.raises(InputError, match="holds 0"):
        optim.ema_params(optax.sgd(0.1).init({"w": jnp.zeros(2)}))
    with pytest.raises(InputError, match="decay is 1.0"):
        optim.parameter_ema(1.0)
