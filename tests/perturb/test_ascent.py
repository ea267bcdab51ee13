"""The inner maximisation against closed forms, enumeration and torch."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import losses, perturb
from jaxemb.errors import InputError
from jaxemb.perturb.ascent import first_change
from tests.perturb import models

KEY = jax.random.key(7)
MASK = jnp.asarray(models.MASK)


def change_of(ascent, loss=None, key=KEY, embeddings=models.E):
    params = models.jax_params()
    loss = loss or (lambda x: models.loss_of(models.logits(params, x)))
    run = jax.jit(lambda e, k: perturb.ascend(loss, e, MASK, k, ascent))
    return np.asarray(run(jnp.asarray(embeddings), key))


def by_torch(ascent, start):
    """The ascent in a loop of autograd; norms written out anew."""
    torch = pytest.importorskip("torch", reason="needs the extra 'oracles'")
    params = models.torch_params(torch)
    embeddings, labels = torch.tensor(models.E), torch.tensor(models.LABELS)
    real = torch.tensor(models.MASK)[..., None]
    axes = (2,) if ascent.over == "token" else (1, 2)

    def size(x):
        if ascent.norm == "l2":
            return x.square().sum(axes, keepdim=True).sqrt()
        return x.abs().amax(axes, keepdim=True)

    def unit(x):
        if ascent.norm == "sign":
            return x.sign()
        found = size(x)
        return torch.where(found > 0, x / (found + ascent.guard), torch.zeros(()))

    d = torch.tensor(start)
    for _ in range(ascent.steps):
        d = d.detach().requires_grad_()
        each = torch.nn.functional.cross_entropy(
            models.torch_logits(torch, params, embeddings + d), labels, reduction="sum"
        )
        (g,) = torch.autograd.grad(each, d)
        g = torch.where(real, g, torch.zeros(()))
        if ascent.projection == "renorm":
            d = ascent.epsilon * unit(d + ascent.eta * g)
        elif ascent.projection == "step_only":
            d = ascent.eta * unit(g)
        elif ascent.norm == "l2":
            d = d + ascent.eta * unit(g)
            d = d * torch.clamp(ascent.epsilon / size(d).clamp(min=1e-30), max=1)
        else:
            d = (d + ascent.eta * unit(g)).clamp(-ascent.epsilon, ascent.epsilon)
    return d.detach().numpy()


@pytest.mark.parametrize("over", ["token", "text"])
@pytest.mark.parametrize(
    ("norm", "projection"),
    [(n, p) for n in ("inf", "l2", "sign") for p in ("clip", "step_only", "renorm")],
)
def test_every_norm_and_projection_is_that_of_autograd(norm, projection, over):
    ascent = perturb.Ascent(
        steps=2,
        epsilon=0.05,
        eta=0.04,
        sigma=0.02,
        norm=norm,
        projection=projection,
        over=over,
    )
    start = np.array(first_change(jnp.asarray(models.E), MASK, KEY, ascent))
    wanted = by_torch(ascent, start)
    np.testing.assert_allclose(change_of(ascent), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("norm", "over", "start"),
    [
        ("inf", "token", "normal"),
        ("inf", "text", "uniform"),
        ("l2", "token", "uniform"),
        ("l2", "text", "unit"),
        ("sign", "token", "unit"),
    ],
)
def test_a_change_stays_in_the_ball_and_off_padding(norm, over, start):
    ascent = perturb.Ascent(
        steps=3, epsilon=0.1, eta=0.3, sigma=0.5, norm=norm, over=over, start=start
    )
    change = change_of(ascent)
    assert not change[~models.MASK].any()
    for row, real in zip(change, models.MASK, strict=True):
        parts = row[real] if over == "token" else [row.ravel()]
        for part in parts:
            order = 2 if norm == "l2" else np.inf
            assert np.linalg.norm(part, order) <= 0.1 * (1 + 1e-5)
    assert np.abs(change).max() > 0.01


def test_starts_have_the_scale_that_they_say():
    e = jnp.zeros((200, 4, 5))
    mask = jnp.broadcast_to(MASK[2], (200, 4))
    of = functools.partial(first_change, e, mask, KEY)
    free = perturb.Ascent(sigma=0.5, projection="step_only", over="text", norm="l2")
    normal = np.asarray(of(free))[:, :3]
    assert abs(normal.std() - 0.5) < 0.03
    unit = np.asarray(of(dataclasses.replace(free, start="unit")))
    np.testing.assert_allclose(np.linalg.norm(unit, axis=(1, 2)), 0.5, rtol=1e-5)
    uniform = np.asarray(of(dataclasses.replace(free, start="uniform")))[:, :3]
    largest = np.abs(uniform).max()
    assert 0.9 * 0.5 / np.sqrt(15) < largest <= 0.5 / np.sqrt(15)


def test_the_worst_case_of_logistic_regression_is_attained_by_signs():
    # max over |d|_inf <= eps of log(1 + exp(-y w.(x + d))) is at d = -eps y sign(w).
    rng = np.random.default_rng(3)
    epsilon = 0.3
    for label in (-1.0, 1.0):
        w, x = rng.normal(size=(2, 7))
        w32, x32 = jnp.asarray(w, jnp.float32), jnp.asarray(x, jnp.float32)

        def loss(e, w=w32, y=label):
            return jax.nn.softplus(-y * (e[:, 0] @ w))

        closed = np.log1p(np.exp(-label * w @ x + epsilon * np.abs(w).sum()))
        corners = itertools.product((-epsilon, epsilon), repeat=7)
        worst = max(
            np.log1p(np.exp(-label * w @ (x + np.array(corner)))) for corner in corners
        )
        assert worst == pytest.approx(closed, rel=1e-12)
        ascent = perturb.Ascent(epsilon=epsilon, eta=epsilon, sigma=0.0, norm="sign")
        e, mask = x32[None, None], jnp.ones((1, 1), bool)
        found = {}
        for norm in ("sign", "inf"):
            own = dataclasses.replace(ascent, norm=norm)
            d = perturb.ascend(loss, e, mask, KEY, own)
            found[norm] = float(loss(e + d)[0])
        assert found["sign"] == pytest.approx(closed, rel=1e-5)
        assert float(loss(e)[0]) < found["inf"] <= closed * (1 + 1e-6)


def test_without_a_random_start_a_divergence_does_not_move():
    params = models.jax_params()
    clean = models.logits(params, jnp.asarray(models.E))

    def divergence(x):
        return losses.distances.kl_softmax(clean, models.logits(params, x))

    slope = jax.grad(lambda x: divergence(x).sum())
    assert float(jnp.abs(slope(jnp.asarray(models.E))).max()) < 1e-6  # float32
    still = perturb.Ascent(epsilon=0.1, eta=0.1, sigma=0.0)
    moved = dataclasses.replace(still, sigma=0.05)
    assert np.abs(change_of(moved, divergence)).max() > 0.05
    with jax.enable_x64(True):
        wide = {k: jnp.asarray(v, jnp.float64) for k, v in models.PARAMS.items()}
        e = jnp.asarray(models.E, jnp.float64)
        fixed = models.logits(wide, e)

        def exact(x):
            return losses.distances.kl_softmax(fixed, models.logits(wide, x))

        gradient = jax.grad(lambda x: exact(x).sum())(e)
        assert gradient.dtype == jnp.float64
        assert float(jnp.abs(gradient).max()) < 1e-8
        # Rounding of 1e-16 over the guard of 1e-6: no step that any model could see.
        change = perturb.ascend(exact, e, MASK, KEY, still)
        assert change.dtype == jnp.float64
        assert float(jnp.abs(change).max()) < 1e-8 * 0.1 / still.guard
        objective = perturb.smart(still)
        value, terms = perturb.perturbed_loss(
            objective, models.logits_of(wide), models.loss_of, e, MASK, KEY
        )
        assert abs(float(terms["virtual"])) < 1e-12
        assert float(value) == pytest.approx(float(terms["clean"]), abs=1e-12)
        some = perturb.smart(moved)
        _, terms = perturb.perturbed_loss(
            some, models.logits_of(wide), models.loss_of, e, MASK, KEY
        )
        assert float(terms["virtual"]) > 1e-6


def test_a_loss_without_slope_gives_no_change_and_no_nan():
    for norm in ("inf", "l2", "sign"):
        ascent = perturb.Ascent(sigma=0.0, norm=norm, guard=0.0)
        change = change_of(ascent, lambda x: jnp.zeros(3) * jnp.sum(x))
        assert not change.any()

    def total(e):
        ascent = perturb.Ascent(sigma=0.0, norm="l2", guard=0.0)
        d = perturb.ascend(lambda x: jnp.sum(x, (1, 2)) * 0, e, MASK, KEY, ascent)
        return jnp.sum(jnp.square(e + d))

    assert np.isfinite(jax.grad(total)(jnp.asarray(models.E))).all()


@pytest.mark.parametrize("norm", ["sign", "inf"])
def test_one_step_beats_random_changes_and_five_beat_one(norm):
    """Random changes have the norm of the step's: the largest entry of each token."""
    params = models.jax_params()
    rng = np.random.default_rng(5)
    one = perturb.Ascent(epsilon=1e-2, eta=1e-2, sigma=0.0, norm=norm)
    # Shorter steps that together reach every corner of the ball.
    five = dataclasses.replace(one, steps=5, eta=4e-3)

    @jax.jit
    def losses_at(e, key):
        loss = lambda x: models.loss_of(models.logits(params, x))
        drawn = jax.random.normal(key, e.shape)
        if norm == "sign":
            drawn = jnp.sign(drawn)
        drawn = drawn / jnp.max(jnp.abs(drawn), axis=-1, keepdims=True)
        drawn = one.epsilon * drawn * MASK[..., None]
        d1, d5 = (perturb.ascend(loss, e, MASK, key, a) for a in (one, five))
        return [loss(e + d).sum() for d in (d1, d5, drawn)]

    found = []
    for number in range(100):
        e = rng.normal(size=models.E.shape).astype(np.float32)
        found.append(losses_at(jnp.asarray(e), jax.random.key(number)))
    first, fifth, random = np.array(found).T
    assert np.mean(first >= random) >= 0.95
    # On a plane both end at the same corner; what the loss bends is what five see.
    assert fifth.mean() >= first.mean()


def test_the_start_of_an_example_does_not_depend_on_devices(mesh):
    ascent = perturb.Ascent(sigma=0.1, projection="step_only")
    e = jnp.asarray(np.tile(models.E, (8, 1, 1)))
    mask = jnp.tile(MASK, (8, 1))
    whole = first_change(e, mask, KEY, ascent)
    split = jax.pmap(
        lambda e, mask: first_change(e, mask, KEY, ascent), axis_name="data"
    )(e.reshape(8, 3, 4, 5), mask.reshape(8, 3, 4))
    np.testing.assert_array_equal(whole, split.reshape(whole.shape))


@pytest.mark.parametrize(
    ("field", "value"),
    [("norm", "l1"), ("projection", "none"), ("over", "batch"), ("start", "zero")],
)
def test_a_setting_that_is_not_there_is_named(field, value):
    with pytest.raises(InputError, match=f"Ascent.{field} is '{value}'"):
        perturb.Ascent(**{field: value})
    with pytest.raises(InputError, match="steps is -1"):
        perturb.Ascent(steps=-1)
