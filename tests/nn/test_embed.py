import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from jaxemb import nn
from jaxemb.errors import InputError

MODES = ("fixed", "finetune", "delta")
IDS = jnp.array([[3, 1, 3], [2, 0, 0]])


def start(mode, **fields):
    module = nn.DeltaEmbedding(5, 3, mode, **fields)
    return module, module.init(jax.random.key(0), IDS)


def test_all_modes_start_at_the_same_table():
    outputs = [module.apply(v, IDS) for module, v in map(start, MODES)]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(outputs[0], outputs[2])


def test_what_each_mode_trains():
    names = {m: jax.tree.map(jnp.shape, start(m)[1]) for m in MODES}
    assert names == {
        "fixed": {"frozen": {"base": (5, 3)}},
        "finetune": {"params": {"table": (5, 3)}},
        "delta": {"frozen": {"base": (5, 3)}, "params": {"delta": (5, 3)}},
    }


@pytest.mark.parametrize("mode", MODES)
def test_lookup_and_export_are_base_plus_delta(mode):
    module, variables = start(mode)
    noise = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    variables = jax.tree.map(lambda x: x + noise, variables)
    table = sum(np.asarray(x) for x in jax.tree.leaves(variables))
    exported = module.apply(variables, method="export")
    np.testing.assert_allclose(exported, table, rtol=1e-6)
    read = nn.effective_table(variables.get("params", {}), variables.get("frozen"))
    np.testing.assert_array_equal(read, exported)
    table[0] = 0
    np.testing.assert_allclose(module.apply(variables, IDS), table[IDS], rtol=1e-6)


@pytest.mark.parametrize("mode", ["finetune", "delta"])
def test_gradient_is_a_scatter_add_without_padding(mode):
    module, variables = start(mode)
    weights = np.random.default_rng(1).normal(size=(2, 3, 3)).astype(np.float32)

    def loss(params):
        return jnp.sum(module.apply({**variables, "params": params}, IDS) * weights)

    (gradient,) = jax.tree.leaves(jax.grad(loss)(variables["params"]))
    expected = np.zeros((5, 3), np.float32)
    np.add.at(expected, np.asarray(IDS), weights)
    expected[0] = 0
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bad", [5, 100, -1, -5, -6])
def test_an_id_outside_the_vocabulary_is_nan(mode, bad):
    module, variables = start(mode)
    output = module.apply(variables, jnp.array([2, bad]))
    assert jnp.isnan(output[1]).all() and jnp.isfinite(output[0]).all()


def test_small_integer_types_do_not_overflow():
    module = nn.DeltaEmbedding(200, 2, "finetune", padding_id=None)
    variables = module.init(jax.random.key(0), IDS)
    output = module.apply(variables, jnp.array([-1, 127], jnp.int8))
    assert jnp.isnan(output[0]).all() and jnp.isfinite(output[1]).all()


def test_without_padding_every_row_is_looked_up():
    module, variables = start("finetune", padding_id=None)
    assert (module.apply(variables, jnp.array([0])) != 0).all()


def test_a_given_matrix_is_the_table():
    matrix = np.arange(15, dtype=np.float32).reshape(5, 3)
    module, variables = start("delta", base_init=nn.table_init(matrix))
    matrix[0] = 0
    np.testing.assert_array_equal(module.apply(variables, method="export"), matrix)
    wrong = nn.DeltaEmbedding(6, 3, "delta", base_init=nn.table_init(matrix))
    with pytest.raises(InputError, match=r"\(5, 3\).*\(6, 3\)"):
        wrong.init(jax.random.key(0), IDS)


def test_the_table_of_a_whole_model_is_found():
    base, delta = np.ones((4, 2)), np.full((4, 2), 0.5)
    params = {"cnn": {"kernel": np.zeros(3)}, "embed": {"delta": delta}}
    table = nn.effective_table(params, {"embed": {"base": base}})
    assert isinstance(table, np.ndarray)
    np.testing.assert_array_equal(table, 1.5 * np.ones((4, 2)))
    with pytest.raises(InputError, match="Found 0"):
        nn.effective_table({"cnn": {"kernel": base}}, {})
    with pytest.raises(InputError, match="Found 2.*a/table.*b/base"):
        nn.effective_table({"a": {"table": base}}, {"b": {"base": base}})


def test_mistakes_are_named(monkeypatch):
    with pytest.raises(InputError, match="padding_id is 5"):
        start("delta", padding_id=5)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user has none
    with pytest.raises(InputError, match="mode is 'frozen'; expected 'fixed'"):
        start("frozen")
