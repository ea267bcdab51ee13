import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import nn
from jaxemb.data import tags as tags_lib
from jaxemb.nn import crf

CLASSES, DIM = 3, 4
MASK = np.arange(5) < np.array([5, 3, 1])[:, None]
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(3, 5, DIM)).astype(np.float32)
TAGS = RNG.integers(0, CLASSES, (3, 5))
X, M, Y = jnp.array(VECTORS), jnp.array(MASK), jnp.array(TAGS)


def start(**fields):
    module = nn.Tagger(CLASSES, hidden=2, **fields)
    variables = module.init(jax.random.key(0), X, M, deterministic=True)
    rng = np.random.default_rng(1)
    draw = lambda p: jnp.array(rng.normal(size=p.shape), jnp.float32)
    return module, {"params": jax.tree.map(draw, variables["params"])}


@pytest.mark.parametrize("encoder", ["lstm", "gru", "cnn"])
def test_emissions_are_an_mlp_of_the_encoders_states(encoder):
    module, variables = start(encoder=encoder, layers=2, mlp=3)
    parts = {
        "lstm": nn.BiLSTM(2),
        "gru": nn.BiGRU(2),
        "cnn": nn.ConvEncoder(4),
    }
    states = X
    for i in range(2):
        own = {"params": variables["params"][f"encoder_{i}"]}
        states = parts[encoder].apply(own, states, M)
        states = states if encoder == "cnn" else states[0]
    inner, output = (
        jax.tree.map(np.asarray, variables["params"][n]) for n in ("inner", "output")
    )
    hidden = np.maximum(np.asarray(states) @ inner["kernel"] + inner["bias"], 0)
    expected = (hidden @ output["kernel"] + output["bias"]) * MASK[..., None]
    ours = module.apply(variables, X, M, deterministic=True)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_dropout_is_of_its_key_and_of_training_only():
    module, variables = start(dropout_rate=0.5)
    plain, _ = start()

    def emissions(seed, module=module):
        rngs = {"dropout": jax.random.key(seed)}
        return np.asarray(module.apply(variables, X, M, deterministic=False, rngs=rngs))

    first = emissions(0)
    np.testing.assert_array_equal(emissions(0), first)
    assert (emissions(1) != first)[MASK].any()
    assert not first[~MASK].any()
    still = module.apply(variables, X, M, deterministic=True)
    np.testing.assert_array_equal(
        still, plain.apply(variables, X, M, deterministic=True)
    )
    assert (first != np.asarray(still))[MASK].any()
    np.testing.assert_array_equal(emissions(0, plain), still)


def test_a_softmax_head_decides_word_by_word():
    module, variables = start(mlp=None)
    emissions = np.asarray(module.apply(variables, X, M, deterministic=True))
    log_p = emissions - np.log(np.exp(emissions).sum(axis=-1, keepdims=True))
    expected = [
        -sum(log_p[b, t, TAGS[b, t]] for t in range(5) if MASK[b, t]) for b in range(3)
    ]
    loss = module.apply(variables, X, Y, M, deterministic=True, method="loss")
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    tags = module.apply(variables, X, M, method="decode")
    np.testing.assert_array_equal(tags, emissions.argmax(axis=-1) * MASK)


def test_a_crf_head_is_the_chain_over_the_emissions():
    module, variables = start(head="crf")
    assert set(variables["params"]["crf"]) == {"transitions", "start", "end"}
    emissions = module.apply(variables, X, M, deterministic=True)
    chain = crf.Chain(
        *(variables["params"]["crf"][n] for n in ("transitions", "start", "end"))
    )
    loss = module.apply(variables, X, Y, M, deterministic=True, method="loss")
    np.testing.assert_allclose(loss, crf.nll(emissions, Y, M, chain), rtol=1e-5)
    tags = module.apply(variables, X, M, method="decode")
    np.testing.assert_array_equal(tags, crf.decode(emissions, M, chain)[0])


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_marginals_and_the_best_paths_are_those_of_all_paths(head):
    module, variables = start(head=head)
    noise = np.random.default_rng(0)
    scores = {"transitions": np.zeros((3, 3)), "start": np.zeros(3), "end": np.zeros(3)}
    if head == "crf":
        scores = {name: noise.normal(size=x.shape) for name, x in scores.items()}
        variables["params"]["crf"] = {k: jnp.asarray(x) for k, x in scores.items()}
    emissions = np.asarray(module.apply(variables, X, M, deterministic=True))
    marginals = np.asarray(module.apply(variables, X, M, method="marginals"))
    paths, found = module.apply(variables, X, M, 4, method="k_best")
    for b, length in enumerate(MASK.sum(axis=1)):
        totals = {}
        for path in itertools.product(range(3), repeat=int(length)):
            total = scores["start"][path[0]] + scores["end"][path[-1]]
            total += sum(emissions[b, t, tag] for t, tag in enumerate(path))
            totals[path] = total + sum(
                scores["transitions"][pair] for pair in itertools.pairwise(path)
            )
        best = sorted(totals, key=totals.__getitem__, reverse=True)[:4]
        np.testing.assert_array_equal(paths[b, : len(best), :length], best)
        np.testing.assert_allclose(
            found[b, : len(best)], [totals[path] for path in best], rtol=1e-5, atol=1e-5
        )
        expected = np.zeros((5, 3))
        for path, total in totals.items():
            expected[range(int(length)), path] += np.exp(total)
        expected /= sum(map(np.exp, totals.values()))
        np.testing.assert_allclose(marginals[b], expected, atol=1e-5)


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_constraints_hold_in_decoding(head):
    bound = crf.Constraints(*tags_lib.allowed(["O", "B-X", "I-X"]))
    module, variables = start(head=head, constraints=bound)
    plain, _ = start(head=head)
    variables["params"]["output"]["bias"] += jnp.array([0.0, -9.0, 9.0])
    free = np.asarray(plain.apply(variables, X, M, method="decode"))
    tags = np.asarray(module.apply(variables, X, M, method="decode"))
    assert (free[:, 0] == 2).any()  # without them some sentence begins with I
    for row, mask in zip(tags, MASK, strict=True):
        path = row[mask].tolist()
        assert bound.start[path[0]]
        assert all(
            bound.transitions[a][b] for a, b in zip(path, path[1:], strict=False)
        )
    best, scores = module.apply(variables, X, M, 2, method="k_best")
    np.testing.assert_array_equal(best[:, 0], tags)
    assert np.isfinite(scores[:, 0]).all()
