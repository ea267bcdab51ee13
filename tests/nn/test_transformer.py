"""Blocks beside torch's own, and the promises of their options."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import nn
from jaxemb.errors import InputError
from jaxemb.nn import transformer

BATCH, LENGTH, DIM, HEADS = 4, 6, 8, 2
X = np.random.default_rng(0).normal(size=(BATCH, LENGTH, DIM)).astype(np.float32)
MASK = np.arange(LENGTH) < np.array([6, 3, 1, 5])[:, None]
INPUTS = jnp.asarray(X), jnp.asarray(MASK)


def started(module, seed=0):
    shapes = jax.eval_shape(
        lambda: module.init(jax.random.key(0), *INPUTS, deterministic=True)
    )
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda p: jnp.asarray(0.4 * rng.normal(size=p.shape), p.dtype), shapes
    )


def run(module, variables, x=X, mask=MASK, **options):
    options = {"deterministic": True, **options}
    return module.apply(variables, jnp.asarray(x), jnp.asarray(mask), **options)


def test_attention_is_its_definition():
    module = transformer.SelfAttention(HEADS, causal=True)
    shapes = jax.eval_shape(lambda: module.init(jax.random.key(0), *INPUTS, True))
    rng = np.random.default_rng(1)
    params = jax.tree.map(lambda p: rng.normal(size=p.shape), shapes)["params"]
    found = module.apply({"params": jax.tree.map(jnp.float32, params)}, *INPUTS, True)
    width = DIM // HEADS
    project = lambda name, x: x @ params[name]["kernel"] + params[name]["bias"]
    for b in range(BATCH):
        for t in range(int(MASK[b].sum())):
            parts = []
            for h in range(HEADS):
                own = slice(h * width, (h + 1) * width)
                query = project("query", X[b, t])[own]
                scores = [project("key", X[b, j])[own] @ query for j in range(t + 1)]
                weights = np.exp(np.array(scores) / np.sqrt(width))
                weights /= weights.sum()
                values = [project("value", X[b, j])[own] for j in range(t + 1)]
                parts.append(weights @ np.array(values))
            wanted = project("output", np.concatenate(parts))
            np.testing.assert_allclose(found[b, t], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_a_block_is_torchs(pre_norm, activation):
    torch = pytest.importorskip("torch", reason="the extra oracles holds torch")
    module = nn.Transformer(
        1, HEADS, 16, activation=activation, pre_norm=pre_norm, epsilon=1e-5
    )
    variables = started(module)
    block = variables["params"]["layer_0"]
    layer = torch.nn.TransformerEncoderLayer(
        *(DIM, HEADS, 16, 0.0, activation, 1e-5),
        batch_first=True,
        norm_first=pre_norm,
    ).eval()
    attention = block["attention"]
    sides = [attention[name] for name in ("query", "key", "value")]
    tensors = {
        "self_attn.in_proj_weight": np.concatenate([s["kernel"].T for s in sides]),
        "self_attn.in_proj_bias": np.concatenate([s["bias"] for s in sides]),
    }
    for theirs, ours in (
        ("self_attn.out_proj", attention["output"]),
        ("linear1", block["inner"]),
        ("linear2", block["outer"]),
    ):
        tensors[f"{theirs}.weight"] = np.asarray(ours["kernel"]).T
        tensors[f"{theirs}.bias"] = np.asarray(ours["bias"])
    for theirs, ours in (("norm1", "attention_norm"), ("norm2", "outer_norm")):
        tensors[f"{theirs}.weight"] = np.asarray(block[ours]["scale"])
        tensors[f"{theirs}.bias"] = np.asarray(block[ours]["bias"])
    layer.load_state_dict({k: torch.tensor(np.array(v)) for k, v in tensors.items()})
    with torch.no_grad():
        wanted = layer(torch.tensor(X), src_key_padding_mask=torch.tensor(~MASK))
        if pre_norm:
            norm = variables["params"]["norm"]
            weight, bias = (torch.tensor(np.array(norm[k])) for k in ("scale", "bias"))
            wanted = torch.nn.functional.layer_norm(wanted, (DIM,), weight, bias, 1e-5)
    found = np.asarray(run(module, variables).last)
    np.testing.assert_allclose(found[MASK], wanted.numpy()[MASK], atol=1e-5)
    assert not found[~MASK].any()


@pytest.mark.parametrize(
    "options", [{"remat": True}, {"scan": True}, {"scan": True, "remat": True}]
)
def test_options_change_neither_states_nor_gradients(options):
    plain = nn.Transformer(3, HEADS, 16)
    other = nn.Transformer(3, HEADS, 16, **options)
    variables = started(plain)
    params = variables["params"]
    if other.scan:
        params = nn.stack_layers(params, 3)
        back = nn.unstack_layers(params, 3)
        jax.tree.map(np.testing.assert_array_equal, back, variables["params"])
        shapes = jax.eval_shape(
            lambda: other.init(jax.random.key(0), *INPUTS, deterministic=True)
        )["params"]
        assert jax.tree.map(jnp.shape, params) == jax.tree.map(jnp.shape, shapes)

    def loss(params, module):
        encoded = run(module, {"params": params})
        return sum(jnp.sum(jnp.sin(s)) for s in encoded.states), encoded.states

    gradient, states = jax.grad(loss, has_aux=True)(params, other)
    wanted_gradient, wanted = jax.grad(loss, has_aux=True)(variables["params"], plain)
    if other.scan:
        gradient = nn.unstack_layers(gradient, 3)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    jax.tree.map(close, states, wanted)
    jax.tree.map(close, gradient, wanted_gradient)


def test_the_fused_kernels_path_is_the_same_function():
    queries, keys, values = np.random.default_rng(2).normal(size=(3, 4, 6, 2, 4))
    seen = MASK[:, None, None, :] & np.tril(np.ones((6, 6), bool))[None, None]
    arguments = [jnp.asarray(a) for a in (queries, keys, values)]
    arguments = [a.astype(jnp.float32) for a in arguments]
    fused = transformer._fused(*arguments, jnp.asarray(seen))
    heads = transformer._by_heads(*arguments, jnp.asarray(seen))
    np.testing.assert_allclose(
        np.asarray(fused)[MASK], np.asarray(heads)[MASK], atol=1e-5
    )


def test_attention_maps_and_dropout_leave_the_way_of_matmuls_open():
    module = nn.Transformer(2, HEADS, 16)
    variables = started(module)
    plain = run(module, variables)
    asked, kept = run(module, variables, mutable="intermediates")
    np.testing.assert_allclose(asked.last, plain.last, atol=1e-5)
    [weights] = kept["intermediates"]["layer_1"]["attention"]["attention"]
    assert weights.shape == (BATCH, HEADS, LENGTH, LENGTH)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    assert not np.asarray(weights)[
        np.broadcast_to(~MASK[:, None, None], weights.shape)
    ].any()
    rngs = {"dropout": jax.random.key(0)}
    dropped = run(module, variables, deterministic=False, rngs=rngs)
    assert np.abs(dropped.last - plain.last).max() > 0.01
    off = nn.Transformer(2, HEADS, 16, dropout_rate=0.0, attention_dropout_rate=0.0)
    same = run(off, variables, deterministic=False, rngs=rngs)
    np.testing.assert_allclose(same.last, plain.last, atol=1e-6)


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_encoders_lower_for_accelerators(platform):
    module = nn.Transformer(2, HEADS, 16, dtype=jnp.bfloat16)
    variables = started(module)
    traced = jax.jit(lambda v, x, m: run(module, v, x, m).last).trace(
        variables, X, MASK
    )
    assert traced.lower(lowering_platforms=(platform,)).as_text()


def test_sinusoids_are_their_formula():
    table = nn.sinusoids(7, 6)
    for p in range(7):
        for i in range(3):
            angle = p / 10_000 ** (2 * i / 6)
            np.testing.assert_allclose(table[p, 2 * i], np.sin(angle), atol=1e-6)
            np.testing.assert_allclose(table[p, 2 * i + 1], np.cos(angle), atol=1e-6)


@pytest.fixture(scope="module")
def whole():
    """An encoder whose learnt positions are the formula of sinusoids, and its input."""
    config = nn.TextConfig(
        vocab=11, dim=DIM, layers=2, heads=HEADS, inner=16, positions=8,
        first_position=1, pooler=False,
    )  # fmt: skip
    ids = jnp.asarray(np.random.default_rng(3).integers(0, 11, MASK.shape), jnp.int32)
    inputs = ids, jnp.asarray(MASK)
    shapes = jax.eval_shape(
        lambda: nn.Bert(config).init(jax.random.key(0), *inputs, deterministic=True)
    )["params"]
    rng = np.random.default_rng(4)
    params = jax.tree.map(lambda p: jnp.float32(rng.normal(size=p.shape)), shapes)
    places, columns = np.arange(8)[:, None], np.arange(DIM)[None]
    angles = places / 10_000 ** (2 * (columns // 2) / DIM)
    table = np.where(columns % 2, np.cos(angles), np.sin(angles))
    params["places"]["embedding"] = jnp.asarray(table, jnp.float32)
    return config, params, inputs


def test_a_whole_encoder_with_sinusoids(whole):
    config, params, inputs = whole
    wanted = nn.Bert(config).apply({"params": params}, *inputs, deterministic=True)
    config = dataclasses.replace(config, position_kind="sinusoidal")
    rest = {name: value for name, value in params.items() if name != "places"}
    found = nn.Bert(config).apply({"params": rest}, *inputs, deterministic=True)
    for one, other in zip(found.states, wanted.states, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    shapes = jax.eval_shape(
        lambda: nn.Bert(config).init(jax.random.key(0), *inputs, deterministic=True)
    )["params"]
    assert set(shapes) == set(rest)


def test_a_whole_encoder_of_one_compiled_block(whole):
    config, params, inputs = whole
    wanted = nn.Bert(config).apply({"params": params}, *inputs, deterministic=True)
    blocks = nn.stack_layers(params["blocks"], config.layers)
    found = nn.Bert(config, scan=True).apply(
        {"params": {**params, "blocks": blocks}}, *inputs, deterministic=True
    )
    for one, other in zip(found.states, wanted.states, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_what_does_not_fit_is_named():
    with pytest.raises(InputError, match="heads is 3; expected a divisor of 8"):
        started(nn.Transformer(1, 3, 16))
