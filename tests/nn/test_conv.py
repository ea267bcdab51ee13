import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import nn
from jaxemb.errors import InputError

WIDTHS, MAPS, DIM = (1, 2, 4), 5, 3
LENGTHS = (6, 2, 1, 0)
MASK = np.arange(6) < np.array(LENGTHS)[:, None]
VECTORS = np.random.default_rng(0).normal(size=(4, 6, DIM)).astype(np.float32)


@pytest.fixture(scope="module")
def model():
    module = nn.KimCNN(2, WIDTHS, MAPS)
    shapes = jax.eval_shape(
        lambda: module.init(
            jax.random.key(0), jnp.array(VECTORS), jnp.array(MASK), deterministic=True
        )
    )
    rng = np.random.default_rng(1)
    draw = lambda p: jnp.array(0.5 * rng.normal(size=p.shape), jnp.float32)
    return module, {"params": jax.tree.map(draw, shapes["params"])}


def features_by_definition(params, vectors, lengths):
    """Loops over sentences, widths, maps and windows, words taken one by one."""
    rows = []
    for sentence, length in zip(vectors, lengths, strict=True):
        words = [sentence[t] for t in range(length)]
        row = []
        for width in WIDTHS:
            kernel = np.asarray(params[f"width_{width}"]["kernel"])
            bias = np.asarray(params[f"width_{width}"]["bias"])
            nothing = [np.zeros(DIM, np.float32)] * (width - 1)
            padded = nothing + words + nothing
            windows = [
                np.concatenate(padded[p : p + width])
                for p in range(len(padded) - width + 1)
            ]
            for m in range(MAPS):
                values = [max(0.0, w @ kernel[:, m] + bias[m]) for w in windows]
                row.append(max(values) if length else 0.0)
        rows.append(row)
    return np.array(rows)


def test_features_are_their_definition(model):
    module, variables = model
    features = module.apply(
        variables, jnp.array(VECTORS), jnp.array(MASK), method="features"
    )
    expected = features_by_definition(variables["params"], VECTORS, LENGTHS)
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)


def test_logits_are_a_dense_of_the_features(model):
    module, variables = model
    logits, sown = module.apply(
        variables,
        jnp.array(VECTORS),
        jnp.array(MASK),
        deterministic=True,
        mutable="intermediates",
    )
    (features,) = sown["intermediates"]["features"]
    output = jax.tree.map(np.asarray, variables["params"]["output"])
    expected = np.asarray(features) @ output["kernel"] + output["bias"]
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-6)


def test_features_and_gradients_equal_torch(model):
    torch = pytest.importorskip("torch", reason="needs the extra 'oracles'")
    module, variables = model

    def total(params, vectors):
        features = module.apply(
            {"params": params}, vectors, jnp.array(MASK), method="features"
        )
        return jnp.sum(jnp.sin(features))

    ours = jax.grad(total, argnums=(0, 1))(variables["params"], jnp.array(VECTORS))

    leaves, pooled = {}, []
    x = torch.tensor(VECTORS, requires_grad=True)
    for width in WIDTHS:
        dense = variables["params"][f"width_{width}"]
        kernel = np.asarray(dense["kernel"]).reshape(width, DIM, MAPS)
        weight = torch.tensor(kernel.transpose(2, 1, 0).copy(), requires_grad=True)
        bias = torch.tensor(np.array(dense["bias"]), requires_grad=True)
        leaves[width] = weight, bias
        rows = []
        for i, length in enumerate(LENGTHS[:-1]):  # torch refuses the empty sentence
            sentence = x[i, :length].T[None]
            maps = torch.conv1d(sentence, weight, bias, padding=width - 1)
            rows.append(torch.relu(maps).amax(dim=2)[0])
        pooled.append(torch.stack(rows))
    torch.sin(torch.cat(pooled, dim=1)).sum().backward()
    np.testing.assert_allclose(ours[1], x.grad, rtol=1e-4, atol=1e-5)
    for width, (weight, bias) in leaves.items():
        gradient = ours[0][f"width_{width}"]
        expected = weight.grad.numpy().transpose(2, 1, 0).reshape(-1, MAPS)
        np.testing.assert_allclose(gradient["kernel"], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gradient["bias"], bias.grad, rtol=1e-4, atol=1e-5)


def test_a_bad_vector_is_not_hidden_by_the_maximum(model):
    module, variables = model
    vectors = jnp.array(VECTORS).at[0, 2, 0].set(jnp.nan)
    features = module.apply(variables, vectors, jnp.array(MASK), method="features")
    assert jnp.isnan(features[0]).any() and jnp.isfinite(features[1:]).all()


def test_encoder_is_its_definition():
    module = nn.ConvEncoder(MAPS, width=3, layers=2)
    vectors, mask = jnp.array(VECTORS), jnp.array(MASK)
    output, variables = module.init_with_output(jax.random.key(0), vectors, mask)
    for row, length in enumerate(LENGTHS):
        words = [VECTORS[row, t].astype(np.float64) for t in range(length)]
        for layer in range(2):
            dense = variables["params"][f"layer_{layer}"]
            kernel, bias = (np.asarray(dense[n], np.float64) for n in dense)
            nothing = np.zeros(len(kernel) // 3)
            padded = [nothing, *words, nothing]
            words = [
                np.maximum(np.concatenate(padded[t : t + 3]) @ kernel + bias, 0)
                for t in range(length)
            ]
        expected = np.zeros((6, MAPS))
        expected[:length] = np.reshape(words, (length, MAPS))
        np.testing.assert_allclose(output[row], expected, rtol=1e-4, atol=1e-5)


def test_an_even_width_is_named():
    with pytest.raises(InputError, match="width is 2; expected an odd one"):
        nn.ConvEncoder(MAPS, width=2).init(
            jax.random.key(0), jnp.array(VECTORS), jnp.array(MASK)
        )
