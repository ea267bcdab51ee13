"""Masks beside sorting, torch's pruning and what probability says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jaxemb import optim
from jaxemb.errors import InputError
from jaxemb.optim import masks

DRAWN = np.random.default_rng(0).normal(size=(40, 25)).astype(np.float32)
magnitude = jax.jit(optim.magnitude_mask)


def sorted_mask(weights: np.ndarray, removed: int) -> np.ndarray:
    """By a stable sort; of equal weights the last are removed."""
    flat = np.abs(weights).ravel()
    order = np.lexsort((-np.arange(flat.size), flat))
    kept = np.ones(flat.size, bool)
    kept[order[:removed]] = False
    return kept.reshape(weights.shape)


@given(st.integers(0, 100), st.integers(0, 3), st.integers(0, 2**16))
def test_exactly_the_smallest_go_whatever_ties_there_are(percent, digits, seed):
    drawn = np.random.default_rng(seed).normal(size=(10, 10)).astype(np.float32)
    weights = np.round(drawn, digits)
    found = np.asarray(magnitude(weights, percent / 100))
    np.testing.assert_array_equal(found, sorted_mask(weights, percent))


@pytest.mark.parametrize("share", [0.0, 0.1234, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_the_share_of_zeros_and_what_leaves_the_mask_alone(share):
    found = np.asarray(magnitude(DRAWN, share))
    assert abs((~found).mean() - share) <= 1 / DRAWN.size
    signs = np.random.default_rng(1).choice([-1, 1], DRAWN.shape)
    np.testing.assert_array_equal(found, magnitude(DRAWN * signs, share))
    for scale in (8, 3.7):
        np.testing.assert_array_equal(
            found, magnitude(DRAWN * np.float32(scale), share)
        )


def test_masks_are_nested_as_the_share_grows():
    drawn = jax.jit(
        lambda s: optim.random_mask(jax.random.key(3), jnp.asarray(DRAWN), s)
    )
    for mask in (lambda s: magnitude(DRAWN, s), drawn):
        grown = [np.asarray(mask(i / 10)) for i in range(11)]
        for i, one in enumerate(grown):
            assert (~one).sum() == 100 * i
        for few, many in zip(grown[:-1], grown[1:], strict=True):
            assert not (~few & many).any()


def test_torch_keeps_the_same_weights():
    prune = pytest.importorskip(
        "torch.nn.utils.prune", reason="the extra oracles holds torch"
    )
    import torch

    theirs = torch.nn.Linear(25, 40, bias=False)
    theirs.weight = torch.nn.Parameter(torch.tensor(DRAWN))
    prune.l1_unstructured(theirs, "weight", amount=0.6)
    found = magnitude(DRAWN, 0.6)
    np.testing.assert_array_equal(found, theirs.weight_mask.numpy() > 0)


@pytest.mark.parametrize(("unit", "dim"), [("rows", 0), ("columns", 1)])
def test_torch_keeps_the_same_rows_and_columns(unit, dim):
    prune = pytest.importorskip(
        "torch.nn.utils.prune", reason="the extra oracles holds torch"
    )
    import torch

    theirs = torch.nn.Linear(25, 40, bias=False)
    theirs.weight = torch.nn.Parameter(torch.tensor(DRAWN))
    prune.ln_structured(theirs, "weight", amount=0.4, n=1, dim=dim)
    found = optim.keep_masks({"kernel": DRAWN}, 0.4, unit=unit)["kernel"]
    np.testing.assert_array_equal(found, theirs.weight_mask.numpy() > 0)


def test_torch_compares_all_matrices_alike():
    prune = pytest.importorskip(
        "torch.nn.utils.prune", reason="the extra oracles holds torch"
    )
    import torch

    params = {"a": {"kernel": DRAWN}, "b": {"kernel": 2 * DRAWN[:20] + 0.01}}
    layers = []
    for name in params:
        layer = torch.nn.Linear(25, 1, bias=False)
        layer.weight = torch.nn.Parameter(torch.tensor(params[name]["kernel"]))
        layers.append(layer)
    prune.global_unstructured(
        [(layer, "weight") for layer in layers], prune.L1Unstructured, amount=0.5
    )
    found = optim.keep_masks(params, 0.5, scope="global")
    for name, layer in zip(params, layers, strict=True):
        wanted = layer.weight_mask.numpy() > 0
        np.testing.assert_array_equal(found[f"{name}/kernel"], wanted)


def test_jaxpruner_keeps_the_same_weights_ties_too():
    theirs = pytest.importorskip("jaxpruner", reason="no package of it is published")
    rounded = np.round(DRAWN, 1)
    for weights in (DRAWN, rounded):
        wanted = theirs.mask_calculator.topk_mask_calculator(np.abs(weights), 0.6)
        np.testing.assert_array_equal(magnitude(weights, 0.6), np.asarray(wanted) > 0)


def test_global_and_local_agree_where_all_have_one_distribution():
    """Check 8: to sampling error, and not when one deviation doubles."""
    rng = np.random.default_rng(0)
    same = {k: {"kernel": rng.normal(size=(200, 100))} for k in "abc"}

    def shares(params):
        found = optim.keep_masks(params, 0.6, scope="global")
        return [float((~m).mean()) for m in found.values()]

    assert np.mean(shares(same)) == pytest.approx(0.6, abs=1e-4)
    np.testing.assert_allclose(shares(same), 0.6, atol=4 * np.sqrt(0.24 / 20_000))
    same["b"]["kernel"] *= 2
    wide = shares(same)
    # t of the mixture, by scipy: 2/3 F(t) + 1/3 F(t/2) = 0.6 for |normal|.
    from scipy import optimize

    def removed(t, sd):
        return 2 * stats.norm.cdf(t / sd) - 1

    limit = optimize.brentq(
        lambda t: 2 * removed(t, 1) / 3 + removed(t, 2) / 3 - 0.6, 0, 5
    )
    wanted = [removed(limit, sd) for sd in (1, 2, 1)]
    np.testing.assert_allclose(wide, wanted, atol=0.015)
    assert wanted[0] - wanted[1] > 0.2
    # The masks themselves: nested, so that they differ by the difference of shares.
    masks_of = [optim.keep_masks(same, 0.6, scope=s) for s in ("global", "matrix")]
    for path, share in zip(masks_of[0], wide, strict=True):
        differing = np.mean(masks_of[0][path] != masks_of[1][path])
        assert differing == pytest.approx(abs(share - 0.6), abs=1e-4)
        assert differing > 0.05
    same["b"]["kernel"] /= 2
    masks_of = [optim.keep_masks(same, 0.6, scope=s) for s in ("global", "matrix")]
    for path, mask in masks_of[0].items():
        assert np.mean(mask != masks_of[1][path]) < 4 * np.sqrt(0.24 / 20_000)


def head_params(dim=6):
    rng = np.random.default_rng(2)
    layer = {
        name: {"kernel": rng.normal(size=(dim, dim)), "bias": rng.normal(size=dim)}
        for name in ("query", "key", "value", "output")
    }
    return {"attention": jax.tree.map(lambda x: x.astype(np.float32), layer)}


HEADS = r".*(query|key|value)/(kernel|bias)|.*output/kernel"


def test_a_head_is_one_unit_of_four_matrices():
    params = head_params()
    found = optim.keep_masks(params, 0.34, where=HEADS, unit=optim.Heads(3))
    layer = params["attention"]
    sizes = []
    for head in range(3):
        own = slice(2 * head, 2 * head + 2)
        members = [layer[n]["kernel"][:, own] for n in ("query", "key", "value")]
        members += [layer[n]["bias"][own] for n in ("query", "key", "value")]
        members.append(layer["output"]["kernel"][own])
        sizes.append(np.concatenate([abs(m).ravel() for m in members]).mean())
    gone = int(np.argmin(sizes))
    own = slice(2 * gone, 2 * gone + 2)
    for name in ("query", "key", "value"):
        wanted = np.ones((6, 6), bool)
        wanted[:, own] = False
        np.testing.assert_array_equal(found[f"attention/{name}/kernel"], wanted)
        np.testing.assert_array_equal(found[f"attention/{name}/bias"], wanted[0])
    np.testing.assert_array_equal(found["attention/output/kernel"], wanted.T)
    assert "attention/output/bias" not in found


def test_what_has_no_heads_or_rows_is_named():
    with pytest.raises(InputError, match="cannot be split into 4 heads"):
        optim.keep_masks(head_params(), 0.5, where=HEADS, unit=optim.Heads(4))
    with pytest.raises(InputError, match="output/bias has no heads"):
        optim.keep_masks(head_params(), 0.5, where=".*", unit=optim.Heads(3))
    with pytest.raises(InputError, match="bias has no rows"):
        optim.keep_masks({"bias": np.ones(3)}, 0.5, where="bias", unit="rows")
    with pytest.raises(InputError, match="matches no parameter"):
        optim.keep_masks({"bias": np.ones(3)}, 0.5)


@pytest.mark.parametrize("shape", [(1,), (17,), (3, 8), (5, 3), (4, 3, 5)])
def test_packed_masks_come_back(shape):
    mask = np.random.default_rng(7).random(shape) < 0.5
    packed = masks.pack(jnp.asarray(mask))
    np.testing.assert_array_equal(masks.unpack(packed, shape), mask)
    whole = mask.reshape(mask.shape[0], -1) if mask.ndim > 1 else mask
    np.testing.assert_array_equal(packed, np.packbits(whole, axis=-1))
