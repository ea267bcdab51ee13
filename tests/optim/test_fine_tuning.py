import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxemb import optim
from jaxemb.errors import InputError

PARAMS = {"dense": {"kernel": jnp.array([1.0, -2.0]), "bias": jnp.array([0.5])}}


def test_the_schedule_is_two_lines():
    schedule = optim.warmup_linear(2.0, 4, 10)
    wanted = [0, 0.5, 1, 1.5, 2, 2 * 5 / 6, 2 * 4 / 6, 1, 2 * 2 / 6, 2 / 6, 0, 0]
    np.testing.assert_allclose([schedule(t) for t in range(12)], wanted, atol=1e-6)
    assert optim.warmup_linear(1.0, 0, 5)(0) == 1
    with pytest.raises(InputError, match="warmup_steps is 5; expected"):
        optim.warmup_linear(1.0, 5, 5)


def test_one_program_serves_every_rate_of_a_falling_adam():
    """Against optax's schedule; rates are of the states, side by side too."""
    tx = optim.falling_adam(0.0, 4)
    rates = jnp.array([0.0, 1e-3, 1e-2])
    states = jax.vmap(lambda rate: optim.falling_adam(rate, 4).init(PARAMS))(rates)
    update = jax.jit(jax.vmap(tx.update, in_axes=(None, 0)))
    plain = [optax.adam(optax.linear_schedule(float(rate), 0, 4)) for rate in rates]
    theirs = [one.init(PARAMS) for one in plain]
    rng = np.random.default_rng(0)
    for _ in range(6):
        grads = jax.tree.map(lambda p: jnp.asarray(rng.normal(size=p.shape)), PARAMS)
        updates, states = update(grads, states)
        for number, one in enumerate(plain):
            wanted, theirs[number] = one.update(grads, theirs[number])
            jax.tree.map(
                lambda ours, w, n=number: np.testing.assert_allclose(
                    ours[n], w, rtol=1e-5, atol=1e-9
                ),
                updates,
                wanted,
            )
    assert not any(x.any() for x in jax.tree.leaves(updates))  # it has come to 0


def test_adam_as_bert_has_it():
    """By the formula, in float64, a number at a time."""
    tx = optim.bert_adam(0.1, b1=0.8, b2=0.9, eps=1e-3, weight_decay=0.2)
    params, state = PARAMS, tx.init(PARAMS)
    plain = {"kernel": np.array([1.0, -2.0]), "bias": np.array([0.5])}
    mean = {k: np.zeros_like(v) for k, v in plain.items()}
    square = {k: np.zeros_like(v) for k, v in plain.items()}
    rng = np.random.default_rng(0)
    for _ in range(5):
        grads = {k: rng.normal(size=v.shape) for k, v in plain.items()}
        as_jax = {"dense": {k: jnp.asarray(g, jnp.float32) for k, g in grads.items()}}
        updates, state = tx.update(as_jax, state, params)
        params = optax.apply_updates(params, updates)
        for name, g in grads.items():
            mean[name] = 0.8 * mean[name] + 0.2 * g
            square[name] = 0.9 * square[name] + 0.1 * g**2
            step = mean[name] / (np.sqrt(square[name]) + 1e-3)
            decay = 0.2 if name == "kernel" else 0.0
            plain[name] = plain[name] - 0.1 * (step + decay * plain[name])
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
        params["dense"],
        plain,
    )


def test_with_the_correction_it_is_torchs_adamw():
    torch = pytest.importorskip("torch", reason="the extra oracles holds torch")
    tx = optim.bert_adam(0.1, eps=1e-8, weight_decay=0.2, bias_correction=True)
    params, state = PARAMS, tx.init(PARAMS)
    theirs = {
        k: torch.nn.Parameter(torch.tensor(np.array(v)))
        for k, v in PARAMS["dense"].items()
    }
    groups = [
        {"params": [theirs["kernel"]], "weight_decay": 0.2},
        {"params": [theirs["bias"]], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=0.1)
    rng = np.random.default_rng(0)
    for _ in range(5):
        for parameter in theirs.values():
            parameter.grad = torch.tensor(rng.normal(size=parameter.shape)).float()
        grads = {"dense": {k: jnp.asarray(p.grad.numpy()) for k, p in theirs.items()}}
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        adamw.step()
    for name, parameter in theirs.items():
        wanted = parameter.detach().numpy()
        np.testing.assert_allclose(params["dense"][name], wanted, rtol=1e-4)
