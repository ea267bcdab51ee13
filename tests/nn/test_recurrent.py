import re

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from jax.test_util import check_grads

from jaxemb import nn

DIM, HIDDEN = 4, 3
LENGTHS = np.array([5, 3, 1, 0])
MASK = np.arange(5) < LENGTHS[:, None]
INPUTS = np.random.default_rng(0).normal(size=(4, 5, DIM)).astype(np.float32)
X, M = jnp.array(INPUTS), jnp.array(MASK)


def random_variables(module, **kwargs):
    shapes = jax.eval_shape(lambda: module.init(jax.random.key(0), X, M, **kwargs))
    rng = np.random.default_rng(1)
    draw = lambda p: jnp.array(rng.normal(size=p.shape), jnp.float32)
    return {"params": jax.tree.map(draw, shapes["params"])}


@pytest.fixture(scope="module")
def bilstm():
    module = nn.BiLSTM(HIDDEN)
    return module, random_variables(module)


def lstm_by_definition(cell, words, state=None):
    """One sentence, one word at a time, in float64."""
    kernel, bias, recurrent = (
        np.asarray(p, np.float64)
        for p in (cell["input"]["kernel"], cell["input"]["bias"], cell["recurrent"])
    )
    sigmoid = lambda z: 1 / (1 + np.exp(-z))
    h, c = state or (np.zeros(HIDDEN), np.zeros(HIDDEN))
    states = []
    for word in words:
        i, f, g, o = np.split(word @ kernel + bias + h @ recurrent, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return states, h, c


@pytest.mark.parametrize("reverse", [False, True])
def test_lstm_is_its_definition(reverse):
    module = nn.LSTM(HIDDEN, reverse=reverse)
    variables = random_variables(module)
    rng = np.random.default_rng(2)
    start = rng.normal(size=(2, 4, HIDDEN)).astype(np.float32)
    states, final = module.apply(variables, X, M, nn.LSTMState(*jnp.array(start)))
    direction = -1 if reverse else 1
    for row, length in enumerate(LENGTHS):
        words = INPUTS[row, :length][::direction]
        expected, h, c = lstm_by_definition(
            variables["params"]["cell"], words, state=tuple(start[:, row])
        )
        expected = np.reshape(expected, (length, HIDDEN))[::direction]
        np.testing.assert_allclose(states[row, :length], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(states[row, length:], 0)
        np.testing.assert_allclose(final.hidden[row], h, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(final.cell[row], c, rtol=1e-5, atol=1e-6)


def test_bilstm_is_its_definition(bilstm):
    module, variables = bilstm
    states, final = module.apply(variables, X, M)
    for row, length in enumerate(LENGTHS):
        words = INPUTS[row, :length]
        ahead, h, c = lstm_by_definition(variables["params"]["forward"], words)
        back, h2, c2 = lstm_by_definition(variables["params"]["backward"], words[::-1])
        if length:
            expected = np.concatenate([ahead, back[::-1]], axis=1)
            np.testing.assert_allclose(
                states[row, :length], expected, rtol=1e-5, atol=1e-6
            )
        np.testing.assert_allclose(
            final.hidden[row], np.concatenate([h, h2]), rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(
            final.cell[row], np.concatenate([c, c2]), rtol=1e-5, atol=1e-6
        )


def test_outputs_and_gradients_equal_flax():
    """flax's own scan, differentiated by jax, against the gradient written here."""
    module = nn.LSTM(HIDDEN, unroll=2)
    variables = random_variables(module)
    theirs = flax.linen.RNN(
        flax.linen.OptimizedLSTMCell(HIDDEN, name="cell"), return_carry=True
    )

    def converted(params):
        cell = params["cell"]
        split = lambda x: jnp.split(x, 4, axis=-1)
        kernels, biases = split(cell["input"]["kernel"]), split(cell["input"]["bias"])
        gates = {}
        for n, k, b, r in zip(
            "ifgo", kernels, biases, split(cell["recurrent"]), strict=True
        ):
            gates[f"i{n}"] = {"kernel": k}
            gates[f"h{n}"] = {"kernel": r, "bias": b}
        return {"params": {"cell": gates}}

    def ours_of(params, x):
        states, final = module.apply({"params": params}, x, M)
        return states, final.hidden, final.cell

    def theirs_of(params, x):
        (c, h), states = theirs.apply(
            converted(params), x, seq_lengths=jnp.array(LENGTHS)
        )
        real = jnp.array(LENGTHS > 0)[:, None]  # flax steps once even without words
        return (
            jnp.where(M[..., None], states, 0),
            jnp.where(real, h, 0),
            jnp.where(real, c, 0),
        )

    def with_gradient(f):
        total = lambda params, x: sum(jnp.sum(jnp.cos(y)) for y in f(params, x))
        return jax.jit(
            lambda params, x: (f(params, x), jax.grad(total, (0, 1))(params, x))
        )(variables["params"], X)

    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
        with_gradient(ours_of),
        with_gradient(theirs_of),
    )


@pytest.mark.parametrize("kind", [nn.BiLSTM, nn.BiGRU])
def test_rows_of_a_table_are_the_inputs_looked_up(kind):
    table = jnp.array(np.random.default_rng(4).normal(size=(6, DIM)), jnp.float32)
    ids = jnp.array(np.random.default_rng(5).integers(0, 6, MASK.shape))
    module = kind(HIDDEN)
    variables = random_variables(module)

    def total(params, table, by_row):
        inputs = (table, M, ids) if by_row else (table[ids], M)
        states, final = module.apply({"params": params}, *inputs)
        return jnp.sum(jnp.cos(states)) + jnp.sum(final.hidden), states

    both = [
        jax.jit(jax.grad(total, (0, 1), has_aux=True), static_argnums=2)(
            variables["params"], table, by_row
        )
        for by_row in (True, False)
    ]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), *both
    )


def test_forward_mode_is_refused_as_documented():
    module = nn.LSTM(HIDDEN)
    variables = module.init(jax.random.key(0), X, M)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda x: module.apply(variables, x, M)[0], (X,), (X,))
    assert nn.LSTM.__doc__ is not None and "jax.jvp" in nn.LSTM.__doc__


