"""The chain against the enumeration of all paths, and against pytorch-crf."""

import functools
import itertools

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
import scipy.special
from jax.test_util import check_grads

from jaxemb import losses
from jaxemb.data import tags as tags_lib
from jaxemb.errors import InputError
from jaxemb.nn import crf

CLASSES, K = 4, 6
LENGTHS = np.array([5, 3, 1, 0])
MASK = np.arange(5) < LENGTHS[:, None]
RNG = np.random.default_rng(0)
EMISSIONS = RNG.normal(size=(4, 5, CLASSES)).astype(np.float32)
TAGS = RNG.integers(0, CLASSES, (4, 5))
FREE = crf.Chain(
    *(RNG.normal(size=s).astype(np.float32) for s in ((CLASSES, CLASSES), 4, 4))
)
LABELS = ["O", "B-X", "I-X", "B-Y"]
BOUND = crf.Constraints(*tags_lib.allowed(LABELS, "IOB2"))
# From class to class only upwards, from the first to the last; staying scores so much
# more than moving that no path allowed is near the best prefix.
UPWARDS = crf.Constraints(
    tuple(tuple(0 <= j - i <= 1 for j in range(CLASSES)) for i in range(CLASSES)),
    (True, False, False, False),
    (False, False, False, True),
)
STEEP = EMISSIONS + np.array([300, 200, 100, 0], np.float32)
CASES = {
    "free": (EMISSIONS, FREE),
    "IOB2": (EMISSIONS, BOUND.apply(FREE)),
    "far apart": (STEEP, FREE),
    "upwards": (STEEP, UPWARDS.apply(FREE)),
}


def score(emissions, chain, path):
    """The score of one path by its definition, in float64."""
    transitions, start, end = (np.asarray(x, np.float64) for x in chain)
    if not path:
        return 0.0
    total = start[path[0]] + end[path[-1]]
    total += sum(float(emissions[t, y]) for t, y in enumerate(path))
    return total + sum(transitions[a, b] for a, b in itertools.pairwise(path))


@functools.cache
def enumerated(name):
    """Of each sentence: its paths and their scores."""
    emissions, chain = CASES[name]
    found = []
    for rows, length in zip(emissions, LENGTHS, strict=True):
        paths = list(itertools.product(range(CLASSES), repeat=int(length)))
        found.append((paths, np.array([score(rows, chain, p) for p in paths])))
    return found


@jax.jit
def everything(emissions, chain):
    mask = jnp.array(MASK)

    def total(emissions, chain, weights):
        return jnp.sum(weights * crf.log_partition(emissions, mask, chain))

    log_z = crf.log_partition(emissions, mask, chain)
    weights = jnp.where(log_z > -jnp.inf, jnp.array([1.0, -2.0, 3.0, 0.5]), 0)
    return {
        "log_z": log_z,
        "marginals": crf.marginals(emissions, mask, chain),
        "decoded": crf.decode(emissions, mask, chain),
        "k_best": crf.k_best(emissions, mask, chain, K),
        "gradient": jax.grad(total, 1)(emissions, chain, weights),
        "weights": weights,
        "nll": crf.nll(emissions, jnp.array(TAGS), mask, chain),
    }


@pytest.fixture(scope="module", params=CASES)
def case(request):
    emissions, chain = CASES[request.param]
    chain = crf.Chain(*map(jnp.array, chain))
    return enumerated(request.param), everything(jnp.array(emissions), chain)


def test_log_partition_and_loss_are_sums_over_all_paths(case):
    paths, ours = case
    for row, (_, scores) in enumerate(paths):
        log_z = scipy.special.logsumexp(scores)
        np.testing.assert_allclose(ours["log_z"][row], log_z, rtol=1e-5, atol=1e-5)
        right = scores[paths[row][0].index(tuple(TAGS[row, : LENGTHS[row]]))]
        if log_z > -np.inf:
            np.testing.assert_allclose(
                ours["nll"][row], log_z - right, rtol=1e-4, atol=1e-4
            )


def test_marginals_are_shares_of_all_paths(case):
    paths, ours = case
    for row, (all_paths, scores) in enumerate(paths):
        expected = np.zeros((5, CLASSES))
        if scores.max() > -np.inf:
            for path, share in zip(
                all_paths, scipy.special.softmax(scores), strict=True
            ):
                expected[np.arange(len(path)), list(path)] += share
        np.testing.assert_allclose(ours["marginals"][row], expected, atol=1e-5)
        np.testing.assert_array_equal(ours["marginals"][row][expected == 0], 0)


