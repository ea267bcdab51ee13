import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxemb import train
from jaxemb.errors import InputError
from tests.train import small


def test_step_is_the_gradient_step_written_out():
    state, batch = small.state(), small.batches()(0)
    new, metrics = small.step()(state, batch)
    key = jax.random.fold_in(jax.random.wrap_key_data(state.key), 0)
    value, grads = jax.value_and_grad(
        lambda params: small.loss_fn({"params": params}, batch, key)[0]
    )(state.params)
    updates, _ = small.TX.update(grads, small.TX.init(state.params), state.params)
    expected = optax.apply_updates(state.params, updates)
    jax.tree.map(np.testing.assert_array_equal, new.params, expected)
    assert metrics["loss"] == value
    assert new.step == 1


def test_each_step_draws_its_own_randomness():
    state, batch = small.state(), small.batches()(0)
    step = jax.jit(small.step())
    first = step(state, batch)[1]["loss"]
    again = step(state, batch)[1]["loss"]
    later = step(state.replace(step=state.step + 1), batch)[1]["loss"]
    assert first == again
    assert first != later


def test_accumulated_gradients_equal_those_of_the_whole_batch():
    """Without dropout, so that the parts draw no randomness of their own."""

    def loss_fn(variables, batch, key):
        logits = small.Tiny().apply(variables, batch["tokens"], deterministic=True)
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"])
        return jnp.mean(loss), {}

    tx = optax.sgd(1.0)
    variables = small.state().variables
    state = train.State.create(variables, tx, jax.random.key(0))
    batch = small.batches()(0)
    whole, whole_metrics = train.make_step(loss_fn, tx)(state, batch)
    for parts in (2, 8):
        new, metrics = train.make_step(loss_fn, tx, accumulate=parts)(state, batch)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
            new.params,
            whole.params,
        )
        np.testing.assert_allclose(metrics["loss"], whole_metrics["loss"], rtol=1e-6)


def test_a_batch_that_cannot_be_divided_is_named():
    with pytest.raises(InputError, match="16 examples cannot be taken in 3 parts"):
        small.step(accumulate=3)(small.state(), small.batches()(0))


def test_seeds_together_equal_seeds_apart():
    states = [small.state(seed) for seed in range(3)]
    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    batch = small.batches()(0)
    together, metrics = jax.jit(train.over_seeds(small.step()))(together, batch)
    apart = [jax.jit(small.step())(state, batch) for state in states]
    for i, (state, own) in enumerate(apart):
        jax.tree.map(
            lambda a, b, i=i: np.testing.assert_allclose(a[i], b, atol=1e-6),
            together.params,
            state.params,
        )
        np.testing.assert_allclose(metrics["loss"][i], own["loss"], rtol=1e-6)
    assert len(set(np.asarray(metrics["loss"]).tolist())) == 3


def test_over_models_is_a_loop_over_them():
    def function(own, shared, more):
        return {"sum": own["x"] @ shared + more, "key": jax.random.bits(own["key"])}

    keys = jax.random.split(jax.random.key(0), 3)
    own = {"x": jax.random.normal(keys[0], (3, 4)), "key": keys}
    shared, more = jnp.arange(4.0), jnp.arange(3.0)
    found = jax.jit(train.over_models(function, (0, None, 0)))(own, shared, more)
    for i in range(3):
        one = function(jax.tree.map(lambda x, i=i: x[i], own), shared, more[i])
        np.testing.assert_allclose(found["sum"][i], one["sum"], rtol=1e-6)
        assert found["key"][i] == one["key"]


@pytest.mark.parametrize(("platform", "loops"), [("cpu", 1), ("tpu", 0), ("cuda", 0)])
def test_over_models_is_a_loop_on_cpu_and_one_batch_elsewhere(platform, loops):
    mapped = jax.jit(train.over_models(lambda x, y: x @ y, (0, None)))
    traced = mapped.trace(jnp.ones([3, 4, 5]), jnp.ones([5, 6]))
    program = traced.lower(lowering_platforms=(platform,)).as_text()
    assert program.count("stablehlo.while") == loops


def test_over_models_names_axes_that_it_does_not_take():
    with pytest.raises(InputError, match=r"in_axes \(1, None\); expected 0 or None"):
        train.over_models(lambda x, y: x, (1, None))