def test_gradients_of_gradients_equal_differences():
    module = nn.LSTM(2)
    x, mask = X[:2, :3, :2], jnp.array([[True, True, False], [True, True, True]])
    recurrent = jnp.array(np.random.default_rng(3).normal(size=(2, 8)), jnp.float32)
    dense = {"kernel": 0.5 * recurrent, "bias": jnp.zeros(8)}

    @jax.jit
    @jax.grad
    def gradient(arguments):
        recurrent, x = arguments
        params = {"cell": {"input": dense, "recurrent": recurrent}}
        states, final = module.apply({"params": params}, x, mask)
        return jnp.sum(jnp.sin(states)) + jnp.sum(final.cell**2)

    check_grads(
        gradient, ((recurrent, x),), order=1, modes=["rev"], rtol=2e-2, atol=2e-2
    )


def test_states_and_gradients_equal_torch(bilstm):
    torch = pytest.importorskip("torch", reason="needs the extra 'oracles'")
    module, variables = bilstm
    rows = slice(0, 3)  # torch refuses an empty sequence
    theirs = torch.nn.LSTM(DIM, HIDDEN, batch_first=True, bidirectional=True)
    names = {"forward": "l0", "backward": "l0_reverse"}
    with torch.no_grad():
        for direction, suffix in names.items():
            cell = variables["params"][direction]
            for name, value in (
                ("weight_ih", cell["input"]["kernel"].T),
                ("bias_ih", cell["input"]["bias"]),
                ("weight_hh", cell["recurrent"].T),
                ("bias_hh", jnp.zeros(4 * HIDDEN)),
            ):
                parameter = getattr(theirs, f"{name}_{suffix}")
                parameter.copy_(torch.tensor(np.array(value)))
    x = torch.tensor(INPUTS[rows], requires_grad=True)
    utils = torch.nn.utils.rnn
    lengths = torch.tensor(LENGTHS[rows])
    packed, (h, c) = theirs(utils.pack_padded_sequence(x, lengths, batch_first=True))
    states, _ = utils.pad_packed_sequence(packed, batch_first=True)
    (states.cos().sum() + h.cos().sum() + c.cos().sum()).backward()

    def total(params, x):
        states, final = module.apply({"params": params}, x, M[rows])
        return sum(jnp.sum(jnp.cos(y)) for y in (states, *final))

    ours, final = module.apply(variables, X[rows], M[rows])
    close = dict(rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours, states.detach(), **close)
    np.testing.assert_allclose(final.hidden, np.hstack(h.detach().numpy()), **close)
    np.testing.assert_allclose(final.cell, np.hstack(c.detach().numpy()), **close)
    gradient, d_x = jax.grad(total, argnums=(0, 1))(variables["params"], X[rows])
    np.testing.assert_allclose(d_x, x.grad, **close)
    for direction, suffix in names.items():
        for ours, name in (
            (gradient[direction]["input"]["kernel"].T, "weight_ih"),
            (gradient[direction]["input"]["bias"], "bias_ih"),
            (gradient[direction]["recurrent"].T, "weight_hh"),
        ):
            grad = getattr(theirs, f"{name}_{suffix}").grad
            np.testing.assert_allclose(ours, grad, **close)


