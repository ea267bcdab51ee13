import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxemb import losses, nn, train

RNG = np.random.default_rng(0)
X = RNG.normal(2, 3, size=(16, 5)).astype(np.float32)
Y = RNG.integers(0, 3, 16).astype(np.int32)


@pytest.fixture(scope="module")
def model():
    module = nn.BatchNormClassifier(3)
    shapes = jax.eval_shape(
        lambda: module.init(jax.random.key(0), jnp.array(X), deterministic=True)
    )
    draw = lambda p: jnp.array(RNG.normal(size=p.shape), jnp.float32)
    params = jax.tree.map(draw, shapes["params"])
    return module, {
        "params": params,
        "batch_stats": nn.feature_statistics(jnp.array(X)),
    }


def test_is_torchs_batch_norm_and_linear(model):
    torch = pytest.importorskip("torch", reason="needs the extra oracles")
    module, variables = model
    norm, dense = variables["params"]["norm"], variables["params"]["output"]
    theirs = torch.nn.Sequential(
        torch.nn.BatchNorm1d(5, eps=1e-3, momentum=0.01), torch.nn.Linear(5, 3)
    )
    pairs = (
        (theirs[0].weight, norm["scale"]),
        (theirs[0].bias, norm["bias"]),
        (theirs[1].weight, dense["kernel"].T),
        (theirs[1].bias, dense["bias"]),
    )
    with torch.no_grad():
        for parameter, value in pairs:
            parameter.copy_(torch.tensor(np.array(value)))
        trained = theirs.train()(torch.tensor(X)).numpy()
    found, moved = module.apply(
        variables, jnp.array(X), deterministic=False, mutable="batch_stats"
    )
    np.testing.assert_allclose(found, trained, rtol=1e-4, atol=1e-5)
    # The statistics of all examples are already those of this batch.
    np.testing.assert_allclose(
        moved["batch_stats"]["norm"]["var"], X.var(axis=0), rtol=1e-5
    )
    still = module.apply(variables, jnp.array(X), deterministic=True)
    np.testing.assert_allclose(still, found, rtol=1e-4, atol=1e-5)


def test_statistics_are_of_the_global_batch(model):
    """Eight devices, by `jit` or `pmap`, learn what one does."""
    module, variables = model

    def loss(variables, batch, key):
        del key
        logits, _ = module.apply(
            variables, batch["x"], deterministic=False, mutable="batch_stats"
        )
        return jnp.mean(losses.softmax_cross_entropy(logits, batch["y"])), {}

    tx = optax.sgd(0.1)
    state = train.State.create(variables, tx, jax.random.key(0))
    learned = []
    for mode, devices in (("jit", 1), ("jit", 8), ("pmap", 8)):
        mesh = train.make_mesh(jax.devices()[:devices])
        step = train.data_parallel(train.make_step(loss, tx), mesh, mode=mode)
        new, _ = step(step.place(state), {"x": X, "y": Y})
        learned.append(jax.device_get(new.params))
    for other in learned[1:]:
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
            other,
            learned[0],
        )