def test_gradients_are_expected_counts(case):
    paths, ours = case
    counts = [np.zeros((CLASSES, CLASSES)), np.zeros(CLASSES), np.zeros(CLASSES)]
    for (all_paths, scores), weight in zip(paths, ours["weights"], strict=True):
        if scores.max() == -np.inf or not all_paths[0]:
            continue
        for path, share in zip(all_paths, scipy.special.softmax(scores), strict=True):
            for a, b in itertools.pairwise(path):
                counts[0][a, b] += share * float(weight)
            counts[1][path[0]] += share * float(weight)
            counts[2][path[-1]] += share * float(weight)
    for gradient, expected in zip(ours["gradient"], counts, strict=True):
        np.testing.assert_allclose(gradient, expected, atol=2e-5)
        np.testing.assert_array_equal(np.asarray(gradient)[expected == 0], 0)


def test_decoded_paths_are_the_best(case):
    paths, ours = case
    tags, best = ours["decoded"]
    every, scores = ours["k_best"]
    assert not np.asarray(tags)[~MASK].any()
    for row, (all_paths, true) in enumerate(paths):
        order = np.argsort(-true, kind="stable")[:K]
        wanted = np.resize(true[order], K)
        wanted[len(order) :] = -np.inf
        np.testing.assert_allclose(scores[row], wanted, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(best[row], wanted[0], rtol=1e-5, atol=1e-4)
        length = LENGTHS[row]
        for place, path in enumerate(all_paths[i] for i in order):
            if true[order[place]] > -np.inf:
                assert tuple(every[row, place, :length].tolist()) == path
        if true.max() > -np.inf:
            assert tuple(tags[row, :length].tolist()) == all_paths[order[0]]


def test_equals_pytorch_crf():
    torch = pytest.importorskip("torch", reason="needs the extra 'oracles'")
    torchcrf = pytest.importorskip("torchcrf", reason="needs the extra 'oracles'")
    rows = slice(0, 3)  # it refuses an empty sentence
    theirs = torchcrf.CRF(CLASSES, batch_first=True)
    names = "transitions", "start_transitions", "end_transitions"
    with torch.no_grad():
        for name, value in zip(names, FREE, strict=True):
            getattr(theirs, name).copy_(torch.tensor(value))
    x = torch.tensor(EMISSIONS[rows], requires_grad=True)
    mask = torch.tensor(MASK[rows])
    loss = -theirs(x, torch.tensor(TAGS[rows]), mask=mask, reduction="none")
    loss.sum().backward()

    def ours(emissions, chain):
        tags, mask = jnp.array(TAGS[rows]), jnp.array(MASK[rows])
        losses = crf.nll(emissions, tags, mask, chain)
        return jnp.sum(losses), losses

    chain = crf.Chain(*map(jnp.array, FREE))
    gradient, found = jax.grad(ours, (0, 1), has_aux=True)(
        jnp.array(EMISSIONS[rows]), chain
    )
    np.testing.assert_allclose(found, loss.detach(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradient[0], x.grad, atol=1e-5)
    for name, value in zip(names, gradient[1], strict=True):
        np.testing.assert_allclose(value, getattr(theirs, name).grad, atol=1e-5)
    tags, _ = crf.decode(jnp.array(EMISSIONS[rows]), jnp.array(MASK[rows]), chain)
    for row, path in enumerate(theirs.decode(x.detach(), mask=mask)):
        assert tags[row, : len(path)].tolist() == path


def test_without_a_chain_it_is_a_softmax_at_every_word():
    module = crf.CRF(CLASSES)
    arguments = jnp.array(EMISSIONS), jnp.array(TAGS), jnp.array(MASK)
    loss, variables = module.init_with_output(jax.random.key(0), *arguments)
    expected = losses.softmax_cross_entropy(*arguments[:2], mask=arguments[2])
    np.testing.assert_allclose(loss, expected.sum(axis=1), rtol=1e-5, atol=1e-5)
    tags, _ = module.apply(variables, arguments[0], arguments[2], method="decode")
    wanted = np.where(MASK, EMISSIONS.argmax(axis=-1), 0)
    np.testing.assert_array_equal(tags, wanted)
    shares = module.apply(variables, arguments[0], arguments[2], method="marginals")
    softmax = scipy.special.softmax(EMISSIONS, axis=-1) * MASK[..., None]
    np.testing.assert_allclose(shares, softmax, atol=1e-5)


def test_forbidden_parameters_take_no_gradient_and_forbidden_tags_no_part():
    module = crf.CRF(CLASSES, BOUND)
    allowed = np.array(BOUND.transitions)
    tags = jnp.array([[0, 1, 2, 0, 3], [1, 2, 2, 0, 0], [3, 0, 0, 0, 0], [0] * 5])
    arguments = jnp.array(EMISSIONS), tags, jnp.array(MASK)
    params = {"transitions": FREE.transitions, "start": FREE.start, "end": FREE.end}
    total = lambda p: jnp.sum(module.apply({"params": p}, *arguments))
    value, gradient = jax.value_and_grad(total)(jax.tree.map(jnp.array, params))
    assert jnp.isfinite(value)
    assert not np.asarray(gradient["transitions"])[~allowed].any()
    assert (np.asarray(gradient["transitions"])[allowed] != 0).all()
    broken = arguments[1].at[0, 0].set(2)  # begins with I-X
    loss = module.apply({"params": params}, arguments[0], broken, arguments[2])
    assert loss[0] == jnp.inf and jnp.isfinite(loss[1:]).all()
    best, scores = module.apply(
        {"params": params}, arguments[0], arguments[2], 3, method="k_best"
    )
    found = np.argwhere(np.asarray(scores) > -np.inf)
    assert len(found) == 3 + 3 + 3 + 1  # of the empty sentence one
    for row, place in found:
        moves = itertools.pairwise(best[row, place, : LENGTHS[row]].tolist())
        assert all(allowed[a, b] for a, b in moves), (row, place)


@pytest.mark.parametrize("name", ["IOB2", "upwards"])  # both ways of computing
def test_gradients_of_gradients_equal_differences(name):
    emissions, chain = CASES[name]
    rows = jnp.array(emissions[:2, :3] / (100 if name == "upwards" else 1))
    mask = jnp.array([[True] * 3, [True, True, False]])
    finite = np.isfinite(chain.transitions)
    start, end = FREE.start, FREE.end

    @jax.jit
    @jax.grad
    def gradient(arguments):
        emissions, transitions = arguments
        transitions = jnp.where(finite, transitions, -jnp.inf)
        log_z = crf.log_partition(emissions, mask, crf.Chain(transitions, start, end))
        return jnp.sum(log_z**2)

    arguments = (rows, jnp.where(finite, FREE.transitions, 0))
    check_grads(gradient, (arguments,), order=1, modes=["rev"], rtol=2e-2, atol=2e-2)


def test_a_tag_that_is_no_class_is_nan_at_a_word_only():
    chain = crf.Chain(*map(jnp.array, FREE))
    tags = jnp.array(TAGS).at[0, 0].set(CLASSES).at[1, 0].set(-1).at[2, 4].set(-1)
    loss = crf.nll(jnp.array(EMISSIONS), tags, jnp.array(MASK), chain)
    np.testing.assert_array_equal(np.isnan(loss), [True, True, False, False])


def test_forward_mode_is_refused_as_documented():
    chain = crf.Chain(*map(jnp.array, FREE))
    mask, x = jnp.array(MASK), jnp.array(EMISSIONS)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda x: crf.log_partition(x, mask, chain), (x,), (x,))
    assert "jax.jvp" in (crf.log_partition.__doc__ or "")


def well_formed(tags, scheme):
    """Whether spans read off the tags, written down again, give the same tags."""
    spans, kind, start = [], None, 0
    for i, tag in enumerate([*tags, "O"]):
        letter, _, new = tag.partition("-")
        starts = letter in "BS" or (letter != "O" and new != kind)
        if scheme == "BIOES" and kind and tags[i - 1][0] in "ES":
            starts = starts or letter != "O"
        if kind and (letter == "O" or starts):
            spans.append((start, i, kind))
            kind = None
        if starts:
            start, kind = i, new
    again = ["O"] * len(tags)
    for number, (start, end, kind) in enumerate(spans):
        again[start:end] = [f"I-{kind}"] * (end - start)
        touches = number and spans[number - 1][1:] == (start, kind)
        if scheme != "IOB1" or touches:
            again[start] = f"B-{kind}"
        if scheme == "BIOES":
            again[end - 1] = f"E-{kind}" if end - start > 1 else f"S-{kind}"
    return again == list(tags)


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "BIOES"])
def test_constraints_allow_exactly_the_well_formed(scheme):
    letters = "BIES" if scheme == "BIOES" else "BI"
    labels = ["O", *(f"{letter}-{kind}" for kind in "XY" for letter in letters)]
    found = tags_lib.allowed(labels, scheme)
    for length in (1, 2, 3):
        for path in itertools.product(range(len(labels)), repeat=length):
            allowed = found.start[path[0]] and found.end[path[-1]]
            allowed &= all(found.transitions[a][b] for a, b in itertools.pairwise(path))
            tags = [labels[i] for i in path]
            assert allowed == well_formed(tags, scheme), tags


def test_mistakes_are_named(monkeypatch):
    for label, problem in (("X-Y", "; expected O, or B"), ("E-X", " of IOB2")):
        with pytest.raises(InputError, match=f"the tag '{label}' is none{problem}"):
            tags_lib.allowed(["O", label])
    with pytest.raises(InputError, match="k is 0"):
        x, mask = jnp.zeros((1, 2, CLASSES)), jnp.ones((1, 2), bool)
        crf.k_best(x, mask, crf.Chain(*map(jnp.array, FREE)), 0)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user has none
    with pytest.raises(InputError, match="scheme is 'IOB'; expected one of IOB1, IOB2"):
        tags_lib.allowed(["O"], "IOB")