def gru_by_definition(cell, words, state):
    """One sentence, one word at a time, in float64."""
    kernel, bias, recurrent, inner = (
        np.asarray(p, np.float64)
        for p in (
            cell["input"]["kernel"],
            cell["input"]["bias"],
            cell["recurrent"],
            cell["recurrent_bias"],
        )
    )
    sigmoid = lambda z: 1 / (1 + np.exp(-z))
    h, states = state, []
    for word in words:
        x = np.split(word @ kernel + bias, 3)
        u = np.split(h @ recurrent, 3)
        r, z = sigmoid(x[0] + u[0]), sigmoid(x[1] + u[1])
        n = np.tanh(x[2] + r * (u[2] + inner))
        h = (1 - z) * n + z * h
        states.append(h)
    return states, h


@pytest.mark.parametrize("reverse", [False, True])
def test_gru_is_its_definition(reverse):
    module = nn.GRU(HIDDEN, reverse=reverse)
    variables = random_variables(module)
    start = np.random.default_rng(2).normal(size=(4, HIDDEN)).astype(np.float32)
    states, final = module.apply(variables, X, M, nn.GRUState(jnp.array(start)))
    direction = -1 if reverse else 1
    for row, length in enumerate(LENGTHS):
        words = INPUTS[row, :length][::direction]
        cell = variables["params"]["cell"]
        expected, h = gru_by_definition(cell, words, start[row])
        expected = np.reshape(expected, (length, HIDDEN))[::direction]
        np.testing.assert_allclose(states[row, :length], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(states[row, length:], 0)
        np.testing.assert_allclose(final.hidden[row], h, rtol=1e-5, atol=1e-6)


def test_gru_states_and_gradients_equal_torch():
    torch = pytest.importorskip("torch", reason="needs the extra 'oracles'")
    module = nn.BiGRU(HIDDEN, unroll=2)
    variables = random_variables(module)
    theirs = torch.nn.GRU(DIM, HIDDEN, batch_first=True, bidirectional=True)
    wide = lambda bias: jnp.pad(bias, (2 * HIDDEN, 0))

    def parameters(tree, direction):
        cell = tree[direction]
        yield "weight_ih", cell["input"]["kernel"].T
        yield "bias_ih", cell["input"]["bias"]
        yield "weight_hh", cell["recurrent"].T
        yield "bias_hh", wide(cell["recurrent_bias"])

    names = {"forward": "l0", "backward": "l0_reverse"}
    with torch.no_grad():
        for direction, suffix in names.items():
            for name, value in parameters(variables["params"], direction):
                parameter = getattr(theirs, f"{name}_{suffix}")
                parameter.copy_(torch.tensor(np.array(value)))
    rows = slice(0, 3)  # torch refuses an empty sequence
    x = torch.tensor(INPUTS[rows], requires_grad=True)
    utils = torch.nn.utils.rnn
    packed, h = theirs(
        utils.pack_padded_sequence(x, torch.tensor(LENGTHS[rows]), batch_first=True)
    )
    states, _ = utils.pad_packed_sequence(packed, batch_first=True)
    (states.cos().sum() + h.cos().sum()).backward()

    def total(params, x):
        states, final = module.apply({"params": params}, x, M[rows])
        cosines = jnp.sum(jnp.cos(states)) + jnp.sum(jnp.cos(final.hidden))
        return cosines, (states, final)

    (gradient, d_x), (ours, final) = jax.grad(total, argnums=(0, 1), has_aux=True)(
        variables["params"], X[rows]
    )
    close = dict(rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours, states.detach(), **close)
    np.testing.assert_allclose(final.hidden, np.hstack(h.detach().numpy()), **close)
    np.testing.assert_allclose(d_x, x.grad, **close)
    for direction, suffix in names.items():
        for name, value in parameters(gradient, direction):
            grad = getattr(theirs, f"{name}_{suffix}").grad.numpy().copy()
            if name == "bias_hh":
                grad[: 2 * HIDDEN] = 0  # torch has these a second time
            np.testing.assert_allclose(value, grad, **close)


def test_forget_bias_and_orthogonal_kernels():
    module = nn.LSTM(HIDDEN, forget_bias=2.0)
    cell = module.init(jax.random.key(0), X, M)["params"]["cell"]
    bias = np.zeros(4 * HIDDEN)
    bias[HIDDEN : 2 * HIDDEN] = 2
    np.testing.assert_array_equal(cell["input"]["bias"], bias)
    for block in np.split(np.asarray(cell["recurrent"]), 4, axis=1):
        np.testing.assert_allclose(block @ block.T, np.eye(HIDDEN), atol=1e-5)


def test_no_collective_inside_the_loop(mesh, bilstm):
    """Over a mesh the kernels' gradients are summed once, not once a word."""
    module, variables = bilstm
    x = jnp.zeros((8, 5, DIM))
    spread = NamedSharding(mesh, PartitionSpec("data"))
    copies = NamedSharding(mesh, PartitionSpec())
    loss = lambda v, x, mask: jnp.sum(module.apply(v, x, mask)[0])
    compiled = (
        jax.jit(
            jax.grad(loss), in_shardings=(copies, spread, spread), out_shardings=copies
        )
        .lower(variables, x, jnp.ones((8, 5), bool))
        .compile()
    )
    text = compiled.as_text()
    bodies = re.findall(r"body=%?([\w.\-]+)", text)
    assert bodies and "all-reduce" in text
    for body in bodies:
        start = text.index(f"%{body} (")
        assert "all-reduce" not in text[start : text.index("\n}", start)]


def test_classifier_reads_the_last_state():
    module = nn.LSTMClassifier(2, hidden=HIDDEN)
    variables = random_variables(module, deterministic=True)
    logits = module.apply(variables, X, M, deterministic=True)
    output = variables["params"]["output"]
    for row, length in enumerate(LENGTHS):
        _, h, _ = lstm_by_definition(
            variables["params"]["encoder"]["cell"], INPUTS[row, :length]
        )
        expected = h @ output["kernel"] + output["bias"]
        np.testing.assert_allclose(logits[row], expected, rtol=1e-4, atol=1e-5)


def test_pooled_classifier_is_its_definition():
    module = nn.BiLSTMPoolClassifier(2, hidden=HIDDEN, features=6)
    variables = random_variables(module, deterministic=True)
    found = module.apply(variables, X, M, deterministic=True)
    params = jax.tree.map(lambda p: np.asarray(p, np.float64), variables["params"])
    for row, length in enumerate(LENGTHS):
        words = INPUTS[row, :length].astype(np.float64)
        forward, _, _ = lstm_by_definition(params["encoder"]["forward"], words)
        backward, _, _ = lstm_by_definition(params["encoder"]["backward"], words[::-1])
        states = np.zeros((1, 2 * HIDDEN))
        if length:
            states = np.concatenate([forward, backward[::-1]], axis=1)
        hidden, output = params["hidden"], params["output"]
        between = np.maximum(states.max(axis=0) @ hidden["kernel"] + hidden["bias"], 0)
        expected = between @ output["kernel"] + output["bias"]
        np.testing.assert_allclose(found[row], expected, rtol=1e-4, atol=1e-5)
