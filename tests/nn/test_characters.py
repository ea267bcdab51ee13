"""Words from characters: the checks of the paper's card, torch, and loops."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import optax
import pytest

from jaxemb import losses, nn
from jaxemb.errors import InputError
from jaxemb.losses import distances

VOCAB, DIM, FEATURES = 9, 4, 3
LENGTHS = np.array([5, 3, 1, 0])
CHARACTERS = np.random.default_rng(0).integers(1, VOCAB, (4, 5)).astype(np.int32)
CHARACTERS *= np.arange(5) < LENGTHS[:, None]


def random_variables(module, seed=1):
    words = jnp.array(CHARACTERS)
    init = lambda: module.init(jax.random.key(0), words, deterministic=True)
    shapes = jax.eval_shape(init)["params"]
    rng = np.random.default_rng(seed)
    draw = lambda p: jnp.array(rng.normal(size=p.shape), jnp.float32)
    return {"params": jax.tree.map(draw, shapes)}


def embed(module, variables, characters=CHARACTERS):
    return np.asarray(
        module.apply(variables, jnp.array(characters), deterministic=True)
    )


@pytest.fixture(scope="module")
def highway():
    module = nn.CharBiLSTM(VOCAB, FEATURES, DIM, head="highway")
    return module, random_variables(module)


def heads(variables):
    """The vectors of all heads with the parameters that they share."""
    params = {k: v for k, v in variables["params"].items() if k != "gate"}
    return {
        head: embed(nn.CharBiLSTM(VOCAB, FEATURES, DIM, head=head), {"params": params})
        for head in ("linear", "relu")
    }


def test_the_linear_head_equals_torch(highway):
    torch = pytest.importorskip("torch", reason="needs the extra 'oracles'")
    _, variables = highway
    params = variables["params"]
    theirs = torch.nn.LSTM(DIM, DIM, bidirectional=True)
    with torch.no_grad():
        for direction, suffix in {"forward": "l0", "backward": "l0_reverse"}.items():
            cell = params["lstm"][direction]
            for name, value in (
                ("weight_ih", cell["input"]["kernel"].T),
                ("bias_ih", cell["input"]["bias"]),
                ("weight_hh", cell["recurrent"].T),
                ("bias_hh", jnp.zeros(4 * DIM)),
            ):
                parameter = getattr(theirs, f"{name}_{suffix}")
                parameter.copy_(torch.tensor(np.array(value)))
    linear = heads(variables)["linear"]
    kernel, bias = (np.asarray(params["project"][n]) for n in ("kernel", "bias"))
    for row, length in enumerate(LENGTHS):
        state = np.zeros(2 * DIM)
        if length:
            word = np.asarray(params["characters"]["embedding"])[CHARACTERS[row]]
            _, (h, _) = theirs(torch.tensor(word[:length, None]))
            state = np.hstack(h.detach().numpy())[0]
        np.testing.assert_allclose(linear[row], state @ kernel + bias, rtol=1e-4)


def test_heads_are_their_definition(highway):
    module, variables = highway
    z, h = (heads(variables)[name] for name in ("linear", "relu"))
    np.testing.assert_array_equal(h, np.maximum(z, 0))
    gate = jax.tree.map(np.asarray, variables["params"]["gate"])
    t = 1 / (1 + np.exp(-(h @ gate["kernel"] + gate["bias"])))
    expected = t * h + (1 - t) * z
    np.testing.assert_allclose(embed(module, variables), expected, rtol=1e-4, atol=1e-6)


def test_limits_of_the_gate(highway):
    """Check 6: an open gate gives h, a closed one z; both are z where z >= 0."""
    module, variables = highway
    z, h = (heads(variables)[name] for name in ("linear", "relu"))
    for bias, expected in ((1e4, h), (-1e4, z)):
        gate = variables["params"]["gate"] | {"bias": jnp.full(FEATURES, bias)}
        params = {"params": variables["params"] | {"gate": gate}}
        np.testing.assert_allclose(embed(module, params), expected, rtol=1e-5)
    params = variables["params"] | {
        "project": variables["params"]["project"] | {"bias": jnp.full(FEATURES, 99.0)}
    }
    positive = heads({"params": params})["linear"]
    assert (positive > 0).all()
    np.testing.assert_allclose(embed(module, {"params": params}), positive, rtol=1e-5)


def test_reading_backwards_with_the_directions_exchanged(highway):
    """Check 7: z is the same when the word and the roles of both LSTMs are turned."""
    _, variables = highway
    module = nn.CharBiLSTM(VOCAB, FEATURES, DIM, head="linear")
    params = {k: v for k, v in variables["params"].items() if k != "gate"}
    lstm, kernel = params["lstm"], params["project"]["kernel"]
    turned = params | {
        "lstm": {"forward": lstm["backward"], "backward": lstm["forward"]},
        "project": params["project"]
        | {"kernel": jnp.concatenate([kernel[DIM:], kernel[:DIM]])},
    }
    words = [row[:n][::-1] for row, n in zip(CHARACTERS, LENGTHS, strict=True)]
    back = np.stack([np.pad(word, (0, 5 - len(word))) for word in words])
    np.testing.assert_allclose(
        embed(module, {"params": turned}, back),
        embed(module, {"params": params}),
        rtol=1e-4,
        atol=1e-6,
    )


def test_a_linear_head_memorises_and_spelling_decides():
    """Check 8: D2 falls to 0 on 20 words; the same string has the same vector."""
    rng = np.random.default_rng(0)
    words = np.unique(rng.integers(1, VOCAB, (40, 5)), axis=0)[:20].astype(np.int32)
    words = jnp.array(np.concatenate([words, words[:1]]))
    targets = jnp.array(rng.normal(size=(20, FEATURES)), jnp.float32)
    module = nn.CharBiLSTM(VOCAB, FEATURES, hidden=16, head="linear")
    tx = optax.adam(1e-2)
    params = module.init(jax.random.key(0), words, deterministic=True)["params"]

    def loss(params):
        vectors = module.apply({"params": params}, words, deterministic=True)
        return jnp.mean(distances.d2(targets, vectors[:20])), vectors

    @jax.jit
    def train(params):
        def step(carry, _):
            params, state = carry
            gradient, _ = jax.grad(loss, has_aux=True)(params)
            updates, state = tx.update(gradient, state, params)
            return (optax.apply_updates(params, updates), state), None

        carry, _ = jax.lax.scan(step, (params, tx.init(params)), length=1500)
        return carry[0]

    first, _ = loss(params)
    last, vectors = loss(train(params))
    assert last < 1e-3 < 0.5 < first
    np.testing.assert_array_equal(vectors[0], vectors[20])


def test_a_relu_head_stays_above_the_floor():
    """Check 5: whatever is learnt, D1 and D2 have a floor, and cosines are >= 0."""
    rng = np.random.default_rng(0)
    targets = jnp.array(rng.normal(size=(4, FEATURES)), jnp.float32)
    module = nn.CharBiLSTM(VOCAB, FEATURES, DIM, head="relu")
    for seed in range(5):
        vectors = jnp.array(embed(module, random_variables(module, seed)))
        for distance in (losses.distances.d1, losses.distances.d2):
            floor = distances.nonnegative_floor(distance, targets)
            assert (distance(targets, vectors) >= floor - 1e-6).all()
        assert (vectors @ vectors.T >= 0).all()


def test_char_cnn_is_its_definition():
    module = nn.CharCNN(VOCAB, FEATURES, DIM)
    variables = random_variables(module)
    params = jax.tree.map(np.asarray, variables["params"])
    ours = embed(module, variables)
    for row, length in enumerate(LENGTHS):
        nothing = [np.zeros(DIM)] * 2
        letters = list(params["characters"]["embedding"][CHARACTERS[row, :length]])
        padded = [*nothing, *letters, *nothing]
        windows = [np.concatenate(padded[p : p + 3]) for p in range(length + 2)]
        maps = [
            w @ params["filters"]["kernel"] + params["filters"]["bias"] for w in windows
        ]
        expected = np.tanh(np.max(maps, axis=0)) if length else np.zeros(FEATURES)
        np.testing.assert_allclose(ours[row], expected, rtol=1e-4, atol=1e-6)


def test_dropout_is_of_the_last_states(highway):
    _, variables = highway
    params = {k: v for k, v in variables["params"].items() if k != "gate"}
    module = nn.CharBiLSTM(VOCAB, FEATURES, DIM, "linear", dropout_rate=1.0)
    words = jnp.array(CHARACTERS)
    dropped = module.apply({"params": params}, words, deterministic=False)
    bias = np.broadcast_to(params["project"]["bias"], dropped.shape)
    np.testing.assert_array_equal(dropped, bias)


def test_a_character_outside_the_vocabulary_is_nan(highway):
    module, variables = highway
    words = CHARACTERS.copy()
    words[1, 0] = VOCAB
    assert np.isnan(embed(module, variables, words)).all(axis=1).tolist() == [
        *(False, True, False, False)
    ]


def test_an_unknown_head_is_named(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user has none
    module = nn.CharBiLSTM(VOCAB, FEATURES, head="tanh")
    with pytest.raises(InputError, match="head is 'tanh'; expected 'relu'"):
        module.init(jax.random.key(0), jnp.array(CHARACTERS), deterministic=True)
